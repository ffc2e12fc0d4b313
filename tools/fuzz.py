#!/usr/bin/env python3
"""Searches for inputs that break a parser, with clang's libFuzzer.

    tools/fuzz.py [-j JOBS] PATTERN SECONDS      fuzzes each target that matches
    tools/fuzz.py [-j JOBS] --minimise PATTERN   adds to tests/fuzz/corpus what reaches more code

SECONDS are processor time. Targets take turns, JOBS at a time, and continue with what was found
before (build-fuzz/corpus). Failing inputs are in build-fuzz/found/. The table at the end counts all
calls (build-fuzz/totals.json). Exits with 1 when an input failed. Words for mutations come from
tests/fuzz/dictionaries/TARGET.dict, if that exists.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-fuzz"
TOTALS = BUILD / "totals.json"
SLICE = 60  # seconds of a turn
LENGTH = 4096  # longer inputs are only slow
TIMEOUT = 100  # seconds for one input, on a busy machine
SIZE_MAX = 160 << 10  # of a committed corpus, unless it was larger before

# Short stacks of allocations: most targets allocate a lot.
ENV = {**os.environ,
       "ASAN_OPTIONS": "handle_abort=1:allocator_may_return_null=1:malloc_context_size=6:"
                       "quarantine_size_mb=32"}


def targets(pattern):
    """Names of the targets that match."""
    names = sorted(f"{path.parent.name}_{path.stem}" for path in ROOT.glob("tests/fuzz/*/*.c"))
    names = [name for name in names if re.search(pattern, name)]
    if not names:
        sys.exit(f"fuzz: no target matches '{pattern}'")
    return names


def build(names, jobs):
    """Builds the targets."""
    if not shutil.which("clang"):
        sys.exit("fuzz: clang is missing; run: tools/deps.sh tools/packages-clang.txt")
    for command in (["cmake", "--preset", "fuzz"],
                    ["cmake", "--build", "--preset", "fuzz", "-j", str(jobs), "--target",
                     *(f"fuzz_{name}" for name in names)]):
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def committed(name):
    """The folder of inputs that `make test` runs."""
    return ROOT / "tests/fuzz/corpus" / name


def collected(name):
    """The folder of inputs that were found to reach something new."""
    folder = BUILD / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def call(name, *arguments):
    """Runs a target: what it printed, its exit code, and its processor seconds."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([BUILD / "tests" / f"fuzz_{name}", *arguments], cwd=ROOT,
                                   env=ENV, stdout=subprocess.DEVNULL, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        text = log.read().decode(errors="replace")
    return text, process.returncode, used.ru_utime + used.ru_stime


def turn(name, seconds):
    """One slice: executions, processor seconds, and whether no input failed."""
    words = ROOT / "tests/fuzz/dictionaries" / f"{name}.dict"
    text, code, used = call(
        name, f"-max_total_time={max(1, round(seconds))}", f"-timeout={TIMEOUT}",
        f"-report_slow_units={TIMEOUT}", "-rss_limit_mb=3000",
        f"-max_len={LENGTH}", "-print_final_stats=1", f"-artifact_prefix=build-fuzz/found/{name}-",
        *([f"-dict={words}"] if words.exists() else []), collected(name), committed(name))
    count = re.search(r"number_of_executed_units: (\d+)", text)
    if code:
        (BUILD / "found" / f"{name}.log").write_text(text)
    return int(count.group(1)) if count else 0, used, code == 0


def coverage(name):
    """Edges reached by everything collected, all edges, and inputs."""
    text, _, _ = call(name, "-runs=0", f"-max_len={LENGTH}", collected(name), committed(name))
    linked = re.search(r"\((\d+) inline 8-bit counters\)", text)
    reached = re.search(r"(?:INITED|DONE) +cov: (\d+).* corp: (\d+)", text)
    return (int(reached.group(1)) if reached else 0, int(linked.group(1)) if linked else 0,
            int(reached.group(2)) if reached else 0)


def fuzz(names, seconds, jobs):
    """Gives turns to whoever had least; names of the targets that failed."""
    total = json.loads(TOTALS.read_text()) if TOTALS.exists() else {}
    used, failed, running = dict.fromkeys(names, 0.0), [], {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while True:
            free = [name for name in names
                    if used[name] < seconds and name not in failed and name not in running.values()]
            if len(running) < jobs and free:
                name = min(free, key=used.get)
                running[pool.submit(turn, name, min(SLICE, seconds - used[name]))] = name
                continue
            if not running:
                return total, failed
            for done in concurrent.futures.wait(running, return_when="FIRST_COMPLETED").done:
                name = running.pop(done)
                executions, processor, good = done.result()
                used[name] += max(processor, 0.1)
                before = total.get(name, [0, 0])
                total[name] = [before[0] + executions, before[1] + processor]
                TOTALS.write_text(json.dumps(total, indent=1))
                if not good:
                    failed.append(name)
                    print(f"fuzz: {name} failed; see build-fuzz/found/{name}.log", flush=True)


def print_table(names, total):
    """A row per target."""
    print("| target | executions | processor seconds | edges | inputs |\n|---|---|---|---|---|")
    for name in names:
        executions, processor = total.get(name, [0, 0])
        reached, linked, inputs = coverage(name)
        print(f"| {name} | {executions:,} | {processor:,.0f} | {reached:,} of {linked:,} "
              f"| {inputs:,} |", flush=True)


def size_of(folder):
    """Bytes of all inputs."""
    return sum(path.stat().st_size for path in folder.iterdir())


def minimise(name):
    """Adds short inputs that reach further edges, shortest first, while there is room."""
    folder = committed(name)
    room = SIZE_MAX - size_of(folder)
    with tempfile.TemporaryDirectory(dir=BUILD) as fresh:
        for path in folder.iterdir():
            shutil.copy(path, fresh)
        text, code, _ = call(name, "-merge=1", "-use_counters=0", f"-max_len={LENGTH}", fresh,
                             collected(name))
        if code:
            return f"{name}: cannot be minimised: {text[-200:]}"
        found = pathlib.Path(fresh).iterdir()
        added = [path for path in found if not (folder / path.name).exists()]
        for path in sorted(added, key=lambda path: path.stat().st_size):
            room -= path.stat().st_size
            if room >= 0:
                shutil.copy(path, folder / path.name[:12])
    return f"{name}: {len(list(folder.iterdir()))} inputs, {size_of(folder)} bytes"


def main():
    """Fuzzes or minimises."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minimise", action="store_true")
    parser.add_argument("pattern")
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    options = parser.parse_args()
    names = targets(options.pattern)
    build(names, options.jobs)
    if options.minimise:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for line in pool.map(minimise, names):
                print(line, flush=True)
        return 0
    (BUILD / "found").mkdir(exist_ok=True)
    total, failed = fuzz(names, options.seconds, options.jobs)
    print_table(names, total)
    for path in sorted(path for name in failed for path in (BUILD / "found").glob(f"{name}-*")):
        print(f"fuzz: {path.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
