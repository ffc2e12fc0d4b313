#!/usr/bin/env python3
"""--straggler-batch, --prep raw and --lr-schedule linear:END,steps: the published experiments."""
import support
from support import tensors

JOB = (*support.SMALL, "--workers", 3, "--steps", 30)
LAWS = ("bernoulli:0.8,1", "gauss:5", "rotate")


class RoundSizes(support.TestCase):
    def rounds(self, ended):
        """Samples by (worker, round), from the table of the run."""
        counts, rounds = {}, {}
        for row in ended.table("worker_stats.csv"):
            worker = int(row["rank"])
            counts[worker] = counts.get(worker, -1) + 1
            rounds[worker, counts[worker]] = int(row["num_samples"])
        return rounds

    def test_sizes_follow_the_law_and_are_the_same_in_every_world(self):
        for law in LAWS:
            with self.subTest(law=law):
                local = self.train(*JOB, "--straggler-batch", law)
                sim = self.train(*JOB, "--straggler-batch", law, "--world", "sim", "--sample-time",
                                 "10us")
                sizes = self.rounds(local)
                self.assertEqual(len(sizes), 90)
                self.assertEqual(sizes, self.rounds(sim))
                self.assertEqual(local.result["params_hash"], sim.result["params_hash"])
                self.assert_ledger(local)
                if law == "rotate":
                    wanted = {(w, r): 32 if r % 3 == w - 1 else 1 for w, r in sizes}
                    self.assertEqual(sizes, wanted)
                elif law.startswith("bernoulli"):
                    self.assertEqual(set(sizes.values()), {1, 32})
                else:
                    self.assertGreater(max(sizes.values()), 32)
                    self.assertGreater(min(sizes.values()), 5)

    def test_sparse_models_and_other_strategies_have_room_for_large_rounds(self):
        for strategy in ("fmb", "async", "backup"):
            ended = self.train("--data", "synthetic-clicks:2000,1000", "--model", "sparse-lr",
                               "--strategy", strategy, "--workers", 3, "--steps", 40, "--batch", 8,
                               "--straggler-batch", "gauss:8", "--lr", 0.01)
            self.assert_ledger(ended)
            self.assertGreater(max(self.rounds(ended).values()), 8)

    def test_a_resumed_run_draws_the_same_sizes(self):
        whole = self.train_json(*JOB, "--straggler-batch", "bernoulli:0.5,3")
        half = self.train(*support.SMALL, "--workers", 3, "--steps", 15, "--straggler-batch",
                          "bernoulli:0.5,3")
        resumed = self.resume(half.folder, "--steps", 30).wait()
        self.assertEqual(resumed.code, support.DONE, resumed)
        self.assertEqual(resumed.result["params_hash"], whole["params_hash"])

    def test_what_contradicts_it_is_refused(self):
        cases = (
            (("--strategy", "amb", "--straggler-batch", "rotate"), ("amb", "end by time")),
            (("--straggler-batch", "gauss:3", "--deal", "global"), ("--deal own",)),
            (("--straggler-batch", "poisson:3"), ("poisson:3", "bernoulli:P,N")),
        )
        for arguments, words in cases:
            self.assert_complaint(self.train(*JOB, *arguments, code=support.USAGE), *words)


class Schedule(support.TestCase):
    def rates(self, *arguments):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 10, "--lr", 0.1, *arguments)
        rows = ended.table("master_stats.csv")
        return [float(row["learning_rate"]) for row in rows if row["learning_rate"]]

    def test_steps_count_whatever_their_sizes(self):
        wanted = [0.1 - 0.09 * step / 10 for step in range(10)]
        for more in ((), ("--straggler-batch", "rotate")):
            for found, rate in zip(self.rates("--lr-schedule", "linear:0.01,steps", *more), wanted,
                                   strict=True):
                self.assertAlmostEqual(found, rate, places=6)

    def test_it_needs_a_number_of_steps(self):
        ended = self.train(*support.SMALL, "--epochs", 1, "--lr-schedule", "linear:0,steps",
                           code=support.USAGE)
        self.assert_complaint(ended, "number of steps", "--steps")


class Raw(support.TestCase):
    def test_bytes_are_numbers_up_to_255(self):
        """Raw bytes are 255 times as large, so their gradient is too."""
        job = ("--data", "synthetic:60,1x4x4,3", "--workers", 0, "--steps", 1, "--batch", 20)
        plain, raw = (tensors.read(self.train(*job, *more).folder / "model.safetensors")
                      for more in ((), ("--prep", "raw")))
        for name, values in plain.items():
            factor = 255 if name.endswith("weight") else 1
            for a, b in zip(values, raw[name], strict=True):
                self.assertAlmostEqual(factor * a, b, places=4)

    def test_only_bytes_can_be_raw_and_only_at_first(self):
        ended = self.train("--data", "synthetic:60,4,3", "--prep", "raw", code=support.USAGE)
        self.assert_complaint(ended, "raw", "bytes", "4 floats")
        ended = self.train("--data", "synthetic:60,1x4x4,3", "--prep", "flip,raw",
                           code=support.USAGE)
        self.assert_complaint(ended, "step 2", "write it first")


if __name__ == "__main__":
    support.main()
