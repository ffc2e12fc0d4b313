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
import made_data  # noqa: E402
import pages  # noqa: E402
import progress  # noqa: E402
import runs  # noqa: E402
import section  # noqa: E402
import stats  # noqa: E402
from chapters import CHAPTERS, central  # noqa: E402

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
            del result["cost_seconds"], result["processor_seconds"]  # no other number may differ
        self.assertEqual(first, again)
        results.put(run, first)
        self.assertEqual(results.get(run), json.loads(json.dumps(first)))
        self.assertEqual([test[1] for test in first["tests"]], [2, 4, 6])
        self.assertEqual(sum(first["rounds"]["num_samples"].values()), 6 * 3)

    def test_a_changed_number_is_found(self):
        kept = runs.execute(support.ANYTIME, runs.Run(*TINY))
        self.assertIsNone(check.difference(kept, kept))
        slow = {**kept["result"], "seconds": 2 * kept["result"]["seconds"], "params_hash": "other"}
        elsewhere = {**kept, "instructions": "other"}
        self.assertIn("seconds", check.difference(elsewhere, {**kept, "result": slow}))
        rounded = {**kept["result"], "params_hash": "other"}
        self.assertIsNone(check.difference(elsewhere, {**kept, "result": rounded}))
        self.assertEqual(check.difference(kept, {**kept, "result": rounded}), "other bits")

    def test_progress_says_how_long_the_rest_takes(self):
        todo = [runs.Run(*TINY, "--seed", seed) for seed in range(4)]
        now = [0.0]
        shown = progress.Progress(todo, {todo[0].command: 10, todo[1].command: 30},
                                  clock=lambda: now[0])
        self.assertEqual(shown.seconds_left(), 10 + 30 + 20 + 20)  # unknown ones take the mean
        now[0] = 20.0
        line = shown.line(todo[0], 20)  # twice as long as expected: a slower machine
        self.assertIn("1 of 4 runs, 20 s, about 2 min 20 s left", line)
        unknown = progress.Progress(todo, {}, clock=lambda: now[0])
        self.assertIsNone(unknown.seconds_left())
        self.assertIn("about 1 min 0 s left", unknown.line(todo[0], 20))

    def test_a_file_in_criteos_format_is_read_and_can_be_learnt(self):
        made_data.write_criteo(self.folder, [2000])
        rows = [line.split("\t") for line in (self.folder / "train.txt").read_text().splitlines()]
        self.assertEqual({len(row) for row in rows}, {40})
        self.assertTrue(any("" in row for row in rows), "some fields are missing")
        clicks = sum(row[0] == "1" for row in rows) / len(rows)
        self.assertTrue(0.2 < clicks < 0.35, clicks)
        ended = self.anytime("simulate", "--model", "sparse-lr", "--data",
                             f"criteo:{self.folder}/train.txt", "--test-data",
                             f"criteo:{self.folder}/test.txt", "--hash-bits", 16, "--workers", 2,
                             "--batch", 10, "--epochs", 5, "--lr", 0.1, "--sample-time", "1ms",
                             "--run", self.folder / "clicks", "--json", "--quiet")
        self.assertGreater(ended.result["test"]["auc"], 0.6)

    def test_columns_of_numbers_are_aligned(self):
        table = pages.Table(["net", "ratio"], [["a", "1.23 [1.0, 1.5]"], ["b", "12 ± 0.3"]]).html()
        self.assertIn('<td class="number">12 ± 0.3</td>', table)
        self.assertIn("<td>a</td>", table)

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

    def test_the_figures_of_the_readme_are_those_of_the_book(self):
        readme = " ".join((support.ROOT / "README.md").read_text().split())
        for net in (central.MNIST, central.CIFAR10):
            kept = runs.Results(PAGES / "results")
            found = {name: kept.get(run) for name, run in net.runs().items()}
            with self.subTest(net=net.name):
                self.assertIn(stats.show_ratio(central.ratios(net, found)["amb"]), readme)

    def test_no_result_belongs_to_no_chapter(self):
        every = [run for chapter in CHAPTERS for part in chapter.SECTIONS
                 for run in part.runs.values()]
        unused = runs.Results(PAGES / "results").unused(every)
        self.assertEqual(unused, [], "remove them with `python3 book --no-run --prune`")


if __name__ == "__main__":
    support.main()
