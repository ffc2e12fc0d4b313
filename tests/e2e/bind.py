#!/usr/bin/env python3
"""--bind: workers stay on their cores, their replacements too, and the numbers do not change."""
import os
import signal

import support

LONG = ("--steps", 10 ** 9, "--workers", 3, "--sample-time", "100us", "--quiet")


def cores_of(pid):
    return os.sched_getaffinity(pid)


class Bind(support.TestCase):
    def run_bound(self, *arguments):
        run = self.start(*support.SMALL, *LONG, *arguments)
        rows = run.wait_working()
        self.addCleanup(lambda: run.signal(signal.SIGTERM))
        return run, [row["pid"] for _, row in sorted(rows.items())]

    def test_workers_take_the_cores_in_turn(self):
        _, pids = self.run_bound("--bind", "core")
        here = sorted(os.sched_getaffinity(0))
        self.assertEqual([cores_of(pid) for pid in pids],
                         [{here[i % len(here)]} for i in range(3)])

    def test_a_replacement_has_the_core_of_the_lost_worker(self):
        run, pids = self.run_bound("--bind", "core")
        core = cores_of(pids[1])
        os.kill(pids[1], signal.SIGKILL)
        row = run.wait_until(lambda: (row := run.workers()[2])["state"] == "working"
                             and row["pid"] not in (0, pids[1]) and row, "worker 2 is replaced")
        self.assertEqual(cores_of(row["pid"]), core)

    def test_workers_of_a_memory_node_have_some_of_our_cores(self):
        _, pids = self.run_bound("--bind", "numa")
        for pid in pids:
            self.assertLessEqual(cores_of(pid), os.sched_getaffinity(0))

    def test_hub_and_default_are_not_bound(self):
        run, pids = self.run_bound("--bind", "core")
        self.assertEqual(cores_of(run.pid), os.sched_getaffinity(0))
        _, free = self.run_bound()
        for pid in free:
            self.assertEqual(cores_of(pid), os.sched_getaffinity(0))

    def test_bits_stay_the_same(self):
        job = (*support.SMALL, "--workers", 2, "--steps", 10)
        hashes = {self.train_json(*job, "--bind", how)["params_hash"]
                  for how in ("none", "core", "numa")}
        self.assertEqual(len(hashes), 1)

    def test_where_it_has_no_effect_it_is_refused(self):
        for world in (("--world", "sim"), ("--workers", 0)):
            ended = self.train(*support.SMALL, *world, "--bind", "core", code=support.USAGE)
            self.assert_complaint(ended, "--bind core")
        ended = self.train(*support.SMALL, "--bind", "socket", code=support.USAGE)
        self.assert_complaint(ended, "socket", "numa")


if __name__ == "__main__":
    support.main()
