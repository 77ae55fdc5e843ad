"""How strong the tests are: what they run, what they notice, and what Rust's own tools see while they run; and what the
program is made of.

    python3 study/strength.py coverage
    python3 study/strength.py mutants [--every N] [--minutes M] [--again] [GROUP..]
    python3 study/strength.py miri
    python3 study/strength.py sanitizers
    python3 study/strength.py fuzz [--minutes M] [TARGET..]
    python3 study/strength.py supply
    python3 study/strength.py build

Each prints what it saw and appends a record to study/results/reliability.jsonl, from which docs/reliability.md is made
(`cargo run --release -p study -- reliability report`). Coverage needs the component llvm-tools; Miri, sanitizers and fuzzing
need a nightly compiler, with miri and rust-src; `supply` needs cargo-deny and cargo-cyclonedx.
"""

import argparse
import datetime
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

from computer import environment, processor

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LIBRARY = Path("crates/svml/src")
HOST = f"{platform.machine()}-unknown-linux-gnu"


def said(*command):
    """The first line that a program prints; empty if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""


def commit():
    """The commit of the sources, and whether they differ from it."""
    changed = said("git", "status", "--porcelain", "--", "crates", "study/src", "Cargo.toml", "Cargo.lock")
    return said("git", "rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def record(results, check, met, seen, tools):
    """Prints what was seen and appends it to the results, in the form of study/src/reliability/record.rs."""
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    system = f"{platform.system().lower()} {platform.machine()}"
    header = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} threads, {system}",
        "versions": ", ".join([f"svml {version} ({commit()})", *tools]),
    }
    print(f"{check}: {'met' if met else 'NOT met'}", *seen, sep="\n  ")
    line = {"check": check, "header": header, "met": met, "seen": seen}
    with open(results, "a") as file:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return 0 if met else 1


def rustc(toolchain):
    return said("rustc", f"+{toolchain}", "--version")


def run(command, variables=None, **options):
    """Runs a program in the repository, with further variables."""
    print("$", *command, flush=True)
    return subprocess.run(command, env=os.environ | (variables or {}), **({"cwd": ROOT} | options))


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "none"


# --- Coverage -----------------------------------------------------------------------------------------------------

# Parts of the library by the beginnings of paths, the first that fits; what is in none is "the rest".
GPU = "GPU code, most of which needs a GPU"
PARTS = {
    GPU: ["cuda/", "kernel/cuda/", "landmarks/card/"],
    "solver and linear algebra": ["svm.rs", "kernel/", "linalg/"],
    "gradients and criteria": ["loss.rs", "metric.rs", "optimise.rs", "svml/", "landmarks/"],
    "parsers": ["data/read/"],
    "model file": ["model/file.rs", "model/libsvm.rs"],
    "the rest": [""],
}
# They fit for minutes what other tests fit too.
LEFT_OUT = {"honesty", "reproduction"}


# Its loops are twenty times slower if they are counted, and all tests run them: they are counted in a run of their own tests.
LOOPS = "linalg/"


def coverage(options):
    folder = TARGET / "coverage"
    tests = sorted(path.stem for path in (ROOT / "crates/svml/tests").glob("*.rs"))
    which = [f"--test={name}" for name in tests if name not in LEFT_OUT]
    done, found = covered(folder / "all", "--cfg loops_not_counted", ["--lib", *which], [])
    done_loops, of_loops = covered(folder / "loops", "", ["--lib"], [LOOPS.replace("/", "::")])
    passed = done and done_loops
    found |= {path: counts for path, counts in of_loops.items() if str(path).startswith(LOOPS)}
    missed = folder / "not-covered.txt"
    missed.write_text("".join(f"{line}\n" for line in not_covered(found)))
    print(f"Lines that no test runs: {missed}")
    seen = [
        f"{len(which) + 1} test programs of the library"
        f"{'' if passed else ', of which some FAILED'}; the code of tests and of other crates is not counted.",
    ]
    for part in [*PARTS, None]:
        sums = Counter()
        for path, counts in found.items():
            if part_of(path) == part or (part is None and part_of(path) != GPU):
                sums.update(counts["sums"])
        shares = [
            f"{percent(sums[kind + ' run'], sums[kind])} of {sums[kind]:,} {kind}"
            for kind in ("lines", "regions", "branches")
            if sums[kind]
        ]
        seen.append(f"{part or 'all of the library except the GPU code'}: {', '.join(shares)}.")
    met = (
        passed
        and sums["lines run"] >= 0.95 * sums["lines"]
        and sums["branches run"] >= 0.9 * sums["branches"] > 0
    )
    return record(options.results, "coverage", met, seen, [said("rustc", "--version")])


def covered(folder, flags, which, filters):
    """Whether some tests of the library pass, and for each of its files what there is and what was run."""
    profiles = folder / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir(parents=True)
    # Only our own crates count, and only they are slowed down. Branches are counted by an option that is not stable, and
    # that the compiler takes all the same if it is told so.
    wrapper = folder / "instrumented"
    flags = f"-C instrument-coverage -Z coverage-options=branch {flags}"
    wrapper.write_text(f'#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec "$@" {flags}\n')
    wrapper.chmod(0o755)
    variables = {
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
        "LLVM_PROFILE_FILE": str(profiles / "%8m.profraw"),
        "CARGO_INCREMENTAL": "0",
    }
    command = ["cargo", "test", "--no-fail-fast", "-p", "svml", *which]
    built = run([*command, "--no-run", "--message-format=json"], variables, check=True, stdout=subprocess.PIPE, text=True)
    messages = map(json.loads, built.stdout.splitlines())
    programs = [message["executable"] for message in messages if message.get("executable")]
    done = run([*command, "--", *filters], variables)
    tools = sysroot_tools()
    data = folder / "all.profdata"
    run([tools / "llvm-profdata", "merge", "-sparse", "-o", data, *profiles.glob("*.profraw")], check=True)

    def exported(form):
        objects = [argument for program in programs for argument in ("--object", program)]
        command = [tools / "llvm-cov", "export", f"--format={form}", f"--instr-profile={data}", *objects[1:]]
        command += ["--sources", ROOT / LIBRARY]
        return run(command, check=True, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout

    return done.returncode == 0, counted(exported("lcov"), json.loads(exported("text")))


def sysroot_tools():
    """The folder of LLVM's programs."""
    folder = Path(said("rustc", "--print", "sysroot")) / "lib/rustlib" / HOST / "bin"
    if not (folder / "llvm-cov").exists():
        sys.exit("There is no llvm-cov: rustup component add llvm-tools")
    return folder


def part_of(path):
    return next(part for part, begins in PARTS.items() if any(str(path).startswith(begin) for begin in begins))


def counted(lcov, regions):
    """For each file of the library what there is and what was run, without its tests."""
    found = defaultdict(lambda: {"sums": Counter(), "lines": [], "branches": []})
    ends = {}

    def relative(name):
        path = Path(name).relative_to(ROOT / LIBRARY)
        if path not in ends:
            # Tests are the last thing in a file.
            text = (ROOT / LIBRARY / path).read_text().splitlines()
            ends[path] = next((k for k, line in enumerate(text, 1) if line == "#[cfg(test)]"), len(text) + 1)
        return path

    for line in lcov.splitlines():
        if line.startswith("SF:"):
            path = relative(line[3:])
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            if number < ends[path]:
                found[path]["sums"].update({"lines": 1, "lines run": count > 0})
                if count == 0:
                    found[path]["lines"].append(number)
    for file in regions["data"][0]["files"]:
        path = relative(file["filename"])
        for number, _, count, counts, begins, gap in file["segments"]:
            if counts and begins and not gap and number < ends[path]:
                found[path]["sums"].update({"regions": 1, "regions run": count > 0})
        # A branch is there once for each instance of a generic function.
        both = defaultdict(lambda: [0, 0])
        for branch in file.get("branches", []):
            place = tuple(branch[:4])
            both[place][0] += branch[4]
            both[place][1] += branch[5]
        for place, counts in both.items():
            if place[0] < ends[path]:
                found[path]["sums"].update({"branches": 2, "branches run": sum(count > 0 for count in counts)})
                for count, which in zip(counts, ("true", "false")):
                    if count == 0:
                        found[path]["branches"].append((place[0], place[1], which))
    return found


def not_covered(found):
    for path in sorted(found):
        text = (ROOT / LIBRARY / path).read_text().splitlines()
        sums = found[path]["sums"]
        yield f"== {path}: " + ", ".join(
            f"{percent(sums[kind + ' run'], sums[kind])} of {sums[kind]} {kind}" for kind in ("lines", "regions", "branches")
        )
        for number in found[path]["lines"]:
            yield f"{path}:{number}: {text[number - 1]}"
        for number, column, which in found[path]["branches"]:
            yield f"{path}:{number}:{column}: never {which}: {text[number - 1].strip()}"


# --- Mutants ------------------------------------------------------------------------------------------------------

# Files, and the tests that matter for them, fast ones first: a program and which of its tests.
GROUPS = {
    "solver": (
        ["svm.rs", "kernel/dense/mod.rs", "kernel/dense/columns.rs", "kernel/dense/distances.rs", "kernel/dense/factor.rs"],
        [("lib", ["svm::", "kernel::", "grid_search::"]), ("kernels", []), ("oracles", []), ("gradients", [])],
    ),
    "criteria": (
        ["loss.rs", "svml/criterion.rs", "svml/objective.rs"],
        [("lib", ["loss::", "svml::"]), ("gradients", []), ("criteria", []), ("fit_control", []), ("checkpoint", [])],
    ),
    "landmarks": (
        ["landmarks/newton.rs", "landmarks/sums.rs", "landmarks/gradient.rs"],
        [("lib", ["landmarks::"]), ("landmarks", []), ("gradients", []), ("checkpoint", [])],
    ),
    "linear algebra": (
        ["linalg/product.rs", "linalg/cholesky.rs", "linalg/eigen.rs"],
        [("lib", ["linalg::"]), ("kernels", []), ("oracles", [])],
    ),
    "parsers": (
        ["data/read/csv.rs", "data/read/libsvm.rs", "data/read/delimiter.rs", "data/read/slips.rs"],
        [("lib", ["data::"]), ("reading", []), ("reading_any_input", []), ("groups", [])],
    ),
    "model file": (
        ["model/file.rs", "model/libsvm.rs"],
        [("lib", ["model::libsvm", "model::file"]), ("model_files", []), ("model_files_hostile", [])],
    ),
    "metric and probabilities": (
        ["metric.rs", "calibrate.rs"],
        [("lib", ["metric::", "calibrate::", "model::libsvm"]), ("kernels", []), ("probabilities", [])],
    ),
}
PARSER = ["tree-sitter==0.26.0", "tree-sitter-rust==0.24.2"]
# Which mutant acts; 0 is none.
SWITCH = """
/// Which mutant acts.
#[doc(hidden)]
pub mod mutants {
    static ACTS: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("SVML_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0)
    });
    /// Whether it is this one.
    #[inline]
    pub fn on(id: u32) -> bool {
        *ACTS == id
    }
}
"""
# Survivors that no test can or should notice, and why: file, change and function, and the line or a part of it.
EXPLAINED = {
    ("kernel/dense/mod.rs", "prefetch returns at once", "fn prefetch"):
        "columns are computed when they are needed instead, with the same bits",
    ("svml/objective.rs", "< is <= in new", "at_once < rayon::current_num_threads()"):
        "a pool of as many threads as there are in place of the usual one, with the same bits",
    ("calibrate.rs", "* is / in temperature", "square += p * d * d"):
        "the curvature, by which only the number of steps to the same zero changes",
    ("calibrate.rs", "< is > in temperature", "newton < high"):
        "bisection in place of Newton's step, to the same zero",
    ("calibrate.rs", "+= is -= in temperature", "curvature += "):
        "bisection in place of Newton's step, to the same zero",
    ("loss.rs", "> is >= in value_and_slope", "margin > 0.0"):
        "at a margin of zero both branches have the same value",
    ("kernel/dense/columns.rs", "* is / in compute", "let bytes = "):
        "for how many bytes it is asked whether there is memory; `study reliability memory` runs with too little of it",
    ("linalg/cholesky.rs", "<= is > in new", "n <= SEQUENTIAL"):
        "whether memory that the thread keeps is used, with the same bits",
    ("model/file.rs", "> is >= in assemble", "v.recip().is_finite()"):
        "zero has no finite reciprocal, which is asked for too",
    ("linalg/cholesky.rs", "< is > in solve", "x.len() < TOGETHER * n"):
        "right-hand sides are solved one by one or together, with the same result",
    ("linalg/eigen.rs", "- is / in each_row", "<= SEQUENTIAL"):
        "whether several threads share the rows, with the same bits",
    ("linalg/eigen.rs", "/ is * in qr_step", "let delta = "):
        "the shift, by which only the number of steps to the same eigenvalues changes",
    ("linalg/eigen.rs", "/ is * in qr_step", "let shift = "):
        "the shift, by which only the number of steps to the same eigenvalues changes",
    ("data/read/libsvm.rs", "a guard is true in of", "index <= MAX_COLUMNS"):
        "the line with the index that is too large is refused where its values are read",
    ("model/file.rs", "> is >= in read", "header > rest"):
        "a file whose header leaves no byte for numbers is refused all the same, for what is missing",
    ("calibrate.rs", "+= is *= in temperature", "square += "):
        "the curvature, by which only the number of steps to the same zero changes",
    ("calibrate.rs", "- is / in temperature", "let newton = "):
        "bisection in place of Newton's step, to the same zero",
    ("svm.rs", "< is <= in towards", "t < 1e-12"):
        "the share of the way is a power of two, which this bound is not",
    ("kernel/dense/mod.rs", "* is + in sign_differences", "Vec::with_capacity"):
        "how much memory is asked for at first, with the same values",
    ("landmarks/newton.rs", "+ is * in factored", "attempt + 1 < JITTERS"):
        "after the last attempt the error is the same but for the pivot and the ridge that it names",
    ("landmarks/sums.rs", "< is <= in inside", "self.y * f() < 1.0"):
        "a row exactly on the margin has a slack of zero, so that only the way to the same optimum may change",
    ("data/read/delimiter.rs", "no ! in wrong_quote", "matches!(c, "):
        "the first end of a line within a record is on the first line of the record as well",
}  # fmt: skip


def why(mutant):
    """Why a survivor is none to worry about, if that is known."""
    line = (ROOT / mutant["file"]).read_text().splitlines()[mutant["line"] - 1]
    for (file, words, part), reason in EXPLAINED.items():
        if str(LIBRARY / file) == mutant["file"] and words == mutant["words"] and part in line:
            return reason
    return "no test notices"


def mutants(options):
    folder = TARGET / "mutants"
    python = environment(folder / "python", PARSER)
    tree = folder / "tree"
    wanted = {group: GROUPS[group] for group in options.groups or GROUPS}
    files = {str(LIBRARY / file): group for group, (files, _) in wanted.items() for file in files}
    unviable = {}
    while True:
        copy_to(tree)
        done = subprocess.run(
            [python, ROOT / "study/mutate.py", tree, str(options.every), ",".join(map(str, unviable)), *files],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        programs, wrong = built(tree, wanted)
        bad = {m["id"] for m in found["written"] for file, at in wrong if m["file"] == file and within(at, m["bytes"])}
        if not wrong:
            break
        if not bad:
            sys.exit("The mutants do not compile, and none of them is to blame")
        unviable |= dict.fromkeys(bad)
    # What was seen before is kept, so that a run can be interrupted; `--again` tries those that survived once more.
    results = folder / "results.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    names = {m["id"]: f"{Path(m['file']).relative_to(LIBRARY)}:{m['line']}: {m['words']}" for m in found["written"]}
    limits = {group: baseline(tree, programs, tests) for group, (_, tests) in wanted.items()}
    queue = in_turn([[m for m in found["written"] if files[m["file"]] == group] for group in wanted])
    began = time.monotonic()
    for mutant in queue:
        name = names[mutant["id"]]
        if known.get(name, "survived") != "survived" or (name in known and not options.again):
            continue
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            break
        group = files[mutant["file"]]
        known[name] = tried(tree, programs, wanted[group][1], limits[group], mutant["id"])
        results.write_text(json.dumps(known, indent=0))
        print(f"{known[name]}: {name}", flush=True)

    seen, total, survivors = [], Counter(), []
    for group, (paths, _) in wanted.items():
        counts = Counter()
        for mutant in found["written"]:
            verdict = known.get(names[mutant["id"]])
            if files[mutant["file"]] == group and verdict:
                counts[verdict] += 1
                if verdict == "survived":
                    survivors.append(f"{names[mutant['id']]}: {why(mutant)}")
        total.update(counts)
        if counts:
            seen.append(f"{group} ({', '.join(paths)}): {in_words(counts)}.")
    seen.append(
        f"In all, of {found['all']:,} possible mutants, every {options.every}th but those within others and "
        f"{len(unviable)} that do not compile: {in_words(total)}."
    )
    seen += [f"Survives: {survivor}." for survivor in survivors]
    count = sum(total.values())
    met = count >= 150 and count - total["survived"] >= 0.85 * count
    return record(options.results, "mutants", met, seen, [said("rustc", "--version"), *PARSER])


def copy_to(tree):
    """A copy of the sources at a place of its own, with the switch and without lints."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    for name in listed.stdout.split("\0"):
        if name and not name.startswith(("study/fuzz", "docs/figures")) and (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    manifest = tree / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('"deny"', '"allow"'))
    library = tree / LIBRARY / "lib.rs"
    library.write_text(library.read_text() + SWITCH)


def built(tree, wanted):
    """Builds the tests. Their programs, and the places (file, byte) of errors."""
    tests = sorted({name for _, tests in wanted.values() for name, _ in tests} - {"lib"})
    command = ["cargo", "test", "--no-run", "-p", "svml", "--lib", *(f"--test={name}" for name in tests)]
    done = run([*command, "--message-format=json"], {"CARGO_TARGET_DIR": str(TARGET)}, cwd=tree, stdout=subprocess.PIPE, text=True)
    programs, wrong = {}, []
    for message in map(json.loads, done.stdout.splitlines()):
        if message.get("executable"):
            kind = message["target"]
            programs["lib" if "lib" in kind["kind"] else kind["name"]] = message["executable"]
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            places = message["message"]["spans"] + [s for c in message["message"]["children"] for s in c["spans"]]
            wrong += [(place["file_name"], place["byte_start"]) for place in places]
            print(message["message"]["rendered"])
    if done.returncode and not wrong:
        sys.exit("cargo failed")
    return programs, wrong if done.returncode else []


def within(at, span):
    return span[0] <= at < span[1]


def in_turn(groups):
    """One of each group in turn, so that a run that is ended early has seen of all."""
    longest = max(map(len, groups), default=0)
    return [group[k] for k in range(longest) for group in groups if k < len(group)]


def verdict(tree, programs, test, mutant, limit=3600.0):
    """What becomes of a mutant in a test program, which is ended as soon as one of its tests fails."""
    program, which = test
    variables = os.environ | {"SVML_MUTANT": str(mutant), "RUST_BACKTRACE": "0"}
    command = [programs[program], *which]
    options = {"cwd": tree / "crates/svml", "env": variables, "stderr": subprocess.DEVNULL, "text": True}
    late = threading.Event()

    def too_long():
        late.set()
        running.kill()

    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as running:
        alarm = threading.Timer(limit, too_long)
        alarm.start()
        failed = any(line.endswith("FAILED\n") for line in running.stdout)
        alarm.cancel()
        if failed:
            running.kill()
    if late.is_set() and not failed:
        return "hung"
    return "noticed" if failed or running.returncode != 0 else "survived"


def baseline(tree, programs, tests):
    """Seconds that each may take: four times of what it takes without a mutant, where it must pass."""
    limits = []
    for test in tests:
        began = time.monotonic()
        if verdict(tree, programs, test, 0) != "survived":
            sys.exit(f"The test {test[0]} fails without a mutant")
        limits.append(max(60.0, 4 * (time.monotonic() - began)))
    return limits


def tried(tree, programs, tests, limits, mutant):
    verdicts = (verdict(tree, programs, test, mutant, limit) for test, limit in zip(tests, limits))
    return next((one for one in verdicts if one != "survived"), "survived")


def in_words(counts):
    count, noticed = sum(counts.values()), counts["noticed"] + counts["hung"]
    return (
        f"{count} tried, {noticed} noticed ({percent(noticed, count)}; {counts['hung']} of them because a test did not "
        f"end), {counts['survived']} not"
    )


# --- Miri ---------------------------------------------------------------------------------------------------------

# The instruction sets between which linalg/ chooses. Miri knows them if they are told to the compiler.
SETS = {
    "the baseline": "",
    "AVX2 and FMA": "+avx2,+fma",
    "AVX-512": "+avx2,+fma,+avx512f,+avx512dq,+avx512vl",
}
# All tests of the modules with unsafe code, but for those that would take hours there: matrices of hundreds of rows.
UNSAFE = [
    "linalg::exp",
    "linalg::loops",
    "linalg::product::tests::the_lower_triangle",
    "linalg::cholesky::tests::the_same_bits_with_smaller_tiles",
]


def miri(options):
    seen, met = [], True
    for name, features in SETS.items():
        variables = {
            "CARGO_TARGET_DIR": str(TARGET / "miri"),
            # Miri rounds exp and ln as it likes unless it is told not to.
            "MIRIFLAGS": "-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-deterministic-floats",
            "RUSTFLAGS": f"-C target-feature={features}" if features else "",
        }
        command = ["cargo", "+nightly", "miri", "test", "-p", "svml", "--lib", "--", *UNSAFE]
        began = time.monotonic()
        done = run(command, variables, stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        passed = re.search(r"(\d+) passed", done.stdout)
        count = int(passed[1]) if passed else 0
        met &= done.returncode == 0 and count > 0
        seen.append(
            f"{name}: {count} tests of {', '.join(UNSAFE[:2])}, products and factors, "
            f"{'no finding' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - began:.0f} s."
        )
    return record(options.results, "miri", met, seen, [rustc("nightly")])


# --- Sanitizers ---------------------------------------------------------------------------------------------------

SANITIZED = [
    ["--lib", "--", "parallel::", "linalg::", "kernel::", "landmarks::", "checkpoint::"],
    ["--test=kernels"],
    ["--test=landmarks"],
]


def sanitizers(options):
    seen, met = [], True
    for name, flag in [("AddressSanitizer", "address"), ("ThreadSanitizer", "thread")]:
        variables = {
            "CARGO_TARGET_DIR": str(TARGET / "sanitizers"),
            "RUSTFLAGS": f"-Z sanitizer={flag}",
            # A finding ends the program with this code.
            "ASAN_OPTIONS": "exitcode=66:detect_leaks=1",
            "TSAN_OPTIONS": "exitcode=66",
            # Threads are what is looked at, also where there are few cores.
            "RAYON_NUM_THREADS": "4",
        }
        began, passed, failed = time.monotonic(), 0, []
        for tests in SANITIZED:
            command = ["cargo", "+nightly", "test", "-Z", "build-std", "--target", HOST, "-p", "svml", *tests]
            done = run(command, variables, stdout=subprocess.PIPE, text=True)
            print(done.stdout)
            passed += sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
            if done.returncode != 0:
                failed.append(tests[0])
        met &= not failed and passed > 0
        seen.append(
            f"{name}: {passed} tests of linear algebra, kernels, sums over threads and checkpoints, "
            f"{'no finding' if not failed else 'FAILED: ' + ', '.join(failed)}, {time.monotonic() - began:.0f} s."
        )
    return record(options.results, "sanitizers", met, seen, [rustc("nightly")])


# --- Fuzzing that is guided by coverage ---------------------------------------------------------------------------

CORPUS = ROOT / "study/fuzz-corpus"
# The largest parsers.
FUZZED = ["csv", "libsvm", "model"]
# Longest input in bytes, and most files that one run adds to the corpus of a target.
LONGEST = 4096
MOST = 150


def fuzz(options):
    seen, met = [], True
    crate = ROOT / "study/fuzz"
    # The versions of the workspace; cargo adds what only this crate needs.
    shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")
    # No sanitizer: the readers have no unsafe code, and five times the inputs are tried.
    build = ["--fuzz-dir", crate, "--sanitizer", "none", "--target-dir", TARGET / "guided"]
    run(["cargo", "+nightly", "fuzz", "build", *build, "any"], check=True)
    for name in options.targets or FUZZED:
        known, added = CORPUS / name, CORPUS / "guided" / name
        new = TARGET / "guided" / "corpus" / name
        failures = TARGET / "guided" / "failures" / name
        for folder in (added, new, failures):
            folder.mkdir(parents=True, exist_ok=True)
        variables = {"SVML_TARGET": name}
        settings = [f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048", "-seed=1", "-print_final_stats=1"]
        settings += [f"-artifact_prefix={failures}/", f"-max_total_time={round(60 * options.minutes)}"]
        command = ["cargo", "+nightly", "fuzz", "run", *build, "any", new, added, known, "--", *settings]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(command, variables, stderr=subprocess.PIPE, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(done.stderr[-3000:])
        minutes = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60
        tried = int((re.findall(r"number_of_executed_units:\s*(\d+)", done.stderr) or [0])[-1])
        reached = re.findall(r"cov: (\d+)", done.stderr)
        kept = 0 if done.returncode else merged(build, name, known, added, new)
        met &= done.returncode == 0 and tried > 0
        found = "nothing found" if done.returncode == 0 else f"FAILED: see {failures.relative_to(TARGET)} in target"
        seen.append(
            f"{name}: {tried:,} inputs of at most {LONGEST:,} bytes in {minutes:.1f} CPU minutes; "
            f"{reached[-1] if reached else 'no'} places in the code reached, {reached[0] if reached else 'none'} of them by "
            f"the corpus before; {found}; the corpus has {kept} files from this kind of fuzzing."
        )
    return record(options.results, "fuzz", met, seen, [rustc("nightly"), said("cargo", "fuzz", "--version")])


def merged(build, name, known, added, new):
    """Adds to the corpus the small inputs that reach what its others do not, and removes none; says how many there are now."""
    chosen = TARGET / "guided" / "merged" / name
    shutil.rmtree(chosen, ignore_errors=True)
    shutil.copytree(known, chosen)
    shutil.copytree(added, chosen, dirs_exist_ok=True)
    before = {path.name for path in chosen.iterdir()}
    command = ["cargo", "+nightly", "fuzz", "run", *build, "any", chosen, new, "--", "-merge=1"]
    run([*command, f"-max_len={LONGEST}"], {"SVML_TARGET": name}, check=True, stderr=subprocess.DEVNULL)
    found = sorted((p for p in chosen.iterdir() if p.name not in before), key=lambda p: (p.stat().st_size, p.name))
    for path in found[:MOST]:
        shutil.copy(path, added / path.name[:16])
    return sum(1 for _ in added.iterdir())


# --- Dependencies -------------------------------------------------------------------------------------------------

SUPPLIED = ["licenses", "bans", "sources", "advisories"]


def supply(options):
    seen, met = [], True
    for check in SUPPLIED:
        done = run(["cargo", "deny", "--log-level", "warn", "check", check], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(done.stdout)
        if "failed to fetch advisory database" in done.stdout:
            seen.append(f"{check}: NOT checked, because the list of known vulnerabilities could not be fetched.")
            continue
        met &= done.returncode == 0
        twice = re.findall(r"found \d+ duplicate entries for crate '(.*)'", done.stdout)
        found = f"; present in several versions, because other crates require them: {', '.join(twice)}" if twice else ""
        seen.append(f"{check}: {'nothing found' if done.returncode == 0 else 'FAILED'}{found}.")
    # The list contains the folder of the sources, which must not be published.
    name = "svml.cdx"
    run(["cargo", "cyclonedx", "--manifest-path", "crates/svml-cli/Cargo.toml", "--format", "json", "--all-features",
         "--override-filename", name], check=True)  # fmt: skip
    text = (ROOT / f"crates/svml-cli/{name}.json").read_text().replace(f"file://{ROOT}/", "file://")
    for left in ROOT.glob(f"*/**/{name}.json"):
        left.unlink()
    folder = TARGET / "sbom"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(text)
    parts = json.loads(text)["components"]
    met &= len(parts) > 0 and str(ROOT) not in text
    seen.append(f"The list of the crates that the command is built from (CycloneDX, target/sbom/{name}.json) has {len(parts)} crates.")
    return record(options.results, "supply", met, seen, [said("cargo", "deny", "--version"), said("cargo", "cyclonedx", "--version")])


# --- The first build ----------------------------------------------------------------------------------------------

# Seconds from nothing to the end of the demo that a new user may have to wait.
PATIENCE = 120


def build(options):
    """The README's first command in a fresh clone, with an empty cache of crates."""
    folder = TARGET / "first-build"
    shutil.rmtree(folder, ignore_errors=True)
    run(["git", "clone", "--quiet", str(ROOT), str(folder / "svml")], check=True)
    # Settings of cargo, such as where crates come from, are those of this computer; what it has downloaded is not used.
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    (folder / "cargo").mkdir()
    for name in ("config.toml", "config"):
        if (home / name).exists():
            shutil.copy(home / name, folder / "cargo" / name)
    variables = {"CARGO_HOME": str(folder / "cargo"), "CARGO_TARGET_DIR": str(folder / "target")}
    load = os.getloadavg()[0]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    demo = ["cargo", "run", "--quiet", "--release", "--", "demo", "--out", str(folder / "demo")]
    done = run(demo, variables, cwd=folder / "svml", stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    shutil.rmtree(folder, ignore_errors=True)
    seen = [
        f"`cargo run --release -- demo` in a fresh clone, with downloads: {seconds:.0f} s, at most {PATIENCE} are allowed; "
        f"{processor_seconds:.0f} CPU seconds; load average before it {load:.1f}.",
    ]
    met = done.returncode == 0 and seconds <= PATIENCE
    return record(options.results, "build", met, seen, [said("rustc", "--version")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "study/results/reliability.jsonl")
    checks = parser.add_subparsers(required=True)
    for check in (coverage, mutants, miri, sanitizers, fuzz, supply, build):
        one = checks.add_parser(check.__name__)
        one.set_defaults(check=check)
        if check is mutants:
            one.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} [default: all]")
            one.add_argument("--every", type=int, default=8, help="of how many mutants one is tried [default: 8]")
            one.add_argument("--minutes", type=float, help="end after so long, and record what was tried")
            one.add_argument("--again", action="store_true", help="also those that survived before")
        if check is fuzz:
            one.add_argument("targets", nargs="*", help=f"[default: {' '.join(FUZZED)}]")
            one.add_argument("--minutes", type=float, default=10, help="of each target [default: 10]")
    options = parser.parse_args()
    return options.check(options)


if __name__ == "__main__":
    sys.exit(main())
