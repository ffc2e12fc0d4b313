#!/usr/bin/env python3
"""Sending gradients while they are computed: steps of two programs in turn, over slow links.

    bench/overlap.py PROGRAM OTHER        needs root, ip, tc and mpirun

Ranks are in network namespaces (sim_network.py), so that messages go over TCP at a limited rate.
OTHER is a program that sends gradients when a round is over, for example one of version 0.1. The
pairs alternate in going first; the figure is the median of the ratios of their median steps.
"""
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

import sim_network

PAIRS = 5
RATES = (2500, 1000)  # Mbit/s
RUN = ["--strategy", "fmb", "--steps", "12", "--record", "none", "--eval-every", "0", "--json",
       "--quiet", "--data", "synthetic:600,1x28x28,10"]
CASES = {"mnist-cnn, hub and 1 worker": (2, ["--model", "mnist-cnn", "--batch", "64"]),
         "mnist-cnn, all-reduce of 2": (2, ["--model", "mnist-cnn", "--batch", "64", "--mix",
                                            "replicated"]),
         "mlp:1500,1500,1500, hub and 1 worker": (2, ["--model", "mlp:1500,1500,1500", "--batch",
                                                      "256"])}


def step(cluster, program, ranks, words, folder):
    """The median step, and what the model became."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    result = cluster.run(ranks, program, "train", *RUN, *words, "--run", str(folder / "run"))
    return result["step_seconds"]["p50"], result["params_hash"]


def compare(cluster, case, programs, folder):
    ranks, words = CASES[case]
    ratios, best = [], [float("inf"), float("inf")]
    for pair in range(PAIRS):
        found = {}
        for i in (0, 1) if pair % 2 == 0 else (1, 0):
            found[i] = step(cluster, programs[i], ranks, words, folder)
            best[i] = min(best[i], found[i][0])
        if found[0][1] != found[1][1]:
            sys.exit(f"{case}: the parameters differ")
        ratios.append(found[1][0] / found[0][0])
    print(f"  {case}: {1e3 * best[0]:.1f} ms, the other {1e3 * best[1]:.1f} ms; ratio "
          f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})", flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "mpirun"))):
        print("skipped: needs root, ip, tc and mpirun")
        sys.exit(77)
    programs = [str(pathlib.Path(name).resolve()) for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for megabits in RATES:
            cluster = sim_network.Cluster(2, megabits * 1e6 / 8, 0, folder)
            try:
                print(f"{megabits} Mbit/s", flush=True)
                for case in CASES:
                    compare(cluster, case, programs, folder)
            finally:
                cluster.close()


if __name__ == "__main__":
    main()
