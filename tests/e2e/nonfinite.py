#!/usr/bin/env python3
"""Losses and gradients that are not finite: noticed at once, named, and handled by --nonfinite."""
import json
import random
import re

import support
from support import mpi, net, seats, tensors

WILD = ("--data", "synthetic:2000,20,5", "--model", "mlp:24", "--lr", 1e5, "--steps", 60)
NAMED = r"diverged in step \d+: the (loss|gradient) of worker \d+ is not finite"
SIM = ("--world", "sim", "--sample-time", "1ms")


def bad_sample(folder):
    """A data set with one sample whose features overflow in the first layer."""
    draw = random.Random(1)
    path = folder / "bad.csv"
    with open(path, "w") as file:
        file.write(",".join(f"f{i}" for i in range(20)) + ",label\n")
        for row in range(256):
            label = row % 4
            values = [3.4e38 if row == 100 else draw.gauss(label == f % 4, 0.3) for f in range(20)]
            file.write(",".join(f"{v:.4g}" for v in values) + f",{label}\n")
    return path


class Nonfinite(support.TestCase):
    def assert_named(self, ended):
        self.assertRegex(ended.err, NAMED)
        self.assertEqual(ended.result["stopped"], "diverged")
        self.assertGreater(ended.result["samples"]["dropped_why"]["nonfinite"], 0)
        self.assert_ledger(ended)
        self.assert_finite(ended)

    def assert_finite(self, ended):
        """No file of the run has a weight that is not finite."""
        for path in [ended.folder / "model.safetensors", *ended.folder.glob("checkpoint/*")]:
            if path.exists():
                for values in tensors.read(path).values():
                    self.assertTrue(all(abs(v) <= 3.5e38 for v in values), path)

    def bad(self, *arguments, code=support.DONE):
        batch = () if "local-sgd:2" in arguments else ("--batch", 16)
        return self.train("--data", bad_sample(self.folder), "--prep", "none",
                          "--test-split", 0, "--model", "mlp:24", *batch,
                          "--micro-batch", 8, "--eval-every", 0, *arguments, code=code)


class Stop(Nonfinite):
    def test_a_rate_that_is_too_large_ends_the_run_before_the_model_is_spoilt(self):
        for world in (("--workers", 2), ("--workers", 0), (*SIM, "--workers", 3),
                      ("--workers", 2, "--strategy", "async"),
                      (*SIM, "--workers", 3, "--strategy", "fmb-gossip:ring,1"),
                      (*SIM, "--workers", 3, "--strategy", "local-sgd:2")):
            with self.subTest(world=world):
                ended = self.train(*WILD, *world, "--checkpoint-every", 1, code=support.FAILED)
                self.assert_named(ended)
                self.assertTrue(json.loads(self.anytime("replay", ended.folder, "--json").out)
                                ["agrees"])

    def test_an_update_that_overflows_is_named_as_well(self):
        """All gradients were finite, and the parameters are no longer."""
        path = self.folder / "rows.svm"
        path.write_text("".join(f"{i % 2} {i % 50 + 1}:1 {i % 70 + 100}:0.5\n"
                                for i in range(1000)))
        ended = self.train("--data", path, "--model", "sparse-linear", "--batch", 32, "--lr", 1e5,
                           "--workers", 2, "--checkpoint-every", 3, "--steps", 60,
                           code=support.FAILED)
        self.assert_named(ended)
        self.assertFalse((ended.folder / "model.safetensors").exists())
        self.assertRegex(ended.err, r"the checkpoint of step \d+ is intact")

    def test_the_hint_says_which_checkpoint_is_intact_and_a_resumed_run_begins_there(self):
        ended = self.train(*WILD, "--workers", 2, "--checkpoint-every", 2, code=support.FAILED)
        kept = re.search(r"the checkpoint of step (\d+) is intact", ended.err)
        self.assertTrue(kept, ended)
        again = self.resume(ended.folder).wait()
        self.assertEqual(again.code, support.FAILED, again)
        self.assertIn("diverged", again.err)

    def test_a_single_bad_sample_is_noticed_by_its_tensor(self):
        ended = self.bad(*SIM, "--workers", 2, "--epochs", 2, code=support.FAILED)
        self.assert_named(ended)
        self.assertIn("(in dense", ended.err)

    def test_sparse_models_and_hogwild(self):
        draw = random.Random(2)
        path = self.folder / "bad.svm"
        with open(path, "w") as file:
            for row in range(400):
                value = 3e38 if row == 200 else draw.random()
                file.write(f"{row % 2} {1 + row % 50}:{value:.4g} {60 + row % 7}:{value:.4g}\n")
        for mix in ("central", "shared"):
            with self.subTest(mix=mix):
                strategy = ("--strategy", "hogwild") if mix == "shared" else ()
                ended = self.train("--data", path, "--model", "sparse-lr", "--workers", 2, "--lr",
                                   1e6, "--epochs", 4, "--batch", 16, *strategy,
                                   code=support.FAILED)
                self.assertRegex(ended.err, "not finite")
                self.assert_finite(ended)


class Skip(Nonfinite):
    def test_a_bad_sample_costs_its_round_only(self):
        for world in (("--workers", 2), ("--workers", 0), (*SIM, "--workers", 3),
                      ("--workers", 2, "--strategy", "async"),
                      ("--workers", 2, "--strategy", "backup:1"),
                      ("--workers", 2, "--mix", "replicated"),
                      (*SIM, "--workers", 3, "--strategy", "fmb-gossip:ring,1"),
                      (*SIM, "--workers", 3, "--strategy", "amb"),
                      (*SIM, "--workers", 3, "--strategy", "local-sgd:2")):
            with self.subTest(world=world):
                ended = self.bad(*world, "--nonfinite", "skip", "--epochs", 6, "--lr", 0.05)
                samples = ended.result["samples"]
                self.assertGreater(samples["dropped_why"]["nonfinite"], 0, samples)
                self.assertGreater(samples["used"], 6 * 200)
                self.assertIn("is not finite", ended.err)
                self.assert_ledger(ended)
                self.assert_finite(ended)
                self.assertTrue(json.loads(self.anytime("replay", ended.folder, "--json").out)
                                ["agrees"])

    def test_when_nothing_else_comes_the_run_ends(self):
        for world in (("--workers", 2), (*SIM, "--workers", 3, "--strategy", "async")):
            with self.subTest(world=world):
                ended = self.train(*WILD[:-1], 10**6, *world, "--nonfinite", "skip",
                                   code=support.FAILED)
                self.assert_named(ended)
                self.assertIn("no more of these are shown", ended.err)


class Ignore(Nonfinite):
    def test_the_run_goes_on_but_writes_no_model_that_is_not_finite(self):
        ended = self.train(*WILD, "--workers", 2, "--nonfinite", "ignore", "--checkpoint-every", 10,
                           code=support.FAILED)
        self.assertIn("the trained model was not written: its weights are not finite", ended.err)
        self.assertIn("are not finite; older checkpoints are intact", ended.err)
        self.assertEqual((ended.result["stopped"], ended.result["steps"]), ("steps", 60))
        self.assertFalse((ended.folder / "model.safetensors").exists())
        self.assert_finite(ended)

    def test_an_unknown_policy_is_refused(self):
        ended = self.train(*WILD, "--nonfinite", "panic", code=support.USAGE)
        self.assertIn("unknown --nonfinite 'panic'", ended.err)


class Seats(seats.TestCase):
    def test_a_seat_that_lies_is_named_and_its_gradient_is_not_used(self):
        for strategy in ("fmb", "async"):
            with self.subTest(strategy=strategy):
                ended = self.seats("-n", 2, "--steps", 100000, "--strategy", strategy,
                                   program=("nan=5", "only=1"), code=support.FAILED)
                self.assertRegex(ended.err, r"diverged in step \d+: the gradient of worker 2 is "
                                            r"not finite \(in layer.weight\)")
                self.assertGreater(ended.result["samples"]["dropped_why"]["nonfinite"], 0)
                for values in tensors.read(ended.folder / "model.safetensors").values():
                    self.assertTrue(all(abs(v) < 100 for v in values), values)

    def test_skip_trains_on_with_the_others(self):
        ended = self.seats("-n", 2, "--steps", 400, "--nonfinite", "skip",
                           program=("nan=5", "only=1"))
        self.assertEqual(ended.result["samples"]["dropped_why"]["nonfinite"], 16)
        self.assertEqual(ended.result["stopped"], "steps")
        self.assertLess(ended.result["train"]["loss"], 1)


class OverANetwork(net.TestCase):
    def test_our_own_workers_on_the_network(self):
        hub = self.hub(*WILD, "--workers", 2)
        workers = [self.work(hub) for _ in range(2)]
        ended = hub.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertRegex(ended.err, NAMED)
        for worker in workers:
            worker.wait()


class Mpi(mpi.TestCase):
    def test_every_topology_stops_and_skips(self):
        path = bad_sample(self.folder)
        job = ("--data", path, "--prep", "none", "--test-split", 0, "--model", "mlp:24",
               "--batch", 16, "--epochs", 4,
               "--eval-every", 0, "--lr", 0.05)
        for topology in ((), ("--mix", "replicated"), ("--strategy", "fmb-gossip:ring,1")):
            for policy, code in (("stop", support.FAILED), ("skip", support.DONE)):
                with self.subTest(topology=topology, policy=policy):
                    ended = self.train(*job, *topology, "--nonfinite", policy, ranks=3, code=code)
                    self.assertIn("is not finite", ended.err)
                    self.assertGreater(ended.result["samples"]["dropped_why"]["nonfinite"], 0)
                    self.assert_ledger(ended)


if __name__ == "__main__":
    support.main()
