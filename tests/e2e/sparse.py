#!/usr/bin/env python3
"""Sparse logistic regression learns under every strategy and in every world, with exact sample
counts; strategies with a barrier give the same bits in every world."""
import os
import pathlib
import re
import unittest

import support

# Synthetic clicks: small enough to be quick, with 39 numbers per row like the published data.
WHOLE_VECTORS = ("amb-gossip", "fmb-gossip", "anytime-sgd", "local-sgd", "diloco")
CLICKS = ("--model", "sparse-lr", "--data", "synthetic-clicks:20000,4096")
# The same options for every strategy; also in docs/guide/sparse.md.
OPTIONS = ("--workers", 2, "--batch", 16, "--epochs", 10, "--lr", 0.1, "--lr-schedule",
           "linear:0.001")


def strategies():
    table = (support.ROOT / "src/step/strategy.c").read_text()
    return re.findall(r'^    \{"([a-z-]+)",', table, re.M)


class TestCase(support.TestCase):
    def check(self, *arguments, accuracy, loss, auc):
        """The result of a run that reaches these metrics with exact sample counts."""
        ended = self.train(*arguments, "--quiet", "--json", "--record", "none")
        self.assert_ledger(ended)
        test = ended.result["test"]
        self.assertGreaterEqual(test["accuracy"], accuracy, ended)
        self.assertLessEqual(test["loss"], loss, ended)
        self.assertGreaterEqual(test["auc"], auc, ended)
        return ended.result

    def check_all(self, *arguments, **limits):
        for world in ("local", "sim"):
            for strategy in ("fmb", "amb", "async"):
                with self.subTest(world=world, strategy=strategy):
                    self.check(*arguments, "--world", world, "--strategy", strategy, **limits)
        with self.subTest(strategy="hogwild"):
            self.check(*arguments, "--strategy", "hogwild", **limits)


class A9a(TestCase):
    """The census data of the LIBSVM collection: A9A_DIR is a folder with a9a and a9a.t."""

    def files(self):
        folder = os.environ.get("A9A_DIR")
        if not folder:
            raise unittest.SkipTest("A9A_DIR is not set to a folder with a9a and a9a.t")
        found = [sorted(pathlib.Path(folder).glob(name)) for name in ("a9a", "a9a.t")]
        compressed = [sorted(pathlib.Path(folder).glob(name)) for name in ("a9a.xz", "a9a.t.xz")]
        paths = [(plain or small)[:1] for plain, small in zip(found, compressed)]
        if not all(paths):
            raise unittest.SkipTest(f"no a9a and a9a.t (or .xz) in {folder}")
        return paths[0][0], paths[1][0]

    def test_it_reaches_the_known_accuracy(self):
        train, test = self.files()
        self.check_all("--model", "sparse-lr", "--data", train, "--test-data", test,
                       "--data-cache", "no", *OPTIONS, accuracy=0.848, loss=0.326, auc=0.901)


class Clicks(TestCase):
    def test_it_learns_in_every_world(self):
        self.check_all(*CLICKS, *OPTIONS, "--epochs", 3, accuracy=0.73, loss=0.54, auc=0.77)

    def test_adagrad_learns_too(self):
        self.check(*CLICKS, *OPTIONS, "--epochs", 3, "--optimizer", "adagrad", accuracy=0.73,
                   loss=0.54, auc=0.77)

    def test_softmax_on_dense_rows_of_the_same_data_learns_the_same(self):
        """Both models are the same function. Softmax has weights for both classes that move apart,
        so half the learning rate has the same effect. Both report AUC."""
        same = (*CLICKS, "--workers", 2, "--batch", 16, "--epochs", 1)
        sparse = self.train_json(*same, "--lr", 0.1)["test"]
        dense = self.train_json(*same, "--model", "softmax", "--lr", 0.05)["test"]
        for metric in ("loss", "accuracy", "auc"):
            self.assertAlmostEqual(sparse[metric], dense[metric], delta=0.005)

    def test_a_barrier_gives_the_same_bits_in_every_world(self):
        for optimizer in ("sgd", "adagrad"):
            for workers in (1, 3):
                with self.subTest(optimizer=optimizer, workers=workers):
                    runs = [("--workers", workers, "--world", world) for world in ("local", "sim")]
                    runs += [("--workers", 0)] if workers == 1 else []
                    hashes = {self.train_json(*CLICKS, "--steps", 60, "--batch", 50, "--optimizer",
                                              optimizer, "--weight-decay", 1e-3, "--lr", 0.2,
                                              *run)["params_hash"] for run in runs}
                    self.assertEqual(len(hashes), 1)

    def test_every_strategy_runs_in_every_world(self):
        for strategy in sorted(set(strategies()) - set(WHOLE_VECTORS)):
            for world in ("local", "sim"):
                for optimizer in ("sgd", "adagrad"):
                    if strategy == "hogwild" and world == "sim":
                        continue
                    with self.subTest(strategy=strategy, world=world, optimizer=optimizer):
                        ended = self.train(*CLICKS, "--strategy", strategy, "--world", world,
                                           "--workers", 3, "--batch", 32, "--epochs", 1, "--lr",
                                           0.05, "--optimizer", optimizer, "--weight-decay", 1e-4,
                                           "--sample-time", "500ns", "--quiet", "--json")
                        self.assert_ledger(ended)
                        self.assertLess(ended.result["test"]["loss"], 0.69)
                        self.anytime("replay", ended.folder)

    def test_strategies_that_combine_parameters_are_refused(self):
        for strategy in WHOLE_VECTORS:
            with self.subTest(strategy=strategy):
                ended = self.train(*CLICKS, "--strategy", strategy, "--epochs", 1,
                                   code=support.USAGE)
                self.assert_complaint(ended, "sparse")

    def test_progressive_validation_is_the_mean_of_all_losses(self):
        ended = self.train(*CLICKS, "--workers", 1, "--batch", 100, "--epochs", 1, "--quiet",
                           "--record", "full")
        train = ended.result["train"]
        losses = [float(row["loss"]) for row in ended.table("master_stats.csv") if row["loss"]]
        self.assertAlmostEqual(train["progressive"], sum(losses) / len(losses), places=4)
        self.assertLess(train["progressive"], losses[0])

    def test_weights_are_written_and_read(self):
        first = self.train(*CLICKS, "--workers", 1, "--steps", 20, "--quiet")
        again = self.train_json(*CLICKS, "--workers", 1, "--steps", 1, "--lr", 1e-12, "--init",
                                first.folder)
        self.assertLess(again["test"]["loss"], 0.69)
        self.assertAlmostEqual(again["test"]["loss"], first.result["test"]["loss"], places=6)

    def test_a_target_may_be_auc(self):
        result = self.train_json(*CLICKS, *OPTIONS, "--target", "auc=0.7", "--eval-every", 20,
                                 "--world", "sim")
        self.assertEqual(result["stopped"], "target")
        self.assertEqual(result["targets"][0]["metric"], "auc")
        self.assertGreaterEqual(result["test"]["auc"], 0.69)

    def test_auc_and_progressive_loss_are_printed(self):
        ended = self.train(*CLICKS, "--workers", 1, "--epochs", 2, "--batch", 100)
        self.assertIn("AUC", ended.out)
        self.assertIn("progressive", ended.err)


class Hogwild(TestCase):
    def test_one_worker_gives_the_same_result_with_and_without_a_hub(self):
        runs = [self.train_json(*CLICKS, "--strategy", "hogwild", "--workers", workers, "--lr",
                                0.02, "--epochs", 1) for workers in (0, 1)]
        for result in runs:
            self.assertEqual(result["rules"]["mix"], "shared")
            self.assertEqual(result["samples"]["used"], 20480)
        self.assertEqual(runs[0]["train"]["progressive"], runs[1]["train"]["progressive"])

    def test_adagrad_learns_and_its_sums_of_squares_are_resumed(self):
        """One worker: the same rows in the same order, so a resumed run ends near the whole one.
        (A worker that updates in place may be within a round when the run stops.)"""
        job = (*CLICKS, "--strategy", "hogwild", "--optimizer", "adagrad", "--lr", 0.05,
               "--workers", 1, "--batch", 1024, "--micro-batch", 256, "--quiet", "--json")
        whole = self.train(*job, "--steps", 20).result
        half = self.train(*job, "--steps", 10)
        rest = self.resume(half.folder, "--steps", 20).wait().result
        anew = self.train(*job, "--steps", 10, "--init", half.folder).result  # sums of its own
        off = [abs(result["test"]["loss"] - whole["test"]["loss"]) for result in (rest, anew)]
        self.assertLess(off[0], off[1] / 4, (off, whole["test"]))
        self.assertLess(whole["test"]["loss"], 0.55)

    def test_several_workers_learn_with_adagrad(self):
        self.check(*CLICKS, "--strategy", "hogwild", "--optimizer", "adagrad", "--workers", 2,
                   "--epochs", 3, "--lr", 0.05, "--batch", 256, "--micro-batch", 64,
                   accuracy=0.73, loss=0.54, auc=0.77)

    def test_killed_workers_are_replaced_and_counted(self):
        run = self.start(*CLICKS, "--strategy", "hogwild", "--workers", 2, "--lr", 0.01,
                         "--seconds", "600s", "--batch", 500, "--sample-time", "5us",
                         "--eval-every", 0, "--quiet")
        rows = run.wait_working()
        run.wait_steps(20)
        os.kill(rows[1]["pid"], 9)
        run.wait_until(lambda: run.workers()[1]["pid"] not in (0, rows[1]["pid"]),
                       "the worker is replaced")
        run.signal(2)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["respawns"], 1)


class Refusals(TestCase):
    def refuse(self, *arguments, words):
        ended = self.train(*arguments, code=support.USAGE)
        self.assert_complaint(ended, *words)

    def test_impossible_combinations_are_refused_with_a_message(self):
        dense = ("--data", "synthetic:200,5,2")
        self.refuse(*CLICKS, "--optimizer", "adam", words=("adam", "sgd or adagrad"))
        self.refuse(*CLICKS, "--prep", "flip", words=("--prep",))
        self.refuse("--model", "sparse-lr", *dense, words=("dense rows", "softmax"))
        self.refuse(*dense, "--strategy", "hogwild", words=("needs a sparse model",))
        self.refuse(*CLICKS, "--strategy", "hogwild", "--world", "sim", words=("shared memory",))

    def test_more_than_two_classes_are_refused(self):
        path = self.folder / "three.svm"
        path.write_text("0 1:1\n1 2:1\n2 3:1\n" * 5)
        self.refuse("--model", "sparse-lr", "--data", path, "--test-data", path, "--data-cache",
                    "no", words=("3 classes",))


if __name__ == "__main__":
    support.main()
