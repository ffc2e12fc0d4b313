"""Cost of recording: CPU time per step with all records and sinks, compared with none.

Both sides make the same steps on the same samples, so only recording differs. The cost of starting,
loading and ending (opening files, saving the model) is measured with runs of one step, separately
for each side, and subtracted.

The speed of processes that share two cores differs by some per cent from start to start, so there
are many short pairs rather than a few long ones.
"""
import statistics

from case import Case, in_turn
from runner import Broken
from verdict import Claim

STARTS = 9


def recorded(runner, keep, steps, seed, arguments):
    return runner.anytime_learns(
        keep, "--strategy", "fmb", "--lr", 0.1, "--eval-every", 0, "--record", keep, "--steps",
        steps, "--seed", seed, *arguments, accuracy_min=0 if steps == 1 else 0.6)


def prepare(steps, *arguments):
    """CPU time per step of a run of `steps` steps."""
    def make(runner):
        starts = {keep: statistics.median(
            recorded(runner, keep, 1, i + 1, arguments)["cpu_seconds"] for i in range(STARTS))
            for keep in ("full", "none")}

        def side(keep):
            def measure(runner, repeat):
                result = recorded(runner, keep, steps, repeat + 1, arguments)
                cpu = result["cpu_seconds"] - starts[keep]
                if cpu <= 0:
                    raise Broken("a run took no longer than one of a single step")
                return {"cpu_us_per_step": 1e6 * cpu / (steps - 1)}
            return keep, measure
        return in_turn(side("full"), side("none"))(runner)
    return make


def case(name, summary, at_most, *run):
    return Case(name, f"{summary}: CPU time per step with --record full and none",
                ("full", "none"), prepare(*run),
                (Claim("CPU a step", "cpu_us_per_step", "us", at_most=at_most, best="low",
                       judge="median"),), repeats=31, repeats_quick=15)


RECORD_CASES = (
    case("record-softmax", "softmax, batch 60, 4 workers", 1.03,
         10000, "--model", "softmax", "--batch", 60, "--micro-batch", 60, "--workers", 4),
    case("record-mlp", "mlp:300,100, batch 256, one worker", 1.01,
         300, "--model", "mlp:300,100", "--batch", 256, "--micro-batch", 64, "--workers", 1),
)
