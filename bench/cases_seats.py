"""PyTorch scripts as workers of `anytime run`, compared with DDP over gloo and the plain script.

The sides are those of bench/torch_seats.py, which explains them.
"""
import argparse
import subprocess

import torch_seats
from case import Case, in_turn
from runner import Broken
from verdict import Claim


def side(kind, name, processes):
    def measure(runner, _repeat):
        torch_seats.ANYTIME, torch_seats.PYTHON = runner.program, runner.torch_pythons[0]
        options = argparse.Namespace(case=name, seconds=runner.torch_seconds * 2, width=64)
        runner.commands[kind] = f"bench/torch_seats.py --only {name}"
        try:
            return {"samples_per_second": torch_seats.SIDES[kind](options, processes)}
        except (subprocess.SubprocessError, StopIteration, SystemExit) as why:
            raise Broken(f"{kind} with {processes} processes: {why}") from why
    return kind, measure


def against_ddp(name, processes, at_least):
    return Case(f"seats-{name}-{processes}",
                f"{name} in PyTorch, {processes} seats, and DDP over gloo", ("seat", "ddp"),
                in_turn(side("seat", name, processes), side("ddp", name, processes)),
                (Claim("speed", "samples_per_second", "samples/s", at_least=at_least,
                       judge="median"),))


def against_plain(name, at_most):
    return Case(f"seats-{name}-1", f"{name} in PyTorch, one seat, and the plain script",
                ("seat", "plain"), in_turn(side("seat", name, 1), side("plain", name, 1)),
                (Claim("time of a step", "samples_per_second", "samples/s", at_most=at_most,
                       judge="median", invert=True),))


SEAT_CASES = tuple(
    case for name, (_, ratios, slowdown) in torch_seats.CASES.items()
    for case in (*(against_ddp(name, count, least) for count, least in ratios.items()),
                 against_plain(name, slowdown)))
