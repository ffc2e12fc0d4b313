#!/usr/bin/env python3
"""Compressed messages: bytes and accuracy in simulation, steps per second over a slow link.

    bench/compress.py [--program build/anytime] [--models mlp:300 mnist-cnn] [--data mnist]
                      [--workers 8] [--batch 16] [--epochs 2] [--seeds 5]
    bench/compress.py --link [--megabits 1000] [--steps 40]

The first trains each model with every form of messages, in virtual time, so a busy machine only
takes longer. Claims: bf16 sends half the bytes in both directions within 0.2 points of accuracy,
topk:0.01 50 times fewer bytes of gradients within 1 point.

The second trains mnist-cnn with ranks of mpirun in network namespaces whose links are limited, and
needs root, ip, tc and an idle machine. Claim: bf16 makes at least 1.7 times the steps per second.

Exits with 1 if a claim is missed, with 77 if the namespaces cannot be made.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import sim_network

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMS = ("none", "bf16", "fp16", "topk:0.01")
POINTS = {"bf16": 0.2, "fp16": 0.2, "topk:0.01": 1.0}
FACTOR = {"bf16": (2, 2), "fp16": (2, 2), "topk:0.01": (1, 50)}  # to workers, to the hub
GAIN = 1.7


def train(options, model, form, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.program, "simulate", "--model", model, "--data", options.data,
                   "--workers", str(options.workers), "--batch", str(options.batch), "--lr",
                   str(options.lr), "--epochs", str(options.epochs), "--seed", str(seed),
                   "--compress", form, "--sample-time", "1ms", "--bandwidth", "125e6",
                   "--eval-every", "0", "--record", "none", "--run", f"{folder}/run", "--json",
                   "--quiet"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def accuracy(options):
    """Prints a table; whether all claims hold."""
    good = True
    print(f"{options.data}, {options.workers} workers, batch {options.batch}, {options.epochs:g} "
          f"epochs, {options.seeds} seeds, 1 Gbit/s in simulation")
    print(f"{'model':<12} {'compress':<10} {'accuracy %':>16} {'MB/step out':>11} "
          f"{'MB/step in':>10} {'step ms':>8}")
    for model in options.models:
        full = None
        for form in FORMS:
            runs = [train(options, model, form, seed + 1) for seed in range(options.seeds)]
            scores = [100 * run["test"]["accuracy"] for run in runs]
            sent = runs[0]["messages"]["to_workers_bytes"], runs[0]["messages"]["to_hub_bytes"]
            mean = statistics.mean(scores)
            spread = statistics.stdev(scores) if len(scores) > 1 else 0
            full = full or (mean, sent)
            if form in POINTS:
                factors = [before / now for before, now in zip(full[1], sent)]
                good = good and full[0] - mean <= POINTS[form] and all(
                    found >= 0.999 * wanted for found, wanted in zip(factors, FACTOR[form]))
            megabytes = [bytes_ / runs[0]["steps"] / 1e6 for bytes_ in sent]
            print(f"{model:<12} {form:<10} {mean:>8.2f} ± {spread:<5.2f} {megabytes[0]:>11.3f} "
                  f"{megabytes[1]:>10.3f} {1000 * runs[0]['step_seconds']['mean']:>8.1f}",
                  flush=True)
    return good


def link(options):
    """Steps per second with ranks in namespaces; whether bf16 gains enough."""
    ranks = options.workers + 1
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for form in ("none", "bf16"):
            cluster = sim_network.Cluster(ranks, options.megabits * 1e6 / 8, 0, folder)
            try:
                result = cluster.run(
                    ranks, options.program, "train", "--data", options.data, "--model",
                    "mnist-cnn", "--batch", str(options.batch), "--steps", str(options.steps),
                    "--strategy", "fmb", "--compress", form, "--record", "none", "--eval-every",
                    "0", "--eval-size", "10", "--json", "--quiet", "--run", str(folder / form))
            finally:
                cluster.close()
            rates[form] = 1 / result["step_seconds"]["p50"]
            print(f"mnist-cnn, {options.workers} workers, batch {options.batch}, "
                  f"{options.megabits:g} Mbit/s, {form}: {rates[form]:.2f} steps/s", flush=True)
    gain = rates["bf16"] / rates["none"]
    print(f"bf16 makes {gain:.2f} times as many steps (goal: {GAIN})")
    return gain >= GAIN


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/anytime"))
    parser.add_argument("--models", nargs="+", default=["mlp:300", "mnist-cnn"])
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--link", action="store_true")
    parser.add_argument("--megabits", type=float, default=1000)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    if not options.link:
        sys.exit(not accuracy(options))
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "mpirun"))):
        print("skipped: needs root, ip, tc and mpirun")
        sys.exit(77)
    sys.exit(not link(options))


if __name__ == "__main__":
    main()
