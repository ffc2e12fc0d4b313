#!/usr/bin/env python3
"""Unequal and skewed shards: no run hangs, no sample is lost, and training still works."""
import support

WORLDS = ("local", "sim")
SKEWED = ("--data", "synthetic:2000,20,5", "--batch", 16, "--lr", 0.05)


class Skew(support.TestCase):
    def check(self, *arguments):
        """The result of a run that ends with exact sample counts."""
        ended = self.train(*arguments, "--quiet", "--json")
        self.assert_ledger(ended)
        return ended.result

    def test_one_class_per_worker_learns_as_well(self):
        for world in WORLDS:
            with self.subTest(world=world):
                result = self.check(*SKEWED, "--workers", 5, "--epochs", 3, "--shard", "by-class",
                                    "--world", world)
                self.assertGreaterEqual(result["test"]["accuracy"], 0.95)
                self.assertEqual(result["options"]["shard"], "by-class")

    def test_both_worlds_draw_the_same_samples(self):
        hashes = {self.check(*SKEWED, "--workers", 3, "--steps", 40, "--shard", "by-class",
                             "--world", world)["params_hash"] for world in WORLDS}
        self.assertEqual(len(hashes), 1)

    def test_strategies_work_with_skewed_shards(self):
        for world in WORLDS:
            for strategy in ("amb", "async", "backup", "ssp", "dbs"):
                with self.subTest(world=world, strategy=strategy):
                    self.check(*SKEWED, "--workers", 4, "--epochs", 1, "--shard", "by-class",
                               "--strategy", strategy, "--world", world, "--sample-time", "20us")

    def test_fewer_samples_than_a_batch(self):
        for world in WORLDS:
            for shard in ("no", "yes"):
                with self.subTest(world=world, shard=shard):
                    result = self.check("--data", "synthetic:7,3,2", "--workers", 3, "--batch", 64,
                                        "--steps", 6, "--shard", shard, "--world", world)
                    self.assertEqual(result["samples"]["used"], 6 * 3 * 64)

    def test_fewer_samples_than_workers(self):
        for world in WORLDS:
            with self.subTest(world=world):
                small = ("--data", "synthetic:4,3,2", "--workers", 6, "--steps", 5, "--world",
                         world)
                self.check(*small, "--batch", 8)
                ended = self.train(*small, "--shard", code=support.USAGE)
                self.assert_complaint(ended, "4 samples", "6 workers")

    def test_a_worker_without_samples_is_refused_by_number(self):
        for world in WORLDS:
            with self.subTest(world=world):
                ended = self.train(*SKEWED, "--workers", 7, "--shard", "by-class", "--world", world,
                                   code=support.USAGE)
                self.assert_complaint(ended, "worker 6 of 7", "5 classes")

    def test_shards_of_different_length(self):
        """Five classes on two workers: three fifths and two fifths of the samples."""
        for world in WORLDS:
            with self.subTest(world=world):
                result = self.check(*SKEWED, "--workers", 2, "--epochs", 4, "--shard", "by-class",
                                    "--world", world)
                self.assertGreaterEqual(result["test"]["accuracy"], 0.93)

    def test_contradictions_are_refused(self):
        ended = self.train(*SKEWED, "--workers", 2, "--shard", "by-class", "--deal", "global",
                           code=support.USAGE)
        self.assert_complaint(ended, "--deal global")
        ended = self.train(*SKEWED, "--shard=by-colour", code=support.USAGE)
        self.assert_complaint(ended, "by-colour", "no|yes|by-class")

    def test_all_spellings_of_the_option_work(self):
        for words, meant in ((["--shard"], "yes"), (["--shard=yes"], "yes"), (["--no-shard"], "no"),
                             (["--shard=on"], "yes"), (["--shard", "by-class"], "by-class")):
            with self.subTest(words=words):
                result = self.check(*SKEWED, "--workers", 2, "--steps", 2, *words)
                self.assertEqual(result["options"]["shard"], meant)


if __name__ == "__main__":
    support.main()
