#!/usr/bin/env python3
"""Workers die and their replacements cannot be forked or cannot start: the run goes on, or it ends
with the reason; it never hangs."""
import os
import signal
import unittest

import support

FAULTY = os.environ.get("ANYTIME_FAULTY", "")
# The hub forks the saver, the evaluator and two workers; the fifth fork is a replacement.
FIRST_REPLACEMENT = 5
LONG = ("--quiet", "--steps", 10 ** 9, "--workers", 2, "--sample-time", "100us")


@unittest.skipUnless(FAULTY, "anytime_faulty is not built")
class Replacements(support.TestCase):
    def start_faulty(self, fault, *arguments):
        before, support.ANYTIME = support.ANYTIME, FAULTY
        try:
            return self.start(*support.SMALL, *arguments, env={"ANYTIME_FAULT": fault})
        finally:
            support.ANYTIME = before

    def kill(self, run, worker):
        row = run.workers()[worker]
        os.kill(row["pid"], signal.SIGKILL)
        return row

    def wait_replaced(self, run, worker, row):
        run.wait_until(lambda: run.workers()[worker]["incarnation"] > row["incarnation"],
                       f"worker {worker} is replaced")

    @staticmethod
    def files(run):
        return len(os.listdir(f"/proc/{run.pid}/fd"))

    def test_a_replacement_that_cannot_be_forked_is_tried_again(self):
        for call in ("fork", "pipe2"):
            with self.subTest(call=call):
                run = self.start_faulty(f"{call}:{FIRST_REPLACEMENT}", *LONG)
                run.wait_working()
                run.wait_steps(1)
                files = self.files(run)
                row = self.kill(run, 1)
                run.wait_said("worker 1 is not replaced yet: cannot start another process")
                self.wait_replaced(run, 2, self.kill(run, 2))  # whose end is not taken for 1's
                self.wait_replaced(run, 1, row)
                run.wait_steps(run.steps() + 10)
                self.assertEqual(self.files(run), files)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 2),
                                 ended)
                self.assert_ledger(ended)
                self.assert_gone(run)

    def test_the_other_workers_go_on_when_no_process_can_be_forked(self):
        run = self.start_faulty(f"fork:{FIRST_REPLACEMENT}+", *LONG)
        run.wait_working()
        self.kill(run, 1)
        run.wait_until(lambda: run.workers()[1]["state"] == "lost", "worker 1 is given up")
        run.wait_steps(run.steps() + 10)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual([row["state"] for row in ended.result["worker"]], ["lost", "finished"])
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_signal_stops_a_run_that_waits_for_replacements(self):
        run = self.start_faulty(f"fork:{FIRST_REPLACEMENT}+", *LONG)
        run.wait_working()
        self.kill(run, 1)
        self.kill(run, 2)
        run.wait_said("is not replaced yet")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_run_ends_when_its_saver_cannot_be_forked(self):
        run = self.start_faulty(f"fork:{FIRST_REPLACEMENT}+", *LONG)
        run.wait_working()
        run.wait_steps(1)
        os.kill(run.child_named("anytime-saver"), signal.SIGKILL)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertIn("no process can be started to write it", ended.err)
        self.assertEqual([path.name for path in (run.folder / "checkpoint").iterdir()],
                         ["step-000000000000.safetensors"])
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_saver_that_cannot_be_forked_once_is_forked_later(self):
        run = self.start_faulty(f"fork:{FIRST_REPLACEMENT}", *LONG)
        run.wait_working()
        run.wait_steps(1)
        os.kill(run.child_named("anytime-saver"), signal.SIGKILL)
        run.signal(signal.SIGUSR1)
        run.wait_until(lambda: len(list((run.folder / "checkpoint").iterdir())) == 2,
                       "a checkpoint is written")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertIn("cannot start another process", ended.err)
        self.assert_gone(run)

    def test_a_run_whose_workers_cannot_be_replaced_ends(self):
        run = self.start_faulty(f"fork:{FIRST_REPLACEMENT}+", *LONG)
        run.wait_working()
        self.kill(run, 1)
        self.kill(run, 2)
        ended = run.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertIn("no worker is left", ended.err)
        self.assertIn("cannot start another process", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_workers_that_cannot_start_end_the_run_with_their_reason(self):
        for workers in (1, 3):
            with self.subTest(workers=workers):
                run = self.start_faulty("aligned_alloc:1+@child", "--strategy", "async", "--quiet",
                                        "--steps", 5, "--workers", workers)
                ended = run.wait()
                self.assertEqual(ended.code, support.FAILED, ended)
                self.assertEqual(ended.err.count("not enough memory"), 1, ended)
                self.assertIn("anytime: not enough memory", ended.err)
                self.assertNotIn("exited with", ended.err)
                self.assertFalse((run.folder / "result.json").exists(), ended)
                self.assert_gone(run)

    def test_a_worker_that_could_not_start_once_says_why_and_is_replaced(self):
        run = self.start_faulty("aligned_alloc:1@child3", "--strategy", "async", *LONG)
        run.wait_until(lambda: (rows := run.workers()) and rows[1]["incarnation"] == 2,
                       "worker 1 is replaced")
        run.wait_steps(run.steps() + 10)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 1), ended)
        self.assertEqual(ended.err.count("could not start: not enough memory"), 1, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)


if __name__ == "__main__":
    support.main()
