#!/usr/bin/env python3
"""`anytime run` while it goes on: seen from outside, joined by signal, silent programs named."""
import os
import signal

import support
from support import dashboard, seats


class Live(seats.TestCase, dashboard.TestCase):
    def end(self, run):
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)
        return ended

    def test_the_dashboard_shows_a_run_of_programs(self):
        run = self.launch("-n", 2, "--seconds", "1h", "--sample-time", "100us", "--quiet",
                          program=("evaluate=20",))
        run.wait_steps(5)
        board = self.watch(run.folder)
        support.wait_until(lambda: board.steps() > 20, "the dashboard has read steps")
        self.assertEqual(len(board.run()["story"]["workers"]), 2)
        metrics = board.get("/metrics")[2].decode()
        self.assertIn("anytime_steps_total", metrics)
        self.end(run)
        support.wait_until(lambda: board.run()["result"], "the dashboard has read the result")
        self.assertEqual(board.run()["result"]["world"], "seat")

    def test_a_run_can_be_watched_from_its_start(self):
        run = self.launch("-n", 1, "--seconds", "1h", "--sample-time", "100us", "--watch")
        run.wait_said("http://")
        run.wait_steps(5)
        self.end(run)

    def test_sigusr2_starts_another_program_up_to_the_capacity(self):
        run = self.launch("-n", 1, "--workers-max", 2, "--seconds", "1h", "--sample-time",
                          "100us")
        run.wait_steps(2)
        os.kill(run.pid, signal.SIGUSR2)
        run.wait_until(lambda: [row["state"] for row in run.workers().values()].count("working")
                       == 2, "another worker works")
        table = run.folder / "worker_stats.csv"
        run.wait_until(lambda: any(line.split(",")[2:3] == ["2"] for line in
                                   table.read_text().splitlines()), "its rounds are recorded")
        os.kill(run.pid, signal.SIGUSR2)
        run.wait_said("no worker can join: all --workers-max are there")
        used = [row["used"] for row in self.end(run).result["worker"]]
        self.assertEqual(len(used), 2)
        self.assertGreater(min(used), 0)

    def test_a_program_that_joins_and_never_finishes_a_round_is_named(self):
        for strategy, words in (("fmb", "step 1: waiting for worker 2 ("),
                                ("async", "worker 2 joined 5 s ago and has not finished a round")):
            with self.subTest(strategy=strategy):
                run = self.launch("-n", 2, "--seconds", "1h", "--join-timeout", "5s",
                                  "--strategy", strategy, program=("stuck=1", "only=1"))
                run.wait_said(words)
                self.end(run)


if __name__ == "__main__":
    dashboard.need()
    support.main()
