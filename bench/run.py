#!/usr/bin/env python3
"""Measures the speed claims of anytime, each as a ratio within one run.

    bench/run.py                    all cases, roughly half an hour
    bench/run.py --quick            fewer and shorter runs, roughly a third of that
    bench/run.py --only hub         one case (repeat the option for several)
    bench/run.py --list             the cases and their claims

Progress goes to stderr, the table to stdout, and one JSON line per case to bench/results.jsonl;
bench.html beside the program shows all of them over time.
Exits with 0 if every claim holds, with 1 if one fails or could not be measured.
"""
import argparse
import datetime
import json
import pathlib
import sys

import history
import machine
import verdict
from cases import CASES
from page import page
from runner import Broken, Runner

FOLDER = pathlib.Path(__file__).resolve().parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse_options():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[c.name for c in CASES],
                        help="measure only this case")
    parser.add_argument("--quick", action="store_true", help="3 repeats of shorter runs")
    parser.add_argument("--repeats", type=int, metavar="N", help="repeats of each case")
    parser.add_argument("--program", default=str(FOLDER.parent / "build" / "anytime"),
                        help="the program to measure (default: build/anytime)")
    parser.add_argument("--torch-python", action="append", metavar="PYTHON",
                        help="a Python that has PyTorch (default: Debian's); given several times, "
                             "the fastest counts")
    parser.add_argument("--compiled", action="store_true",
                        help="also measure torch.compile, which takes minutes per net")
    parser.add_argument("--isa", choices=sorted(machine.ISA_LIMITS),
                        help="limit both sides to an instruction set (default: the best)")
    parser.add_argument("--wait", type=float, default=30, metavar="SECONDS",
                        help="maximum wait for a quiet machine before each case")
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER / "results.jsonl",
                        help="where results are appended (default: bench/results.jsonl)")
    options = parser.parse_args()
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats must be at least 1")
    return options


def list_cases():
    for case in CASES:
        print(f"{case.name:19} {case.summary}")
        for claim in case.claims:
            print(f"{'':19}   {claim.name}: {claim.wish()}")


def measure(case, runner, options):
    """All repeats of a case; the values of each side and metric, in the order of measurement."""
    repeats = options.repeats or (case.repeats_quick if options.quick else case.repeats)
    measure_pair = case.prepare(runner)
    values = {side: {} for side in case.sides}
    for repeat in range(repeats):
        found = measure_pair(runner, repeat, repeats)
        for side, metrics in found.items():
            for metric, value in metrics.items():
                values[side].setdefault(metric, []).append(value)
        shown = case.claims[0]
        say(f"  {repeat + 1}/{repeats}: " + ", ".join(
            f"{side} {verdict.short(found[side][shown.metric])} {shown.unit}"
            for side in case.sides))
    return values


def run_case(case, runner, options):
    """Measures a case and judges its claims; returns one line of results.jsonl."""
    say(f"{case.name}: {case.summary}")
    busy = machine.wait_until_quiet(options.wait)
    if busy > machine.BUSY_MAX:
        say(f"  warning: the machine is {busy:.0%} busy with other work; ratios will be inaccurate")
    load, watch = machine.load_average(), machine.Watch()
    runner.commands.clear()
    line = {"case": case.name, "quick": options.quick, "load_average": load}
    try:
        values = measure(case, runner, options)
        line["values"] = values
        line["claims"] = [verdict.judge(claim, case.sides, values) for claim in case.claims
                          if not claim.optional or
                          all(claim.metric in values[side] for side in case.sides)]
    except Broken as why:
        say(f"  not measured: {why}")
        line["claims"] = [verdict.unmeasured(claim, str(why)) for claim in case.claims
                          if not claim.optional]
    line["foreign_cpu"] = round(watch.foreign_share(), 4)
    below = f"{FOLDER.parent}/"
    line["commands"] = {label: command.replace(below, "")
                        for label, command in runner.commands.items()}
    if line["foreign_cpu"] > machine.BUSY_MAX:
        say(f"  warning: other work used {line['foreign_cpu']:.0%} of the machine")
    return line


def main():
    options = parse_options()
    if options.list:
        list_cases()
        return 0
    if not pathlib.Path(options.program).is_file():
        say(f"bench: {options.program} not found; build it first (make)")
        return 1

    if options.isa:
        machine.limit_isa(options.isa)
    runner = Runner(options.program, options.torch_python or ["/usr/bin/python3"],
                    quick=options.quick, compiled=options.compiled)
    facts = machine.facts(FOLDER.parent)
    say(f"{facts['cpu']}, {facts['isa']}, {facts['cores']} cores, Linux {facts['kernel']}, "
        f"load average {machine.load_average()}")
    if machine.load_average() > 0.3 * facts["cores"]:
        say("warning: the load average is high; ratios on a busy machine are inaccurate")
    lines = []
    for case in CASES:
        if options.only and case.name not in options.only:
            continue
        line = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
                **facts, **run_case(case, runner, options), "versions": dict(runner.versions)}
        with options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        lines.append(line)
    print(verdict.table(lines))
    over_time = pathlib.Path(options.program).parent / "bench.html"
    over_time.write_text(page(history.read(options.out)), encoding="utf-8")
    say(f"over time: {over_time}")
    return 0 if all(c["verdict"] == "holds" for line in lines for c in line["claims"]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
