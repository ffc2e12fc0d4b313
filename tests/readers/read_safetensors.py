#!/usr/bin/env python3
"""The safetensors library reads our weights, and `--init` reads its files."""
import numpy
import safetensors
import safetensors.numpy

import support


class Safetensors(support.TestCase):
    def trained(self, *arguments):
        return self.train(*support.SMALL, "--model", "mlp:7,3", "--steps", 5, "--workers", 1,
                          *arguments)

    def test_names_shapes_and_metadata(self):
        folder = self.trained().folder
        self.anytime("export", folder, "--out", "model.safetensors")
        with safetensors.safe_open(self.folder / "model.safetensors", "numpy") as file:
            self.assertEqual(file.metadata()["model"], "mlp:7,3")
            shapes = {name: file.get_tensor(name).shape for name in file.keys()}
        self.assertEqual(shapes, {"dense1.weight": (7, 20), "dense1.bias": (7,),
                                  "dense2.weight": (3, 7), "dense2.bias": (3,),
                                  "dense3.weight": (5, 3), "dense3.bias": (5,)})

    def test_the_weights_compute_what_predict_prints(self):
        x = numpy.random.default_rng(5).normal(size=(60, 20)).astype(numpy.float32)
        numpy.save(self.folder / "x.npy", x)
        numpy.save(self.folder / "y.npy", numpy.arange(60) % 5)
        data = f"{self.folder / 'x.npy'},{self.folder / 'y.npy'}"
        folder = self.trained("--data", data, "--test-data", data, "--steps", 50).folder
        tensors = safetensors.numpy.load_file(folder / "model.safetensors")
        for layer in ("dense1", "dense2", "dense3"):
            x = x @ tensors[f"{layer}.weight"].T + tensors[f"{layer}.bias"]
            if layer != "dense3":
                x = numpy.maximum(x, 0)
        shown = support.json.loads(self.anytime("predict", folder, "--json").out)["rows"]
        powers = numpy.exp(x - x.max(axis=1, keepdims=True))
        for row, told in zip(powers / powers.sum(axis=1, keepdims=True), shown, strict=True):
            for probability, also in zip(row, told["probabilities"], strict=True):
                self.assertAlmostEqual(probability, also, delta=1e-4)

    def test_a_file_of_the_library_is_an_initial_value(self):
        first = self.trained()
        weights = safetensors.numpy.load_file(first.folder / "model.safetensors")
        path = self.folder / "again.safetensors"
        safetensors.numpy.save_file(dict(reversed(weights.items())), path)
        runs = [self.train_json(*support.SMALL, "--model", "mlp:7,3", "--steps", 3, "--workers", 1,
                                "--init", init)
                for init in (path, first.folder / "model.safetensors")]
        self.assertEqual(runs[0]["params_hash"], runs[1]["params_hash"])


if __name__ == "__main__":
    support.main()
