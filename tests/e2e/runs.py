#!/usr/bin/env python3
"""Finding recorded runs again: `runs`, `show`, `latest`, --dry-run, the user's defaults, and
anytime.read in Python."""
import os
import signal
import sys
import unittest

import support

try:
    import numpy
except ImportError:
    numpy = None

SMALL = ("--data", "synthetic:400,8,3", "--workers", 2, "--batch", 16, "--quiet")


class Runs(support.TestCase):
    def make(self, *options):
        """A run in runs/, and its path."""
        result = self.anytime("train", *SMALL, "--json", *options).result
        newest = self.anytime("runs", "--json").result["runs"][-1]
        self.assertEqual(newest["strategy"], result["strategy"])
        return newest["run"]

    def listed(self, *options):
        return [run["run"] for run in self.anytime("runs", "--json", *options).result["runs"]]

    def test_runs_are_listed_filtered_and_sorted(self):
        self.assertEqual(self.listed(), [])
        self.assertIn("no runs", self.anytime("runs").out)
        slow = self.make("--steps", 3, "--lr", 0.5)
        fast = self.make("--steps", 9, "--strategy", "amb")
        self.assertEqual(self.listed(), [slow, fast])
        self.assertEqual(self.listed("--where", "strategy=amb"), [fast])
        self.assertEqual(self.listed("--where", "steps<9,lr>=0.5"), [slow])
        self.assertEqual(self.listed("--where", "strategy!=amb"), [slow])
        self.assertEqual(self.listed("--sort", "-steps"), [fast, slow])
        self.assertEqual(self.listed("--sort", "lr"), [fast, slow])
        table = self.anytime("runs", "--columns", "run,lr,test.loss").out.splitlines()
        self.assertEqual(table[0].split(), ["run", "lr", "test.loss"])
        self.assertEqual(table[2].split()[:2], [slow, "0.5"])
        self.assertIn("none of 2 runs", self.anytime("runs", "--where", "steps>9").out)
        for wrong in (("--where", "strategy"), ("--columns", ","), ("--where", "step>3"),
                      ("--columns", "run,stepz"), ("--sort", "-batches")):
            self.assert_complaint(self.anytime("runs", *wrong, code=support.USAGE), wrong[0])
        self.assert_complaint(self.anytime("runs", "nowhere", code=support.MISSING), "nowhere",
                              "remove")

    def test_worlds_and_runs_that_were_stopped_are_told_apart(self):
        stopped = self.start(*support.SMALL, "--workers", 2, "--steps", 10 ** 9)
        stopped.wait_steps(3)
        stopped.signal(signal.SIGTERM)
        self.assertEqual(stopped.wait().code, support.STOPPED)
        self.make("--steps", 3, "--world", "sim", "--sample-time", "1ms")
        rows = self.anytime("runs", "list", stopped.folder, "runs", "--json").result["runs"]
        self.assertEqual([(row["state"], row["world"]) for row in rows],
                         [("stopped", "local"), ("finished", "sim")])

    def test_runs_of_a_comparison_are_listed_by_its_folder(self):
        self.anytime("compare", "fmb", "amb", *SMALL, "--steps", 3, "--repeats", 1, "--out", "both",
                     "--plots", "none")
        self.assertEqual(sorted(self.listed("both")), ["both/amb-1", "both/fmb-1"])

    def test_only_runs_that_are_over_are_removed(self):
        run = self.make("--steps", 3)
        (self.folder / "mine").mkdir()
        for name in ("mine", "nothing"):
            ended = self.anytime("runs", "remove", run, name, code=support.MISSING)
            self.assert_complaint(ended, name)
        self.assertTrue((self.folder / run).exists())  # all are checked first
        self.anytime("runs", "remove", run)
        self.assertFalse((self.folder / run).exists())
        self.assertTrue((self.folder / "mine").exists())
        busy = self.start(*SMALL, "--seconds", 600)
        support.wait_until(lambda: (busy.folder / "run.lock").exists(), "the run has started")
        self.assertEqual(self.listed(busy.folder, "--where", "state=running"), [str(busy.folder)])
        ended = self.anytime("runs", "remove", busy.folder, code=support.USAGE)
        self.assert_complaint(ended, "in use")

    def test_the_newest_run_is_called_latest(self):
        ended = self.anytime("show", "latest", code=support.MISSING)
        self.assert_complaint(ended, "runs/")
        self.make("--steps", 3)
        run = self.make("--steps", 4)
        for name in ("latest", "runs/latest", run, run.removeprefix("runs/")):
            with self.subTest(name=name):
                shown = self.anytime("show", name).out
                self.assertIn("4 steps", shown)
                self.assertIn("anytime train", shown.splitlines()[0])
                self.assertEqual(self.anytime("show", name, "--json").result["steps"], 4)
        self.assertEqual(self.anytime("eval", "latest", "--json").result["run"], run)
        resumed = self.anytime("train", "--resume", "latest", "--steps", 7, "--json")
        self.assertEqual(resumed.result["steps"], 7)

    def test_a_dry_run_checks_everything_and_writes_nothing(self):
        ended = self.anytime("train", *SMALL, "--steps", 10, "--dry-run")
        for words in ("27 parameters", "400 training samples", "10 steps", "memory", "nothing was"):
            self.assertIn(words, ended.out)
        plan = self.anytime("simulate", *SMALL, "--epochs", 2, "--dry-run", "--json").result
        self.assertEqual((plan["steps"], plan["parameters"]), (25, 27))
        self.assertGreater(plan["seconds"], 0)
        several = self.anytime("compare", "fmb", "amb", *SMALL, "--epochs", 2, "--dry-run").out
        self.assertIn("would make 6 runs: 2 entries, 3 repeats each", several)
        self.assertRegex(several, r"\nfmb +32 +25 ")
        grid = self.anytime("sweep", "--over", "lr=0.1,0.2", *SMALL, "--seconds", 2, "--dry-run",
                            "--json").result
        self.assertEqual((len(grid["entries"]), grid["seconds"]), (2, 12))
        self.anytime("train", *SMALL, "--dry-run", "--data", "nothing", code=support.MISSING)
        self.anytime("train", *SMALL, "--dry-run", "--latency", "1s", code=support.USAGE)
        self.assertEqual(list(self.folder.rglob("*")), [])


class Defaults(support.TestCase):
    def plan(self, *options, text, **variables):
        folder = self.folder / "anytime"
        folder.mkdir(exist_ok=True)
        (folder / "config").write_text(text)
        env = {**os.environ, "XDG_CONFIG_HOME": str(self.folder), **variables}
        return self.anytime("train", "--data", "synthetic:400,8,3", "--workers", 1, "--dry-run",
                            "--json", *options, env=env).result

    def test_defaults_of_the_user_apply_unless_an_option_is_given(self):
        text = "batch = 5  # mine\nplots = none\n"  # of another verb
        self.assertEqual(self.plan(text=text)["batch"], 5)
        self.assertEqual(self.plan("--batch", 7, text=text)["batch"], 7)
        self.assertEqual(self.plan(text=text, ANYTIME_CONFIG="")["batch"], 64)

    def test_a_resumed_run_keeps_its_own_settings(self):
        env = {**os.environ, "XDG_CONFIG_HOME": str(self.folder)}
        run = self.folder / "run"
        self.anytime("train", *SMALL, "--steps", 3, "--run", run)
        self.plan(text="batch = 5\nlr = 0.7\n")
        result = self.anytime("train", "--resume", run, "--steps", 5, "--json", env=env).result
        self.assertEqual((result["options"]["batch"], result["options"]["lr"]), (16, 0.1))

    def test_an_unknown_option_is_refused_with_file_and_line(self):
        folder = self.folder / "anytime"
        folder.mkdir()
        (folder / "config").write_text("\nbach = 5\n")
        env = {**os.environ, "XDG_CONFIG_HOME": str(self.folder)}
        ended = self.anytime("models", "list", code=support.USAGE, env=env)
        self.assert_complaint(ended, "config:2", "--bach")


@unittest.skipIf(numpy is None, f"{sys.executable} has no numpy (package python3-numpy)")
class Python(support.TestCase):
    def test_runs_have_the_names_that_the_program_understands(self):
        sys.path.insert(0, str(support.ROOT / "python"))
        import anytime
        ended = self.train(*SMALL, "--steps", 5)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        os.makedirs("runs")
        os.rename(ended.folder, "runs/mine")
        for name in ("latest", "runs/latest", "mine", "runs/mine"):
            self.assertEqual(anytime.read(name).result["steps"], 5)
            self.assertTrue(anytime.weights(name))
        self.assertRaisesRegex(anytime.Error, "no such run", anytime.read, "yours")

    def test_a_run_is_read_as_arrays(self):
        sys.path.insert(0, str(support.ROOT / "python"))
        import anytime
        ended = self.train(*SMALL, "--steps", 5)
        run = anytime.read(ended.folder)
        self.assertEqual(len(run.steps["step"]), 5)
        self.assertEqual(len(run.rounds["time"]), 10)
        self.assertLess(len(repr(run)), 300)  # a notebook shows it
        kinds = list(run.events["kind"])
        self.assertEqual(kinds.count("apply"), 5)
        self.assertEqual(kinds.count("message"), 10)
        self.assertEqual(set(run.events["worker"][run.events["kind"] == "message"]), {1, 2})
        self.assertTrue((numpy.diff(run.events["time"]) >= 0).all())
        self.assertEqual(run.events["version"][-1], 5)
        log = ended.folder / "events.bin"
        whole = log.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1):  # torn: read as far as it goes
            log.write_bytes(whole[:size])
            self.assertLess(len(anytime.read(ended.folder).events["time"]), len(kinds))

    def test_events_of_all_parts_of_a_resumed_run_are_read(self):
        sys.path.insert(0, str(support.ROOT / "python"))
        import anytime
        ended = self.train(*SMALL, "--steps", 5)
        for steps in (8, 11):
            self.anytime("train", "--resume", ended.folder, "--steps", steps)
        events = anytime.read(ended.folder).events
        self.assertEqual(list(events["kind"]).count("start"), 3)
        self.assertEqual(list(events["kind"]).count("apply"), 11)
        self.assertEqual(events["version"].max(), 11)
        self.assertTrue((numpy.diff(events["time"]) >= 0).all())

    def test_a_table_that_ends_within_a_line_is_read_up_to_it(self):
        sys.path.insert(0, str(support.ROOT / "python"))
        import anytime
        ended = self.train(*SMALL, "--steps", 5)
        table = ended.folder / "collect_stats.csv"
        whole = table.read_bytes()
        last = len(whole.splitlines(keepends=True)[-1])
        for missing in range(1, last + 1):
            table.write_bytes(whole[:-missing])
            samples = anytime.read(ended.folder).steps["total_samples"]
            self.assertEqual(list(samples), [32] * 4, missing)


if __name__ == "__main__":
    support.main()
