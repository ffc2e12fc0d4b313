"""Decentralised anytime minibatches."""
import pages
import stats
import svg
from runs import Run
from section import AGREES, DISAGREES, Section

NAME, SHORT = "07-decentralised", "decentralised AMB"
TITLE = "Decentralised anytime minibatches"
INTRODUCTION = """
Without a hub every node has its own parameters and averages them with its neighbors in a few rounds
per step. The AMB paper (ICLR 2019) compares anytime with fixed minibatches on ten nodes of EC2 and
on fifty nodes of a cluster; a later program of its authors compares gradients weighted by samples
with equal weights.
"""

STEPS = 60
SPEEDS_10 = "speed:1,1,1,1,1,1.5,1.5,1.5,2,2"
SPEEDS_50 = "speed:" + ",".join(["1"] * 20 + ["2"] * 10 + ["4"] * 10 + ["8"] * 10)
TEN = ("--workers", 10, "--straggler", SPEEDS_10, "--latency", "500ms", "--micro-batch", 10)
FIFTY = ("--workers", 50, "--straggler", SPEEDS_50, "--micro-batch", 4)
LOGISTIC = ("--data", "mnist", "--lr", 0.3)
LINEAR = ("--model", "linear", "--data", "synthetic-linear:20000,50,0.5", "--lr", 0.03)
# Options, graph and rounds, batch of fmb, time limit of amb, published ratio, possible ratio.
SETUPS = {
    "10 nodes, logistic regression": ((*TEN, *LOGISTIC), "amb-iclr-10,5", 480, "12s", 1.5, 1.48),
    "10 nodes, linear regression": ((*TEN, *LINEAR), "amb-iclr-10,5", 480, "12s", 1.5, 1.48),
    "50 nodes, logistic regression": ((*FIFTY, *LOGISTIC), "exponential,5", 92, "3.2s", 5, 4.6)}
EVALUATION = ("--sample-time", "20ms", "--eval-every", 1, "--eval-size", 2000)


def setup_runs(name):
    options, graph, batch, limit, _, _ = SETUPS[name]
    return {(name, "fmb"): Run("simulate", "--strategy", f"fmb-gossip:{graph}", *options,
                               *EVALUATION, "--batch", batch, "--steps", STEPS),
            (name, "amb"): Run("simulate", "--strategy", f"amb-gossip:{graph}", *options,
                               *EVALUATION, "--batch", 1000, "--time-limit", limit, "--steps",
                               STEPS * 4 // 3)}


def ratios(results, name):
    """How many times earlier amb has the loss of fmb after a third, two thirds and all steps."""
    fixed, timed = (results[name, mode]["tests"] for mode in ("fmb", "amb"))
    losses = [fixed[STEPS * third // 3 - 1][2] for third in (1, 2, 3)]
    return [stats.seconds_to(fixed, 2, loss) / (stats.seconds_to(timed, 2, loss) or float("inf"))
            for loss in losses]


def show_speed(results):
    yield pages.Table(["setup", "published", "possible at equal batches",
                       "ours, after a third, two thirds and all steps"],
                      [[name, f"{setup[4]}", f"{setup[5]}",
                        ", ".join(f"{ratio:.2f}" for ratio in ratios(results, name))]
                       for name, setup in SETUPS.items()])
    plots = [svg.plot(name, "virtual time, s", "test loss",
                      [svg.Curve(f"{mode}-gossip", [(test[0], test[2]) for test in
                                                    results[name, mode]["tests"]], color)
                       for color, mode in enumerate(("amb", "fmb"))], y_log=True)
             for name in SETUPS]
    yield pages.Picture("gossip-speed", "test loss over time, amb-gossip and fmb-gossip",
                        svg.document(plots, columns=3))


def judge_speed(results):
    good = all(min(ratios(results, name)) > 0.9 * setup[5] for name, setup in SETUPS.items())
    return (AGREES if good else DISAGREES), (
        "Anytime minibatches reach the losses of fixed ones about as many times earlier as is "
        "possible at equal batches: 1.5 times with three speeds, 4.5 times with speeds 1 to 8 "
        "(published: up to 1.5 and 5)." if good else
        "At least one loss was reached later than expected.")


# Weights. The full runs take minutes of a core each; here the first 500 of 10,000 steps.

SHORT_STEPS = 500
WEIGHTS = {(mixing, weights): Run("simulate", "--config",
                                  f"examples/published/consensus-{mixing}.conf", "--mix-weights",
                                  weights, "--samples", 484 * SHORT_STEPS, "--eval-every", 50,
                                  "--eval-size", 1000)
           for mixing in ("perfect", "gossip") for weights in ("equal", "proportional")}
# The loss after 10,000 steps, and steps to a loss of 1.5: published (one run), and ours, means of
# two seeds of bench/consensus.py.
LONG = {("perfect", "equal"): (1.336, 1.276, 8880, 8800),
        ("perfect", "proportional"): (0.589, 0.564, 3700, 3550),
        ("gossip", "equal"): (1.412, 1.405, 8920, 9050),
        ("gossip", "proportional"): (0.679, 0.629, 4360, 4900)}


def show_weights(results):
    rows = [[f"`consensus-{mixing}.conf`", weights, *LONG[mixing, weights],
             f"{results[mixing, weights]['tests'][-1][2]:.2f}"] for mixing, weights in WEIGHTS]
    yield pages.Table(["file", "weights", "loss after 10,000 steps: published", "ours",
                       "steps to loss 1.5: published", "ours",
                       f"test loss after {SHORT_STEPS} steps"], rows)
    yield pages.Text("""The columns of 10,000 steps are means of two seeds of `bench/consensus.py`,
    which takes six minutes of a core per run; the last column is made with the book.""")


def judge_weights(results):
    order = all(results[mixing, "proportional"]["tests"][-1][2]
                < results[mixing, "equal"]["tests"][-1][2] for mixing in ("perfect", "gossip"))
    return (AGREES if order else DISAGREES), (
        "Weighting by samples reaches a loss of 1.5 in 2.48 and 1.85 times fewer steps (published: "
        "2.40 and 2.05) with perfect averaging and with 10 rounds; it is ahead after "
        f"{SHORT_STEPS} steps already." if order else
        f"Weighting by samples is not ahead after {SHORT_STEPS} steps.")


SECTIONS = [
    Section("Anytime and fixed minibatches over a graph", about="""Ten nodes with three speeds, five
            rounds of averaging, 12 s of computing and 3 s of communication; fifty nodes with speeds
            1 to 8. Published: 1.5 and 5 times faster.""",
            runs={key: run for name in SETUPS for key, run in setup_runs(name).items()},
            show=show_speed, verdict=judge_speed,
            differences=["Speeds are constant; the published ones came from background jobs and "
                         "pauses.", "One seed; `bench/gossip_speed.py` has five."]),
    Section("Weights by samples or equal", about="""MNIST, ten workers with one class each. A round
            has 60 samples with probability 0.8, else one.""",
            theirs=["python3 run_main.py --model mnist --func linear1 --data_dist distinct_10 "
                    "--opt PWG --graph_def amb_iclr_10 --consensus rand_walk "
                    "--num_consensus_rounds 10 "
                    "--num_samples 60 --strag_dist bern --strag_dist_param 0.8 --num_iters 10000 "
                    "--grad_combine Proportional"],
            runs=WEIGHTS, show=show_weights, verdict=judge_weights,
            differences=["Workers draw samples without repetition.", "Biases start at 0."]),
]
