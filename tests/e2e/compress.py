#!/usr/bin/env python3
"""--compress: bytes in both directions, bits equal in mpi and sim, accuracy, refusals, resume."""
import statistics

import support
from support import mpi

QUIET = ("--quiet", "--json", "--record", "none", "--eval-every", 0)
MLP = ("--data", "synthetic:2000,20,5", "--model", "mlp:64,32", "--batch", 16, "--lr", 0.1)
FORMS = ("none", "fp16", "bf16", "topk:0.01")


class Compress(mpi.TestCase):
    def simulate(self, *arguments, **options):
        return self.local("--world", "sim", "--workers", 4, *arguments, **options)

    def simulated(self, *arguments):
        return self.simulate(*arguments, *QUIET).result


class Bytes(Compress):
    """Every worker gets the parameters and sends a gradient, in every step."""

    def messages(self, form):
        result = self.simulated(*MLP, "--steps", 20, "--compress", form)
        self.full = 20 * 4 * 4 * result["parameters"]
        return result["messages"]["to_workers_bytes"], result["messages"]["to_hub_bytes"]

    def test_16_bits_halve_both_directions(self):
        down, up = self.messages("none")
        self.assertEqual(down, up)
        self.assertAlmostEqual(down / self.full, 1, delta=0.01)  # vectors have some padding
        for form in ("fp16", "bf16"):
            self.assertEqual(self.messages(form), (down / 2, up / 2))

    def test_topk_sends_50_times_fewer_bytes_of_gradients(self):
        down, up = self.messages("none")
        compressed = self.messages("topk:0.01")
        self.assertEqual(compressed[0], down)
        self.assertLess(compressed[1], up / 50)

    def test_simulated_transfers_take_as_long_as_their_bytes(self):
        options = ("--model", "none:1000000", "--data", "synthetic:2000,20,5", "--steps", 10,
                   "--sample-time", "1us", "--bandwidth", 1e8)
        seconds = {form: self.simulated(*options, "--compress", form)["seconds"] for form in FORMS}
        self.assertAlmostEqual(seconds["none"] / seconds["bf16"], 2, delta=0.01)
        # Parameters for four workers, one after another, and a gradient after the last of them.
        self.assertAlmostEqual(seconds["none"] / seconds["topk:0.01"], 5 / 4.01, delta=0.01)

    def test_compare_and_report_show_megabytes(self):
        out = self.folder / "compare"
        ended = self.anytime("compare", "fmb", "fmb:compress=bf16", "--world", "sim", "--workers",
                             4, "--repeats", 1, *map(str, MLP), "--steps", 5, "--out", out,
                             "--plots", "none")
        self.assertIn("MB/step out", ended.out)
        rows = (out / "compare.csv").read_text().splitlines()
        values = [dict(zip(rows[0].split(","), row.split(","))) for row in rows[1:]]
        for way in ("to_workers_bytes", "to_hub_bytes"):
            self.assertAlmostEqual(int(values[0][way]) / int(values[1][way]), 2, delta=0.01)
        report = self.anytime("report", out / "fmb-1", out / "fmb-compress-bf16-1", "--plots",
                              "none", "--out", self.folder / "report")
        self.assertIn("MB out", report.out)


class Bits(Compress):
    """What is encoded and decoded does not depend on how it travels."""

    def test_mpi_gives_the_bits_of_sim(self):
        for form, strategy in (("fp16", "fmb"), ("bf16", "fmb"), ("topk:0.01", "fmb"),
                               ("topk:0.1", "local-sgd:2")):
            with self.subTest(form=form, strategy=strategy):
                options = (*MLP, "--steps", 60, "--micro-batch", 8, "--compress", form,
                           "--strategy", strategy, *QUIET)
                here, there = self.train(*options).result, self.simulate(*options).result
                for key in ("params_hash", "trace_hash", "messages"):
                    self.assertEqual(here[key], there[key], key)

    def test_running_statistics_are_sent_in_full(self):
        net = self.folder / "bn.net"
        net.write_text("conv 3x3x4 bias=no\nbn\nrelu\nmaxpool 2\ndense classes\n")
        options = ("--data", "synthetic:400,1x8x8,4", "--model", net, "--batch", 16,
                   "--steps", 30, *QUIET)
        full = self.simulated(*options)
        rounded = self.simulated(*options, "--compress", "topk:0.2")
        self.assertLess(rounded["test"]["loss"], 3 * full["test"]["loss"])

    def test_strategies_without_a_barrier_can_be_compressed(self):
        for strategy, form in (("async", "bf16"), ("backup", "topk:0.05"), ("ssp", "fp16")):
            with self.subTest(strategy=strategy, form=form):
                ended = self.train(*MLP, "--strategy", strategy, "--samples", 8000, "--lr", 0.05,
                                   "--compress", form, "--record", "none", "--quiet")
                self.assert_ledger(ended)
                self.assertGreater(ended.result["test"]["accuracy"], 0.5)


class SparseModels(Compress):
    def test_workers_get_only_what_has_changed(self):
        options = ("--model", "sparse-lr", "--data", "synthetic-clicks:4000,262144", "--batch", 16,
                   "--steps", 40, "--optimizer", "adagrad", *QUIET)
        here = self.train(*options).result
        self.assertEqual(here["params_hash"], self.simulate(*options).result["params_hash"])
        full = 4 * 40 * 4 * here["parameters"]
        self.assertLess(here["messages"]["to_workers_bytes"], full / 10)

    def test_workers_without_a_barrier_do_too(self):
        ended = self.train("--model", "sparse-lr", "--data", "synthetic-clicks:4000,262144",
                           "--batch", 16, "--steps", 100, "--strategy", "async", "--record",
                           "none", "--quiet")
        self.assert_ledger(ended)
        full = 100 * 4 * ended.result["parameters"]
        self.assertLess(ended.result["messages"]["to_workers_bytes"], full / 2)


class Accuracy(Compress):
    def mean_accuracy(self, form, seeds=5):
        return statistics.mean(
            self.simulated(*MLP, "--epochs", 8, "--compress", form, "--seed", seed)["test"]
            ["accuracy"] for seed in range(1, seeds + 1))

    def test_an_mlp_learns_as_well(self):
        full = self.mean_accuracy("none")
        self.assertGreater(full, 0.8)
        for form in ("bf16", "fp16"):
            self.assertAlmostEqual(self.mean_accuracy(form), full, delta=0.002, msg=form)
        self.assertGreater(self.mean_accuracy("topk:0.01"), full - 0.01)


class Refusals(Compress):
    def test_what_does_not_work_is_refused_with_the_reason(self):
        cases = {("--workers", 2): ("shared memory", "--world mpi or sim"),
                 ("--workers", 0): ("shared memory",),
                 ("--world", "sim", "--mix", "replicated"): ("--mix replicated", "--mix central"),
                 ("--world", "sim", "--strategy", "fmb-gossip"): ("--mix gossip",),
                 ("--world", "sim", "--reduce", "tree"): ("--reduce tree",)}
        for arguments, words in cases.items():
            with self.subTest(arguments=arguments):
                ended = self.local(*MLP, "--steps", 5, "--compress", "bf16", *arguments,
                                   code=support.USAGE)
                self.assert_complaint(ended, *words)

    def test_sparse_models_need_no_compression(self):
        ended = self.simulate("--model", "sparse-lr", "--data", "synthetic-clicks:500,4096",
                              "--steps", 5, "--compress", "bf16", code=support.USAGE)
        self.assert_complaint(ended, "sparse-lr")

    def test_bad_values_are_explained(self):
        for value, word in {"bf17": "bf16", "topk": "topk:0.01", "topk:2": "0.5"}.items():
            with self.subTest(value=value):
                ended = self.simulate(*MLP, "--compress", value, code=support.USAGE)
                self.assert_complaint(ended, word)


class Resume(Compress):
    def test_a_resumed_run_says_that_residuals_restart(self):
        first = self.simulate(*MLP, "--steps", 20, "--compress", "topk:0.05")
        before = first.result["messages"]["to_hub_bytes"]
        again = self.resume(first.folder, "--steps", 40).wait()
        self.assertEqual(again.code, support.DONE, again)
        self.assertIn("starts at zero again", again.err)
        self.assertEqual(again.result["messages"]["to_hub_bytes"], 2 * before)


if __name__ == "__main__":
    mpi.main()
