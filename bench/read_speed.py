#!/usr/bin/env python3
"""Text of rows: MB/s of our reader and of others, in one run.

    bench/read_speed.py [--format libsvm|criteo|csv] [--build DIR] [--megabytes N] [--repeats N]

The file is synthetic: rows of 39 numbers, 13 of them quantities and 26 categories (csv: 39
quantities). Each reader gets one core; ours also runs with all cores. The readers take turns, and
the best run of each counts, because noise only slows a run down. Others: scikit-learn and liblinear
for LIBSVM, numpy's loadtxt for CSV. CPU MB/s are those of processor time, which a busy machine
hardly changes. Target: 300 of these on one core. Exits with 1 if that is missed.
"""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 300.0
BLOCK_ROWS = 20000  # too many for caches and branch predictors; then the block repeats
NUMERIC, CATEGORIES, DIMENSIONS = 13, 26, 1 << 20

PEER = """
import json, sys, time
{imports}
begin = time.perf_counter()
{read}
seconds = time.perf_counter() - begin
print(json.dumps({{"seconds": seconds, "rows": x.shape[0], "numbers": {numbers},
                  "sum": float({values}.sum(dtype="float64"))}}))
"""
SKLEARN = PEER.format(imports="from sklearn.datasets import load_svmlight_file",
                      read="x, y = load_svmlight_file(sys.argv[1], dtype='float32')",
                      numbers="x.nnz", values="x.data")
NUMPY = PEER.format(imports="import numpy",
                    read="x = numpy.loadtxt(sys.argv[1], delimiter=',', skiprows=1, "
                         "dtype='float32')[:, :-1]",
                    numbers="x.size", values="x")


def libsvm_row(dice):
    numbers = [f"{i + 1}:{dice.lognormvariate(0, 1):.5g}" for i in range(NUMERIC)]
    picked = sorted({dice.randrange(NUMERIC, DIMENSIONS) for _ in range(CATEGORIES)})
    return " ".join([dice.choice(("+1", "-1")), *numbers, *(f"{i + 1}:1" for i in picked)])


def criteo_row(dice):
    """A fifth of the numbers and a tenth of the categories are missing."""
    numbers = [str(dice.randrange(5000)) if dice.random() > 0.2 else "" for _ in range(NUMERIC)]
    picked = [f"{dice.getrandbits(32):08x}" if dice.random() > 0.1 else ""
              for _ in range(CATEGORIES)]
    return "\t".join([dice.choice("01"), *numbers, *picked])


def csv_row(dice):
    return ",".join([*(f"{dice.gauss(0, 1):.6f}" for _ in range(NUMERIC + CATEGORIES)),
                     dice.choice("01")])


class Format(typing.NamedTuple):
    row: typing.Callable
    peers: dict = {}  # name: what Python runs
    header: str = ""


FORMATS = {
    "libsvm": Format(libsvm_row, {"scikit-learn": SKLEARN}),
    "criteo": Format(criteo_row),
    "csv": Format(csv_row, {"numpy loadtxt": NUMPY},
                  ",".join(f"x{i}" for i in range(NUMERIC + CATEGORIES)) + ",label\n"),
}


def make_file(path, form, megabytes):
    """Writes rows until the file has that many megabytes; returns its size."""
    dice = random.Random(1)
    block = "".join(form.row(dice) + "\n" for _ in range(BLOCK_ROWS)).encode()
    with open(path, "wb") as file:
        file.write(form.header.encode())
        for _ in range(max(1, round(megabytes * 1e6 / len(block)))):
            file.write(block)
    return os.path.getsize(path)


def compile_helpers(build, folder):
    """Compiles our reader, and the library that stops liblinear after reading."""
    compiler = shutil.which("cc") or sys.exit("a C compiler is needed")
    reader, stop = folder / "read_file", folder / "liblinear_stop.so"
    subprocess.run([compiler, "-O2", "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/src",
                    ROOT / "bench" / "read_file.c", build / "libat_data.a",
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


def can_run(code):
    """Whether Python has what the code imports."""
    imports = next(line for line in code.splitlines()[2:] if "import" in line)
    return subprocess.run(["/usr/bin/python3", "-c", imports], capture_output=True).returncode == 0


def sides_of(name, path, cores, reader, stop):
    """What is measured, by name."""
    one = {cores[-1]}
    sides = {
        "anytime, 1 core": lambda: run_json([reader, name, path], one),
        f"anytime, {len(cores)} cores": lambda: run_json([reader, name, path], set(cores)),
    }
    for peer, code in FORMATS[name].peers.items():
        if not can_run(code):
            print(f"{peer} is not installed for /usr/bin/python3")
            continue
        sides[peer] = lambda code=code: run_json(["/usr/bin/python3", "-c", code, path], one)
    if name == "libsvm" and shutil.which("liblinear-train"):
        sides["liblinear"] = lambda: time_liblinear(stop, path, one)
    return sides


def check_equal(found, peers):
    """All readers must have read the same; sums may differ by the rounding of their additions."""
    ours = found["anytime, 1 core"][0]
    for peer in peers & found.keys():
        theirs = found[peer][0]
        same = all(ours[key] == theirs[key] for key in ("rows", "numbers"))
        if not same or not math.isclose(ours["sum"], theirs["sum"], rel_tol=1e-9, abs_tol=1e-3):
            sys.exit(f"the readers disagree: {ours} {theirs}")
    return ours


def cpu_speed(size, runs):
    """MB per second of processor time of the best run, as text; empty for readers without it."""
    best = min(run.get("cpu_seconds", math.inf) for run in runs)
    return f"{size / 1e6 / best:.1f}" if best < math.inf else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=FORMATS, default="libsvm")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--megabytes", type=float, default=120)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / f"rows.{options.format}"
        size = make_file(path, FORMATS[options.format], options.megabytes)
        reader, stop = compile_helpers(options.build, folder)
        sides = sides_of(options.format, path, sorted(os.sched_getaffinity(0)), reader, stop)
        found = {side: [] for side in sides}
        for _ in range(options.repeats):
            for side, measure in sides.items():
                found[side].append(measure())
    ours = check_equal(found, FORMATS[options.format].peers.keys())
    best = {side: min(run["seconds"] for run in runs) for side, runs in found.items()}
    print(f"{options.format}: {size / 1e6:.0f} MB, {ours['rows']} rows, {ours['numbers']} numbers")
    print(f"{'reader':18} {'seconds':>8} {'MB/s':>8} {'slowest':>8} {'CPU MB/s':>9} {'ours is':>8}")
    for side, runs in found.items():
        slowest = max(run["seconds"] for run in runs)
        print(f"{side:18} {best[side]:8.3f} {size / 1e6 / best[side]:8.1f} "
              f"{size / 1e6 / slowest:8.1f} {cpu_speed(size, runs):>9} "
              f"{best[side] / best['anytime, 1 core']:7.1f}x")
    sys.exit(float(cpu_speed(size, found["anytime, 1 core"])) < TARGET)


if __name__ == "__main__":
    main()
