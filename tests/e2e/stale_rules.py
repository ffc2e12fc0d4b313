#!/usr/bin/env python3
"""Stale gradients: delay compensation, and Ringmaster's bound with a very slow worker."""
import statistics

import support

DATA = ("--data", "synthetic:4000,20,5", "--batch", 16, "--eval-every", 0, "--record", "none")
SIM = ("--world", "sim", "--sample-time", "1ms", "--straggler", "exp:0,0.01")
ASYNC = ("--strategy", "async", "--workers", 4)


class Compensate(support.TestCase):
    def test_async_learns_with_it_in_every_world(self):
        for world in ((), SIM):
            with self.subTest(world=world):
                ended = self.train(*DATA, *world, *ASYNC, "--stale", "compensate:0.5", "--lr", 0.05,
                                   "--epochs", 8, "--quiet", "--json")
                self.assertGreater(ended.result["test"]["accuracy"], 0.9, ended)
                self.assertEqual(ended.result["rules"]["stale"], "compensate:0.5")
                self.assertGreater(ended.result["staleness"]["max"], 0, ended)
                self.assert_ledger(ended)

    def test_without_a_factor_it_is_use_and_with_one_it_is_not(self):
        def params(stale):
            return self.train_json(*DATA, *SIM, *ASYNC, "--steps", 200,
                                   "--stale", stale)["params_hash"]
        self.assertEqual(params("compensate:0,versions=1000"), params("use"))
        self.assertNotEqual(params("compensate:0.1,versions=1000"), params("use"))

    def test_it_repairs_part_of_what_staleness_costs(self):
        """Many workers and a learning rate that is almost too large for gradients so old."""
        def loss(stale, seed):
            result = self.train_json(*DATA, *SIM, "--strategy", "async", "--workers", 24, "--lr",
                                     0.6, "--steps", 1500, "--seed", seed, "--stale", stale)
            return result["test"]["loss"]
        means = {stale: statistics.mean(loss(stale, seed) for seed in range(1, 6))
                 for stale in ("use", "compensate:1")}
        self.assertLess(means["compensate:1"], means["use"], means)

    def test_gradients_older_than_the_kept_versions_are_dropped(self):
        result = self.train_json(*DATA, *SIM, "--strategy", "async", "--workers", 8, "--steps", 300,
                                 "--stale", "compensate:0.1,versions=3")
        self.assertLessEqual(result["staleness"]["max"], 3)
        self.assertGreater(result["samples"]["dropped_why"]["stale"], 0, result["samples"])

    def test_it_is_refused_where_it_cannot_work(self):
        clicks = ("--data", "synthetic-clicks:2000,1000", "--model", "sparse-lr")
        for options, says in ((("--strategy", "fmb"), "--release barrier"),
                              (("--strategy", "async-timed"), "--newer refresh"),
                              (("--strategy", "async", *clicks), "sparse"),
                              (("--strategy", "async", "--mix", "sliced:2"), "--mix sliced"),
                              (("--strategy", "async", "--switch", "fmb@step=5"), "--switch"),
                              (("--strategy", "diloco"), "--work local")):
            with self.subTest(options=options):
                ended = self.train(*DATA[:2], *options, "--stale", "compensate", "--steps", 10,
                                   code=support.USAGE)
                self.assertIn(says, ended.err)


class Ringmaster(support.TestCase):
    def test_a_very_slow_worker_costs_no_loss(self):
        """The loss after the same time, with and without a tenth worker 100 times slower."""
        def loss(speeds, seed):
            return self.train_json(*DATA, "--world", "sim", "--sample-time", "1ms", "--micro-batch",
                                   4, "--strategy", "ringmaster:16", "--workers", len(speeds),
                                   "--straggler", "speed:" + ",".join(speeds), "--seconds", 4,
                                   "--lr", 0.05, "--seed", seed)["test"]["loss"]
        equal, slow = (statistics.mean(loss(speeds, seed) for seed in range(1, 4))
                       for speeds in (["1"] * 9, ["1"] * 9 + ["100"]))
        self.assertLess(slow, 1.05 * equal)


if __name__ == "__main__":
    support.main()
