#!/usr/bin/env python3
"""Sparse and text formats: good files train, bad ones are refused with the place of the error."""
import gzip
import lzma
import os
import pathlib
import struct

import support

QUICK = ("--model", "softmax", "--workers", 2, "--batch", 8, "--steps", 20, "--quiet")

LIBSVM = "".join(f"{'+1' if i % 3 else '-1'} 1:{i % 7} {3 + i % 5}:1 9:0.5 \n" for i in range(60))


def criteo_row(label="1", first="5", numbers=12, categories=26):
    return "\t".join([label, first, *["7"] * numbers, *["68fd1e64"] * categories]) + "\n"


CRITEO = "".join(criteo_row(str(i % 2), str(i)) for i in range(60))
CSV = "colour,size,label\n" + "".join(f"{'red' if i % 2 else 'blue'},{i % 7},{i % 2}\n"
                                      for i in range(60))


# ---- TFRecord -----------------------------------------------------------------------------------

def crc(data):
    """Masked CRC-32C, bit by bit."""
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff


def record(message):
    length = struct.pack("<Q", len(message))
    return b"".join((length, struct.pack("<I", crc(length)), message,
                     struct.pack("<I", crc(message))))


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def click(label, indices):
    def feature(name, kind, numbers):
        return message(1, message(1, name) + message(2, message(kind, message(1, numbers))))
    return message(1, feature(b"label", 3, varint(label))
                   + feature(b"index", 3, b"".join(map(varint, indices)))
                   + feature(b"value", 2, struct.pack(f"<{len(indices)}f", *indices)))


TFRECORD = b"".join(record(click(2 * (i % 2) - 1, (0, 1 + i % 9))) for i in range(60))

# What is wrong: file name, content, words of the error message.
NO_CLASSES = ("regression", "65537 classes")  # good data, but not for a classifier
BAD = {
    "twice": ("a.svm", "1 1:1\n0 2:1 2:1\n", ["line 2, column 7", "occurs twice"]),
    "unsorted": ("a.svm", "1 3:1 2:1\n", ["line 1, column 7", "smaller"]),
    "no number": ("a.svm", "1 1:1 2:x\n", ["line 1, column 9"]),
    "not finite": ("a.svm", "1 1:1 2:nan\n", ["line 1, column 9"]),
    "regression": ("a.svm", "0.25 1:1\n", ["line 1, column 1", "integer"]),
    "cut in a row": ("a.svm", LIBSVM[:-5], ["line 60"]),
    "too large": ("a.svm", "1 1:1 4294967296:1\n", ["line 1, column 7", "too large"]),
    "65537 classes": ("a.svm", "".join(f"{i} 1:1\n" for i in range(65537)), ["65536"]),
    "empty": ("a.svm", "", ["empty"]),
    "nothing but remarks": ("libsvm:a.svm", "# nothing\n\n", ["no row"]),
    "empty gzip": ("a.gz", gzip.compress(b"", mtime=0), ["a.gz"]),
    "cut gzip": ("a.gz", gzip.compress(LIBSVM.encode())[:-9], ["gzip stream"]),
    "cut xz": ("a.xz", lzma.compress(LIBSVM.encode())[:-9], ["xz stream"]),
    "not xz": ("a.xz", LIBSVM, ["named .xz but not xz"]),
    "pointer": ("a.svm", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n",
                ["git-lfs pointer"]),
    "web page": ("a.csv", "<html>404, not found</html>\n", ["web page"]),
    "label of 2": ("criteo:a.tsv", criteo_row("2"), ["line 1, column 1", "label"]),
    "fraction": ("a.tsv", criteo_row() + criteo_row(first="1.5"), ["line 2, column 3", "field 2"]),
    "few fields": ("a.tsv", criteo_row() + criteo_row(categories=25), ["line 2", "39 of 40"]),
    "many fields": ("a.tsv", criteo_row() + criteo_row(categories=27), ["line 2", "more than 40"]),
    "narrow row": ("a.csv", CSV + "red,1\n", ["line 62", "2 fields, but the header has 3"]),
    "open quote": ("a.csv", CSV + '"red,1,0\n', ["line 62", "quote"]),
    "missing number": ("a.csv", CSV + "red,,0\n", ["line 62", "'size'"]),
    "missing label": ("a.csv", CSV + "red,1,\n", ["line 62", "'label'"]),
    "header only": ("a.csv", "a,b\n", ["no row"]),
    "cut record": ("a.tfrecord", TFRECORD[:-3], ["record 60", "ends within"]),
    "bent record": ("a.tfrecord", TFRECORD[:20] + b"\xff" + TFRECORD[21:], ["record 1 at byte 0",
                                                                           "checksum"]),
    "no example": ("a.tfrecord", record(b"\x0a\x7f"), ["record 1 at byte 0", "Example"]),
    "same index": ("a.tfrecord", record(click(1, (3, 3))), ["record 1", "twice"]),
    "negative index": ("a.tfrecord", record(click(1, (-3, 3))), ["record 1", "out of range"]),
}

GOOD = {
    "libsvm": ("a.svm", LIBSVM, 9),
    "criteo": ("a.tsv", CRITEO, 1 << 10),
    "csv": ("a.csv", CSV, 3),
    "tfrecord": ("a.tfrecord", TFRECORD, 10),
}


def as_bytes(content):
    return content if isinstance(content, bytes) else content.encode()


class Files(support.TestCase):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}

    def write(self, name, content):
        """Writes the file; returns the name for --data."""
        *form, file = name.split(":")
        path = self.folder / file
        path.write_bytes(as_bytes(content))
        return ":".join([*form, str(path)])

    def test_bad_files_are_refused_with_name_place_and_hint(self):
        for what, (name, content, words) in BAD.items():
            with self.subTest(bad=what):
                data = self.write(name, content)
                path = pathlib.Path(data.split(":")[-1])
                before = sorted(self.folder.iterdir())
                info = () if what in NO_CLASSES else (("data", "info", data),)
                for call in (*info, ("train", *QUICK, "--data", data)):
                    ended = self.anytime(*call, code=support.FORMAT, env=self.env)
                    self.assert_complaint(ended, path.name, *words)
                    self.assertIn("  hint: ", ended.err, ended)
                    self.assertEqual(ended.out, "", ended)
                self.assertEqual(sorted(self.folder.iterdir()), before, "a file was left")
                path.unlink()

    def test_formats_are_detected_by_content(self):
        for name, (file, content, features) in GOOD.items():
            for packed, pack in (("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)):
                with self.subTest(format=name, packed=packed):
                    data = self.write(file + packed, pack(as_bytes(content)))
                    info = self.anytime("data", "info", data, "--hash-bits", 10, "--json",
                                        env=self.env).result
                    self.assertEqual(info["format"], name)
                    self.assertEqual(info["features"], features)
                    self.assertEqual(info["train"]["samples"], 60)
                    self.assertEqual(info["classes"], 2)
                    result = self.train_json(*QUICK, "--data", data, "--hash-bits", 10,
                                             env=self.env)
                    self.assertEqual(result["test"]["count"], 6)  # held out of 60

    def test_packed_files_give_the_same_model_as_plain_ones(self):
        hashes = {self.train_json(*QUICK, "--data", self.write(f"a.svm{packed}",
                                                               pack(LIBSVM.encode())),
                                  env=self.env)["params_hash"]
                  for packed, pack in (("", bytes), (".gz", gzip.compress), (".xz", lzma.compress))}
        self.assertEqual(len(hashes), 1)

    def test_a_test_file_may_have_other_features(self):
        data = self.write("a.svm", LIBSVM)
        self.write("a.svm.t", "+1 1:1\n-1 2:1 99:1\n")
        found = self.anytime("data", "info", data, "--json", env=self.env).result
        self.assertEqual((found["features"], found["test"]["samples"]), (9, 2))
        self.assertEqual(self.train_json(*QUICK, "--data", data, env=self.env)["test"]["count"], 2)
        self.write("a.svm.t", "+2 1:1\n")
        ended = self.anytime("train", *QUICK, "--data", data, code=support.FORMAT, env=self.env)
        self.assert_complaint(ended, "'2'")

    def test_the_label_column_of_a_csv_file_can_be_chosen(self):
        data = self.write("a.csv", CSV)
        found = self.anytime("data", "info", data, "--label", "colour", "--json",
                            env=self.env).result
        self.assertEqual((found["classes"], found["features"]), (2, 2))
        ended = self.anytime("data", "info", data, "--label", "color", code=support.USAGE,
                             env=self.env)
        self.assert_complaint(ended, "color", "colour")

    def test_too_many_features_for_a_dense_model_are_refused_with_advice(self):
        ended = self.anytime("train", *QUICK, "--data", "synthetic-clicks:100,2000000",
                             code=support.USAGE, env=self.env)
        self.assert_complaint(ended, "2000000 features", "sparse-lr")


if __name__ == "__main__":
    support.main()
