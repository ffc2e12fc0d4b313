"""Turns measured values into ratios, ratios into verdicts, and verdicts into a table."""
import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a case claims: the ratio of its first side to its second in one metric.

    `judge` selects the statistic: `best` uses each side's best run (noise only slows a run down),
    `median` the median of the ratios of paired runs (for figures that vary in both directions),
    `mean` the means of both sides."""
    name: str
    metric: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    upper_at_most: float | None = None  # for the upper 95 % limit of the median
    goal: float | None = None           # not part of the verdict
    best: str = "high"                  # or `low`: which direction is better
    judge: str = "best"
    invert: bool = False                # second / first: how many times faster
    optional: bool = False              # left out where a side did not measure it

    def wish(self):
        """The claim as short text."""
        parts = ((">= {:g}", self.at_least), ("<= {:g}", self.at_most),
                 ("95 % sure <= {:g}", self.upper_at_most), ("goal {:g}", self.goal))
        return ", ".join(text.format(number) for text, number in parts if number is not None) or "-"

    def holds(self, ratio, upper):
        if self.at_least is not None and ratio < self.at_least:
            return False
        if self.at_most is not None and ratio > self.at_most:
            return False
        return self.upper_at_most is None or (upper is not None and upper <= self.upper_at_most)


def median_upper_limit(values, confidence=0.95):
    """One-sided upper limit for the median, by order statistics, without assumptions on the noise.

    The k-th smallest of n values is above the median with the probability that fewer than k of n
    fair coins show heads. None if even the largest value is not sure enough (n < 5)."""
    count = len(values)
    below = 0
    for rank, value in enumerate(sorted(values), 1):
        below += math.comb(count, rank - 1)
        if below >= confidence * 2 ** count:
            return value
    return None


def judge(claim, sides, values):
    """The verdict on one claim, as stored in results.jsonl."""
    first, second = (values[side][claim.metric] for side in sides)
    best = max if claim.best == "high" else min
    center = {"best": best, "median": statistics.median, "mean": statistics.fmean}[claim.judge]
    if claim.invert:
        pairs = [b / a for a, b in zip(first, second)]
        ratio = center(second) / center(first)
    else:
        pairs = [a / b for a, b in zip(first, second)]
        ratio = center(first) / center(second)
    upper = None
    if claim.judge == "median":
        ratio, upper = statistics.median(pairs), median_upper_limit(pairs)
    return {"claim": claim.name, "unit": claim.unit, "wish": claim.wish(), "judge": claim.judge,
            "sides": {side: summary(numbers, center)
                      for side, numbers in zip(sides, (first, second))},
            "ratio": ratio, "ratio_low": min(pairs), "ratio_high": max(pairs),
            "ratio_upper95": upper, "verdict": "holds" if claim.holds(ratio, upper) else "FAILS"}


def summary(numbers, center):
    """The figure of a side, and the range of its runs as a share of the largest."""
    largest = max(numbers)
    return {"value": center(numbers),
            "spread": (largest - min(numbers)) / largest if largest else 0.0}


def unmeasured(claim, why):
    return {"claim": claim.name, "unit": claim.unit, "wish": claim.wish(), "verdict": "unmeasured",
            "why": why}


def short(number):
    """A figure with four significant digits."""
    if number >= 10000:
        return f"{number:,.0f}"
    if number >= 0.01 or number == 0:
        return f"{number:.4g}"
    return f"{number * 1e6:.4g}e-6"


HEAD = ("case", "claim", "first (spread)", "second (spread)", "ratio", "range", "wanted",
        "verdict", "noise")


def row(line, claim):
    """The cells of one claim; noise is the share of the machine used by other work."""
    name, noise = f"{claim['claim']}, {claim['unit']}", f"{line['foreign_cpu']:.0%}"
    if "ratio" not in claim:
        return (line["case"], name, "", "", "", "", claim["wish"], claim["verdict"], noise)
    sides = [f"{side} {short(found['value'])} ({found['spread']:.0%})"
             for side, found in claim["sides"].items()]
    span = f"{short(claim['ratio_low'])} .. {short(claim['ratio_high'])}"
    if claim["ratio_upper95"] is not None and "95 %" in claim["wish"]:
        span += f", 95 % < {short(claim['ratio_upper95'])}"
    return (line["case"], name, *sides, short(claim["ratio"]), span, claim["wish"],
            claim["verdict"], noise)


def rows_of(lines):
    return [row(line, claim) for line in lines for claim in line["claims"]]


def table(lines):
    """All claims of these result lines as text, one row per claim."""
    rows = [HEAD, *rows_of(lines)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
                     for cells in rows)


def markdown(lines):
    """The same as a Markdown table."""
    rows = [HEAD, ("---",) * len(HEAD), *rows_of(lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
                     for cells in rows)
