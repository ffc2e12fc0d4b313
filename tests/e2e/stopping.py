#!/usr/bin/env python3
"""SIGINT and SIGTERM: the first signal stops a run cleanly and promptly, the second at once."""
import os
import signal

import support
from support import processes

SOON = 10.0  # seconds; the sleeps below take three times as long, leases six times

ENDLESS = (*support.SMALL, "--quiet", "--json", "--steps", 10 ** 9)
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping(support.TestCase):
    def assert_stopped(self, run, ended):
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assertTrue((run.folder / "result.json").exists(), ended)
        self.assertEqual(ended.result["test"]["count"], 400, ended)
        self.assertIn("stopped by a signal", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_the_first_signal_stops_cleanly(self):
        for workers in (0, 3):
            for number in SIGNALS:
                with self.subTest(workers=workers, signal=number.name):
                    run = self.start(*ENDLESS, "--workers", workers)
                    run.wait_working()
                    run.wait_steps(1)
                    run.signal(number)
                    ended = run.wait()
                    self.assert_stopped(run, ended)
                    self.assertGreater(ended.result["steps"], 0, ended)

    def test_a_stop_does_not_wait_for_sleeping_workers(self):
        slow = {"induced sleep": ("--straggler", "exp:30,1"), "padding": ("--sample-time", "1s")}
        for workers in (0, 3):
            for name, option in slow.items():
                with self.subTest(workers=workers, slow=name):
                    run = self.start(*ENDLESS, "--workers", workers, *option)
                    run.wait_working()
                    run.signal(signal.SIGINT)
                    self.assert_stopped(run, run.wait(SOON))

    def test_a_stop_does_not_wait_for_a_frozen_worker_beyond_its_lease(self):
        run = self.start(*ENDLESS, "--workers", 3, "--lease", "500ms", "--sample-time", "100us")
        os.kill(run.wait_working()[2]["pid"], signal.SIGSTOP)
        run.signal(signal.SIGINT)
        self.assert_stopped(run, run.wait())

    def test_an_interrupt_of_all_processes_still_stops_cleanly(self):
        run = self.start(*ENDLESS, "--workers", 3)
        run.wait_working()
        run.evaluator()
        for pid in run.children():
            os.kill(pid, signal.SIGINT)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assert_stopped(run, ended)
        self.assertEqual(ended.result["respawns"], 0, ended)

    def hang(self, workers):
        """A run that cannot stop promptly: a process it has to wait for is frozen."""
        run = self.start(*ENDLESS, "--workers", workers)
        rows = run.wait_working()
        os.kill(rows[2]["pid"] if workers else run.evaluator(), signal.SIGSTOP)
        return run

    def test_the_second_signal_ends_the_run_at_once(self):
        for workers in (0, 3):
            for first, second in zip(SIGNALS + SIGNALS, SIGNALS + SIGNALS[::-1]):
                with self.subTest(workers=workers, first=first.name, second=second.name):
                    run = self.hang(workers)
                    run.signal(first)
                    run.wait_until(lambda: not processes.handles(run.pid, first),
                                   "the first signal is handled")
                    run.signal(second)
                    self.assertEqual(run.wait().code, -second, run.ended())
                    support.wait_until(lambda: not processes.marked(run.mark),
                                       "all its processes are gone")
                    self.assert_gone(run)
                    self.assertFalse((run.folder / "result.json").exists())


if __name__ == "__main__":
    support.main()
