#!/usr/bin/env python3
"""Every target of the Makefile runs in continuous integration, or is listed here and why."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

ELSEWHERE = {
    "all": "part of make test",
    "deps": "part of make test",
    "demo": "takes 100 seconds and asserts nothing; tools/test_bare.sh runs it, and docs.README a "
            "comparison like it",
    "swarm": "unit.step_swarm runs some seeds; the target is for more of them",
    "fuzz": "searches without end; make test runs every target over its corpus",
    "bench": "needs a quiet machine",
    "pictures": "drives a browser for minutes, and pictures differ from run to run",
    "test-torch2": "downloads 2.5 GB",
    "test-loaded": "runs make test many times, which takes hours",
    "coverage": "takes minutes and asserts nothing",
    "debug": "the same sources as make, for a debugger",
    "format": "make lint checks the format",
    "clean": "removes what continuous integration needs",
    "help": "prints the targets",
}


def main():
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set(re.findall(r"\bmake ([a-z0-9-]+)", (ROOT / ".ci/run").read_text()))
    wrong = [f"make {name}: neither in .ci/run nor listed in tests/docs/targets.py"
             for name in sorted(targets - called - set(ELSEWHERE))]
    wrong += [f"make {name}: listed in tests/docs/targets.py, but there is no such target, or "
              ".ci/run calls it" for name in sorted(set(ELSEWHERE) - (targets - called))]
    print("\n".join(wrong) or f"{len(targets)} targets")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
