#!/usr/bin/env python3
"""What the simulator and `advise` make of published measurements; no machine is timed.

    bench/published_logs.py [PROGRAM] [--fmb LOG] [--traces LOG..]

EC2, ten workers, CIFAR-10: steps of runs without stragglers, and an anytime-minibatch run predicted
from the log of the fixed-minibatch run alone (`--fmb`, by default its first 400 steps). Traces are
logs of other jobs: no gain that is named may be below 1 or above the log's ceiling. Exits with 1
when a figure is off by more than 2 %, or a gain is outside of its bounds.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 0.02
# Seconds of a step without stragglers, by samples per worker.
EC2_CALM = {256: 6.153, 512: 11.885}
# The anytime-minibatch run: T = 5.5 s, micro-batches of 16 samples.
EC2_AMB = {"step, s": 6.717, "samples per worker": 208.07}


class Check:
    def __init__(self, program):
        self.program, self.good, self.runs = program, True, 0

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], text=True, capture_output=True,
                              timeout=600, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def simulate(self, folder, *words):
        self.runs += 1
        return json.loads(self.run("simulate", *words, "--record", "none", "--run",
                                   folder / f"run{self.runs}", "--json", "--quiet"))

    def compare(self, what, measured, found):
        off = found / measured - 1
        self.good = self.good and abs(off) <= TOLERANCE
        print(f"{what:40} {measured:8.3f} {found:8.3f} {100 * off:+6.1f} %")

    def ec2(self, log, folder):
        print(f"{'EC2':40} measured    found")
        for batch, measured in EC2_CALM.items():
            result = self.simulate(folder, "--model", "none:4607178", "--workers", 10, "--batch",
                                   batch, "--micro-batch", batch, "--sample-time", "21.85ms",
                                   "--bandwidth", 2.18e8, "--broadcast", "tree", "--reduce", "tree",
                                   "--steps", 50)
            self.compare(f"fmb without stragglers, {batch} samples, s", measured,
                         result["seconds"] / 50)
        config = folder / "ec2.conf"
        config.write_text(self.run("calibrate", log))
        result = self.simulate(folder, "--config", config, "--strategy", "amb", "--time-limit",
                               "5.5s", "--cut", "after", "--steps", 1500)
        found = {"step, s": result["step_seconds"]["mean"],
                 "samples per worker": 16 * result["mean_batch"]}  # the log counts batches of 16
        for what, measured in EC2_AMB.items():
            self.compare(f"amb from the log of fmb: {what}", measured, found[what])

    def trace(self, log):
        advice = json.loads(self.run("advise", log, "--json"))
        named = [row for row in advice["strategies"] if f"{row['strategy']} would" in
                 advice["advice"]]
        inside = all(1 <= row["gain"]["mean"] <= advice["ceiling"] for row in named)
        self.good = self.good and inside
        print(f"{pathlib.Path(log).name}: ceiling {advice['ceiling']:.3f}"
              f"{'' if inside else ' EXCEEDED'}; {advice['advice']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default=str(ROOT / "build" / "anytime"))
    parser.add_argument("--fmb", default=str(ROOT / "tests" / "data" / "ec2-fmb.csv.gz"))
    parser.add_argument("--traces", nargs="+", default=[])
    options = parser.parse_args()
    check = Check(options.program)
    with tempfile.TemporaryDirectory() as folder:
        check.ec2(options.fmb, pathlib.Path(folder))
    for log in options.traces:
        check.trace(log)
    raise SystemExit(not check.good)


if __name__ == "__main__":
    main()
