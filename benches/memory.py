"""Memory of a fit with a rare class: what the command announces, and the most that it uses.

python3 benches/memory.py [--svml PATH] [--time-limit SECONDS] [--only TEXT] prints a table for Markdown.
"""

import argparse
import os
import random
import re
import subprocess
import tempfile
import time

# Rows, rows of the rare class, options.
CASES = [
    (6000, 2, ""),
    (10000, 2, ""),
    (14000, 2, ""),
    *[(20000, rare, "") for rare in (2, 4, 8, 12, 21)],
    (20000, 2, "--memory-limit 500MB"),
    (20000, 12, "--memory-limit 200MB"),
    (20000, 2, "--form diagonal"),
    (20000, 2, "--landmarks 200"),
    (4900, 2, ""),
]


def write(path: str, rows: int, rare: int) -> None:
    """A table of noise; the rare rows are spread evenly."""
    rng = random.Random(0)
    places = {rows // (rare + 1) * (k + 1) for k in range(rare)}
    with open(path, "w") as file:
        file.write("a,b,c,d,e,y\n")
        for i in range(rows):
            file.write("".join(f"{rng.gauss(0, 1):.3f}," for _ in range(5)) + f"{int(i in places)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svml", default="target/release/svml")
    parser.add_argument("--time-limit", default="60", help="seconds for each fit")
    parser.add_argument("--only", default="", help="cases whose line contains this")
    args = parser.parse_args()
    print("| rows | rare class | options | announced | peak | seconds | exit |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table, model = os.path.join(folder, "t.csv"), os.path.join(folder, "m.svml")
        for rows, rare, options in CASES:
            case = f"| {rows:,} | {rare} | {options} |"
            if args.only not in case:
                continue
            write(table, rows, rare)
            command = [args.svml, "train", table, "-o", model, "--time-limit", args.time_limit, *options.split()]
            started = time.monotonic()
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            text = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            said = re.search(r"up to about ([\d.]+) GB", text)
            announced = f"{said[1]} GB" if said else "below 0.5 GB"
            seconds = time.monotonic() - started
            peak = f"{usage.ru_maxrss * 1024 / 1e9:.2f} GB"
            print(f"{case} {announced} | {peak} | {seconds:.0f} | {os.waitstatus_to_exitcode(status)} |", flush=True)


if __name__ == "__main__":
    main()
