#!/usr/bin/env python3
"""Prints executed lines and branches by layer, the first folder below src/.

    tools/coverage_table.py SUMMARY.json    from gcovr --json-summary
"""
import collections
import json
import pathlib
import sys

COUNTS = ("line_covered", "line_total", "branch_covered", "branch_total")


def by_layer(files):
    """The four counts of each layer, by its name."""
    layers = collections.defaultdict(lambda: [0] * len(COUNTS))
    for row in files:
        source, layer, *_ = pathlib.PurePath(row["filename"]).parts
        if source != "src":
            raise SystemExit(f"{row['filename']} is not below src/")
        layers[layer] = [sum(pair) for pair in zip(layers[layer], map(row.get, COUNTS))]
    return dict(sorted(layers.items()))


def share(covered, total):
    return f"{100 * covered / total:6.1f} %" if total else "       -"


def main():
    (path,) = sys.argv[1:] or sys.exit(__doc__)
    layers = by_layer(json.loads(pathlib.Path(path).read_text())["files"])
    layers["all"] = [sum(column) for column in zip(*layers.values())]
    print(f"{'layer':10} {'lines':>8} {'executed':>9} {'branches':>9} {'executed':>9}")
    for layer, (lines_run, lines, branches_run, branches) in layers.items():
        print(f"{layer:10} {lines:8} {share(lines_run, lines):>9} {branches:9} "
              f"{share(branches_run, branches):>9}")


if __name__ == "__main__":
    main()
