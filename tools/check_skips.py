#!/usr/bin/env python3
"""Which tests were skipped, and whether each of them may be.

    tools/check_skips.py BUILD-FOLDER LIST

Reads the log of the last ctest in the build folder. Each line of LIST is `TEST: REASON  # why`, a
regular expression for the name of the test and the beginning of what it says.
Exits with 1 if a test was skipped that is not on the list.
"""
import pathlib
import re
import sys

TEST = re.compile(r"^\d+/\d+ Testing: (\S+)$")
REASON = re.compile(r"^skipped: (.+)$")
FUNCTION = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\w+)$")  # by cmocka, after our reason


def skipped(log):
    """Pairs of test and reason, in the order of the log, each once."""
    test, explained, found = None, False, {}
    for line in log.splitlines():
        if begin := TEST.match(line):
            test, explained = begin[1], False
        elif reason := REASON.match(line):
            found[test, reason[1]] = explained = True
        elif function := FUNCTION.match(line):
            if not explained:
                found[test, f"{function[1]} does not say why"] = True
            explained = False
    return list(found)


def allowed(text):
    rows = (line.partition("  #")[0].strip() for line in text.splitlines())
    return [re.compile(row) for row in rows if row and not row.startswith("#")]


def main():
    build, rules = map(pathlib.Path, sys.argv[1:] if len(sys.argv) == 3 else sys.exit(__doc__))
    log = (build / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    may = allowed(rules.read_text())
    wrong = 0
    for test, reason in skipped(log):
        fine = any(rule.match(f"{test}: {reason}") for rule in may)
        wrong += not fine
        print(f"{'allowed' if fine else 'NOT ALLOWED'}: {test} was skipped: {reason}")
    if wrong:
        print(f"install what {wrong} tests miss, or add a line to {rules}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
