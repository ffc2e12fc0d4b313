#!/usr/bin/env python3
"""--switch: the rest of a run under another strategy, in every world, resumed and replayed."""
import json
import os
import shutil
import signal

import support
from support import mpi

JOB = (*support.SMALL, "--micro-batch", 8, "--quiet")
PAIRS = (("fmb", "async@step=40"), ("async", "fmb@epoch=1"), ("amb", "ssp@step=60"),
         ("fmb", "backup:2@loss=0.5"), ("ringmaster", "quorum@step=70"),
         ("fmb", "async-timed@step=30"), ("dbs", "adasync@step=55"))


class Switching(support.TestCase):
    def assert_switched(self, ended, strategy, switch_to):
        switch = ended.result["switch"]
        name, when = switch_to.split("@")
        self.assertEqual(ended.result["strategy"], strategy)
        self.assertEqual(switch["strategy"], name.split(":")[0])
        self.assertEqual(switch["when"], when)
        self.assertLess(0, switch["step"], ended)
        self.assertLess(switch["step"], ended.result["steps"], ended)
        self.assert_ledger(ended)

    def assert_replays(self, ended):
        replay = json.loads(self.anytime("replay", ended.folder, "--json").out)
        self.assertTrue(replay["agrees"] and replay["complete"], replay)
        self.assertEqual(replay["trace_hash"], ended.result["trace_hash"])


class VirtualTime(Switching):
    def simulate(self, strategy, switch_to, *arguments):
        return self.train(*JOB, "--world", "sim", "--workers", 4, "--strategy", strategy,
                          "--switch", switch_to, "--straggler", "exp:0,0.0001", "--steps", 130,
                          *arguments)

    def test_pairs_switch_and_replay(self):
        for strategy, switch_to in PAIRS:
            with self.subTest(strategy=strategy, switch=switch_to):
                ended = self.simulate(strategy, switch_to)
                self.assert_switched(ended, strategy, switch_to)
                self.assert_replays(ended)

    def test_a_run_resumed_before_or_after_its_switch_ends_with_the_same_bits(self):
        for strategy, switch_to in PAIRS:
            for step in (40, 60):  # the checkpoint is of step 50
                with self.subTest(strategy=strategy, switch=switch_to, step=step):
                    whole = self.simulate(strategy, f"{switch_to.split('@')[0]}@step={step}",
                                          "--checkpoint-every", 50, "--steps", 80)
                    ended = self.resume(self.cut_back(whole), "--quiet").wait()
                    self.assertEqual(ended.code, support.DONE, ended)
                    self.assertLess(0, ended.result["resumed_at"])
                    for key in ("params_hash", "trace_hash", "samples", "switch"):
                        self.assertEqual(whole.result[key], ended.result[key], (key, ended))
                    self.assert_replays(ended)

    def test_size_rules_measure_from_the_switch_on(self):
        """What was before it is not a part of their first epoch, neither its time nor its end."""
        ended = self.train(*JOB, "--world", "sim", "--workers", 4, "--switch", "probe@epoch=1.5",
                           "--latency", "5ms", "--sample-time", "100us", "--epochs", 7)
        sizes = [row["num_samples"] for row in ended.table("worker_stats.csv")
                 if row["rank"] == "1"]
        epoch = {size: 2000 / 4 / size for size in (32, 64, 128, 256)}
        self.assertEqual(list(dict.fromkeys(sizes)), [str(size) for size in epoch])
        self.assertAlmostEqual(sizes.count("32"), 2 * epoch[32], delta=2)
        for size in (64, 128):
            self.assertAlmostEqual(sizes.count(str(size)), epoch[size], delta=1)
        self.assert_replays(ended)

    def cut_back(self, whole):
        """The folder as it was before its last checkpoint was written."""
        folder = whole.folder.with_name(whole.folder.name + "-cut")
        shutil.copytree(whole.folder, folder)
        (folder / "result.json").unlink()
        max((folder / "checkpoint").glob("step-*.safetensors")).unlink()
        return folder

    def test_before_the_switch_the_run_is_that_of_the_first_strategy(self):
        first = self.train(*JOB, "--world", "sim", "--workers", 4, "--steps", 40)
        both = self.simulate("fmb", "async@step=40")
        losses = [[row["loss"] for row in ended.table("master_stats.csv") if row["loss"]][:40]
                  for ended in (first, both)]
        self.assertEqual(*losses)
        counts = [row["worker_count"] for row in both.table("collect_stats.csv")]
        self.assertEqual((set(counts[:40]), set(counts[40:])), ({"4"}, {"1"}))


class RealTime(Switching):
    def test_pairs_switch_and_replay(self):
        for strategy, switch_to in PAIRS:
            with self.subTest(strategy=strategy, switch=switch_to):
                ended = self.train(*JOB, "--workers", 3, "--strategy", strategy, "--switch",
                                   switch_to, "--steps", 200, "--sample-time", "10us")
                self.assert_switched(ended, strategy, switch_to)
                self.assert_replays(ended)

    def test_a_worker_killed_after_the_switch_is_replaced(self):
        run = self.start(*JOB, "--workers", 3, "--switch", "async@step=5", "--steps", 10 ** 9)
        run.wait_steps(50)
        worker = run.workers()[2]
        os.kill(worker["pid"], signal.SIGKILL)
        run.wait_until(lambda: run.workers()[2]["incarnation"] > worker["incarnation"],
                       "the replacement")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.result["switch"]["step"], 5)
        self.assert_ledger(ended)

    def test_one_process_cannot_run_ahead_of_itself(self):
        ended = self.train(*JOB, "--workers", 0, "--switch", "async@step=5", "--steps", 9, code=2)
        self.assert_complaint(ended, "--release free needs a worker that runs ahead of the hub")

    def test_conditions_that_cannot_be_met_are_refused(self):
        ended = self.anytime("simulate", "--model", "none:1000", "--sample-time", "1ms", "--steps",
                             9, "--switch", "async@loss=1", "--run", self.folder / "a", code=2)
        self.assert_complaint(ended, "--switch by loss needs a model that has one")


class Ranks(mpi.TestCase, Switching):
    def test_ranks_switch_too(self):
        for strategy, switch_to in PAIRS:
            with self.subTest(strategy=strategy, switch=switch_to):
                ended = self.train(*JOB, "--strategy", strategy, "--switch", switch_to, "--steps",
                                   200)
                self.assert_switched(ended, strategy, switch_to)


if __name__ == "__main__":
    mpi.main()
