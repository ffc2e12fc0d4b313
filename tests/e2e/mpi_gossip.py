#!/usr/bin/env python3
"""Gossip among ranks: the parameters of the other worlds, and nobody waits for a dead neighbour."""
import os
import random
import signal

import support
from support import mpi, tensors

JOB = (*support.SMALL, "--micro-batch", 8, "--lr", 0.3, "--quiet", "--json")
RECOVERY = ("--enable-recovery",)


class Agreement(mpi.TestCase):
    def both(self, *arguments, ranks=6):
        here = self.train(*JOB, *arguments, ranks=ranks)
        there = self.local(*JOB, *arguments, "--workers", ranks - 1)
        self.assertEqual(here.result["trace_hash"], there.result["trace_hash"])
        self.assert_ledger(here)
        return here, there

    def test_one_round_of_averaging_gives_the_bits_of_the_local_world(self):
        for strategy in ("fmb-gossip:complete,1", "fmb-gossip:ring,1", "fmb-gossip:star,1,form=pg",
                         "fmb-gossip:random:2,1,form=pw,weights=equal"):
            with self.subTest(strategy=strategy):
                here, there = self.both("--strategy", strategy, "--steps", 30)
                self.assertEqual(here.result["params_hash"], there.result["params_hash"])
                self.assertAlmostEqual(here.result["test"]["disagreement"],
                                       there.result["test"]["disagreement"], delta=1e-7)

    def test_more_rounds_agree_with_the_local_world_but_for_rounding(self):
        for strategy in ("fmb-gossip:ring,3", "fmb-gossip:exponential,2,form=da,matrix=laplacian"):
            with self.subTest(strategy=strategy):
                here, there = self.both("--strategy", strategy, "--steps", 20)
                there = tensors.read(there.folder / "model.safetensors")
                for name, values in tensors.read(here.folder / "model.safetensors").items():
                    for a, b in zip(values, there[name]):
                        self.assertAlmostEqual(a, b, delta=1e-6 * max(1, abs(a)))

    def test_evaluations_and_checkpoints_have_the_mean_model(self):
        options = ("--strategy", "fmb-gossip:ring,1", "--steps", 30, "--eval-every", 10,
                   "--checkpoint-every", 10)
        here, there = self.both(*options, ranks=4)
        self.assertEqual(here.result["params_hash"], there.result["params_hash"])
        self.assertEqual(here.result["test"]["loss"], there.result["test"]["loss"])
        again = self.train("--steps", 40, "--quiet", "--json", ranks=4, resume=here.folder)
        self.assertEqual(again.result["steps"], 40)
        self.assert_ledger(again)

    def test_ranks_may_average_for_a_time(self):
        ended = self.train(*JOB, "--strategy", "fmb-gossip:ring,5ms", "--steps", 20)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["steps"], 20)
        self.assertLess(ended.result["test"]["disagreement"], 0.1)

    def test_ranks_with_other_graphs_do_not_start(self):
        edges = self.folder / "edges"
        edges.write_text("0 1\n1 2\n")
        script = self.folder / "rank.sh"
        script.write_text("#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 2 ] && cd other\nexec \"$@\"\n")
        script.chmod(0o755)
        (self.folder / "other").mkdir()
        (self.folder / "other" / "edges").write_text("0 2\n1 2\n")
        ended = self.train(*JOB, "--strategy", "fmb-gossip:file:edges,1", "--steps", 5, ranks=4,
                           code=support.USAGE, more=("--wdir", str(self.folder), str(script)))
        self.assertIn("differ in: mix rule", ended.err)


class Deaths(mpi.TestCase):
    def working(self, run):
        return {number: row["pid"] for number, row in run.workers().items()
                if row["state"] == "working"}

    def test_neighbours_of_killed_ranks_go_on(self):
        """Nearly all of the time is averaging, so that is where the ranks are when they die."""
        for seed, strategy in enumerate(("fmb-gossip:ring,60", "amb-gossip:exponential,10ms")):
            with self.subTest(strategy=strategy):
                dice = random.Random(seed)
                run = self.start(*JOB, "--steps", 10**7, "--eval-every", 20, "--strategy", strategy,
                                 "--time-limit", "1ms", more=RECOVERY, ranks=6)
                run.wait_working()
                run.wait_steps(5)
                for _ in range(3):
                    worker, pid = dice.choice(sorted(self.working(run).items()))
                    os.kill(pid, signal.SIGKILL)
                    run.wait_until(lambda worker=worker: worker not in self.working(run),
                                   f"the loss of {worker} is reported")
                    run.wait_steps(run.steps() + dice.randrange(2, 8))
                os.kill(run.hub(), signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.result["stopped"], "signal", ended)
                self.assert_ledger(ended)
                lost = [row["id"] for row in ended.result["worker"] if row["state"] == "lost"]
                self.assertEqual(len(lost), 3, ended)
                self.assert_nothing_left(run)
                self.assertEqual(self.anytime("replay", ended.folder).code, support.DONE)

    def test_the_last_rank_goes_on_alone(self):
        run = self.start(*JOB, "--steps", 40, "--strategy", "fmb-gossip:ring,20", "--sample-time",
                         "3ms", more=RECOVERY, ranks=3)
        run.wait_working()
        run.wait_steps(3)
        os.kill(self.working(run)[1], signal.SIGKILL)
        ended = run.wait()
        self.assertEqual((ended.result["stopped"], ended.result["steps"]), ("steps", 40), ended)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["test"]["disagreement"], 0)


if __name__ == "__main__":
    mpi.main()
