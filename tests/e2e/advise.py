#!/usr/bin/env python3
"""`anytime advise` and `anytime calibrate`: from a log to advice, and to a config for simulate.

Real runs would depend on the load of the machine; here the runs that are foreseen are simulated.
bench/foresight.py does the same with real processes.
"""
import contextlib
import gzip
import json
import random
import re
import resource
import statistics
import sys
import types
import unittest.mock

import support

EC2 = support.ROOT / "tests" / "data" / "ec2-fmb.csv.gz"
# What the published anytime-minibatch run on the same machines measured, T = 5.5 s.
EC2_AMB_STEP, EC2_AMB_SAMPLES = 6.717, 208.07


def write_log(path, times, columns="step,worker,seconds"):
    """One row per worker and step; times[step][worker]."""
    with open(path, "w", encoding="ascii") as file:
        file.write(columns + "\n")
        for step, row in enumerate(times, 1):
            for worker, seconds in enumerate(row):
                file.write(f"{step},{worker},{seconds:.6f}\n")
    return path


def noisy(factor, workers=6, steps=120, noise=0.01, seed=1):
    """Times of rounds that take factor(worker, step) seconds, with some noise."""
    draw = random.Random(seed)
    return [[factor(worker, step) * draw.uniform(1 - noise, 1 + noise)
             for worker in range(workers)] for step in range(1, steps + 1)]


def ceiling(times):
    every = [t for row in times for t in row]
    return statistics.mean(map(max, times)) * statistics.mean(1 / t for t in every)


class FakeModel:
    """What the documented script needs of a DDP model: backward calls the hook per bucket."""

    def register_comm_hook(self, state, hook):
        self.state, self.hook = state, hook

    def __call__(self, x):
        return self

    def backward(self):
        for bucket in range(3):
            self.hook(self.state, bucket)


class Advise(support.TestCase):
    def advise(self, *words, **options):
        return self.anytime("advise", *words, **options)

    def advise_json(self, *words):
        return json.loads(self.advise(*words, "--json").out)

    def gains(self, advice):
        return {row["strategy"]: row["gain"] for row in advice["strategies"]}

    def check_within_ceiling(self, advice):
        for strategy, gain in self.gains(advice).items():
            self.assertLessEqual(gain["mean"], advice["ceiling"] + 1e-9, strategy)
            self.assertLessEqual(gain["low"], gain["mean"], strategy)
            self.assertLessEqual(gain["mean"], gain["high"], strategy)

    # ---- honesty -------------------------------------------------------------------------------

    def test_equal_workers_have_nothing_to_gain(self):
        log = write_log(self.folder / "log.csv", noisy(lambda worker, step: 1))
        advice = self.advise_json(log)
        self.assertTrue(advice["advice"].startswith("nothing to gain"), advice["advice"])
        self.assertEqual(advice["command"], "")
        self.assertEqual(advice["slow_workers"], [])
        self.check_within_ceiling(advice)

    def test_the_ceiling_is_the_formula_and_bounds_every_gain(self):
        times = noisy(lambda worker, step: 1.4 if (step // 9 + worker) % 6 == 0 else 1)
        advice = self.advise_json(write_log(self.folder / "log.csv", times))
        self.assertAlmostEqual(advice["ceiling"], ceiling(times), places=4)
        self.check_within_ceiling(advice)
        gain = self.gains(advice)["amb"]
        self.assertGreater(gain["low"], 1.1)
        self.assertIn("amb would give", advice["advice"])
        percent = round(100 * (advice["ceiling"] - 1))
        self.assertIn(f"at most {percent} % can be gained here", advice["advice"])
        self.assertIn("--strategy amb", advice["command"])

    def test_a_straggler_is_named_with_the_step_at_which_it_began(self):
        times = noisy(lambda worker, step: 1.7 if worker == 4 and step >= 80 else 1)
        advice = self.advise_json(write_log(self.folder / "log.csv", times))
        slow, = advice["slow_workers"]
        self.assertEqual(slow["worker"], "4")
        self.assertLessEqual(abs(slow["since"] - 80), 2)
        self.assertIsNone(slow["until"])
        self.assertAlmostEqual(slow["factor"], 1.7, delta=0.05)
        self.assertIn("your stragglers are one machine, 4", advice["advice"])

    def test_a_log_of_a_cluster_scheduler_names_its_straggler(self):
        """In the form of published traces: normalised times, a row number, one step in ten logged,
        a second row of a worker and steps that lack workers; one of ten machines is slow."""
        times = noisy(lambda worker, step: 1.7 if worker == 6 and 150 <= step < 190
                      else 1.08 if worker < 3 else 1, workers=10, steps=250, noise=0.06)
        rows = [f"{10 * step + 1},{worker},25,{450 * seconds:.0f}\n"
                for step, row in enumerate(times, 1) for worker, seconds in enumerate(row)]
        del rows[2000:2004]
        log = self.folder / "job.csv"
        log.write_text(",time,worker,gpu,batch_time_norm\n" + "".join(
            f"{number},{row}" for number, row in enumerate(rows + rows[70:71])))
        advice = self.advise_json(log)
        self.assertEqual(advice["log"]["steps"], 249)
        notes = " ".join(advice["notes"])
        for words in ("1 row is ignored", "1 of 250 steps lack workers", "no absolute scale"):
            self.assertIn(words, notes)
        slow, = advice["slow_workers"]
        self.assertEqual(slow["worker"], "6")
        self.assertLessEqual(abs(slow["since"] - 1501), 50)  # five steps
        self.assertIn("your stragglers are one machine, 6", advice["advice"])
        self.check_within_ceiling(advice)
        amb = self.gains(advice)["amb"]
        self.assertGreater(amb["mean"], 1.1)
        self.assertIn("amb would give", advice["advice"])

    def test_pauses_and_slow_computing_are_told_apart(self):
        draw = random.Random(3)
        pauses = noisy(lambda worker, step: 3 if draw.random() < 0.2 else 1)
        slow = noisy(lambda worker, step: 3 if (step + 20 * worker) % 120 < 24 else 1)
        for times, expected in (pauses, "pause"), (slow, "slow"):
            advice = self.advise_json(write_log(self.folder / "log.csv", times))
            self.assertEqual(advice["pace"]["delays"], expected)
        forced = self.advise_json(self.folder / "log.csv", "--delays", "pause")
        self.assertEqual(forced["pace"]["delays"], "pause")

    # ---- foresight -----------------------------------------------------------------------------

    def simulate(self, strategy, name, *words):
        return self.anytime("simulate", "--strategy", strategy, "--data", "synthetic:6000,20,4",
                            "--workers", 6, "--batch", 32, "--micro-batch", 1, "--sample-time",
                            "1ms", "--latency", "500us", "--epochs", 4, "--seed", 5,
                            "--eval-every", 0, "--checkpoint-every", "none", *words, "--run",
                            self.folder / name, "--json", "--quiet").result

    def test_a_log_of_fmb_foresees_other_strategies(self):
        trace = write_log(self.folder / "trace.csv", columns="step,worker,batch_time_norm",
                          times=noisy(lambda w, step: 2 if (step + 17 * w) % 90 < 15 else 1))
        laws = {"niagara": ("--straggler", "niagara", "--straggler-scale", "30%"),
                "trace": ("--straggler", f"trace:{trace}")}
        inside, cases = 0, 0
        for name, law in laws.items():
            own = self.simulate("fmb", f"{name}-fmb", *law)["samples_per_second"]
            advice = self.advise_json(self.folder / f"{name}-fmb")
            rows = {row["strategy"]: row for row in advice["strategies"]}
            for strategy in ("fmb", "amb", "backup", "dbs", "async-timed"):
                with self.subTest(law=name, strategy=strategy):
                    actual = self.simulate(strategy, f"{name}-{strategy}-actual", *law)
                    rate, row = actual["samples_per_second"], rows[strategy]
                    self.assertAlmostEqual(row["samples_per_second"] / rate, 1, delta=0.05)
                    low, high = row["gain"]["low"] * 0.98, row["gain"]["high"] * 1.02
                    inside += low <= rate / own <= high
                    cases += 1
            self.assertIn("--strategy", advice["command"])
            self.assertIn(f"{name}-fmb-", advice["command"])
        self.assertGreaterEqual(inside, cases - 1)

    def test_strategies_are_left_out_whose_rounds_depend_on_more_than_time(self):
        log = write_log(self.folder / "log.csv", noisy(lambda w, step: 1 + 0.2 * (w == step % 6)))
        names = {row["strategy"] for row in self.advise_json(log)["strategies"]}
        self.assertLessEqual({"fmb", "amb", "backup", "quorum", "async", "ssp", "ringmaster",
                              "dbs"}, names)
        self.assertFalse(names & {"grow", "loss", "noise", "probe", "adasync", "hogwild",
                                  "amb-gossip", "fmb-gossip"})

    def test_a_run_by_gossip_is_compared_with_the_others(self):
        self.simulate("fmb-gossip", "own", "--straggler", "niagara", "--straggler-scale", "30%")
        rows = self.gains(self.advise_json(self.folder / "own"))
        self.assertEqual(rows["fmb-gossip"]["mean"], 1)
        self.assertNotIn("amb-gossip", rows)
        self.assertGreater(rows["amb"]["mean"], 1.05)

    def test_a_run_of_two_strategies_is_refused(self):
        self.simulate("fmb", "two", "--switch", "amb@step=20")
        ended = self.advise(self.folder / "two", code=support.FORMAT)
        self.assert_complaint(ended, "has two strategies", "--switch")

    def test_of_many_equal_workers_none_is_called_slow(self):
        log = write_log(self.folder / "log.csv",
                        noisy(lambda w, step: 1, workers=400, steps=12, noise=0.3))
        self.assertEqual(self.advise_json(log)["slow_workers"], [])

    # ---- calibrate -----------------------------------------------------------------------------

    def test_the_published_amb_run_is_predicted_from_the_fmb_log_alone(self):
        config = self.folder / "ec2.conf"
        config.write_text(self.anytime("calibrate", EC2).out)
        result = self.anytime("simulate", "--config", config, "--strategy", "amb", "--time-limit",
                              "5.5s", "--cut", "after", "--steps", 1500, "--record", "none",
                              "--run", self.folder / "amb", "--json", "--quiet").result
        samples = 16 * result["mean_batch"]  # the log counts batches of 16
        self.assertAlmostEqual(result["step_seconds"]["mean"] / EC2_AMB_STEP, 1, delta=0.02)
        self.assertAlmostEqual(samples / EC2_AMB_SAMPLES, 1, delta=0.02)

    def test_calibrate_finds_what_a_log_was_made_with(self):
        result = json.loads(self.anytime("calibrate", EC2, "--json").out)
        straggler = result["options"]["straggler"]
        mix = [[float(x) for x in part.split(",")]
               for part in re.search(r"mix:([^+]*)", straggler).group(1).split(";")]
        mix.sort()
        for (mean, _, weight), expected in zip(mix, ((0, 0.4), (0.32, 0.3), (2, 0.2), (5, 0.1)),
                                               strict=True):
            self.assertAlmostEqual(mean, expected[0], delta=0.1)
            self.assertAlmostEqual(weight, expected[1], delta=0.03)
        speeds = [float(f) for f in re.search(r"speed:([^+]*)", straggler).group(1).split(",")]
        self.assertEqual(sorted(range(10), key=lambda i: speeds[i])[-2:], [4, 8])
        self.assertAlmostEqual(result["simulated"]["step_seconds"]
                               / result["measured"]["step_seconds"], 1, delta=0.04)

    def test_a_log_of_a_run_is_calibrated_and_repeated(self):
        self.simulate("fmb", "run", "--straggler", "speed:1,1,1,1,1,2+exp:0,0.01")
        text = self.anytime("calibrate", self.folder / "run").out
        found = re.search(r"simulated by repeating the log: .* \(([-+][0-9.]+) %\)", text)
        self.assertLess(abs(float(found.group(1))), 1, text)

    # ---- forms of logs and results -------------------------------------------------------------

    def test_files_per_worker_units_and_packed_files_give_the_same_advice(self):
        times = noisy(lambda worker, step: 1.5 if worker == 2 else 1, workers=4, steps=60)
        whole = write_log(self.folder / "whole.csv", times)
        parts = []
        for worker in range(4):
            parts.append(self.folder / f"rank{worker}.csv")
            rows = [f"{step},{worker},{1000 * row[worker]:.3f}\n"
                    for step, row in enumerate(times, 1)]
            parts[-1].write_text("step,rank,batch_time\n" + "".join(rows))
        packed = self.folder / "whole.csv.gz"
        packed.write_bytes(gzip.compress(whole.read_bytes()))
        expected = self.advise_json(whole)
        for words in ([packed], [*parts, "--unit", "ms"]):
            advice = self.advise_json(*words)
            self.assertEqual(self.gains(advice).keys(), self.gains(expected).keys())
            for strategy, gain in self.gains(advice).items():
                self.assertAlmostEqual(gain["mean"], self.gains(expected)[strategy]["mean"],
                                       places=3)
            self.assertAlmostEqual(advice["log"]["step_seconds"],
                                   expected["log"]["step_seconds"], places=3)

    def test_the_documented_python_writes_a_log_that_is_read(self):
        """With stand-ins for the few functions of PyTorch that it calls."""
        page = (support.ROOT / "docs" / "guide" / "advise.md").read_text()
        code = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
        hooks = types.ModuleType("default_hooks")
        hooks.allreduce_hook = lambda group, bucket: bucket
        code = re.sub(r"from torch\S* import", "from default_hooks import", code)
        for rank in range(3):
            model = FakeModel()
            with unittest.mock.patch.dict(sys.modules, default_hooks=hooks), \
                    contextlib.chdir(self.folder):
                exec(code, {"rank": rank, "model": model,  # pylint: disable=exec-used
                            "loss_fn": lambda output, y: output,
                            "loader": [([0] * 8, [0] * 8)] * 20})
        advice = self.advise_json(*(self.folder / f"rank{rank}.csv" for rank in range(3)))
        self.assertEqual((advice["log"]["workers"], advice["log"]["steps"]), (3, 20))
        self.assertEqual(advice["log"]["batch"], 8)

    def test_the_table_the_page_and_the_cost(self):
        times = noisy(lambda worker, step: 1.5 if worker == 2 else 1, workers=4, steps=60)
        log = write_log(self.folder / "<b>&.csv", times)
        page = self.folder / "page.html"
        shown = self.advise(log, "--html", page, "--cost", "3.5").out
        for words in ("samples/s", "cost/million", "95 % intervals", "advice: ", "worker 2: 1.5"):
            self.assertIn(words, shown)
        html = page.read_text()
        self.assertIn("&lt;b>&amp;.csv", html)
        self.assertNotIn("<b>", html)
        self.assertIn("<svg", html)
        advice = self.advise_json(log, "--cost", "3.5")
        row = advice["strategies"][0]
        self.assertAlmostEqual(row["cost_per_million_samples"],
                               1e6 / row["samples_per_second"] / 3600 * 4 * 3.5, places=3)

    def test_a_log_without_scale_is_in_mean_rounds(self):
        times = noisy(lambda worker, step: 400 + 100 * (worker == 1), workers=4, steps=60)
        log = write_log(self.folder / "log.csv", times, "time,worker,batch_time_norm")
        advice = self.advise_json(log)
        self.assertTrue(advice["log"]["normalised"])
        self.assertAlmostEqual(advice["log"]["step_seconds"], 500 / 425, delta=0.02)
        self.assertAlmostEqual(advice["ceiling"], ceiling(times), places=3)
        again = self.advise_json(write_log(log, times), "--normalised")
        self.assertEqual(self.gains(again), self.gains(advice))

    def test_a_log_of_five_gigabytes_is_refused_in_little_memory(self):
        def bounded():
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
        head = "step,worker,seconds\n1,0,1\n1,1,1\n"
        for name, start, complaint in (("hole", head, "line 4 is longer"),
                                       ("line", "#", "line 1 is longer")):
            log = self.folder / f"{name}.csv"
            log.write_text(start)
            with open(log, "r+b") as file:
                file.truncate(5 << 30)  # sparse: takes no space
            self.assert_complaint(self.advise(log, code=support.FORMAT, preexec_fn=bounded),
                                  complaint)
        endless = self.folder / "endless.csv.gz"  # 5 GB of rows, packed
        block = gzip.compress(b"1,0,1\n" * 180_000)
        with open(endless, "wb") as file:
            file.write(gzip.compress(b"step,worker,seconds\n"))
            for _ in range(5000):
                file.write(block)
        self.assert_complaint(self.advise(endless, code=support.FORMAT, preexec_fn=bounded),
                              "rows")

    def test_bad_logs_get_a_sentence_each(self):
        good = "step,worker,seconds\n" + "".join(f"{s},{w},1\n" for s in range(9)
                                                 for w in range(3))
        stamped = "step,worker,seconds,time\n" + "".join(
            f"{s},{w},500,{s}\n" for s in range(9) for w in range(3))
        bad = {"empty": ("", "is empty"), "text": (good + "9,0,fast\n", "not a number: 'fast'"),
               "nan": (good + "9,0,nan\n", "not a number: 'nan'"),
               "zero": (good + "9,0,0\n", "the time is zero"),
               "negative": (good + "9,0,-1\n", "the time is negative"),
               "missing": (good + "".join(f"{s},9,1\n" for s in range(20, 40)),
                           "worker 9 is missing in step 0"),
               "duplicates": (good + good.split("\n", 1)[1], "already has a row"),
               "unit": (stamped, "according to the time stamps"),
               "columns": ("a,b\n1,2\n", "there is no column"),
               "short": ("step,worker,seconds\n1,0,1\n1,1,1\n", "only 1 steps"),
               "alone": ("step,worker,seconds\n1,0,1\n2,0,1\n3,0,1\n", "only one worker"),
               "binary": ("step,worker,seconds\n1,\0,1\n", "zero bytes")}
        for name, (text, complaint) in bad.items():
            with self.subTest(log=name):
                path = self.folder / f"{name}.csv"
                path.write_text(text)
                self.assert_complaint(self.advise(path, code=support.FORMAT), complaint)
        self.assert_complaint(self.advise(self.folder / "nowhere.csv", code=support.MISSING),
                              "no such file or folder", "CSV file of step times")
        self.advise(self.folder, code=support.MISSING)
        self.advise(code=support.USAGE)
        self.advise(self.folder / "nan.csv", "--unit", "days", code=support.USAGE)


if __name__ == "__main__":
    support.main()
