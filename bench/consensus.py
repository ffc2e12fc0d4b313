#!/usr/bin/env python3
"""Gossip learning curves against published ones: MNIST, 10 workers with one class each.

    bench/consensus.py [--program build/anytime] [--seeds 5] [--jobs 1] [--keep FOLDER] [--quick]

Every worker draws 60 samples of its class with probability 0.8, else one. Averaging is perfect (all
pairs) or 10 rounds over the graph of the AMB paper; gradients are weighted equally or by samples.
The net has 500 linear units, all weights start from N(0, 1), and the learning rate falls from 0.1
to 0.01 over 10,000 steps. The loss is the mean over the workers on 10,000 training samples, every
100 steps, multiplied by the loss of the last mean model on all training samples over that on these.
Claims: the mean of the last losses is within 15 % of the published one, and the steps to a loss of
1.5 with equal weights, over those by samples, are within 25 % of the published ratio.

Virtual time: a busy machine only takes longer, about six minutes of a core per run, 20 runs in
all. Finished curves in --keep are not computed again. --quick stops after 1000 steps of one seed
and only checks the order of the curves. Exits with 1 if a claim is missed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e/support"))
import tfevents  # noqa: E402

STEPS, QUICK_STEPS, LOSS = 10000, 1000, 1.5
END_TOLERANCE, RATIO_TOLERANCE = 0.15, 0.25
FILES = {"perfect": "consensus-perfect.conf", "10 rounds": "consensus-gossip.conf"}
WEIGHTS = ("equal", "proportional")
CASES = [(mixing, weights) for mixing in FILES for weights in WEIGHTS]
# The loss after 10,000 steps, and the steps to a loss of 1.5, of the published runs (one seed).
PUBLISHED = {("perfect", "equal"): (1.336, 8880), ("perfect", "proportional"): (0.589, 3700),
             ("10 rounds", "equal"): (1.412, 8920), ("10 rounds", "proportional"): (0.679, 4360)}


def mnist():
    """The training set of MNIST, as the value of --test-data."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    files = [pathlib.Path(cache, "anytime/mnist", name)
             for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")]
    if not all(path.exists() for path in files):
        sys.exit("mnist is not here: run `anytime data get mnist`")
    return ",".join(map(str, files))


def command_of(options, case, seed, folder):
    mixing, weights = case
    stop = ["--samples", str(480 * QUICK_STEPS)] if options.quick else []
    return [str(options.program), "simulate", "--config",
            str(ROOT / "examples/published" / FILES[mixing]), "--mix-weights", weights, *stop,
            "--test-data", mnist(), "--eval-size", "10000", "--checkpoint-every", "none", "--seed",
            str(seed), "--run", str(folder), "--quiet"]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def all_over_first(options, folder, first):
    """Loss of the mean model on all training samples, over its loss on the first of them."""
    ended = run([str(options.program), "eval", str(folder), "--test-data", mnist(), "--json"])
    return json.loads(ended)["test"]["loss"] / first


def curve(options, case, seed):
    """Loss by step, from a run or from an earlier one."""
    kept = options.keep / f"{case[0].replace(' ', '-')}-{case[1]}-{seed}.json"
    if not options.quick and kept.exists():
        return json.loads(kept.read_text())
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "run")
        run(command_of(options, case, seed, folder))
        board = tfevents.Folder(folder / "tensorboard/hub")
        factor = all_over_first(options, folder, board.series("test/loss")[-1][1])
        points = [(step, loss * factor) for step, loss in board.series("test/workers_loss")]
    print(f"{case[0]}, {case[1]}, seed {seed}: loss {points[-1][1]:.3f} after {points[-1][0]} "
          "steps", file=sys.stderr, flush=True)
    if not options.quick:
        kept.write_text(json.dumps(points))
    return points


def steps_to(points, loss):
    """The first step at which the loss was reached; the last step when it was not."""
    return next((step for step, value in points if value <= loss), points[-1][0])


def line(name, ours, published, tolerance, spread=""):
    """Prints one claim; True if it holds."""
    holds = abs(ours / published - 1) <= tolerance
    print(f"{name:<48} {ours:>8.3f} {published:>10.3f} {ours / published:>7.2f} {spread:>16}  "
          f"{'ok' if holds else 'MISSED'}")
    return holds


def compare(curves):
    """The table beside the published numbers; True if all claims hold."""
    holds = True
    print(f"{'':<48} {'ours':>8} {'published':>10} {'ratio':>7} {'over seeds':>16}")
    for case in CASES:
        ends = [points[-1][1] for points in curves[case]]
        spread = f"{min(ends):.3f} .. {max(ends):.3f}"
        holds &= line(f"loss after {STEPS} steps, {case[0]}, {case[1]}", statistics.mean(ends),
                      PUBLISHED[case][0], END_TOLERANCE, spread)
    for mixing in FILES:
        equal, proportional = (statistics.mean(steps_to(points, LOSS)
                                               for points in curves[mixing, weights])
                               for weights in WEIGHTS)
        published = PUBLISHED[mixing, "equal"][1] / PUBLISHED[mixing, "proportional"][1]
        holds &= line(f"steps to loss {LOSS}, {mixing}, equal / prop.", equal / proportional,
                      published, RATIO_TOLERANCE, f"{equal:.0f} / {proportional:.0f}")
    return holds


def compare_order(curves):
    """Weighting by samples must be ahead after a tenth of the run."""
    holds = True
    for mixing in FILES:
        ends = (curves[mixing, weights][0][-3:] for weights in WEIGHTS)
        equal, proportional = (statistics.mean(value for _, value in points) for points in ends)
        holds &= proportional < equal
        print(f"{mixing}: loss about step {QUICK_STEPS}: equal {equal:.2f}, proportional "
              f"{proportional:.2f}  {'ok' if proportional < equal else 'MISSED'}")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/anytime")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build/consensus")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds = range(1, (1 if options.quick else options.seeds) + 1)
    options.keep.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {(case, seed): pool.submit(curve, options, case, seed)
                for seed in seeds for case in CASES}
        curves = {case: [jobs[case, seed].result() for seed in seeds] for case in CASES}
    return 0 if (compare_order if options.quick else compare)(curves) else 1


if __name__ == "__main__":
    sys.exit(main())
