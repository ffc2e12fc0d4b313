#!/usr/bin/env python3
"""LIBSVM text: MB/s of our reader, scikit-learn's and liblinear's, in one run.

    bench/libsvm_speed.py [--build DIR] [--megabytes N] [--repeats N]

The file is synthetic: rows of 39 numbers, 13 with decimal fractions and 26 categories of value 1 in
2^20 dimensions. Each reader gets one core; ours also runs with all cores. The readers take turns,
and the best run of each counts, because noise only slows a run down. Target: 300 MB/s on one core.
Exits with 1 if that is missed.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 300.0
BLOCK_ROWS = 20000  # too many for caches and branch predictors; then the block repeats
NUMERIC, CATEGORIES, DIMENSIONS = 13, 26, 1 << 20

SKLEARN = """
import json, sys, time
from sklearn.datasets import load_svmlight_file
begin = time.perf_counter()
x, y = load_svmlight_file(sys.argv[1], dtype="float32")
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "rows": x.shape[0], "numbers": x.nnz,
                  "sum": float(x.data.sum(dtype="float64"))}))
"""


def make_file(path, megabytes):
    """Writes rows until the file has that many megabytes; returns its size."""
    dice = random.Random(1)
    lines = []
    for _ in range(BLOCK_ROWS):
        numbers = [f"{i + 1}:{dice.lognormvariate(0, 1):.5g}" for i in range(NUMERIC)]
        picked = sorted({dice.randrange(NUMERIC, DIMENSIONS) for _ in range(CATEGORIES)})
        lines.append(f"{dice.choice(('+1', '-1'))} {' '.join(numbers)} "
                     + " ".join(f"{i + 1}:1" for i in picked))
    block = ("\n".join(lines) + "\n").encode()
    with open(path, "wb") as file:
        for _ in range(max(1, round(megabytes * 1e6 / len(block)))):
            file.write(block)
    return os.path.getsize(path)


def compile_helpers(build, folder):
    """Compiles our reader, and the library that stops liblinear after reading."""
    compiler = shutil.which("cc") or sys.exit("a C compiler is needed")
    reader, stop = folder / "libsvm_read", folder / "liblinear_stop.so"
    subprocess.run([compiler, "-O2", "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/src",
                    ROOT / "bench" / "libsvm_read.c", build / "libat_data.a",
                    build / "libat_base.a", "-lz", "-llzma", "-lpng", "-ljpeg", "-ljansson",
                    "-lcrypto", "-lm", "-o", reader], check=True)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", ROOT / "bench" / "liblinear_stop.c",
                    "-o", stop], check=True)
    return reader, stop


def pin(cores):
    """For the child process: run on these cores only."""
    return lambda: os.sched_setaffinity(0, cores)


def run_json(command, cores):
    """Runs a command that prints JSON; returns the document."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True,
                          preexec_fn=pin(cores))
    return json.loads(done.stdout)


def time_liblinear(stop, path, cores):
    """Wall time of liblinear-train until its reader ends, minus its start-up time."""
    def once(data):
        begin = time.perf_counter()
        done = subprocess.run(["liblinear-train", data, "/dev/null"], capture_output=True,
                              text=True, preexec_fn=pin(cores),
                              env={**os.environ, "LD_PRELOAD": str(stop)})
        seconds = time.perf_counter() - begin
        if "read" not in done.stderr:
            sys.exit(f"liblinear-train: {done.stderr}")
        return seconds
    with tempfile.NamedTemporaryFile("w", suffix=".libsvm") as tiny:
        tiny.write("+1 1:1\n")
        tiny.flush()
        start = once(tiny.name)
    return {"seconds": once(path) - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--megabytes", type=float, default=120)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    one = {cores[-1]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "rows.libsvm"
        size = make_file(path, options.megabytes)
        reader, stop = compile_helpers(options.build, folder)
        sides = {
            "anytime, 1 core": lambda: run_json([reader, path], one),
            f"anytime, {len(cores)} cores": lambda: run_json([reader, path], set(cores)),
            "scikit-learn": lambda: run_json(["/usr/bin/python3", "-c", SKLEARN, path], one),
        }
        if shutil.which("liblinear-train"):
            sides["liblinear"] = lambda: time_liblinear(stop, path, one)
        found = {side: [] for side in sides}
        for _ in range(options.repeats):
            for side, measure in sides.items():
                found[side].append(measure())
    ours, theirs = found["anytime, 1 core"][0], found["scikit-learn"][0]
    if any(ours[key] != theirs[key] for key in ("rows", "numbers", "sum")):
        sys.exit(f"the readers disagree: {ours} {theirs}")
    best = {side: min(run["seconds"] for run in runs) for side, runs in found.items()}
    print(f"{size / 1e6:.0f} MB, {ours['rows']} rows, {ours['numbers']} numbers")
    print(f"{'reader':18} {'seconds':>8} {'MB/s':>8} {'slowest':>8} {'ours is':>8}")
    for side, runs in found.items():
        slowest = max(run["seconds"] for run in runs)
        print(f"{side:18} {best[side]:8.3f} {size / 1e6 / best[side]:8.1f} "
              f"{size / 1e6 / slowest:8.1f} {best[side] / best['anytime, 1 core']:7.1f}x")
    sys.exit(size / 1e6 / best["anytime, 1 core"] < TARGET)


if __name__ == "__main__":
    main()
