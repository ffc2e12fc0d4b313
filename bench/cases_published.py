"""Headlines of the published experiments, each beside the same quantity here.

The first side is ours, the second is the published number. Times of other machines only show the
order of magnitude; ratios and virtual time are comparable. docs/book has all figures and tables
with their setups and differences.
"""
import pathlib
import statistics
import tempfile

import gossip_speed
from case import Case, per_second
from cases_sparse import PUBLISHED as CLICK_FEATURES
from runner import Broken
from verdict import Claim

EC2_LOG = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "ec2-fmb.csv.gz"
LOGISTIC = ("--data", "mnist", "--lr", "0.3")


def beside(metric, published, ours):
    """Measures ours(runner, repeat) beside a published number."""
    def measure(runner, repeat, _repeats):
        return {"ours": {metric: ours(runner, repeat)}, "published": {metric: float(published)}}
    return lambda _runner: measure


def headline(name, summary, claim, prepare, **options):
    return Case(f"published-{name}", summary, ("ours", "published"), prepare, (claim,), **options)


# ---- In virtual time: a busy machine only takes longer -------------------------------------------

def gain_on_ec2(runner, repeat):
    """Step time of fmb over that of amb with T = 5.5 s, on the machines of the published log."""
    def step_seconds(label, *words):
        arguments = [*map(str, words), "--seed", str(repeat + 1), "--record", "none", "--quiet",
                     "--json"]
        runner.commands[label] = "anytime simulate " + " ".join(arguments)
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            config = pathlib.Path(folder) / "ec2.conf"
            config.write_text(runner.text("calibrate", [runner.program, "calibrate", EC2_LOG]),
                              encoding="utf-8")
            document, _ = runner.run_json(label, [runner.program, "simulate", "--config", config,
                                                  *arguments, "--run", f"{folder}/run"])
        return document["step_seconds"]["mean"]
    return step_seconds("fmb", "--strategy", "fmb", "--steps", 1500) / step_seconds(
        "amb", "--strategy", "amb", "--time-limit", "5.5s", "--cut", "after", "--steps", 1500)


def gossip_gain(nodes):
    def ours(runner, repeat):
        runner.commands["ours"] = f"bench/gossip_speed.py, {nodes} nodes, seed {repeat + 1}"
        return statistics.mean(gossip_speed.ratios(runner.program, nodes, LOGISTIC, repeat + 1))
    return ours


# ---- In real time --------------------------------------------------------------------------------

def updates_per_second(strategy, *arguments):
    """Updates of a run with these settings; async counts one per gradient, as published."""
    def ours(runner, repeat):
        result = runner.anytime("ours", "--strategy", strategy, "--eval-every", 0, "--eval-size",
                                1000, "--seconds", runner.seconds, "--seed", repeat + 1, *arguments)
        if not result["steps"]:
            raise Broken(f"{strategy} made no step")
        return per_second(result, result["steps"])
    return ours


CLICKS = ("--data", f"synthetic-clicks:100000,{CLICK_FEATURES}", "--model", "sparse-lr",
          "--workers", 5, "--batch", 1, "--lr", 0.01)
SOFTMAX = ("--model", "softmax", "--workers", 4, "--batch", 60, "--lr", 0.01)


PUBLISHED_CASES = (
    headline("amb", "EC2, 10 workers with stragglers: step time of fmb over that of amb",
             Claim("gain", "times", "times", at_least=0.95, at_most=1.05, judge="median"),
             beside("times", 1.547, gain_on_ec2), repeats=1, repeats_quick=1),
    headline("gossip-10", "AMB paper, 10 nodes and a graph: amb-gossip faster than fmb-gossip",
             Claim("gain", "times", "times", at_least=0.9, judge="median"),
             beside("times", 1.5, gossip_gain(10)), repeats=3, repeats_quick=1),
    headline("gossip-50", "AMB paper, 50 nodes in groups of different speed: the same",
             Claim("gain", "times", "times", at_least=0.8, judge="median"),
             beside("times", 5, gossip_gain(50)), repeats=3, repeats_quick=1),
    headline("softmax-sync", "softmax, batch 60, synchronous: 6000 steps in 172.5 s on 4 machines",
             Claim("speed", "steps_per_second", "steps/s", at_least=10),
             beside("steps_per_second", 6000 / 172.5, updates_per_second("fmb", *SOFTMAX))),
    headline("softmax-async", "softmax, batch 60, asynchronous: 20 epochs in 66.9 s on 4 machines",
             Claim("speed", "steps_per_second", "updates/s", at_least=5),
             beside("steps_per_second", 20000 / 66.9, updates_per_second("async", *SOFTMAX))),
    headline("clicks-sync", "click data, 33,762,578 features, batch 1, synchronous, 5 machines",
             Claim("speed", "steps_per_second", "steps/s", at_least=5),
             beside("steps_per_second", 1000 / 6.0, updates_per_second("fmb", *CLICKS))),
    headline("clicks-async", "the same, asynchronous: 2.5 s per 1000 updates of each machine",
             Claim("speed", "steps_per_second", "updates/s", at_least=5),
             beside("steps_per_second", 5 * 1000 / 2.5, updates_per_second("async", *CLICKS))),
)
