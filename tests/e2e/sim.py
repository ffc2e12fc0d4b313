#!/usr/bin/env python3
"""Simulation: reproducible, with the bits of real processes, and with faults."""
import json
import re

import support

SMALL = (*support.SMALL, "--micro-batch", 8)
SLOW = ("--straggler", "niagara", "--straggler-scale", "20%", "--sample-time", "1ms")
NETWORK = ("--latency", "2ms", "--bandwidth", "1e6", "--comm-delay", "0.003")


def by_id(result):
    return {row["id"]: row for row in result["worker"]}


class Determinism(support.TestCase):
    def hashes(self, *arguments):
        result = self.train_json("--world", "sim", "--workers", 6, *SMALL, *SLOW, *NETWORK,
                                 "--steps", 150, "--record", "none", *arguments)
        return result["params_hash"], result["trace_hash"], result["seconds"]

    def test_the_same_seed_gives_the_same_run_under_every_strategy(self):
        for strategy in support.GRADIENTS:
            with self.subTest(strategy=strategy):
                first = self.hashes("--strategy", strategy)
                self.assertEqual(first, self.hashes("--strategy", strategy))

    def test_another_seed_gives_another_run(self):
        for strategy in ("fmb", "amb", "async"):
            with self.subTest(strategy=strategy):
                one, two = (self.hashes("--strategy", strategy, "--seed", s) for s in (1, 2))
                self.assertNotEqual(one[0], two[0])
                self.assertNotEqual(one[2], two[2])

    def test_faults_are_reproducible(self):
        faults = ("--faults", "die:2@100ms,freeze:3@200ms+10s", "--lease", "1s")
        for strategy in ("fmb", "async", "batch-sync"):
            with self.subTest(strategy=strategy):
                first = self.hashes("--strategy", strategy, *faults)
                self.assertEqual(first, self.hashes("--strategy", strategy, *faults))


class SameBits(support.TestCase):
    """With a barrier and fixed sizes the result does not depend on time."""

    def check(self, *arguments):
        one, two = (self.train_json("--world", world, "--workers", 4, *SMALL, "--steps", 100,
                                    "--record", "none", *arguments) for world in ("sim", "local"))
        self.assertEqual(one["params_hash"], two["params_hash"])
        self.assertEqual(one["trace_hash"], two["trace_hash"])
        self.assertEqual(one["samples"], two["samples"])

    def test_fixed_minibatches(self):
        for model in ("softmax", "mlp:12,8"):
            for optimizer in ("sgd", "adam"):
                with self.subTest(model=model, optimizer=optimizer):
                    self.check("--strategy", "fmb", "--model", model, "--optimizer", optimizer,
                               "--sample-time", "1us")

    def test_fixed_minibatches_with_stragglers_and_a_common_order(self):
        self.check("--strategy", "fmb", "--deal", "global", "--straggler", "exp:0,0.001",
                   "--sample-time", "5us")

    def test_backup_workers_that_wait_for_all(self):
        self.check("--strategy", "backup", "--k", 4, "--sample-time", "1us")

    def test_batch_sizes_that_follow_a_schedule(self):
        for strategy in ("grow", "shrink"):
            with self.subTest(strategy=strategy):
                self.check("--strategy", strategy, "--sample-time", "1us")

    def test_shares_follow_measured_speed_in_both_worlds(self):
        # Measured times vary in real time, so the bits may differ.
        for world in ("sim", "local"):
            with self.subTest(world=world):
                result = self.train_json("--world", world, "--workers", 4, *SMALL, "--strategy",
                                         "dbs", "--straggler", "speed:1,1,2,4", "--sample-time",
                                         "200us", "--epochs", 5, "--record", "none")
                used = [row["used"] for row in result["worker"]]
                self.assertGreater(used[0], 1.2 * used[2])
                self.assertGreater(used[1], 1.2 * used[2])
                self.assertGreater(used[2], 1.2 * used[3])

    def test_dbs_gives_the_same_bits_for_the_same_shares(self):
        # On a busy machine the measured speeds, and so the shares, may differ. On a quiet one three
        # attempts are plenty.
        def run(world):
            return self.train_json("--world", world, "--workers", 4, *support.SMALL, "--batch", 50,
                                   "--micro-batch", 10, "--strategy", "dbs", "--straggler",
                                   "speed:1,1,2,4", "--sample-time", "500us", "--epochs", 4,
                                   "--record", "none")
        expected = run("sim")
        for _ in range(3):
            found = run("local")
            if found["trace_hash"] == expected["trace_hash"]:
                self.assertEqual(found["params_hash"], expected["params_hash"])
                return
        self.skipTest("the machine is too busy to reproduce the given speeds")


class Faults(support.TestCase):
    def simulate(self, *arguments, **options):
        ended = self.train("--world", "sim", "--workers", 4, *SMALL, "--sample-time", "1ms",
                           "--steps", 100, *arguments, "--json", **options)
        self.assert_ledger(ended)
        return ended

    def test_a_worker_that_dies_is_replaced(self):
        ended = self.simulate("--faults", "die:2@1s")
        self.assertEqual(ended.result["steps"], 100)
        self.assertIn("worker 2 died", ended.err)
        self.assertGreater(by_id(ended.result)[2]["dropped"], 0)
        self.assertEqual(by_id(ended.result)[2]["state"], "finished")

    def test_only_started_micro_batches_are_lost(self):
        # A round is 32 ms; the second one begins at 32 ms, its third micro-batch at 48 ms.
        ended = self.simulate("--faults", "die:2@50ms")
        self.assertEqual(by_id(ended.result)[2]["dropped"], 3 * 8)

    def test_the_others_continue_without_a_worker_that_is_not_replaced(self):
        ended = self.simulate("--faults", "die:2@1s", "--no-respawn")
        rows = by_id(ended.result)
        self.assertEqual(rows[2]["state"], "lost")
        self.assertEqual(rows[1]["rounds"], 100)
        self.assertLess(rows[2]["rounds"], 100)

    def test_a_run_without_workers_ends_with_the_reason(self):
        everyone = ",".join(f"die:{i}@1s" for i in (1, 2, 3, 4))
        ended = self.simulate("--faults", everyone, "--no-respawn", code=support.FAILED)
        self.assertIn("no worker is left", ended.err)
        self.assertLess(ended.result["steps"], 100)

    def test_a_worker_that_thaws_in_time_continues(self):
        plain = self.simulate("--lease", "1s").result
        ended = self.simulate("--faults", "freeze:3@1s+500ms", "--lease", "1s")
        result = ended.result
        self.assertEqual(result["samples"]["dropped"], 0)
        self.assertEqual(result["params_hash"], plain["params_hash"], "a pause changes no bit")
        self.assertGreater(result["seconds"], plain["seconds"] + 0.4)
        self.assertLess(result["seconds"], plain["seconds"] + 0.5)

    def test_a_worker_frozen_beyond_its_lease_is_evicted_and_replaced(self):
        ended = self.simulate("--faults", "freeze:3@1s+100s", "--lease", "1s")
        self.assertIn("worker 3 evicted", ended.err)
        self.assertEqual(by_id(ended.result)[3]["state"], "finished")
        self.assertLess(ended.result["seconds"], 10)

    def test_an_evicted_worker_that_is_not_replaced_stays_out(self):
        ended = self.simulate("--faults", "freeze:3@1s+2s", "--lease", "1s", "--no-respawn")
        self.assertEqual(by_id(ended.result)[3]["state"], "evicted")

    def test_without_the_option_the_lease_is_adaptive(self):
        ended = self.simulate("--faults", "freeze:3@1s+10000s")
        self.assertIn("worker 3 evicted", ended.err)
        self.assertLess(ended.result["seconds"], 60)

    def test_a_longer_freeze_outlasts_a_shorter_one(self):
        ended = self.simulate("--faults", "freeze:3@1s+100s,freeze:3@1.1s+1ms", "--lease", "1s")
        self.assertIn("worker 3 evicted", ended.err)

    def test_every_strategy_survives_deaths_and_freezes(self):
        faults = "die:1@50ms,freeze:2@100ms+5s,die:3@200ms,die:3@210ms,freeze:4@300ms+100ms"
        for strategy in support.GRADIENTS:
            for respawn in ("--respawn", "--no-respawn"):
                with self.subTest(strategy=strategy, respawn=respawn):
                    ended = self.simulate("--strategy", strategy, "--faults", faults, "--lease",
                                          "1s", respawn, *NETWORK)
                    self.assertEqual(ended.result["steps"], 100)

    def test_a_worker_comes_back_after_a_while(self):
        # A step takes 32 ms, so worker 2 misses about sixteen rounds in 500 ms.
        ended = self.simulate("--faults", "die:2@1s+500ms")
        rounds = {row["id"]: row["rounds"] for row in ended.result["worker"]}
        self.assertGreater(rounds[1] - rounds[2], 10)
        self.assertLess(rounds[1] - rounds[2], 20)

    def test_a_late_message_delays_one_step(self):
        prompt = self.simulate().result["seconds"]
        late = self.simulate("--faults", "late:3@1s+700ms").result["seconds"]
        self.assertAlmostEqual(late - prompt, 0.7, delta=0.001)

    def test_wrong_faults_are_refused(self):
        for text in ("die", "die:1", "die:0@1s", "die:5@1s", "die:1@x", "late:1@1s", "melt:1@1s",
                     "freeze:1@1s", "freeze:1@1s+x"):
            with self.subTest(faults=text):
                ended = self.train("--world", "sim", "--workers", 4, *SMALL, "--faults", text,
                                   code=support.USAGE)
                self.assert_complaint(ended, text)


class Behavior(support.TestCase):
    def simulate(self, *arguments):
        return self.anytime("simulate", "--model", "none:1000", *arguments, "--run",
                            self.folder / "timing", "--json", "--quiet").result

    def test_virtual_time_can_be_far_longer_than_real_time(self):
        result = self.simulate("--workers", 3, "--batch", 10, "--sample-time", "1s",
                               "--steps", 1000)
        self.assertAlmostEqual(result["seconds"], 10 * 1000, places=3)

    def test_times_without_bounds_end_with_a_sentence(self):
        """Sums of years would overflow after some steps."""
        years = ("--sample-time", "50us", "--straggler", "mix:3e9,0,1", "--straggler-scale", "1e9")
        slow = ("--sample-time", "100h", "--straggler", "speed:1e6")
        for strategy in ("fmb", "amb", "async", "ssp"):
            for times in (years, slow, ("--latency", "70000h")):
                with self.subTest(strategy=strategy, times=times):
                    ended = self.train("--world", "sim", "--model", "none:10", "--workers", 2,
                                       "--strategy", strategy, "--batch", 2, "--steps", 10**5,
                                       *times, code=support.USAGE)
                    self.assertIn("more than nine years of virtual time", ended.err)

    def test_a_run_of_years_is_replayed(self):
        ended = self.train("--world", "sim", "--model", "none:10", "--workers", 16000, "--batch", 1,
                           "--sample-time", "8000h", "--steps", 4, "--lease", "9000h")
        self.assertGreater(ended.result["seconds"], 3 * 365 * 86400)
        self.assertTrue(json.loads(self.anytime("replay", ended.folder, "--json").out)["agrees"])
        self.anytime("report", ended.folder, "--out", self.folder / "report")
        page = (self.folder / "report" / "report.html").read_text()
        rows = [json.loads(row) for row in re.findall(r'{"first":[^{}]*"wasted":[^{}]*}', page)]
        self.assertGreater(len(rows), 10)
        self.assertAlmostEqual(sum(row["compute"] for row in rows) / (16000 * 4 * 8000 * 3600), 1,
                               delta=0.001)

    def test_an_overtaken_worker_is_woken_from_its_sleep(self):
        # Worker 2 would sleep for 1000 s in every round; the barrier does not wait for it.
        trace = self.folder / "trace"
        trace.write_text("0 1000\n")
        result = self.simulate("--strategy", "backup", "--k", 1, "--workers", 2, "--steps", 10,
                               "--straggler", f"trace:{trace}", "--batch", 10,
                               "--sample-time", "100ms")
        self.assertAlmostEqual(result["seconds"], 10.0, places=3)
        self.assertEqual(by_id(result)[2]["drawn"], 0)

    def test_messages_take_latency_and_the_hubs_link(self):
        # 4000 bytes at 1e4 bytes/s are 0.4 s. Down: the last of two starts at 0.8 s; computing
        # 1 s; up: it finds the link free. Twice the latency, every step.
        result = self.simulate("--workers", 2, "--batch", 10, "--sample-time", "100ms",
                               "--steps", 5, "--latency", "10ms", "--bandwidth", "1e4")
        self.assertAlmostEqual(result["step_seconds"]["mean"], 0.8 + 1 + 0.4 + 0.02, places=3)

    def test_a_lease_that_is_too_short_grows_until_it_suffices(self):
        # A message alone takes 4 s, so all workers are evicted at first.
        result = self.simulate("--workers", 9, "--batch", 10, "--steps", 3, "--lease", "300ms",
                               "--bandwidth", "1e3")
        self.assertEqual(result["steps"], 3)
        self.assertGreater(result["evictions"], 9)

    def test_thousands_of_workers_fit(self):
        result = self.simulate("--strategy", "amb", "--workers", 3000, "--steps", 20,
                               "--straggler", "niagara", "--straggler-scale", "20%",
                               "--record", "steps")
        self.assertEqual(result["steps"], 20)
        self.assertEqual(len(result["worker"]), 3000)


if __name__ == "__main__":
    support.main()
