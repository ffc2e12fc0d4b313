"""Plots as SVG text: curves and histograms, alone or in a grid. Equal input gives equal bytes."""
import math
from xml.sax.saxutils import escape

COLORS = ("#1f6fb4", "#c43d3d", "#3a8f3a", "#8a5bb0", "#c77f1a", "#4d4d4d", "#2aa0a8", "#b04a86")
WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 28, 44


class Curve:
    """points: [(x, y)]; dashed marks published data; bars draws a histogram."""

    def __init__(self, name, points, color=0, dashed=False, bars=False):
        self.name, self.color = name, COLORS[color % len(COLORS)]
        self.dashed, self.bars = dashed, bars
        self.points = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def ticks(low, high, count=5):
    """Round numbers between low and high."""
    span = (high - low) or 1
    step = 10 ** math.floor(math.log10(span / count))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def log_ticks(low, high):
    return [10.0 ** power for power in range(math.floor(low), math.ceil(high) + 1)
            if low - 1e-9 <= power <= high + 1e-9]


class Axis:
    """Maps values to pixels."""

    def __init__(self, values, start, end, log=False, zero=False):
        self.log, self.start, self.end = log, start, end
        values = [math.log10(value) for value in values if value > 0] if log else list(values)
        values = (values or [0, 1]) + ([0] if zero and not log else [])
        self.low, self.high = min(values), max(values)
        if self.high == self.low:
            self.high += 1

    def __call__(self, value):
        value = math.log10(max(value, 1e-30)) if self.log else value
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        if not self.log:
            return ticks(self.low, self.high)
        decades = log_ticks(self.low, self.high)
        return decades if len(decades) > 1 else [10 ** value for value in
                                                 ticks(self.low, self.high, 4)]


def plot(title, x_label, y_label, curves, x_log=False, y_log=False):
    """One plot as the inner part of an SVG document, WIDTH x HEIGHT."""
    bars = any(curve.bars for curve in curves)
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    across = Axis(xs, LEFT, WIDTH - RIGHT, x_log)
    up = Axis(ys, HEIGHT - BOTTOM, TOP, y_log, zero=bars)
    parts = [frame(title, x_label, y_label), *grid(across, up)]
    for curve in curves:
        parts.append((draw_bars if curve.bars else draw_line)(curve, across, up))
    parts += legend([curve for curve in curves if curve.name])
    return "\n".join(parts)


def frame(title, x_label, y_label):
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return (f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n'
            f'<text x="{WIDTH / 2:g}" y="18" text-anchor="middle" font-weight="bold">'
            f'{escape(title)}</text>\n'
            f'<text x="{WIDTH / 2:g}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}'
            f'</text>\n<text x="14" y="{middle:g}" text-anchor="middle" '
            f'transform="rotate(-90 14 {middle:g})">{escape(y_label)}</text>')


def grid(across, up):
    for value in across.ticks():
        x = across(value)
        yield (f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
               f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{value:g}'
               '</text>')
    for value in up.ticks():
        y = up(value)
        yield (f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
               f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')


def draw_line(curve, across, up):
    path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in curve.points)
    dash = ' stroke-dasharray="5 3"' if curve.dashed else ""
    marks = "" if len(curve.points) > 12 else "".join(
        f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{curve.color}"/>'
        for x, y in curve.points)
    return (f'<path d="M{path}" fill="none" stroke="{curve.color}" stroke-width="2"{dash}/>'
            f'{marks}')


def draw_bars(curve, across, up):
    floor = up(0)
    return "".join(f'<path d="M{across(x):.1f} {floor:.1f}V{up(y):.1f}" stroke="{curve.color}" '
                   'stroke-width="4" stroke-opacity="0.6"/>' for x, y in curve.points)


def legend(curves):
    """In the upper right corner, on a ground that lets no curve disturb it."""
    longest = max((len(curve.name) for curve in curves), default=0)
    if longest:
        width, height = 7.5 * longest + 42, 17 * len(curves) + 6
        yield (f'<rect x="{WIDTH - RIGHT - width:g}" y="{TOP}" width="{width:g}" '
               f'height="{height}" fill="#fff" fill-opacity="0.8"/>')
    for row, curve in enumerate(curves):
        y = TOP + 15 + 17 * row
        dash = ' stroke-dasharray="5 3"' if curve.dashed else ""
        yield (f'<path d="M{WIDTH - RIGHT - 26} {y - 4}h20" stroke="{curve.color}" '
               f'stroke-width="2"{dash}/><text x="{WIDTH - RIGHT - 31}" y="{y}" '
               f'text-anchor="end">{escape(curve.name)}</text>')


def document(plots, columns=2):
    """SVG of one or more plots in a grid."""
    columns = min(columns, len(plots))
    rows = -(-len(plots) // columns)
    size = f"{columns * WIDTH} {rows * HEIGHT}"
    cells = "\n".join(f'<g transform="translate({WIDTH * (index % columns)} '
                      f'{HEIGHT * (index // columns)})">\n{cell}\n</g>'
                      for index, cell in enumerate(plots))
    letters = 12 if columns < 3 else 15  # three columns are shown smaller
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{columns * WIDTH}" font-family="sans-serif" font-size="{letters}">\n{cells}\n'
            '</svg>\n')
