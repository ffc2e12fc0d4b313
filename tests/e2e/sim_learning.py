#!/usr/bin/env python3
"""Every strategy learns despite stragglers, in simulation and with processes.

Softmax regression on Fashion-MNIST; the mean induced sleep is a fifth of a round's compute time.
Each strategy must reach the accuracy with all its samples accounted for; this test does not compare
their speed.
"""
import re
import subprocess
import unittest

import support

ACCURACY = 0.83

# Learning rates: that of a whole step's batch with a barrier, less where gradients are stale or a
# step has only one worker's batch. That of diloco is one of AdamW.
STRATEGIES = {
    "fmb": 0.5, "amb": 0.5, "backup": 0.5, "batch-sync": 0.5,
    "async": 0.06, "async-fmb": 0.3, "async-timed": 0.3, "ssp": 0.06, "ringmaster": 0.06,
    "quorum": 0.5, "adasync": 0.06,
    "dbs": 0.5, "grow": 0.5, "shrink": 0.5, "loss": 0.5, "noise": 0.5, "probe": 0.5,
    "stall": 0.5, "loss-target": 0.5,
    "amb-gossip": 0.5, "fmb-gossip": 0.5, "anytime-sgd": 0.2, "local-sgd": 0.2, "diloco": 0.001,
}
COMMON = ("--model", "softmax", "--data", "fashion-mnist", "--micro-batch", 8, "--batch-min", 8,
          "--straggler", "niagara", "--straggler-scale", "20%",
          "--lr-schedule", "cosine", "--eval-every", 0, "--record", "none")


class Learning(support.TestCase):
    def setUp(self):
        super().setUp()
        known = subprocess.run([support.ANYTIME, "data", "info", "fashion-mnist"],
                               capture_output=True, timeout=support.BOUND)
        if known.returncode != 0:
            raise unittest.SkipTest("fashion-mnist is not installed")

    def check_all(self, *world):
        for strategy, lr in STRATEGIES.items():
            with self.subTest(strategy=strategy):
                ended = self.train("--strategy", strategy, "--lr", lr, *COMMON, *world, "--quiet",
                                   "--json")
                result = ended.result
                self.assertGreaterEqual(result["test"]["accuracy"], ACCURACY, ended)
                self.assertEqual(result["stopped"], "epochs", ended)
                self.assert_ledger(ended)

    def test_ten_workers_in_virtual_time(self):
        self.check_all("--world", "sim", "--workers", 10, "--batch", 16, "--epochs", 6,
                       "--sample-time", "100us")

    def test_four_workers_on_this_machine(self):
        self.check_all("--world", "local", "--workers", 4, "--batch", 32, "--epochs", 5,
                       "--sample-time", "1us")

    def test_the_table_names_every_strategy(self):
        text = self.anytime("train", "--help").out
        listed = re.search(r"--strategy S\[:ARGS\]\s[^:]*:([^[]*)\[", text).group(1)
        self.assertEqual(set(listed.split()), {*STRATEGIES, "hogwild"})


if __name__ == "__main__":
    support.main()
