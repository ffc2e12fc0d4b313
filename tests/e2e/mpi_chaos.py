#!/usr/bin/env python3
"""Ranks die and freeze at random; with recovery on every run continues with the rest.

With recovery on, mpirun always exits with 0, so result.json is checked. The watchdog is part of the
test (support.BOUND), not of the program. ANYTIME_CHAOS=100 kills that many ranks, under every
strategy instead of five.
"""
import contextlib
import os
import random
import signal
import time
import unittest

import support
from support import mpi, processes

RECOVERY = ("--enable-recovery",)
KILLS = int(os.environ.get("ANYTIME_CHAOS", "0"))
STRATEGIES = ((*support.GRADIENTS, *support.LOCAL_STEPS, *support.GOSSIP) if KILLS else
              ("fmb", "amb", "backup", "async", "ssp"))
KILLS_EACH = 4  # of a run, which cannot replace them
TURNS = max(1, -(-KILLS // (KILLS_EACH * len(STRATEGIES))))
RANKS = KILLS_EACH + 3
PAUSE = 5  # seconds


class Chaos(mpi.TestCase):
    def begin(self, *arguments, **options):
        run = self.start(*support.SMALL, "--steps", 10**7, "--sample-time", "50us", "--time-limit",
                         "2ms", *arguments, more=RECOVERY, **options)
        run.wait_working()
        run.wait_steps(20)  # before the first report, the deadline is long
        return run

    def working(self, run):
        return {number: row["pid"] for number, row in run.workers().items()
                if row["state"] == "working"}

    def lose_one(self, run, dice, number=signal.SIGKILL):
        """Sends a signal to a worker and waits until its loss is reported."""
        worker, pid = dice.choice(sorted(self.working(run).items()))
        os.kill(pid, number)
        run.wait_until(lambda: worker not in self.working(run), f"the loss of {worker} is reported")
        run.wait_steps(run.steps() + dice.randrange(1, 20))
        return worker, pid

    def stop(self, run):
        os.kill(run.hub(), signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assert_ledger(ended)
        support.wait_until(lambda: not run.left(), "all processes are gone")
        return ended.result

    def lost(self, result):
        return {row["id"] for row in result["worker"] if row["state"] in ("lost", "evicted")}

    def assert_lost(self, result, lost):
        self.assertEqual(self.lost(result), set(lost))
        self.assertLessEqual({row["worker"] for row in result["lost_rounds"]}, set(lost))

    def test_killed_workers(self):
        for seed, strategy in enumerate(STRATEGIES * TURNS):
            with self.subTest(strategy=strategy, seed=seed):
                dice = random.Random(seed)
                run = self.begin("--strategy", strategy, ranks=RANKS)
                lost = [self.lose_one(run, dice)[0] for _ in range(KILLS_EACH)]
                self.assert_lost(self.stop(run), lost)
                print(f"{strategy}: {len(lost)} ranks killed", flush=True)

    def test_a_run_that_lost_workers_ends_normally(self):
        run = self.start(*support.SMALL, "--steps", 400, "--sample-time", "100us", more=RECOVERY)
        run.wait_working()
        lost = [self.lose_one(run, random.Random(7))[0] for _ in range(2)]
        ended = run.wait()
        self.assertEqual((ended.result["stopped"], ended.result["steps"]), ("steps", 400), ended)
        self.assert_ledger(ended)
        self.assert_lost(ended.result, lost)

    def test_the_launcher_ends_after_a_loss_on_another_node(self):
        shell = self.folder / "shell.sh"  # in place of ssh: the other node is this machine
        shell.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        shell.chmod(0o755)
        run = self.start(*support.SMALL, "--steps", 10**7, "--sample-time", "50us",
                         env={"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"},
                         more=(*RECOVERY, "--host", "localhost:3,other:2", "--mca",
                               "plm_rsh_agent", str(shell)))
        rows = run.wait_working()
        run.wait_steps(20)
        os.kill(rows[4]["pid"], signal.SIGKILL)
        run.wait_until(lambda: 4 not in self.working(run), "the loss is reported")
        self.assert_lost(self.stop(run), [4])

    def test_a_frozen_worker_is_evicted_and_does_not_count_when_it_returns(self):
        for seed, strategy in enumerate(("fmb", "async")):
            with self.subTest(strategy=strategy):
                run = self.begin("--strategy", strategy)
                worker, pid = self.lose_one(run, random.Random(seed), signal.SIGSTOP)
                os.kill(pid, signal.SIGCONT)
                run.wait_steps(run.steps() + 50)
                self.assert_lost(self.stop(run), [worker])

    def test_a_worker_that_stays_frozen_does_not_block_the_launcher(self):
        run = self.begin()
        worker, _ = self.lose_one(run, random.Random(3), signal.SIGSTOP)
        self.assert_lost(self.stop(run), [worker])

    def test_a_short_pause_evicts_no_worker(self):
        run = self.begin("--strategy", "async")
        for pid in self.working(run).values():
            os.kill(pid, signal.SIGSTOP)
            run.wait_steps(run.steps() + 3)
            os.kill(pid, signal.SIGCONT)
        self.assert_lost(self.stop(run), [])

    def test_a_hub_that_pauses_loses_nobody(self):
        """It is stopped for twice as long as ranks once waited for each other."""
        for strategy in ("fmb", "async"):
            with self.subTest(strategy=strategy):
                run = self.begin("--strategy", strategy)
                os.kill(run.hub(), signal.SIGSTOP)
                time.sleep(PAUSE)
                before = run.steps()
                os.kill(run.hub(), signal.SIGCONT)
                run.wait_steps(before + 50)
                self.assertEqual(len(self.working(run)), 4)
                result = self.stop(run)
                self.assert_lost(result, [])
                unaccounted = result["wall_seconds"] - result["seconds"]
                self.assertGreaterEqual(unaccounted, PAUSE, result)  # as after Ctrl-Z and fg

    def test_only_the_main_thread_of_a_hub_handles_its_signals(self):
        """Another one might handle SIGCONT after the main thread has gone on and read the clock."""
        run = self.begin()
        self.assertEqual(processes.threads_with(run.hub(), signal.SIGCONT), {run.hub()})
        self.assert_lost(self.stop(run), [])

    def test_a_lease_limits_the_silence_of_a_rank(self):
        run = self.begin("--lease", "1s", "--strategy", "async")
        worker, _ = self.lose_one(run, random.Random(5), signal.SIGSTOP)
        # On a busy machine others may be silent for a second, too.
        self.assertIn(worker, self.lost(self.stop(run)))

    def test_a_run_without_workers_fails(self):
        run = self.begin(ranks=3)
        for pid in self.working(run).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "no workers", ended)
        self.assert_ledger(ended)

    def test_workers_exit_when_their_hub_is_gone(self):
        run = self.begin("--checkpoint-every", 20)
        run.wait_steps(30)
        os.kill(run.hub(), signal.SIGKILL)
        run.wait()
        support.wait_until(lambda: not run.left(), "all processes are gone")
        ended = support.Run(("--steps", 60), run.folder, resume=True).wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assert_ledger(ended)

    @unittest.skipIf(support.is_sanitized(), "sanitizers report leaks at exit")
    def test_without_recovery_a_death_ends_the_job(self):
        run = self.start(*support.SMALL, "--steps", 10**7, "--sample-time", "50us")
        rows = run.wait_working()
        os.kill(rows[1]["pid"], signal.SIGKILL)
        self.assertNotEqual(run.wait().code, support.DONE)
        support.wait_until(lambda: not run.left(), "all processes are gone")


if __name__ == "__main__":
    mpi.main()
