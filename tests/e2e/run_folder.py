#!/usr/bin/env python3
"""The files of a run folder and the output streams, on which scripts rely."""
import json
import os
import pty
import re
import signal
import subprocess

import support

STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
              "ringmaster", "quorum", "adasync", "dbs", "grow")

NUMBER, TEXT, WHOLE = (int, float), str, int

# Every key that scripts may rely on, with the type of its value.
RESULT = {
    "anytime": TEXT, "world": TEXT, "strategy": TEXT,
    "rules": {"work": TEXT, "gather": TEXT, "release": TEXT, "newer": TEXT, "stale": TEXT,
              "size": TEXT},
    "command": TEXT, "options": dict, "machine": {"cores": WHOLE, "oversubscribed": bool},
    "model": TEXT, "parameters": WHOLE, "data": TEXT, "workers": WHOLE, "seed": WHOLE,
    "engine": TEXT, "stopped": TEXT, "steps": WHOLE, "seconds": NUMBER, "wall_seconds": NUMBER,
    "samples": {"drawn": WHOLE, "used": WHOLE, "dropped": WHOLE}, "samples_per_second": NUMBER,
    "train": {"loss": NUMBER}, "test": {"loss": NUMBER, "accuracy": NUMBER, "count": WHOLE},
    "targets": list, "step_seconds": {"mean": NUMBER, "p50": NUMBER, "p95": NUMBER, "max": NUMBER},
    "useful_fraction": NUMBER, "overshoot_seconds": {"mean": NUMBER, "max": NUMBER},
    "staleness": {"mean": NUMBER, "max": WHOLE}, "worker": list, "params_hash": TEXT,
    "trace_hash": TEXT,
}
WORKER = {
    "id": WHOLE, "pid": WHOLE, "rounds": WHOLE, "samples": WHOLE, "compute_seconds": NUMBER,
    "sleep_seconds": NUMBER, "idle_seconds": NUMBER, "send_seconds": NUMBER, "state": TEXT,
}
TARGET = {"metric": TEXT, "value": NUMBER, "seconds": NUMBER, "step": WHOLE}

COLUMNS = {
    "master_stats.csv": "time,step,loss,learning_rate,test_loss,accuracy",
    "worker_stats.csv": "time,master_step,rank,worker_step,worker_master_step,"
                        "last_queued_update_count,num_samples,last_send,last_recv,last_exit,"
                        "sleep_time,compute_time,master_wait_time",
    "collect_stats.csv": "step,worker_count,wait_time,total_samples",
}


class Folder(support.TestCase):
    def assert_shape(self, value, shape, where):
        if isinstance(shape, dict):
            self.assertIsInstance(value, dict, where)
            for key, inner in shape.items():
                self.assertIn(key, value, where)
                self.assert_shape(value[key], inner, f"{where}.{key}")
        else:
            self.assertIsInstance(value, shape, where)
            self.assertEqual(isinstance(value, bool), shape is bool, where)

    def test_the_result_has_every_key_with_its_type(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 10 ** 9, "--eval-every", 20,
                           "--target", "accuracy=0.01")
        result = ended.result
        self.assert_shape(result, RESULT, "result")
        self.assertEqual(len(result["worker"]), 3)
        for row in result["worker"]:
            self.assert_shape(row, WORKER, "worker")
        for row in result["targets"]:
            self.assert_shape(row, TARGET, "target")
        self.assertRegex(result["params_hash"], "^[0-9a-f]{64}$")
        self.assertEqual(result["parameters"], 21 * 5)
        self.assertEqual(result["command"].split()[:2], ["anytime", "train"])
        self.assert_ledger(ended)

    def test_numbers_are_consistent(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 40)
        result = ended.result
        self.assertEqual(result["samples"], {**result["samples"], "drawn": 40 * 64,
                                             "used": 40 * 64, "dropped": 0}, ended)
        self.assertEqual((result["stopped"], result["steps"], result["workers"]), ("steps", 40, 2))
        self.assertGreaterEqual(result["wall_seconds"], result["seconds"])
        self.assertGreater(result["startup_seconds"], 0)
        self.assertGreater(result["useful_fraction"], 0)
        self.assertLessEqual(result["useful_fraction"], 1)
        spread = result["step_seconds"]
        self.assertLessEqual(spread["p50"], spread["p95"])
        self.assertLessEqual(spread["p95"], spread["max"])
        self.assertEqual([row["rounds"] for row in result["worker"]], [40, 40])

    def echoed(self, result):
        """The options of a result as arguments, without those that only select the output."""
        for name, value in result["options"].items():
            if value is None or name in ("run", "json", "quiet"):
                continue
            yield f"--{name}={'no yes'.split()[value] if isinstance(value, bool) else value}"

    def test_the_options_in_a_result_reproduce_the_run(self):
        runs = (
            ("--workers", 3, "--steps", 60),
            ("--steps", 50, "--seed", 7, "--model", "mlp:12", "--optimizer", "adam", "--lr", 0.01,
             "--lr-schedule", "cosine", "--weight-decay", "1e-4", "--micro-batch", 8, "--shard",
             "--deal", "own", "--lease", "90s", "--no-respawn", "--engine", "ref"),
            ("--workers", 0, "--epochs", 1.5, "--deal", "global", "--record", "steps",
             "--straggler", "exp:0,0.0001", "--straggler-scale", 0.5, "--sample-time", "2us"),
        )
        for options in runs:
            with self.subTest(options=options):
                first = self.train_json(*support.SMALL, *options)
                again = self.train_json(*self.echoed(first))
                self.assertEqual(first["params_hash"], again["params_hash"])
                self.assertEqual(first["trace_hash"], again["trace_hash"])
                ours = {**first["options"], "run": None}
                self.assertEqual(ours, {**again["options"], "run": None})

    def test_resolved_defaults_are_in_the_result(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                first = self.train_json("--data", "synthetic:2000,20,5", "--strategy", strategy,
                                        "--steps", 5, "--sample-time", "measure")
                options = first["options"]
                self.assertEqual(options["workers"], first["workers"])
                for name in ("batch", "micro-batch", "lr", "sample-time"):
                    self.assertIsNotNone(options[name], name)
                self.assertNotEqual(options["sample-time"], "measure")
                again = self.train_json(*self.echoed(first))
                self.assertEqual(first["rules"], again["rules"])
                self.assertEqual({**options, "run": None}, {**again["options"], "run": None})

    def test_tables_have_the_published_columns_and_every_step(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 50)
        for name, head in COLUMNS.items():
            self.assertEqual((ended.folder / name).read_text().splitlines()[0], head)
        self.assertEqual([int(row["step"]) for row in ended.table("collect_stats.csv")],
                         list(range(1, 51)))
        self.assertEqual({row["total_samples"] for row in ended.table("collect_stats.csv")}, {"96"})
        reports = ended.table("worker_stats.csv")
        self.assertEqual(len(reports), 150)
        self.assertEqual({row["rank"] for row in reports}, {"1", "2", "3"})
        steps = [row for row in ended.table("master_stats.csv") if row["loss"]]
        self.assertEqual([int(row["step"]) for row in steps], list(range(1, 51)))
        times = [float(row["time"]) for row in steps]
        self.assertEqual(times, sorted(times))
        self.assertTrue((ended.folder / "events.bin").read_bytes().startswith(b"ATEV"))

    def test_record_selects_the_files(self):
        always = {"result.json", "workers.json"}
        steps = always | {"master_stats.csv", "collect_stats.csv", "resource_stats.csv",
                          "model.safetensors", "checkpoint"}
        full = steps | {"worker_stats.csv", "events.bin", "tensorboard", "trace.json"}
        for keep, files in (("none", always), ("steps", steps), ("full", full)):
            with self.subTest(record=keep):
                ended = self.train(*support.SMALL, "--workers", 2, "--steps", 5, "--record", keep)
                self.assertEqual({path.name for path in ended.folder.iterdir()}, files)

    def test_workers_json_names_the_processes(self):
        run = self.start(*support.SMALL, "--workers", 3, "--steps", 10 ** 9, "--quiet")
        rows = run.wait_working()
        self.assertEqual(sorted(rows), [1, 2, 3])
        run.evaluator()
        self.assertLess({row["pid"] for row in rows.values()}, run.children())
        document = json.loads((run.folder / "workers.json").read_text())
        self.assertEqual(document["hub"], run.pid)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED, run.ended())
        self.assertEqual({row["state"] for row in run.workers().values()}, {"finished"})

    def test_unnamed_runs_get_separate_folders(self):
        for _ in range(2):
            self.anytime("train", *support.SMALL, "--workers", 1, "--steps", 5, "--quiet")
        self.assertEqual(len(list((self.folder / "runs").glob("*/result.json"))), 2)

    def test_the_last_option_wins(self):
        result = self.train_json(*support.SMALL, "--workers", 1, "--steps", 5, "--steps", 9)
        self.assertEqual(result["steps"], 9)


class Evaluations(support.TestCase):
    def evaluations(self, ended):
        return [row for row in ended.table("master_stats.csv") if row["accuracy"]]

    def test_rows_have_the_step_and_time_of_their_snapshot(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 1000, "--eval-every", 50)
        rows = self.evaluations(ended)
        applied = {row["step"]: row["time"] for row in ended.table("master_stats.csv")
                   if row["loss"]}
        self.assertGreater(len(rows), 1, ended)
        for row in rows:
            self.assertEqual(int(row["step"]) % 50, 0, row)
            self.assertEqual(row["time"], applied[row["step"]], row)
        self.assertEqual(rows[-1]["step"], "1000")
        self.assertAlmostEqual(float(rows[-1]["accuracy"]), ended.result["test"]["accuracy"])

    def test_eval_every_zero_evaluates_at_the_end_only(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--epochs", 3, "--eval-every", 0)
        self.assertEqual([int(row["step"]) for row in self.evaluations(ended)],
                         [ended.result["steps"]])

    def test_eval_size_limits_the_test_samples(self):
        result = self.train_json(*support.SMALL, "--workers", 2, "--steps", 5, "--eval-size", 123)
        self.assertEqual(result["test"]["count"], 123)

    def test_a_target_is_met_at_the_time_of_its_snapshot(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--eval-every", 10, "--steps", 10 ** 8,
                           "--target", "accuracy=0.5,loss=1.2", "--sample-time", "10us")
        result = ended.result
        self.assertEqual(result["stopped"], "target", ended)
        self.assertEqual([row["metric"] for row in result["targets"]], ["accuracy", "loss"])
        rows = {int(row["step"]): row for row in self.evaluations(ended)}
        for target in result["targets"]:
            row = rows[target["step"]]
            if target["metric"] == "accuracy":
                self.assertGreaterEqual(float(row["accuracy"]), target["value"])
            else:
                self.assertLessEqual(float(row["test_loss"]), target["value"])
            first = float(ended.table("master_stats.csv")[0]["time"])
            self.assertLessEqual(target["seconds"], float(row["time"]) + 1e-6, ended)
            self.assertGreaterEqual(target["seconds"], float(row["time"]) - first, ended)
            self.assertLessEqual(target["seconds"], result["seconds"], ended)

    def test_a_target_that_is_not_met_is_null(self):
        result = self.train_json(*support.SMALL, "--workers", 2, "--steps", 20,
                                 "--target", "accuracy=1,loss=1e-9")
        self.assertEqual(result["stopped"], "steps")
        self.assertEqual([(row["seconds"], row["step"]) for row in result["targets"]][1],
                         (None, None))


class Streams(support.TestCase):
    TRAIN = (*support.SMALL, "--workers", 1, "--steps", 300)

    def test_json_prints_the_result_and_nothing_else(self):
        ended = self.train(*self.TRAIN, "--json")
        on_disk = json.loads((ended.folder / "result.json").read_text())
        self.assertEqual(json.loads(ended.out), on_disk)

    def test_results_go_to_stdout_and_progress_to_stderr(self):
        ended = self.train(*self.TRAIN)
        self.assertIn("test: loss", ended.out)
        self.assertIn(str(ended.folder), ended.out)
        self.assertIn("step 300", ended.err)

    def test_quiet_prints_nothing_in_an_undisturbed_run(self):
        self.assertEqual(self.train(*self.TRAIN, "--quiet").err, "")

    def test_an_unused_option_is_named(self):
        ended = self.train(*self.TRAIN, "--cap", 100, "--quiet")
        self.assertIn("--cap is not used", ended.err)

    def on_terminal(self, **env):
        """The output of a run on a terminal."""
        self.runs += 1
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal available: {error}")
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        process = subprocess.Popen(
            [support.ANYTIME, "train", *map(str, self.TRAIN), "--run", f"tty{self.runs}"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
            env={**environment, "COLUMNS": "100", **env})
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:
            pass  # the other end is closed
        finally:
            os.close(ours)
        self.assertEqual(process.wait(support.BOUND), support.DONE, written)
        return written.decode()

    def test_colors_depend_on_the_terminal_and_no_color(self):
        color = re.compile(r"\x1b\[[0-9;]*m")
        self.assertRegex(self.on_terminal(TERM="xterm-256color"), color)
        self.assertNotRegex(self.on_terminal(TERM="xterm-256color", NO_COLOR="1"), color)
        self.assertNotIn("\x1b", self.on_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", self.train(*self.TRAIN, env={"TERM": "xterm-256color"}).err)

    def test_terminal_modes_are_never_changed(self):
        """So even a killed run leaves the terminal in order."""
        self.assertNotIn("\x1b[?", self.on_terminal(TERM="xterm"))


class AtTheSameMoment(support.TestCase):
    """Runs never share a folder, even if they are started together."""
    COUNT = 12

    def together(self, *arguments):
        command = [support.ANYTIME, "train", "--world", "sim", *map(str, support.SMALL), "--steps",
                   "5", "--quiet", *arguments]
        runs = [subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for _ in range(self.COUNT)]
        ends = [(run.communicate(timeout=support.BOUND)[1], run.returncode) for run in runs]
        return [code for _, code in ends], [err for err, code in ends if code]

    def test_default_names_get_the_next_suffix(self):
        codes, _ = self.together()
        self.assertEqual(codes, [support.DONE] * self.COUNT)
        folders = list((self.folder / "runs").iterdir())
        self.assertEqual(len(folders), self.COUNT, folders)
        for folder in folders:
            self.assertTrue((folder / "result.json").exists(), folder)

    def test_one_gets_the_name_that_all_want(self):
        codes, complaints = self.together("--run", "same")
        self.assertEqual(sorted(codes), [support.DONE] + [support.USAGE] * (self.COUNT - 1))
        for complaint in complaints:
            self.assertIn("same already exists", complaint)

    def test_a_run_that_cannot_start_leaves_no_folder(self):
        for arguments in (("--run", "no"), ()):
            self.anytime("train", "--data", "nowhere.csv", *arguments, code=support.MISSING)
            self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    support.main()
