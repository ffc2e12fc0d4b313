#!/usr/bin/env python3
"""Scale of the simulator: cost of a round and memory for increasing numbers of workers.

    bench/sim_scale.py [PROGRAM]        default: build/anytime

First 100 steps of amb, times only, for up to 10,000 workers: target 20 s on one core and 1 GB. Then
10 steps for up to 1,000,000 workers: target 60 s and 1 GB, and a round (with its share of joining
and leaving) costs at most 1.5 times what it costs with 1,000 workers. Exits with 1 on a miss.
Seconds are processor time, because other programs may run; the best of several runs counts.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEGABYTES_MAX, GROWTH_MAX = 1000.0, 1.5


def measure(program, workers, steps):
    """Processor seconds and peak memory in MB of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "simulate", "--strategy", "amb", "--model", "none:1000",
                   "--workers", str(workers), "--steps", str(steps), "--batch", "64",
                   "--sample-time", "1ms", "--straggler", "niagara", "--straggler-scale", "20%",
                   "--record", "none", "--run", f"{folder}/run", "--json", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def best(program, workers, steps):
    """The best of several runs, more of them if they are short."""
    runs = [measure(program, workers, steps) for _ in range(max(1, min(20, 100000 // workers)))]
    return min(seconds for seconds, _ in runs), max(megabytes for _, megabytes in runs)


def series(program, steps, sizes, seconds_max):
    """Prints a row per size. Returns whether the last one is within its bounds, and the cost of a
    round by size."""
    start, _ = best(program, 1, steps)  # of the program itself
    cost = {}
    print(f"{steps} steps\n{'workers':>8} {'seconds':>8} {'us/round':>9} {'MB':>7}")
    for workers in sizes:
        seconds, megabytes = best(program, workers, steps)
        cost[workers] = (seconds - start) / workers / steps * 1e6
        print(f"{workers:8} {seconds:8.2f} {cost[workers]:9.2f} {megabytes:7.1f}", flush=True)
    return seconds <= seconds_max and megabytes <= MEGABYTES_MAX, cost


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "anytime")
    good, _ = series(program, 100, (100, 1000, 10000), 20.0)
    large, cost = series(program, 10, (1000, 10000, 100000, 1000000), 60.0)
    growth = cost[1000000] / cost[1000]
    print(f"cost of a round, 1,000,000 workers against 1,000: {growth:.2f}")
    sys.exit(not good or not large or growth > GROWTH_MAX)


if __name__ == "__main__":
    main()
