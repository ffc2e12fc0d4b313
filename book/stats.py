"""Means, intervals and times to a target."""
import math
import statistics

# 97.5 % quantiles of Student's distribution, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306,
           9: 2.262}


def interval(values):
    """(mean, half width of the 95 % interval); no width for fewer than three values."""
    mean = statistics.mean(values)
    if len(values) < 3:
        return mean, None
    return mean, STUDENT[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def ratio(numerators, denominators):
    """(mean, low, high): geometric mean of paired ratios with its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]
    mean, half = interval(logs)
    if half is None:
        return math.exp(mean), None, None
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def show_ratio(values):
    mean, low, high = values
    return f"{mean:.2f}" if low is None else f"{mean:.2f} [{low:.2f}, {high:.2f}]"


def show_mean(values, digits=3):
    mean, half = interval(values)
    return f"{mean:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def seconds_to(points, column, target):
    """When a curve [(seconds, ..)] first reached a loss (or fell below); None if it never did.

    Between the evaluation before and the one at which it was reached, the curve is a line.
    """
    before = None
    for point in points:
        value = point[column]
        if value <= target:
            if before is None or before[column] <= target:
                return point[0]
            share = (before[column] - target) / (before[column] - value)
            return before[0] + share * (point[0] - before[0])
        before = point
    return None


def smooth(points, column, width):
    """The curve with the mean of the last `width` values in one column."""
    rows = [list(point) for point in points]
    for index, row in enumerate(rows):
        window = points[max(0, index - width + 1):index + 1]
        row[column] = statistics.mean(point[column] for point in window)
    return rows
