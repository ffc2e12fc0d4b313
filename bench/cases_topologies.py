"""Topologies: updates of a large model by one hub, by all workers, or by several hubs.

A round of one sample on a model of 12 MB (and of 44 MB) is mostly memory traffic, so this measures
the topology and not the engine. With as many workers as cores no topology can gain; the cases make
sure that none loses much. See docs/guide/topologies.md.
"""
from case import Case, in_turn, per_second
from verdict import Claim

LARGE = ("--data", "synthetic:300,784,10", "--batch", 1, "--workers", 2, "--eval-every", 0,
         "--eval-size", 1, "--lr", 0.001)


def side(name, model, steps, *arguments):
    def run(runner, repeat):
        result = runner.anytime(name, *LARGE, "--model", model, "--steps", steps, "--seed",
                                repeat + 1, *arguments)
        return {"steps_per_second": per_second(result, result["steps"])}
    return name, run


def case(name, model, size, steps, topology, *arguments):
    return Case(name, f"updates of {size} of parameters: {topology} and one hub",
                (topology, "one hub"),
                in_turn(side(topology, model, steps, *arguments), side("one hub", model, steps)),
                (Claim("speed", "steps_per_second", "steps/s", at_least=0.8, goal=1.2),))


TOPOLOGY_CASES = (
    case("allreduce-12mb", "mlp:2000,700", "12 MB", 300, "all-reduce", "--topology", "allreduce"),
    case("hubs-12mb", "mlp:2000,700", "12 MB", 300, "two hubs", "--hubs", 2),
    case("allreduce-44mb", "mlp:4000,2000", "44 MB", 60, "all-reduce", "--topology", "allreduce"),
    case("hubs-44mb", "mlp:4000,2000", "44 MB", 60, "two hubs", "--hubs", 2),
)
