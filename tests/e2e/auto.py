#!/usr/bin/env python3
"""--time-limit auto is as good as the best limit of a sweep (docs/strategies/time-limit-auto.md).

Simulation with fixed seeds. The time to a target is noisy, so with few seeds the second test only
distinguishes good time limits from bad ones; the page has the full comparison. Step times are not
noisy and are checked to 5 %.
"""
import pathlib
import statistics
import unittest

import support

BATCH = 16
MACHINES = ("--world", "sim", "--strategy", "amb", "--workers", 10, "--batch", BATCH,
            "--micro-batch", 4, "--cap", 64, "--straggler", "niagara", "--straggler-scale", "20%",
            "--sample-time", "1ms", "--latency", "1ms", "--record", "none", "--quiet")
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Auto(support.TestCase):
    def sweep(self, limits, *arguments):
        """The rows of compare.csv for each time limit."""
        out = self.folder / "sweep"
        self.anytime("sweep", "--over", "time-limit=" + ",".join(limits), *MACHINES, *arguments,
                     "--out", out)
        head, *lines = (out / "compare.csv").read_text().splitlines()
        rows = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
        return {limit: [row for row in rows if row["label"] == f"time-limit-{limit}"]
                for limit in limits}

    @staticmethod
    def mean(rows, column):
        return statistics.mean(float(row[column]) for row in rows)

    def test_no_fixed_limit_gives_as_large_a_batch_in_clearly_shorter_steps(self):
        fixed = [f"{milliseconds}ms" for milliseconds in range(10, 31)]
        found = self.sweep([*fixed, "auto"], "--model", "none:7850", "--steps", 1000,
                           "--repeats", 3)
        self.assertLess(abs(self.mean(found["auto"], "mean_batch") / BATCH - 1), 0.02)
        step = self.mean(found["auto"], "step_seconds")
        enough = [limit for limit in fixed
                  if self.mean(found[limit], "mean_batch") >= 0.98 * BATCH]
        self.assertTrue(enough and len(enough) < len(fixed), "the grid is around the batch")
        best = min(enough, key=lambda limit: self.mean(found[limit], "step_seconds"))
        self.assertLess(step, 1.05 * self.mean(found[best], "step_seconds"), f"best: {best}")

    @unittest.skipUnless(FASHION.exists(), "Fashion-MNIST is not installed")
    def test_it_reaches_the_target_before_limits_too_short_or_too_long(self):
        if support.is_sanitized():
            self.skipTest("24 runs to a target take minutes in a build with sanitizers")
        found = self.sweep(["5ms", "17ms", "30ms", "auto"], "--lr", 0.2, "--eval-every", 5,
                           "--target", "accuracy=0.82", "--repeats", 6)
        after = {limit: self.mean(rows, "target_seconds") for limit, rows in found.items()}
        self.assertLess(after["auto"], after["5ms"], after)
        self.assertLess(after["auto"], after["30ms"], after)
        self.assertLess(after["auto"], 1.15 * after["17ms"], after)


if __name__ == "__main__":
    support.main()
