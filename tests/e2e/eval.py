#!/usr/bin/env python3
"""`anytime eval`: of a run, of a file, on another test set."""
import json
import os
import struct

import support


def write_weights(path, metadata=None, **tensors):
    """Writes a safetensors file from lists of numbers."""
    header, body = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (shape, numbers) in tensors.items():
        end = len(body) + 4 * len(numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), end]}
        body += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class Newest(support.TestCase):
    """The newest weights of a run are used, whether it has ended, was killed or was resumed."""

    SETTINGS = (*support.SMALL, "--model", "mlp:6", "--workers", 1, "--checkpoint-every", 20)

    def setUp(self):
        super().setUp()
        self.ended = self.train(*self.SETTINGS, "--steps", 60).folder
        self.checkpoints = sorted((self.ended / "checkpoint").iterdir())
        self.end = self.loss(self.ended)

    def loss(self, source):
        return json.loads(self.anytime("eval", source, "--json").out)["test"]["loss"]

    def kill(self):
        """Makes the folder look like that of a run killed at its end."""
        (self.ended / "result.json").unlink()
        (self.ended / "model.safetensors").unlink()

    def damage(self, path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def test_a_killed_run_is_evaluated_by_its_checkpoints(self):
        self.kill()
        self.assertEqual(self.loss(self.ended), self.end)
        self.assertEqual(self.loss(self.checkpoints[-1]), self.end)

    def test_a_resumed_run_is_evaluated_by_its_newest_weights(self):
        before = (self.ended / "model.safetensors").read_bytes()
        self.anytime("train", "--resume", self.ended, "--steps", 200, "--quiet")
        longer = self.loss(self.ended)
        self.assertLess(longer, self.end)
        (self.ended / "model.safetensors").write_bytes(before)  # as if it had not ended yet
        for number, path in enumerate([self.ended / "model.safetensors",
                                       *sorted((self.ended / "checkpoint").iterdir())]):
            os.utime(path, (1e9 + number, 1e9 + number))
        self.assertEqual(self.loss(self.ended), longer)

    def test_a_damaged_checkpoint_is_skipped_with_a_note(self):
        self.kill()
        self.damage(self.checkpoints[-1])
        ended = self.anytime("eval", self.ended, "--json")
        self.assertIn(self.checkpoints[-1].name, ended.err)
        self.assertGreater(json.loads(ended.out)["test"]["loss"], self.end)
        self.damage(self.checkpoints[-2])
        self.assert_complaint(self.anytime("eval", self.ended, code=support.FORMAT),
                              self.checkpoints[-1].name)

    def test_init_export_and_predict_use_the_same_weights(self):
        self.anytime("export", self.ended, "--out", "end.safetensors")
        shown = self.anytime("predict", self.ended).out
        self.kill()
        self.anytime("export", self.ended, "--out", "saved.safetensors")
        self.assertEqual((self.folder / "saved.safetensors").read_bytes(),
                         (self.folder / "end.safetensors").read_bytes())
        self.assertEqual(self.anytime("predict", self.ended).out, shown)
        ended = self.train(*self.SETTINGS, "--steps", 1, "--lr", 1e-12, "--init", self.ended)
        self.assertAlmostEqual(ended.result["test"]["loss"], self.end, places=5)


class Eval(support.TestCase):
    def score(self, *arguments):
        return json.loads(self.anytime("eval", *arguments, "--json").out)["test"]

    def assert_scores(self, found, expected):
        """Equal up to rounding: other micro-batches are summed in another order."""
        for name in ("loss", "accuracy", "auc", "top5"):
            self.assertEqual(name in found, name in expected, name)
            if name in expected:
                self.assertAlmostEqual(found[name], expected[name], places=5, msg=name)
        self.assertEqual(found["count"], expected["count"])

    def test_a_run_has_the_scores_of_its_result(self):
        cases = {"synthetic:2000,20,5": "softmax", "synthetic:600,20,2": "mlp:8",
                 "synthetic:3000,20,25": "softmax"}
        for data, model in cases.items():
            with self.subTest(data=data):
                ended = self.train("--data", data, "--model", model, "--workers", 2, "--steps", 50)
                self.assert_scores(self.score(ended.folder), ended.result["test"])

    def test_the_preprocessing_of_the_run_is_applied(self):
        ended = self.train(*support.SMALL, "--prep", "normalise", "--model", "softmax",
                           "--strategy", "backup", "--k", 2, "--workers", 3, "--steps", 30)
        self.assert_scores(self.score(ended.folder), ended.result["test"])

    def test_a_weights_file_states_its_model_and_data(self):
        ended = self.train(*support.SMALL, "--model", "mlp:6", "--prep", "normalise", "--steps", 40)
        path = self.folder / "taken.safetensors"
        path.write_bytes((ended.folder / "model.safetensors").read_bytes())
        self.assert_scores(self.score(path), ended.result["test"])

    def test_a_file_without_metadata_needs_model_and_data(self):
        path = self.folder / "bare.safetensors"
        write_weights(path, **{"dense1.weight": ([5, 20], [0.0] * 100),
                               "dense1.bias": ([5], [0.0] * 5)})
        ended = self.anytime("eval", path, code=support.USAGE)
        self.assert_complaint(ended, "which model", "--model")
        score = self.score(path, "--model", "softmax", "--data", "synthetic:2000,20,5")
        self.assertAlmostEqual(score["loss"], 1.609438, places=5)  # the log of 5

    def test_another_test_set_can_be_used(self):
        ended = self.train("--data", "synthetic:2000,20,5", "--model", "softmax", "--steps", 50)
        more = self.folder / "more.csv"
        rows = [[*(f"x{i}" for i in range(20)), "label"], *([0.1] * 20 + [i % 5] for i in range(7))]
        more.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        self.assertEqual(self.score(ended.folder, "--eval-size", 11)["count"], 11)
        self.assertEqual(self.score(ended.folder, "--test-data", more)["count"], 7)

    def test_without_json_one_line_is_printed(self):
        ended = self.train(*support.SMALL, "--model", "softmax", "--steps", 50)
        shown = self.anytime("eval", ended.folder)
        self.assertRegex(shown.out, r"^test: loss \d.\d{4}, accuracy \d.\d{4} on 400 samples\n$")
        self.assertEqual(shown.err, "")

    def test_a_diverged_model_has_no_loss(self):
        path = self.folder / "far.safetensors"
        write_weights(path, **{"dense1.weight": ([5, 20], [float("nan")] * 100),
                               "dense1.bias": ([5], [0.0] * 5)})
        self.assertIsNone(self.score(path, "--model", "softmax", "--data",
                                     "synthetic:2000,20,5")["loss"])

    def test_weights_of_a_user_defined_model_are_refused(self):
        path = self.folder / "own.safetensors"
        write_weights(path, {"model": "line", "data": "own"}, params=([2], [1.0, 2.0]))
        for verb in (("eval",), ("predict",), ("export", "--out", "line.onnx")):
            with self.subTest(verb=verb[0]):
                ended = self.anytime(*verb, path, code=support.USAGE)
                self.assert_complaint(ended, "line", "not a built-in model")

    def test_missing_runs_and_weights_are_refused(self):
        self.assert_complaint(self.anytime("eval", self.folder / "no", code=support.MISSING), "no")
        folder = self.train(*support.SMALL, "--steps", 2, "--record", "none").folder
        ended = self.anytime("eval", folder, code=support.MISSING)
        self.assert_complaint(ended, "has no weights", "--record none")
        folder = self.folder / "empty"
        folder.mkdir()
        self.assert_complaint(self.anytime("eval", folder, code=support.MISSING),
                              "has no result.json", "anytime runs")


if __name__ == "__main__":
    support.main()
