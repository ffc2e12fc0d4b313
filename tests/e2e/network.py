#!/usr/bin/env python3
"""The simulated network: step times by formulas, the same learning whatever the network, and the
published runs on EC2 without induced stragglers."""
import math

import support

WORKERS, BYTES, BANDWIDTH, LATENCY, BATCH, SAMPLE = 10, 4_000_000, 1e8, 0.002, 8, 0.01
TRANSFER, COMPUTE, STEPS = BYTES / BANDWIDTH, BATCH * SAMPLE, 50
# Of the published runs: a step with 256 and with 512 samples per worker, in seconds.
EC2_CALM = {256: 6.153, 512: 11.885}


class Network(support.TestCase):
    def simulate(self, *arguments, model="none:1000000", latency=("--latency", "2ms")):
        self.runs += 1
        return self.anytime("simulate", "--model", model, "--workers", WORKERS, "--batch", BATCH,
                            "--micro-batch", 2, "--sample-time", "10ms", *latency,
                            "--bandwidth", BANDWIDTH, "--steps", STEPS, *arguments, "--run",
                            self.folder / f"run{self.runs}", "--json", "--quiet",
                            "--record", "none").result

    def check_step(self, expected, *arguments, **options):
        measured = self.simulate(*arguments, **options)["seconds"] / STEPS
        self.assertAlmostEqual(measured / expected, 1, delta=0.002, msg=(arguments, expected))

    def test_step_times_are_those_of_formulas(self):
        hop = TRANSFER + LATENCY
        levels = math.ceil(math.log2(WORKERS + 1))
        gather = WORKERS * TRANSFER + LATENCY
        self.check_step(COMPUTE + gather + TRANSFER + LATENCY)
        self.check_step(COMPUTE + gather + TRANSFER + LATENCY, "--broadcast", "all")
        self.check_step(COMPUTE + 2 * gather, "--broadcast", "share")
        ring = 2 * (WORKERS - 1) * (TRANSFER / WORKERS + LATENCY)
        # four hops up; down, the root sends 4 copies at the same time, rank 1 then 3, rank 3 then 1
        tree = 4 * hop + (4 + 3 + 1) * TRANSFER + 3 * LATENCY
        per_step = (STEPS - 1) / STEPS  # nothing is exchanged before the first step
        self.check_step(COMPUTE + per_step * ring, "--topology", "allreduce")
        self.check_step(COMPUTE + per_step * tree, "--topology", "allreduce", "--allreduce", "tree")
        self.check_step(COMPUTE + 2 * levels * TRANSFER, "--broadcast", "tree", "--reduce", "tree",
                        latency=())

    def test_gossip_takes_as_long_as_its_slowest_worker_needs_for_its_neighbours(self):
        rounds, before = 3, (STEPS - 1) / STEPS
        gossip = ("--strategy", "fmb-gossip", "--mix", f"gossip:star,{rounds}")
        control = COMPUTE + 2 * LATENCY  # an order and a report, without parameters
        center, leaf = (WORKERS - 1) * TRANSFER + LATENCY, BYTES / 2e6 + LATENCY + 0.03
        averaging = rounds * center - LATENCY  # the order is on its way meanwhile
        self.check_step(control + before * averaging, *gossip)
        slow = ("--worker-bandwidth", "1e9" + ",2e6" * (WORKERS - 1), "--worker-latency",
                "0ms" + ",30ms" * (WORKERS - 1))
        self.check_step(control + 2 * 0.03 + before * (rounds * leaf - LATENCY - 0.03), *gossip,
                        *slow)

    def test_slow_links_of_workers_and_costs_of_micro_batches_lengthen_steps(self):
        plain = COMPUTE + WORKERS * TRANSFER + TRANSFER + 2 * LATENCY
        self.check_step(plain + 4 * 0.005, "--micro-cost", "5ms")  # four micro-batches
        self.check_step(plain + 2 * 0.03, "--worker-latency", "30ms")
        slow = BYTES / 2e6  # seconds, on the slow worker's link
        self.check_step(COMPUTE + 2 * (slow + LATENCY), "--worker-bandwidth",
                        "2e6" + ",1e9" * (WORKERS - 1))

    def test_jitter_varies_rounds_around_the_same_mean(self):
        calm = self.simulate("--bandwidth", 1e15, latency=())
        shaky = self.simulate("--bandwidth", 1e15, "--jitter", 0.1, latency=())
        again = self.simulate("--bandwidth", 1e15, "--jitter", 0.1, latency=())
        self.assertEqual(shaky["seconds"], again["seconds"])
        computed = [sum(row["compute_seconds"] for row in run["worker"]) for run in (calm, shaky)]
        self.assertAlmostEqual(computed[1] / computed[0], 1, delta=0.02)
        self.assertGreater(shaky["seconds"], 1.03 * calm["seconds"])  # a step waits for the slowest

    def test_a_worker_that_dies_does_not_end_a_tree(self):
        result = self.simulate("--broadcast", "tree", "--reduce", "tree", "--faults",
                               "die:3@1s,die:7@2.01s+1s,freeze:2@3s+2s")
        self.assertEqual(result["steps"], STEPS)
        self.assertEqual(result["samples"]["drawn"],
                         result["samples"]["used"] + result["samples"]["dropped"])

    def test_the_network_does_not_change_what_fixed_minibatches_learn(self):
        hashes = {self.simulate("--data", "synthetic:2000,20,4", *arguments,
                                model="softmax")["params_hash"]
                  for arguments in ((), ("--broadcast", "tree", "--reduce", "tree"),
                                    ("--broadcast", "share"),
                                    ("--topology", "allreduce"), ("--worker-bandwidth", "1e3,1e5"),
                                    ("--jitter", 0.2, "--micro-cost", "1ms"))}
        self.assertEqual(len(hashes), 1)

    def test_published_runs_without_stragglers(self):
        for batch, measured in EC2_CALM.items():
            result = self.simulate("--batch", batch, "--micro-batch", batch, "--sample-time",
                                   "21.85ms", "--bandwidth", 2.18e8, "--broadcast", "tree",
                                   "--reduce", "tree", model="none:4607178", latency=())
            self.assertAlmostEqual(result["seconds"] / STEPS / measured, 1, delta=0.02)

    def test_real_time_has_a_real_network(self):
        for words in (("--broadcast", "tree"), ("--reduce", "tree"), ("--worker-latency", "1ms"),
                      ("--micro-cost", "1ms"), ("--jitter", 0.1)):
            run = self.anytime("train", "--data", "synthetic:100,5,2", "--workers", 2, "--steps", 1,
                               *words, "--run", self.folder / "refused", code=2)
            self.assertIn("work only in simulation", run.err)


if __name__ == "__main__":
    support.main()
