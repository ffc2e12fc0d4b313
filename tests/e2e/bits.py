#!/usr/bin/env python3
"""Same seed, same settings: the same bits, whoever computes them."""
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
        self.assertEqual(one[1], two[1], "the trace tells who sent how much, which is the same")

    def test_no_hub_and_one_worker_agree(self):
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                with self.subTest(model=model, optimizer=optimizer):
                    same = ("--model", model, "--optimizer", optimizer, "--micro-batch", 16)
                    self.assertEqual(self.hashes("--workers", 0, *same),
                                     self.hashes("--workers", 1, *same))

    def test_four_workers_agree_with_one_that_does_their_micro_batches(self):
        for model in MODELS:
            for optimizer in OPTIMIZERS:
                with self.subTest(model=model, optimizer=optimizer):
                    same = ("--model", model, "--optimizer", optimizer, "--deal", "global",
                            "--micro-batch", 16)
                    four = self.hashes("--workers", 4, "--batch", 16, *same)[0]
                    self.assertEqual(four, self.hashes("--workers", 1, "--batch", 64, *same)[0])
                    self.assertEqual(four, self.hashes("--workers", 0, "--batch", 64, *same)[0])

    def test_the_fast_engine_computes_what_the_plain_one_does(self):
        for model in MODELS:
            with self.subTest(model=model):
                fast, plain = (self.train_json(*support.SMALL, "--steps", 200, "--workers", 2,
                                               "--model", model, "--engine", engine)
                               for engine in ("fast", "ref"))
                self.assertNotEqual(fast["engine"], plain["engine"])
                for where in ("train", "test"):
                    self.assertAlmostEqual(fast[where]["loss"], plain[where]["loss"], delta=1e-3)


if __name__ == "__main__":
    support.main()
