#!/usr/bin/env python3
"""A run resumed from a checkpoint ends exactly as if it had never been interrupted."""
import hashlib
import json
import os
import re
import shutil
import signal
import time

import support

PATIENCE = 20  # seconds, with the disk (AT_SAVER_PATIENCE)
SMALL = (*support.SMALL, "--eval-every", 0)
STRATEGIES = (*support.GRADIENTS, "anytime-sgd", "local-sgd", "diloco --optimizer sgd",
              "async --stale compensate:0.5", "ssp --stale compensate:0.5,versions=2")
OPTIMIZERS = ("sgd", "momentum:0.8", "nesterov", "rmsprop", "adam:0.8,0.99", "adamw", "adagrad",
              "dual-averaging")


def checkpoints(folder):
    """Newest first."""
    return sorted((folder / "checkpoint").glob("step-*.safetensors"), reverse=True)


class Resume(support.TestCase):
    def whole(self, *arguments):
        """An uninterrupted run."""
        ended = self.train(*SMALL, *arguments, "--quiet")
        self.assert_ledger(ended)
        return ended

    def cut_back(self, ended):
        """The folder as it was before its newest checkpoint was written."""
        folder = ended.folder.with_name(ended.folder.name + "-cut")
        shutil.copytree(ended.folder, folder)
        (folder / "result.json").unlink()
        checkpoints(folder)[0].unlink()
        return folder

    def finish(self, folder, *arguments, code=support.DONE):
        ended = self.resume(folder, *arguments, "--quiet").wait()
        self.assertEqual(ended.code, code, ended)
        return ended

    def assert_same_end(self, whole, *arguments, trace=True):
        folder = self.cut_back(whole)
        ended = self.finish(folder, *arguments)
        self.assert_ledger(ended)
        first, second = whole.result, ended.result
        self.assertLess(0, second["resumed_at"])
        self.assertLess(second["resumed_at"], first["steps"])
        keys = ["params_hash", "steps", "samples"] + ["trace_hash"] * trace
        for key in keys:
            self.assertEqual(first[key], second[key], f"{key}{whole}{ended}")
        return ended


class SimulatedTime(Resume):
    def test_every_strategy_ends_with_the_same_bits(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                whole = self.whole("--world", "sim", "--workers", 4, "--strategy",
                                   *strategy.split(), "--straggler", "exp:0,0.0001", "--steps",
                                   130, "--checkpoint-every", 50)
                self.assert_same_end(whole)

    def test_a_slow_network_changes_nothing(self):
        for strategy in ("amb", "async-timed", "ssp", "batch-sync"):
            with self.subTest(strategy=strategy):
                whole = self.whole("--world", "sim", "--workers", 4, "--strategy", strategy,
                                   "--latency", "20us", "--bandwidth", "1e8", "--comm-delay",
                                   "50us", "--straggler", "niagara", "--straggler-scale", "20%",
                                   "--steps", 130, "--checkpoint-every", 50)
                self.assert_same_end(whole)

    def test_targets_met_before_the_checkpoint_are_kept(self):
        whole = self.whole("--world", "sim", "--workers", 2, "--steps", 150, "--eval-every", 10,
                           "--target", "accuracy=0.5,loss=0.0001", "--checkpoint-every", 60)
        ended = self.assert_same_end(whole)
        self.assertEqual(whole.result["targets"], ended.result["targets"])
        self.assertIsNotNone(whole.result["targets"][0]["step"])


class RealTime(Resume):
    def test_the_time_of_a_target_is_kept(self):
        # In virtual time an evaluation is ready when its step is, so it is in the next checkpoint.
        whole = self.whole("--world", "sim", "--sample-time", "1ms", "--workers", 2, "--steps", 90,
                           "--eval-every", 10, "--target", "accuracy=0.2,loss=0.0001",
                           "--checkpoint-every", 30)
        met, missed = whole.result["targets"]
        self.assertLess(0, met["seconds"])
        self.assertIsNone(missed["seconds"])
        checkpoints(whole.folder)[0].unlink()
        again = self.finish(whole.folder)
        self.assertEqual([met, missed], again.result["targets"])
        checkpoints(again.folder)[0].unlink()
        self.assertEqual([met, missed], self.finish(again.folder).result["targets"])

    def test_every_optimizer_ends_with_the_same_bits(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer=optimizer):
                whole = self.whole("--workers", 2, "--optimizer", optimizer, "--lr-schedule",
                                   "cosine", "--steps", 120, "--checkpoint-every", 50)
                self.assert_same_end(whole)

    def test_schedules_and_weight_decay_continue(self):
        for schedule in ("linear:0.001", "exp:500,0.5", "epochs:1,2:0.1", "stairs:3,0.5",
                         "warmup:4000+one-cycle"):
            with self.subTest(schedule=schedule):
                whole = self.whole("--workers", 2, "--lr-schedule", schedule, "--weight-decay",
                                   "1e-3", "--clip", "0.2", "--label-smoothing", "0.1",
                                   "--steps", 120, "--checkpoint-every", 50)
                self.assert_same_end(whole)

    def test_batch_norm_and_dropout_continue(self):
        net = self.folder / "small.net"
        net.write_text("conv 3x3x8\nbn\nrelu\nmaxpool 2\ndropout keep=0.7\ndense 10\n")
        whole = self.train("--model", net, "--data", "synthetic:400,1x8x8,10", "--batch", 32,
                           "--workers", 2, "--optimizer", "momentum", "--steps", 40,
                           "--checkpoint-every", 15, "--quiet")
        self.assert_same_end(whole)

    def test_global_dealing_of_samples_continues(self):
        whole = self.whole("--workers", 3, "--deal", "global", "--steps", 120,
                           "--checkpoint-every", 50)
        self.assert_same_end(whole)

    def test_without_a_hub(self):
        whole = self.whole("--workers", 0, "--optimizer", "adam", "--steps", 120,
                           "--checkpoint-every", 50)
        self.assert_same_end(whole)

    def test_sparse_models_continue(self):
        for optimizer in ("sgd", "adagrad"):
            with self.subTest(optimizer=optimizer):
                whole = self.train("--model", "sparse-lr", "--data", "synthetic-clicks:4000,1000",
                                   "--workers", 2, "--batch", 20, "--optimizer", optimizer,
                                   "--steps", 120, "--checkpoint-every", 50, "--eval-every", 0,
                                   "--quiet")
                self.assert_same_end(whole)

    def test_in_another_world(self):
        """Saved in real time, finished in the simulation, and the other way round."""
        whole = self.whole("--workers", 3, "--steps", 120, "--checkpoint-every", 50)
        self.assert_same_end(whole, "--world", "sim")
        virtual = self.whole("--world", "sim", "--workers", 3, "--steps", 120,
                             "--checkpoint-every", 50)
        self.assertEqual(whole.result["params_hash"], virtual.result["params_hash"])
        self.assert_same_end(virtual, "--world", "local")

    def test_with_more_or_fewer_workers_the_ledger_still_adds_up(self):
        for workers in (1, 2, 5):
            with self.subTest(workers=workers):
                whole = self.whole("--workers", 3, "--steps", 120, "--checkpoint-every", 50)
                ended = self.finish(self.cut_back(whole), "--workers", workers)
                result = ended.result
                self.assertEqual(result["steps"], 120)
                samples = result["samples"]
                self.assertEqual(samples["drawn"], samples["used"] + samples["dropped"])
                before = result["resumed_at"]
                self.assertEqual(samples["used"], 32 * (before * 3 + (120 - before) * workers))
                self.assertEqual(len(result["worker"]), workers)

    def test_a_long_value_is_taken_over_completely(self):
        speeds = "speed:" + ",".join(["1.00000"] * 199 + ["2.50000"])
        run = self.whole("--world", "sim", "--workers", 200, "--steps", 3, "--straggler", speeds)
        again = self.finish(run.folder, "--steps", 5)
        self.assertEqual(again.result["options"]["straggler"], speeds)

    def test_a_run_can_be_made_longer(self):
        short = self.whole("--workers", 2, "--steps", 60)
        longer = self.finish(short.folder, "--steps", 100)
        self.assertEqual(longer.result["steps"], 100)
        straight = self.whole("--workers", 2, "--steps", 100)
        self.assertEqual(longer.result["params_hash"], straight.result["params_hash"])
        self.assertEqual(longer.result["trace_hash"], straight.result["trace_hash"])

    def test_a_command_that_is_repeated_is_kept_once(self):
        whole = self.whole("--world", "sim", "--workers", 2, "--steps", 20)
        folder = self.cut_back(whole)
        for _ in range(4):  # as by a supervisor, after each crash
            ended = self.finish(folder)
            commands = ended.result["earlier_commands"]
            (folder / "result.json").unlink()
        self.assertEqual(len(commands), 2)
        self.assertIn("--steps 20", commands[0])
        self.assertIn("--resume", commands[1])

    def test_tables_have_every_step_once(self):
        whole = self.whole("--workers", 2, "--steps", 120, "--checkpoint-every", 50)
        ended = self.assert_same_end(whole)
        for table in ("collect_stats.csv",):
            steps = [int(row["step"]) for row in ended.table(table)]
            self.assertEqual(steps, list(range(1, 121)), table)
        reports = [(int(row["rank"]), int(row["worker_step"]))
                   for row in ended.table("worker_stats.csv")]
        self.assertEqual(sorted(reports), [(w, r) for w in (1, 2) for r in range(120)])
        times = [float(row["time"]) for row in ended.table("worker_stats.csv")]
        self.assertEqual(times, sorted(times))

    def test_the_resumed_part_replays(self):
        whole = self.whole("--workers", 2, "--steps", 120, "--checkpoint-every", 50)
        ended = self.assert_same_end(whole)
        self.assertTrue((ended.folder / "events-2.bin").exists())
        replay = json.loads(self.anytime("replay", ended.folder, "--json").out)
        self.assertEqual(replay["trace_hash"], ended.result["trace_hash"])


class Signals(Resume):
    ENDLESS = (*SMALL, "--workers", 3, "--steps", 10**7, "--lr-schedule", "linear:0.001")

    def test_stopped_runs_end_as_if_uninterrupted(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                steps = ("--workers", 3, "--steps", 3000, "--sample-time", "20us")
                run = self.start(*SMALL, *steps)
                run.wait_steps(100)
                run.signal(number)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assertIn("--resume", ended.err)
                again = self.finish(run.folder)
                self.assert_ledger(again)
                whole = self.whole(*steps)
                for key in ("params_hash", "trace_hash", "steps"):
                    self.assertEqual(whole.result[key], again.result[key], key)

    def test_usr1_writes_a_checkpoint_and_training_continues(self):
        run = self.start(*self.ENDLESS, "--checkpoint-every", 0)
        run.wait_steps(50)
        self.assertEqual([path.name for path in checkpoints(run.folder)],
                         ["step-000000000000.safetensors"])
        run.signal(signal.SIGUSR1)
        run.wait_until(lambda: len(checkpoints(run.folder)) == 2, "a checkpoint is written")
        before = run.steps()
        run.wait_steps(before + 50)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)

    def test_a_killed_hub_loses_only_what_came_after_the_checkpoint(self):
        steps = ("--workers", 2, "--steps", 4000, "--sample-time", "10us")
        run = self.start(*SMALL, *steps, "--checkpoint-every", 100)
        run.wait_until(lambda: run.folder.exists() and checkpoints(run.folder) and
                       "000000000000" not in checkpoints(run.folder)[0].name,
                       "a checkpoint is written")
        run.signal(signal.SIGKILL)
        run.wait()
        again = self.finish(run.folder)
        self.assert_ledger(again)
        whole = self.whole(*steps)
        self.assertEqual(whole.result["params_hash"], again.result["params_hash"])
        self.assertEqual(whole.result["trace_hash"], again.result["trace_hash"])
        self.assertEqual([int(row["step"]) for row in again.table("collect_stats.csv")],
                         list(range(1, 4001)))

    def test_a_killed_saver_leaves_no_draft(self):
        run = self.start(*support.SMALL, "--model", "mlp:2000,1000", "--steps", 10**9, "--workers",
                         1, "--quiet", "--checkpoint-every", 1)
        folder = run.folder / "checkpoint"

        def frozen_while_it_writes():
            saver = run.child_named("anytime-saver")
            os.kill(saver, signal.SIGSTOP)
            drafts = set(folder.glob(".anytime-*"))
            os.kill(saver, signal.SIGKILL if drafts else signal.SIGCONT)
            return drafts
        drafts = run.wait_until(frozen_while_it_writes, "a checkpoint is being written")
        run.wait_said("started again")
        run.wait_until(lambda: not drafts & set(folder.glob(".anytime-*")), "its draft is removed")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)
        self.assertEqual(list(folder.glob(".anytime-*")), [])

    def test_a_killed_saver_is_replaced(self):
        run = self.start(*self.ENDLESS, "--checkpoint-every", 0)
        run.wait_steps(20)
        saver = run.child_named("anytime-saver")
        support.processes.kill(saver)
        run.signal(signal.SIGUSR1)
        run.wait_until(lambda: len(checkpoints(run.folder)) == 2, "a checkpoint is written")
        run.wait_said("started again")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)


class FrozenSaver(Resume):
    """A saver that makes no progress (stopped, or a file system that does not answer)."""
    def frozen(self, *arguments):
        run = self.start(*Signals.ENDLESS, "--checkpoint-every", 0, *arguments)
        run.wait_steps(20)
        saver = run.child_named("anytime-saver")
        os.kill(saver, signal.SIGSTOP)
        run.signal(signal.SIGTERM)
        run.wait_said("waiting for the checkpoint of step")
        return run, saver

    def test_the_end_says_what_it_waits_for(self):
        run, saver = self.frozen()
        os.kill(saver, signal.SIGCONT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["steps"], int(checkpoints(run.folder)[0].name[5:17]))

    def test_workers_keep_their_lease_while_the_hub_waits(self):
        """They are told to leave after the last checkpoint, which takes longer than a lease."""
        run, saver = self.frozen("--lease", "1s")
        os.kill(saver, signal.SIGCONT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["evictions"], 0, ended)
        self.assert_ledger(ended)

    def test_time_in_which_the_run_is_stopped_does_not_count(self):
        """Ctrl-Z and fg, when the last checkpoint is being written."""
        run, saver = self.frozen()
        os.kill(run.pid, signal.SIGSTOP)
        end = time.monotonic() + PATIENCE
        support.wait_until(lambda: time.monotonic() >= end, "it would have given up")
        before = support.processes.sleeps(run.pid)
        os.kill(run.pid, signal.SIGCONT)
        run.wait_until(lambda: support.processes.sleeps(run.pid) > before + 1, "it waits on")
        os.kill(saver, signal.SIGCONT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertNotIn("gave up", ended.err)
        self.assertEqual(ended.result["steps"], int(checkpoints(run.folder)[0].name[5:17]))

    def test_a_run_ends_without_its_last_checkpoint(self):
        run, _ = self.frozen()
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertIn("gave up the checkpoint", ended.err)
        self.assertEqual([path.name for path in (run.folder / "checkpoint").iterdir()],
                         ["step-000000000000.safetensors"])
        self.assert_gone(run)
        self.finish(run.folder, "--steps", 30)


class AfterTheLastCheckpoint(Resume):
    """A run killed after its last checkpoint and before its result is finished by --resume."""
    WRITTEN_LAST = ("model.safetensors", "result.json", "trace.json")

    def killed(self, ended):
        """The folder as it was between the last checkpoint and the result."""
        folder = ended.folder.with_name(ended.folder.name + "-killed")
        shutil.copytree(ended.folder, folder)
        for name in self.WRITTEN_LAST:
            (folder / name).unlink(missing_ok=True)
        return folder

    def assert_finished(self, whole):
        """The trace hash also covers rounds that were under way at the end and are not repeated."""
        ended = self.finish(self.killed(whole))
        self.assert_ledger(ended)
        for name in self.WRITTEN_LAST:
            self.assertEqual((whole.folder / name).exists(), (ended.folder / name).exists(), name)
        self.assertEqual((whole.folder / "model.safetensors").read_bytes(),
                         (ended.folder / "model.safetensors").read_bytes())
        keys = ["params_hash", "steps", "stopped", "test", "step_seconds", "targets"]
        if whole.result["samples"]["dropped"] == 0:
            keys += ["trace_hash", "samples"]
        for key in keys:
            self.assertEqual(whole.result[key], ended.result[key], f"{key}{ended}")
        # A target is heard of after the step it was reached in, and the checkpoint is as of then.
        if whole.result["stopped"] != "target":
            self.assertAlmostEqual(whole.result["seconds"], ended.result["seconds"], places=4)
        replay = json.loads(self.anytime("replay", ended.folder, "--json").out)
        self.assertEqual(replay["trace_hash"], ended.result["trace_hash"])
        return ended

    def test_the_result_is_as_it_would_have_been(self):
        for world in (("--workers", 2), ("--workers", 0), ("--workers", 3, "--world", "sim")):
            for strategy in ("fmb", "amb", "async"):
                if strategy == "async" and 0 in world:
                    continue
                with self.subTest(world=world, strategy=strategy):
                    self.assert_finished(self.train(
                        *support.SMALL, "--quiet", "--steps", 60, "--strategy", strategy, *world))

    def test_other_limits_are_reached_too(self):
        # Evaluations take as long as they like: a run with a target has no other limit to reach.
        target = ("--target", "accuracy=0.3", "--steps", 10**9, "--sample-time", "100us")
        for stopped, limit in (("epochs", ("--epochs", 2)), ("seconds", ("--seconds", "0.2s")),
                               ("target", target)):
            with self.subTest(limit=limit):
                whole = self.train(*support.SMALL, "--quiet", "--workers", 2, "--eval-every", 5,
                                   *limit)
                self.assertEqual(whole.result["stopped"], stopped, whole)
                self.assert_finished(whole)

    def test_a_longer_part_that_was_killed_is_finished(self):
        """The result of the first part is not the result of the second."""
        first = self.whole("--workers", 2, "--steps", 40)
        result = (first.folder / "result.json").read_bytes()
        longer = self.finish(first.folder, "--steps", 80)
        (first.folder / "result.json").write_bytes(result)
        again = self.finish(first.folder)
        self.assertEqual(again.result["steps"], 80)
        self.assertEqual(again.result["params_hash"], longer.result["params_hash"])


class Refusals(Resume):
    def test_a_run_that_is_alive_cannot_be_resumed(self):
        run = self.start(*Signals.ENDLESS)
        run.wait_steps(10)
        before = sorted(path.name for path in run.folder.iterdir())
        ended = self.anytime("train", "--resume", run.folder, code=support.USAGE)
        self.assert_complaint(ended, f"process {run.pid} ")
        self.assertEqual(before, sorted(path.name for path in run.folder.iterdir()))
        run.signal(signal.SIGKILL)  # the lock goes with the process, however it ends
        run.wait()
        again = self.resume(run.folder)
        again.wait_said("step")
        ended = self.anytime("train", "--resume", run.folder, code=support.USAGE)
        self.assert_complaint(ended, f"process {again.pid} ")
        again.signal(signal.SIGTERM)
        self.assertEqual(again.wait().code, support.STOPPED)
        self.assertFalse((run.folder / "run.lock").exists())

    def test_settings_cannot_change(self):
        whole = self.whole("--workers", 2, "--steps", 40)
        ended = self.anytime("train", "--resume", whole.folder, "--lr", 0.5, code=support.USAGE)
        self.assert_complaint(ended, "--lr")

    def test_a_finished_run_is_refused(self):
        whole = self.whole("--workers", 2, "--steps", 40)
        ended = self.anytime("train", "--resume", whole.folder, code=support.USAGE)
        self.assert_complaint(ended, "step 40")

    def test_a_folder_without_checkpoints_is_refused(self):
        ended = self.anytime("train", "--resume", "nowhere", code=support.MISSING)
        self.assert_complaint(ended, "no checkpoint")

    def test_a_damaged_checkpoint_is_reported_and_the_previous_one_used(self):
        whole = self.whole("--workers", 2, "--steps", 120, "--checkpoint-every", 50)
        newest = checkpoints(whole.folder)[0]
        damaged = bytearray(newest.read_bytes())
        damaged[len(damaged) // 2] ^= 4
        newest.write_bytes(damaged)
        ended = self.finish(whole.folder)
        self.assertLess(ended.result["resumed_at"], 120)
        self.assertIn(newest.name, ended.err)
        self.assertEqual(ended.result["params_hash"], whole.result["params_hash"])

    def test_data_that_changed_is_refused(self):
        table = self.folder / "data.csv"
        rows = [f"{i % 7},{i % 5},{i % 3}\n" for i in range(200)]
        for name, changed in (("value", rows[:99] + ["6,4,0\n"] + rows[100:]),
                              ("rows", rows[:-1])):
            with self.subTest(changed=name):
                table.write_text("a,b,label\n" + "".join(rows))
                run = self.train("--data", table, "--test-data", table, "--workers", 2, "--batch",
                                 8, "--steps", 20, "--quiet")
                self.finish(run.folder, "--steps", 30)
                table.write_text("a,b,label\n" + "".join(changed))
                ended = self.anytime("train", "--resume", run.folder, "--steps", 40,
                                     code=support.USAGE)
                self.assert_complaint(ended, "has changed since the checkpoint", "--init")

    def test_checkpoints_of_the_first_version_are_refused(self):
        whole = self.whole("--workers", 2, "--steps", 40)
        for path in checkpoints(whole.folder):
            without = re.sub(rb'"checkpoint_format": ?"2"', lambda m: b'"nothing":"x"'.ljust(
                len(m.group())), path.read_bytes()[:-32])
            self.assertNotIn(b"checkpoint_format", without)
            path.write_bytes(without + hashlib.sha256(without).digest())
        ended = self.anytime("train", "--resume", whole.folder, "--steps", 80, code=support.FORMAT)
        self.assert_complaint(ended, "written by anytime 0.1", "--init")

    def test_when_all_are_damaged_nothing_is_loaded(self):
        whole = self.whole("--workers", 2, "--steps", 120, "--checkpoint-every", 50)
        for path in checkpoints(whole.folder):
            path.write_bytes(path.read_bytes()[:-1])
        ended = self.anytime("train", "--resume", whole.folder, code=support.FORMAT)
        self.assert_complaint(ended, "seal")


if __name__ == "__main__":
    support.main()
