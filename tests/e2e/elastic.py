#!/usr/bin/env python3
"""Workers that come and go during a run."""
import json
import os
import signal

import support

STRATEGIES = (*support.GRADIENTS, *support.LOCAL_STEPS)
SMALL = (*support.SMALL, "--micro-batch", 8, "--sample-time", "1ms")
NETWORK = ("--latency", "2ms", "--comm-delay", "0.003")
# Workers 5 and 6 join; 2 dies for good, 5 dies and comes back.
TURNOVER = ("--workers", 4, "--workers-max", 6, "--no-respawn", "--faults",
            "join:5@200ms,join:6@500ms,die:2@700ms,die:5@900ms,join:5@1.2s")


def by_id(result):
    return {row["id"]: row for row in result["worker"]}


class Elastic(support.TestCase):
    def simulate(self, *arguments, **options):
        return self.train("--world", "sim", *SMALL, *arguments, "--json", **options)

    def test_every_strategy_gains_from_workers_that_join(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                runs = [self.simulate("--strategy", strategy, "--steps", 300, *TURNOVER, *NETWORK)
                        for _ in range(2)]
                self.assert_ledger(runs[0])
                rows = by_id(runs[0].result)
                self.assertEqual(sorted(rows), [1, 2, 3, 4, 5, 6])
                for worker in (5, 6):
                    self.assertGreater(rows[worker]["used"], 0)
                self.assertEqual(rows[2]["state"], "lost")
                self.assertEqual(rows[5]["incarnations"], 2)
                for key in ("params_hash", "trace_hash", "seconds", "samples"):
                    self.assertEqual(runs[0].result[key], runs[1].result[key])
                replay = self.anytime("replay", runs[0].folder)
                self.assertEqual(replay.code, 0)

    def test_report_trace_and_summary_know_all_workers(self):
        ended = self.simulate("--strategy", "amb", "--steps", 80, *TURNOVER)
        out = self.folder / "report"
        self.anytime("report", ended.folder, "--out", out)
        self.assertTrue((out / "index.html").exists() or list(out.iterdir()))
        shown = self.train("--world", "sim", *SMALL, "--steps", 80, *TURNOVER)
        self.assertIn("fmb", shown.out)
        self.assertNotIn("nan", shown.out.lower())
        workers = json.loads((ended.folder / "workers.json").read_text())["workers"]
        self.assertEqual(len(workers), 6)

    def test_only_workers_that_joined_are_listed(self):
        ended = self.simulate("--steps", 20, "--workers", 2, "--workers-max", 5)
        self.assertEqual(sorted(by_id(ended.result)), [1, 2])
        rows = json.loads((ended.folder / "workers.json").read_text())["workers"]
        self.assertEqual([row["state"] for row in rows],
                         ["finished"] * 2 + ["not joined"] * 3)

    def test_shards_are_cut_by_workers_and_others_draw_from_all(self):
        for shard in ("yes", "by-class"):
            with self.subTest(shard=shard):
                ended = self.simulate("--shard", shard, "--steps", 60, *TURNOVER)
                self.assert_ledger(ended)
                self.assertGreater(by_id(ended.result)[6]["used"], 0)

    def test_with_too_few_workers_the_run_holds_and_then_stops(self):
        for strategy in ("fmb", "amb", "async", "ssp"):
            with self.subTest(strategy=strategy):
                options = ("--strategy", strategy, "--steps", 1000, "--workers", 3, "--workers-min",
                           3, "--no-respawn", "--join-timeout", "5s", "--faults")
                ended = self.simulate(*options, "die:2@1s", code=support.STOPPED)
                self.assertEqual(ended.result["stopped"], "too few workers")
                self.assertIn("too few workers (fewer than --workers-min 3 for 5 s)", ended.err)
                self.assert_ledger(ended)
                # A round takes 32 ms: nobody starts another one in the five seconds.
                self.assertLess(ended.result["seconds"], 1.2)
                joined = self.simulate(*options, "die:2@1s,join:2@5.9s")
                self.assertEqual(joined.result["steps"], 1000)
                self.assert_ledger(joined)

    def test_a_run_without_workers_waits_for_joins(self):
        ended = self.simulate("--steps", 50, "--workers", 1, "--workers-max", 2, "--no-respawn",
                              "--faults", "die:1@100ms,join:2@2s")
        self.assertEqual(ended.result["steps"], 50)
        self.assertGreater(by_id(ended.result)[2]["used"], 0)

    def test_impossible_joins_are_refused_before_the_run(self):
        cases = {"join:2@1s": "is present", "join:7@1s": "workers are 1 to 6",
                 "join:5@1s,join:5@2s": "is present", "join:5@1s+2s": "not a valid",
                 "die:2@1s,join:2@2s": "is present"}
        for faults, words in cases.items():
            with self.subTest(faults=faults):
                ended = self.train("--world", "sim", "--workers", 4, "--workers-max", 6, *SMALL,
                                   "--faults", faults, code=support.USAGE)
                self.assert_complaint(ended, words)
                self.assertFalse(ended.folder.exists())

    def test_numbers_of_workers_that_contradict_each_other_are_refused(self):
        cases = {("--workers-max", 3): "--workers-max 3 is below --workers 4",
                 ("--workers-min", 5): "--workers-min 5 is above --workers 4",
                 ("--join-timeout", "0"): "--join-timeout"}
        for options, words in cases.items():
            with self.subTest(options=options):
                ended = self.train("--world", "sim", "--workers", 4, *SMALL, *options,
                                   code=support.USAGE)
                self.assert_complaint(ended, words)

    def test_nobody_joins_where_hub_and_worker_are_one_loop(self):
        ended = self.train("--workers", 0, "--workers-max", 4, *SMALL, code=support.USAGE)
        self.assert_complaint(ended, "with --workers 0 no worker can join later")


class Local(support.TestCase):
    """In the local world SIGUSR2 asks for another worker."""

    def test_workers_join_by_signal_up_to_the_capacity(self):
        for strategy in ("fmb", "amb", "async"):
            with self.subTest(strategy=strategy):
                run = self.start(*support.SMALL, "--steps", 10**7, "--sample-time", "50us",
                                 "--strategy", strategy, "--workers", 2, "--workers-max", 4)
                run.wait_until(lambda: len(self.working(run)) == 2, "both workers work")
                for _ in range(2):
                    before = len(self.working(run))
                    os.kill(run.pid, signal.SIGUSR2)
                    run.wait_until(lambda count=before: len(self.working(run)) > count,
                                   "another worker works")
                os.kill(run.pid, signal.SIGUSR2)
                run.wait_said("no worker can join: all --workers-max are there")
                run.wait_steps(50)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                rows = by_id(ended.result)
                self.assertEqual(sorted(rows), [1, 2, 3, 4])
                self.assertGreater(rows[3]["used"] + rows[4]["used"], 0)

    @staticmethod
    def working(run):
        return [row for row in run.workers().values() if row["state"] == "working"]


class Resume(support.TestCase):
    OPTIONS = ("--world", "sim", *SMALL, "--strategy", "fmb", "--checkpoint-every", 10)

    def run_to(self, steps, *arguments):
        return self.train(*self.OPTIONS, "--steps", steps, *arguments, "--json")

    def resume(self, ended, steps, *arguments):
        return self.anytime("train", "--resume", ended.folder, "--steps", steps, *arguments,
                            "--json")

    def test_a_resumed_run_has_the_workers_that_joined_before(self):
        whole = self.run_to(60, *TURNOVER)
        part = self.resume(self.run_to(20, *TURNOVER), 60)
        for key in ("params_hash", "trace_hash", "samples"):
            self.assertEqual(part.result[key], whole.result[key])

    def test_every_strategy_continues_with_another_crew(self):
        for strategy in STRATEGIES:
            for before, after in ((6, 4), (4, 6)):
                with self.subTest(strategy=strategy, before=before):
                    first = self.run_to(40, "--strategy", strategy, "--workers", before,
                                        "--workers-max", 6)
                    ended = self.resume(first, 80, "--workers", after)
                    rows = by_id(ended.result)
                    self.assertEqual(ended.result["steps"], 80)
                    self.assertEqual(rows[5]["state"] == "finished", after == 6)
                    self.assert_ledger(ended)

    def test_fewer_and_more_workers_continue_a_checkpoint(self):
        for before, after in ((6, 4), (4, 6)):
            for elastic in (False, True):
                with self.subTest(before=before, after=after, elastic=elastic):
                    first = ("--workers", before, "--workers-max", 6) if elastic else \
                        ("--workers", before)
                    then = ("--workers", after, "--workers-max", after + elastic)
                    ended = self.resume(self.run_to(20, *first), 40, *then)
                    self.assertEqual(ended.result["steps"], 40)
                    ledger = ended.result["samples"]
                    self.assertEqual(ledger["drawn"], ledger["used"] + ledger["dropped"])
                    self.assertLessEqual(set(range(1, after + 1)), set(by_id(ended.result)))
                    self.assertGreater(by_id(ended.result)[after]["rounds"], 0)


if __name__ == "__main__":
    support.main()
