"""The central claim: anytime minibatches reach a preset test loss earlier."""
import pages
import stats
import svg
from runs import Run
from section import AGREES, DISAGREES, NOT_COMPARABLE, Section

NAME, SHORT = "01-central-claim", "central claim"
TITLE = "The central claim: time to a test loss on real nets"
INTRODUCTION = """
What the five documents have in common is one promise: if workers are delayed at random, a step
should not wait for the slowest. So every strategy here learns the same net from the same data, with
the same induced delays (the published table of sleeps, with a mean of 20 % of a round's computing
time), until it has a preset test loss. The time to that loss is compared with `fmb`, which waits
for everybody, seed by seed.
"""

STRATEGIES = ("fmb", "amb", "backup", "dbs", "async-timed")
# A run here is much shorter than an epoch, after which dbs would look at speeds by default.
SPELLED = {"dbs": "dbs:step"}
COMMON = ("--workers", 10, "--straggler", "niagara", "--straggler-scale", "20%", "--sample-time",
          "10ms")
TUNING_SEED = 101  # not one of the seeds that are compared
CLOSE = 1.15       # times that differ less are not told apart by one seed


class Net:
    """A net and how far it is learnt. rates: learning rates that were tried; best: for strategies
    behind a barrier, and for async-timed."""

    def __init__(self, name, options, target, seeds, rates, best, differences=()):
        self.name, self.options, self.target, self.differences = name, options, target, differences
        self.seeds, self.rates, self.best = range(1, seeds + 1), rates, best

    def run(self, strategy, rate, seed):
        return Run("simulate", "--strategy", SPELLED.get(strategy, strategy), *self.options,
                   *COMMON, "--lr", rate, "--target", f"loss={self.target}", "--seed", seed)

    def tuning(self):
        return {(strategy, rate): self.run(strategy, rate, TUNING_SEED)
                for strategy in ("fmb", "async-timed") for rate in self.rates}

    def rate(self, strategy):
        return self.best["async-timed" if strategy == "async-timed" else "fmb"]

    def runs(self):
        return {(strategy, seed): self.run(strategy, self.rate(strategy), seed)
                for strategy in STRATEGIES for seed in self.seeds}

    def compare(self):
        """All runs as one command."""
        options = " ".join(map(str, (*self.options, *COMMON)))
        return ("anytime compare fmb amb backup dbs:step "
                f"async-timed:lr={self.best['async-timed']} --world sim {options} "
                f"--lr {self.best['fmb']} --target loss={self.target} "
                f"--repeats {len(self.seeds)}")


MNIST = Net("mnist-cnn", ("--model", "mnist-cnn", "--data", "mnist", "--optimizer", "adam",
                          "--batch", 32, "--micro-batch", 8, "--steps", 80, "--eval-every", 2,
                          "--eval-size", 1000),
            target=0.35, seeds=5, rates=(0.001, 0.002, 0.004, 0.008),
            best={"fmb": 0.002, "async-timed": 0.002})

SHORT_NORM = ("Batch norm follows the last 10 steps instead of 100, because a run has tens of "
              "steps; it works on micro-batches of 16 samples.")

CIFAR10 = Net("cifar10-cnn", ("--model", "book/nets/cifar10-cnn.net", "--data", "cifar10",
                              "--optimizer", "adam", "--batch", 64, "--micro-batch", 16, "--steps",
                              150, "--eval-every", 4, "--eval-size", 2000),
              target=1.6, seeds=3, rates=(0.001, 0.002, 0.004),
              best={"fmb": 0.001, "async-timed": 0.001},
              differences=(SHORT_NORM, "The target was chosen before these runs, by one run of "
                           "`fmb` with half the batch and the seed of the tuning."))

SMALL = Net("cifar10-cnn-small", ("--model", "book/nets/cifar10-cnn-small.net", "--data",
                                  "build/book/data/cifar10-classes-0,6", "--optimizer", "adam",
                                  "--batch", 64, "--micro-batch", 16, "--steps", 160,
                                  "--eval-every", 2, "--eval-size", 500),
            target=0.3, seeds=5, rates=(0.002, 0.004, 0.008),
            best={"fmb": 0.008, "async-timed": 0.002},
            differences=("Two classes of CIFAR-10 (airplane and frog; a guess has a loss of 0.69), "
                         "images of half the size, and a fourth of the filters, so that more seeds "
                         "are affordable.", SHORT_NORM,
                         "A first choice, a test loss of 0.45 with three seeds, told nothing: it "
                         "was reached after 16 to 26 steps, and `amb` was 1.00 [0.65, 1.55] times "
                         "as fast as `fmb`."))


def seconds(result, net):
    """Time to the target; None if it was missed."""
    return stats.seconds_to(result["tests"], 2, net.target)


def show_tuning(net, results):
    yield pages.Table(["strategy", *(f"learning rate {rate}" for rate in net.rates)],
                      [[strategy, *(show_seconds(seconds(results[strategy, rate], net))
                                    for rate in net.rates)]
                       for strategy in ("fmb", "async-timed")])


def show_seconds(value):
    return "not reached" if value is None else f"{value:.1f} s"


def tuned(net, results, strategy):
    """The smallest rate that is about as fast as the fastest."""
    times = {rate: seconds(results[strategy, rate], net) for rate in net.rates}
    reached = {rate: time for rate, time in times.items() if time}
    return min((rate for rate, time in reached.items() if time < CLOSE * min(reached.values())),
               default=None)


def tuning_verdict(net, results):
    best = {strategy: tuned(net, results, strategy) for strategy in ("fmb", "async-timed")}
    if best == net.best:
        return NOT_COMPARABLE, (f"Nothing was published. {best['fmb']} for `fmb` and "
                                f"{best['async-timed']} for `async-timed` are used below.")
    return DISAGREES, f"The best rates are {best}, but the comparison used {net.best}."


def made(net, results):
    """The strategies all of whose runs have been made; fmb is the first."""
    return [strategy for strategy in STRATEGIES
            if all(results[strategy, seed] for seed in net.seeds)]


def ratios(net, results):
    """Speedups over fmb by strategy: (mean, low, high), or None where a run missed the target."""
    found = {}
    for strategy in made(net, results)[1:]:
        times = [[seconds(results[name, seed], net) for seed in net.seeds]
                 for name in ("fmb", strategy)]
        missed = None in times[0] + times[1]
        found[strategy] = None if missed else stats.ratio(times[0], times[1])
    return found


def show_compared(net, results):
    found, rows = ratios(net, results), []
    for strategy in made(net, results):
        mine = [results[strategy, seed] for seed in net.seeds]
        times = [seconds(result, net) for result in mine]
        reached = [time for time in times if time is not None]
        speedup = "1" if strategy == "fmb" else (
            stats.show_ratio(found[strategy]) if found[strategy] else "target missed")
        rows.append([f"`{strategy}`", stats.show_mean(reached, 2) if reached else "",
                     f"{len(reached)} of {len(mine)}", speedup,
                     stats.show_mean([result["result"]["step_seconds"]["mean"] for result in mine]),
                     f"{stats.interval([r['result']['useful_fraction'] for r in mine])[0]:.0%}"])
    yield pages.Table(["strategy", f"seconds to test loss {net.target}", "reached",
                       "speedup over `fmb` [95 %]", "seconds per step", "useful time"], rows)
    seed = net.seeds[0]
    curves = [svg.Curve(strategy, [(test[0], test[2]) for test in results[strategy, seed]["tests"]],
                        color) for color, strategy in enumerate(made(net, results))]
    yield pages.Picture(f"central-{net.name}", f"test loss of {net.name} over time",
                        svg.document([svg.plot(f"{net.name}, seed {seed}", "virtual time, s",
                                               "test loss", curves)]))


def verdict(net, results):
    found = ratios(net, results)
    amb = found["amb"]
    if not amb:
        return DISAGREES, "`amb` or `fmb` missed the target in at least one run."
    named = ", ".join(f"`{name}` {stats.show_ratio(value) if value else 'missed it'}"
                      for name, value in found.items())
    sentence = f"Times faster than `fmb` to a test loss of {net.target}: {named}."
    return (AGREES if amb[1] is not None and amb[1] > 1 else DISAGREES), sentence


def headline(results):
    """The claim as a sentence for the first page; None as long as runs are missing."""
    parts = []
    for net in (MNIST, CIFAR10):
        found = {name: results.get(run) for name, run in net.runs().items()}
        if made(net, found)[:2] != ["fmb", "amb"]:
            return None
        amb = ratios(net, found)["amb"]
        parts.append(f"{net.name} {stats.show_ratio(amb) if amb else 'missed it'}")
    return ("**Times faster than fixed minibatches to a preset test loss, 10 workers, induced "
            f"delays of 20 %, 95 % intervals over seeds:** anytime minibatches on {parts[0]}, on "
            f"{parts[1]}; others in [the first chapter]({NAME}.md#{pages.anchor(TITLE)}).")


def sections(net):
    yield Section(
        f"Learning rates for {net.name}", about=f"""Stale gradients may need another learning rate
        than fresh ones. So some rates are tried for `fmb` and for `async-timed`, with a seed that
        is not used later. `amb`, `backup` and `dbs` make the same kind of step as `fmb` and use its
        rate. The table has the virtual time to a test loss of {net.target}. The smallest rate is
        chosen that needs at most {CLOSE - 1:.0%} more than the fastest: one seed does not tell
        more.""",
        runs=net.tuning(), show=lambda results: show_tuning(net, results),
        verdict=lambda results: tuning_verdict(net, results))
    yield Section(
        f"Five strategies on {net.name}", about=f"""{net.name}, 10 workers, {len(net.seeds)} seeds.
        Batches are equal on average: `amb` finds the time limit that gives the batch of `fmb`.""",
        ours=[net.compare()], runs=net.runs(), differences=net.differences,
        show=lambda results: show_compared(net, results),
        optional=lambda name: name[0] not in ("fmb", "amb"),
        verdict=lambda results: verdict(net, results))


SECTIONS = [section for net in (MNIST, CIFAR10, SMALL) for section in sections(net)]
