#!/usr/bin/env python3
"""Winograd convolutions: what selects them, and that nets learn the same with and without them."""
import json
import subprocess

import support

NET = ("conv 3x3x32\nrelu\nmaxpool 2\nconv 5x5x32\nrelu\nconv 3x3x32 bias=no\nbn\nrelu\nmaxpool 2\n"
       "dense classes\n")


def processor():
    """The instruction sets that `anytime doctor` finds."""
    doctor = subprocess.run([support.ANYTIME, "doctor", "--json"], capture_output=True, text=True,
                            timeout=support.BOUND, check=False)
    found = json.loads(doctor.stdout)["findings"]
    return next(row["facts"] for row in found if row["what"] == "processor")


class Winograd(support.TestCase):
    def setUp(self):
        super().setUp()
        self.net = self.folder / "small.net"
        self.net.write_text(NET, encoding="utf-8")

    def result(self, *arguments, **env):
        return self.train_json("--data", "synthetic:600,3x16x16,4", "--model", self.net,
                               "--workers", 0, "--batch", 16, "--optimizer", "momentum", "--lr",
                               0.01, "--record", "none", *arguments, env=env)

    def hash(self, *arguments, **env):
        return self.result("--steps", 3, "--eval-size", 16, *arguments, **env)["params_hash"]

    def test_the_exact_engine_and_the_environment_select_direct_sums(self):
        fast, exact = self.hash(), self.hash("--engine", "exact")
        self.assertNotEqual(fast, exact)
        self.assertEqual(exact, self.hash(ANYTIME_CONV="direct"))
        self.assertEqual(exact, self.hash("--engine", "exact", ANYTIME_CONV="winograd"))
        self.assertEqual(fast, self.hash(), "the choice must not depend on anything but sizes")

    def test_winograd_can_be_forced_where_it_does_not_pay(self):
        """A micro-batch of one sample."""
        one = ("--batch", 1)
        self.assertNotEqual(self.hash(*one, ANYTIME_CONV="winograd"),
                            self.hash(*one, "--engine", "exact"))

    def test_nets_learn_the_same_with_and_without_it(self):
        for isa in ("avx2", "avx512"):
            with self.subTest(isa=isa):
                if not processor()[{"avx2": "avx2", "avx512": "avx512f"}[isa]]:
                    self.skipTest(f"the processor has no {isa}")
                fast, exact = (self.result("--data", "fashion-mnist", "--steps", 80, "--eval-size",
                                           1000, "--engine", engine, ANYTIME_ISA=isa)
                               for engine in ("fast", "exact"))
                self.assertNotEqual(fast["params_hash"], exact["params_hash"])
                self.assertLess(abs(fast["train"]["loss"] / exact["train"]["loss"] - 1), 0.02)
                self.assertGreater(fast["test"]["accuracy"], 0.6)

    def test_unknown_instruction_sets_and_algorithms_are_refused(self):
        common = ("--data", "synthetic:100,3x16x16,4", "--model", self.net, "--workers", 0,
                  "--steps", 1)
        for name, value, hint in (("ANYTIME_ISA", "sse9", "avx2"),
                                  ("ANYTIME_CONV", "fourier", "winograd")):
            with self.subTest(name=name):
                ended = self.train(*common, code=support.USAGE, env={name: value})
                self.assert_complaint(ended, f"{name}={value}", hint)

    def test_an_instruction_set_can_be_requested(self):
        if processor()["avx512f"]:
            self.assertEqual(self.hash(), self.hash(ANYTIME_ISA="avx512"))
        else:
            self.train("--data", "synthetic:100,3x16x16,4", "--model", self.net, "--workers", 0,
                       "--steps", 1, code=support.USAGE, env={"ANYTIME_ISA": "avx512"})


if __name__ == "__main__":
    if not processor().get("avx2"):
        print("skipped: the processor has no AVX2")
        raise SystemExit(77)
    support.main()
