#!/usr/bin/env python3
"""Learning curves with and without Winograd's method.

    bench/winograd_curves.py [--program P] [--seeds N] [--long] [--control]

Trains each net twice per seed on the same samples: with the fast engine and with the exact one
(direct sums everywhere). Compares the loss of the training samples and the accuracy on the test set
at the end. Set ANYTIME_ISA to avx2 or avx512 to try that instruction set. Exits with 1 if a loss
differs by more than 2 %, or an accuracy by more than 0.5 points after two epochs (--long); after
200 steps, where accuracy still jumps from step to step, 1.5 points are allowed.

Training amplifies every rounding. --control shows by how much: it compares the exact engine with
itself on two threads, which only groups its sums differently.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOSS_MAX = 0.02  # relative


class Job(typing.NamedTuple):
    """A net, its data and how long it is trained."""
    model: str
    data: str
    steps: int
    options: tuple
    accuracy_max: float  # how much it may differ


MNIST = ("--batch", "64", "--optimizer", "momentum", "--lr", "0.01")
RESNET = ("--batch", "32", "--optimizer", "momentum", "--lr", "0.01", "--eval-size", "64")
SHORT = (Job("mnist-cnn", "fashion-mnist", 200, MNIST, 0.015),
         Job("resnet18", "synthetic:640,3x32x32,10", 20, RESNET, 1))
LONG = (Job("mnist-cnn", "fashion-mnist", 1876, MNIST, 0.005),
        Job("cifar10-cnn", "cifar10", 1564, MNIST, 0.005),
        Job("resnet18", "cifar10", 200, RESNET, 1))


def train(program, job, seed, *engine):
    """The loss of the training samples, the accuracy on the test set, and the parameters' hash."""
    with tempfile.TemporaryDirectory(prefix="anytime-curves-") as folder:
        command = [program, "train", "--model", job.model, "--data", job.data, "--workers", "0",
                   "--steps", str(job.steps), "--seed", str(seed), "--record", "none",
                   "--run", f"{folder}/run", "--json", "--quiet", *job.options, *engine]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    result = json.loads(done.stdout)
    return result["train"]["loss"], result["test"]["accuracy"], result["params_hash"]


def compare(program, job, seed, control):
    """Prints one line; whether both engines agree."""
    other = ("--engine", "exact", "--threads", "2") if control else ("--engine", "fast")
    fast = train(program, job, seed, *other)
    exact = train(program, job, seed, "--engine", "exact")
    loss = abs(fast[0] / exact[0] - 1)
    accuracy = abs(fast[1] - exact[1])
    agree = loss <= LOSS_MAX and accuracy <= job.accuracy_max
    same = "  (same bits)" if fast[2] == exact[2] else ""
    print(f"{job.model:12} {seed:4} {job.steps:6} {fast[0]:10.5f} {exact[0]:10.5f} {loss:9.3%} "
          f"{fast[1]:8.2%} {exact[1]:8.2%}  {'agree' if agree else 'DIFFER'}{same}", flush=True)
    return agree


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "anytime"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="two epochs, with CIFAR-10")
    parser.add_argument("--control", action="store_true", help="exact against exact, two threads")
    options = parser.parse_args()
    print(f"{'net':12} {'seed':>4} {'steps':>6} {'loss':>10} {'exact loss':>10} {'differ':>9} "
          f"{'accuracy':>8} {'exact':>8}")
    agreed = [compare(options.program, job, seed, options.control)
              for job in (LONG if options.long else SHORT) for seed in range(1, options.seeds + 1)]
    sys.exit(not all(agreed))


if __name__ == "__main__":
    main()
