#!/usr/bin/env python3
"""Runs the commands of one page of the documentation, in the order of the page.

    tests/docs/run.py PAGE     README, guide_faq, ..: see commands.pages()
    tests/docs/run.py --list   every command and what is done with it

They run in one shell, in a folder of their own that has what a reader is said to have: the build
folder, the examples, and the files that the page talks about (fixtures.py). rules.py lists what is
changed or left out, and why. The first command that fails ends the test.
"""
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import commands
import fixtures
import rules

BOUND = 800


@functools.cache
def is_there(need, folder):
    return subprocess.run(["bash", "-c", need.program], cwd=folder, env=environment(folder),
                          capture_output=True, check=False).returncode == 0


def script(page, folder):
    """The shell script of a page, which says where it is before each command, the number of its
    commands, and why others are missing."""
    lines = [f". {shlex.quote(str(commands.ROOT / 'tests/docs/prelude.sh'))}"]
    count, reasons = 0, []
    for command in commands.commands(commands.pages()[page]):
        words, _ = commands.plan(command)
        if words is None:
            continue
        lacks = [need.package for need in rules.NEEDS
                 if re.search(need.pattern, words) and not is_there(need, folder)]
        if lacks:
            reasons.append(f"{command.place}: {lacks[0]} is not installed")
            continue
        count += 1
        lines += [f"say {shlex.quote(f'{command.place}: {words}')}", words]
    return "\n".join([*lines, "finish", ""]), count, reasons


def environment(folder):
    """As for a reader who has built the program, and whose home folder is this one."""
    chosen = {"HOME": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}",
              "XDG_CACHE_HOME": str(folder / ".cache"), "LC_ALL": "C.UTF-8",
              "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
              "OMPI_MCA_btl": "self,vader", "OMPI_MCA_oob_tcp_if_include": "lo",
              "OMPI_MCA_rmaps_base_oversubscribe": "1", "PYTHONPATH": str(folder / "python")}
    return {**os.environ, **chosen}


def run(page):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"anytime-docs-{page}-"))
    try:
        fixtures.furnish(folder, page, environment(folder))
        text, count, reasons = script(page, folder)
        done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment(folder),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=BOUND, check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(done.stdout)
    for reason in reasons:
        print(f"skipped: {reason}")
    print(f"{page}: {count} commands, exit code {done.returncode}")
    return 77 if done.returncode == 0 and count == 0 and reasons else done.returncode


def show():
    for path in commands.pages().values():
        for command in commands.commands(path):
            words, applied = commands.plan(command)
            why = "; ".join(rule.why for rule in applied)
            first = (words or command.text).splitlines()[0]
            print(f"{command.place}: {'NOT RUN' if words is None else 'run'}: {first}"
                  f"{f'  ({why})' if why else ''}")
    return 0


def check():
    """Every rule applies to a command: one that does not is about a page that has changed."""
    used = {rule for path in commands.pages().values() for command in commands.commands(path)
            for rule in commands.plan(command)[1]}
    idle = [rule for rule in (*rules.LEFT_OUT, *rules.CHANGED) if rule not in used]
    for rule in idle:
        print(f"tests/docs/rules.py: no command of the documentation matches {rule.pattern}")
    return 1 if idle else 0


if __name__ == "__main__":
    (what,) = sys.argv[1:] or sys.exit(__doc__)
    sys.exit(show() if what == "--list" else check() if what == "--check" else run(what))
