#!/usr/bin/env python3
"""Every experiment in examples/published runs from its file, with exact sample counts."""
import re

import support

FILES = sorted((support.ROOT / "examples" / "published").glob("*.conf"))

# Sweeps over batches in real time; all others are single simulations.
IN_REAL_TIME = [path for path in FILES if path.stem.startswith("clicks-")]

# Replaces the length and the data, which would make the test slow or dependent on downloads.
CUT = ("--steps", 20, "--record", "none", "--data", "synthetic:2000,784,10")


class Published(support.TestCase):
    def simulate(self, path, *arguments):
        self.runs += 1
        return self.anytime("simulate", "--config", path, *arguments, "--run",
                            self.folder / f"run{self.runs}", "--json", "--quiet")

    def each(self, check):
        for path in FILES:
            if path in IN_REAL_TIME:
                continue
            with self.subTest(file=path.name):
                check(path)

    def test_there_are_files(self):
        self.assertGreater(len(FILES), 20)

    def test_every_file_runs_and_its_ledger_adds_up(self):
        def check(path):
            ended = self.simulate(path, *CUT)
            self.assertEqual(ended.result["steps"], 20, ended)
            self.assertGreater(ended.result["seconds"], 0, ended)
            self.assert_ledger(ended)
        self.each(check)

    def test_a_file_gives_the_same_run_twice(self):
        def check(path):
            first, again = (self.simulate(path, *CUT).result for _ in range(2))
            self.assertEqual(first["trace_hash"], again["trace_hash"])
            self.assertEqual(first["params_hash"], again["params_hash"])
        self.each(check)

    def test_every_file_contains_its_command(self):
        def check(path):
            command = f"anytime simulate --config examples/published/{path.name}"
            self.assertIn(command, path.read_text())
        self.each(check)

    def test_files_for_sweeps_run_and_their_ledgers_add_up(self):
        self.assertEqual(len(IN_REAL_TIME), 2)
        for path in IN_REAL_TIME:
            for batch in (1, 100):
                with self.subTest(file=path.name, batch=batch):
                    ended = self.train("--config", path, "--batch", batch, "--samples", 2000,
                                       "--data", "synthetic-clicks:3000,100000")
                    self.assert_ledger(ended)
                    self.assertGreaterEqual(ended.result["samples"]["used"], 2000)

    def test_the_documentation_names_every_file(self):
        pages = (support.ROOT / "docs" / "book").glob("*.md")
        named = {name for page in pages
                 for name in re.findall(r"\b([a-z0-9-]+)\.conf\b", page.read_text())}
        self.assertEqual({path.stem for path in FILES} - named, set(), "not in the book")
        self.assertEqual(named - {path.stem for path in FILES}, set(), "named but does not exist")


if __name__ == "__main__":
    support.main()
