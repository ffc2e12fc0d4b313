#!/usr/bin/env python3
"""The optimizers of src/learn/optim/torch_update.h against torch.optim, over 50 steps.

With PyTorch 1.13 every parameter must have the same bits after every step. Other versions order a
few operations differently, so there the bound is a few units in the last place of the largest
parameter.
"""
import os
import subprocess
import sys
import unittest

import support

try:
    import numpy
    import torch
except ImportError:
    torch = None

PROGRAM = os.environ.get("ANYTIME_TORCH_UPDATE", "torch_update")
STEPS, FLOATS, WORKERS = 50, 5003, 3  # several blocks, and a remainder that fits no vector
SAMPLES = 64  # a power of two: the mean of the sums is then exact, as torch would compute it
FIELDS = ("lr", "weight_decay", "momentum", "nesterov", "beta1", "beta2", "alpha", "eps",
          "lr_decay")


def group_arguments(settings):
    numbers = dict(settings)
    numbers["beta1"], numbers["beta2"] = numbers.pop("betas", (0, 0))
    return [repr(float(numbers.get(field, 0))) for field in FIELDS]


@unittest.skipIf(torch is None, f"{sys.executable} has no PyTorch (package python3-torch)")
class TorchUpdates(unittest.TestCase):
    def setUp(self):
        generator = numpy.random.default_rng(11)
        self.start = generator.standard_normal(FLOATS, dtype=numpy.float32)
        self.sums = generator.standard_normal((STEPS, WORKERS, FLOATS), dtype=numpy.float32)
        self.sums *= numpy.float32(20)

    def ours(self, kind, groups, start=0.0):
        numbers = [text for group in groups for text in group_arguments(group)]
        command = [PROGRAM, kind, STEPS, FLOATS, WORKERS, SAMPLES, start, *numbers]
        ended = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                               input=self.start.tobytes() + self.sums.tobytes(),
                               timeout=support.BOUND, check=True)
        return numpy.frombuffer(ended.stdout, numpy.float32).reshape(STEPS, 3, FLOATS)[:, 0]

    def torchs(self, kind, groups, **more):
        part = FLOATS // len(groups)
        ends = [part * (i + 1) for i in range(len(groups) - 1)]
        tensors = [torch.nn.Parameter(torch.from_numpy(piece.copy()))
                   for piece in numpy.split(self.start, ends)]
        optimizer = getattr(torch.optim, kind)(
            [{"params": [tensor], **group} for tensor, group in zip(tensors, groups)], **more)
        rows = []
        for sums in self.sums:
            mean = ((sums[0] + sums[1]) + sums[2]) * numpy.float32(1 / SAMPLES)
            for tensor, piece in zip(tensors, numpy.split(mean, ends)):
                tensor.grad = torch.from_numpy(piece.copy())
            optimizer.step()
            rows.append(numpy.concatenate([tensor.detach().numpy() for tensor in tensors]))
        return numpy.stack(rows)

    def compare(self, kind, *groups, start=0.0, **more):
        ours, torchs = self.ours(kind, groups, start), self.torchs(kind, groups, **more)
        self.assertTrue(numpy.isfinite(ours).all())
        self.assertGreater(abs(ours[-1] - self.start).max(), 1e-3)  # something was learned
        worst = abs(ours - torchs).max()
        if torch.__version__.startswith("1.13."):
            different = (ours.view(numpy.uint32) != torchs.view(numpy.uint32)).sum()
            self.assertEqual(different, 0, f"{kind} {groups}: up to {worst}")
        self.assertLessEqual(worst, 4e-6 * abs(torchs).max())

    def test_sgd(self):
        self.compare("SGD", {"lr": 0.1})
        self.compare("SGD", {"lr": 0.03, "weight_decay": 0.01})

    def test_momentum(self):
        self.compare("SGD", {"lr": 0.1, "momentum": 0.9})
        self.compare("SGD", {"lr": 0.1, "momentum": 0.95, "weight_decay": 5e-4})

    def test_nesterov(self):
        self.compare("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True})
        self.compare("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1})

    def test_adam(self):
        self.compare("Adam", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8})
        self.compare("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-5, "weight_decay": 0.1})

    def test_adamw(self):
        self.compare("AdamW", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8,
                               "weight_decay": 0.01})
        self.compare("AdamW", {"lr": 0.1, "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0})

    def test_rmsprop(self):
        self.compare("RMSprop", {"lr": 0.01, "alpha": 0.99, "eps": 1e-8})
        self.compare("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-8, "momentum": 0.9,
                                 "weight_decay": 0.01})

    def test_adagrad(self):
        self.compare("Adagrad", {"lr": 0.1, "eps": 1e-10})
        self.compare("Adagrad", {"lr": 0.1, "eps": 1e-10, "lr_decay": 0.01, "weight_decay": 0.01},
                     start=0.5, initial_accumulator_value=0.5)

    def test_every_group_has_its_own_numbers(self):
        self.compare("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True},
                     {"lr": 0.01}, {"lr": 0.2, "momentum": 0.5, "weight_decay": 0.01})
        self.compare("AdamW", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0},
                     {"lr": 0.002, "betas": (0.5, 0.9), "eps": 1e-6, "weight_decay": 0.1})


if __name__ == "__main__":
    support.main()
