#!/usr/bin/env python3
"""onnxruntime computes with an exported net what `predict` prints, for any size of batch."""
import json

import numpy
import onnxruntime

import export  # of tests/e2e: a net with one layer of every kind
import support


class OnnxRuntime(support.TestCase):
    def samples(self, shape, count=24, classes=10):
        """A data set of random bytes, as --data takes it, and its samples as floats."""
        random = numpy.random.default_rng(7)
        x = random.integers(0, 256, (count, *shape), dtype=numpy.uint8)
        numpy.save(self.folder / "x.npy", x)
        numpy.save(self.folder / "y.npy", numpy.arange(count) % classes)
        return f"{self.folder / 'x.npy'},{self.folder / 'y.npy'}", x.astype(numpy.float32) / 255

    def exported(self, model, data):
        folder = self.train("--model", model, "--data", data, "--test-data", data, "--steps", 3,
                            "--workers", 1, "--batch", 12, "--optimizer", "momentum",
                            "--eval-every", 0).folder
        path = folder / "model.onnx"
        self.anytime("export", folder, "--out", path)
        return folder, path

    def probabilities(self, path, x, batch):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.assertEqual([given.name for given in session.get_inputs()], ["input"])
        rows = [session.run(["logits"], {"input": x[first:first + batch]})[0]
                for first in range(0, len(x), batch)]
        logits = numpy.concatenate(rows).astype(numpy.float64)
        powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def assert_same(self, model, shape):
        data, x = self.samples(shape)
        folder, path = self.exported(model, data)
        shown = json.loads(self.anytime("predict", folder, "--json").out)["rows"]
        self.assertEqual(len(shown), len(x))
        for batch in (1, 7, len(x)):
            found = self.probabilities(path, x, batch)
            self.assertGreater(found.std(axis=0).max(), 1e-3, "all predictions are the same")
            for row, told in zip(found, shown):
                self.assertAlmostEqual(row.max(), told["probability"], delta=1e-4)
                for probability, also in zip(row, told["probabilities"], strict=True):
                    self.assertAlmostEqual(probability, also, delta=1e-4)

    def test_nets(self):
        shapes = {"softmax": (1, 28, 28), "mlp:30,20": (1, 28, 28), "mnist-cnn": (1, 28, 28),
                  "lenet": (1, 28, 28), "cifar10-cnn": (3, 32, 32), "wrn-28-2-8": (3, 8, 8),
                  "resnet18-gn": (3, 32, 32)}
        for model, shape in shapes.items():
            with self.subTest(model=model):
                self.assert_same(model, shape)

    def test_every_kind_of_layer(self):
        net = self.folder / "all.net"
        net.write_text(export.ALL_KINDS)
        self.assert_same(net, (1, 11, 13))


if __name__ == "__main__":
    support.main()
