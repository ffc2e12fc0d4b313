#!/usr/bin/env python3
"""Workers that own their parameters and average with their neighbours."""
import math
import struct

import support

SMALL = (*support.SMALL, "--micro-batch", 8, "--lr", 0.3)
SIM = ("--world", "sim", "--sample-time", "1ms")


def weights(folder):
    """The trained parameters of a run, in the order of the file."""
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return struct.unpack(f"<{(len(raw) - 8 - size) // 4}f", raw[8 + size:])


class Gossip(support.TestCase):
    def test_one_round_of_all_pairs_is_fmb(self):
        for world in ((), SIM):
            for optimizer in ("sgd", "momentum"):
                with self.subTest(world=world, optimizer=optimizer):
                    common = (*SMALL, *world, "--workers", 4, "--steps", 50, "--optimizer",
                              optimizer, "--lr", 0.1)
                    central = weights(self.train(*common, "--strategy", "fmb").folder)
                    gossip = weights(self.train(*common, "--strategy",
                                                "fmb-gossip:complete,1").folder)
                    for a, b in zip(central, gossip):
                        self.assertAlmostEqual(a, b, delta=1e-6 * max(1, abs(a)))

    def test_local_and_virtual_workers_have_the_same_bits(self):
        for strategy in ("fmb-gossip:ring,3", "fmb-gossip:star,2,form=pg",
                         "fmb-gossip:random:2,1,form=pw,weights=equal",
                         "fmb-gossip:exponential,4,form=da,matrix=laplacian"):
            with self.subTest(strategy=strategy):
                common = (*SMALL, "--workers", 5, "--steps", 40, "--strategy", strategy)
                runs = [self.train(*common, *world).result for world in ((), SIM)]
                self.assertEqual(runs[0]["params_hash"], runs[1]["params_hash"])
                self.assertEqual(runs[0]["rules"]["mix"].split(":")[0], "gossip")

    def test_more_rounds_bring_the_workers_closer(self):
        apart = []
        for rounds in (1, 5, 20):
            test = self.train(*SMALL, *SIM, "--data", "synthetic:2000,20,10", "--workers", 10,
                              "--steps", 60, "--shard", "by-class",
                              "--strategy", f"fmb-gossip:ring,{rounds}").result["test"]
            apart.append(test["disagreement"])
            self.assertGreaterEqual(test["worst_loss"], test["loss"] * 0.999)
            self.assertGreaterEqual(test["workers_loss"], test["loss"] * 0.999)
            self.assertLessEqual(test["workers_loss"], test["worst_loss"] * 1.001)
            self.assertLessEqual(test["worst_accuracy"], test["accuracy"] + 0.05)
        self.assertGreater(apart[0], 2 * apart[1])
        self.assertGreater(apart[1], 2 * apart[2])

    def test_training_loss_is_measured_on_the_same_samples(self):
        """Each worker has one class, so its own rounds say little about the whole."""
        ended = self.train(*SMALL, *SIM, "--data", "synthetic:2000,20,10", "--workers", 10,
                           "--steps", 40, "--shard", "by-class", "--strategy", "fmb-gossip:ring,2")
        train = ended.result["train"]
        self.assertLess(train["loss_min"], train["loss"])
        self.assertLess(train["loss"], train["loss_max"])
        self.assertLess(train["loss_model"], train["loss_max"])
        same = self.train(*SMALL, *SIM, "--workers", 4, "--steps", 40, "--strategy",
                          "fmb-gossip:complete,1").result["train"]
        self.assertAlmostEqual(same["loss_min"], same["loss_max"], delta=1e-6)
        self.assertAlmostEqual(same["loss"], same["loss_model"], delta=1e-6)

    def test_averaging_takes_the_time_of_its_rounds(self):
        """30 steps of 8 samples at 10 ms, and 5 rounds of 20 ms; orders and reports take 20 ms."""
        common = (*support.SMALL, "--world", "sim", "--batch", 8, "--micro-batch", 8,
                  "--sample-time", "10ms", "--latency", "20ms", "--workers", 4, "--steps", 30)
        one = self.train(*common, "--strategy", "fmb-gossip:ring,1").result["seconds"]
        five = self.train(*common, "--strategy", "fmb-gossip:ring,5").result["seconds"]
        self.assertAlmostEqual(five - one, 29 * 4 * 0.020, delta=1e-6)

    def test_averaging_for_a_time_is_as_many_rounds_as_fit(self):
        """Five messages of 0.6 s fit into 3 s. Those of a worker with a slow link take longer, and
        its neighbours make fewer rounds, too."""
        common = (*SMALL, *SIM, "--latency", "600ms", "--workers", 6, "--steps", 20)
        rounds, time, long = (self.train(*common, "--strategy", f"fmb-gossip:ring,{much}").result
                              for much in (5, "3s", "6s"))
        self.assertEqual(rounds["params_hash"], time["params_hash"])
        self.assertEqual(rounds["seconds"], time["seconds"])
        self.assertEqual(time["rules"]["mix"], "gossip:ring,3s")
        self.assertLess(long["test"]["disagreement"], time["test"]["disagreement"])
        slow = self.train(*common, "--strategy", "fmb-gossip:ring,3s", "--worker-latency",
                          "0,0,0,0,0,1s").result
        self.assertGreater(slow["test"]["disagreement"], time["test"]["disagreement"])

    def test_averaging_for_a_time_in_real_time(self):
        ended = self.train(*SMALL, "--workers", 4, "--steps", 20, "--strategy",
                           "fmb-gossip:ring,5ms")
        self.assert_ledger(ended)
        self.assertLess(ended.result["test"]["disagreement"], 0.01)
        self.assertEqual(self.anytime("replay", ended.folder).code, 0)

    def test_the_graph_is_described_when_it_changes(self):
        ended = self.train(*SMALL, *SIM, "--workers", 10, "--steps", 60, "--no-respawn",
                           "--strategy", "amb-gossip:amb-iclr-10,5", "--faults", "die:5@300ms")
        self.assertIn("second eigenvalue 0.888", ended.err)
        self.assertIn("5 rounds leave 55 %", ended.err)
        self.assertEqual(ended.err.count("second eigenvalue"), 2, ended.err)
        self.assert_ledger(ended)

    def test_a_graph_that_falls_apart_is_said(self):
        ended = self.train(*SMALL, *SIM, "--workers", 5, "--steps", 40, "--no-respawn",
                           "--strategy", "fmb-gossip:star", "--faults", "die:1@100ms")
        self.assertIn("does not connect all workers", ended.err)
        self.assertEqual(ended.result["stopped"], "steps")

    def test_workers_die_and_join_and_replay_agrees(self):
        for strategy in ("fmb-gossip", "amb-gossip"):
            with self.subTest(strategy=strategy):
                ended = self.train(*SMALL, *SIM, "--workers", 4, "--workers-max", 6, "--steps", 120,
                                   "--strategy", strategy, "--no-respawn", "--faults",
                                   "join:5@50ms,die:2@200ms,join:6@300ms,join:2@400ms")
                self.assert_ledger(ended)
                used = {row["id"]: row["used"] for row in ended.result["worker"]}
                self.assertTrue(all(used[i] > 0 for i in range(1, 7)), used)
                self.assertTrue(math.isfinite(ended.result["test"]["disagreement"]))
                self.assertEqual(self.anytime("replay", ended.folder).code, 0)

    def test_a_killed_process_is_replaced(self):
        run = self.start(*SMALL, "--sample-time", "2ms", "--workers", 3, "--steps", 60,
                         "--strategy", "fmb-gossip:ring,2")
        run.wait_steps(5)
        support.os.kill(run.workers()[1]["pid"], support.signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.code, 0, ended)
        self.assert_ledger(ended)

    def resumed(self, first, *arguments):
        ended = self.resume(first.folder, "--steps", 60, *arguments).wait()
        self.assertEqual(ended.code, 0, ended)
        self.assertEqual(ended.result["steps"], 60)
        self.assert_ledger(ended)
        return ended

    def test_a_resumed_run_has_the_bits_of_an_undisturbed_one(self):
        for world in ((), SIM):
            for options in (("--strategy", "fmb-gossip:ring,2"),
                            ("--strategy", "fmb-gossip:ring,1,form=pg", "--optimizer", "adam",
                             "--lr", 0.01),
                            ("--strategy", "fmb-gossip:star,2,form=da")):
                with self.subTest(world=world, options=options):
                    common = (*SMALL, *world, "--workers", 4, *options)
                    whole = self.train(*common, "--steps", 60).result
                    first = self.train(*common, "--steps", 30, "--checkpoint-every", 10)
                    ended = self.resumed(first)
                    self.assertEqual(ended.result["params_hash"], whole["params_hash"])
                    self.assertNotIn("from their mean", ended.err)

    def test_another_number_of_workers_resumes_from_the_mean(self):
        first = self.train(*SMALL, *SIM, "--workers", 4, "--steps", 30, "--strategy",
                           "fmb-gossip:ring,2", "--checkpoint-every", 10)
        ended = self.resumed(first, "--workers", 6)
        self.assertIn("has the parameters of 4 workers, and there are 6", ended.err)

    def test_wrong_settings_are_refused(self):
        for options, says in ((("--strategy", "fmb-gossip:rong"), "rong"),
                              (("--strategy", "fmb-gossip:torus", "--workers", 7), "product"),
                              (("--strategy", "async", "--mix", "gossip"), "does not wait for all"),
                              (("--strategy", "fmb-gossip:ring,0"), "ROUNDS"),
                              (("--strategy", "fmb-gossip:ring,2,form=px"), "pg|pwg|pw|da"),
                              (("--strategy", "fmb-gossip:ring,3x"), "a duration above 0"),
                              (("--strategy", "fmb-gossip:ring,3s"), "--latency"),
                              (("--strategy", "fmb-gossip", "--mix-form", "da", "--optimizer",
                                "momentum"), "dual averaging")):
            with self.subTest(options=options):
                ended = self.train(*support.SMALL, *SIM, "--steps", 5, *options,
                                   code=support.USAGE)
                self.assertIn(says, ended.err)


if __name__ == "__main__":
    support.main()
