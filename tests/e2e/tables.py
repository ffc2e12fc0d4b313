#!/usr/bin/env python3
"""Tables as people have them: units of all sizes, gaps, identifiers; what predict makes of them."""
import json
import random
import struct
import zlib

import support


def write_rows(path, rows, header=None, separator=","):
    lines = [separator.join(header)] if header else []
    lines += [separator.join(str(value) for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_png(path, side, color):
    """A square picture of one color."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    lines = (b"\0" + bytes(color) * side) * side
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" +
                     chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    return path


class Tables(support.TestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(7)

    def houses(self, name="houses.csv", count=200):
        """The price depends on area and city; the areas are large numbers, in square feet."""
        rows = []
        for i in range(count):
            area, city = self.random.uniform(5e5, 2e6), self.random.choice(["Bonn", "Oslo"])
            price = area / 1e5 + (9 if city == "Oslo" else 0) + self.random.gauss(0, 0.1)
            rows.append([i + 1, f"{area:.1f}", city, f"{price:.3f}"])
        return write_rows(self.folder / name, rows, ["id", "area", "city", "price"], ";")

    def classes(self, name="classes.csv", count=200, gap=None, **options):
        rows = []
        for i in range(count):
            x = 1e6 * (i % 2) + self.random.gauss(0, 1e6)
            rows.append(["" if gap and i % gap == 0 else f"{x:.0f}",
                         f"{self.random.gauss(5, 1):.3f}", ["no", "yes"][i % 2]])
        return write_rows(self.folder / name, rows, **options)

    def run_of(self, data, *arguments, **options):
        return self.train("--data", data, "--workers", 1, "--batch", 20, "--epochs", 5, *arguments,
                          **options)

    def test_numbers_are_scaled_unless_refused(self):
        data = self.classes(header=["x", "y", "label"])
        scaled = self.run_of(data)
        self.assertIn("scaled to mean 0 and deviation 1", scaled.err)
        self.assertGreater(scaled.result["test"]["accuracy"], 0.55)
        self.assertEqual(scaled.result["options"]["prep"], "normalise")
        raw = self.run_of(data, "--prep", "none")
        self.assertNotIn("scaled to", raw.err)
        self.assertGreater(raw.result["test"]["loss"], 1000)

    def test_the_scaling_is_kept_with_the_model(self):
        data = self.classes(header=["x", "y", "label"])
        run = self.run_of(data).folder
        whole = json.loads(self.anytime("predict", run, data, "--json").out)["rows"]
        one = write_rows(self.folder / "one.csv", [["5", "999999"]], ["y", "x"])
        self.assertEqual(len(whole), 200)
        row, = json.loads(self.anytime("predict", run, one, "--json").out)["rows"]
        self.assertEqual(row["class"], "yes")
        data.unlink()
        again, = json.loads(self.anytime("predict", run, one, "--json").out)["rows"]
        self.assertEqual(again, row)

    def test_text_columns_are_scaled_beside_numbers_for_sparse_models(self):
        rows = [[f"{1e6 * (i % 2) + self.random.gauss(0, 1e5):.0f}", "ab"[i % 3 == 0],
                 ["no", "yes"][i % 2]] for i in range(200)]
        data = write_rows(self.folder / "mixed.csv", rows, ["x", "kind", "label"])
        for model in ("softmax", "sparse-lr"):
            with self.subTest(model=model):
                ended = self.run_of(data, "--model", model)
                self.assertGreater(ended.result["test"]["accuracy"], 0.9)
                lines = self.anytime("predict", ended.folder, data).out.splitlines()
                self.assertEqual(lines[0], "class\tp(yes)")
                right = [line.split("\t")[0] == row[2] for line, row in zip(lines[1:], rows)]
                self.assertGreater(sum(right), 180)

    def test_real_labels_are_regression(self):
        ended = self.run_of(self.houses(), "--epochs", 30)
        self.assertIn("labels of", ended.err)
        self.assertEqual(ended.result["options"]["model"], "linear")
        self.assertGreater(ended.result["test"]["r2"], 0.95)
        refused = self.run_of(self.houses(), "--model", "softmax", code=support.FORMAT)
        self.assert_complaint(refused, "price", "real numbers", "--model linear")

    def test_identifiers_are_left_out_and_said(self):
        data = self.houses()
        ended = self.run_of(data)
        self.assertIn("'id'", ended.err)
        info = json.loads(self.anytime("data", "info", data, "--json").out)
        self.assertEqual(info["features"], 3)  # area, two cities
        kept = json.loads(self.anytime("data", "info", data, "--json", "--ignore", "none").out)
        self.assertEqual(kept["features"], 4)
        fewer = json.loads(self.anytime("data", "info", data, "--json", "--ignore", "id,city").out)
        self.assertEqual(fewer["features"], 1)
        refused = self.anytime("data", "info", data, "--ignore", "town", code=support.USAGE)
        self.assert_complaint(refused, "town")

    def test_missing_numbers_are_refused_filled_or_dropped(self):
        data = self.classes(header=["x", "y", "label"], gap=10)
        refused = self.run_of(data, code=support.FORMAT)
        self.assert_complaint(refused, "line 2", "'x'", "--missing fill")
        filled = self.run_of(data, "--missing", "fill")
        self.assertIn("20 missing numbers in 1 column are replaced", filled.err)
        self.assertEqual(filled.result["test"]["count"], 20)
        gap = write_rows(self.folder / "gap.csv", [["", "5"]], ["x", "y"])
        lines = self.anytime("predict", filled.folder, gap).out.splitlines()
        self.assertEqual(len(lines), 2)
        dropped = self.run_of(data, "--missing", "drop")
        self.assertIn("20 rows that lack a value are left out", dropped.err)
        self.assertEqual(dropped.result["test"]["count"], 18)

    def test_files_without_a_header(self):
        data = self.classes(name="rows.data")
        ended = self.run_of(data)
        self.assertIn("first line", ended.err)
        self.assertGreater(ended.result["test"]["accuracy"], 0.55)
        answer = self.anytime("predict", ended.folder, "-", input="1000000,5\n0,5\n")
        self.assertEqual([line.split("\t")[0] for line in answer.out.splitlines()],
                         ["class", "yes", "no"])
        info = self.anytime("data", "info", f"csv:{data}", "--header", "yes", "--json").out
        self.assertEqual(json.loads(info)["train"]["samples"], 199)

    def test_a_column_that_rows_to_predict_lack_is_named(self):
        run = self.run_of(self.classes(header=["x", "y", "label"])).folder
        bad = write_rows(self.folder / "bad.csv", [["1"]], ["x"])
        self.assert_complaint(self.anytime("predict", run, bad, code=support.FORMAT), "'y'")
        with bad.open() as rows:
            piped = self.anytime("predict", run, "-", stdin=rows, code=support.FORMAT)
        self.assert_complaint(piped, "stdin: line 1", "'y'")
        as_data = self.anytime("predict", run, "--data", bad, code=support.FORMAT)
        self.assert_complaint(as_data, "to predict the rows of a file")

    def test_runs_are_used_from_any_folder_and_export_needs_no_data(self):
        data = self.classes(name="here.csv", header=["x", "y", "label"])
        self.anytime("train", "--data", "here.csv", "--workers", 1, "--epochs", 2, "--run", "run",
                     cwd=self.folder)
        other = self.folder / "elsewhere"
        other.mkdir()
        self.assertIn("accuracy", self.anytime("eval", "../run", cwd=other).out)
        self.anytime("train", "--resume", "../run", "--epochs", 3, cwd=other)
        data.unlink()
        for name in ("model.onnx", "model.safetensors"):
            self.anytime("export", "../run", "--out", name, cwd=other)
            self.assertTrue((other / name).exists())
        rows = write_rows(self.folder / "new.csv", [["0", "5"]], ["x", "y"])
        for model in ("../run", "model.safetensors"):
            lines = self.anytime("predict", model, rows, cwd=other).out.splitlines()
            self.assertEqual(lines[1].split("\t")[0], "no")

    def test_old_runs_are_read_as_they_were(self):
        run = self.run_of(self.classes(header=["x", "y", "label"]), "--prep", "none").folder
        path = run / "result.json"
        result = json.loads(path.read_text())
        for name in ("missing", "header", "ignore"):
            del result["options"][name]
        result["options"]["prep"] = None
        path.write_text(json.dumps(result))
        evaluated = json.loads(self.anytime("eval", run, "--json").out)["test"]["loss"]
        self.assertAlmostEqual(evaluated / result["test"]["loss"], 1, places=5)


class Pictures(support.TestCase):
    """predict names the class of single pictures."""

    def setUp(self):
        super().setUp()
        for i in range(20):
            for name, color in (("red apples", (200, 10, i)), ("blue sky", (i, 10, 200))):
                write_png(self.folder / "set" / name / f"{i}.png", 12, color)
        self.trained = self.train("--data", f"{self.folder / 'set'},8", "--workers", 1,
                                  "--epochs", 30, "--batch", 8).folder

    def test_files_folders_and_stdin(self):
        write_png(self.folder / "new" / "a.png", 30, (220, 0, 0))
        write_png(self.folder / "new" / "b.png", 9, (0, 0, 220))
        lines = self.anytime("predict", self.trained, self.folder / "new").out.splitlines()
        self.assertEqual(lines[0], "file\tclass\tp(red apples)")
        self.assertEqual([line.split("\t")[1] for line in lines[1:]], ["red apples", "blue sky"])
        both = self.anytime("predict", self.trained, self.folder / "new" / "b.png",
                            self.folder / "new" / "a.png", "--json")
        rows = json.loads(both.out)["rows"]
        self.assertEqual([row["class"] for row in rows], ["blue sky", "red apples"])
        for row in rows:
            self.assertAlmostEqual(sum(row["probabilities"]), 1, places=5)
        with (self.folder / "new" / "a.png").open("rb") as picture:
            piped = self.anytime("predict", self.trained, "-", stdin=picture)
        self.assertIn("-\tred apples", piped.out)

    def test_what_is_no_picture_is_refused(self):
        text = write_rows(self.folder / "rows.csv", [[1, 2]])
        picture = self.folder / "set" / "blue sky" / "1.png"
        ended = self.anytime("predict", self.trained, picture, text, code=support.USAGE)
        self.assert_complaint(ended, "rows.csv", "not a JPEG or PNG")
        ended = self.anytime("predict", self.trained, text, code=support.USAGE)
        self.assert_complaint(ended, "rows.csv", "trained on pictures")


if __name__ == "__main__":
    support.main()
