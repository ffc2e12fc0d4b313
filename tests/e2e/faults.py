#!/usr/bin/env python3
"""Workers, evaluator and hub are killed and frozen: every lost sample is counted, and no process or
shared memory is left behind."""
import os
import random
import re
import signal

import support
from support import processes

QUIET = ("--quiet", "--json")
LONG = ("--steps", 10 ** 9)  # until the test ends it
STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
              "ringmaster", "quorum", "adasync", "dbs", "anytime-sgd", "local-sgd", "diloco")


def kill_worker(run, worker):
    """Kills a working worker and waits for its replacement."""
    row = run.wait_until(lambda: (rows := run.workers())[worker]["state"] == "working" and
                         rows[worker], f"worker {worker} is working")
    os.kill(row["pid"], signal.SIGKILL)
    run.wait_until(lambda: run.workers()[worker]["incarnation"] > row["incarnation"],
                   f"worker {worker} is replaced")


class Kills(support.TestCase):
    """No worker dies five times in a row, after which it would be replaced much later."""

    def kill_each(self, run, workers, chance):
        for worker in chance.sample(range(1, workers + 1), workers):
            kill_worker(run, worker)
        return workers

    def test_a_hundred_kills_in_one_run_cost_only_unfinished_samples(self):
        """Two more workers are frozen in turn. One of them always is, so only a step or two are
        made between the turns, and the run cannot end before the last kill."""
        names = set(os.listdir("/dev/shm"))
        run = self.start(*support.SMALL, *QUIET, "--workers", 27, "--steps", 30,
                         "--sample-time", "100us", "--lease", "1h")
        rows, chance, kills = run.wait_working(), random.Random(1), 0
        frozen, thawed = rows[26]["pid"], rows[27]["pid"]
        os.kill(frozen, signal.SIGSTOP)
        for _ in range(4):
            kills += self.kill_each(run, 25, chance)
            os.kill(thawed, signal.SIGSTOP)
            os.kill(frozen, signal.SIGCONT)
            frozen, thawed = thawed, frozen
        self.assertEqual(kills, 100)
        for pid in run.children() | {run.pid}:
            self.assertEqual(processes.shared_names(pid), set())
        os.kill(frozen, signal.SIGCONT)
        ended = run.wait()
        result = ended.result
        self.assertEqual((ended.code, result["stopped"], result["steps"]), (0, "steps", 30), ended)
        self.assertEqual(result["respawns"], kills, ended)
        self.assertGreaterEqual(len(run.seen), 27 + kills)
        self.assert_ledger(ended)
        self.assert_gone(run)
        self.assertEqual(processes.sysv_segments(run.seen | {run.pid}), [])
        self.assertEqual({name for name in set(os.listdir("/dev/shm")) - names
                          if "anytime" in name}, set())

    def test_kills_between_fast_rounds_are_counted_under_every_strategy(self):
        for seed, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy=strategy):
                run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 4,
                                 "--strategy", strategy, "--sample-time", "10us")
                run.wait_working()
                chance = random.Random(seed)
                kills = sum(self.kill_each(run, 4, chance) for _ in range(4))
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertEqual(ended.result["respawns"], kills, ended)
                self.assert_ledger(ended)
                self.assert_gone(run)

    def test_without_respawn_the_other_workers_continue(self):
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 3, "--no-respawn",
                         "--sample-time", "10us")
        os.kill(run.wait_working()[2]["pid"], signal.SIGKILL)
        run.wait_until(lambda: run.workers()[2]["state"] == "lost", "worker 2 is lost")
        run.wait_steps(run.steps() + 100)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 0), ended)
        self.assertEqual([row["state"] for row in ended.result["worker"]],
                         ["finished", "lost", "finished"], ended)
        self.assertIn("worker 2", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_run_that_loses_all_workers_fails_with_a_message(self):
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 3, "--no-respawn",
                         "--sample-time", "1ms")
        for row in run.wait_working().values():
            os.kill(row["pid"], signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertIn("no worker is left", ended.err)
        self.assertTrue((run.folder / "result.json").exists(), ended)
        self.assertEqual({row["state"] for row in ended.result["worker"]}, {"lost"}, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_worker_that_dies_repeatedly_is_given_up_and_tried_again_later(self):
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 2, "--sample-time", "10s")
        run.wait_working()
        for _ in range(4):
            kill_worker(run, 2)
        os.kill(run.workers()[2]["pid"], signal.SIGKILL)
        run.wait_said("worker 2 died 5 times in a row: the run continues without it and tries "
                      "again")
        run.wait_until(lambda: run.workers()[2]["incarnation"] == 6, "worker 2 is there again")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual({row["state"] for row in ended.result["worker"]}, {"finished"}, ended)
        self.assertEqual(ended.result["worker"][1]["incarnations"], 6, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)


class Freezes(support.TestCase):
    def freeze(self, run, worker):
        pid = run.wait_working()[worker]["pid"]
        os.kill(pid, signal.SIGSTOP)
        return pid

    def test_a_worker_whose_lease_expired_is_replaced(self):
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 3, "--lease", "300ms",
                         "--sample-time", "100us")
        pid = self.freeze(run, 2)
        run.wait_until(lambda: run.workers()[2]["pid"] != pid, "worker 2 is replaced")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertGreaterEqual(ended.result["evictions"], 1, ended)
        self.assertIn("worker 2", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_without_respawn_a_frozen_worker_is_evicted(self):
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 3, "--no-respawn",
                         "--lease", "1s", "--sample-time", "10us")
        self.freeze(run, 1)
        run.wait_until(lambda: run.workers()[1]["state"] == "evicted", "worker 1 is evicted")
        run.wait_steps(run.steps() + 100)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 0), ended)
        self.assertEqual(ended.result["worker"][0]["state"], "evicted", ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_long_wait_is_reported_and_a_thawed_worker_continues(self):
        run = self.start(*support.SMALL, "--json", *LONG, "--workers", 3, "--sample-time", "10us",
                         "--lease", "1h")
        pid = self.freeze(run, 3)
        run.wait_said("waiting for ")
        os.kill(pid, signal.SIGCONT)
        run.wait_steps(run.steps() + 100)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertRegex(ended.err,
                         re.compile(r"^step \d+: waiting for worker 3 \(\d+\.\d s\)$", re.M))
        self.assertEqual((ended.code, ended.result["evictions"]), (support.STOPPED, 0), ended)
        self.assert_ledger(ended)
        self.assert_gone(run)


class HubAndEvaluator(support.TestCase):
    def test_nothing_outlives_a_killed_hub(self):
        for workers in (0, 3):
            with self.subTest(workers=workers):
                run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", workers,
                                 "--straggler", "exp:30,1")
                run.wait_working()
                run.evaluator()
                self.assertEqual(len(run.children()), workers + 2)  # evaluator and saver
                run.signal(signal.SIGKILL)
                self.assertEqual(run.wait().code, -signal.SIGKILL)
                support.wait_until(lambda: not processes.marked(run.mark),
                                   "all processes of a killed hub are gone")
                self.assert_gone(run)
                self.assertFalse((run.folder / "result.json").exists())

    def test_a_killed_evaluator_does_not_cost_the_result(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", workers,
                                 "--sample-time", "10us")
                run.wait_working()
                first = run.evaluator()
                os.kill(first, signal.SIGKILL)
                run.wait_until(lambda: run.evaluator() != first, "the evaluator is replaced")
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertIn("the evaluator died and was started again", ended.err)
                self.assertEqual(ended.result["test"]["count"], 400, ended)
                self.assertEqual(ended.result["test"]["step"], ended.result["steps"], ended)
                self.assert_ledger(ended)
                self.assert_gone(run)

    def test_skipped_evaluations_are_counted_and_said(self):
        """A frozen evaluator is busy with its first evaluation until it is thawed."""
        run = self.start(*support.SMALL, *QUIET, *LONG, "--workers", 2, "--eval-every", 5,
                         "--sample-time", "10us")
        evaluator = run.evaluator()
        os.kill(evaluator, signal.SIGSTOP)
        run.wait_steps(run.steps() + 2000)  # the file may be hundreds of steps behind
        os.kill(evaluator, signal.SIGCONT)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        evaluations = ended.result["evaluations"]
        due = ended.result["steps"] // 5
        self.assertGreater(evaluations["skipped"], 0, ended)
        self.assertEqual(evaluations["done"] + evaluations["skipped"], due + 1, ended)  # the last
        self.assertIn(f"{evaluations['skipped']} of {due} evaluations were skipped because the "
                      "previous one was still running", ended.err)

    def test_a_hub_shares_a_core_with_its_only_worker_and_nothing_else(self):
        everywhere = os.sched_getaffinity(0)
        if len(everywhere) == 1:
            self.skipTest("the machine has only one core")
        run = self.start("--data", "synthetic:2000,300,10", "--model", "mlp:150", "--batch", 8,
                         *QUIET, *LONG, "--workers", 1)
        worker = run.wait_working()[1]["pid"]
        shared = run.wait_until(lambda: len(cores := os.sched_getaffinity(run.pid)) == 1 and cores,
                                "the hub stays on a core")
        run.wait_until(lambda: os.sched_getaffinity(worker) == shared, "its worker is there, too")
        first = run.evaluator()
        os.kill(first, signal.SIGKILL)
        again = run.wait_until(lambda: (pid := run.evaluator()) != first and pid,
                               "the evaluator is replaced")
        run.wait_until(lambda: os.sched_getaffinity(again) == everywhere,
                       "the evaluator may use all cores")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)


if __name__ == "__main__":
    support.main()
