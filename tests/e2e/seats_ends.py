#!/usr/bin/env python3
"""`anytime run`: how programs end, who may join, options and comparisons."""
import json
import os
import shutil
import signal
import subprocess
import sys

import support
from support import processes, seats


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

    def test_a_run_whose_folder_was_renamed_leaves_another_one_of_that_name_alone(self):
        runs = []
        for _ in range(2):
            self.runs = 0
            runs.append(self.launch("-n", 1, "--steps", 10**8))
            runs[-1].wait_steps(5)
            if len(runs) == 1:
                os.rename(runs[0].folder, self.folder / "renamed")
        runs[0].signal(signal.SIGTERM)
        self.assertNotEqual(runs[0].wait().code, support.DONE)
        self.assertTrue({"hub", "token", "run.lock"} <= set(os.listdir(runs[1].folder)))
        self.assert_complaint(self.anytime("run", "--resume", runs[1].folder, "--",
                                           seats.WORKER, code=support.USAGE), "is in use")
        runs[1].signal(signal.SIGTERM)
        self.assertEqual(runs[1].wait().code, support.STOPPED)

    def test_the_worst_code_of_the_programs_is_that_of_the_run(self):
        self.seats("-n", 2, "--steps", 5, program=("code=9",), code=9)

    def test_a_program_that_never_joins_fails_the_run_with_its_last_line(self):
        ended = self.seats("-n", 2, "--join-timeout", "5s", program=("join=0",),
                           code=support.FAILED)
        self.assertIn("waiting for godot", ended.err.splitlines()[-2])

    def test_a_rank_that_never_joins_fails_the_run(self):
        program = ("/bin/sh", "-c", f'[ $ANYTIME_RANK = 1 ] && exec {seats.WORKER} join=0; '
                   f'exec {seats.WORKER}')
        ended = self.seats("-n", 2, "--steps", 5, "--join-timeout", "5s", program=program,
                           code=support.FAILED)
        self.assertIn("rank 1 has not joined within 5 s", ended.err)
        result = self.seats("-n", 2, "--steps", 5, "--join-timeout", "5s", "--workers-min", 1,
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
        run = self.launch("-n", 1, "--workers-max", 2, "--seconds", "1h")
        run.wait_steps(1)
        (self.folder / "token").write_text("0123456789abcdef")
        done = self.worker(ANYTIME_HUB=str(run.folder / "hub"),
                           ANYTIME_TOKEN_FILE=str(self.folder / "token"))
        self.assertEqual(done.returncode, support.USAGE)
        self.assertIn("the token is not that of this run", done.stderr)
        self.assertEqual((run.folder / "token").stat().st_mode & 0o777, 0o600)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait().code, support.STOPPED)

    def test_others_may_join_a_run_and_leave_it(self):
        run = self.launch("-n", 1, "--workers-max", 2, "--seconds", "1h")
        run.wait_steps(5)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ANYTIME_")}
        done = subprocess.run([seats.WORKER, "stay=10"], timeout=support.BOUND,
                              env={**clean, "ANYTIME_HUB": str(run.folder / "hub")})
        self.assertEqual(done.returncode, 0)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["worker"][1]["rounds"], 10)


class Comparisons(seats.TestCase):
    def test_strategies_are_compared_with_a_program(self):
        options = ("-n", 2, "--steps", 40, "--repeats", 2, "--batch", 32, "--plots", "none")
        done = self.anytime("compare", "fmb", "amb:time-limit=5ms", *options, "--json", "--quiet",
                            "--", seats.WORKER, "batch=8")
        entries = {row["label"]: row for row in json.loads(done.out)["entries"]}
        self.assertEqual(set(entries), {"fmb", "amb"})
        self.assertEqual(entries["fmb"]["summary"]["mean_batch"]["value"], 32)
        folder = next((self.folder / "runs").iterdir())
        self.assertIn("status 8", (folder / "fmb-1" / "rank-1.out").read_text())

    def test_an_option_is_swept_with_a_program(self):
        done = self.anytime("sweep", "--over", "batch=8,16", "-n", 2, "--steps", 10, "--repeats", 1,
                            "--plots", "none", "--json", "--quiet", "--", seats.WORKER, "batch=8")
        batches = [row["summary"]["mean_batch"]["value"] for row in json.loads(done.out)["entries"]]
        self.assertEqual(batches, [8, 16])

    def test_a_comparison_of_programs_is_resumed_with_the_same_command_only(self):
        words = ("-n", 2, "--steps", 10, "--batch", 16, "--plots", "none", "--quiet")
        self.anytime("compare", "fmb", "async", *words, "--repeats", 1, "--out", "out", "--",
                     seats.WORKER, "batch=8")
        shutil.rmtree(self.folder / "out" / "async-1")
        resume = ("compare", "--resume", "out", "--quiet")
        for command, expected in (((), "never started by itself"),
                                  (("--", seats.WORKER), "another command"),
                                  (("--", seats.WORKER, "batch=8", "x"), "another command")):
            done = self.anytime(*resume, *command, code=support.USAGE)
            self.assertIn(expected, done.err)
        self.assertFalse((self.folder / "out" / "async-1").exists())
        self.anytime(*resume, "--", seats.WORKER, "batch=8")
        self.assertTrue((self.folder / "out" / "async-1" / "result.json").exists())

    def test_a_comparison_of_programs_is_resumed_only_where_it_began(self):
        self.anytime("compare", "fmb", "-n", 1, "--steps", 5, "--repeats", 1, "--plots", "none",
                     "--quiet", "--out", "out", "--", seats.WORKER, "batch=8")
        path = self.folder / "out" / "compare.json"
        document = {**json.loads(path.read_text()), "directory": "/tmp/\x1b[31melsewhere"}
        path.write_text(json.dumps(document))
        done = self.anytime("compare", "--resume", "out", "--", seats.WORKER, "batch=8",
                            code=support.USAGE)
        self.assertIn("was started in /tmp/", done.err)
        self.assertNotIn("\x1b", done.err)

    def test_options_of_the_program_are_refused(self):
        done = self.anytime("compare", "fmb", "amb:lr=0.1", "--", seats.WORKER, code=support.USAGE)
        self.assertIn("--lr does not work", done.err)


class Options(seats.TestCase):
    def test_what_belongs_to_the_program_is_refused(self):
        for option in (("--model", "mlp:10"), ("--lr", "0.1"), ("--data", "mnist"),
                       ("--engine", "ref"), ("--micro-batch", 4)):
            ended = self.seats(*option, code=support.USAGE)
            self.assertIn(f"{option[0]} does not work with programs as workers", ended.err)

    def test_mistakes_are_explained(self):
        self.assertIn("no command", self.anytime("run", "-n", 2, code=support.USAGE).err)
        self.assertIn("no command", self.anytime("run", "--", code=support.USAGE).err)
        self.assertIn("only run, compare and sweep",
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
                   f"$(basename $ANYTIME_LIBRARY) $MALLOC_TRIM_THRESHOLD_ >&2; "
                   f"exec {seats.WORKER}")
        ended = self.seats("-n", 2, "--steps", 5, program=program)
        self.assertIn("[1] 1 2 1 libanytime.so 1073741824", ended.err)


class Numbers(seats.TestCase):
    """In a namespace of process numbers, where a test may choose the next one."""

    INSIDE = "ANYTIME_TEST_NUMBERS"

    def test_a_stranger_with_the_number_of_a_program_that_ended_is_spared(self):
        if self.INSIDE not in os.environ:
            self.repeat_inside()
            return
        run = self.launch("-n", 2, "--seconds", "1h", "--sample-time", "1ms", "--quiet",
                          program=("exit=5", "only=1"))
        run.wait_until(lambda: 2 in (rows := run.workers()) and rows[2]["state"] == "lost",
                       "a program has ended")
        number = run.workers()[2]["pid"]
        processes.NEXT_NUMBER.write_text(str(number - 1))
        stranger = subprocess.Popen(["sleep", "1h"], start_new_session=True)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        self.assertEqual(stranger.pid, number)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)
        self.assertEqual(os.waitpid(number, os.WNOHANG), (0, 0), "it is alive")

    def repeat_inside(self):
        if not processes.namespace():
            self.skipTest("this user may not make a namespace of process numbers")
        this = self.id().partition(".")[2]
        done = subprocess.run([*processes.namespace(), sys.executable, __file__, this],
                              env={**os.environ, self.INSIDE: "1"}, capture_output=True, text=True,
                              timeout=support.BOUND)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    support.main()
