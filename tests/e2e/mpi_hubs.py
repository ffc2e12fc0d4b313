#!/usr/bin/env python3
"""Several hubs over MPI: each keeps a slice, and the result has the bits of one hub."""
import os
import signal

import support
from support import mpi

QUIET = ("--quiet", "--json")
WIDE = ("--data", "synthetic:600,400,10", "--model", "mlp:300,100", "--batch", "16")
NET = "conv 3x3x8 bias=no\nbn\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\ndense classes\n"


class Bits(mpi.TestCase):
    def assert_same_as_local(self, *arguments, hubs=2):
        options = (*arguments, "--eval-every", 0, *QUIET)
        here = self.train(*options, "--hubs", hubs, ranks=3 + hubs)
        there = self.local(*options, "--workers", 3).result
        self.assertEqual((here.result["hubs"], here.result["workers"]), (hubs, 3))
        for key in ("params_hash", "trace_hash"):
            self.assertEqual(here.result[key], there[key], here)
        self.assert_ledger(here)

    def test_optimizers_give_the_bits_of_one_hub(self):
        for optimizer in ("sgd", "momentum", "adam", "adagrad"):
            with self.subTest(optimizer=optimizer):
                self.assert_same_as_local(*WIDE, "--optimizer", optimizer, "--steps", 40)

    def test_clipped_gradients_do_too(self):
        for hubs in (2, 3):
            self.assert_same_as_local(*WIDE, "--optimizer", "adamw", "--clip", "0.05",
                                      "--steps", 40, hubs=hubs)
        self.assert_same_as_local(*support.SMALL, "--clip", "0.05", "--steps", 40, hubs=3)

    def test_three_hubs_do_too(self):
        self.assert_same_as_local(*WIDE, "--optimizer", "adam", "--steps", 40, hubs=3)

    def test_a_model_too_small_to_share_does_too(self):
        self.assert_same_as_local(*support.SMALL, "--steps", 40, hubs=3)

    def test_timed_rounds_and_nets_with_batch_norm_do_too(self):
        net = self.folder / "small.net"
        net.write_text(NET)
        self.assert_same_as_local("--data", "synthetic:300,3x12x12,4", "--model", net, "--steps", 6,
                                  "--batch", 20, "--micro-batch", 8, "--optimizer", "momentum",
                                  "--strategy", "amb", "--time-limit", "60s")

    def test_strategies_that_wait_for_all_learn(self):
        for strategy in ("fmb", "amb", "dbs", "grow"):
            with self.subTest(strategy=strategy):
                ended = self.train(*support.SMALL, "--strategy", strategy, "--steps", 200,
                                   "--time-limit", "2ms", "--hubs", 2, *QUIET)
                self.assert_ledger(ended)
                self.assertGreater(ended.result["test"]["accuracy"], 0.8, ended)


class Checkpoints(mpi.TestCase):
    """The optimizer state is distributed over the hubs and gathered when it is saved."""

    def test_a_run_resumes_with_other_numbers_of_hubs(self):
        arguments = (*WIDE, "--optimizer", "adam", "--eval-every", 0)
        whole = self.local(*arguments, "--workers", 3, "--steps", 40, *QUIET).result
        first = self.train(*arguments, "--steps", 10, "--checkpoint-every", 4, "--hubs", 2, *QUIET)
        self.assertEqual(first.result["checkpoint"], 10, first)
        for steps, hubs in ((20, 2), (30, 3)):
            ended = self.train("--steps", steps, "--hubs", hubs, *QUIET, ranks=3 + hubs,
                               resume=first.folder)
            self.assertEqual(ended.result["checkpoint"], steps, ended)
        ended = self.train("--steps", 40, "--hubs", 1, *QUIET, ranks=4, resume=first.folder)
        self.assertEqual(ended.result["params_hash"], whole["params_hash"], ended)


class Ends(mpi.TestCase):
    def slow(self, *arguments, **options):
        return self.endless(*WIDE, "--sample-time", "100us", "--hubs", 2, "--optimizer", "adam",
                            *arguments, **options)

    def test_a_signal_stops_the_run_with_a_checkpoint(self):
        run = self.slow()
        os.kill(run.hub(), signal.SIGTERM)
        ended = run.wait()
        result = ended.result
        self.assertEqual((ended.code, result["stopped"]), (support.STOPPED, "signal"), ended)
        self.assertEqual(result["checkpoint"], result["steps"], ended)
        self.assert_ledger(ended)
        self.assert_nothing_left(run)
        ended = self.train("--steps", result["steps"] + 5, *QUIET, resume=run.folder)
        self.assert_ledger(ended)

    def test_a_lost_worker_ends_the_run(self):
        run = self.slow("--quiet", more=["--enable-recovery"])
        os.kill(run.workers()[2]["pid"], signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "rank lost", ended)
        self.assertEqual([row["state"] for row in ended.result["worker"]],
                         ["finished", "lost", "finished"], ended)
        self.assert_ledger(ended)
        self.assert_nothing_left(run)
        self.assertTrue(any((run.folder / "checkpoint").iterdir()))

    def test_ranks_and_hubs_must_fit(self):
        for arguments, says in ((("--hubs", 5), "leaves no workers"),
                                (("--hubs", 2, "--workers", 4), "2 hubs and 3 workers"),
                                (("--hubs", 2, "--strategy", "async"), "waits for all"),
                                (("--hubs", 2, "--strategy", "noise"),
                                 "the whole gradient of every worker"),
                                (("--hubs", 2, "--comm-delay", "1ms"), "--comm-delay")):
            with self.subTest(arguments=arguments):
                ended = self.train(*support.SMALL, "--steps", 3, *arguments, code=support.USAGE)
                self.assertEqual(ended.err.count("anytime: "), 1, ended)
                self.assertIn(says, ended.err, ended)


if __name__ == "__main__":
    mpi.main()
