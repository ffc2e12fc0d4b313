#!/usr/bin/env python3
"""What new users ran into: grids, simulations beside their original, the published log lines, net
files, signals, small pictures."""
import json
import re
import signal
import struct
import tempfile
import zlib

import support

RUN = (*support.SMALL, "--workers", 2, "--batch", 8)


class Sweep(support.TestCase):
    def test_several_options_make_a_grid(self):
        out = self.folder / "grid"
        ended = self.anytime("sweep", "--over", "lr=0.01,0.1", "--over", "batch=4,8,16",
                             *support.SMALL,
                             "--workers", 2, "--steps", 5, "--repeats", 1, "--world", "sim",
                             "--sample-time", "1ms", "--plots", "none", "--out", out)
        self.assertIn("lr, batch", ended.out)
        self.assertIn("0.1, 16", ended.out)
        self.assertRegex(ended.out, r"best: --lr 0\.[01]+ --batch \d+, by accuracy")
        self.assertIn("times are virtual", ended.out)
        entries = json.loads((out / "compare.json").read_text())["entries"]
        self.assertEqual(len(entries), 6)

    def test_an_option_cannot_be_given_twice(self):
        ended = self.anytime("sweep", "--over", "lr=0.01", "--over", "lr=0.1", code=support.USAGE)
        self.assert_complaint(ended, "lr is given twice")


class Original(support.TestCase):
    def test_a_simulation_is_shown_beside_it(self):
        run = self.train(*RUN, "--steps", 20).folder
        told = self.anytime("simulate", "--from", run, "--strategy", "amb", "--run", "sim").out
        self.assertRegex(told, r"original +fmb +20 +[0-9.]+[mun]?s +\d+ ")
        self.assertRegex(told, r"simulated +amb")

    def test_other_workers_than_recorded_are_refused(self):
        run = self.train(*RUN, "--steps", 20).folder
        ended = self.anytime("simulate", "--from", run, "--workers", 20, "--run", "more",
                             code=support.USAGE)
        self.assert_complaint(ended, "--workers 20", "2 workers")


class Classic(support.TestCase):
    def test_the_lines_of_the_published_programs(self):
        told = self.anytime("train", *RUN, "--steps", 6, "--log-style", "classic", "--run", "c").out
        number = r"[-+0-9.enaif]+"
        rounds = re.findall(rf"^wk([12])\|Sending \[8\] examples, compute_time \[{number}\], "
                            rf"last_idle \[{number}\], last_send \[{number}\]$", told, re.M)
        steps = re.findall(rf"^wk0\|step = (\d+), loss = {number}, learning_rate = {number}, "
                           rf"accuracy = {number} \({number} sec\)$", told, re.M)
        self.assertEqual(len(rounds), 12, told)
        self.assertEqual(steps, [str(step) for step in range(1, 7)], told)


class Explosion(support.TestCase):
    def test_a_loss_that_explodes_is_warned_of(self):
        ended = self.train(*RUN, "--steps", 30, "--lr", 1e5)
        self.assertIn("the loss has exploded", ended.err)
        calm = self.train(*RUN, "--steps", 30)
        self.assertNotIn("exploded", calm.err)


class NetFiles(support.TestCase):
    """`models show` prints a net file, and a run keeps the net file that it was made with."""

    def names(self):
        listed = json.loads(self.anytime("models", "list", "--json").out)
        names = {row["usage"]: row for row in listed}
        for other in ("linear", "sparse-lr", "sparse-linear"):
            names.pop(other)  # without classes, or without layers
        names["mlp:8,4"] = names.pop("mlp:H1,H2,..")
        return names

    def test_every_model_is_printed_as_a_net_file(self):
        for name, row in self.names().items():
            with self.subTest(model=name):
                shown = self.anytime("models", "show", name)
                (self.folder / "shown.net").write_text(shown.out)
                again, once = (json.loads(self.anytime("models", "show", it, "--json").out)
                               for it in ("shown.net", name))
                for key in ("layers", "input", "classes", "parameters", "statistics"):
                    self.assertEqual(again[key], once[key], key)
                if "parameters" in row:
                    self.assertEqual(again["parameters"], row["parameters"])

    def test_a_printed_net_trains_to_the_same_bits(self):
        for name, data in (("softmax", "36,3"), ("mlp:8,4", "1x6x6,3"), ("lenet", "1x28x28,10"),
                           ("linear1", "1x28x28,10"), ("toy-conv", "1x10x10,10"),
                           ("wrn-28-2-8", "3x8x8,10")):  # one of every kind of layer
            with self.subTest(model=name):
                (self.folder / "shown.net").write_text(self.anytime("models", "show", name).out)
                step = ("--data", f"synthetic:60,{data}", "--workers", 0, "--batch", 4, "--steps",
                        1, "--eval-every", 0, "--record", "none")
                one = self.train_json("--model", name, *step)
                two = self.train_json("--model", self.folder / "shown.net", *step)
                self.assertEqual(one["params_hash"], two["params_hash"])

    def test_a_trained_net_needs_its_file_no_more(self):
        net = self.folder / "mine.net"
        net.write_text("dense 7\nrelu\ndense classes name=head\n")
        ended = self.train(*RUN, "--model", net, "--steps", 6, "--checkpoint-every", 3)
        before = json.loads(self.anytime("eval", ended.folder, "--json").out)
        for gone in (net.unlink, lambda: net.write_text("dense 5\ndense classes\n")):
            gone()
            with self.subTest(exists=net.exists()), tempfile.TemporaryDirectory() as elsewhere:
                for name in ("model.onnx", "model.safetensors"):
                    self.anytime("export", ended.folder, "--out", name, cwd=elsewhere)
                for source in (ended.folder, "model.safetensors"):
                    after = self.anytime("eval", source, "--json", cwd=elsewhere)
                    self.assertEqual(json.loads(after.out)["test"], before["test"])
        resumed = self.resume(ended.folder, "--steps", 9).wait()
        self.assertEqual((resumed.code, resumed.result["steps"]), (support.DONE, 9), resumed)


class Messages(support.TestCase):
    def test_a_hint_names_every_strategy(self):
        ended = self.anytime("train", "--strategy", "ambb", code=support.USAGE)
        self.assert_complaint(ended, "did you mean amb?", "hogwild")

    def test_a_dry_run_says_what_a_run_would(self):
        rows = "\n".join(f"{i % 7},{i % 3}" for i in range(30))
        (self.folder / "rows.csv").write_text(f"a,label\n{rows}\n")
        ended = self.anytime("train", "--data", "rows.csv", "--batch", 512, "--dry-run")
        for words in ("3 of 30 rows are held out", "are scaled", "the data has only 27"):
            self.assertIn(words, ended.err)

    def test_a_comparison_says_once_what_it_does_with_its_data(self):
        rows = "\n".join(f"{i % 7},{i % 3}" for i in range(60))
        (self.folder / "rows.csv").write_text(f"a,label\n{rows}\n")
        for world in ("local", "sim"):
            with self.subTest(world=world):
                ended = self.anytime("compare", "fmb", "amb", "--data", "rows.csv", "--workers", 2,
                                     "--batch", 4, "--steps", 3, "--repeats", 2, "--plots", "none",
                                     "--world", world, "--sample-time", "100us", "--out", world)
                self.assertEqual(ended.err.count("rows are held out"), 1, ended)

    def test_a_test_split_without_use_is_noted(self):
        ended = self.train(*RUN, "--steps", 1, "--test-split", 0.3)
        self.assertIn("--test-split is not used: the data has a test part", ended.err)


class Stopping(support.TestCase):
    def test_a_signal_is_answered_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for workers in (0, 2):
                with self.subTest(signal=number, workers=workers):
                    run = self.start(*support.SMALL, "--workers", workers, "--steps", 10 ** 9)
                    run.wait_steps(3)
                    run.signal(number)
                    ended = run.wait()
                    self.assertEqual(ended.code, support.STOPPED, ended)
                    self.assertEqual(ended.err.count("stopping after the current micro-batch"), 1,
                                     ended)

    def test_it_is_said_although_a_micro_batch_takes_long(self):
        run = self.start(*support.SMALL, "--workers", 2, "--batch", 1, "--sample-time", "20s",
                         "--steps", 10)
        run.wait_working()
        run.wait_said("2 workers")
        run.signal(signal.SIGTERM)
        run.wait_said("stopping after the current micro-batch")
        self.assertIsNone(run.process.poll(), run.ended())


class Pictures(support.TestCase):
    def test_enlarged_pictures_are_warned_of(self):
        for name in ("cats", "dogs"):
            (self.folder / "pets" / name).mkdir(parents=True)
            for i in range(12):
                path = self.folder / "pets" / name / f"{i}.png"
                path.write_bytes(png(24, 24, 20 * i))
        data = self.folder / "pets"
        words = ("--workers", 1, "--batch", 2, "--steps", 1, "--record", "none")
        ended = self.train("--data", data, *words)
        self.assertRegex(ended.err, r"warning: the pictures in .*pets are enlarged from 24x24 .*to "
                                    r"224x224; each worker needs [0-9.]+ GB\n"
                                    rf"  hint: --data {data},24 keeps their size")
        self.assertEqual(ended.err.count("are enlarged"), 1)
        calm = self.train("--data", f"{data},24", *words)
        self.assertNotIn("are enlarged", calm.err)
        self.assertRegex(calm.err, r"\d+ of 24 pictures, chosen by their names, are held out")


def png(width, height, shade):
    """A gray picture."""
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([shade]) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


if __name__ == "__main__":
    support.main()
