#!/usr/bin/env python3
"""Images and arrays: CIFAR batches, NumPy files, folders of images. Valid ones can be trained on;
invalid ones are refused with file, position and hint, and nothing of them is kept."""
import io
import json
import os
import struct
import zipfile
import zlib

import support

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
PAGE = b"\n<html><body>404 not found</body></html>\n"


def cifar(count, labels=1):
    """Images with visible classes: class c is bright in row c of the red plane."""
    records = []
    for i in range(count):
        pixels = bytearray(3072)
        pixels[i % 10 * 32:i % 10 * 32 + 32] = b"\xff" * 32
        records.append(bytes([i % 10] * labels) + bytes(pixels))
    return b"".join(records)


def npy(descr, shape, elements, order="False"):
    """An array as NumPy writes it."""
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + elements


def npz(packing=zipfile.ZIP_DEFLATED, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def arrays(count, base=0):
    """data and labels, as in downsampled ImageNet: 3x8x8 bytes, three classes."""
    rows = b"".join(bytes([60 * (i % 3) + k % 2 for k in range(192)]) for i in range(count))
    labels = struct.pack(f"<{count}q", *(base + i % 3 for i in range(count)))
    return {"data": npy("|u1", f"({count}, 192)", rows),
            "labels": npy("<i8", f"({count},)", labels)}


def png(width, height, color):
    """An image of one color."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content +
                struct.pack(">I", zlib.crc32(kind + content)))
    lines = (b"\0" + bytes(color) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def a_jpeg(kind="baseline"):
    """An input of the fuzzer; its first byte is not part of the image."""
    return (support.ROOT / f"tests/fuzz/corpus/data_image/{kind}-jpeg").read_bytes()[1:]


class ImageData(support.TestCase):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}

    def write(self, files):
        """Writes files by name into a new folder and returns it."""
        self.sets = getattr(self, "sets", 0) + 1
        folder = self.folder / f"set{self.sets}"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder

    def info(self, data):
        return json.loads(self.anytime("data", "info", data, "--json", env=self.env).out)

    def learn(self, data, *options):
        """Accuracy on the test set after a few steps."""
        ended = self.anytime("train", "--data", data, "--workers", 2, "--batch", 16, "--steps", 150,
                             "--lr", 0.05, "--quiet", "--json", *options, env=self.env)
        return json.loads(ended.out)["test"]["accuracy"]

    def refuse(self, data, *words):
        ended = self.anytime("train", "--data", data, "--workers", 2, "--steps", 5, "--quiet",
                             env=self.env, code=support.FORMAT)
        self.assert_complaint(ended, *words)
        kept = [path for path in self.cache.rglob("*") if path.is_file()]
        self.assertEqual(kept, [], ended)

    # ---- valid data --------------------------------------------------------------------------

    def test_cifar_batches_can_be_trained_on(self):
        folder = self.write({"data_batch_1.bin": cifar(60), "data_batch_2.bin": cifar(40),
                             "test_batch.bin": cifar(30)})
        info = self.info(folder)
        self.assertEqual((info["format"], info["form"], info["classes"], info["train"]["samples"]),
                         ("cifar", "3x32x32 bytes", 10, 100))
        self.assertEqual(self.learn(folder), 1.0)
        hundred = self.write({"train.bin": cifar(20, labels=2)})
        self.assertEqual(self.info(hundred)["classes"], 100)

    def test_arrays_can_be_trained_on(self):
        for packing in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            folder = self.write({"train_data_batch_1.npz": npz(packing, **arrays(60, base=1)),
                                 "train_data_batch_2.npz": npz(packing, **arrays(30, base=1)),
                                 "val_data.npz": npz(packing, **arrays(30, base=1))})
            info = self.info(folder)
            self.assertEqual((info["format"], info["form"], info["classes"]),
                             ("npy", "3x8x8 bytes", 3))
            self.assertEqual(info["train"]["labels"], [30, 30, 30])
            self.assertEqual(self.learn(folder), 1.0)

    def test_images_can_be_trained_on(self):
        colors = {"blue": (0, 0, 250), "green": (0, 250, 0), "red": (250, 0, 0)}
        files = {f"{split}/{name}/{i}.png": png(20 + i, 30, color)
                 for split in ("train", "test") for name, color in colors.items()
                 for i in range(10)}
        folder = self.write({**files, "train/red/photo.jpg": a_jpeg()})
        info = self.info(f"{folder},16")
        self.assertEqual((info["format"], info["form"], info["classes"]),
                         ("images", "3x16x16 bytes", 3))
        self.assertEqual(info["train"]["labels"], [10, 10, 11])
        self.assertEqual(info["test"]["labels"], [10, 10, 10])
        self.assertEqual(self.learn(f"{folder},16"), 1.0)
        self.assertEqual(self.info(f"images:{folder},8,crop")["form"], "3x8x8 bytes")

    def test_synthetic_images_can_be_trained_on(self):
        self.assertGreater(self.learn("synthetic:1000,3x16x16,3", "--steps", 300), 0.6)

    # ---- invalid data ------------------------------------------------------------------------

    def test_invalid_batches_are_refused(self):
        good = cifar(4)
        label = bytearray(good)
        label[3073] = 10
        for what, content, *words in (
                ("cut in an image", good[:-1000], "truncated at byte 11292", "within image 3"),
                ("one byte", good[:1], "truncated at byte 1"),
                ("empty", b"", "empty"),
                ("a label too large", bytes(label), "byte 3073", "label 10"),
                ("a pointer", POINTER, "looks like a git-lfs pointer", "git lfs pull"),
                ("a page", PAGE, "looks like a web page")):
            with self.subTest(bad=what):
                folder = self.write({"data_batch_1.bin": good, "data_batch_2.bin": content,
                                     "test_batch.bin": good})
                self.refuse(folder, "data_batch_2.bin", *words)

    def test_invalid_arrays_are_refused(self):
        good = arrays(6)
        whole = npz(**good)
        flipped = bytearray(npz(zipfile.ZIP_STORED, **good))
        flipped[250] ^= 1
        for what, content, *words in (
                ("empty", b"", "empty"),
                ("cut", whole[:-30], "byte", "truncated"),
                ("a pointer", POINTER, "byte"),
                ("a flipped bit", bytes(flipped), "data.npy", "checksum"),
                ("no labels", npz(data=good["data"]), "no arrays of samples and labels"),
                ("another count", npz(**{**good, "labels": arrays(5)["labels"]}), "6 samples",
                 "5 labels"),
                ("Fortran order", npz(**{**good, "data": npy("|u1", "(6, 2)", b"x" * 12, "True")}),
                 "data.npy", "byte 128", "Fortran"),
                ("text", npz(**{**good, "data": npy("<U5", "(6, 2)", b"x" * 240)}), "data.npy",
                 "byte 128", "<U5"),
                ("not a number", npz(**{**good, "data": npy("<f4", "(6, 1)", struct.pack(
                    "<6f", 0, 1, float("nan"), 3, 4, 5))}), "data.npy", "byte 136"),
                ("half a label", npz(**{**good, "labels": npy("<f8", "(6,)", struct.pack(
                    "<6d", 0, 1, 0.5, 1, 0, 1))}), "labels.npy", "byte 144"),
                ("promises more", npz(**{**good, "data": npy("|u1", "(6, 4000000000)", b"x")}),
                 "data.npy", "claims")):
            with self.subTest(bad=what):
                folder = self.write({"train.npz": content})
                self.refuse(folder / "train.npz", "train.npz", *words)

    def test_invalid_images_are_refused(self):
        good, photo = png(9, 9, (1, 2, 3)), a_jpeg()
        flipped = bytearray(good)
        flipped[45] ^= 0xff
        for what, name, content, *words in (
                ("empty", "b.png", b"", "empty"),
                ("cut", "b.png", good[:-20], "damaged near byte"),
                ("a flipped byte", "b.png", bytes(flipped), "damaged near byte"),
                ("a cut photograph", "b.jpg", photo[:-20], "damaged near byte"),
                ("CMYK", "b.jpg", a_jpeg("cmyk"), "CMYK"),
                ("a pointer", "b.jpg", POINTER, "looks like a git-lfs pointer"),
                ("a page", "b.jpeg", PAGE, "looks like a web page"),
                ("promises more", "b.png", good[:16] + b"\0\1\0\0\0\1\0\0" + good[24:], "b.png")):
            with self.subTest(bad=what):
                folder = self.write({"train/x/a.png": good, f"train/y/{name}": content})
                self.refuse(f"{folder},8", name, *words)


if __name__ == "__main__":
    support.main()
