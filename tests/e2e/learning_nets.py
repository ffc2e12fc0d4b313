#!/usr/bin/env python3
"""Convolutional nets learn: short runs only (whole ones: docs/reference/models.md)."""
import support


class Nets(support.TestCase):
    def test_mnist_cnn_learns_clothes_in_a_few_steps(self):
        ended = self.train("--model", "mnist-cnn", "--workers", 2, "--batch", 32, "--steps", 80,
                           "--optimizer", "momentum", "--lr", 0.02, "--eval-every", 0,
                           "--eval-size", 2000)
        self.assert_ledger(ended)
        self.assertGreater(ended.result["test"]["accuracy"], 0.72)

    def test_batch_norm_residual_blocks_and_group_norm_learn_under_every_kind_of_strategy(self):
        net = self.folder / "small.net"
        for norm in ("bn", "gn:4"):
            net.write_text(f"conv 3x3x16 stride=2 bias=no\nbasic 16 norm={norm}\n"
                           f"basic 32 stride=2 norm={norm}\navgpool all\ndense classes\n")
            for strategy in ("fmb", "amb", "async"):
                with self.subTest(norm=norm, strategy=strategy):
                    ended = self.train("--model", net, "--workers", 2, "--batch", 32, "--samples",
                                       9600, "--strategy", strategy, "--optimizer", "momentum",
                                       "--lr", 0.01, "--eval-every", 0, "--eval-size", 1000)
                    self.assert_ledger(ended)
                    least = 0.25 if strategy == "async" else 0.4  # of ten classes; async scatters
                    self.assertGreater(ended.result["test"]["accuracy"], least)

    def test_batch_norm_with_tiny_micro_batches_is_warned_of(self):
        arguments = ("--data", "synthetic:60,3x32x32,3", "--model", "cifar10-cnn", "--batch", 4,
                     "--steps", 1, "--workers", 1, "--eval-every", 0, "--eval-size", 1)
        self.assertIn("batch norm", self.train(*arguments).err)
        self.assertNotIn("batch norm", self.train(*arguments, "--model", "cifar10-cnn-gn").err)


if __name__ == "__main__":
    support.main()
