#!/usr/bin/env python3
"""--comm-delay in both worlds: late messages cost time, never samples."""
import json
import os
import subprocess
import tempfile
import unittest

import support

ANYTIME = os.environ["ANYTIME"]
COMMON = ["--data", "synthetic:2000,20,4", "--workers", "3", "--batch", "16", "--steps", "60",
          "--sample-time", "50us", "--lr", "0.02", "--json", "--quiet"]


def train(*words):
    with tempfile.TemporaryDirectory(dir=".") as box:
        done = subprocess.run([ANYTIME, "train", *COMMON, *words, "--run", box + "/run"], text=True,
                              capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class CommDelay(unittest.TestCase):
    def assert_ledger(self, result):
        for worker in result["worker"]:
            self.assertEqual(worker["drawn"], worker["used"] + worker["dropped"])

    def test_a_barrier_waits_for_late_messages_and_gives_the_same_bits(self):
        for world in ("local", "sim"):
            with self.subTest(world=world):
                prompt = train("--world", world)
                late = train("--world", world, "--comm-delay", "3ms")
                self.assert_ledger(late)
                self.assertEqual(prompt["params_hash"], late["params_hash"])
                # Six delayed messages per step; the slowest of three pairs adds more than 3 ms.
                self.assertGreater(late["seconds"], prompt["seconds"] + 60 * 0.003)

    def test_asynchronous_workers_continue_and_lose_nothing(self):
        for world in ("local", "sim"):
            for strategy in ("async", "async-timed", "ssp"):
                with self.subTest(world=world, strategy=strategy):
                    late = train("--world", world, "--strategy", strategy, "--comm-delay", "3ms")
                    self.assert_ledger(late)
                    self.assertEqual(set(late["samples"]["dropped_why"]) - {"stopped"}, set())

    def test_one_process_has_no_messages_to_delay(self):
        done = subprocess.run([ANYTIME, "train", *COMMON, "--workers", "0", "--comm-delay", "1ms"],
                              text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no messages are sent", done.stderr)


if __name__ == "__main__":
    support.main()
