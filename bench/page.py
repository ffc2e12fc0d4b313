"""The history of all claims as one self-contained HTML page with a small chart per claim.

A dot is a measurement; its whisker spans the ratios of paired runs; the dashed line is the claim.
Hollow dots are quick runs or runs on a busy machine.
"""
import html
import re

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 170, 46, 12, 10, 22
NOISE_MAX = 0.05

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>anytime: speed over time</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1000px; padding: 0 1rem;
       color: #222; background: #fff }
section { display: inline-block; vertical-align: top; margin: 0 1rem 1.6rem 0; width: 470px;
          max-width: 100% }
h2 { font-size: 1rem; margin: 0 } p { margin: .1rem 0 .3rem; color: #555 }
svg { width: 100%; height: auto } text { font-size: 11px; fill: #555 }
.holds { fill: #0072b2; stroke: #0072b2 } .FAILS { fill: #d55e00; stroke: #d55e00 }
.rough { fill: #fff } .wish { stroke: #888; stroke-dasharray: 5 4 }
.whisker { stroke-width: 1.2; opacity: .6 } .line { fill: none; stroke: #0072b2; opacity: .35 }
.frame { stroke: #bbb }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #191919 } p, text { color: #aaa; fill: #aaa }
  .rough { fill: #191919 } }
</style></head><body>
<h1>Speed over time</h1>
<p>Ratios of the first side to the second, measured in one run on one machine. Orange dots failed
their claim; hollow dots are quick runs or runs on a busy machine.</p>
"""


def wishes(text):
    """The limits in the text of a claim: ">= 1.4, <= 2, goal 3" gives 1.4 and 2."""
    return [float(number) for number in re.findall(r"(?<!sure )[<>]= ([0-9.]+)", text)]


class Scale:
    """Maps a range of values to positions on the chart."""

    def __init__(self, values):
        low, high = min(values), max(values)
        margin = 0.08 * (high - low) or 0.05 * abs(high) or 1
        self.low, self.high = low - margin, high + margin

    def y(self, value):
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def marks(self):
        return [self.low + share * (self.high - self.low) for share in (0.08, 0.5, 0.92)]


def x_of(index, count):
    inside = WIDTH - LEFT - RIGHT
    return LEFT + inside * (0.5 if count == 1 else 0.03 + 0.94 * index / (count - 1))


def dot(line, claim, x, scale):
    rough = line["quick"] or line["foreign_cpu"] > NOISE_MAX
    sides = ", ".join(f"{name} {side['value']:.4g} {claim['unit']}"
                      for name, side in claim["sides"].items())
    tooltip = html.escape(f"{line['date'][:16]} {line.get('commit') or ''}: {claim['ratio']:.3f} "
                       f"({claim['verdict']}); {sides}; noise {line['foreign_cpu']:.0%}")
    kind = claim["verdict"]
    return (f'<g class="{kind}"><title>{tooltip}</title><line class="whisker" x1="{x:.1f}" '
            f'x2="{x:.1f}" y1="{scale.y(claim["ratio_low"]):.1f}" '
            f'y2="{scale.y(claim["ratio_high"]):.1f}"/>'
            f'<circle class="{"rough" if rough else kind}" cx="{x:.1f}" '
            f'cy="{scale.y(claim["ratio"]):.1f}" r="4"/></g>')


def frame(scale, first, last):
    parts = [f'<line class="frame" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
             f'<line class="frame" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" '
             f'y2="{HEIGHT - BOTTOM}"/>']
    parts += [f'<text x="{LEFT - 6}" y="{scale.y(mark) + 4:.1f}" text-anchor="end">{mark:.3g}'
              '</text>' for mark in scale.marks()]
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">{first[:10]}</text>')
    if last[:10] != first[:10]:
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{last[:10]}'
                     '</text>')
    return parts


def chart(measured):
    """One claim; `measured` has pairs of a result line and its claim, oldest first."""
    lines = wishes(measured[-1][1]["wish"])
    values = [claim[key] for _, claim in measured for key in ("ratio", "ratio_low", "ratio_high")]
    scale = Scale(values + lines)
    parts = frame(scale, measured[0][0]["date"], measured[-1][0]["date"])
    parts += [f'<line class="wish" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{scale.y(wish):.1f}" '
              f'y2="{scale.y(wish):.1f}"/>' for wish in lines]
    places = [x_of(i, len(measured)) for i in range(len(measured))]
    way = " ".join(f"{x:.1f},{scale.y(claim['ratio']):.1f}"
                   for x, (_, claim) in zip(places, measured))
    parts.append(f'<polyline class="line" points="{way}"/>')
    parts += [dot(line, claim, x, scale) for x, (line, claim) in zip(places, measured)]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'


def section(key, measured):
    case, claim, where = key
    line, newest = measured[-1]
    first, second = newest["sides"]
    return (f"<section><h2>{html.escape(case)}: {html.escape(claim)} "
            f"{newest['ratio']:.3g}</h2><p>{html.escape(first)} over {html.escape(second)}, wanted "
            f"{html.escape(newest['wish'])}; {html.escape(where)}, "
            f"{html.escape(line.get('commit') or 'no commit')}</p>{chart(measured)}</section>")


def machine_of(line):
    """What tells machines apart; lines of before 0.2.0 do not name their instruction set."""
    isa = f", {line['isa']}" if "isa" in line else ""
    return f"{line['cpu']}{isa}, {line['cores']} cores"


def page(lines):
    """All claims ever measured, in the order of first appearance."""
    claims = {}
    for line in lines:
        for claim in line["claims"]:
            if "ratio" in claim:
                key = (line["case"], claim["claim"], machine_of(line))
                claims.setdefault(key, []).append((line, claim))
    sections = "\n".join(section(key, measured) for key, measured in claims.items())
    return f"{HEAD}{sections}\n</body></html>\n"
