#!/usr/bin/env python3
"""Does `advise` foresee real runs? Records `fmb` with padded workers under several straggler laws
and traces, asks for advice, then really runs other strategies and compares samples per second.

    foresight.py BUILD/anytime [--steps N] [--laws niagara,exp] [--strategies amb,backup] [--json]

Target: samples per second within 5 % in every case, and at least 9 of 10 gains inside their
intervals; exits with 1 on a miss. Takes 20 minutes. Workers mostly sleep, but processes that cannot
run when they wake up look like stragglers: on a busy machine, run it with `chrt -r 50`.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile

STRATEGIES = ("amb", "backup", "dbs", "async-timed", "quorum")
ERROR_MAX, INSIDE_MIN = 0.05, 0.9
WORKERS = 10


def bursty(path, steps):
    """Step times of machines that are slow for a while, without an absolute scale."""
    draw = random.Random(1)
    left = [0] * WORKERS
    with open(path, "w", encoding="ascii") as file:
        file.write("step,worker,batch_time_norm\n")
        for step in range(steps):
            for worker in range(WORKERS):
                if left[worker] == 0 and draw.random() < 0.03:
                    left[worker] = draw.randint(5, 15)
                slow = 2 if left[worker] else 1
                left[worker] = max(0, left[worker] - 1)
                file.write(f"{step},{worker},{slow * draw.uniform(0.97, 1.03):.4f}\n")
    return path


def degrading(path, steps):
    """One machine becomes slow in the middle, another is slow throughout."""
    draw = random.Random(2)
    with open(path, "w", encoding="ascii") as file:
        file.write("step,worker,batch_time_norm\n")
        for step in range(steps):
            for worker in range(WORKERS):
                slow = 1.3 if worker == 3 else 1.6 if worker == 7 and step > steps / 2 else 1
                file.write(f"{step},{worker},{slow * draw.uniform(0.98, 1.02):.4f}\n")
    return path


def laws(folder, steps):
    return {
        "niagara": ["--straggler", "niagara", "--straggler-scale", "40%"],
        "cedar": ["--straggler", "cedar", "--straggler-scale", "50%"],
        "exp": ["--straggler", "exp:0,0.03"],
        "pareto": ["--straggler", "pareto:0.005,2"],
        "speed": ["--straggler", "speed:1,1,1,1,1,1,1,1.2,1.4,2"],
        "bursts": ["--straggler", f"trace:{bursty(folder / 'bursts.csv', steps)}"],
        "degrading": ["--straggler", f"trace:{degrading(folder / 'degrading.csv', steps)}"],
    }


class Foresight:
    def __init__(self, program, steps, batch=32):
        self.program, self.steps = program, steps
        self.common = ["--data", "synthetic:20000,20,5", "--workers", str(WORKERS), "--batch",
                       str(batch), "--micro-batch", "2", "--sample-time", "3ms", "--seed", "1",
                       "--epochs", str(steps * WORKERS * batch / 20000), "--eval-every", "0",
                       "--checkpoint-every", "none", "--resources", "0", "--quiet"]

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], text=True, capture_output=True,
                              timeout=600, check=False)
        if done.returncode:
            raise SystemExit(f"{words}: {done.stderr}")
        return done.stdout

    def rate(self, strategy, law, folder):
        out = self.run("train", "--strategy", strategy, *self.common, *law, "--run", folder,
                       "--json")
        return json.loads(out)["samples_per_second"]

    def check(self, name, law, strategies, folder):
        own = self.rate("fmb", law, folder / f"{name}-fmb")
        advice = json.loads(self.run("advise", folder / f"{name}-fmb", "--json"))
        rows = {row["strategy"]: row for row in advice["strategies"]}
        for strategy in strategies:
            rate = self.rate(strategy, law, folder / f"{name}-{strategy}")
            row = rows[strategy]
            yield {"law": name, "strategy": strategy, "gain": rate / own,
                   "predicted": row["gain"], "samples_per_second": rate,
                   "predicted_samples_per_second": row["samples_per_second"],
                   "error": row["samples_per_second"] / rate - 1,
                   "inside": row["gain"]["low"] <= rate / own <= row["gain"]["high"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--laws", default="")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        foresight = Foresight(options.program, options.steps)
        chosen = laws(folder, options.steps)
        for law in options.laws.split(",") if options.laws else chosen:
            for one in foresight.check(law, chosen[law], options.strategies.split(","), folder):
                results.append(one)
                if options.json:
                    continue
                gain = one["predicted"]
                print(f"{law:10} {one['strategy']:12} gain {one['gain']:.3f}, predicted "
                      f"{gain['mean']:.3f} [{gain['low']:.3f}, {gain['high']:.3f}]; samples/s "
                      f"{100 * one['error']:+.1f} %{'' if one['inside'] else '  OUTSIDE'}",
                      flush=True)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    inside = sum(one["inside"] for one in results)
    worst = max(abs(one["error"]) for one in results)
    print(f"{inside} of {len(results)} inside the interval; largest error {100 * worst:.1f} %; "
          f"load {os.getloadavg()[2]:.1f}")
    raise SystemExit(worst > ERROR_MAX or inside < INSIDE_MIN * len(results))


if __name__ == "__main__":
    main()
