"""Seed 002: dynamic batching."""
import pages
import svg
from runs import Run
from section import AGREES, DISAGREES, NOT_COMPARABLE, Section

NAME, SHORT = "04-dynamic-batching", "002"
TITLE = "Dynamic batching (source 002)"
INTRODUCTION = """
ResNet-18 learns MNIST on one, two and four GPUs, with a batch that stays the same, grows, shrinks,
or follows the loss from epoch to epoch. Published result: batches that shrink, or follow the loss,
learn much faster, against the authors' expectation.

The published program divides the mean gradient by the batch a second time and never applies the
learning rate that it scales, so halving the batch doubles every step. Two sections below test
whether this *double division* explains the result: the learning rate is 0.01 divided by the batch.
8.45 ms per sample are 507 s per epoch on one GPU; messages cost nothing.
"""

FOLDER = "examples/published"
RULES = ("static", "increasing", "decreasing", "loss")
PUBLISHED = {"static": "8.09 at 195 s", "increasing": "8.48 at 167 s",
             "decreasing": "5.08 at 200 s, then unstable", "loss": "5.0 at 218 s"}


def config(name, *more):
    return Run("simulate", "--config", f"{FOLDER}/dynamic-{name}.conf", "--eval-every", 100, *more)


# The batch is halved or doubled every two epochs; 0.01 / 32 is the first learning rate.
EPOCHS = "epochs:2,4,6,8"
DIVIDED = {"static": (), "increasing": ("--lr-schedule", f"{EPOCHS}:0.5"),
           "decreasing": ("--lr-schedule", f"{EPOCHS}:2")}


def divided(name, *more):
    return config(name, "--lr", 0.0003125, "--lr-scale", "none", *DIVIDED[name], *more)


def train_curve(result):
    return [(row[0], row[2]) for row in result["steps"]]


def loss_plot(title, results):
    """Training loss over time, one curve per rule."""
    return svg.plot(title, "virtual time, s", "training loss",
                    [svg.Curve(name, train_curve(result), color)
                     for color, (name, result) in enumerate(results.items())], y_log=True)


def end_loss(result):
    """The mean training loss of the last tenth of a run."""
    losses = [loss for _, loss in train_curve(result)]
    last = losses[-max(1, len(losses) // 10):]
    return sum(last) / len(last)


def accuracy(result):
    return result["result"]["test"]["accuracy"]


# Four workers.

def show_four(results):
    rows = [[f"`dynamic-{name}.conf`", PUBLISHED[name], f"{end_loss(results[name]):.4f}",
             f"{accuracy(results[name]):.4f}", f"{results[name]['result']['seconds']:.0f}",
             results[name]["result"]["steps"]] for name in RULES]
    yield pages.Table(["file", "published loss", "ours: loss at the end", "test accuracy",
                       "virtual seconds", "steps"], rows)
    yield pages.Picture("dynamic-four", "training loss over time of four rules, 4 workers",
                        svg.document([loss_plot("learning rate follows the batch", results)]))


def judge_four(results):
    values = [accuracy(results[name]) for name in RULES]
    return DISAGREES, (f"With a learning rate that follows the batch, all four end within "
                       f"{100 * (max(values) - min(values)):.1f} points of test accuracy. The next "
                       "section tests the cause.")


def show_divided(results):
    rows = [[name, PUBLISHED[name], f"{end_loss(results[name]):.4f}",
             f"{accuracy(results[name]):.4f}"] for name in DIVIDED]
    yield pages.Table(["rule", "published loss", "ours: loss at the end", "test accuracy"], rows)
    yield pages.Picture("dynamic-divided", "training loss over time with double division",
                        svg.document([loss_plot("learning rate 0.01 / batch", results)]))


def judge_divided(results):
    static, increasing, decreasing = (end_loss(results[name]) for name in
                                      ("static", "increasing", "decreasing"))
    holds = decreasing < 0.8 * static and static < increasing
    return (AGREES if holds else DISAGREES), (
        f"With the published program's double division the order is the published one: decreasing "
        f"{decreasing:.3f}, static {static:.3f}, increasing {increasing:.3f} (training loss at the "
        "end). So the result is one about learning rates, not about batches."
        if holds else
        f"The order is not the published one: decreasing {decreasing:.3f}, static {static:.3f}, "
        f"increasing {increasing:.3f} (training loss at the end).")


# Two workers.

TWO = {"dynamic": config("loss", "--workers", 2), "static": config("static", "--workers", 2),
       "dynamic, divided": divided("decreasing", "--workers", 2),
       "static, divided": divided("static", "--workers", 2)}
TWO_PUBLISHED = {"dynamic": ".45 at 135 s, .64 at 260, .71 at 490, .72 at 1170",
                 "static": ".29 at 120 s, .41 at 235, .50 at 470, .64 at 1175"}


def show_two(results):
    yield pages.Table(["rule", "published accuracy", "ours: test accuracy at the end"],
                      [[name, TWO_PUBLISHED.get(name, ""), f"{accuracy(results[name]):.4f}"]
                       for name in TWO])
    curves = [svg.Curve(name, [(test[0], test[3]) for test in result["tests"]], color)
              for color, (name, result) in enumerate(results.items())]
    yield pages.Picture("dynamic-two", "test accuracy over time, 2 workers",
                        svg.document([svg.plot("2 workers", "virtual time, s", "test accuracy",
                                               curves)]))


def judge_two(results):
    plain = accuracy(results["dynamic"]) - accuracy(results["static"])
    double = accuracy(results["dynamic, divided"]) - accuracy(results["static, divided"])
    holds = double > max(plain, 0)
    return (AGREES if holds else DISAGREES), (
        f"Dynamic is ahead of static by {100 * double:.1f} points with double division, as "
        f"published, and by {100 * plain:.1f} points without.")


# One worker.

ONE = {"mnist": Run("simulate", "--config", f"{FOLDER}/dynamic-probe.conf"),
       "cifar10": Run("simulate", "--config", f"{FOLDER}/dynamic-probe.conf", "--data", "cifar10")}
ONE_PUBLISHED = {"mnist": ".907 .984 .989 .990 .984 .991 .995 .998 .999 .9997",
                 "cifar10": ".383 .577 .631 .647 .602 .688 .759 .832 .903 .941"}


def show_one(results):
    yield pages.Table(["data", "published training accuracy, epochs 1 to 10",
                       "ours: test accuracy, epochs 1 to 10", "virtual seconds"],
                      [[name, ONE_PUBLISHED[name],
                        " ".join(f"{test[3]:.3f}" for test in results[name]["tests"][:10]),
                        f"{results[name]['result']['seconds']:.0f}"] for name in ONE])


def judge_one(_):
    return NOT_COMPARABLE, ("A small dense net replaces ResNet-18, and we have test, not training "
                            "accuracy. In the published runs the smallest batch was kept because "
                            "it was the fastest; here all are equally fast, and the smallest is "
                            "kept, too.")


# The rules of the two supplementary programs.

COMMON = ("--model", "mlp:64", "--workers", 4, "--optimizer", "momentum", "--lr", 0.01,
          "--lr-scale", "linear", "--sample-time", "8.45ms", "--batch", 64, "--eval-every", 200)
OTHERS = {"stalled, as published": ("mnist", "stall:10,5,sum,60s,4,128"),
          "stalled, with the mean": ("mnist", "stall:10,5,mean,never,4,128"),
          "target loss 0.5": ("cifar10", "loss-target:0.5,4,128"),
          "target loss 0.5, MNIST": ("mnist", "loss-target:0.5,4,128"),
          "static": ("mnist", None)}


def other(name):
    data, size = OTHERS[name]
    rule = ("--strategy", "fmb", "--size", size) if size else ("--strategy", "fmb")
    return Run("simulate", *rule, *COMMON, "--data", data, "--epochs", 10)


def show_others(results):
    yield pages.Table(["rule", "data", "mean batch", "steps", "training loss at the end",
                       "test accuracy"],
                      [[name, OTHERS[name][0], f"{result['result']['mean_batch']:.0f}",
                        result["result"]["steps"], f"{end_loss(result):.3f}",
                        f"{accuracy(result):.4f}"] for name, result in results.items()])
    yield pages.Picture("dynamic-others", "training loss over time of the two other rules",
                        svg.document([loss_plot("stalled losses and a target loss", results)]))


def judge_others(results):
    doubled = results["stalled, as published"]["result"]["mean_batch"]
    halved = results["target loss 0.5"]["result"]["mean_batch"]
    return NOT_COMPARABLE, (
        f"No numbers were published. The published sum over the losses never stalls, and epochs "
        f"take longer than 60 s, so the batch only doubles (mean {doubled:.0f}, the most is 128); "
        f"above the target loss it only halves (CIFAR-10: mean {halved:.0f}, the least is 4).")


# The published net.

RESNET = ("--model", "book/nets/resnet18-28.net", "--data", "build/book/data/mnist-400",
          "--eval-every", 0)
RESNET_RUNS = {name: Run("simulate", "--config", f"{FOLDER}/dynamic-{name}.conf", *RESNET, "--lr",
                         0.0003125, "--lr-scale", "none", *DIVIDED[name]) for name in DIVIDED}


def half_way_loss(result):
    """The mean training loss from 40 to 60 % of a run's time."""
    length = result["result"]["seconds"]
    losses = [loss for time, loss in train_curve(result) if 0.4 < time / length < 0.6]
    return sum(losses) / len(losses)


def show_resnet(results):
    yield pages.Table(["rule", "published loss", "ours: loss half-way", "loss at the end",
                       "test accuracy"],
                      [[name, PUBLISHED[name], f"{half_way_loss(results[name]):.3f}",
                        f"{end_loss(results[name]):.3f}", f"{accuracy(results[name]):.2f}"]
                       for name in DIVIDED])
    yield pages.Picture("dynamic-resnet", "training loss of ResNet-18 with double division",
                        svg.document([loss_plot("ResNet-18, learning rate 0.01 / batch",
                                                results)]))


def judge_resnet(results):
    static, increasing, decreasing = (half_way_loss(results[name]) for name in
                                      ("static", "increasing", "decreasing"))
    end = end_loss(results["decreasing"])
    if not decreasing < static < increasing:
        return DISAGREES, (f"Half-way the order is not the published one: decreasing "
                           f"{decreasing:.2f}, static {static:.2f}, increasing {increasing:.2f}.")
    unstable = (f" Then the decreasing batch becomes unstable (loss {end:.2f} at the end), as "
                "published; by then it has 4 samples for batch norm, and its learning rate is "
                "eight times as large." if end > decreasing else "")
    return AGREES, (f"With double division the decreasing batch learns fastest: a training loss of "
                    f"{decreasing:.2f} half-way, static {static:.2f}, increasing {increasing:.2f}."
                    + unstable)


SMALL_NET = ["A dense net with 64 hidden units replaces ResNet-18 on MNIST scaled up to 224x224.",
             "10 epochs instead of 30; how often the batch changed was not published: every two "
             "epochs is assumed.", "One seed."]
SECTIONS = [
    Section("Four rules on four workers", about="""Published figure: loss over time on four GPUs for
            a static, an increasing and a decreasing batch and one set by the loss.""",
            theirs=["python3 main.py --world_size 4 --lr 0.01 --batch_size 32 --n_epochs 30"],
            runs={name: config(name) for name in RULES}, show=show_four, verdict=judge_four,
            differences=SMALL_NET),
    Section("Four workers with the published program's double division",
            about="""The same runs with the learning rate 0.01 / batch, whatever the batch is. (The
            rule that follows the loss shrank its batch in the published runs, so it is the
            decreasing one here.)""",
            runs={name: divided(name) for name in DIVIDED}, show=show_divided,
            verdict=judge_divided, differences=SMALL_NET),
    Section("ResNet-18 with double division", about="""The published net, on 28x28 instead of
            224x224 pixels and with 400 samples per epoch.""",
            theirs=["python3 main.py --world_size 4 --lr 0.01 --batch_size 32 --n_epochs 30"],
            runs=RESNET_RUNS, show=show_resnet, verdict=judge_resnet,
            differences=["400 samples per epoch, images of 28x28; 10 epochs; one seed."]),
    Section("Dynamic and static batches on two workers", about="""Published figure: accuracy over
            time on two GPUs. The published dynamic rule decreased its batch.""",
            theirs=["python3 main.py --world_size 2"], runs=TWO, show=show_two, verdict=judge_two,
            differences=SMALL_NET),
    Section("Two more rules: stalled losses and a target loss", about="""Supplementary programs of
            the document: `main_adjworker.py` doubles the batch when the last five losses have
            stalled or an epoch took more than a minute, and halves it otherwise;
            `distributedDataParallel.py` halves it above a target loss of 0.5 and doubles it
            below.""",
            theirs=["python3 main_adjworker.py", "python3 distributedDataParallel.py"],
            runs={name: other(name) for name in OTHERS}, show=show_others, verdict=judge_others,
            differences=["A dense net with 64 hidden units replaces ResNet-18 and ResNet-101; "
                         "10 epochs; the learning rate follows the batch; one seed."]),
    Section("One worker: MNIST and CIFAR-10", about="""Published figures: training accuracy by
            epoch on one GPU; batches of 16, 32, 64 and 128 are tried for one epoch each, then the
            fastest is kept (`dynamic-probe.conf`).""",
            theirs=["# dynamicbatching_1gpumnist.ipynb, dynamicbatching_1gpucifar10.ipynb"],
            runs=ONE, show=show_one, verdict=judge_one, differences=SMALL_NET),
]
