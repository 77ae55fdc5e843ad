"""The table of section 15 of docs/math.md: does a given low rank find the directions on which the class depends?

    python3 benches/hidden_directions.py SVML [--rows N,..] [--turns N] [--init START,..]

SVML is the command. The class is a ball in 2 or 3 directions of 10 or 20 columns, mixed by a rotation, other rows for each; 5 % of
the labels are wrong, so that no error can be lower. For each start the error on 5,000 new rows, in percent, and in brackets the
reported one, as means over the rotations; then the worst of each, and how far the two are apart at most.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def table(path: Path, directions: int, columns: int, rows: int, seed: int, turn: int) -> Path:
    rotation, _ = np.linalg.qr(np.random.RandomState(3 + turn).randn(columns, columns))
    r = np.random.RandomState(1000 + seed)
    z = r.randn(rows, columns)
    radius = np.median((np.random.RandomState(4).randn(100_000, directions) ** 2).sum(1))
    inside = ((z[:, :directions] ** 2).sum(1) < radius) ^ (r.rand(rows) < 0.05)
    lines = [",".join(f"x{i}" for i in range(columns)) + ",class"]
    lines += [",".join(f"{v:.5g}" for v in x) + (",inside" if c else ",outside") for x, c in zip(z @ rotation, inside)]
    path.write_text("\n".join(lines) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svml", type=lambda path: Path(path).resolve())
    parser.add_argument("--rows", default="1000,2000,4000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--init", default="scaled,auto")
    args = parser.parse_args()
    starts = args.init.split(",")

    def run(*words: object) -> dict:
        output = subprocess.run([args.svml, "-q", "--threads", "1", *map(str, words)], check=True, capture_output=True)
        return json.loads(output.stdout) if output.stdout else {}

    print("| directions, rows |" + "".join(f" {start} | worst | apart |" for start in starts))
    print("|---|" + "---|---|---|" * len(starts))
    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (Path(folder, name) for name in ("train.csv", "test.csv", "model"))
        for directions, columns in ((2, 10), (2, 20), (3, 10), (3, 20)):
            for rows in map(int, args.rows.split(",")):
                found: dict = {start: [] for start in starts}
                for turn in range(args.turns):
                    table(train, directions, columns, rows, 2 * turn, turn)
                    table(test, directions, columns, 5000, 1, turn)
                    for start in starts:
                        run("train", train, "--form", f"rank={directions}", "--set", f"init={start}", "-o", model)
                        seen, said = run("evaluate", "--json", model, test)["error"], run("show", "--json", model)["honest"]["error"]
                        found[start].append((100 * seen, 100 * said))
                line = f"| {directions} of {columns}, {rows:,} |"
                for pairs in map(np.array, found.values()):
                    (seen, said), worst = pairs.mean(0), pairs.max(0)
                    apart = abs(pairs[:, 0] - pairs[:, 1]).max()
                    line += f" {seen:.1f} ({said:.1f}) | {worst[0]:.1f} ({worst[1]:.1f}) | {apart:.1f} |"
                print(line, flush=True)


if __name__ == "__main__":
    main()
