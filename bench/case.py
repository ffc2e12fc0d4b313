"""A case, and how its two sides are measured in turn."""
import dataclasses
import typing

from runner import Broken
from verdict import Claim


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    summary: str
    sides: tuple[str, str]
    prepare: typing.Callable
    claims: tuple[Claim, ...]
    repeats: int = 5
    repeats_quick: int = 3


def in_turn(first, second):
    """Both sides, one right after the other, so that a slow period of the machine affects both.

    The order alternates between repeats. A side is (name, function(runner, repeat)
    -> metrics)."""
    def measure(runner, repeat, _repeats):
        order = (first, second) if repeat % 2 == 0 else (second, first)
        return {name: side(runner, repeat) for name, side in order}
    return lambda _runner: measure


def per_second(result, count):
    if not result.get("seconds"):
        raise Broken("a run took no time")
    return count / result["seconds"]
