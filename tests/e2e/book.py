#!/usr/bin/env python3
"""The book: its pages come from the kept results, and its runs can be repeated."""
import json
import pathlib
import subprocess
import sys

import support

BOOK = support.ROOT / "book"
PAGES = support.ROOT / "docs" / "book"
sys.path.insert(0, str(BOOK))
import check  # noqa: E402
import runs  # noqa: E402
import section  # noqa: E402
from chapters import CHAPTERS  # noqa: E402

TINY = ("simulate", "--model", "softmax", "--data", "synthetic:200,10,3", "--workers", "3",
        "--batch", "8", "--sample-time", "1ms", "--straggler", "niagara", "--steps", "6",
        "--eval-every", "2")
VERDICTS = (section.AGREES, section.DISAGREES, section.NOT_COMPARABLE, section.NOT_RUN)


class Book(support.TestCase):
    def build(self, *arguments):
        return subprocess.run([sys.executable, str(BOOK), "--program", str(support.ANYTIME),
                               "--out", str(self.folder / "book"), *arguments],
                              capture_output=True, text=True, timeout=600, check=False)

    def test_pages_are_those_of_the_kept_results(self):
        done = self.build("--no-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        made = sorted(path.relative_to(self.folder / "book")
                      for path in (self.folder / "book").rglob("*") if path.is_file())
        self.assertGreater(len(made), 5)
        for path in made:
            with self.subTest(page=str(path)):
                self.assertEqual((PAGES / path).read_text(),
                                 (self.folder / "book" / path).read_text(),
                                 "run `make book`, and commit docs/book")

    def test_cheap_runs_still_give_their_numbers(self):
        done = self.build("--quick", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"book: [1-9][0-9]* runs repeated, .* 0 with other numbers")

    def test_a_run_is_kept_and_gives_the_same_numbers_again(self):
        run, results = runs.Run(*TINY, rounds=True), runs.Results(self.folder / "results")
        self.assertIsNone(results.get(run))
        first, again = (runs.execute(support.ANYTIME, run) for _ in range(2))
        for result in (first, again):
            del result["cost_seconds"]  # real time, the only number that may differ
        self.assertEqual(first, again)
        results.put(run, first)
        self.assertEqual(results.get(run), json.loads(json.dumps(first)))
        self.assertEqual([test[1] for test in first["tests"]], [2, 4, 6])
        self.assertEqual(sum(first["rounds"]["num_samples"].values()), 6 * 3)

    def test_a_changed_number_is_found(self):
        result = runs.execute(support.ANYTIME, runs.Run(*TINY))["result"]
        self.assertIsNone(check.difference(result, result))
        other = {**result, "seconds": 2 * result["seconds"], "params_hash": "other"}
        self.assertIn("seconds", check.difference(result, other))

    def test_the_key_depends_on_the_command_and_on_its_files(self):
        config = pathlib.Path(self.folder / "a.conf")
        config.write_text("steps = 5\n")
        run = runs.Run("simulate", "--config", config)
        before = run.key
        config.write_text("steps = 6\n")
        self.assertNotEqual(run.key, before)
        self.assertNotEqual(runs.Run(*TINY).key, runs.Run(*TINY, "--seed", 2).key)

    def test_a_failed_run_is_explained(self):
        with self.assertRaisesRegex(runs.RunFailed, "no-such-strategy"):
            runs.execute(support.ANYTIME, runs.Run("simulate", "--strategy", "no-such-strategy"))

    def test_every_section_has_a_verdict(self):
        results = runs.Results(PAGES / "results")
        for chapter in CHAPTERS:
            for part in chapter.SECTIONS:
                with self.subTest(section=part.title):
                    kind, sentence = part.judge(results)
                    self.assertIn(kind, VERDICTS)
                    self.assertTrue(sentence.endswith("."), sentence)

    def test_no_result_belongs_to_no_chapter(self):
        every = [run for chapter in CHAPTERS for part in chapter.SECTIONS
                 for run in part.runs.values()]
        unused = runs.Results(PAGES / "results").unused(every)
        self.assertEqual(unused, [], "remove them with `python3 book --no-run --prune`")


if __name__ == "__main__":
    support.main()
