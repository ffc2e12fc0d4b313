#!/usr/bin/env python3
"""A user-defined model in Python: the logistic regression of own_model.c, with numpy.

    /usr/bin/python3 examples/own_model.py --strategy amb --workers 2

Debian installs numpy for its own Python, which may not be the first python3 on PATH. Arguments
after the file name are options of `anytime train`.
"""
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread per worker
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))  # in a source tree
import numpy as np

import anytime

SAMPLES, FEATURES = 100_000, 10


def main():
    random = np.random.default_rng(1)
    label = (np.arange(SAMPLES) % 2).astype(np.float32)
    x = random.standard_normal((SAMPLES, FEATURES + 1), dtype=np.float32)
    x[:, :FEATURES] += label[:, None] - 0.5
    x[:, FEATURES] = 1  # the bias

    def loss(w, gradient, index):
        rows = x[index]
        z = rows @ w
        gradient += rows.T @ (1 / (1 + np.exp(-z)) - label[index])
        return np.logaddexp(0, np.where(label[index] > 0, -z, z)).sum()

    params = np.zeros(FEATURES + 1, np.float32)
    try:
        anytime.train(loss, params, SAMPLES, sys.argv[1:] or ["--workers", "2", "--epochs", "3"])
    except anytime.Error as problem:
        sys.exit(f"own_model.py: {problem}")
    everything = np.arange(SAMPLES)
    print(f"mean loss {loss(params, np.zeros_like(params), everything) / SAMPLES:.4f}")


if __name__ == "__main__":
    main()
