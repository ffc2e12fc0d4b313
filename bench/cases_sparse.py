"""Sparse logistic regression: speed compared with scikit-learn, dimensions, memory.

Both sides read the same synthetic click log (LIBSVM text, 39 numbers per row, 2^20 features) and
make one pass of SGD with the same initial rate; afterwards our loss over all rows must not be worse
than scikit-learn's.
"""
import functools
import math
import pathlib
import random
import tempfile

from case import Case, in_turn, per_second
from runner import Broken
from verdict import Claim

FEATURES = 1 << 20
NUMERIC, CATEGORIES = 13, 26
ROWS = 200_000
RATE = 0.02
LOSS_SLACK = 1.01

PUBLISHED = 33_762_578  # features of the published click data
DENSE_PASS = """
import json, time, numpy
w, g = numpy.ones({0}, dtype="float32"), numpy.ones({0}, dtype="float32")
times = []
for _ in range(5):
    begin = time.perf_counter()
    numpy.add(w, g, out=w)
    times.append(time.perf_counter() - begin)
print(json.dumps({{"seconds": min(times)}}))
"""


def zipf(dice, count):
    """A number from 0 to count - 1, power-law distributed: small ones are far more frequent."""
    return min(count - 1, int(dice.random() ** -2.5) - 1)


def row_text(dice, weights):
    width = (FEATURES - NUMERIC) // CATEGORIES
    numbers = [(i, round(0.2 * dice.lognormvariate(0, 1), 4)) for i in range(NUMERIC)]
    numbers += [(NUMERIC + i * width + zipf(dice, width), 1) for i in range(CATEGORIES)]
    margin = sum(weights[index % len(weights)] * value for index, value in numbers)
    label = "+1" if dice.random() < 1 / (1 + math.exp(-margin)) else "-1"
    return f"{label} " + " ".join(f"{index + 1}:{value:g}" for index, value in numbers)


@functools.cache
def click_log():
    """The path of the file; created once for all cases and removed at exit."""
    folder = tempfile.TemporaryDirectory(prefix="anytime-bench-")
    dice = random.Random(1)
    weights = [dice.gauss(0, 0.4) for _ in range(10007)]
    path = pathlib.Path(folder.name) / "clicks.txt"
    path.write_text("\n".join(row_text(dice, weights) for _ in range(ROWS)) + "\n",
                    encoding="ascii")
    return path, folder  # the folder lives as long as the cache


def sklearn_side(chunk):
    def side(runner, repeat):
        path, _ = click_log()
        return runner.sklearn("scikit-learn", path, "--rate", RATE, "--features", FEATURES,
                              "--chunk", chunk, "--seed", repeat + 1)
    return "scikit-learn", side


def pass_of(runner, repeat, workers, epochs, label, *arguments):
    """SGD sample by sample: --strategy hogwild with at most one worker. The rate decreases, so
    that the loss does not depend on the last few rows."""
    path, _ = click_log()
    result = runner.anytime(
        label, "--data", f"libsvm:{path}", "--test-data", f"libsvm:{path}", "--model", "sparse-lr",
        "--strategy", "hogwild", "--workers", workers, "--lr", RATE, "--lr-schedule",
        f"linear:{RATE / 10:g}", "--epochs", epochs, "--eval-every", 0, "--seed", repeat + 1,
        *arguments)
    return {"rows_per_second": per_second(result, result["samples"]["used"]),
            "loss": result["test"]["loss"]}


def learning(name, workers, epochs=1, *arguments):
    def side(runner, repeat):
        return pass_of(runner, repeat, workers, epochs, name, *arguments)
    return name, side


def not_worse(prepare):
    """Refuses a pair in which our loss is higher."""
    def prepared(runner):
        measure = prepare(runner)

        def checked(runner, repeat, repeats):
            values = measure(runner, repeat, repeats)
            ours, theirs = values["anytime"]["loss"], values["scikit-learn"]["loss"]
            if not ours <= LOSS_SLACK * theirs:
                raise Broken(f"anytime ends at a loss of {ours:.4f}, scikit-learn at {theirs:.4f}")
            return values
        return checked
    return prepared


def against_sklearn(name, summary, workers, chunk, at_least, repeats=5):
    return Case(name, summary, ("anytime", "scikit-learn"),
                not_worse(in_turn(learning("anytime", workers), sklearn_side(chunk))),
                (Claim("speed", "rows_per_second", "rows/s", at_least=at_least),), repeats=repeats)


# ---- A sparse step has no dense part -------------------------------------------------------------

def step_in(dimensions, label):
    def side(runner, repeat):
        result = runner.anytime(
            label, "--data", f"synthetic-clicks:100000,{dimensions}", "--model", "sparse-lr",
            "--strategy", "fmb", "--workers", 4, "--batch", 100, "--steps", 2000, "--lr", 0.05,
            "--eval-every", 0, "--eval-size", 1000, "--seed", repeat + 1)
        return {"step_us": 1e6 * result["seconds"] / result["steps"]}
    return label, side


def dense_pass(runner, _repeat):
    return {"step_us": 1e6 * runner.python("dense", DENSE_PASS.format(PUBLISHED))["seconds"]}


def memory_of_clicks(runner, repeat, _repeats):
    most = runner.memory("anytime", "--data", f"synthetic-clicks:100000,{PUBLISHED}", "--model",
                         "sparse-lr", "--strategy", "fmb", "--workers", 4, "--batch", 100,
                         "--steps", 2000, "--lr", 0.05, "--eval-every", 0, "--seed", repeat + 1)
    return {"PSS": {"megabytes": most / 1e6}, "limit": {"megabytes": 600.0}}


SPARSE_CASES = (
    against_sklearn("sparse-fit", "sparse-lr, one pass, --workers 0, and SGDClassifier.fit",
                    0, 0, at_least=4),
    against_sklearn("sparse-chunks", "the same and partial_fit with chunks of 1000",
                    0, 1000, at_least=20, repeats=2),
    against_sklearn("sparse-hub", "sparse-lr, one pass, 1 worker and a hub, and SGDClassifier.fit",
                    1, 0, at_least=2),
    Case("hogwild", "hogwild: 2 workers and 1 worker", ("two", "one"),
         in_turn(learning("two", 2, epochs=10), learning("one", 1, epochs=10)),
         (Claim("speed", "rows_per_second", "rows/s", at_least=1.4),)),
    Case("hogwild-adagrad", "hogwild with adagrad, which reads and writes two vectors, and sgd",
         ("adagrad", "sgd"), in_turn(learning("adagrad", 0, 10, "--optimizer", "adagrad"),
                                     learning("sgd", 0, 10)),
         (Claim("speed", "rows_per_second", "rows/s", at_least=0.4),)),
    Case("sparse-dimensions", "batch 100, 4 workers and a hub: 33,762,578 features and 2^20",
         ("33,762,578", "2^20"),
         in_turn(step_in(PUBLISHED, "33,762,578"), step_in(FEATURES, "2^20")),
         (Claim("time of a step", "step_us", "us", at_most=4, best="low"),)),
    Case("sparse-dense", "the same and one dense pass over 33,762,578 floats",
         ("step", "dense pass"), in_turn(step_in(PUBLISHED, "step"), ("dense pass", dense_pass)),
         (Claim("time", "step_us", "us", at_most=0.1, best="low"),)),
    Case("memory-sparse", "the same: memory of all processes", ("PSS", "limit"),
         lambda _runner: memory_of_clicks,
         (Claim("most at one time", "megabytes", "MB", at_most=1.0, best="low"),), repeats=2,
         repeats_quick=1),
)
