#!/usr/bin/env python3
"""The trace of a run: valid for Perfetto's JSON importer, and true to the run."""
import collections
import json
import os
import signal

import support

PHASES = {"X", "i", "s", "f", "M"}
META = {"process_name", "thread_name", "thread_sort_index"}
NAMES = {"send", "wait", "install", "sleep", "compute", "compute (dropped)", "gather", "apply",
         "evaluate"}


class Trace:
    """A parsed trace; violations of the format are assertion errors."""

    def __init__(self, path):
        text = path.read_text(encoding="utf-8")
        self.size = len(text)
        self.document = json.loads(text, parse_constant=self.refuse)
        self.events = self.document["traceEvents"]
        self.other = self.document["otherData"]
        self.slices = collections.defaultdict(list)
        self.rows, self.ends = {}, {"s": {}, "f": {}}
        for event in self.events:
            self.take(event)
        for row, slices in self.slices.items():
            assert row in self.rows, f"row {row} has no name"
            self.check_row(slices)
        self.check_arrows()

    @staticmethod
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    def take(self, event):
        phase, row = event["ph"], (event["pid"], event["tid"])
        assert phase in PHASES, event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        assert isinstance(event["name"], str) and event["name"], event
        if phase == "M":
            assert event["name"] in META, event
            if event["name"] == "thread_name":
                self.rows[row] = event["args"]["name"]
            return
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0, event
        if phase == "X":
            assert event["dur"] >= 0 and event["name"] in NAMES, event
            self.slices[row].append(event)
        elif phase == "i":
            assert event["s"] in "gpt", event
        else:
            assert event["cat"] and event["id"] not in self.ends[phase], event
            assert phase == "s" or event["bp"] == "e", event
            self.ends[phase][event["id"]] = event

    @staticmethod
    def check_row(slices):
        """Slices of one row neither overlap nor nest, except for rounding errors."""
        slices.sort(key=lambda event: (event["ts"], event["dur"]))
        end = 0
        for event in slices:
            assert event["ts"] >= end - 0.002, (event, end)
            end = max(end, event["ts"] + event["dur"])

    def within(self, event, names):
        """True when this end of an arrow is inside a slice with one of these names."""
        for one in self.slices[event["pid"], event["tid"]]:
            if one["name"] in names and (one["ts"] - 0.002 <= event["ts"]
                                         <= one["ts"] + one["dur"] + 0.002):
                return True
        return False

    def check_arrows(self):
        assert set(self.ends["s"]) == set(self.ends["f"])
        for one in list(self.ends["s"])[:500]:
            begin, end = self.ends["s"][one], self.ends["f"][one]
            assert begin["ts"] <= end["ts"], (begin, end)
            assert self.within(begin, {"compute"}), begin
            assert self.within(end, {"apply"}), end

    def named(self, name, phase="X"):
        return [event for event in self.events if event["ph"] == phase and event["name"] == name]

    def instants(self, start):
        return [event for event in self.events
                if event["ph"] == "i" and event["name"].startswith(start)]


class Traces(support.TestCase):
    def trace(self, ended, name="trace.json"):
        return Trace(ended.folder / name)

    def assert_accounts(self, ended):
        """Each used gradient has an arrow, and dropped ones are marked."""
        trace, result = self.trace(ended), ended.result
        gradients = sum(int(row["worker_count"]) for row in ended.table("collect_stats.csv"))
        self.assertEqual(len(trace.ends["s"]), gradients, ended)
        self.assertEqual(len(trace.named("apply")), result["steps"])
        dropped = sum(event["args"]["samples"] for event in trace.instants("dropped"))
        self.assertEqual(dropped, result["samples"]["dropped"])
        self.assertEqual(trace.other["events_omitted"], 0)
        reported, drawn = collections.Counter(), collections.Counter()
        for row in ended.table("worker_stats.csv"):
            sleep = float(row["sleep_time"])
            reported[int(row["rank"]), "sleep"] += sleep
            reported[int(row["rank"]), "compute"] += float(row["compute_time"]) - sleep
        for (process, worker), slices in trace.slices.items():
            for event in slices if process == 2 else ():
                drawn[worker, event["name"].split()[0]] += event["dur"] / 1e6
        for key, seconds in reported.items():
            self.assertAlmostEqual(drawn[key], seconds, delta=0.05 * seconds + 1e-4, msg=key)
        return trace

    def test_every_strategy_in_virtual_time(self):
        for strategy in ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb",
                         "async-timed", "ssp", "dbs"):
            with self.subTest(strategy=strategy):
                ended = self.train(*support.SMALL, "--world", "sim", "--workers", 5, "--steps", 60,
                                   "--micro-batch", 8, "--strategy", strategy, "--sample-time",
                                   "1ms", "--straggler", "exp:0,0.05", "--latency", "2ms",
                                   "--bandwidth", "1e6", "--eval-every", 20, "--quiet")
                self.assert_accounts(ended)

    def test_processes_on_this_machine(self):
        """A report that a busy machine delivers late shortens the slice of its round, so rounds are
        much longer than such delays."""
        for strategy in ("fmb", "amb", "async"):
            with self.subTest(strategy=strategy):
                ended = self.train(*support.SMALL, "--workers", 3, "--steps", 100, "--strategy",
                                   strategy, "--straggler", "exp:0,1ms", "--sample-time", "300us",
                                   "--eval-every", 50, "--quiet")
                trace = self.assert_accounts(ended)
                self.assertEqual({"hub", "evaluator", "worker 1", "worker 2", "worker 3"},
                                 set(trace.rows.values()))
                self.assertTrue(all(event["dur"] > 0 for event in trace.named("apply")))
                self.assertIn("no clock of another host", trace.other["clock"])
                self.assertEqual(set(trace.other["offset_uncertainty_us"]["worker"]),
                                 {"1", "2", "3"})

    def test_a_killed_worker_shows(self):
        run = self.start(*support.SMALL, "--workers", 2, "--steps", 10 ** 9, "--sample-time",
                         "100us", "--quiet")
        pid = run.wait_working()[2]["pid"]
        run.wait_steps(20)
        os.kill(pid, signal.SIGKILL)
        run.wait_until(lambda: run.workers()[2]["incarnation"] == 2, "worker 2 is replaced")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        trace = self.trace(ended)
        lost, = [event for event in trace.named("lost", "i") if event["tid"] == 2]
        self.assertIn("signal 9", lost["args"]["how"])
        joined = [event for event in trace.named("joined", "i") if event["tid"] == 2]
        self.assertEqual([event["args"]["incarnation"] for event in joined], [1, 2])
        self.assertTrue(trace.named("stop requested", "i"))

    def test_a_resumed_run_is_one_timeline(self):
        first = self.train(*support.SMALL, "--workers", 2, "--steps", 30)
        self.anytime("train", "--resume", first.folder, "--steps", 60, "--quiet")
        trace = self.trace(first)
        self.assertEqual([event["args"]["step"] for event in trace.named("apply")],
                         list(range(1, 61)))
        self.assertEqual(len(trace.named("resumed", "i")), 1)

    def test_a_report_writes_as_much_as_asked_for(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 200, "--sample-time", "10us",
                           "--quiet")
        whole = self.trace(ended)
        for name, options, written in (("all", (), whole.other["events"]),
                                       ("some", ("--trace-events", 300), 300),
                                       ("none", ("--trace-events", 0), None)):
            done = self.anytime("report", ended.folder, "--out", name, *options)
            path = self.folder / name / "trace.json"
            self.assertEqual(path.exists(), written is not None)
            if written is None:
                continue
            trace = Trace(path)
            self.assertEqual(trace.other["events"] + trace.other["events_omitted"],
                             whole.other["events"])
            self.assertLessEqual(trace.other["events"], written)
            self.assertGreaterEqual(trace.other["events"], written - 1)
            self.assertEqual("--trace-events" in done.err, name == "some", done)
            self.assertEqual(len(trace.instants("truncated")), name == "some")

    def test_a_report_begins_where_asked_for(self):
        ended = self.train(*support.SMALL, "--world", "sim", "--workers", 2, "--steps", 100,
                           "--sample-time", "1ms", "--quiet")
        middle = ended.result["seconds"] / 2
        self.anytime("report", ended.folder, "--out", "late", "--trace-from", f"{middle}s")
        steps = [event["args"]["step"] for event in Trace(self.folder / "late" /
                                                          "trace.json").named("apply")]
        self.assertEqual(steps[-1], 100)
        self.assertAlmostEqual(steps[0], 50, delta=2)

    def test_a_large_run_gives_a_bounded_trace(self):
        steps = 50 if support.is_sanitized() else 1000
        ended = self.train("--world", "sim", "--model", "none:1000", "--data",
                           "synthetic:2000,20,5", "--workers", 1000, "--steps", steps, "--batch",
                           4, "--straggler", "exp:0,0.1", "--sample-time", "1ms", "--quiet")
        self.assertFalse((ended.folder / "trace.json").exists(), "too large for a browser")
        self.anytime("report", ended.folder, "--out", "large")
        trace = Trace(self.folder / "large" / "trace.json")
        self.assertLess(trace.size, 40e6)
        self.assertGreater(trace.other["events"], 199000)
        self.assertLessEqual(trace.other["events"], 200000)
        self.assertGreater(trace.other["events_omitted"], 1000 * steps)
        self.assertEqual(len(trace.instants("truncated")), 1)


if __name__ == "__main__":
    support.main()
