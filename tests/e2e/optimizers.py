#!/usr/bin/env python3
"""Optimizers, schedules, clipping and label smoothing from the command line, against their formulas
and, where it is installed, PyTorch.

Each step uses the whole data set, so the order of samples does not matter.
"""
import math
import random
import struct
import sys
import unittest

import support
from support import tensors

try:
    import torch
except ImportError:
    torch = None

SAMPLES, FEATURES, CLASSES = 60, 9, 4
QUIET = ("--quiet", "--eval-every", 0)


def draw_samples():
    """Bytes that depend on the label, and unequally many samples per class."""
    chance = random.Random(3)
    labels = [CLASSES - 1 - min(i % 6, CLASSES - 1) for i in range(SAMPLES)]
    rows = [[chance.randrange(128) + 30 * label for _ in range(FEATURES)] for label in labels]
    return rows, labels


class Case(support.TestCase):
    def setUp(self):
        super().setUp()
        self.rows, self.labels = draw_samples()
        (self.folder / "images").write_bytes(
            struct.pack(">IIII", 0x803, SAMPLES, 3, 3) + bytes(sum(self.rows, [])))
        (self.folder / "labels").write_bytes(
            struct.pack(">II", 0x801, SAMPLES) + bytes(self.labels))
        self.whole = ("--data", f"{self.folder}/images,{self.folder}/labels", "--eval-size", 1,
                      "--test-split", 0, "--workers", 1, "--batch", SAMPLES, "--model", "softmax",
                      *QUIET)

    def weights(self, *arguments):
        """The weights and biases of softmax regression after training, in this order."""
        ended = self.train(*self.whole, *arguments)
        found = tensors.read(ended.folder / "model.safetensors")
        return [number for name in sorted(found, reverse=True) for number in found[name]]

    def rates(self, *arguments):
        ended = self.train(*self.whole, *arguments)
        return [float(row["learning_rate"]) for row in ended.table("master_stats.csv")
                if row["learning_rate"]]


class Clipping(Case):
    def test_a_long_step_has_exactly_the_given_length(self):
        moved = self.weights("--steps", 1, "--lr", 1, "--clip", "0.125")  # it starts at zero
        self.assertAlmostEqual(math.hypot(*moved), 0.125, places=6)

    def test_it_keeps_the_direction(self):
        free, clipped = (self.weights("--steps", 1, "--lr", 1, *clip)
                         for clip in ((), ("--clip", "0.125")))
        for a, b in zip(free, clipped, strict=True):
            self.assertAlmostEqual(a / math.hypot(*free), b / 0.125, places=5)

    def test_a_limit_that_is_never_reached_changes_no_bit(self):
        self.assertEqual(self.weights("--steps", 9),
                         self.weights("--steps", 9, "--clip", "1e6"))

    def test_worlds_agree(self):
        arguments = (*support.SMALL, "--steps", 30, "--optimizer", "adamw", "--clip", "0.05",
                     "--label-smoothing", "0.1", "--lr-schedule", "warmup:500+one-cycle")
        hashes = {self.train_json(*arguments, *world)["params_hash"]
                  for world in (("--workers", 3), ("--workers", 3, "--world", "sim"))}
        self.assertEqual(len(hashes), 1)
        self.train_json(*arguments, "--workers", 3, "--strategy", "async")
        self.train_json(*arguments, "--workers", 0)


class LabelSmoothing(Case):
    def test_the_first_step_follows_the_formula(self):
        """All classes are equally likely at first, so the gradient of a bias is 1/C minus the mean
        label."""
        part = 0.3
        biases = self.weights("--steps", 1, "--lr", 1, "--label-smoothing", part)[-CLASSES:]
        for label, bias in enumerate(biases):
            share = self.labels.count(label) / SAMPLES
            wanted = (1 - part) * share + part / CLASSES - 1 / CLASSES
            self.assertAlmostEqual(bias, wanted, places=6)

    def test_the_test_loss_is_not_smoothed(self):
        """Fully smoothed labels say nothing: the model stays at the start, at a loss of log C."""
        result = self.train(*self.whole, "--steps", 5, "--label-smoothing", 1).result
        self.assertAlmostEqual(result["test"]["loss"], math.log(CLASSES), places=5)
        self.assertAlmostEqual(result["train"]["loss"], math.log(CLASSES), places=5)


class Schedules(Case):
    def test_a_warm_up_comes_before_another_schedule(self):
        rates = self.rates("--epochs", 10, "--lr", 1, "--lr-schedule", "warmup:4e+cosine")
        wanted = [0.01 + 0.99 * step / 4 if step < 4 else
                  0.5 + 0.5 * math.cos(math.pi * (step - 4) / 6) for step in range(10)]
        for rate, right in zip(rates, wanted, strict=True):
            self.assertAlmostEqual(rate, right, places=5)

    def test_one_cycle_rises_and_falls(self):
        rates = self.rates("--epochs", 10, "--lr", 1, "--lr-schedule", "one-cycle:0.5,10,100")
        self.assertAlmostEqual(rates[0], 0.1, places=5)
        self.assertEqual(max(range(10), key=rates.__getitem__), 5)
        self.assertAlmostEqual(rates[5], 1, places=5)
        self.assertLess(rates[9], 0.11)
        self.assertEqual(rates[:6], sorted(rates[:6]))


class Refusals(Case):
    def refused(self, *arguments):
        return self.train(*arguments, "--quiet", code=support.USAGE)

    def test_numbers_out_of_range(self):
        self.assert_complaint(self.refused(*self.whole, "--optimizer", "nesterov:1.5"),
                              "MOMENTUM of optimizer nesterov must be from 0", "(got 1.5)")
        self.assert_complaint(self.refused(*self.whole, "--optimizer", "sgd:1"),
                              "it has no numbers to set")
        self.assert_complaint(self.refused(*self.whole, "--optimizer", "adamv"), "adamw")
        self.assert_complaint(self.refused(*self.whole, "--lr-schedule", "warmup:x"),
                              "warmup:LENGTH+SCHEDULE")
        self.assert_complaint(self.refused(*self.whole, "--epochs", 2, "--lr-schedule",
                                           "warmup:3e+cosine"), "leaves nothing for")
        self.assert_complaint(self.refused(*self.whole, "--clip", "0"), "--clip")

    def test_sparse_models(self):
        sparse = ("--model", "sparse-lr", "--data", "synthetic-clicks:400,4096", "--steps", 3)
        self.assert_complaint(self.refused(*sparse, "--optimizer", "adamw"), "adamw does not work")
        self.assert_complaint(self.refused(*sparse, "--clip", 1), "--clip does not work with")
        self.assert_complaint(self.refused(*sparse, "--label-smoothing", "0.1"),
                              "it has no softmax")


@unittest.skipIf(torch is None, f"{sys.executable} has no PyTorch (package python3-torch)")
class AgainstTorch(Case):
    STEPS = 40

    def torchs(self, optimizer, smoothing=0.0, clip=None):
        """The weights after the same steps of PyTorch, in double precision."""
        torch.set_num_threads(1)
        net = torch.nn.Linear(FEATURES, CLASSES).double()
        for tensor in net.parameters():
            torch.nn.init.zeros_(tensor)
        optimizer = optimizer(net.parameters())
        images, labels = torch.tensor(self.rows) / 255.0, torch.tensor(self.labels)
        for _ in range(self.STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(images.double()), labels,
                                              label_smoothing=smoothing).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
        return torch.cat([net.weight.detach().flatten(), net.bias.detach()]).tolist()

    def compare(self, arguments, optimizer, **settings):
        ours = self.weights("--steps", self.STEPS, *arguments)
        for a, b in zip(ours, self.torchs(optimizer, **settings), strict=True):
            self.assertAlmostEqual(a, b, delta=2e-5)

    def test_nesterov_with_clipping(self):
        self.compare(("--optimizer", "nesterov:0.8", "--lr", 0.2, "--clip", 0.1,
                      "--weight-decay", 0.01),
                     lambda p: torch.optim.SGD(p, 0.2, 0.8, nesterov=True, weight_decay=0.01),
                     clip=0.1)

    def test_adamw_with_label_smoothing(self):
        self.compare(("--optimizer", "adamw:0.8,0.99,1e-6", "--lr", 0.01, "--weight-decay", 0.1,
                      "--label-smoothing", 0.2),
                     lambda p: torch.optim.AdamW(p, 0.01, (0.8, 0.99), 1e-6, 0.1), smoothing=0.2)

    def test_one_cycle(self):
        rates = self.rates("--epochs", 40, "--lr", 0.5, "--lr-schedule", "one-cycle")
        tensor = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([tensor], 0.5)
        # PyTorch's peak is at step pct_start * total_steps - 1, ours at 0.3 * 40 = 12; PyTorch's
        # end is at step total_steps - 1, ours at 40.
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=41,
                                                    cycle_momentum=False, pct_start=13 / 41)
        for rate in rates:
            self.assertAlmostEqual(rate, cycle.get_last_lr()[0], delta=1e-6)
            optimizer.step()
            cycle.step()


if __name__ == "__main__":
    support.main()
