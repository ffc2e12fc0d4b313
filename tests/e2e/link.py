#!/usr/bin/env python3
"""`anytime link`: what is measured and how it is printed; the times themselves are not checked."""
import json
import os
import subprocess
import unittest

import support
from support import mpi, net

SHORT = ("--seconds", "20ms", "--quiet")
PLACE = {"round_seconds", "rounds_per_second", "bytes_per_second", "share"}


class Link(support.TestCase):
    def assert_place(self, place, size):
        """The four numbers are consistent."""
        self.assertEqual(set(place), PLACE)
        self.assertGreater(place["round_seconds"], 0)
        self.assertAlmostEqual(place["rounds_per_second"] * place["round_seconds"], 1, places=6)
        self.assertAlmostEqual(place["bytes_per_second"] * place["round_seconds"] / size, 1,
                               places=6)

    def assert_sizes(self, shown, places, sizes):
        self.assertEqual([row["bytes"] for row in shown["sizes"]], sizes)
        for row in shown["sizes"]:
            self.assertEqual(set(row), {"parameters", "bytes", *places})
            self.assertEqual(row["bytes"], 4 * row["parameters"])
            for name in places:
                self.assert_place(row[name], row["bytes"])


class Local(Link):
    def test_every_size_has_its_times_and_shares(self):
        shown = json.loads(self.anytime("link", *SHORT, "--sizes", "4k,1M", "--workers", 1,
                                       "--json").out)
        self.assertEqual((shown["world"], shown["workers"]), ("local", 1))
        self.assert_sizes(shown, ("loops", "solo", "local"), [4000, 1000000])
        for row in shown["sizes"]:
            self.assertAlmostEqual(row["loops"]["share"], 1)
            self.assertAlmostEqual(row["local"]["share"], row["loops"]["round_seconds"] /
                                   row["local"]["round_seconds"], places=6)
        self.assertGreater(shown["ring"]["awake_seconds"], 0)
        self.assertGreater(shown["ring"]["asleep_seconds"], 0)

    def test_the_number_of_workers_grows_up_to_the_given_one(self):
        for most, expected in ((1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5])):
            with self.subTest(most=most):
                shown = json.loads(self.anytime("link", *SHORT, "--sizes", "4k", "--workers", most,
                                               "--json").out)
                rows = shown["crowd"]["workers"]
                self.assertEqual([row["workers"] for row in rows], expected)
                for row in rows:
                    self.assertAlmostEqual(row["worker_seconds"] * row["workers"],
                                           row["round_seconds"])

    def test_two_tables_are_printed_and_no_files_are_left(self):
        ended = self.anytime("link", *SHORT, "--sizes", "4k,31.4k", "--workers", 2)
        lines = ended.out.splitlines()
        self.assertEqual(lines[0], f"Local, {len(os.sched_getaffinity(0))} cores")
        for words in ("size", "31.4 kB", "1 worker", "of loops", "workers", "rounds/s",
                      "per worker", "Empty round trip: ", "Rounds of 31.4 kB by number of workers"):
            self.assertTrue(any(words in line for line in lines), f"{words}{ended}")
        self.assertEqual(ended.err, "")
        self.assertEqual(os.listdir(self.folder), [])

    def test_invalid_sizes_and_arguments_are_refused(self):
        for arguments, words in ((("--sizes", "4k,many"), "many"), (("--sizes", "3"), "4 bytes"),
                                 (("--sizes", "1e12"), "2 GB"),
                                 (("4k",), "unexpected argument '4k'"),
                                 (("--sizes", ",".join(["4k"] * 17)), "more than 16")):
            with self.subTest(words=words):
                ended = self.anytime("link", *arguments, code=support.USAGE)
                self.assert_complaint(ended, words)


class Path(net.TestCase):
    """The path to a hub, which may be waiting for workers or training."""

    def measure(self, hub, *arguments, scheme=""):
        ended = self.anytime("link", scheme + hub.address(), "--token", hub.token, "--seconds",
                             "50ms", "--json", *arguments)
        return json.loads(ended.out)

    def test_a_waiting_and_a_training_hub_answer_and_the_run_goes_on(self):
        hub = self.hub(*support.SMALL, "--quiet", "--eval-every", 0, "--seconds", "1h",
                       "--sample-time", "100us")
        plain = self.measure(hub, "--sizes", "4k,1M")
        self.assertEqual((plain["world"], plain["encrypted"], plain["workers"]),
                         ("net", False, 1))
        worker = self.work(hub)
        hub.wait_steps(3)
        crowded = self.measure(hub, "--sizes", "1M", "--workers", 10, scheme="tls://")
        self.assertTrue(crowded["encrypted"])
        for shown in (plain, crowded):
            trip = shown["round_trip_seconds"]
            self.assertLess(0, trip["min"])
            self.assertLessEqual(trip["min"], trip["p50"])
            self.assertLess(0, shown["join_seconds"])
            for row in shown["sizes"]:
                moved = shown["workers"] * row["bytes"]
                wire = moved / shown["up_bytes_per_second"] + moved / shown["down_bytes_per_second"]
                self.assertAlmostEqual(row["step_seconds"] / (trip["p50"] + wire), 1, places=6)
                self.assertAlmostEqual(row["round_seconds"] / row["step_seconds"], 9, places=6)
                self.assertLess(trip["p50"], row["step_seconds_bf16"])
                self.assertLess(trip["p50"], row["step_seconds_topk"])
                self.assertTrue(row["suits"])
            self.assertTrue(shown["advice"].startswith("Compression "))
        hub.wait_steps(hub.steps() + 3)
        hub.process.terminate()
        self.assertEqual(hub.wait().code, support.STOPPED)
        self.assert_ends(worker)

    def test_a_table_is_printed(self):
        hub = self.hub(*support.SMALL, "--quiet", "--steps", 1)
        shown = self.anytime("link", hub.address(), "--token", hub.token, "--seconds", "20ms").out
        for word in ("Path to", "round trip", "to the hub", "bf16", "suits", "Compression"):
            self.assertIn(word, shown)

    def test_without_the_token_nothing_is_measured(self):
        hub = self.hub(*support.SMALL, "--quiet", "--steps", 1)
        other = self.folder / "other"
        other.write_text("0123456789abcdef\n")
        other.chmod(0o600)
        for arguments, code, words in (
                ((hub.address(),), support.USAGE, "no token"),
                ((hub.address(), "--token", other), support.USAGE, "token"),
                ((hub.address(), "b:1", "--token", other), support.USAGE, "unexpected"),
                (("127.0.0.1:1", "--token", hub.token), support.MISSING, "no hub")):
            ended = self.anytime("link", *arguments, code=code)
            self.assert_complaint(ended, words)


@unittest.skipUnless(mpi.MPIRUN, "there is no mpirun here (apt-get install openmpi-bin)")
class Ranks(Link):
    def link(self, ranks, *arguments, code=support.DONE):
        """Runs the verb on these ranks; only one of them prints."""
        settings = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # Open MPI has its own
        command = [*mpi.launcher(ranks), support.ANYTIME, "link", *SHORT, *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=support.BOUND, cwd=self.folder,
                              env={**os.environ, **mpi.ENV, "ASAN_OPTIONS": settings}, check=False)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_all_sizes_are_measured_in_one_job(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                shown = json.loads(self.link(ranks, "--sizes", "4k,31.4k,1M", "--json").stdout)
                self.assertEqual((shown["world"], shown["workers"]), ("mpi", ranks - 1))
                self.assert_sizes(shown, ("loops", "pingpong", "bare", "mpi"),
                                  [4000, 31400, 1000000])

    def test_one_rank_measures_locally(self):
        shown = json.loads(self.link(1, "--sizes", "4k", "--workers", 1, "--json").stdout)
        self.assertEqual(shown["world"], "local")

    def test_another_number_of_workers_than_ranks_is_refused(self):
        done = self.link(2, "--workers", 3, code=support.USAGE)
        self.assertIn("2 ranks", done.stderr)


if __name__ == "__main__":
    support.main()
