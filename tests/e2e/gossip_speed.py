#!/usr/bin/env python3
"""amb-gossip against fmb-gossip in the setups of the AMB paper, in virtual time.

Seeds are fixed, so every machine gets the same numbers. `bench/gossip_speed.py` does the same with
images.
"""
import sys

import support

sys.path.insert(0, str(support.ROOT / "bench"))
import gossip_speed  # noqa: E402

LOGISTIC = ("--data", "synthetic:4000,20,10", "--lr", "0.3")
LINEAR = ("--data", "synthetic-linear:4000,20,0.5", "--model", "linear", "--lr", "0.03")


class GossipSpeed(support.TestCase):
    def check(self, nodes, model):
        claim = gossip_speed.SETUPS[nodes][4]
        for ratio in gossip_speed.ratios(support.ANYTIME, nodes, model, seed=1):
            self.assertGreater(ratio, claim)

    def test_ten_nodes_reach_the_losses_of_logistic_regression_earlier(self):
        self.check(10, LOGISTIC)

    def test_ten_nodes_reach_the_losses_of_linear_regression_earlier(self):
        self.check(10, LINEAR)

    def test_fifty_very_unequal_nodes_are_four_times_as_fast(self):
        self.check(50, LOGISTIC)


if __name__ == "__main__":
    support.main()
