#!/usr/bin/env python3
"""Linear regression: real-valued labels through every verb and world."""
import json
import random
import sys
import unittest

import support
from support import tensors

sys.path.insert(0, str(support.ROOT / "bench"))
try:
    from torch_task import torch
except ImportError:
    torch = None

SET = ("--data", "synthetic-linear:2000,10,0.1", "--model", "linear", "--batch", "50")
WEIGHTS, BIAS, NOISE = (1.5, -2.0, 0.25), 4.0, 0.1


def rows_of(count, seed):
    """Rows (features, label) of a linear function with noise; one feature is rarely not 0."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        x = [draw.gauss(0, 1), draw.gauss(0, 1), draw.gauss(0, 1) if draw.random() < 0.3 else 0.0]
        x = [float(f"{value:.6g}") for value in x]
        y = BIAS + sum(w * v for w, v in zip(WEIGHTS, x)) + draw.gauss(0, NOISE)
        rows.append((x, float(f"{y:.6g}")))
    return rows


def least_squares(rows):
    """The weights and, last, the bias with the smallest squared error, in closed form."""
    size = len(rows[0][0]) + 1
    matrix = [[0.0] * (size + 1) for _ in range(size)]
    for x, y in rows:
        line = [*x, 1.0]
        for i in range(size):
            for k in range(size):
                matrix[i][k] += line[i] * line[k]
            matrix[i][size] += line[i] * y
    for i in range(size):  # Gauss-Jordan; the matrix is positive definite
        matrix[i] = [value / matrix[i][i] for value in matrix[i]]
        for k in range(size):
            if k != i:
                matrix[k] = [a - matrix[k][i] * b for a, b in zip(matrix[k], matrix[i])]
    return [line[size] for line in matrix]


def loss_of(rows, weights):
    errors = [weights[-1] + sum(w * v for w, v in zip(weights, x)) - y for x, y in rows]
    return sum(error * error for error in errors) / 2 / len(rows)


class Linear(support.TestCase):
    def write_csv(self, name, rows):
        path = self.folder / name
        lines = [",".join(f"{value:.6g}" for value in [*x, y]) for x, y in rows]
        path.write_text("\n".join(["a,b,c,price", *lines]) + "\n")
        return path

    def write_libsvm(self, name, rows):
        path = self.folder / name
        with path.open("w") as file:
            for x, y in rows:
                pairs = [f"{i}:{value:.6g}" for i, value in enumerate(x, 1) if value != 0]
                file.write(" ".join([f"{y:.6g}", *pairs]) + "\n")
        return path

    def weights_of(self, folder):
        """All weights, then the bias."""
        found = tensors.read(folder / "model.safetensors")
        (bias,) = [values for name, values in found.items() if name.endswith("bias")]
        (weight,) = [values for name, values in found.items() if name.endswith("weight")]
        return [*weight, *bias]

    def check_solution(self, train, test, rows, rows_test, *options):
        """The whole set in every step: gradient descent converges to the closed form."""
        ended = self.train("--data", train, "--test-data", test, "--workers", 1, "--steps", 800,
                           "--batch", len(rows), "--lr", 0.5, *options)
        wanted = least_squares(rows)
        for found, value in zip(self.weights_of(ended.folder), wanted, strict=True):
            self.assertAlmostEqual(found, value, delta=2e-4)
        tested = ended.result["test"]
        self.assertAlmostEqual(tested["loss"], loss_of(rows_test, wanted), delta=1e-5)
        self.assertAlmostEqual(tested["rmse"], (2 * tested["loss"]) ** 0.5, places=6)
        mean = sum(y for _, y in rows_test) / len(rows_test)
        variance = sum((y - mean) ** 2 for _, y in rows_test) / len(rows_test)
        self.assertAlmostEqual(tested["r2"], 1 - 2 * tested["loss"] / variance, places=5)
        self.assertIsNone(tested["accuracy"])
        return ended

    def test_it_finds_the_least_squares_solution_in_every_format(self):
        rows, rows_test = rows_of(300, 1), rows_of(100, 2)
        csv = [self.write_csv(f"{name}.csv", some)
               for name, some in (("train", rows), ("test", rows_test))]
        svm = [self.write_libsvm(f"{name}.svm", some)
               for name, some in (("train", rows), ("test", rows_test))]
        self.check_solution(*csv, rows, rows_test, "--model", "linear", "--label", "price",
                            "--prep", "none")
        self.check_solution(*svm, rows, rows_test, "--model", "linear")
        self.check_solution(*svm, rows, rows_test, "--model", "sparse-linear")
        self.check_solution(*svm, rows, rows_test, "--model", "linear", "--engine", "ref")

    def test_every_verb_knows_it(self):
        ended = self.train(*SET, "--workers", 2, "--epochs", 10, "--lr", 0.1, "--lr-schedule",
                           "linear:0.001")
        tested = ended.result["test"]
        self.assertLess(tested["loss"], 1.2 * 0.1 ** 2 / 2)
        self.assertGreater(tested["r2"], 0.99)
        said = self.anytime("eval", ended.folder).out
        self.assertIn("RMSE", said)
        self.assertNotIn("accuracy", said)
        evaluated = json.loads(self.anytime("eval", ended.folder, "--json").out)["test"]
        self.assertAlmostEqual(evaluated["r2"], tested["r2"])
        self.assertAlmostEqual(evaluated["loss"], tested["loss"])
        lines = self.anytime("predict", ended.folder).out.splitlines()
        self.assertEqual(lines[0], "value")
        values = [float(line) for line in lines[1:]]
        self.assertEqual(len(values), 400)
        listed = json.loads(self.anytime("predict", ended.folder, "--json").out)["rows"]
        self.assertEqual(len(listed), 400)
        self.assertAlmostEqual(listed[7]["value"], values[7], places=5)
        out = self.folder / "again.safetensors"
        self.anytime("export", ended.folder, "--out", out)
        again = json.loads(self.anytime("eval", out, "--json", *SET[:4]).out)["test"]
        self.assertEqual(again, evaluated)
        onnx = self.folder / "model.onnx"
        self.anytime("export", ended.folder, "--out", onnx)
        self.assertIn(b"prediction", onnx.read_bytes())
        table = self.anytime("report", ended.folder, "--plots", "none").out
        self.assertIn("test loss", table)
        self.assertNotIn("accuracy", table)

    def test_compare_shows_the_test_loss(self):
        ended = self.anytime("compare", "fmb", "amb", *SET, "--workers", 2, "--steps", 100, "--lr",
                             0.05, "--target", "loss=0.05", "--world", "sim", "--sample-time",
                             "10us", "--plots", "none", "--out", "compared")
        self.assertIn("test loss", ended.out)
        self.assertNotIn("accuracy", ended.out)
        self.assertIn("loss 0.05", ended.out)

    def test_targets_are_loss_and_r2(self):
        for target in ("loss=0.02", "r2=0.99"):
            result = self.train_json(*SET, "--workers", 2, "--lr", 0.05, "--epochs", 50, "--target",
                                     target, "--eval-every", 5, "--world", "sim")
            self.assertEqual(result["stopped"], "target", target)
        ended = self.train(*SET, "--target", "accuracy=0.9", code=support.USAGE)
        self.assert_complaint(ended, "accuracy", "real numbers", "loss=X or r2=X")
        ended = self.train(*support.SMALL, "--target", "r2=0.9", code=support.USAGE)
        self.assert_complaint(ended, "r2", "classes")

    def test_worlds_and_resuming_give_the_same_bits(self):
        """fmb in real time, in simulation, and stopped in the middle."""
        job = (*SET, "--workers", 2, "--lr", 0.05)
        whole = self.train_json(*job, "--steps", 60)
        other = self.train_json(*job, "--steps", 60, "--world", "sim", "--sample-time", "10us")
        self.assertEqual(whole["params_hash"], other["params_hash"])
        half = self.train(*job, "--steps", 30)
        resumed = self.resume(half.folder, "--steps", 60).wait()
        self.assertEqual(resumed.code, support.DONE, resumed)
        self.assertEqual(resumed.result["params_hash"], whole["params_hash"])

    def test_strategies_learn_on_sparse_rows(self):
        rows, rows_test = rows_of(2000, 3), rows_of(500, 4)
        train, test = self.write_libsvm("a.svm", rows), self.write_libsvm("b.svm", rows_test)
        for strategy in ("amb", "async", "hogwild"):
            with self.subTest(strategy=strategy):
                ended = self.train("--data", train, "--test-data", test, "--model", "sparse-linear",
                                   "--strategy", strategy, "--workers", 2, "--lr", 0.02, "--epochs",
                                   20, "--lr-schedule", "linear:0.001", "--data-cache")
                self.assertGreater(ended.result["test"]["r2"], 0.99)
                self.assert_ledger(ended)

    def test_data_info_describes_real_labels(self):
        path = self.write_libsvm("x.svm", rows_of(50, 7))
        self.assertIn("real numbers", self.anytime("data", "info", path).out)
        labels = json.loads(self.anytime("data", "info", path, "--json").out)["train"]["labels"]
        wanted = [y for _, y in rows_of(50, 7)]
        self.assertAlmostEqual(labels["min"], min(wanted), places=4)
        self.assertAlmostEqual(labels["mean"], sum(wanted) / 50, places=4)
        path.write_text("what 1:1\n")  # neither
        self.assert_complaint(self.anytime("data", "info", path, code=support.FORMAT), "x.svm")

    def test_what_does_not_fit_is_refused(self):
        names = self.write_csv("x.csv", rows_of(5, 5))
        names.write_text("a,b,label\n1,2,good\n3,4,bad\n")
        cases = (
            ((*support.SMALL, "--model", "linear"), support.USAGE, ("classes", "real numbers")),
            (("--data", "synthetic-linear", "--model", "softmax"), support.USAGE,
             ("real numbers", "linear")),
            (("--data", "synthetic-linear", "--model", "sparse-linear"), support.USAGE,
             ("dense rows", "--model linear")),
            (("--data", names, "--test-data", names, "--model", "linear"), support.FORMAT,
             ("'good'", "not a number", "line 2")),
            ((*SET, "--shard", "by-class"), support.USAGE, ("by-class", "classes")),
            (("--data", "synthetic-linear:5", "--model", "linear"), support.USAGE, ("ROWS",)),
        )
        for arguments, code, words in cases:
            with self.subTest(arguments=arguments):
                self.assert_complaint(self.train(*arguments, "--workers", 2, code=code), *words)

    @unittest.skipIf(torch is None, f"{sys.executable} has no PyTorch (package python3-torch)")
    def test_a_step_is_that_of_pytorch(self):
        """One step from random weights: loss and gradient of 0.5 * MSELoss in double precision."""
        rows = rows_of(64, 6)
        train = self.write_csv("t.csv", rows)
        start = self.train("--data", train, "--test-data", train, "--model", "linear", "--workers",
                           0, "--steps", 3, "--batch", 8, "--lr", 0.1, "--prep", "none")
        ended = self.train("--data", train, "--test-data", train, "--model", "linear", "--workers",
                           0, "--steps", 1, "--batch", 64, "--lr", 0.5, "--prep", "none", "--init",
                           start.folder)
        before, after = self.weights_of(start.folder), self.weights_of(ended.folder)
        net = torch.nn.Linear(3, 1).double()
        net.weight.data = torch.tensor([before[:3]], dtype=torch.float64)
        net.bias.data = torch.tensor(before[3:], dtype=torch.float64)
        x = torch.tensor([x for x, _ in rows], dtype=torch.float64)
        y = torch.tensor([[y] for _, y in rows], dtype=torch.float64)
        loss = torch.nn.functional.mse_loss(net(x), y) / 2
        loss.backward()
        wanted = [*net.weight.grad[0].tolist(), *net.bias.grad.tolist()]
        self.assertAlmostEqual(ended.result["train"]["loss"] / loss.item(), 1, places=5)
        for a, b, gradient in zip(before, after, wanted, strict=True):
            self.assertAlmostEqual((a - b) / 0.5, gradient, delta=1e-5)


if __name__ == "__main__":
    support.main()
