#!/usr/bin/env python3
"""Same seed and settings: the same bits, whichever processes compute them."""
import support

OPTIMIZERS = ("sgd", "momentum", "rmsprop", "adam", "adagrad")
MODELS = ("softmax", "mlp:24,12")


class Bits(support.TestCase):
    def hashes(self, *arguments):
        result = self.train_json(*support.SMALL, "--steps", 150, "--record", "none", *arguments)
        return result["params_hash"], result["trace_hash"]

    def test_two_runs_give_the_same_parameters_and_the_same_trace(self):
        for model in MODELS:
            with self.subTest(model=model):
                first = self.hashes("--workers", 3, "--model", model)
                self.assertEqual(first, self.hashes("--workers", 3, "--model", model))

    def test_slow_and_padded_workers_change_no_bit(self):
        plain = self.hashes("--workers", 3)
        slow = self.hashes("--workers", 3, "--straggler", "exp:0,0.001", "--sample-time", "5us")
        self.assertEqual(plain, slow)

    def test_another_seed_gives_other_parameters(self):
        one, two = (self.hashes("--workers", 2, "--seed", seed) for seed in (1, 2))
        self.assertNotEqual(one[0], two[0])
        self.assertEqual(one[1], two[1], "the trace has only sample counts, which are equal")

    def test_no_hub_and_one_worker_agree(self):
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                with self.subTest(model=model, optimizer=optimizer):
                    same = ("--model", model, "--optimizer", optimizer, "--micro-batch", 16)
                    self.assertEqual(self.hashes("--workers", 0, *same),
                                     self.hashes("--workers", 1, *same))

    def test_four_workers_agree_with_one_that_computes_all_micro_batches(self):
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                with self.subTest(model=model, optimizer=optimizer):
                    same = ("--model", model, "--optimizer", optimizer, "--deal", "global",
                            "--micro-batch", 16)
                    four = self.hashes("--workers", 4, "--batch", 16, *same)[0]
                    self.assertEqual(four, self.hashes("--workers", 1, "--batch", 64, *same)[0])
                    self.assertEqual(four, self.hashes("--workers", 0, "--batch", 64, *same)[0])

    def test_the_fast_engine_agrees_with_the_reference_engine(self):
        for model in MODELS:
            with self.subTest(model=model):
                fast, ref = (self.train_json(*support.SMALL, "--steps", 200, "--workers", 2,
                                               "--model", model, "--engine", engine)
                               for engine in ("fast", "ref"))
                self.assertNotEqual(fast["engine"], ref["engine"])
                for where in ("train", "test"):
                    self.assertAlmostEqual(fast[where]["loss"], ref[where]["loss"], delta=1e-3)


class NetBits(support.TestCase):
    """Nets with convolutions, batch norm, dropout and residual blocks."""

    NETS = {
        "plain": "conv 5x5x8\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\n"
                 "dense classes\n",
        "blocks": "conv 3x3x16 bias=no\nbn\nrelu\nbasic 16\nbasic 32 stride=2\navgpool all\n"
                  "dense classes\n",
        "groups": "conv 3x3x20\ngn 4\nrelu\nmaxpool 3 stride=2\nconv 3x3x12\nrelu\n"
                  "dense classes\n",
    }

    def hashes(self, name, *arguments):
        net = self.folder / f"{name}.net"
        net.write_text(self.NETS[name])
        result = self.train_json("--data", "synthetic:300,3x12x12,4", "--model", net, "--steps", 6,
                                 "--batch", 20, "--micro-batch", 8, "--record", "none",
                                 "--optimizer", "momentum", "--eval-every", 0, *arguments)
        return result["params_hash"]

    def test_repeated_runs_all_worlds_and_no_hub_agree(self):
        for name in self.NETS:
            with self.subTest(net=name):
                one = self.hashes(name, "--workers", 1)
                self.assertEqual(one, self.hashes(name, "--workers", 1))
                self.assertEqual(one, self.hashes(name, "--workers", 0))
                self.assertEqual(one, self.hashes(name, "--workers", 1, "--world", "sim"))
                three = self.hashes(name, "--workers", 3)
                self.assertEqual(three, self.hashes(name, "--workers", 3))
                self.assertEqual(three, self.hashes(name, "--workers", 3, "--world", "sim"))

    def test_built_in_models_give_the_same_bits_with_and_without_a_hub(self):
        small = {"lenet": "1x28x28", "mnist-cnn": "1x28x28", "mnistnet": "1x28x28",
                 "cifar10-cnn": "3x32x32", "cifar10-cnn-gn": "3x32x32", "wrn-28-2-8": "3x8x8",
                 "wrn-28-2-16": "3x16x16", "wrn-28-2": "3x32x32", "resnet18": "3x32x32",
                 "toy-conv": "100", "toy-fc": "100"}
        for model, shape in small.items():
            with self.subTest(model=model):
                same = ("--data", f"synthetic:60,{shape},3", "--model", model, "--steps", 2,
                        "--batch", 4, "--record", "none", "--eval-every", 0, "--eval-size", 1)
                solo, one = (self.train_json(*same, "--workers", workers)["params_hash"]
                             for workers in (0, 1))
                self.assertEqual(solo, one)


if __name__ == "__main__":
    support.main()
