#!/usr/bin/env python3
"""A user-defined model, from C and from Python, through the public library."""
import os
import re
import subprocess
import sys
import unittest

BUILD = os.path.dirname(os.environ["ANYTIME"])
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
EXAMPLE_C = [os.path.join(BUILD, "example_own_model")]
EXAMPLE_PY = [os.environ.get("PYTHON", sys.executable), os.path.join(EXAMPLES, "own_model.py")]
BAYES = 0.1425  # about the lowest loss possible on these clouds


def run(command, *options):
    environment = dict(os.environ, ANYTIME_LIBRARY=os.path.join(BUILD, "libanytime.so"))
    return subprocess.run([*command, "--quiet", *options], env=environment, text=True,
                          capture_output=True, timeout=120)


def loss_of(done):
    assert done.returncode == 0, done.stderr
    return float(re.search(r"mean loss (\S+)", done.stdout).group(1))


def sanitized():
    with open(os.environ["ANYTIME"], "rb") as program:
        return b"__asan_init" in (bytes := program.read()) or b"__tsan_init" in bytes


class OwnModel(unittest.TestCase):
    def test_it_learns_under_every_strategy_and_number_of_workers(self):
        for strategy in ("fmb", "amb"):
            for workers in ("0", "1", "3"):
                with self.subTest(strategy=strategy, workers=workers):
                    loss = loss_of(run(EXAMPLE_C, "--strategy", strategy, "--workers", workers,
                                       "--epochs", "2"))
                    self.assertLess(loss, BAYES * 1.03)

    def test_the_same_options_give_the_same_parameters_with_a_hub_and_without(self):
        options = ["--deal", "global", "--epochs", "1", "--batch", "32", "--micro-batch", "32"]
        solo = run(EXAMPLE_C, *options, "--workers", "0").stdout
        self.assertEqual(solo, run(EXAMPLE_C, *options, "--workers", "1").stdout)

    def test_a_callback_in_python_trains_in_forked_workers(self):
        if subprocess.run([EXAMPLE_PY[0], "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("numpy is not installed")
        if sanitized():
            self.skipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        for options in (["--workers", "2"], ["--workers", "0"], ["--strategy", "amb"]):
            with self.subTest(options=options):
                self.assertLess(loss_of(run(EXAMPLE_PY, *options, "--epochs", "2")), BAYES * 1.03)

    def test_a_wrong_option_is_refused_with_a_hint(self):
        done = run(EXAMPLE_C, "--strategy", "amx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean amb", done.stderr)
        self.assertEqual(run(EXAMPLE_C, "--model", "softmax").returncode, 2)

    def test_nothing_is_written_without_run(self):
        before = set(os.listdir("."))
        run(EXAMPLE_C, "--steps", "10")
        self.assertEqual(before, set(os.listdir(".")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
