#!/usr/bin/env python3
"""Programs with their own loop as workers: `anytime run`."""
import json
import struct

import support
from support import seats


def tensors(path):
    """Names, shapes and values of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (row["shape"], struct.unpack(
        f"<{(row['data_offsets'][1] - row['data_offsets'][0]) // 4}f",
        data[8 + size + row["data_offsets"][0]:8 + size + row["data_offsets"][1]]))
            for name, row in header.items() if name != "__metadata__"}


class Training(seats.TestCase):
    def test_fmb_learns_and_is_recorded_like_any_other_run(self):
        ended = self.seats("-n", 3, "--steps", 400, "--batch", 16)
        result = ended.result
        self.assertEqual((result["stopped"], result["steps"]), ("steps", 400))
        self.assertEqual(result["samples"]["used"], 400 * 3 * 16)
        self.assertEqual((result["world"], result["model"]), ("seat", "line"))
        self.assertLess(result["train"]["loss"], 0.1)
        model = tensors(ended.folder / "model.safetensors")
        self.assertEqual(model["layer.weight"][0], [1, 8])
        self.assertEqual(model["layer.bias"][0], [])
        for i, value in enumerate(model["layer.weight"][1]):
            self.assertAlmostEqual(value, i + 1, places=2)
        self.assertTrue(json.loads(self.anytime("replay", ended.folder, "--json").out)["agrees"])
        self.anytime("report", ended.folder, "--plots", "none", "--out", self.folder / "report")
        for file in ("events.bin", "collect_stats.csv", "worker_stats.csv", "tensorboard"):
            self.assertTrue((ended.folder / file).exists(), file)
        self.assertFalse((ended.folder / "token").exists(), "the token is of no use any more")
        self.assertFalse((ended.folder / "hub").exists())

    def test_parameters_are_final_and_the_same_when_done_is_seen(self):
        for strategy in ("fmb", "async"):
            with self.subTest(strategy=strategy):
                ended = self.seats("-n", 3, "--steps", 200, "--strategy", strategy)
                said = {line.split("] ")[1] for line in ended.out.splitlines() if "status" in line}
                self.assertEqual(len(said), 1, ended)
                value = tensors(ended.folder / "model.safetensors")["layer.weight"][1][1]
                self.assertEqual(said, {f"status 8 weight {value:.4f}"})

    def test_the_bits_of_fmb_do_not_depend_on_chance(self):
        options = ("-n", 4, "--steps", 50, "--strategy", "fmb", "--seed", 3)
        hashes = {self.seats(*options, program=program).result["params_hash"]
                  for program in ((), ("slice=1",), ("installs=1",))}
        self.assertEqual(len(hashes), 1)

    def test_the_only_seat_and_its_hub_share_a_core_and_nobody_else_does(self):
        program = ("/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status; "
                   f"exec {seats.WORKER} extra=40000 abort=10")
        ended = self.seats("-n", 1, "--steps", 25, program=program)
        cores = [line for line in ended.out.splitlines() if "Cpus_allowed_list" in line]
        self.assertGreaterEqual(ended.result["respawns"], 2)
        self.assertEqual(len(cores), 1 + ended.result["respawns"])
        self.assertEqual(len(set(cores)), 1, "a replacement is not pinned")
        hashes = {self.seats("-n", 1, "--steps", 25, program=("extra=40000", *more)).result[
            "params_hash"] for more in ((), ("slice=1",), ("installs=1",))}
        self.assertEqual(len(hashes), 1)

    def test_rules_about_old_gradients_reach_the_seats(self):
        for strategy in ("ringmaster:2", "async --newer refresh", "async --newer abandon"):
            with self.subTest(strategy=strategy):
                result = self.seats("-n", 3, "--samples", 20000, "--batch", 64, "--strategy",
                                    *strategy.split(), program=("batch=16",)).result
                self.assertGreater(result["steps"], 0)

    def test_what_seats_cannot_do_is_refused(self):
        for options in (("--strategy", "fmb-gossip"), ("--mix", "replicated")):
            with self.subTest(options=options):
                ended = self.seats("-n", 2, "--steps", 5, *options, code=support.USAGE)
                self.assertIn(" does not work with ", ended.err)

    def test_the_batch_of_the_program_is_the_default(self):
        result = self.seats("-n", 2, "--steps", 5, program=("batch=24",)).result
        self.assertEqual(result["samples"]["used"], 5 * 2 * 24)

    def test_a_fixed_round_ends_before_another_batch_would_pass_it(self):
        result = self.seats("-n", 2, "--steps", 5, "--batch", 100, program=("batch=24",)).result
        self.assertEqual(result["samples"]["used"], 5 * 2 * 96)

    def test_epochs_are_those_of_the_program(self):
        result = self.seats("-n", 2, "--epochs", 2, program=("samples=320",)).result
        self.assertEqual((result["stopped"], result["samples"]["used"]), ("epochs", 640))

    def test_the_samples_of_an_epoch_may_be_unknown(self):
        result = self.seats("-n", 2, "--steps", 5, program=("samples=0",)).result
        self.assertEqual((result["stopped"], result["steps"]), ("steps", 5))

    def test_adam_at_the_hub_learns(self):
        result = self.seats("-n", 2, "--steps", 600, program=("sgd=0",)).result
        self.assertLess(result["train"]["loss"], 0.05)

    def test_buffers_are_combined_by_samples(self):
        ended = self.seats("-n", 3, "--steps", 3, program=("buffers=1",))
        shape, values = tensors(ended.folder / "model.safetensors")["norm.mean"]
        self.assertEqual((shape, values), ([2, 2], (1.0,) * 4))

    def test_the_numbers_of_the_first_seat_bind_everybody(self):
        ended = self.seats("-n", 2, "--steps", 10, program=("halve=5",))
        rates = [float(row["learning_rate"]) for row in ended.table("master_stats.csv")]
        self.assertAlmostEqual(rates[0], 0.1)
        self.assertAlmostEqual(rates[-1], 0.05)

    def test_evaluations_are_recorded_and_reach_the_target(self):
        result = self.seats("-n", 2, "--steps", 100000, "--target", "loss=0.001",
                            program=("evaluate=10",)).result
        self.assertEqual(result["stopped"], "target")
        self.assertLessEqual(result["test"]["loss"], 0.001)
        result = self.seats("-n", 2, "--steps", 300, program=("evaluate=100000",)).result
        self.assertLess(result["test"]["loss"], 0.1, "the final one, after DONE")

    def test_the_hub_keeps_named_tensors(self):
        self.seats("-n", 2, "--steps", 20, program=("state=1",))

    def test_two_seats_in_two_threads_of_one_process(self):
        result = self.seats("-n", 1, "--workers-max", 2, "--samples", 20000, "--strategy", "async",
                            program=("threads=2",)).result
        self.assertEqual(len(result["worker"]), 2)
        self.assertEqual(len({row["pid"] for row in result["worker"]}), 1)

    def test_delays_are_induced_as_in_every_world(self):
        ended = self.seats("-n", 2, "--steps", 20, "--strategy", "amb", "--sample-time", "100us",
                           "--batch", 128, "--straggler", "niagara", "--straggler-scale", "50%")
        rows = ended.table("worker_stats.csv")
        self.assertGreater(len({row["num_samples"] for row in rows}), 1)

    def test_a_checkpoint_can_be_resumed(self):
        whole = self.seats("-n", 2, "--steps", 40, "--checkpoint-every", 10)
        part = self.seats("-n", 2, "--steps", 20, "--checkpoint-every", 10)
        rest = self.seats("--steps", 40, folder=part.folder)
        self.assertEqual(rest.result["resumed_at"], 20)
        self.assertEqual(rest.result["params_hash"], whole.result["params_hash"])

    def test_a_resumed_run_keeps_its_batch(self):
        """Also one that is not that of the program, from which rules derive their limits."""
        for strategy in ("fmb", "grow", "stall"):
            with self.subTest(strategy=strategy):
                part = self.seats("-n", 2, "--strategy", strategy, "--batch", 64, "--steps", 20)
                rest = self.seats("--steps", 40, folder=part.folder)
                self.assertEqual(rest.result["options"]["batch"], 64)
                self.assertEqual(rest.result["samples"]["used"], 40 * 2 * 64)


class UpdatesAtWorkers(seats.TestCase):
    """The hub returns mean gradients; every seat has parameters of its own."""

    def check_same(self, ended):
        said = {line.split("] ")[1] for line in ended.out.splitlines() if "status 8" in line}
        value = tensors(ended.folder / "model.safetensors")["layer.weight"][1][1]
        self.assertEqual(said, {f"status 8 weight {value:.4f}"}, ended)

    def test_all_end_with_the_same_parameters_which_are_saved(self):
        ended = self.seats("-n", 3, "--steps", 100, program=("update=1",))
        self.assertEqual(ended.result["steps"], 100)
        self.check_same(ended)
        again = self.seats("-n", 3, "--steps", 100, program=("update=1", "slice=1"))
        self.assertEqual(ended.result["params_hash"], again.result["params_hash"])

    def test_a_replacement_gets_parameters_and_state_of_the_others(self):
        ended = self.seats("-n", 3, "--steps", 70, "--workers-min", 3,
                           program=("update=1", "abort=20", "only=1"))
        self.assertGreater(ended.result["respawns"], 0)
        self.check_same(ended)

    def test_the_first_seat_may_die_too(self):
        ended = self.seats("-n", 3, "--steps", 80, "--workers-min", 3,
                           program=("update=1", "abort=30", "only=0"))
        self.assertGreater(ended.result["respawns"], 0)
        self.check_same(ended)

    def test_a_checkpoint_has_the_parameters_of_its_step_and_can_be_resumed(self):
        whole = self.seats("-n", 2, "--steps", 40, "--checkpoint-every", 10, program=("update=1",))
        part = self.seats("-n", 2, "--steps", 20, "--checkpoint-every", 10, program=("update=1",))
        kept = [path.name for path in (whole.folder / "checkpoint").iterdir()]
        self.assertEqual([name for name in kept if int(name[5:17]) % 10 != 0], [])
        last = tensors(whole.folder / "checkpoint" / "step-000000000040.safetensors")
        self.assertEqual(last["layer.weight"], tensors(whole.folder / "model.safetensors")
                         ["layer.weight"])
        self.assertIn("anytime.state.velocity", last)
        rest = self.seats("--steps", 40, folder=part.folder, program=("update=1",))
        self.assertEqual(rest.result["resumed_at"], 20)
        self.assertEqual(rest.result["params_hash"], whole.result["params_hash"])

    def test_strategies_without_a_barrier_are_refused(self):
        ended = self.seats("-n", 2, "--strategy", "async", program=("update=1",),
                           code=support.USAGE)
        self.assertIn("need --gather all and --release barrier", ended.err)


if __name__ == "__main__":
    support.main()
