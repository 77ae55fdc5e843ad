"""The attack on an early version, repeated by its own list, item by item.

    python3 benches/attack.py --svml PATH [--python PYTHON] [--write docs/attack.md] [ITEM..]

Every item says what was done and what was seen then, does it again with the same tables and limits, and prints what is seen
now: exit codes, messages, and figures that are measured here. The command is PATH, the package that of PYTHON, which needs
scikit-learn. Some items need Linux, `unshare`, and the rights to mount or to make device nodes; where they are not to be had,
the item says so. Nothing outside of a temporary folder is written but the page. The whole takes about twelve minutes on two
cores; this program itself needs nothing but Python, and stays small, because what a child takes at most counts what its parent
had.
"""

import argparse
import datetime
import json
import os
import platform
import pty
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
COMMAND = "svml"
PYTHON = sys.executable
GB, MB = 10**9, 10**6

# Running ----------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """How a process ended."""

    code: int
    out: str
    err: str
    seconds: float
    peak: int
    processor: float

    @property
    def said(self):
        """The error, or else the last line."""
        errors = [line for line in self.err.splitlines() if line.startswith("svml: ")]
        lines = errors or self.err.splitlines()[-1:] or self.out.splitlines()[-1:] or [""]
        return lines[0].removeprefix("svml: ")

    @property
    def is_crash(self):
        """Ended by a signal, by a panic, by an allocation that failed, or for having taken too long."""
        return self.code < 0 or self.code in (101, 134, 137, 139) or "memory allocation of" in self.err

    @property
    def measured(self):
        return f"exit {self.code}, {self.seconds:.1f} s ({self.processor:.1f} s of the processor), {self.peak / MB:.0f} MB"


def run(*arguments, limit=None, timeout=120, stdin=None, stdout=None, cwd=None, environment=None):
    """A process, with its memory limited to so many bytes of address space. -9 as its code if it took too long."""

    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = subprocess.Popen(
            list(map(str, arguments)), stdin=stdin or subprocess.DEVNULL, stdout=stdout or out, stderr=err,
            preexec_fn=limited, cwd=cwd, env={**os.environ, "RUST_BACKTRACE": "0", **(environment or {})},
        )
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - started > timeout:
                child.kill()
                _, status, usage = os.wait4(child.pid, 0)
                break
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Run(child.returncode, *texts, time.perf_counter() - started, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def svml(*arguments, **options):
    return run(COMMAND, *arguments, **options)


def shell(line, **options):
    """A line for the shell, in which $SVML is the command."""
    return run("sh", "-c", line, environment={"SVML": COMMAND}, **options)


def python(code, **options):
    """A program for the package; one thread for the others' arithmetic, which reserves address space for each."""
    one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return run(PYTHON, "-c", "import numpy as np, svml\nfrom svml import *\n" + code, environment=one, **options)


def on_terminal(*arguments):
    """What the command shows on a terminal."""
    shown = bytearray()

    def reading(descriptor):
        data = os.read(descriptor, 4096)
        shown.extend(data)
        return data

    saved = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        pty.spawn([COMMAND, *map(str, arguments)], reading)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)
    return shown.decode(errors="replace")


# Tables -----------------------------------------------------------------------------------------------------------


def table(name, rows, columns, classes=("n", "p"), seed=1):
    """Numbers with a class that the first two tell apart, but for some noise; without a header."""
    rng = random.Random(seed)
    with open(name, "w") as file:
        for i in range(rows):
            x = [rng.gauss(0, 1) for _ in range(min(columns, 20))]
            more = [rng.random() for _ in range(columns - len(x))]
            inside = x[0] ** 2 + (x[1] ** 2 if columns > 1 else 0) + rng.gauss(0, 0.3) < 1.4
            label = classes[i] if i < len(classes) else classes[inside if len(classes) == 2 else i % len(classes)]
            file.write(",".join(f"{v:.3f}" for v in x + more) + f",{label}\n")
    return name


def cells(name, rows, header="a,b,class"):
    """A table of given cells."""
    Path(name).write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return name


def small(name="d.csv", rows=60, classes=("n", "p")):
    return table(name, rows, 2, classes)


def model(name="m.svml", *options):
    run_ = svml("train", small(), "-o", name, "--form", "sphere", *options)
    assert run_.code == 0, run_.err
    return name


def model_file(path, header, arrays=b"", version=3):
    """A model file with a right checksum."""
    body = b"SVML\r\n\x1a\n" + struct.pack("<IQ", version, len(header)) + header + arrays
    Path(path).write_bytes(body + struct.pack("<I", zlib.crc32(body)))
    return path


def parts(path):
    """Version, header and arrays of a model file."""
    data = Path(path).read_bytes()
    version, length = struct.unpack("<IQ", data[8:20])
    return version, json.loads(data[20 : 20 + length]), data[20 + length : -4]


# The list ---------------------------------------------------------------------------------------------------------

ITEMS = {}


@dataclass
class Item:
    name: str
    done: str
    then: str
    look: object
    reason: str


class CannotBeDone(Exception):
    """Something that this computer does not allow."""


def item(name, done, then, reason=""):
    """An item: its function yields whether what it saw is as it should be, and what that was. `reason` is why some of it is as
    it was."""

    def register(look):
        ITEMS[name] = Item(name, done, then, look, reason)
        return look

    return register


def short(text, most=170):
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def refused(run_, *words, code=None):
    """Whether it is an error of one sentence with certain words."""
    one = sum(line.startswith("svml: ") for line in run_.err.splitlines()) == 1
    right = run_.code == code if code is not None else run_.code in (1, 2, 3)
    return one and right and all(word in run_.said for word in words)


def quoted(run_, most=170):
    return f"exit {run_.code}: \"{short(run_.said, most)}\""


def without(name, why):
    if not shutil.which(name):
        raise CannotBeDone(why)


@item("H1", "10 rows x 100,000 columns: train, show, plot --kind map and --kind metric; the same with 5,000 and 12,000 columns",
      "show aborted (80 GB asked for); with 5,000 columns 32 s and 722 MB, the map 69 s, the metric with 12,000 81 s and 2.3 GB")
def h1():
    for columns in (100_000, 12_000, 5_000):
        trained = svml("train", table("w.csv", 10, columns), "-o", "w.svml", limit=6 * GB)
        yield trained.code == 0, f"{columns} columns: train {trained.measured}"
        for what in (["show", "w.svml"], ["plot", "w.svml", "w.csv", "-o", "w.svg"],
                     ["plot", "w.svml", "--kind", "metric", "-o", "w.svg"]):
            r = svml(*what, limit=6 * GB)
            label = what[0] if what[0] == "show" else "map" if "metric" not in what else "metric"
            yield r.code == 0 and r.seconds < 30 and r.peak < GB, f"{label} {r.measured}"
    table("w.csv", 10, 100_000)
    svml("train", "w.csv", "-o", "w.svml")
    for limit in (500 * MB, 400 * MB, 300 * MB, 250 * MB, 200 * MB, 100 * MB):
        r = svml("plot", "w.svml", "w.csv", "-o", "w.svg", limit=limit)
        yield not r.is_crash, f"the map of 100,000 columns with {limit / MB:.0f} MB of address space: {quoted(r, 100) if r.code else r.measured}"


@item("H1b", "the same table of 100,000 columns: --form full, --form rank=50000, --paper, --method nca, lmnn, itml, with 6 GB; 10 x 5,000 --form full",
      "all six aborted, exit 134; 6.6 GB with 5,000 columns when killed at 110 s")
def h1b():
    table("w.csv", 10, 100_000)
    said = set()
    for options in (["--form", "full"], ["--form", "rank=50000"], ["--paper"], *(["--method", m] for m in ("nca", "lmnn", "itml"))):
        r = svml("train", "w.csv", "-o", "m", *options, limit=6 * GB)
        said.add(short(r.said.partition(";")[0], 150))
        yield refused(r, code=1), f"{' '.join(options)}: exit {r.code} in {r.seconds:.1f} s"
    yield True, f"such as \"{sorted(said)[0]}\""
    r = svml("train", table("w.csv", 10, 5_000), "-o", "m", "--form", "full", "--time-limit", "20")
    yield r.code == 0 and r.peak < 4 * GB, f"10 x 5,000, --form full --time-limit 20: {r.measured}"


@item("H1c", "Python with 6 GiB of address space, X of 20 x 40,000: SVMLClassifier(form=\"sphere\").fit(X, y).components_; LMNN, NCA, ITML, form=\"full\"",
      "the interpreter was killed (12.8 GB asked for)")
def h1c():
    for what in ('SVMLClassifier(form="sphere").fit(X, y).components_', "LMNN().fit(X, y)", "NCA().fit(X, y)", "ITML().fit(X, y)",
                 'SVMLClassifier(form="full").fit(X, y)'):
        r = python(f"X = np.random.default_rng(0).normal(size=(20, 40000)); y = np.arange(20) % 2\ntry:\n    {what}; print('done')\nexcept MemoryError as e:\n    print('MemoryError', e)", limit=6 << 30)
        yield r.code == 0 and "MemoryError" in r.out, f"{what}: exit {r.code}, {short(r.out, 60)}"


@item("H2", "5,000 x 20 with 500,000 kB of address space; Python with 1.1 GB, 8,000 x 20; 2 GiB of table on standard input with 3 GB",
      "abort with a backtrace; the whole interpreter died")
def h2():
    table("b.csv", 5000, 20)
    for limit in (500_000, 300_000, 200_000, 150_000):
        r = svml("train", "b.csv", "-o", "m", limit=limit * 1024)
        yield r.code in (0, 1) and not r.is_crash, f"{limit} kB: {r.measured}" + (f", \"{short(r.said, 110)}\"" if r.code else "")
    r = python("X = np.random.default_rng(0).normal(size=(8000, 20)); y = X[:, 0] > 0\ntry:\n    SVMLClassifier(time_limit=20).fit(X, y); print('a model')\nexcept MemoryError as e:\n    print('MemoryError', e)", limit=1_100 * MB)
    yield r.code == 0, f"Python: exit {r.code}, {short(r.out or r.said, 110)}"
    r = shell("yes 1,2,a | head -c 2147483648 | \"$SVML\" train - -o m", limit=3 * GB, timeout=200)
    yield not r.is_crash and r.code != 0, f"2 GiB on standard input: {quoted(r, 110)}, {r.seconds:.0f} s"


@item("H3", "150 pairs of `unshare --pid --fork svml train d.csv -o a.svml` and `-o b.svml` at the same time in one folder, where both are process 1; a leftover .svml.1.0.tmp",
      "36 of 150 pairs lost both models; one leftover was enough to lose a model")
def h3():
    without("unshare", "there is no unshare")
    small()
    if shell("unshare --pid --fork true").code:
        raise CannotBeDone("unshare may not make a space of process ids here")
    pairs, lost = 60, 0
    line = "unshare --pid --fork \"$SVML\" train d.csv -o {}.svml --form sphere"
    for _ in range(pairs):
        for name in "ab":
            Path(f"{name}.svml").unlink(missing_ok=True)
        both = shell(f"{line.format('a')} & {line.format('b')}; code=$?; wait $! || code=1; exit $code")
        lost += not (both.code == 0 and Path("a.svml").exists() and Path("b.svml").exists())
    yield lost == 0, f"{lost} of {pairs} pairs lost a model"
    Path(".svml.1.0.tmp").touch()
    r = shell(line.format("c"))
    yield r.code == 0 and Path("c.svml").exists(), f"with the leftover: exit {r.code}"


@item("H4", "output over input: train d.csv -o d.csv; --trace d.csv; svm-train st st; predict m x.csv -o m; -o x.csv; -o m --trace m",
      "exit 0, and the table or the model was gone")
def h4():
    model()
    shutil.copy("d.csv", "x.csv")
    Path("st").write_text("1 1:1 2:2\n0 1:2 2:1\n1 1:1 2:3\n0 1:3 2:1\n")
    before = {name: Path(name).read_bytes() for name in ("d.csv", "x.csv", "m.svml", "st")}
    codes = []
    for arguments in ("train d.csv -o d.csv", "train d.csv -o n.svml --trace d.csv", "svm-train st st", "predict m.svml x.csv -o m.svml",
                      "predict m.svml x.csv -o x.csv", "train d.csv -o n.svml --trace n.svml"):
        r = svml(*arguments.split())
        codes.append(r.code)
        yield refused(r, code=2), ""
    kept = all(Path(name).read_bytes() == data for name, data in before.items())
    yield kept and not Path("n.svml").exists(), f"exit {', '.join(map(str, codes))}; files {'as they were' if kept else 'lost'}; \"{short(r.said, 90)}\""


@item("H5", "Python's save at a copy of /dev/null (mknod mynull c 1 3), at a pipe and at a link",
      "the device was replaced by a file, the link instead of its target")
def h5():
    try:
        os.mknod("mynull", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        yield True, "a device node cannot be made here"
    os.mkfifo("pipe")
    os.symlink("target", "link")
    Path("target").write_text("old")
    r = python(
        "import os, threading\nX = np.random.default_rng(0).normal(size=(40, 2)); m = SVMLClassifier(form='sphere').fit(X, X[:, 0] > 0)\n"
        "if os.path.exists('mynull'): m.save('mynull')\n"
        "got = []\nt = threading.Thread(target=lambda: got.append(len(open('pipe', 'rb').read()))); t.start(); m.save('pipe'); t.join()\n"
        "m.save('link'); print(got[0], svml.load('target') is not None)")
    if Path("mynull").exists():
        kept = stat.S_ISCHR(os.stat("mynull").st_mode)
        yield kept, "the device is a device" if kept else "the device is a file"
    fifo, link = stat.S_ISFIFO(os.stat("pipe").st_mode), Path("link").is_symlink()
    yield r.code == 0 and fifo and link, f"the pipe is {'a pipe' if fifo else 'gone'}, the link {'a link' if link else 'gone'}; bytes through the pipe, and whether the target is a model: {short(r.out)}"


@item("H6", "a quote that is not closed: 41 rows, row 30 is `1,2,\"p`, and one in another column", "exit 0, 11 rows swallowed, a third class of many lines")
def h6():
    for bad in ('1,2,"p', '1,"2,p'):
        rows = [["1.5", i % 7, "np"[i % 2]] for i in range(41)]
        rows[29] = bad.split(",")
        r = svml("train", cells("q.csv", rows, "a,b,class"), "-o", "m")
        yield refused(r, "line 31", code=3), quoted(r)


@item("H7", "20,000 x 50, the default: the way out that the message names", "refused, and the option that the message named did not exist")
def h7():
    table("b.csv", 20_000, 50)
    r = svml("train", "b.csv", "-o", "m", "--memory-limit", "100MB")
    yield refused(r, "--memory-limit", code=1), quoted(r, 260)
    r = svml("train", "b.csv", "-o", "m", "--exact", "--memory-limit", "2GB")
    yield refused(r, "--memory-limit", "--landmarks", code=1), f"--exact: {quoted(r, 300)}"
    yield True, "without a limit it is fitted: see the table of memory"


@item("H7b", "15,000 x 5 with --threads 1, 2, 4, 5, 8 and 8 GiB (now --exact, since there are landmarks)", "accepted with 1 and 2 threads, refused with more")
def h7b():
    table("b.csv", 15_000, 5)
    for threads in (1, 2, 4, 5, 8):
        r = svml("train", "b.csv", "-o", "m", "--exact", "--memory-limit", "8GiB", "--threads", threads, "--time-limit", "3")
        # Time may end before there is a result, memory must not.
        yield "memory" not in r.said and "limit of" not in r.said, f"{threads}: exit {r.code}" + (f" ({short(r.said, 50)})" if r.code else "")


@item("M1", "--time-limit 2e19 and 1e300; Python's time_limit=1e300", "panic, exit 101; a plain ValueError")
def m1():
    small()
    for limit in ("2e19", "1e300"):
        r = svml("train", "d.csv", "-o", "m", "--form", "sphere", "--time-limit", limit)
        yield r.code == 0, f"{limit}: exit {r.code}"
    r = python("X = np.random.default_rng(0).normal(size=(40, 2)); SVMLClassifier(form='sphere', time_limit=1e300).fit(X, X[:, 0] > 0)")
    yield r.code == 0, f"Python: exit {r.code}"


@item("M2", "show of 5 GB of zeros, of /dev/zero, of standard input from it; headers with 60 MB of \"bias\" and 90 MB of \"classes\"",
      "5.2 GB and 28 s; grew until memory ended; 1.24 GB; an error message of 120 MB")
def m2():
    with open("z", "wb") as file:
        file.truncate(5 << 30)
    for name in ("z", "/dev/zero", "-"):
        with open("/dev/zero", "rb") as zeros:
            r = svml("show", name, stdin=zeros, limit=6 * GB)
        yield refused(r, code=3) and r.peak < 100 * MB, f"{name}: {r.measured}"
    _, header, arrays = parts(model())
    for name, value, count in (("bias", "0", 30_000_000), ("classes", '""', 30_000_000)):
        text = json.dumps({**header, name: "@"}).replace('"@"', "[" + ",".join([value] * count) + "]")
        r = svml("show", model_file("l.svml", text.encode(), arrays), limit=6 * GB)
        size = os.path.getsize("l.svml")
        yield refused(r, code=3) and len(r.err) < 1000 and r.peak < 64 * MB + 4 * size, f"{size / MB:.0f} MB of {name}: {r.measured}, a message of {len(r.err)} bytes"


@item("M3", "columns of numbers that become categories: `1,5` and `1.5` mixed, quoted \"1,5\", \"1,234\", $12, 12%, dates, an identifier",
      "exit 0, ordered as text, not a word")
def m3():
    rng = random.Random(1)
    cases = {
        "1,5 and 1.5": (";", lambda i: f"{rng.random() * 9:.1f}".replace(".", ",." [i % 2])),
        "quoted 1,5": (",", lambda i: '"' + f"{rng.random() * 9:.1f}".replace(".", ",") + '"'),
        "1,234": (",", lambda i: f'"{i % 9 + 1},{rng.randrange(1000):03}"'),
        "$12": (",", lambda i: f"${rng.randrange(40)}"),
        "12%": (",", lambda i: f"{rng.randrange(40)}%"),
        "dates": (",", lambda i: f"2026-{i % 12 + 1:02}-{i % 28 + 1:02}"),
        "identifier": (",", lambda i: f"K{i * 7919 % 100_003}x"),
    }
    for name, (mark, cell) in cases.items():
        rows = "".join(f"{cell(i)}{mark}{i % 7}{mark}{'np'[i % 2]}\n" for i in range(200))
        Path("t.csv").write_text(f"a{mark}b{mark}class\n{rows}")
        r = svml("train", "t.csv", "-o", "m", "--form", "sphere")
        warning = next((line for line in r.err.splitlines() if line.startswith("warning") and re.search(r"\ba\b", line)), "no warning")
        yield warning != "no warning", f"{name}: \"{short(warning, 70)}\""


@item("M4", "a semicolon table with 970 .. 999, then 1,000, 1,001", "read as 999 and then 1.000, not a word")
def m4():
    rows = "".join(f"{f'{v:,}'};{v % 7};{'np'[v % 2]}\n" for v in range(970, 1030))
    Path("t.csv").write_text("a;b;class\n" + rows)
    r = svml("train", "t.csv", "-o", "m", "--form", "sphere")
    warning = next((line for line in r.err.splitlines() if "thousands" in line), "no warning")
    yield warning != "no warning", f"\"{short(warning)}\""


@item("M5", "a cell `\"1\"2`", "silently the number 12")
def m5():
    r = svml("train", cells("t.csv", [['"1"2', 1, "n"]] + [[i, i % 5, "np"[i % 2]] for i in range(40)]), "-o", "m")
    yield refused(r, "line 2", code=3), quoted(r)


@item("M6", "-o into a folder that cannot be written to and into a read-only file system", "found out after the training, the model was lost")
def m6():
    table("b.csv", 5000, 20)
    r = svml("train", "b.csv", "-o", "/proc/self/m.svml")
    yield refused(r, code=1) and r.seconds < 0.3, f"/proc: {quoted(r, 90)}, {r.seconds:.2f} s"
    os.mkdir("disk")
    r = shell("unshare --map-root-user --mount sh -c 'mount -t tmpfs -o ro none disk || exit 99; \"$SVML\" train b.csv -o disk/m.svml'")
    if r.code == 99 or "unshare" in r.err:
        raise CannotBeDone("a read-only disk cannot be mounted here")
    yield refused(r, code=1) and r.seconds < 0.5, f"read-only disk: {quoted(r, 90)}, {r.seconds:.2f} s"


@item("M7", "--missing drop and --missing impute on 100 rows of which 60 have a gap", "\"40 rows\", \"100 rows\": nothing else")
def m7():
    cells("t.csv", [["?" if i % 5 < 3 else i % 11, i % 7, "np"[i % 2]] for i in range(100)])
    for how in ("drop", "impute"):
        r = svml("train", "t.csv", "-o", "m", "--missing", how, "--form", "sphere")
        line = next((line for line in r.err.splitlines() if "missing" in line), "nothing")
        yield "60" in line and "a (" in line, f"{how}: \"{short(line)}\""


@item("M8", "options that a method does not have: euclidean --form diagonal, itml --form rank=1, lmnn --form sphere, nca --form diagonal, pca --form full, euclidean --paper",
      "exit 0, the option was ignored")
def m8():
    small()
    codes = []
    for options in ("euclidean --form diagonal", "itml --form rank=1", "lmnn --form sphere", "nca --form diagonal", "pca --form full", "euclidean --paper"):
        r = svml("train", "d.csv", "-o", "m", "--method", *options.split())
        codes.append(r.code)
        yield refused(r, code=2), ""
    yield True, f"exit {', '.join(map(str, codes))}; \"{short(r.said, 110)}\""


@item("M9", "breast cancer, moons and a circle with columns x 2, x 10, + 1, in reverse order, as float32, and with classes swapped: share of the labels of the test half that change",
      "0 to 12 %; another seed changes as much (0.4 to 11 %)",
      "folds are assigned by a hash of the rows as they are, so that other units are like another seed; README.md and docs/math.md say so")
def m9():
    r = python("""
from sklearn.datasets import load_breast_cancer, make_moons
rng = np.random.default_rng(0)
c = rng.normal(size=(400, 4))
sets = {'breast': load_breast_cancer(return_X_y=True), 'moons': make_moons(400, noise=0.25, random_state=0), 'circle': (c, ((c[:, :2] ** 2).sum(1) + 0.3 * rng.normal(size=400) > 1.4).astype(int))}
for name, (X, y) in sets.items():
    A, B, a = X[::2], X[1::2], y[::2]
    p = SVMLClassifier().fit(A, a).predict(B)
    changes = {'x 2': (lambda X: 2 * X, False), 'x 10': (lambda X: 10 * X, False), '+ 1': (lambda X: X + 1, False), 'reversed': (lambda X: X[:, ::-1], False), 'float32': (lambda X: X.astype('f4'), False), 'swapped': (lambda X: X, True)}
    out = []
    for what, (f, swap) in changes.items():
        q = SVMLClassifier().fit(f(A), 1 - a if swap else a).predict(f(B))
        out.append(f'{what} {100 * np.mean(p != (1 - q if swap else q)):.1f}')
    other = SVMLClassifier(random_state=1).fit(A, a).predict(B)
    print(f'{name}: ' + ', '.join(out) + f'; another seed {100 * np.mean(p != other):.1f}')
""")
    for line in r.out.splitlines():
        changed = [float(v) for v in re.findall(r"(\d+\.\d)(?=[,;])", line.split("another")[0])]
        yield not any(changed), f"{line} (percent)"
    if r.code:
        yield False, quoted(r)


@item("M10", "--time-limit 5 with 10 x 5,000: lmnn, itml, nca, --form full; 20,000 x 50 with --time-limit 20, hold_out or one thread",
      "30.1 s, 29.6 s, -, 12.2 s; with 20,000 rows nothing was kept, exit 1")
def m10():
    table("w.csv", 10, 5000)
    for options in (["--method", "lmnn"], ["--method", "itml"], ["--method", "nca"], ["--form", "full"]):
        r = svml("train", "w.csv", "-o", "m", "--time-limit", "5", *options)
        yield r.code == 0 and r.seconds < 7.5, f"{options[1]}: {r.measured}"
    yield True, "20,000 rows: see the table of memory"


@item("M11", "sample_weight=np.full(750, 1e-4) on a circle: test accuracy", "0.484 instead of 0.968, one class for all rows")
def m11():
    r = python("""
rng = np.random.default_rng(0); X = rng.normal(size=(1500, 2)); y = (X ** 2).sum(1) > 1.386
for w in (1.0, 1e-4, 1e-6, 1e-9):
    m = SVMLClassifier().fit(X[:750], y[:750], sample_weight=np.full(750, w)); print(w, round(m.score(X[750:], y[750:]), 3))
""")
    values = [float(line.split()[1]) for line in r.out.splitlines()]
    yield len(values) == 4 and min(values) > 0.95, "accuracy by weight: " + "; ".join(r.out.splitlines())


@item("M12", "a class named with terminal escape sequences: show, evaluate and train on a terminal", "printed raw, and the terminal obeys")
def m12():
    small("t.csv", classes=("n", "\x1b]0;pwned\x07p"))
    svml("train", "t.csv", "-o", "m")
    for arguments in (["show", "m"], ["evaluate", "m", "t.csv"], ["train", "t.csv", "-o", "m2", "--form", "sphere"]):
        shown = on_terminal(*arguments)
        obeyed = "\x1b]0;pwned" in shown
        yield bool(shown) and "pwned" in shown and not obeyed, f"{arguments[0]}: {'obeyed' if obeyed else 'replaced'}"


@item("M13", "a finished model is at -o, and a new run is stopped by Ctrl-C", "the good model was replaced by that of step 0")
def m13():
    model()
    before = Path("m.svml").read_bytes()
    table("b.csv", 9000, 10)
    child = subprocess.Popen([COMMAND, "train", "b.csv", "-o", "m.svml", "--exact"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in child.stderr:
        if "step " in line:
            child.send_signal(signal.SIGINT)
            break
    said = child.stderr.read().splitlines()[-1:]
    code = child.wait()
    kept = Path("m.svml").read_bytes() == before
    yield code == 130 and kept, f"exit {code}, the old model is {'there' if kept else 'gone'}: \"{short(' '.join(said))}\""


@item("L1", "temporary files that kill -9 leaves", "they stayed for ever: 37 files, 77 MB after 60 kills")
def l1():
    small()
    left = Path(".svml.0123456789abcdef.tmp")
    left.write_bytes(b"0" * 1000)
    os.utime(left, (time.time() - 120,) * 2)
    r = svml("train", "d.csv", "-o", "m", "--form", "sphere")
    yield r.code == 0 and not left.exists(), f"one of two minutes ago is {'still there' if left.exists() else 'gone'} after the next write; kills: gate 10"


@item("L2", "Python: class_weight={0: nan}, n_jobs=\"x\", 1.5, True, 65536, 10**9, verbose=\"x\"", "a JSON parser's message, a bare TypeError, accepted, minutes without an answer")
def l2():
    code = """
from sklearn.exceptions import *
X = np.random.default_rng(0).normal(size=(40, 2)); y = (X[:, 0] > 0).astype(int)
for given in [dict(class_weight={0: float('nan')}), dict(n_jobs='x'), dict(n_jobs=1.5), dict(n_jobs=True), dict(n_jobs=65536), dict(n_jobs=10**9), dict(verbose='x')]:
    try:
        SVMLClassifier(form='sphere', **given).fit(X, y); print('accepted', given)
    except Exception as e:
        print(type(e).__name__, given)
"""
    # Not for long: where they are accepted, tens of thousands of threads are started.
    r = python(code, timeout=20)
    lines = r.out.splitlines()
    yield r.code == 0 and len(lines) == 7 and all(line.startswith("InvalidParameterError") for line in lines), f"{short('; '.join(lines), 330)}; {r.seconds:.1f} s in all"


@item("L3", "--form nonsense", "the message left out `auto`, the default")
def l3():
    r = svml("train", small(), "-o", "m", "--form", "nonsense")
    yield r.code == 2 and "auto" in r.err, f"exit {r.code}: \"{short(r.err, 150)}\""


@item("L4", "numbers out of range: 1e308, 1e309, 400 nines, svm-train -c 1e300", "printed with 300 digits; 1e309 and 400 nines were called \"inf\"")
def l4():
    for value in ("1e308", "1e309", "9" * 400):
        r = svml("train", cells("t.csv", [[value, 1, "n"]] + [[i, i % 5, "np"[i % 2]] for i in range(40)]), "-o", "m")
        explained = "inf " not in r.said or "counts as infinite" in r.said
        yield refused(r, code=3) and explained and not re.search(r"\d{40}", r.said), quoted(r, 170)
    Path("st").write_text("1 1:1\n0 1:2\n1 1:3\n0 1:4\n")
    r = svml("svm-train", "-c", "1e300", "st", "m")
    yield refused(r) and not re.search(r"\d{40}", r.said), quoted(r, 110)


@item("L5", "predict --probabilities with a model of the first format", "the message named the data")
def l5():
    shutil.copy(REPOSITORY / "crates/svml/tests/data/model_v1.svml", "old.svml")
    Path("new.csv").write_text("colour,age,size\nred,40,1.0\n")
    r = svml("predict", "old.svml", "new.csv", "--probabilities")
    yield refused(r, "old.svml", code=3), quoted(r)


@item("L6", "41 rows with the LIBSVM index 100000", "99,998 warnings, 5 MB on standard error, a model of 41.7 MB")
def l6():
    rng = random.Random(1)
    Path("t").write_text("".join(f"{i % 2} 1:{rng.gauss(i % 2, 1):.3f} 2:{rng.gauss(0, 1):.3f} 100000:1\n" for i in range(41)))
    r = svml("train", "t", "-o", "m")
    size = os.path.getsize("m") / MB
    yield r.code == 0 and len(r.err) < 5000, f"{len(r.err)} bytes on standard error, {r.seconds:.1f} s"
    yield size < 10, f"a model of {size:.1f} MB"


@item("L7", "a table that has both 0 and -0, in two orders of rows", "bytes of support vectors differed in the sign of zero")
def l7():
    rng = random.Random(3)
    rows = [[("0", "-0", f"{rng.gauss(0, 1):.2f}")[i % 3], f"{rng.gauss(0, 1):.2f}", "np"[i % 7 > 3]] for i in range(60)]
    rows += [["-0" if row[0] == "0" else "0" if row[0] == "-0" else row[0], *row[1:]] for row in rows]
    arrays = []
    for order in (rows, rows[::-1]):
        svml("train", cells("t.csv", order), "-o", "m", "--form", "diagonal")
        arrays.append(parts("m")[2])
    minus = struct.pack("<d", -0.0)
    words = [[a[k : k + 8] for k in range(0, len(a), 8)] for a in arrays]
    yield arrays[0] == arrays[1], f"the arrays of both models are {'the same' if arrays[0] == arrays[1] else 'different'} ({sum(w == minus for w in words[0])} minus zeros)"


@item("L8", "60 signals in the first 30 ms; SIGHUP during a fit", "36 ended without a word, 3 by the signal itself; SIGHUP left nothing")
def l8():
    table("b.csv", 9000, 10)
    rng, ends, silent = random.Random(1), {}, 0
    for _ in range(60):
        child = subprocess.Popen([COMMAND, "train", "b.csv", "-o", "m"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        time.sleep(0.03 * rng.random())
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
        code = child.wait()
        ends[code] = ends.get(code, 0) + 1
        silent += "interrupted" not in said
    # Before the program has begun, nobody listens: the first milliseconds are the system's.
    yield silent <= 6, f"{silent} of 60 without a word; exit codes {', '.join(f'{code}: {count}' for code, count in sorted(ends.items()))} (the system ends a program that it has only just begun to load)"
    child = subprocess.Popen([COMMAND, "train", "b.csv", "-o", "h", "--exact"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in child.stderr:
        if "step " in line:
            child.send_signal(signal.SIGHUP)
            break
    child.stderr.read()
    code = child.wait()
    yield code == 130 and Path("h").exists(), f"SIGHUP: exit {code}, a model is {'there' if Path('h').exists() else 'not there'}"


@item("L9", "LIBSVM files with qid:, with text as a label, with several labels", "taken for a table; an error about class '2:-0.051'")
def l9():
    for name, line in (("qid", "{} qid:1 1:{} 2:0.5"), ("text", "c{} 1:{} 2:0.5"), ("several", "{},3 1:{} 2:0.5")):
        Path("t").write_text("".join(line.format(i % 2, i % 7) + "\n" for i in range(40)))
        r = svml("train", "t", "-o", "m")
        yield refused(r, "line 1", code=3), f"{name}: {quoted(r, 110)}"


@item("L10", "advice that did not help: a|b|y; text in a number column of new rows; --target -1; 2 to 4 rows with --method euclidean",
      "\"give the delimiter\", which cannot be a bar; \"blank the cell\", which is refused; \"use '-- -1'\"; \"folds = 5 is not allowed\", for which there was no option")
def l10():
    Path("t.csv").write_text("a|b|y\n" + "".join(f"{i}|{i % 3}|{'np'[i % 2]}\n" for i in range(30)))
    r = svml("train", "t.csv", "-o", "m")
    yield refused(r, "replace", code=3), f"a bar: {quoted(r, 220)}"
    model()
    Path("n.csv").write_text("1,oops\n")
    r = svml("predict", "m.svml", "n.csv")
    yield refused(r, code=3) and "blank" not in r.said, f"text: {quoted(r, 110)}"
    r = svml("train", "d.csv", "-o", "m", "--target", "-1")
    yield refused(r, "-1", code=3), f"--target -1: {quoted(r, 90)}"
    r = svml("train", cells("t.csv", [[1, 2, "n"], [2, 1, "p"], [3, 1, "p"]]), "-o", "m", "--method", "euclidean", "--set", "folds=5")
    yield refused(r, code=3), f"3 rows, 5 folds: {quoted(r, 150)}"
    r = svml("train", "t.csv", "-o", "m", "--method", "euclidean")
    yield r.code == 0 or refused(r, code=3), f"3 rows: exit {r.code}"


@item("L11", "-o at a link to nothing, at a loop of links, at a file of mode 444", "replaced by the file")
def l11():
    model()
    os.symlink("nothing", "dangling")
    os.symlink("loop", "loop")
    os.chmod("m.svml", 0o444)
    before = Path("m.svml").read_bytes()
    for name in ("dangling", "loop", "m.svml"):
        r = svml("train", "d.csv", "-o", name)
        yield refused(r, code=1), quoted(r, 90)
    yield Path("m.svml").read_bytes() == before and Path("dangling").is_symlink(), "all are as they were" if Path("dangling").is_symlink() else "a link was replaced"


@item("L12", "names of classes of a million characters and with line ends", "printed in full; lists were broken")
def l12():
    small("t.csv", classes=("n" * 1_000_000, '"a\nb"'))
    r = svml("train", "t.csv", "-o", "m", "--form", "sphere")
    shown = svml("show", "m")
    yield r.code == 0 and len(r.err + r.out) < 5000 and len(shown.out) < 5000, f"train prints {len(r.err + r.out)} characters, show {len(shown.out)}"
    yield "a\nb" not in shown.out + r.err, "line ends in names are " + ("printed" if "a\nb" in shown.out + r.err else "replaced")


@item("L13", "get_mahalanobis_matrix() and components_ of features below 1e-155", "inf and nan, with a RuntimeWarning of numpy")
def l13():
    r = python("""
X = np.random.default_rng(0).normal(size=(60, 2)); y = X[:, 0] > 0
for size in (1e-160, 1e-310):
    m = SVMLClassifier(form='diagonal').fit(X * size, y)
    for what in ('get_mahalanobis_matrix()', 'components_'):
        try:
            v = eval('m.' + what); print(size, what, 'finite' if np.isfinite(v).all() else 'not finite')
        except Exception as e:
            print(size, what, type(e).__name__)
    print(np.isfinite(m.predict_proba(X * size)).all())
""")
    yield r.code == 0 and "not finite" not in r.out and "False" not in r.out and "RuntimeWarning" not in r.err, short("; ".join(r.out.splitlines()), 250)


@item("L14", "a refit that fails: n_features_in_ of the model that is kept", "those of the new data: \"X has 3 features, but is expecting 20\"")
def l14():
    r = python("""
X = np.random.default_rng(0).normal(size=(60, 3)); m = SVMLClassifier(form='sphere').fit(X, X[:, 0] > 0)
try:
    m.fit(np.ones((10, 20)), np.zeros(10))
except Exception as e:
    print(type(e).__name__)
print(m.n_features_in_, len(m.predict(X)))
""")
    yield r.code == 0 and r.out.split()[-2:] == ["3", "60"], short(r.out or r.said)


@item("L15a", "evaluate on a class that the model never saw", "counted as wrong, log loss 35 for it, not a word")
def l15a():
    model()
    rows = Path("d.csv").read_text()
    Path("e.csv").write_text(rows + "1,2,never\n3,4,never\n")
    r = svml("evaluate", "m.svml", "e.csv")
    note = next((line for line in r.err.splitlines() if "never" in line), "nothing is said")
    yield r.code == 0 and "never" in note, f"\"{short(note)}\""


@item("L15b", "Python: save of an unfitted estimator; svml.load(b\"path\")", "AttributeError; a message that bytes are accepted, and a refusal")
def l15b():
    r = python("""
try:
    SVMLClassifier().save('x')
except Exception as e:
    print(type(e).__name__)
X = np.random.default_rng(0).normal(size=(40, 2)); SVMLClassifier(form='sphere').fit(X, X[:, 0] > 0).save('m'); print(type(svml.load(b'm')).__name__)
""")
    yield r.out.split() == ["NotFittedError", "SVMLClassifier"], short(r.out or r.said)


@item("L15c", "strings of digits and truth values as classes, saved and loaded in Python", "come back as integers and texts (documented)",
      "the file has names of classes as a table has them, where 1 and \"1\" are the same; docs/python.md says so")
def l15c():
    r = python("""
X = np.random.default_rng(0).normal(size=(40, 2))
for y in (np.where(X[:, 0] > 0, '1', '0'), X[:, 0] > 0):
    m = SVMLClassifier(form='sphere').fit(X, y); m.save('m'); print(m.classes_.dtype.kind, svml.load('m').classes_.dtype.kind)
""")
    kinds = r.out.split()
    yield len(kinds) == 4 and kinds[0] == kinds[1] and kinds[2] == kinds[3], f"kinds of numpy before and after: {', '.join(kinds)}"


@item("L15d", "classes named NA and None", "cannot be kept",
      "in a table they are words for a missing value, and a model that learned a class of rows without one would be worse; in Python they are kept")
def l15d():
    r = svml("train", small("t.csv", classes=("NA", "x")), "-o", "m")
    yield r.code == 0, quoted(r)
    yield refused(r, "cannot be the name of a class"), "the message says why"
    p = python("X = np.random.default_rng(0).normal(size=(40, 2)); m = SVMLClassifier(form='sphere').fit(X, np.where(X[:, 0] > 0, 'NA', 'None')); m.save('m'); print(*svml.load('m').predict(X[:2]))")
    yield p.code == 0, f"Python: {short(p.out or p.said, 100)}"


@item("L15e", "a name of a file that is not UTF-8", "refused")
def l15e():
    small()
    os.link(b"d.csv", b"caf\xe9.csv")
    r = shell("\"$SVML\" train \"$(printf 'caf\\351.csv')\" -o \"$(printf 'm\\351.svml')\" --form sphere")
    there = any(name.startswith(b"m\xe9") for name in os.listdir(b"."))
    yield r.code == 0 and there, f"exit {r.code}" + ("" if r.code == 0 else f": \"{short(r.err, 110)}\"")


@item("L15f", "standard output closed (>&-): show, predict, evaluate", "exit 0, nothing said")
def l15f():
    model()
    for arguments in ("show m.svml", "predict m.svml d.csv", "evaluate m.svml d.csv"):
        r = shell(f"exec \"$SVML\" {arguments} >&-")
        yield refused(r, "standard output", code=1), f"{arguments.split()[0]}: {quoted(r, 90)}"


@item("L15g", "-o - --trace -", "both in one stream")
def l15g():
    r = svml("train", small(), "-o", "-", "--trace", "-")
    yield refused(r, code=2) and not r.out, quoted(r)


@item("L15h", "a table of one row", "\"1 rows\"")
def l15h():
    r = svml("train", cells("t.csv", [[1, 2, "n"]]), "-o", "m")
    line = r.err.splitlines()[0]
    yield "1 row," in line, f"\"{short(line)}\""


@item("L15i", "5,000 damaged headers, the checksum repaired: exit codes of show", "17 gave exit 2 instead of 3")
def l15i():
    version, header, arrays = parts(model())
    rng, count, codes, crashes, slowest = random.Random(1), 1000, {}, 0, 0.0

    def places(value, at=()):
        yield at
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ():
            yield from places(inner, (*at, key))

    every = [at for at in places(header) if at]
    odd = [None, -1, 0, 1e308, 1e-320, "", "full", "rank=0", "rank=99", [], {}, True, "x" * 50, 2**53, -0.5, [0], {"a": 1}]
    for _ in range(count):
        damaged = json.loads(json.dumps(header))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at, inner = rng.choice(every), damaged
            try:
                for key in at[:-1]:
                    inner = inner[key]
                inner[at[-1]] = rng.choice(odd)
            except (KeyError, IndexError, TypeError):
                pass
        r = svml("show", model_file("x.svml", json.dumps(damaged).encode(), arrays, version), limit=GB)
        codes[r.code] = codes.get(r.code, 0) + 1
        crashes += r.is_crash
        slowest = max(slowest, r.seconds)
    yield set(codes) <= {0, 3} and not crashes, f"{count} others of them: exit codes {', '.join(f'{c}: {n}' for c, n in sorted(codes.items()))}; slowest {slowest:.2f} s"


# What held up -------------------------------------------------------------------------------------------------------

# What is looked at in every run, or by `study reliability`, is not done here again.
HELD = [
    ("Damaged model files", "24,000 mutants: no crash", "gate 7 (`study reliability fuzz model`, `fuzz uses`, `fuzz export`), gate 8; L15i above"),
    ("Any table", "6,000 random tables x up to 11 commands: 3 crashes, all H1", "gate 7 (`fuzz csv`, `fuzz libsvm`, `fuzz npy`, `fuzz rows`), gate 15; the list of odd tables: T1 below"),
    ("Old file or new file", "kills, full disks, `ulimit -f`: the old or the new file", "gates 10 and 12 (`study reliability kills`, `writes`)"),
    ("Interrupts", "184 signals: exit 130, a model or a word", "gate 14 (`study reliability interrupts`); L8 and M13 above"),
    ("Time limit", "0.5 to 15 s at 1,000 to 10,000 rows: exceeded by 1 s at most", "T2 below"),
    ("Pipes", "closed pipes and streams: no crash, no partial file", "gate 12 (`study reliability writes`); L15f above"),
    ("Same bits", "threads and orders of rows: 234 of 234", "gate 9 (`study reliability determinism`)"),
    ("Probabilities agree", "15,602 fitted sets: no exception", "crates/svml/tests/probabilities.rs, in every run"),
    ("LIBSVM", "12 exports read by svm-predict", "gate 4, in every run; `fuzz export`"),
    ("Python", "check_estimator, threads, forks, 10,000 fits", "gates 17, 18 (`study reliability soak`) and 19"),
    ("Numbers", "n = 3, d = 25 n, outliers of 1e299, offsets to 1e15: finite", "gates 15 and 16, in every run; predictions of 300,000 rows: T3 below"),
]


@item("T1", "odd tables, each with train: empty, header only, one row, one class, constant, contradictory, NaN, inf, 1e308, subnormal, a cell of a million characters, ragged, NUL, UTF-16, Latin-1, BOM, CR, CRLF, 201 and 5,000 classes, index 10^9, descending and repeated indices",
      "a result or an error with line and column")
def t1():
    rows = [[i % 11, i * 5 % 13, "np"[i % 3 > 1]] for i in range(40)]
    text = "a,b,class\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    with_cell = lambda cell: text + f"{cell},1,n\n"
    many = lambda count: "a,class\n" + "".join(f"{i % 7},c{i % count}\n" for i in range(2 * count))
    tables = {
        "empty": "", "header only": "a,b,class\n", "one row": "a,b,class\n1,2,n\n", "one class": "a,class\n1,n\n2,n\n",
        "constant": "a,class\n" + "1,n\n1,p\n" * 20, "contradictory": "a,class\n" + "1,n\n1,p\n2,n\n2,p\n" * 10,
        "NaN": with_cell("NaN"), "inf": with_cell("inf"), "1e308": with_cell("1e308"), "subnormal": with_cell("1e-310"),
        "a million characters": with_cell("x" * 10**6), "ragged": text + "1,2\n", "NUL": with_cell("1\0"),
        "UTF-16": text.encode("utf-16"), "Latin-1": (text + "1,2,caf\xe9\n").encode("latin-1"), "BOM": b"\xef\xbb\xbf" + text.encode(),
        "CR": text.replace("\n", "\r"), "CRLF": text.replace("\n", "\r\n"), "201 classes": many(201), "5,000 classes": many(5000),
        "index 10^9": "1 1:1 1000000000:1\n0 1:2\n" * 20, "descending": "1 2:1 1:1\n0 1:2\n" * 20, "repeated": "1 1:1 1:2\n0 1:2\n" * 20,
    }
    codes, bad = {}, []
    for name, content in tables.items():
        Path("t").write_bytes(content if isinstance(content, bytes) else content.encode())
        r = svml("train", "t", "-o", "m", "--form", "sphere", limit=6 * GB)
        codes.setdefault(r.code, []).append(name)
        if r.is_crash or not (r.code == 0 or refused(r)):
            bad.append(name)
    yield not bad, "; ".join(f"exit {code}: {', '.join(names)}" for code, names in sorted(codes.items()))


@item("T2", "--time-limit 0.5, 2 and 5 at 1,000, 5,000 and 10,000 rows x 20", "exceeded by 1 s at most")
def t2():
    for rows in (1000, 5000, 10_000):
        table("b.csv", rows, 20)
        for limit in (0.5, 2, 5):
            r = svml("train", "b.csv", "-o", "m", "--time-limit", limit)
            ended = r.code == 0 or refused(r, "--time-limit", code=1)
            yield ended and r.seconds < limit + 1.5, f"{rows} rows, {limit} s: {r.seconds:.1f} s" + ("" if r.code == 0 else f", exit {r.code}")


@item("T3", "predict on 300,000 rows of 20 columns", "2.1 s, 237 MB")
def t3():
    table("b.csv", 1000, 20)
    svml("train", "b.csv", "-o", "m")
    table("p.csv", 300_000, 20)
    r = svml("predict", "m", "p.csv", "-o", "out.csv")
    yield r.code == 0, f"{r.measured}"


# Memory -----------------------------------------------------------------------------------------------------------

MEMORY = [
    (20_000, 50, "", "refused, exit 1, 0.3 s, 47 MB"),
    (20_000, 50, "--time-limit 20", "refused, exit 1, 0.3 s, 47 MB"),
    (20_000, 50, "--threads 1 --time-limit 20", "no result, exit 1, 20.9 s, 4.0 GB"),
    (20_000, 50, "--criterion hold_out --time-limit 20", "no result, exit 1, 20.9 s, 4.7 GB"),
    (20_000, 50, "--criterion hold_out --time-limit 60", "model of step 1, with a warning, 61.3 s, 5.6 GB"),
    (30_000, 50, "--time-limit 20", "refused, exit 1, 0.5 s, 68 MB"),
    (300_000, 20, "--time-limit 60", "refused, exit 1, 1.7 s, 267 MB"),
]


def memory_table():
    lines = ["| rows | columns | options | then | now | error that it expects | time | peak |", "|---|---|---|---|---|---|---|---|"]
    made = None
    for rows, columns, options, then in MEMORY:
        if made != (rows, columns):
            table("b.csv", rows, columns)
            made = (rows, columns)
        r = svml("train", "b.csv", "-o", "m", "--json", *options.split(), timeout=400)
        result, expected = quoted(r), ""
        if r.code == 0:
            about = json.loads(r.out)
            ended = about["stop"] if not about.get("cut_short") or about["stop"] == "time_limit" else f"{about['stop']}, parts left out for time"
            result = f"a model of {len(about['members'])} SVMs, stop: {ended}"
            expected = f"{100 * about['honest']['error']:.1f} %" if about["honest"] else "-"
        lines.append(f"| {rows:,} | {columns} | {options or 'default'} | {then} | {result} | {expected} | {r.seconds:.1f} s | {r.peak / GB:.2f} GB |")
        print(lines[-1], flush=True)
    return lines


# The page ---------------------------------------------------------------------------------------------------------


def look_at(one):
    """What is seen now, and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        seen, good, note = [], [], ""
        try:
            for right, text in one.look():
                good.append(right)
                if text:
                    seen.append(text if right else f"**{text}**")
        except CannotBeDone as why:
            note = f"cannot be done here: {why}"
        except (OSError, LookupError, ValueError, AssertionError) as error:
            good.append(False)
            seen.append(f"**this item could not be looked at to its end: {type(error).__name__} {short(str(error), 100)}**")
        os.chdir("/")
    if note:
        seen.append(note)
    # What cannot be done says nothing of the rest.
    verdict = "not done" if not good else "repaired" if all(good) else "better" if any(good) else "as before"
    if one.name.startswith("T"):
        verdict = {"repaired": "holds", "better": "in part", "as before": "no longer"}.get(verdict, verdict)
    if one.reason and not all(good):
        verdict += f": {one.reason}"
    return "; ".join(seen), verdict


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def rows_of(results, letter):
    yield "| | what was done | seen then | seen now | verdict |"
    yield "|---|---|---|---|---|"
    for one, (seen, verdict) in results:
        if one.name.startswith(letter):
            yield f"| {one.name} | {cell(one.done)} | {cell(one.then)} | {cell(seen)} | {cell(verdict)} |"


def commit():
    """That of the sources beside this program, in brackets; nothing where git is not to be had."""
    if shutil.which("git") is None:
        return ""
    found = run("git", "-C", REPOSITORY, "rev-parse", "--short", "HEAD")
    return f" ({found.out.strip()})" if found.code == 0 else ""


def page(results, memory, seconds, load):
    count = {}
    for one, (_, verdict) in results:
        if not one.name.startswith("T"):
            word = verdict.partition(":")[0]
            count[word] = count.get(word, 0) + 1
    about = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    package = python("print(svml.__version__)").out.strip()
    version = svml("--version").out.strip()
    versions = python("import sklearn, numpy, sys; print(f'Python {sys.version.split()[0]}, scikit-learn {sklearn.__version__}, numpy {numpy.__version__}')").out.strip()
    today = datetime.date.today()
    busy = f"Processes that were running or waiting to, in the mean: {load:.1f}" + (
        "; times are longer than they would be with nothing beside it." if load > 1.5 * os.cpu_count() else ".")
    lines = [
        "# The attack, repeated", "",
        f"Made by `python3 benches/attack.py --write docs/attack.md` on {today}; only the words that describe the items are typed.", "",
        "An early version of this program was attacked: odd tables, models made by an enemy, kills, full disks, memory that ends, misuse of the"
        " Python package. What was found stands here by its own list, with what was done, what was seen then, and what is seen now."
        " **Bold** is what is not as it should be. [reliability.md](reliability.md) has the standing checks.", "",
        f"{version}{commit()}, package {package}; {versions}; {about}, {os.cpu_count()} threads, {platform.system()} {platform.release()},"
        f" as {'root' if os.geteuid() == 0 else 'a user'}; {seconds / 60:.1f} minutes. {busy}", "",
        "Of the " + str(sum(count.values())) + " items " + ", ".join(f"{n} are {word}" if n > 1 else f"{n} is {word}" for word, n in sorted(count.items(), key=lambda kv: -kv[1])) + ".", "",
    ]
    for title, letter in (("High: data lost, a process killed, a promise broken", "H"), ("Medium: wrong or surprising without a word", "M"), ("Low", "L")):
        lines += [f"## {title}", "", *rows_of(results, letter), ""]
    lines += ["## What held up", "", "| promise | seen then | looked at now by |", "|---|---|---|"]
    lines += [f"| {cell(a)} | {cell(b)} | {cell(c)} |" for a, b, c in HELD]
    lines += ["", *rows_of(results, "T"), "", "## Memory", "", "Two classes. Then the kernel matrix was always exact; now tables of this size are fitted through landmarks.", "", *memory, ""]
    return "\n".join(lines)


def main():
    global COMMAND, PYTHON
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("items", nargs="*", help="all if none is named; `memory` is the table of memory")
    parser.add_argument("--svml", default=shutil.which("svml") or "svml")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--write", type=Path, help="the page")
    given = parser.parse_args()
    COMMAND = str(Path(given.svml).resolve())
    # Not resolved: a virtual environment is found by the name of its link.
    PYTHON = str(Path(given.python).absolute()) if os.sep in given.python else given.python
    page_file = given.write.resolve() if given.write else None
    # Where this runs in the background or after nohup, signals are ignored, and what it starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    started = time.perf_counter()
    results, loads = [], []
    for name, one in ITEMS.items():
        if not given.items or name in given.items:
            begun = time.perf_counter()
            loads.append(os.getloadavg()[0])
            results.append((one, look_at(one)))
            seen, verdict = results[-1][1]
            print(f"{name} ({time.perf_counter() - begun:.0f} s) {verdict}\n  {seen}", flush=True)
    memory = []
    if not given.items or "memory" in given.items:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            memory = memory_table()
            os.chdir("/")
    if page_file:
        page_file.write_text(page(results, memory, time.perf_counter() - started, sum(loads) / max(len(loads), 1)))


if __name__ == "__main__":
    main()
