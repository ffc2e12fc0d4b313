"""Seed 004: sparse logistic regression on click data."""
import pages
import svg
from runs import Run
from section import AGREES, DISAGREES, NO_COMMAND, NOT_COMPARABLE, Section

NAME, SHORT = "06-click-data", "004"
TITLE = "Sparse logistic regression on click data (source 004)"
INTRODUCTION = """
Five machines learn logistic regression on Criteo's click data (33,762,578 features, 39 numbers per
row), one example per worker and step, synchronously or asynchronously. Only weights and gradients
of the features that occur are sent.

Criteo's data cannot be downloaded without a registration, so ours is synthetic and of the same
shape. Accuracies are therefore not comparable with the published ones, only with each other.
"""

FOLDER = "examples/published"
FEATURES = "synthetic-clicks:60000,100000"
EXAMPLES = 250000

# Published rates: 6 ms per synchronous iteration of five examples, 2.5 ms per asynchronous one.
CURVES = {mode: Run("simulate", "--config", f"{FOLDER}/clicks-{mode}.conf", "--data", FEATURES,
                    "--batch", 1, "--samples", EXAMPLES, "--sample-time", time, "--lr", rate,
                    "--eval-every", every)
          for mode, time, rate, every in (("sync", "6ms", 0.05, 2000),
                                          ("async", "2.5ms", 0.01, 10000))}
TABLE_1 = {"sync": ("23.75", "72.48 %"), "async": ("4.75", "74.73 %")}


def show_curves(results):
    rows = [[mode, TABLE_1[mode][0], "5.0" if mode == "sync" else "2.1",
             f"{result['result']['seconds'] / 60:.1f}", TABLE_1[mode][1],
             f"{100 * result['result']['test']['accuracy']:.2f} %"]
            for mode, result in results.items()]
    yield pages.Table(["", "published minutes", "of which training", "ours", "published accuracy",
                       "ours"], rows)
    curves = [svg.Curve(mode, [(test[0] / 60, 1 - test[3]) for test in result["tests"]], color)
              for color, (mode, result) in enumerate(results.items())]
    yield pages.Picture("clicks-error", "test error over time, sync and async",
                        svg.document([svg.plot("test error", "virtual time, minutes",
                                               "share of errors", curves)]))


def judge_curves(results):
    sync, asynchronous = (results[mode]["result"] for mode in ("sync", "async"))
    ratio = sync["seconds"] / asynchronous["seconds"]
    gap = 100 * (asynchronous["test"]["accuracy"] - sync["test"]["accuracy"])
    return DISAGREES, (
        f"At the published rates of training, async needs {ratio:.1f} times less time, not 5.0 "
        "times: 79 % of the published synchronous time was spent on evaluation. The difference in "
        f"accuracy is {gap:+.2f} points (published: +2.25), so with equally many examples and "
        "equal steps asynchrony does not learn better. The published runs started from different "
        "random weights, N(0, 1) and U(0, 1).")


# Table 2.

def kilobytes(result, rounds):
    messages = result["result"]["messages"]
    return messages["to_hub_bytes"] / rounds / 1e3


def show_network(results):
    rows = []
    for mode, published, examples in (("sync", 92, 50000), ("async", 248, 150000)):
        rounds = sum(worker[0] for worker in results[mode]["workers"])
        rows.append([mode, f"{published} MB", examples, f"{published * 1e3 / examples:.2f} kB",
                     f"{kilobytes(results[mode], rounds):.2f} kB"])
    yield pages.Table(["", "published, each way", "examples", "per example",
                       "ours: gradient of an example"], rows)
    yield pages.Text("""10,000 synchronous iterations of five workers are 50,000 examples. The
    30,000 asynchronous iterations are counted per worker here, 150,000 examples: then the rates
    and the bytes of both modes fit together.""")


def judge_network(results):
    rounds = sum(worker[0] for worker in results["sync"]["workers"])
    ours = kilobytes(results["sync"], rounds)
    return DISAGREES, (f"The published programs sent 1.65 to 1.84 kB per example and direction; "
                       f"the 39 pairs of index and value need {ours:.2f} kB here. Processor and "
                       "disk figures of TensorFlow have no counterpart.")


# Table 3.

BATCHES = (1, 100, 1000, 10000)
RUNTIME = {"sync": (135.7, 67.9, 63.4, 64.8), "async": (145.5, 65.5, 62.3, 62.1)}
MEASURED = {(mode, batch): Run("train", "--config", f"{FOLDER}/clicks-{mode}.conf", "--batch",
                               batch, "--samples", 50000, measured=True)
            for mode in RUNTIME for batch in BATCHES}


def workers_seconds(result):
    """Processor time of the five workers; the hub's is that of loading the data."""
    return sum(worker["cpu_seconds"] for worker in result["result"]["resources"]["worker"])


def show_batches(results):
    rows = []
    for index, batch in enumerate(BATCHES):
        row = [batch]
        for mode, published in RUNTIME.items():
            ours = results[mode, batch]
            row += [published[index], f"{workers_seconds(ours):.2f}",
                    f"{ours['result']['test']['accuracy']:.3f}"]
        rows.append(row)
    yield pages.Table(["batch", "sync: published s", "ours, processor s", "accuracy",
                       "async: published s", "ours, processor s", "accuracy"], rows)


def gain(results, mode, batch):
    """How many times less processor time than with single examples."""
    return workers_seconds(results[mode, 1]) / workers_seconds(results[mode, batch])


def judge_batches(results):
    gains = [gain(results, mode, 100) for mode in RUNTIME]
    more = max(gain(results, mode, 10000) / gain(results, mode, 100) for mode in RUNTIME)
    kind = AGREES if all(value > 1.5 for value in gains) and more < 2 else DISAGREES
    return kind, (f"A batch of 100 takes {gains[0]:.1f} and {gains[1]:.1f} times less than single "
                  "examples (published: 2.0 and 2.2, where reading took most of the time); 10,000 "
                  f"bring at most another factor of {more:.1f} (published: 1.05).")


# A file in Criteo's format.

FILE = "build/book/data/criteo-40000"
CRITEO = {mode: Run("simulate", "--strategy", strategy, "--model", "sparse-lr", "--data",
                    f"criteo:{FILE}/train.txt", "--test-data", f"criteo:{FILE}/test.txt",
                    "--hash-bits", 18, "--workers", 5, "--batch", 1, "--samples", 200000,
                    "--sample-time", time, "--lr", rate, "--eval-every", every)
          for mode, strategy, time, rate, every in (("sync", "fmb", "6ms", 0.05, 2000),
                                                    ("async", "async", "2.5ms", 0.01, 10000))}


def show_criteo(results):
    rows = [[mode, TABLE_1[mode][1], f"{100 * result['result']['test']['accuracy']:.2f} %",
             f"{result['result']['test']['auc']:.3f}", f"{result['result']['test']['loss']:.4f}",
             f"{result['result']['seconds'] / 60:.1f}"] for mode, result in results.items()]
    yield pages.Table(["", "published accuracy", "ours", "area under the curve", "test loss",
                       "virtual minutes"], rows)
    curves = [svg.Curve(mode, [(test[0] / 60, 1 - test[3]) for test in result["tests"]], color)
              for color, (mode, result) in enumerate(results.items())]
    yield pages.Picture("clicks-criteo", "test error on a file in Criteo's format, over time",
                        svg.document([svg.plot("test error", "virtual time, minutes",
                                               "share of errors", curves)]))


def judge_criteo(results):
    sync, asynchronous = (results[mode]["result"]["test"] for mode in ("sync", "async"))
    return NOT_COMPARABLE, (
        f"The file runs from text to test error: {100 * sync['accuracy']:.1f} % with sync and "
        f"{100 * asynchronous['accuracy']:.1f} % with async. Accuracy means little here: always "
        "answering no gives 73.9 % in ours, and about as much as the published 72.5 and 74.7 % in "
        "Criteo's data, a quarter of whose lines are clicks. The areas under the curve are "
        f"{sync['auc']:.3f} and {asynchronous['auc']:.3f}: no difference.")


NOT_CRITEO = ["Synthetic clicks with 100,000 features; 250,000 examples, as 50,000 iterations of "
              "five workers have."]
SECTIONS = [
    Section("Test error over time (figure 1 and table 1)", theirs=NO_COMMAND,
            about="""50,000 iterations, with an
            evaluation of 10,000 test examples every 2000.""",
            runs=CURVES, show=show_curves, verdict=judge_curves, differences=NOT_CRITEO),
    Section("Where the bottleneck is (table 2)", theirs=NO_COMMAND,
            about="""Network, processor and disk of both
            modes.""", runs=CURVES, show=show_network, verdict=judge_network,
            differences=NOT_CRITEO),
    Section("Batch sizes at equal numbers of examples (table 3)", theirs=NO_COMMAND,
            about="""Processor time of the
            five workers with batches of 1, 100, 1000 and 10,000 (`clicks-sync.conf`,
            `clicks-async.conf`). The machine did other work, too, so the time on the clock would
            mean nothing; only ratios within a column should be read.""",
            ours=["anytime sweep --over batch=1,100,1000,10000 --config "
                  f"{FOLDER}/clicks-sync.conf"],
            runs=MEASURED, show=show_batches, verdict=judge_batches,
            differences=["Five processes on one machine instead of five machines; 50,000 examples "
                         "instead of 100,000, of synthetic clicks."]),
    Section("A file in Criteo's format", about="""The program reads the original text format, one
            line of 40 fields per example. `make book` writes such a file: 40,000 lines for training
            and 10,000 for testing, with counts, hexadecimal categories that are frequent or very
            rare, missing fields, and clicks drawn from a logistic model of the fields.""",
            runs=CRITEO, show=show_criteo, verdict=judge_criteo,
            theirs=["# the assignment's programs, one process per machine, on Criteo's 23 files"],
            differences=["The lines are made, not measured; categories are hashed to 2^18 features "
                         "instead of numbered (33,762,578)."]),
]
