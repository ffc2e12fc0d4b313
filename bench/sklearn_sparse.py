"""scikit-learn's logistic regression by SGD on a LIBSVM file: rows per second and loss.

    python3 bench/sklearn_sparse.py FILE --rate 0.05 [--chunk 1000]

Without --chunk one pass of SGDClassifier.fit, with it one pass of partial_fit over chunks of that
many rows. Reading the file is not timed. Prints one JSON document; the loss is over all rows after
training.
"""
import argparse
import json
import time
import warnings

import numpy
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss


def new_model(options):
    return SGDClassifier(loss="log_loss", penalty=None, learning_rate="constant",
                         eta0=options.rate, max_iter=1, tol=None, random_state=options.seed)


def train(options, rows, labels):
    """Seconds of one pass, and the model."""
    model = new_model(options)
    begin = time.perf_counter()
    if options.chunk:
        for first in range(0, rows.shape[0], options.chunk):
            end = first + options.chunk
            model.partial_fit(rows[first:end], labels[first:end], classes=[-1, 1])
    else:
        model.fit(rows, labels)
    return time.perf_counter() - begin, model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--chunk", type=int, default=0)
    parser.add_argument("--features", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # one pass does not converge, on purpose
    rows, labels = load_svmlight_file(options.file, n_features=options.features)
    seconds, model = train(options, rows, labels)
    probability = model.predict_proba(rows)[:, 1]
    loss = log_loss(labels, numpy.clip(probability, 1e-12, 1 - 1e-12))
    print(json.dumps({"seconds": seconds, "rows": int(rows.shape[0]),
                      "rows_per_second": rows.shape[0] / seconds, "loss": float(loss)}))


if __name__ == "__main__":
    main()
