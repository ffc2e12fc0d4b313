#!/usr/bin/env python3
"""`anytime slices`: the cost of splitting a batch into micro-batches."""
import json
import os
import shutil
import signal
import subprocess

import support

TINY = ("--model", "toy-fc", "--data", "synthetic:400,100,10")


class Slices(support.TestCase):
    def slices(self, *arguments, **options):
        return self.anytime("slices", *TINY, *arguments, **options)

    def left(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_every_way_to_split_a_batch_has_a_point(self):
        ended = self.slices("--batches", "16,6", "--repeats", 2, "--quiet", "--json", "--out",
                            "out")
        document = json.loads(ended.out)
        self.assertEqual(document, json.loads((self.folder / "out" / "slices.json").read_text()))
        found = [(point["batch"], point["slices"], point["micro_batch"])
                 for point in document["points"]]
        self.assertEqual(found, [(6, 1, 6), (6, 2, 3), (16, 1, 16), (16, 2, 8), (16, 4, 4),
                                 (16, 8, 2), (16, 16, 1)])
        self.assertEqual(document["parameters"], 1057010)
        self.assertEqual(document["left_out"], [])
        for point in document["points"]:
            self.assertEqual(len(point["repeats"]), 2)
            self.assertAlmostEqual(point["step_seconds"], min(point["repeats"]))
            self.assertAlmostEqual(point["sample_seconds"],
                                   point["step_seconds"] / point["batch"])
            self.assertTrue(0 <= point["spread"] < 1, point)
            if point["slices"] == 1:
                self.assertEqual(point["relative"], 1)
        self.assertEqual(ended.err, "")

    def test_table_and_plots_are_left_in_the_folder(self):
        ended = self.slices("--batches", "8", "--repeats", 1, "--out", "out")
        self.assertEqual([line.split()[:3] for line in ended.out.splitlines()[4:8]],
                         [["8", "1", "8"], ["8", "2", "4"], ["8", "4", "2"], ["8", "8", "1"]])
        self.assertIn("written to out", ended.out)
        self.assertIn("repeat 1 of 1", ended.err)
        wanted = {"slices.json", "step-time.csv", "step-time.gp", "sample-time.csv",
                  "sample-time.gp", "slices.gp"}
        if shutil.which("gnuplot"):
            wanted |= {f"{name}.{ending}" for name in ("slices", "step-time", "sample-time")
                       for ending in ("png", "svg")}
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()}, wanted)

    def test_only_the_given_slices_are_measured(self):
        ended = self.slices("--batches", "12", "--slices", "3,5", "--repeats", 1, "--plots",
                            "none", "--json", "--out", "out")
        point, = json.loads(ended.out)["points"]
        self.assertEqual((point["slices"], point["micro_batch"], point["relative"]), (3, 4, None))
        self.assertEqual(os.listdir(self.folder / "out"), ["slices.json"])

    def test_other_models_and_optimizers(self):
        for model, data, optimizer in (("toy-conv", "synthetic:400,100,10", "adam"),
                                       ("softmax", "synthetic:100,20,5", "momentum")):
            with self.subTest(model=model):
                ended = self.anytime("slices", "--model", model, "--data", data, "--optimizer",
                                     optimizer, "--batches", "4", "--slices", "1,2", "--repeats",
                                     1, "--plots", "none", "--json", "--out", f"out-{model}")
                self.assertEqual(len(json.loads(ended.out)["points"]), 2)

    def test_micro_batches_that_do_not_fit_into_memory_are_left_out_with_a_note(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if memory > 30e9:
            self.skipTest("this machine has enough memory for all of them")
        ended = self.anytime("slices", "--model", "mlp:1000000", "--data", "synthetic:50,5,3",
                             "--batches", "2,8192", "--slices", 1, "--repeats", 1, "--plots",
                             "none", "--json", "--out", "out")
        self.assertIn("micro-batches of 8192 samples are left out", ended.err)
        document = json.loads(ended.out)
        self.assertEqual([point["batch"] for point in document["points"]], [2])
        self.assertEqual(document["left_out"],
                         [{"batch": 8192, "slices": 1, "micro_batch": 8192}])

    def test_wrong_usage_is_refused_and_leaves_nothing(self):
        (self.folder / "there").mkdir()
        for words, shown in ((("--batches", "0"), "0"), (("--batches", "8,x"), "'x'"),
                            (("--batches", "7", "--slices", "2"), "none of these numbers"),
                            (("--optimizer", "sgdd"), "sgdd"), (("--plots", "some"), "some"),
                            (("--engine", "quick"), "quick"), (("--out", "there"), "exists"),
                            (("64",), "'64'"), (("--workers", "2"), "workers")):
            with self.subTest(words=words):
                ended = self.slices(*words, code=support.USAGE)
                self.assert_complaint(ended, shown)
                self.assertEqual(self.left(), ["there"])

    def test_ctrl_c_before_the_first_repeat_leaves_nothing(self):
        with subprocess.Popen([support.ANYTIME, "slices", *TINY, "--batches", "4096", "--repeats",
                               "1000", "--out", "out"], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            self.assertIn("repeat 1 of 1000", run.stderr.readline())
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=support.BOUND)
        self.assertEqual((run.returncode, out), (support.STOPPED, ""), err)
        self.assertIn("stopped by a signal after 0 of 1000 repeats", err)
        self.assertEqual(self.left(), [])

    def test_ctrl_c_later_shows_the_complete_repeats(self):
        with subprocess.Popen([support.ANYTIME, "slices", *TINY, "--batches", "8", "--slices", "1",
                               "--repeats", "1000", "--plots", "none", "--json", "--out", "out"],
                              cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as run:
            while "repeat 3 " not in run.stderr.readline():
                pass
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=support.BOUND)
        self.assertEqual(run.returncode, support.STOPPED)
        document = json.loads(out)
        self.assertGreaterEqual(document["repeats"], 2)
        self.assertLess(document["repeats"], 1000)
        self.assertEqual(len(document["points"][0]["repeats"]), document["repeats"])


if __name__ == "__main__":
    support.main()
