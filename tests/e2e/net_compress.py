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


if __name__ == "__main__":
    support.main()
