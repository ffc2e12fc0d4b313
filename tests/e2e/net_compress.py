#!/usr/bin/env python3
"""--compress between machines: the bits of sim, fewer bytes, and no bad vector gets through."""
import support
from support import net

JOB = ("--data", "synthetic:2000,20,5", "--model", "mlp:64,32", "--batch", 16, "--lr", 0.1,
       "--quiet", "--eval-every", 0, "--steps", 30)
FORMS = ("none", "fp16", "bf16", "topk:0.05")


class Compress(net.TestCase):
    def test_the_bits_are_those_of_sim_and_the_bytes_are_counted(self):
        bytes_of = {}
        for form in FORMS:
            job = (*JOB, "--compress", form)
            there = self.complete(*job, scheme="tls://").result
            here = self.train("--world", "sim", "--workers", 2, *job).result
            self.assertEqual(there["params_hash"], here["params_hash"], form)
            bytes_of[form] = there["messages"]
        full = bytes_of["none"]["to_hub_bytes"]
        self.assertEqual(full % (30 * 2 * 4), 0)  # steps, workers, bytes of a float
        for form in ("fp16", "bf16"):
            self.assertEqual(bytes_of[form]["to_hub_bytes"], full / 2)
            self.assertEqual(bytes_of[form]["to_workers_bytes"],
                             bytes_of["none"]["to_workers_bytes"] / 2)
        self.assertLess(bytes_of["topk:0.05"]["to_hub_bytes"], full / 9)
        self.assertEqual(bytes_of["topk:0.05"]["to_workers_bytes"],
                         bytes_of["none"]["to_workers_bytes"])

    def test_every_way_of_sending_parameters_is_compressed(self):
        for strategy in ("async", "ssp", "backup", "local-sgd", "ringmaster"):
            with self.subTest(strategy=strategy):
                ended = self.complete(*JOB, "--compress", "bf16", "--strategy", strategy)
                self.assertEqual(ended.result["stopped"], "steps")
                self.assertGreater(ended.result["messages"]["to_workers_bytes"], 0)

    def test_a_worker_that_returns_begins_with_an_empty_residual(self):
        job = (*JOB[:-1], 400, "--compress", "topk:0.05", "--sample-time", "200us",
               "--checkpoint-every", 20)
        hub = self.hub(*job, "--workers", 2)
        address = hub.address()
        crowd = [self.work(hub), self.work(hub)]
        hub.wait_steps(40)
        hub.process.kill()
        hub.wait()
        hub = self.hub(folder=hub.folder, listen=address)
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assertIn("starts at zero again", ended.err)
        for process in crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)


class Programs(net.TestCase):
    """Programs with their own loop compress, too: the library does it."""

    def bytes_of(self, form, *words):
        ended = self.complete("--steps", 30, "--compress", form, start=self.program, words=words)
        return ended.result["messages"], ended

    def test_parameters_and_gradients_are_compressed(self):
        full, _ = self.bytes_of("none", "extra=4001")
        half, _ = self.bytes_of("bf16", "extra=4001")
        few, _ = self.bytes_of("topk:0.01", "extra=4001")
        self.assertEqual(half["to_hub_bytes"], full["to_hub_bytes"] / 2)
        self.assertEqual(half["to_workers_bytes"], full["to_workers_bytes"] / 2)
        self.assertLess(few["to_hub_bytes"], full["to_hub_bytes"] / 20)
        self.assertEqual(few["to_workers_bytes"], full["to_workers_bytes"])

    def test_it_learns_and_has_the_same_bits_again(self):
        hashes = set()
        for _ in range(2):
            ended = self.complete("--steps", 400, "--compress", "bf16", start=self.program)
            self.assertLess(ended.result["train"]["loss"], 0.05)
            hashes.add(ended.result["params_hash"])
        self.assertEqual(len(hashes), 1)

    def test_mean_gradients_are_sent_in_full_where_workers_update(self):
        full, _ = self.bytes_of("none", "update=1")
        half, ended = self.bytes_of("bf16", "update=1")
        self.assertEqual(half["to_hub_bytes"] * 36, full["to_hub_bytes"] * 20)  # 9 floats, padded
        self.assertEqual(half["to_workers_bytes"], full["to_workers_bytes"])
        self.assertEqual(ended.result["stopped"], "steps")

    def test_a_program_that_comes_back_goes_on(self):
        hub = self.hub("--workers", 2, "--steps", 1000, "--compress", "topk:0.1",
                       "--checkpoint-every", 50, "--sample-time", "50us")
        address = hub.address()
        crowd = [self.program(hub), self.program(hub)]
        hub.wait_steps(100)
        hub.process.kill()
        hub.wait()
        ended = self.hub(folder=hub.folder, listen=address).wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)

    def test_there_are_no_messages_in_shared_memory(self):
        ended = self.anytime("run", "-n", 1, "--steps", 5, "--compress", "bf16", "--", net.WORKER,
                             code=support.USAGE)
        self.assertIn("--compress is for messages between machines", ended.err)


if __name__ == "__main__":
    support.main()
