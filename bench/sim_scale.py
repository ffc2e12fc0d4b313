#!/usr/bin/env python3
"""Scale of the simulator: rounds per second and memory for increasing numbers of workers.

    bench/sim_scale.py [PROGRAM]        default: build/anytime

Each run is 100 steps of amb, times only. Target: 10,000 workers within 20 s on one core and within
1 GB. Exits with 1 if that is missed.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 100
SECONDS_MAX, MEGABYTES_MAX = 20.0, 1000.0


def measure(program, workers):
    """Wall seconds, peak memory in MB and rounds of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "simulate", "--strategy", "amb", "--model", "none:1000",
                   "--workers", str(workers), "--steps", str(STEPS), "--batch", "64",
                   "--sample-time", "1ms", "--straggler", "niagara", "--straggler-scale", "20%",
                   "--record", "steps", "--run", f"{folder}/run", "--json", "--quiet"]
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    rounds = sum(row["rounds"] for row in json.loads(out)["worker"])
    return seconds, usage.ru_maxrss / 1000, rounds


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "anytime")
    print(f"{'workers':>8} {'rounds':>9} {'wall s':>8} {'rounds/s':>10} {'MB':>7}")
    for workers in (100, 1000, 10000):
        seconds, megabytes, rounds = measure(program, workers)
        print(f"{workers:8} {rounds:9} {seconds:8.2f} {rounds / seconds:10.0f} {megabytes:7.1f}",
              flush=True)
    sys.exit(seconds > SECONDS_MAX or megabytes > MEGABYTES_MAX)


if __name__ == "__main__":
    main()
