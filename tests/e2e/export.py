#!/usr/bin/env python3
"""`anytime export`: safetensors checked by the rules of the format, ONNX by running it in other
programs."""
import json
import math
import struct
import unittest

import support

try:
    import cv2
    import numpy
    import onnx
    import onnx.checker
except ImportError:
    onnx = None

# One layer of every kind, with asymmetric padding and a residual block.
ALL_KINDS = """
rgb
resize 15x14
conv 4x4x8 stride=2
relu
residual
    conv 3x3x8 bias=no
    gn 4
    relu
    conv 3x3x8
    bn
    shortcut conv 1x1x8
end
relu
avgpool 3 stride=2 pad=same
maxpool 3 stride=2 pad=1
dropout keep=0.5
flatten
dense 24
bn
relu
reshape 6x2x2
conv 2x2x12
avgpool all
dense classes
"""


class Broken(Exception):
    """The file violates the format."""


def need(holds, what):
    if not holds:
        raise Broken(what)


def unique(pairs):
    names = [name for name, _ in pairs]
    need(len(names) == len(set(names)), f"a name occurs twice in {names}")
    return dict(pairs)


def check_entry(name, entry, size):
    need(set(entry) == {"dtype", "shape", "data_offsets"}, f"{name}: keys {set(entry)}")
    need(entry["dtype"] == "F32", f"{name}: dtype")
    need(all(type(extent) is int and extent >= 0 for extent in entry["shape"]), f"{name}: shape")
    first, end = entry["data_offsets"]
    need(0 <= first <= end <= size, f"{name}: offsets {first}, {end} of {size}")
    need(end - first == 4 * math.prod(entry["shape"]), f"{name}: size and shape")
    return first, end


def read_safetensors(data):
    """Tensors (name to shape and bytes) and metadata of a file; checks every rule."""
    need(len(data) >= 8, "shorter than its first number")
    (length,) = struct.unpack("<Q", data[:8])
    need(length <= 100_000_000, "the header is longer than the format allows")
    need(8 + length <= len(data), "the header is longer than the file")
    text = data[8:8 + length]
    need(text[:1] == b"{", "the header does not begin with {")
    need(length % 8 == 0, "tensors do not begin at a multiple of 8")
    need(text == text.rstrip(b" ") + b" " * (len(text) - len(text.rstrip(b" "))), "padding")
    need(text.rstrip(b" ").endswith(b"}"), "the header is followed by other bytes than blanks")
    header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    metadata = header.pop("__metadata__", {})
    need(all(isinstance(value, str) for value in metadata.values()), "metadata are texts")
    body, places = data[8 + length:], []
    for name, entry in header.items():
        places.append(check_entry(name, entry, len(body)))
    places.sort()
    need([first for first, _ in places] == [0, *(end for _, end in places[:-1])],
         "there are gaps or overlaps")
    need(places[-1][1] == len(body), "bytes after the last tensor")
    tensors = {name: (tuple(entry["shape"]), body[slice(*entry["data_offsets"])])
               for name, entry in header.items()}
    return tensors, metadata


class Safetensors(support.TestCase):
    def trained(self, *arguments):
        return self.train(*support.SMALL, "--steps", 3, "--workers", 1, *arguments).folder

    def exported(self, source, name="model.safetensors", *arguments):
        self.anytime("export", source, "--out", name, *arguments)
        return self.folder / name

    def test_an_export_keeps_every_rule_of_the_format(self):
        for model in ("softmax", "mlp:7,3"):
            with self.subTest(model=model):
                folder, name = self.trained("--model", model), f"{model[:3]}.safetensors"
                tensors, metadata = read_safetensors(self.exported(folder, name).read_bytes())
                self.assertEqual(metadata["model"], model)
                self.assertEqual(metadata["data"], "synthetic:2000,20,5")
                own, _ = read_safetensors((folder / "model.safetensors").read_bytes())
                self.assertEqual(tensors, own)

    def test_the_reader_of_this_test_detects_errors(self):
        whole = self.exported(self.trained("--model", "softmax")).read_bytes()
        header = 8 + int.from_bytes(whole[:8], "little")
        bad = {"cut": whole[:-1], "longer": whole + b"\0", "half a header": whole[:header - 9],
               "another type": whole.replace(b'"F32"', b'"F16"', 1),
               "a hole": whole.replace(b'"data_offsets":[0,', b'"data_offsets":[4,', 1),
               "twice": struct.pack("<Q", 16) + b'{"a":{},"a":{}} '}
        for what, data in bad.items():
            with self.subTest(what=what), self.assertRaises((Broken, ValueError)):
                read_safetensors(data)

    def test_an_existing_file_is_not_overwritten(self):
        folder = self.trained("--model", "softmax")
        path = self.exported(folder)
        before = path.read_bytes()
        ended = self.anytime("export", folder, "--out", path, code=support.USAGE)
        self.assert_complaint(ended, "exists already")
        self.assertEqual(path.read_bytes(), before)

    def test_a_weights_file_exports_like_its_run(self):
        folder = self.trained("--model", "mlp:6")
        first = self.exported(folder, "first.safetensors")
        again = self.exported(first, "again.safetensors")
        self.assertEqual(first.read_bytes(), again.read_bytes())

    def test_the_metadata_state_the_fitted_preprocessing(self):
        folder = self.trained("--model", "softmax", "--prep", "normalise")
        _, metadata = read_safetensors((folder / "model.safetensors").read_bytes())
        self.assertEqual(metadata["prep"], "normalise")
        fitted = metadata["prep_fitted"]
        _, metadata = read_safetensors(self.exported(folder).read_bytes())  # without the data
        self.assertEqual((metadata["prep"], metadata["prep_fitted"]), (fitted, fitted))
        means, deviations = metadata["prep_fitted"].removeprefix("normalise:").split("/")
        self.assertEqual(len(means.split(",")), 20)
        self.assertEqual(len(deviations.split(",")), 20)

    def test_sparse_weights_export_to_safetensors_but_not_to_onnx(self):
        rows = self.folder / "rows.libsvm"
        rows.write_text("".join(f"{i % 2 * 2 - 1} {i % 7 + 1}:1 9:0.5\n" for i in range(50)))
        folder = self.train("--data", rows, "--test-data", rows, "--model", "sparse-lr", "--steps",
                            3, "--workers", 1).folder
        read_safetensors(self.exported(folder).read_bytes())
        ended = self.anytime("export", folder, "--out", "lr.onnx", code=support.USAGE)
        self.assert_complaint(ended, "sparse-lr", "nets only", "hint")
        self.assertFalse((self.folder / "lr.onnx").exists())

    def test_wrong_usage_is_refused(self):
        folder = self.trained()
        refused = [(("export", folder), "needs --out FILE"),
                   (("export", folder, "--out", "model"), "the format is unknown"),
                   (("export", folder, "--out", "model.pt"), "pt"),
                   (("export", folder, "--out", "m", "--format", "onyx"), "did you mean onnx"),
                   (("export", "--out", "m.onnx"), "one run")]
        for arguments, words in refused:
            with self.subTest(words=words):
                self.assert_complaint(self.anytime(*arguments, code=support.USAGE), words)
        self.assert_complaint(self.anytime("export", self.folder / "no", "--out", "m.onnx",
                                           code=support.MISSING), "no")
        self.anytime("export", folder, "--out", "no/such/folder/m.onnx", code=support.IO)


@unittest.skipUnless(onnx, "python3-onnx or python3-opencv is not installed")
class Onnx(support.TestCase):
    def samples(self, shape, count=40, classes=10):
        """A data set of random bytes, as --data takes it, and the test samples as floats."""
        random = numpy.random.default_rng(7)
        x = random.integers(0, 256, (count, *shape), dtype=numpy.uint8)
        y = numpy.arange(count) % classes
        numpy.save(self.folder / "x.npy", x)
        numpy.save(self.folder / "y.npy", y)
        return f"{self.folder / 'x.npy'},{self.folder / 'y.npy'}", x.astype(numpy.float32) / 255

    def exported(self, model, data, *arguments, steps=2, batch=20):
        """Trains briefly and exports to ONNX; returns the run folder and the checked file."""
        folder = self.train("--model", model, "--data", data, "--test-data", data, "--steps", steps,
                            "--workers", 1, "--batch", batch, "--optimizer", "momentum",
                            "--eval-every", 0, *arguments).folder
        path = folder / "model.onnx"
        self.anytime("export", folder, "--out", path)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        return folder, path

    def probabilities(self, path, x):
        net = cv2.dnn.readNetFromONNX(str(path))
        rows = []
        for sample in x:  # OpenCV does not accept another batch size
            net.setInput(sample[None])
            rows.append(net.forward("logits").ravel().astype(numpy.float64))
        logits = numpy.array(rows)
        powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def assert_same(self, folder, path, x):
        """OpenCV computes the probabilities that `predict` prints."""
        shown = json.loads(self.anytime("predict", folder, "--json").out)["rows"]
        found = self.probabilities(path, x)
        self.assertEqual(len(shown), len(x))
        self.assertGreater(found.std(axis=0).max(), 1e-3, "all samples have the same prediction")
        for row, told in zip(found, shown):
            self.assertAlmostEqual(row.max(), told["probability"], delta=1e-4)
            for probability, also in zip(row, told["probabilities"], strict=True):
                self.assertAlmostEqual(probability, also, delta=1e-4)

    def test_opencv_agrees_with_predict(self):
        models = {"softmax": (1, 28, 28), "mlp:30,20": (1, 28, 28), "mnist-cnn": (1, 28, 28),
                  "lenet": (1, 28, 28), "cifar10-cnn": (3, 32, 32), "wrn-28-2-8": (3, 8, 8),
                  "resnet18-gn": (3, 32, 32)}
        for model, shape in models.items():
            with self.subTest(model=model):
                data, x = self.samples(shape, count=20)
                folder, path = self.exported(model, data)
                self.assert_same(folder, path, x)

    def test_every_kind_of_layer_has_its_operator(self):
        net = self.folder / "all.net"
        net.write_text(ALL_KINDS)
        data, x = self.samples((1, 11, 13))
        folder, path = self.exported(net, data, steps=6)
        self.assert_same(folder, path, x)
        words = {layer.split()[0] for layer in ALL_KINDS.splitlines() if layer.strip()}
        self.assertLessEqual({"rgb", "resize", "conv", "relu", "gn", "bn", "avgpool", "maxpool",
                              "dropout", "flatten", "dense", "reshape", "residual"}, words)

    def test_the_reference_engine_exports_the_same_net(self):
        net = self.folder / "all.net"
        net.write_text(ALL_KINDS)
        data, x = self.samples((1, 11, 13))
        folder, path = self.exported(net, data, "--engine", "ref", steps=3)
        self.assert_same(folder, path, x)

    def test_flat_samples_stay_flat(self):
        random = numpy.random.default_rng(3)
        numpy.save(self.folder / "x.npy", random.normal(size=(40, 12)).astype(numpy.float32))
        numpy.save(self.folder / "y.npy", numpy.arange(40) % 4)
        folder, path = self.exported("mlp:9", f"{self.folder / 'x.npy'},{self.folder / 'y.npy'}")
        self.assert_same(folder, path, numpy.load(self.folder / "x.npy"))

    def test_input_name_free_batch_and_preprocessing_are_recorded(self):
        data, _ = self.samples((3, 8, 8))
        _, path = self.exported("wrn-28-2-8", data, "--prep", "crop:6,pad:1,flip,normalise")
        model = onnx.load(path)
        (given,), (made,) = model.graph.input, model.graph.output
        extents = [dim.dim_param or dim.dim_value for dim in given.type.tensor_type.shape.dim]
        self.assertEqual((given.name, extents), ("input", ["batch", 3, 8, 8]))
        extents = [dim.dim_param or dim.dim_value for dim in made.type.tensor_type.shape.dim]
        self.assertEqual((made.name, extents), ("logits", ["batch", 10]))
        shown = {entry.key: entry.value for entry in model.metadata_props}
        self.assertEqual((shown["model"], shown["prep"]), ("wrn-28-2-8", shown["prep_fitted"]))
        self.assertRegex(shown["prep_fitted"], r"^crop:6,pad:1,flip,normalise:[\d.,]+/[\d.,]+$")
        for words in ("bytes by 255", shown["prep_fitted"], "logits", "softmax"):
            self.assertIn(words, model.doc_string)

    def test_weights_have_the_names_and_numbers_of_the_safetensors_file(self):
        data, _ = self.samples((1, 28, 28))
        folder, path = self.exported("mnist-cnn", data)
        tensors, _ = read_safetensors((folder / "model.safetensors").read_bytes())
        found = {tensor.name: (tuple(tensor.dims), tensor.raw_data)
                 for tensor in onnx.load(path).graph.initializer}
        self.assertEqual(found, tensors)


if __name__ == "__main__":
    support.main()
