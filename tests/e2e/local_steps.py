#!/usr/bin/env python3
"""Workers that make local steps and report changes of their parameters."""
import struct

import support

DATA = ("--data", "synthetic:2000,20,5")
SIM = ("--world", "sim", "--sample-time", "1ms")
QUIET = ("--quiet", "--json", "--eval-every", 0)
NET = "conv 3x3x8 bias=no\nbn\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\ndense classes\n"


def weights(folder):
    """The trained parameters of a run, in the order of the file."""
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return struct.unpack(f"<{(len(raw) - 8 - size) // 4}f", raw[8 + size:])


class Formula(support.TestCase):
    def assert_near(self, first, second):
        for a, b in zip(weights(first.folder), weights(second.folder), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5 * max(1, abs(a)))

    def test_one_local_step_per_round_is_fmb(self):
        for world in ((), SIM):
            for strategy in ("local-sgd:1", "anytime-sgd:1ns"):
                with self.subTest(world=world, strategy=strategy):
                    common = (*DATA, *world, *QUIET, "--workers", 4, "--steps", 60, "--lr", 0.3)
                    fmb = self.train(*common, "--strategy", "fmb", "--batch", 32)
                    self.assert_near(fmb, self.train(*common, "--strategy", strategy))

    def test_one_worker_makes_the_steps_of_one_process(self):
        """50 rounds of 4 local steps are 200 steps, whatever the optimizer and the schedule."""
        for optimizer in ("sgd", "momentum", "adamw"):
            for crew in (("--workers", 0), ("--workers", 1)):
                with self.subTest(optimizer=optimizer, crew=crew):
                    common = (*DATA, *QUIET, *crew, "--optimizer", optimizer, "--lr-schedule",
                              "linear:0.001", "--clip", 0.5)
                    plain = self.train(*common, "--strategy", "fmb", "--batch", 32, "--steps", 200)
                    local = self.train(*common, "--strategy", "local-sgd:4", "--steps", 50)
                    self.assert_near(plain, local)

    def test_a_local_batch_is_computed_in_micro_batches(self):
        common = (*DATA, *QUIET, "--workers", 3, "--steps", 30, "--strategy", "local-sgd:4")
        whole = self.train(*common, "--local-batch", 32)
        parts = self.train(*common, "--local-batch", 32, "--micro-batch", 8)
        self.assertEqual(parts.result["rules"]["work"], "local:4,32")
        self.assertEqual(parts.result["samples"]["used"], 30 * 3 * 4 * 32)
        self.assert_near(whole, parts)

    def test_local_and_virtual_workers_have_the_same_bits(self):
        net = self.folder / "small.net"
        net.write_text(NET)
        images = ("--data", "synthetic:300,3x12x12,4", "--model", net, "--micro-batch", 8)
        for job in ((*DATA, "--strategy", "local-sgd:7", "--lr-schedule", "cosine"),
                    (*DATA, "--strategy", "diloco:5", "--model", "mlp:12"),
                    (*images, "--strategy", "diloco:3"),
                    (*images, "--strategy", "local-sgd:3", "--optimizer", "momentum")):
            with self.subTest(job=job):
                runs = [self.train(*job, *world, *QUIET, "--workers", 3, "--steps", 12).result
                        for world in ((), SIM)]
                self.assertEqual(runs[0]["params_hash"], runs[1]["params_hash"])


class Claims(support.TestCase):
    def simulate(self, *arguments):
        return self.train(*SIM, *QUIET, "--record", "none", "--workers", 4, *arguments).result

    def test_weights_by_work_beat_equal_weights_with_unequal_workers(self):
        """anytime-sgd against the plain average of the same parameters after the same time."""
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                common = ("--data", "synthetic:4000,40,5", "--straggler", "speed:1,1,2,4",
                          "--strategy", "anytime-sgd:512ms", "--steps", 20, "--lr", 0.05,
                          "--seed", seed)
                weighted = self.simulate(*common)
                equal = self.simulate(*common, "--outer", "average:equal")
                rounds = [row["used"] for row in weighted["worker"]]
                self.assertEqual(rounds, [20 * n for n in (512, 512, 256, 128)])
                self.assertEqual(weighted["seconds"], equal["seconds"])
                self.assertLess(weighted["test"]["loss"], 0.95 * equal["test"]["loss"])

    def test_diloco_needs_fifty_times_fewer_messages_for_the_same_loss(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                common = ("--data", "synthetic:8000,40,10", "--seed", seed, "--lr", 0.001,
                          "--samples", 40 * 4 * 50 * 32)
                fmb = self.simulate(*common, "--strategy", "fmb", "--batch", 32, "--optimizer",
                                    "adamw")
                diloco = self.simulate(*common, "--strategy", "diloco")
                self.assertEqual(diloco["options"]["optimizer"], "adamw")
                self.assertEqual(fmb["steps"], 50 * diloco["steps"])
                self.assertLess(diloco["test"]["loss"], 1.02 * fmb["test"]["loss"])


class Runs(support.TestCase):
    def test_workers_that_do_not_wait_make_local_steps_too(self):
        for world in ((), SIM):
            with self.subTest(world=world):
                ended = self.train(*DATA, *world, *QUIET, "--workers", 3, "--steps", 100,
                                   "--strategy", "local-sgd:4", "--gather", "any:1", "--release",
                                   "free", "--stale", "use", "--lr", 0.05)
                self.assert_ledger(ended)
                self.assertGreater(ended.result["test"]["accuracy"], 0.85)

    def test_a_resumed_run_says_that_inner_states_start_anew(self):
        for optimizer, noted in (("sgd", False), ("adamw", True)):
            with self.subTest(optimizer=optimizer):
                ended = self.train(*DATA, *SIM, "--workers", 3, "--steps", 20, "--strategy",
                                   "diloco:5", "--optimizer", optimizer, "--checkpoint-every", 10)
                ended = self.anytime("train", "--resume", ended.folder, "--steps", 30)
                self.assertEqual("optimizer states; they start anew" in ended.err, noted, ended)

    def test_senseless_combinations_are_refused(self):
        clicks = ("--data", "synthetic-clicks:4000,4096", "--model", "sparse-lr")
        for arguments, text in (
                ((*clicks, "--strategy", "local-sgd"), "the gradients of sparse-lr are sparse"),
                ((*clicks, "--strategy", "hogwild", "--work", "local:4"), "--mix shared"),
                ((*DATA, "--strategy", "diloco", "--optimizer", "dual-averaging"),
                 "--optimizer dual-averaging does not work with --work local"),
                ((*DATA, "--strategy", "local-sgd", "--release", "free", "--stale", "use",
                  "--gather", "any:1", "--lr-schedule", "linear:0.01"), "start without orders"),
                ((*DATA, "--strategy", "local-sgd", "--lr-schedule", "linear:0.01,steps"),
                 "a step of the run is many local steps"),
                ((*DATA, "--strategy", "local-sgd", "--lr-scale", "linear", "--size", "grow"),
                 "--lr-scale linear does not work with --work local")):
            with self.subTest(arguments=arguments):
                ended = self.train(*arguments, "--steps", 5, code=support.USAGE)
                self.assertIn(text, ended.err)


if __name__ == "__main__":
    support.main()
