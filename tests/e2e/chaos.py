#!/usr/bin/env python3
"""Workers and hubs die and freeze at random; every run ends, and every ledger adds up.

The watchdog is here (support.BOUND), not in the product.
"""
import contextlib
import os
import random
import signal

import support

STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp")
KILLS_EACH = 25  # 200 in all


class Chaos(support.TestCase):
    def working(self, run):
        return [row["pid"] for row in run.workers().values()
                if row["state"] == "working" and row["pid"]]

    def hit(self, run, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def kill_some(self, run, dice, kills):
        """Kills until so many of them are told in result.json's words: respawns."""
        done = 0
        while done < kills:
            run.wait_until(lambda: self.working(run), "somebody works")
            pid = dice.choice(self.working(run))
            if not self.hit(run, pid, signal.SIGKILL):
                continue
            done += 1
            run.wait_until(lambda: pid not in self.working(run), f"the loss of {pid} is told")
            run.wait_steps(run.steps() + dice.randrange(3))

    def test_two_hundred_killed_workers(self):
        for seed, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy=strategy):
                dice = random.Random(seed)
                run = self.start(*support.SMALL, "--strategy", strategy, "--workers", 4,
                                 "--steps", 10**7, "--sample-time", "20us", "--time-limit", "2ms",
                                 "--checkpoint-every", "200ms", "--record", "steps")
                run.wait_working()
                self.kill_some(run, dice, KILLS_EACH)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assertEqual(ended.result["respawns"], KILLS_EACH, ended)
                self.assert_gone(run)

    def test_frozen_workers_come_back_or_are_replaced(self):
        for seed, strategy in enumerate(("amb", "backup", "async", "ssp")):
            with self.subTest(strategy=strategy):
                dice = random.Random(100 + seed)
                run = self.start(*support.SMALL, "--strategy", strategy, "--workers", 3,
                                 "--steps", 10**7, "--sample-time", "20us", "--time-limit", "2ms",
                                 "--lease", "300ms", "--record", "steps")
                run.wait_working()
                for turn in range(6):
                    pid = dice.choice(self.working(run) or [0])
                    if pid == 0 or not self.hit(run, pid, signal.SIGSTOP):
                        continue
                    if turn % 2 == 0:  # thawed, perhaps before anybody noticed
                        run.wait_steps(run.steps() + dice.randrange(2))
                        self.hit(run, pid, signal.SIGCONT)
                    else:  # evicted
                        run.wait_until(lambda: pid not in self.working(run), f"{pid} is evicted")
                    run.wait_steps(run.steps() + 5)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assertGreaterEqual(ended.result["evictions"], 3, ended)
                self.assert_gone(run)

    def test_a_hub_killed_twenty_times_ends_with_the_bits_of_one_that_was_not(self):
        dice = random.Random(7)
        settings = (*support.SMALL, "--workers", 3, "--optimizer", "momentum", "--lr-schedule",
                    "cosine", "--steps", 6000, "--sample-time", "10us")
        whole = self.train(*settings, "--quiet", "--checkpoint-every", "none")
        run = self.start(*settings, "--checkpoint-every", 20)
        for _ in range(20):
            before = self.newest(run)
            run.wait_until(lambda: self.newest(run) > before, "a newer checkpoint is there")
            run.wait_until(lambda: run.steps() or dice.random() < 0.2, "some steps more")
            run.signal(signal.SIGKILL)
            run.wait()
            support.wait_until(lambda: not support.processes.marked(run.mark), "all died with it")
            run = self.resume(run.folder)
        ended = run.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assert_ledger(ended)
        for key in ("params_hash", "trace_hash", "steps"):
            self.assertEqual(whole.result[key], ended.result[key], key)
        self.assertEqual([int(row["step"]) for row in ended.table("collect_stats.csv")],
                         list(range(1, 6001)))

    def newest(self, run):
        names = sorted(path.name for path in (run.folder / "checkpoint").glob("step-*"))
        return names[-1] if names else ""


if __name__ == "__main__":
    support.main()
