#!/usr/bin/env python3
"""`simulate --from RUN`: the machines of a recorded run under another strategy.

Recorded and predicted runs are both simulated here, so that the load of the machine has no effect;
`bench/run --only whatif` compares with real runs.
"""
import json
import os
import subprocess
import tempfile
import unittest

import support

ANYTIME = os.environ["ANYTIME"]
COMMON = ["--data", "synthetic:2000,20,4", "--workers", "6", "--batch", "32", "--micro-batch", "4",
          "--straggler", "niagara+speed:1,1,1,2,1,1.5", "--straggler-scale", "20%",
          "--sample-time", "1ms", "--latency", "2ms", "--steps", "120", "--seed", "5"]


def run(*words, code=0):
    done = subprocess.run([ANYTIME, *words], text=True, capture_output=True, timeout=300)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def result(folder):
    with open(os.path.join(folder, "result.json")) as file:
        return json.load(file)


class WhatIf(unittest.TestCase):
    def setUp(self):
        self.box = tempfile.TemporaryDirectory(dir=".")
        self.recorded = os.path.join(self.box.name, "fmb")
        run("simulate", "--strategy", "fmb", *COMMON, "--run", self.recorded, "--quiet")

    def tearDown(self):
        self.box.cleanup()

    def simulate(self, name, *words):
        folder = os.path.join(self.box.name, name)
        run("simulate", *words, "--run", folder, "--quiet")
        return result(folder)

    def test_the_same_strategy_takes_the_same_time(self):
        again = self.simulate("again", "--from", self.recorded)
        self.assertAlmostEqual(again["seconds"] / result(self.recorded)["seconds"], 1, delta=0.005)
        self.assertEqual(again["params_hash"], result(self.recorded)["params_hash"])

    def test_another_strategy_is_predicted_from_the_measurements(self):
        actual = self.simulate("actual", "--strategy", "amb", *COMMON)
        predicted = self.simulate("predicted", "--from", self.recorded, "--strategy", "amb")
        ratio = predicted["samples_per_second"] / actual["samples_per_second"]
        self.assertAlmostEqual(ratio, 1, delta=0.03)
        self.assertEqual(predicted["strategy"], "amb")

    def test_given_options_override_the_recorded_ones(self):
        shorter = self.simulate("shorter", "--from", self.recorded, "--steps", "10")
        self.assertEqual(shorter["steps"], 10)
        self.assertEqual(shorter["options"]["batch"], 32)
        self.assertIn("pace.trace", shorter["options"]["straggler"])

    def test_a_run_without_an_event_log_is_refused(self):
        bare = os.path.join(self.box.name, "bare")
        run("simulate", *COMMON, "--record", "none", "--run", bare, "--quiet")
        done = run("simulate", "--from", bare, "--run", os.path.join(self.box.name, "x"), code=66)
        self.assertIn("events.bin", done.stderr)
        run("simulate", "--from", os.path.join(self.box.name, "nowhere"), code=66)


if __name__ == "__main__":
    support.main()
