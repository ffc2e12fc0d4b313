#!/usr/bin/env python3
"""Gather rules that learn: the grace of `quorum`, and the K of `adasync`. Virtual time, in which
every machine gets the same numbers; worker processes only where they are overtaken.
"""
import statistics

import support

TIMES_ONLY = ("--model", "none:1000", "--sample-time", "10ms", "--batch", 100, "--micro-batch", 10,
              "--workers", 10, "--steps", 1500)
# Steps of one worker's four samples are too noisy for this learning rate, those of all too slow.
LEARNING = ("--data", "synthetic:4000,20,5", "--sample-time", "1ms", "--batch", 4, "--workers", 8,
            "--straggler", "exp:0,1", "--lr", 0.5, "--eval-every", 0)


class AdaptiveGather(support.TestCase):
    runs = 0

    def simulate(self, *arguments):
        self.runs += 1
        return self.anytime("simulate", *arguments, "--record", "none", "--run",
                            self.folder / f"run{self.runs}", "--json", "--quiet").result

    def samples_per_second(self, gather, straggler, seed):
        result = self.simulate("--strategy", gather, "--straggler", straggler, "--seed", seed,
                               *TIMES_ONLY)
        return result["samples"]["used"] / result["seconds"]

    def check_auto(self, straggler, graces, seeds):
        """Auto against the best of some fixed graces, chosen afterwards."""
        rates = {grace: statistics.mean(
            self.samples_per_second(f"quorum:6,{grace}", straggler, seed) for seed in seeds)
            for grace in ("auto", *graces)}
        auto = rates.pop("auto")
        self.assertGreater(auto, 0.97 * max(rates.values()), (straggler, auto, rates))
        self.assertGreater(max(rates.values()), 1.05 * min(rates.values()), "the grace matters")

    def test_auto_finds_the_best_grace_for_short_and_for_long_delays(self):
        self.check_auto("exp:0,1", ("100ms", "200ms", "400ms", "1.6s"), range(1, 21))

    def test_auto_finds_the_best_grace_for_workers_that_are_always_slower(self):
        speeds = "speed:1,1,1,1,1,1,1.1,1.3,4,9"
        self.check_auto(speeds, ("1ms", "100ms", "200ms", "400ms", "1.6s"), (1,))

    def test_adasync_lies_between_its_ends_in_time(self):
        seconds = [self.simulate("--strategy", strategy, "--steps", 300, *LEARNING)["seconds"]
                   for strategy in ("backup:1", "adasync:1-8", "backup:8")]
        self.assertEqual(seconds, sorted(seconds))
        self.assertGreater(seconds[1], 1.5 * seconds[0])
        self.assertGreater(seconds[2], 1.5 * seconds[1])

    def test_adasync_beats_both_ends_in_loss_over_time(self):
        losses = {strategy: statistics.mean(
            self.simulate("--strategy", strategy, "--seconds", seconds, "--seed", seed,
                          *LEARNING)["test"]["loss"]
            for seconds in (50, 100, 200) for seed in range(1, 6))
            for strategy in ("backup:1", "adasync:1-8", "backup:8")}
        self.assertLess(losses["adasync:1-8"], 0.9 * losses["backup:1"], losses)
        self.assertLess(losses["adasync:1-8"], 0.9 * losses["backup:8"], losses)

    def test_a_delayed_worker_process_starts_over_when_it_is_overtaken(self):
        """Its first sample would take 1000 s. It must not sleep through the steps of the other."""
        result = self.train_json("--data", "synthetic:2000,20,4", "--workers", 2, "--strategy",
                                 "backup:1", "--batch", 4, "--micro-batch", 1, "--sample-time",
                                 "1ms", "--straggler", "speed:1,1000000", "--steps", 200,
                                 "--eval-every", 0)
        self.assertEqual(result["worker"][0]["rounds"], 200)
        self.assertGreater(result["worker"][1]["rounds"], 5)


if __name__ == "__main__":
    support.main()
