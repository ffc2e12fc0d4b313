#!/usr/bin/env python3
"""Calibrates the simulator from the log of a fixed-minibatch run and prints a config file for it.

    calibrate_ec2.py LOG_FOLDER

The folder holds worker_stats.csv[.gz] (time, step, rank, num_batches, compute_time, ..) and
master_stats.csv[.gz] (time, step, ..) as the published program wrote them. Everything is estimated
from this one log, so the result for any other run is a prediction. See
docs/guide/simulate.md for the method.
"""
import collections
import csv
import gzip
import pathlib
import statistics
import sys

PARAMETERS = 4_607_178      # of the cifar10 network; sets the message size
MICRO_BATCH = 16            # samples per batch in the log's num_batches
NO_SLEEP = 0.4              # share of rounds in which the straggler model does not sleep


def read(folder, name):
    """The rows of a CSV file, which may be gzipped."""
    path = folder / name
    if path.exists():
        with open(path, newline="", encoding="ascii") as file:
            return list(csv.DictReader(file))
    with gzip.open(folder / (name + ".gz"), "rt", newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def rounds_by(rows, key):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[int(row[key])].append(row)
    return groups


def sample_times(rows):
    """Seconds per sample, by rank: the median of the rounds without an induced sleep, which are the
    shortest of each worker."""
    times = {}
    for rank, rounds in sorted(rounds_by(rows, "rank").items()):
        each = sorted(float(r["compute_time"]) / (int(r["num_batches"]) * MICRO_BATCH)
                      for r in rounds)
        times[rank] = each[int(len(each) * NO_SLEEP / 2)]
    return times


def transfer_time(rows):
    """Transfer time of one gradient on the hub's link, in seconds. A worker that finished no later
    than the one whose gradient arrived just before has waited for the link, so the gap between the
    two is one transfer."""
    gaps = []
    for rounds in rounds_by(rows, "step").values():
        rounds.sort(key=lambda r: float(r["time"]))
        gaps += [float(b["time"]) - float(a["time"]) for a, b in zip(rounds, rounds[1:])
                 if float(b["compute_time"]) <= float(a["compute_time"])]
    return statistics.median(gaps), len(gaps)


def describe(rows, steps):
    """The measured means that a simulation should reproduce."""
    by_step = rounds_by(rows, "step").values()
    ends = [float(row["time"]) for row in steps]
    return {
        "mean samples": statistics.mean(int(r["num_batches"]) * MICRO_BATCH for r in rows),
        "mean compute": statistics.mean(float(r["compute_time"]) for r in rows),
        "mean slowest compute": statistics.mean(
            max(float(r["compute_time"]) for r in rounds) for rounds in by_step),
        "mean step": (ends[-1] - ends[0]) / (len(ends) - 1),
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    rows, steps = read(folder, "worker_stats.csv"), read(folder, "master_stats.csv")
    for name, value in describe(rows, steps).items():
        print(f"# measured {name}: {value:.3f}")
    if len({row["num_batches"] for row in rows}) > 1:
        print("# not a fixed-minibatch run: cannot calibrate")
        return
    times = sample_times(rows)
    mean = statistics.mean(times.values())
    transfer, count = transfer_time(rows)
    print(f"# one transfer: {transfer * 1e3:.1f} ms, the median of {count} waits")
    print(f"workers = {len(times)}")
    print(f"sample-time = {mean * 1e3:.3f}ms")
    print("straggler = speed:" + ",".join(f"{t / mean:.3f}" for t in times.values()) + "+niagara")
    print("latency = 0s")
    print(f"bandwidth = {4 * PARAMETERS / transfer:.3g}")


if __name__ == "__main__":
    main()
