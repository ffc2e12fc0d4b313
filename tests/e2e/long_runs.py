#!/usr/bin/env python3
"""A run that outgrows --record-limit: its files stay small, and what readers say stays exact.

In virtual time, so that a run of days takes seconds and has the same files every time.
"""
import os
import pathlib
import re
import signal
import sys

import support

LIMIT = 400_000
LONG = ("--world", "sim", *support.SMALL, "--workers", 4, "--sample-time", "1ms", "--steps", 8000,
        "--eval-every", 40)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))


def size(folder):
    return sum(path.stat().st_size for path in folder.iterdir()
               if path.name.endswith((".csv", ".bin")))


def metrics(text):
    """Values by name and labels, without the run's name and what depends on the clock."""
    found = {}
    for line in text.splitlines():
        name, value = line.rsplit(" ", 1)
        if not line.startswith("#") and "silence" not in name and "run_info" not in name:
            found[re.sub(r'run="[^"]*",?', "", name)] = float(value)
    return found


class LongRuns(support.TestCase):
    def pair(self, *arguments):
        """The same run with a limit and without."""
        small = self.train(*LONG, *arguments, "--record-limit", f"{LIMIT}B")
        whole = self.train(*LONG, *arguments, "--record-limit", "none")
        return small, whole

    def seen(self, run):
        return metrics(self.anytime("watch", run.folder, "--once").out)

    def test_files_stay_small_and_the_run_is_the_same(self):
        for strategy in ("amb", "async", "ssp"):
            with self.subTest(strategy):
                small, whole = self.pair("--strategy", strategy)
                self.assertLess(size(small.folder), LIMIT)
                self.assertGreater(size(small.folder), LIMIT / 2)
                self.assertGreater(size(whole.folder), 4 * LIMIT)
                self.assertEqual(small.err.count("only samples of the steps"), 1, small)
                for key in ("steps", "params_hash", "trace_hash", "samples", "worker"):
                    self.assertEqual(small.result[key], whole.result[key], key)

    def test_readers_have_exact_totals(self):
        for strategy in ("amb", "async-fmb"):
            with self.subTest(strategy):
                small, whole = self.pair("--strategy", strategy, "--straggler", "niagara")
                some, everything = self.seen(small), self.seen(whole)
                self.assertEqual(set(some), set(everything))
                for name, value in everything.items():
                    # Of a report without a recorded order, some times are not known exactly.
                    self.assertAlmostEqual(some[name], value, delta=1e-6 + abs(value) * 1e-9,
                                           msg=name)

    def test_samples_are_complete_steps_and_become_rare(self):
        run = self.train(*LONG, "--record-limit", f"{LIMIT}B")
        steps = [int(row["step"]) for row in run.table("collect_stats.csv")]
        self.assertEqual(steps, sorted(set(steps)))
        thinned = next(i for i in range(len(steps)) if steps[i] != i + 1)
        gaps = [b - a for a, b in zip(steps, steps[1:]) if b > a + 1]
        self.assertGreater(thinned, 100)
        self.assertGreater(len(gaps), 3)
        self.assertGreater(gaps[-1], gaps[0])
        rounds = [int(row["master_step"]) + 1 for row in run.table("worker_stats.csv")]
        self.assertEqual([rounds.count(step) for step in steps], [4] * len(steps))

    def test_replay_says_where_the_log_stops_being_complete(self):
        run = self.train(*LONG, "--record-limit", f"{LIMIT}B")
        replay = self.anytime("replay", run.folder)
        self.assertIn("what follows cannot be replayed", replay.err)
        self.assertIn("every action agrees", replay.out)
        complete = self.anytime("replay", self.train(*LONG, "--steps", 100).folder)
        self.assertEqual(complete.err, "")

    def test_every_reader_copes(self):
        run = self.train(*LONG, "--record-limit", f"{LIMIT}B")
        report = self.anytime("report", run.folder)
        self.assertIn("the event log leaves out steps after step", report.err)
        self.assertIn("8000", report.out)
        predicted = self.anytime("simulate", "--from", run.folder, "--steps", 50, "--json").result
        self.assertEqual(predicted["steps"], 50)
        self.assertIn("amb", self.anytime("advise", run.folder).out)

    def test_python_reads_it(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("numpy is not installed")
        import anytime
        run = self.train(*LONG, "--record-limit", f"{LIMIT}B")
        read = anytime.read(run.folder)
        self.assertIn("totals", set(read.events["kind"]))
        self.assertEqual(read.events["kind"][-1], "evaluated")
        self.assertEqual(read.events["version"].max(), 8000)
        self.assertEqual(len(read.steps["step"]), len(run.table("collect_stats.csv")))
        longest = max(len(text) for text in read.events["text"])  # totals
        memory = sum(column.nbytes for column in read.events.values())
        self.assertLess(memory, len(read.events["text"]) * longest)

    def test_a_resumed_run_goes_on_with_exact_totals(self):
        whole = self.train(*LONG, "--record-limit", "none")
        run = self.start(*LONG, "--steps", 4000, "--record-limit", f"{LIMIT}B",
                         "--checkpoint-every", 1500).wait()
        self.assertEqual(run.code, support.DONE, run)
        again = self.resume(run.folder, "--steps", 8000).wait()
        self.assertEqual(again.code, support.DONE, again)
        self.assertEqual(again.result["params_hash"], whole.result["params_hash"])
        self.assertLess(size(run.folder), 1.05 * LIMIT)
        some, everything = self.seen(again), self.seen(whole)
        for name in ("anytime_steps_total", "anytime_samples_used_total", "anytime_seconds"):
            key = next(known for known in everything if known.startswith(name + "{"))
            self.assertAlmostEqual(some[key], everything[key], delta=1e-3, msg=name)

    def test_a_log_that_lacks_its_end_goes_on_with_exact_totals(self):
        """As after a full disk, or a power cut."""
        for limit in ("1GB", "none"):
            with self.subTest(limit=limit):
                run = self.train(*LONG, "--steps", 200, "--checkpoint-every", 100,
                                 "--record-limit", limit)
                log = run.folder / "events.bin"
                log.write_bytes(log.read_bytes()[:4000])
                again = self.resume(run.folder, "--steps", 300).wait()
                self.assertEqual(again.code, support.DONE, again)
                seen = {name.partition("{")[0]: value for name, value in self.seen(again).items()}
                self.assertEqual(seen["anytime_steps_total"], 300)
                self.assertEqual(seen["anytime_samples_used_total"],
                                 again.result["samples"]["used"])
                self.anytime("replay", run.folder)

    def test_real_time_with_deaths(self):
        run = self.start(*support.SMALL, "--workers", 3, "--strategy", "async", "--steps", 10**8,
                         "--record-limit", f"{LIMIT}B", "--checkpoint-every", "0")
        run.wait_said("only samples of the steps")
        for _ in range(3):
            run.wait_working()
            victim = run.workers()[1]
            os.kill(victim["pid"], signal.SIGKILL)
            run.wait_until(lambda: run.workers()[1]["incarnation"] > victim["incarnation"],
                           "a replacement")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assertLess(size(run.folder), 1.3 * LIMIT)
        seen = self.seen(ended)
        used = next(v for k, v in seen.items() if k.startswith("anytime_samples_used_total"))
        self.assertEqual(used, ended.result["samples"]["used"])

    def test_sizes_that_make_no_sense_are_refused(self):
        for wrong in ("0", "1kB", "-5GB", "5XB", "many"):
            self.assert_complaint(self.train("--record-limit", wrong, code=support.USAGE),
                                  "--record-limit", wrong)


if __name__ == "__main__":
    support.main()
