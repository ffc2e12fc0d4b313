#!/usr/bin/env python3
"""Simulated step times agree with theory. Times only; no gradients are computed.

Seeds are fixed, so every machine gets the same numbers. There are enough steps for the standard
error of a mean to be about three times smaller than the tolerance.
"""
import math

import support

TOLERANCE = 0.02
TINY = ("--model", "none:1000", "--sample-time", "1us", "--batch", 1)


def harmonic(n):
    return sum(1 / i for i in range(1, n + 1))


class Theory(support.TestCase):
    def simulate(self, strategy, workers, straggler, steps, *arguments):
        return self.anytime("simulate", "--strategy", strategy, "--workers", workers,
                            "--straggler", straggler, "--steps", steps, *arguments, "--record",
                            "none", "--run", self.new_folder(), "--json", "--quiet").result

    def new_folder(self):
        self.runs += 1
        return self.folder / f"run{self.runs}"

    def check(self, measured, expected, what):
        self.assertLess(abs(measured / expected - 1), TOLERANCE,
                        f"{what}: {measured:.4f} s, in theory {expected:.4f} s")

    def test_a_barrier_waits_for_the_largest_of_n_shifted_exponential_times(self):
        shift, mean = 0.5, 1.0
        for n in (2, 4, 8, 16, 32, 64, 128, 256):
            with self.subTest(workers=n):
                result = self.simulate("fmb", n, f"exp:{shift},{mean}", 40000 // n + 4000, *TINY)
                self.check(result["step_seconds"]["mean"], shift + mean * harmonic(n) + 1e-6, n)

    def test_a_slow_worker_does_not_matter_to_ringmaster(self):
        """Steps of nine equal workers, with and without a tenth that is 100 times slower."""
        for bound in (8, 16):
            steps = {}
            for name, speeds in (("without", "1," * 8 + "1"), ("with", "1," * 9 + "100")):
                result = self.simulate(f"ringmaster:{bound}", speeds.count(",") + 1,
                                       f"speed:{speeds}", 3000, *TINY[:4], "--batch", 32,
                                       "--micro-batch", 8)
                self.assertLessEqual(result["staleness"]["max"], bound)
                steps[name] = result["step_seconds"]["mean"]
            self.assertLess(steps["with"], 1.05 * steps["without"])

    def test_k_sync_waits_for_the_k_fastest_of_p(self):
        p, mean = 16, 1.0
        for k in (1, 4, 8, 12, 15, 16):
            with self.subTest(k=k):
                result = self.simulate("backup", p, f"exp:0,{mean}", 30000, "--k", k, *TINY)
                self.check(result["step_seconds"]["mean"],
                           mean * (harmonic(p) - harmonic(p - k)), k)

    def test_k_batch_sync_waits_for_any_k_rounds(self):
        p, mean = 16, 1.0
        for k in (1, 4, 16, 32):
            with self.subTest(k=k):
                result = self.simulate("batch-sync", p, f"exp:0,{mean}", 20000, "--k", k, *TINY)
                self.check(result["step_seconds"]["mean"], k * mean / p, k)

    def test_k_batch_async_waits_for_any_k_rounds_too(self):
        p, mean = 16, 1.0
        for k in (1, 4, 16):
            with self.subTest(k=k):
                result = self.simulate("async-fmb", p, f"exp:0,{mean}", 20000, "--k", k, *TINY)
                self.check(result["step_seconds"]["mean"], k * mean / p, k)

    def test_fixed_minibatches_cost_no_more_than_the_bound_of_the_anytime_paper(self):
        # One round computes for 1 s; mean and standard deviation of the straggler model are known.
        stragglers = {"exp:0,0.3": (0.3, 0.3), "exp:0,1": (1.0, 1.0), "niagara": (1.0, 1.55),
                      "cedar": (0.071, 0.085), "pareto:0.2,3": (0.3, 0.2 * math.sqrt(3) / 2)}
        for straggler, (mean, sd) in stragglers.items():
            for n in (2, 10, 50):
                with self.subTest(straggler=straggler, workers=n):
                    same = ("--model", "none:1000", "--sample-time", "10ms", "--batch", 100,
                            "--micro-batch", 1)
                    fixed = self.simulate("fmb", n, straggler, 2000, *same)
                    timed = self.simulate("amb", n, straggler, 2000, "--cap", 10000, *same)
                    batch = timed["samples"]["used"] / timed["steps"] / n
                    self.assertLess(abs(batch / 100 - 1), 0.03, f"mean batch {batch:.1f}")
                    ratio = fixed["step_seconds"]["mean"] / timed["step_seconds"]["mean"]
                    bound = 1 + sd / (1 + mean) * math.sqrt(n - 1)
                    self.assertLessEqual(ratio, bound)
                    self.assertGreaterEqual(ratio, 1, "anytime minibatches are never slower")


if __name__ == "__main__":
    support.main()
