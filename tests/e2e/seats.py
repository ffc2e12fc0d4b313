#!/usr/bin/env python3
"""Programs with their own loop as workers: `anytime run`."""
import json
import os
import struct
import subprocess

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

    def test_the_batch_of_the_program_is_the_default(self):
        result = self.seats("-n", 2, "--steps", 5, program=("batch=24",)).result
        self.assertEqual(result["samples"]["used"], 5 * 2 * 24)

    def test_a_fixed_round_ends_before_another_batch_would_pass_it(self):
        result = self.seats("-n", 2, "--steps", 5, "--batch", 100, program=("batch=24",)).result
        self.assertEqual(result["samples"]["used"], 5 * 2 * 96)

    def test_epochs_are_those_of_the_program(self):
        result = self.seats("-n", 2, "--epochs", 2, program=("samples=320",)).result
        self.assertEqual((result["stopped"], result["samples"]["used"]), ("epochs", 640))

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

    def test_strategies_without_a_barrier_are_refused(self):
        ended = self.seats("-n", 2, "--strategy", "async", program=("update=1",),
                           code=support.USAGE)
        self.assertIn("need --gather all and --release barrier", ended.err)


class Ends(seats.TestCase):
    def test_programs_decide_when_no_limit_is_given(self):
        result = self.seats("-n", 3, program=("stay=20",)).result
        self.assertEqual((result["stopped"], result["steps"]), ("workers left", 20))
        self.assertEqual(result["samples"]["dropped"], 0)

    def test_exit_0_leaves_and_is_not_restarted(self):
        result = self.seats("-n", 3, "--steps", 100, program=("exit=5", "only=1")).result
        self.assertEqual((result["steps"], result["respawns"]), (100, 0))
        self.assertEqual(result["worker"][1]["rounds"], 4)

    def test_an_error_restarts_until_restarts_are_used_up(self):
        ended = self.seats("-n", 2, "--steps", 150, "--restarts", 1, "--sample-time", "2ms", code=7,
                           program=("exit=1", "code=7", "only=1", "complain=1"))
        self.assertEqual(ended.result["respawns"], 1)
        self.assertIn("rank 1 exited with 7 and is not started again", ended.err)
        self.assertIn("ValueError: a script has raised", ended.err)

    def test_the_worst_code_of_the_programs_is_that_of_the_run(self):
        self.seats("-n", 2, "--steps", 5, program=("code=9",), code=9)

    def test_a_program_that_never_joins_fails_the_run_with_its_last_line(self):
        ended = self.seats("-n", 2, "--join-timeout", "1s", program=("join=0",),
                           code=support.FAILED)
        self.assertIn("waiting for godot", ended.err.splitlines()[-2])

    def test_a_rank_that_never_joins_fails_the_run(self):
        program = ("/bin/sh", "-c", f'[ $ANYTIME_RANK = 1 ] && exec {seats.WORKER} join=0; '
                   f'exec {seats.WORKER}')
        ended = self.seats("-n", 2, "--steps", 5, "--join-timeout", "2s", program=program,
                           code=support.FAILED)
        self.assertIn("rank 1 has not joined within 2 s", ended.err)
        result = self.seats("-n", 2, "--steps", 5, "--join-timeout", "2s", "--workers-min", 1,
                            program=program).result
        self.assertEqual(result["steps"], 5)

    def test_a_program_that_crashes_before_it_joins_fails_the_run(self):
        ended = self.seats("-n", 2, "--restarts", 0, code=support.FAILED,
                           program=("/bin/sh", "-c", "echo no module named torch >&2; exit 3"))
        self.assertIn("exited with 3 before it joined: no module named torch", ended.err)

    def test_a_command_that_does_not_exist_is_named(self):
        ended = self.seats("-n", 2, program=("/no/such/program",), code=support.FAILED)
        self.assertIn("cannot start /no/such/program", ended.err)

    def test_a_program_without_anytime_is_explained(self):
        ended = self.seats("-n", 2, program=("/bin/true",), code=support.FAILED)
        self.assertIn("none of them joined", ended.err)

    def test_another_model_is_refused(self):
        program = ("/bin/sh", "-c", f"exec {seats.WORKER} odd=$ANYTIME_RANK")
        ended = self.seats("-n", 2, "--steps", 5, "--restarts", 0, program=program,
                           code=support.USAGE)
        self.assertIn("trains something else", ended.err)


class Alone(seats.TestCase):
    def worker(self, **env):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ANYTIME_")}
        return subprocess.run([seats.WORKER], env={**clean, **env}, capture_output=True, text=True,
                              timeout=support.BOUND)

    def test_without_a_hub_a_program_is_alone(self):
        self.assertEqual(self.worker().stdout, "alone\n")

    def test_a_hub_that_is_not_there_and_a_token_that_is_missing_are_explained(self):
        token = self.folder / "token"
        self.assertIn("cannot read the token", self.worker(ANYTIME_HUB="/nowhere/hub").stderr)
        token.write_text("0123456789abcdef")
        done = self.worker(ANYTIME_HUB=str(self.folder / "hub"))
        self.assertEqual(done.returncode, support.FAILED)
        self.assertIn("no hub at", done.stderr)

    def test_a_wrong_token_is_refused_at_once_and_nobody_else_notices(self):
        run = self.launch("-n", 1, "--workers-max", 2, "--steps", 100000, "--seconds", "60s")
        run.wait_steps(1)
        (self.folder / "token").write_text("0123456789abcdef")
        done = self.worker(ANYTIME_HUB=str(run.folder / "hub"),
                           ANYTIME_TOKEN_FILE=str(self.folder / "token"))
        self.assertEqual(done.returncode, support.USAGE)
        self.assertIn("the token is not that of this run", done.stderr)
        self.assertEqual((run.folder / "token").stat().st_mode & 0o777, 0o600)
        run.signal(support.signal.SIGINT)
        self.assertEqual(run.wait().code, support.STOPPED)

    def test_others_may_join_a_run_and_leave_it(self):
        run = self.launch("-n", 1, "--workers-max", 2, "--seconds", "60s")
        run.wait_steps(5)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ANYTIME_")}
        done = subprocess.run([seats.WORKER, "stay=10"], timeout=support.BOUND,
                              env={**clean, "ANYTIME_HUB": str(run.folder / "hub")})
        self.assertEqual(done.returncode, 0)
        run.signal(support.signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["worker"][1]["rounds"], 10)


class Options(seats.TestCase):
    def test_what_belongs_to_the_program_is_refused(self):
        for option in (("--model", "mlp:10"), ("--lr", "0.1"), ("--data", "mnist"),
                       ("--engine", "ref"), ("--micro-batch", 4)):
            ended = self.seats(*option, code=support.USAGE)
            self.assertIn(f"{option[0]} does not work with `anytime run`", ended.err)

    def test_mistakes_are_explained(self):
        self.assertIn("no command", self.anytime("run", "-n", 2, code=support.USAGE).err)
        self.assertIn("no command", self.anytime("run", "--", code=support.USAGE).err)
        self.assertIn("only `anytime run`",
                      self.anytime("train", "--", "true", code=support.USAGE).err)
        self.assertIn("--epochs needs",
                      self.seats("--epochs", 1, program=("samples=0",), code=support.USAGE).err)

    def test_help_has_no_options_of_models(self):
        text = self.anytime("run", "--help", "all").out
        self.assertIn("--restarts", text)
        self.assertNotIn("--model", text)

    def test_output_has_prefixes_or_goes_to_files(self):
        ended = self.seats("-n", 2, "--steps", 5, "--quiet")
        self.assertEqual({line[:3] for line in ended.out.splitlines() if "status" in line},
                         {"[0]", "[1]"})
        logs = self.folder / "logs"
        ended = self.seats("-n", 2, "--steps", 5, "--quiet", "--log-dir", logs)
        self.assertNotIn("status", ended.out)
        self.assertIn("status 8", (logs / "rank-1.out").read_text())
        ended = self.seats("-n", 2, "--steps", 5, "--quiet", "--json")
        self.assertEqual(json.loads(ended.out)["steps"], 5)

    def test_the_environment_is_set(self):
        program = ("/bin/sh", "-c", "echo $ANYTIME_RANK $ANYTIME_WORKERS $OMP_NUM_THREADS "
                   f"$(basename $ANYTIME_LIBRARY) >&2; exec {seats.WORKER}")
        ended = self.seats("-n", 2, "--steps", 5, program=program)
        self.assertIn("[1] 1 2 1 libanytime.so", ended.err)


if __name__ == "__main__":
    support.main()
