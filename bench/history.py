#!/usr/bin/env python3
"""Shows the ratios of bench/results.jsonl over time, one table per claim.

    bench/history.py [--only CASE] [--last N] [FILE]
    bench/history.py --markdown     the newest result of each case on each machine, for the README
    bench/history.py --page FILE    a page with one chart per claim
"""
import argparse
import json
import pathlib
import sys

from page import machine_of, page
from verdict import markdown, short


def read(path):
    """The result lines of a file, oldest first; an incomplete line is reported and skipped."""
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            print(f"{path.name}:{number} is not JSON; skipped", file=sys.stderr)
    return sorted(lines, key=lambda line: line["date"])


def describe(line, claim):
    """One measurement of a claim: date, conditions, ratio."""
    head = (f"  {line['date'][:16]}  {line.get('commit') or '-':9}"
            f"  {'quick' if line['quick'] else 'full ':5}  busy {line['foreign_cpu']:4.0%}")
    if "ratio" not in claim:
        return f"{head}  {claim['verdict']}: {claim['why']}"
    sides = "  ".join(f"{name} {short(side['value'])}" for name, side in claim["sides"].items())
    return (f"{head}  {claim['ratio']:8.3f}x  {claim['ratio_low']:.3f}..{claim['ratio_high']:.3f}"
            f"  {claim['verdict']:6}  {sides} {claim['unit']}")


def show(lines, last):
    """One table per claim, in the order of first appearance."""
    claims = {}
    for line in lines:
        for claim in line["claims"]:
            key = (line["case"], claim["claim"], claim["wish"], machine_of(line))
            claims.setdefault(key, []).append(describe(line, claim))
    for (case, claim, wish, where), rows in claims.items():
        print(f"{case}: {claim}, {wish} ({where})")
        print("\n".join(rows[-last:]))


def show_markdown(lines):
    """The newest result of each case, one table per machine."""
    machines = {}
    for line in lines:
        machines.setdefault(machine_of(line), {})[line["case"]] = line
    for machine, newest in machines.items():
        dates = sorted(line["date"][:10] for line in newest.values())
        print(f"{machine}, {dates[0]} to {dates[-1]}:\n\n{markdown(newest.values())}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", nargs="?", type=pathlib.Path, metavar="FILE",
                        default=pathlib.Path(__file__).resolve().parent / "results.jsonl")
    parser.add_argument("--only", metavar="CASE", help="only this case")
    parser.add_argument("--markdown", action="store_true",
                        help="the newest result of each case as Markdown tables")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE",
                        help="write all claims over time as an HTML page")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="the last N of each")
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"{options.file} not found; run bench/run.py first", file=sys.stderr)
        return 1
    lines = [line for line in read(options.file) if options.only in (None, line["case"])]
    if options.page:
        options.page.write_text(page(lines), encoding="utf-8")
    elif options.markdown:
        show_markdown(lines)
    else:
        show(lines, max(options.last, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
