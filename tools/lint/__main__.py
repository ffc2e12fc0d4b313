"""Checks beyond the compiler: layers, banned calls, sizes, headers, links, names, format.

    python3 tools/lint [--root DIR] [--list] [PATH...]

Prints one line per finding, FILE:LINE: [check] sentence, and exits with 1 when there are any. PATHs
restrict the findings to files below them. A new check is one file with a function check(tree) that
yields findings, and one entry in CHECKS.
"""
import argparse
import pathlib
import sys

import calls
import format
import headers
import layers
import links
import names
import shape
import words
from tree import Tree

CHECKS = (layers, calls, shape, headers, links, names, words, format)


def main():
    parser = argparse.ArgumentParser(prog="tools/lint", description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2],
                        help="the tree to check (default: the one that contains this program)")
    parser.add_argument("--list", action="store_true", help="list the checks, one line each")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="report only findings below PATH")
    options = parser.parse_args()

    if options.list:
        for check in CHECKS:
            print(f"{check.__name__:8} {check.__doc__.splitlines()[0]}")
        return 0

    tree = Tree(options.root)
    wanted = tuple(path.rstrip("/") for path in options.paths)
    findings = sorted(
        (finding.path, finding.line, check.__name__, finding.text)
        for check in CHECKS for finding in check.check(tree)
        if not wanted or any(finding.path == w or finding.path.startswith(w + "/") for w in wanted))
    for path, line, name, text in findings:
        print(f"{path}:{line}: [{name}] {text}")
    print(f"lint: {len(tree.files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
