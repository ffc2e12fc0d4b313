#!/usr/bin/env python3
"""Workers and hubs are killed and frozen at random; every run ends, and all samples are counted.

The watchdog is in the tests (support.BOUND), not in the program. ANYTIME_CHAOS=1000 kills that many
workers, and a tenth as many hubs.
"""
import contextlib
import os
import random
import signal

import support

STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
              "ringmaster", "quorum", "adasync", "anytime-sgd", "diloco")
KILLS = int(os.environ.get("ANYTIME_CHAOS", "208"))
KILLS_EACH = -(-KILLS // len(STRATEGIES))
HUBS = max(20, KILLS // 10)


class Chaos(support.TestCase):
    def working(self, run):
        return [row["pid"] for row in run.workers().values()
                if row["state"] == "working" and row["pid"]]

    def hit(self, run, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def kill_some(self, run, rng, kills):
        """Kills this many workers, each counted as a respawn in result.json."""
        done = 0
        while done < kills:
            run.wait_until(lambda: self.working(run), "a worker is working")
            pid = rng.choice(self.working(run))
            if not self.hit(run, pid, signal.SIGKILL):
                continue
            done += 1
            run.wait_until(lambda: pid not in self.working(run), f"the loss of {pid} is recorded")
            run.wait_steps(run.steps() + rng.randrange(3))

    def test_killed_workers(self):
        for seed, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy=strategy):
                rng = random.Random(seed)
                run = self.start(*support.SMALL, "--strategy", strategy, "--workers", 4,
                                 "--steps", 10**7, "--sample-time", "20us", "--time-limit", "2ms",
                                 "--checkpoint-every", "200ms", "--record", "steps")
                run.wait_working()
                self.kill_some(run, rng, KILLS_EACH)
                run.wait_working()  # one that was killed before it reported is replaced later
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assertEqual(ended.result["respawns"], KILLS_EACH, ended)
                self.assert_gone(run)
                print(f"{strategy}: {KILLS_EACH} workers killed", flush=True)

    def test_frozen_workers_come_back_or_are_replaced(self):
        for seed, strategy in enumerate(("amb", "backup", "async", "ssp")):
            with self.subTest(strategy=strategy):
                rng = random.Random(100 + seed)
                run = self.start(*support.SMALL, "--strategy", strategy, "--workers", 3,
                                 "--steps", 10**7, "--sample-time", "20us", "--time-limit", "2ms",
                                 "--lease", "300ms", "--record", "steps")
                run.wait_working()
                for turn in range(6):
                    pid = rng.choice(self.working(run) or [0])
                    if pid == 0 or not self.hit(run, pid, signal.SIGSTOP):
                        continue
                    if turn % 2 == 0:  # thawed, perhaps unnoticed
                        run.wait_steps(run.steps() + rng.randrange(2))
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

    def test_a_hub_killed_again_and_again_ends_with_the_same_bits(self):
        rng = random.Random(7)
        settings = (*support.SMALL, "--workers", 3, "--optimizer", "momentum", "--lr-schedule",
                    "cosine", "--steps", 300 * HUBS, "--sample-time", "10us")
        whole = self.train(*settings, "--quiet", "--checkpoint-every", "none")
        run = self.start(*settings, "--checkpoint-every", 20)
        for _ in range(HUBS):
            before = self.newest(run)
            run.wait_until(lambda: self.newest(run) > before, "a newer checkpoint is written")
            run.wait_until(lambda: run.steps() or rng.random() < 0.2, "some more steps")
            run.signal(signal.SIGKILL)
            run.wait()
            support.wait_until(lambda: not support.processes.marked(run.mark),
                               "all its processes are gone")
            run = self.resume(run.folder)
        ended = run.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assert_ledger(ended)
        for key in ("params_hash", "trace_hash", "steps"):
            self.assertEqual(whole.result[key], ended.result[key], key)
        self.assertEqual([int(row["step"]) for row in ended.table("collect_stats.csv")],
                         list(range(1, 300 * HUBS + 1)))
        print(f"{HUBS} hubs killed", flush=True)

    def newest(self, run):
        names = sorted(path.name for path in (run.folder / "checkpoint").glob("step-*"))
        return names[-1] if names else ""


if __name__ == "__main__":
    support.main()
