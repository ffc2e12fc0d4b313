#!/usr/bin/env python3
"""Preparation steps give the same samples in every world."""
import support

IMAGES = ("--data", "synthetic:600,3x12x12,4", "--batch", 16, "--micro-batch", 8)
LIST = "pad:2,crop:12,flip,normalise"


class Prep(support.TestCase):
    def hash(self, *arguments):
        return self.train_json(*IMAGES, "--steps", 30, "--record", "none", "--prep", LIST,
                               *arguments)["params_hash"]

    def test_random_steps_are_the_same_in_every_world(self):
        self.assertEqual(self.hash("--workers", 3), self.hash("--workers", 3, "--world", "sim"))
        self.assertEqual(self.hash("--workers", 0), self.hash("--workers", 1))

    def test_random_steps_do_not_depend_on_the_worker(self):
        four = self.hash("--workers", 4, "--batch", 8, "--deal", "global")
        self.assertEqual(four, self.hash("--workers", 1, "--batch", 32, "--deal", "global"))

    def test_random_steps_depend_on_the_seed(self):
        self.assertNotEqual(self.hash("--workers", 2, "--seed", 1),
                            self.hash("--workers", 2, "--seed", 2))

    def test_the_model_sees_the_prepared_shape(self):
        for steps, parameters in (("grey", 144), ("crop:8x6", 144), ("resize:24", 1728),
                                  ("grey,rgb,pad:1", 588)):
            with self.subTest(steps=steps):
                result = self.train_json(*IMAGES, "--workers", 1, "--steps", 2, "--prep", steps)
                self.assertEqual(result["parameters"], 4 * (parameters + 1))

    def test_impossible_steps_are_refused_with_both_shapes(self):
        for steps, words in (("crop:40", ("crop:40", "3x40x40", "3x12x12")),
                             ("flip,flop", ("flop", "did you mean flip?")),
                             ("grey,normalise:1,2/1,2", ("step 2", "MEANS/DEVIATIONS"))):
            with self.subTest(steps=steps):
                ended = self.train(*IMAGES, "--workers", 1, "--prep", steps, code=support.USAGE)
                self.assert_complaint(ended, *words)
        ended = self.train("--data", "synthetic:60,5,2", "--workers", 1, "--prep", "flip",
                           code=support.USAGE)
        self.assert_complaint(ended, "1x1x5", "feature vectors")

    def test_normalization_makes_features_far_from_zero_trainable(self):
        result = self.train_json("--data", "synthetic:2000,20,5", "--workers", 2, "--epochs", 3,
                                 "--lr", 0.05, "--prep", "normalise:100/0.01,normalise")
        self.assertGreaterEqual(result["test"]["accuracy"], 0.95)


if __name__ == "__main__":
    support.main()
