#!/usr/bin/env python3
"""Recorded runs replay exactly: the decisions of the hub depend only on its events."""
import json
import os
import re
import signal

import support

QUIET = ("--quiet", "--json")
LONG = ("--steps", 10 ** 9)  # until the test ends it
DATA = ("--data", "synthetic:2000,20,5", "--batch", 32, "--micro-batch", 4)


class TestCase(support.TestCase):
    def assert_replays(self, ended, **expected):
        """Replaying the log gives the recorded actions and the totals in result.json."""
        replay = json.loads(self.anytime("replay", ended.folder, "--json").out)
        result = ended.result
        self.assertTrue(replay["agrees"] and replay["complete"] and replay["result_checked"],
                        replay)
        self.assertIsNone(replay["difference"])
        self.assertEqual(replay["steps"], result["steps"], replay)
        self.assertEqual(replay["trace_hash"], result["trace_hash"], replay)
        self.assertEqual(replay["samples"],
                         {key: result["samples"][key] for key in ("used", "dropped")}, replay)
        for key, value in expected.items():
            self.assertEqual(result[key], value, ended)
        return replay


class Local(TestCase):
    STRATEGIES = {
        "fmb": ("--strategy", "fmb"),
        "amb": ("--strategy", "amb", "--time-limit", "2ms"),
        "amb without --time-limit": ("--strategy", "amb"),
    }

    def test_undisturbed_runs_replay(self):
        for name, options in self.STRATEGIES.items():
            with self.subTest(strategy=name):
                ended = self.train(*DATA, *QUIET, *options, "--workers", 3, "--steps", 60,
                                   "--sample-time", "20us")
                self.assert_replays(ended, steps=60)

    def test_a_run_in_one_process_replays(self):
        for options in self.STRATEGIES.values():
            ended = self.train(*DATA, *QUIET, *options, "--workers", 0, "--steps", 100,
                               "--eval-every", 10)
            self.assert_replays(ended, steps=100, workers=0)

    def test_a_run_whose_workers_are_killed_replays(self):
        for name, options in self.STRATEGIES.items():
            with self.subTest(strategy=name):
                run = self.start(*DATA, *QUIET, *LONG, *options, "--workers", 3,
                                 "--sample-time", "20us")
                for worker in (2, 1, 2):
                    row = run.wait_working()[worker]
                    os.kill(row["pid"], signal.SIGKILL)
                    run.wait_until(lambda: run.workers()[worker]["incarnation"] >
                                   row["incarnation"], f"worker {worker} is replaced")
                run.signal(signal.SIGINT)
                self.assert_replays(run.wait(), stopped="signal", respawns=3)

    def test_a_run_whose_worker_freezes_replays(self):
        run = self.start(*DATA, *QUIET, *LONG, "--workers", 3, "--lease", "300ms",
                         "--sample-time", "20us")
        pid = run.wait_working()[2]["pid"]
        os.kill(pid, signal.SIGSTOP)
        run.wait_until(lambda: run.workers()[2]["pid"] != pid, "worker 2 is replaced")
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assert_replays(ended)
        self.assertGreaterEqual(ended.result["evictions"], 1, ended)

    def test_a_run_that_lost_all_its_workers_replays(self):
        run = self.start(*DATA, *QUIET, *LONG, "--workers", 2, "--no-respawn",
                         "--sample-time", "1ms")
        for row in run.wait_working().values():
            os.kill(row["pid"], signal.SIGKILL)
        self.assert_replays(run.wait(), stopped="no workers")

    def test_a_run_that_is_stopped_replays(self):
        for name, options in self.STRATEGIES.items():
            with self.subTest(strategy=name):
                run = self.start(*DATA, *QUIET, *LONG, *options, "--workers", 2,
                                 "--sample-time", "20us")
                run.wait_working()
                run.signal(signal.SIGINT)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_replays(ended, stopped="signal")

    def test_a_run_with_evaluations_that_reaches_its_targets_replays(self):
        for workers in (0, 2):
            ended = self.train(*DATA, *QUIET, "--workers", workers, *LONG, "--sample-time",
                               "50us", "--eval-every", 5, "--target", "accuracy=0.8", "--lr", 0.1)
            self.assert_replays(ended, stopped="target")

    def test_asynchronous_runs_replay(self):
        for strategy in ("backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp"):
            with self.subTest(strategy=strategy):
                ended = self.train(*DATA, *QUIET, "--strategy", strategy, "--workers", 3, "--steps",
                                   100, "--sample-time", "20us")
                self.assert_replays(ended, steps=100)

    def test_a_run_that_ends_by_time_replays(self):
        ended = self.train(*DATA, *QUIET, "--workers", 2, "--seconds", "200ms",
                           "--sample-time", "20us")
        self.assert_replays(ended, stopped="seconds")


class Simulated(TestCase):
    """Every strategy that the simulation supports."""

    def strategies(self):
        known = re.findall(r'^    \{"([a-z-]+)",',
                           (support.ROOT / "src/step/strategy.c").read_text(), re.M)
        self.assertGreaterEqual(len(known), 15)
        return [name for name in known if name != "hogwild"]  # needs shared memory

    def simulate(self, *arguments):
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        ended = self.anytime("simulate", *DATA, *QUIET, "--workers", 5, *arguments, "--run", folder)
        ended.folder = folder
        return ended

    def test_every_strategy_replays(self):
        for strategy in self.strategies():
            with self.subTest(strategy=strategy):
                ended = self.simulate("--strategy", strategy, "--steps", 50)
                self.assert_replays(ended, strategy=strategy, steps=50)

    def test_every_strategy_replays_with_slow_workers_and_a_slow_network(self):
        for strategy in self.strategies():
            with self.subTest(strategy=strategy):
                ended = self.simulate("--strategy", strategy, "--steps", 50, "--straggler",
                                      "niagara", "--straggler-scale", "20%", "--latency", "10us",
                                      "--bandwidth", "1e9", "--eval-every", 10)
                self.assert_replays(ended, strategy=strategy, steps=50)

    def test_every_strategy_replays_with_dying_and_frozen_workers_and_lr_scale(self):
        for strategy in self.strategies():
            with self.subTest(strategy=strategy):
                ended = self.simulate("--strategy", strategy, "--steps", 50, "--lr-scale", "linear",
                                      "--faults", "die:2@1us,freeze:3@2us+50us")
                self.assert_replays(ended, strategy=strategy, steps=50)


def crc32c(data):
    """The checksum of the head of a log, bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Modified(TestCase):
    def short_run(self, *arguments):
        return self.train(*DATA, *QUIET, "--workers", 2, "--steps", 20, *arguments)

    def test_agreement_is_printed_in_one_line(self):
        ended = self.short_run()
        replay = self.anytime("replay", ended.folder)
        self.assertRegex(replay.out, r"^replayed \d+ events, \d+ actions, 20 steps: every action "
                                   rf"agrees; trace_hash {ended.result['trace_hash']}\n$")
        self.assertEqual(replay.err, "")

    def test_another_plan_is_detected(self):
        """The same events under another rule: stale gradients have less weight."""
        run = self.train(*DATA, *QUIET, "--workers", 3, "--steps", 200, "--strategy", "async",
                         "--sample-time", "20us")
        log = run.folder / "events.bin"
        log.write_bytes(self.with_scale(log.read_bytes()))
        replay = self.anytime("replay", run.folder, code=support.FAILED)
        lines = replay.out.splitlines()
        self.assertEqual(len(lines), 3, replay)
        self.assertRegex(lines[0], r"^events.bin, event \d+ at \d+\.\d+ s: MESSAGE worker \d",
                         replay)
        self.assertRegex(lines[1], r"^  recorded: ADD worker \d.* weight 1$", replay)
        self.assertRegex(lines[2], r"^  replayed: ADD worker \d.* weight 0\.\d+$", replay)
        self.assert_complaint(replay, run.folder, "differ at event")
        replay = json.loads(self.anytime("replay", run.folder, "--json", code=support.FAILED).out)
        self.assertFalse(replay["agrees"])
        self.assertEqual(f"  recorded: {replay['difference']['recorded']}", lines[1])

    @staticmethod
    def with_scale(log):
        """The log with another rule in its header, and the size of the header adjusted."""
        size = int.from_bytes(log[8:12], "little")
        head, rest = log[16:16 + size], log[16 + size:]
        head = head.replace(b'"stale":"use"', b'"stale":"scale"', 1)
        return (log[:8] + len(head).to_bytes(4, "little") + crc32c(head).to_bytes(4, "little") +
                head + rest)

    def test_a_changed_result_is_detected(self):
        ended = self.short_run()
        path = ended.folder / "result.json"
        result = ended.result
        result["samples"]["used"] += 1
        path.write_text(json.dumps(result))
        replay = self.anytime("replay", ended.folder, code=support.FAILED)
        self.assert_complaint(replay, "samples.used", result["samples"]["used"])

    def test_a_truncated_log_agrees_up_to_the_cut(self):
        ended = self.short_run()
        log = ended.folder / "events.bin"
        whole = log.read_bytes()
        head = 16 + int.from_bytes(whole[8:12], "little")
        for size in (head, head + 1, (head + len(whole)) // 2, len(whole) - 60):
            log.write_bytes(whole[:size])
            replay = self.anytime("replay", ended.folder)
            self.assertIn("every action agrees", replay.out, replay)
            self.assertIn("event log is incomplete", replay.err, replay)
            replay = json.loads(self.anytime("replay", ended.folder, "--json").out)
            self.assertEqual((replay["agrees"], replay["complete"]), (True, False), replay)

    def test_the_log_of_a_killed_hub_agrees_up_to_its_end(self):
        run = self.start(*DATA, *QUIET, *LONG, "--workers", 2, "--sample-time", "20us")
        run.wait_until(lambda: (run.folder / "events.bin").exists() and
                       (run.folder / "events.bin").stat().st_size > 100_000, "the log has grown")
        run.signal(signal.SIGKILL)
        run.wait()
        replay = self.anytime("replay", run.folder)
        self.assertIn("every action agrees", replay.out, replay)
        self.assertIn("event log is incomplete", replay.err, replay)

    def test_a_file_that_is_no_log_is_refused(self):
        ended = self.short_run()
        (ended.folder / "events.bin").write_bytes(b"not a log at all")
        replay = self.anytime("replay", ended.folder, code=support.FORMAT)
        self.assert_complaint(replay, "events.bin")

    def test_missing_runs_and_logs_are_reported(self):
        self.assert_complaint(self.anytime("replay", "nowhere", code=support.MISSING), "nowhere")
        os.mkdir(self.folder / "empty")
        self.assert_complaint(self.anytime("replay", "empty", code=support.MISSING),
                              "events.bin", "--record full")
        self.assert_complaint(self.anytime("replay", code=support.USAGE), "one run")
        self.assert_complaint(self.anytime("replay", "a", "b", code=support.USAGE), "one run")

    def test_a_run_without_a_log_is_explained(self):
        for record in ("steps", "none"):
            ended = self.short_run("--record", record)
            self.assert_complaint(self.anytime("replay", ended.folder, code=support.MISSING),
                                  f"--record {record}", "--record full")


if __name__ == "__main__":
    support.main()
