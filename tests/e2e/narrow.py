#!/usr/bin/env python3
"""A terminal of 60 columns: progress with bar and time left, and tables that do not wrap; and a
language that has no box characters."""
import os
import re
import subprocess
import unicodedata

import support
from support.screen import Terminal

COLUMNS = 60
RUN = (*support.SMALL, "--workers", 2, "--batch", 8)
SIMULATED = (*RUN, "--steps", 6, "--world", "sim", "--sample-time", "1ms", "--repeats", 3)

# Verbs that print tables; RUN is a finished run.
TABLES = (
    ("show", "RUN"),
    ("runs", "."),
    ("report", "RUN", "RUN", "--plots", "none"),
    ("compare", "fmb", "async", *SIMULATED, "--target", "loss=0.1", "--plots", "none", "--quiet"),
    ("sweep", "--over", "lr=0.1,0.2", *SIMULATED, "--plots", "none", "--quiet"),
    ("advise", "RUN"),
    ("slices", "--data", "synthetic:60,36,3", "--batches", 8, "--repeats", 1, "--plots", "none",
     "--quiet"),
    ("link", "--sizes", "4k", "--workers", 1, "--seconds", "10ms", "--quiet"),
    ("models", "list"),
    ("models", "show", "resnet18"),
    ("data", "list"),
    ("data", "info", "synthetic:60,36,3"),
    ("doctor",),
)


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Narrow(support.TestCase):
    def on_terminal(self, *words, **environment):
        """What a verb writes to a terminal, as lines."""
        terminal = Terminal(self, *words, columns=COLUMNS, both=True, **environment)
        code, _ = terminal.wait()
        self.assertEqual(code, support.DONE, terminal.said())
        return terminal.said().replace("\r\n", "\n").split("\n")

    def assert_tables_fit(self, lines):
        """Lines of a table have columns two blanks apart, or are rules; sentences may wrap."""
        for line in lines:
            if re.search(r"\S {2,}\S", line) or "──" in line or "---" in line:
                self.assertLessEqual(width(line), COLUMNS, "\n".join(lines))

    def test_tables_do_not_wrap(self):
        run = self.train(*RUN, "--steps", 40, "--straggler", "exp:0.001,0.002").folder
        for words in TABLES:
            with self.subTest(words=words[:2]):
                self.assert_tables_fit(
                    self.on_terminal(*[run if word == "RUN" else word for word in words]))

    def test_the_summary_of_a_run_does_not_wrap(self):
        lines = self.on_terminal("train", *RUN, "--steps", 20, "--quiet", "--run", "one")
        self.assert_tables_fit(lines)

    def test_progress_has_a_bar_and_the_time_left(self):
        terminal = Terminal(self, "train", *RUN, "--seconds", "100", "--run", "one",
                            "--sample-time", "100us", columns=COLUMNS)
        terminal.wait_shown(lambda screen: re.search(r"█.* step .*ETA \d", screen.text()),
                            "bar and time left")
        self.assertLessEqual(max(map(width, terminal.screen.rows)), COLUMNS)
        terminal.process.kill()

    def test_a_language_without_box_characters_gets_none(self):
        run = self.train(*RUN, "--steps", 20).folder
        environment = {**os.environ, "LANG": "C", "LC_ALL": "C"}
        for words in TABLES:
            with self.subTest(words=words[:2]):
                words = [str(run if word == "RUN" else word) for word in words]
                done = subprocess.run([support.ANYTIME, *words], cwd=self.folder, text=True,
                                      env=environment, capture_output=True, check=False,
                                      timeout=support.BOUND)
                self.assertEqual(done.returncode, support.DONE, done.stderr)
                self.assertTrue(done.stdout.isascii(), done.stdout)


if __name__ == "__main__":
    support.main()
