#!/usr/bin/env python3
"""Soak: all strategies in turn, while workers, evaluators, savers and hubs are killed.

Memory and descriptors of every process are watched, and the ledger is exact at the end of each
run. Each strategy suffers a few kills, about two minutes in all; ANYTIME_SOAK=60 goes on for so
many minutes, with a kill about every second. A table is printed at the end.
"""
import contextlib
import os
import random
import signal
import time

import support
from support import processes

MINUTES = float(os.environ.get("ANYTIME_SOAK", "0"))
STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
              "ringmaster", "quorum", "adasync", "dbs", "grow", "shrink", "loss", "noise", "stall",
              "loss-target", "probe", "anytime-sgd", "local-sgd", "diloco", "amb-gossip",
              "fmb-gossip")
KILLS_SHORT = 6
SECONDS_LONG = 25  # of one strategy in the long form
GROWTH_MAX = 8 << 20  # bytes that a hub may gain: buffers fill, and shared pages become its own
DESCRIPTORS_MAX = 8
JOB = (*support.SMALL, "--workers", 3, "--steps", 10**9, "--sample-time", "20us", "--time-limit",
       "1ms", "--eval-every", 200, "--checkpoint-every", "300ms", "--record-limit", "2MB")


def pss(pid):
    """Memory of a process in bytes, with its share of what it shares; None: it is gone."""
    with contextlib.suppress(OSError):
        for line in (processes.PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return None


def descriptors(pid):
    with contextlib.suppress(OSError):
        return len(os.listdir(processes.PROC / str(pid) / "fd"))
    return None


def slope(points):
    """Least squares, units per second."""
    if len(points) < 3:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


class Watch:
    """Readings of the processes of one run. The hub is one process over the whole run; a worker is
    followed from its first report on."""

    def __init__(self):
        self.memory, self.open = {}, {}

    def look(self, run):
        now = time.monotonic()
        for pid in {run.pid, *run.children()}:
            size, files = pss(pid), descriptors(pid)
            if size is not None and files is not None:
                self.memory.setdefault(pid, []).append((now, size))
                self.open.setdefault(pid, []).append(files)


class Soak(support.TestCase):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(11)
        self.rows, self.kills = [], {"worker": 0, "evaluator": 0, "saver": 0, "hub": 0}

    def victims(self, run):
        found = {"worker": [row["pid"] for row in run.workers().values()
                            if row["state"] == "working" and row["pid"]]}
        for pid in run.children():
            name = processes.name(pid)
            if name in ("anytime-eval", "anytime-saver"):
                found["evaluator" if name == "anytime-eval" else "saver"] = [pid]
        return found

    def kill(self, run):
        """Kills one process other than the hub, workers four times out of six."""
        kind = self.rng.choice(["worker"] * 4 + ["evaluator", "saver"])
        pids = self.victims(run).get(kind)
        if not pids:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.rng.choice(pids), signal.SIGKILL)
            self.kills[kind] += 1

    def kill_hub(self, run, strategy):
        """The hub dies; its children go with it, and the run is resumed from its checkpoint."""
        checkpoints = run.folder / "checkpoint"
        run.wait_until(lambda: len(list(checkpoints.glob("step-*"))) > 1, "a checkpoint")
        run.signal(signal.SIGKILL)
        run.wait()
        self.kills["hub"] += 1
        support.wait_until(lambda: not processes.marked(run.mark), "all its processes are gone")
        again = self.resume(run.folder)
        again.wait_until(lambda: any(self.victims(again).values()), f"{strategy} goes on")
        return again

    def torment(self, run, watch):
        """Kills until this strategy has had its share."""
        before, end = sum(self.kills.values()), time.monotonic() + SECONDS_LONG
        while (time.monotonic() < end if MINUTES else
               sum(self.kills.values()) < before + KILLS_SHORT):
            run.wait_until(lambda: self.victims(run)["worker"], "a worker is there")
            watch.look(run)
            self.kill(run)
            if MINUTES:
                time.sleep(self.rng.uniform(0.5, 1.5))  # the pace of the soak, not a wait
        run.wait_until(lambda: self.victims(run)["worker"], "a worker is there")
        watch.look(run)

    def check(self, strategy, run, watch):
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)
        memory, files = watch.memory[run.pid], watch.open[run.pid]
        later = memory[len(memory) // 3:]
        self.assertLess(later[-1][1], later[0][1] + GROWTH_MAX, f"{strategy}: the hub grows")
        early = max(files[:(len(files) + 1) // 2])  # evaluator and saver start on the way
        self.assertLess(files[-1], early + DESCRIPTORS_MAX, f"{strategy}: descriptors leak")
        rounds = sum(row["rounds"] for row in ended.result["worker"])
        others = [slope(points[len(points) // 3:]) for pid, points in watch.memory.items()
                  if pid != run.pid and len(points) >= 12]
        self.rows.append((strategy, rounds, ended.result["steps"], slope(later) / 1024,
                          max(others, default=0) / 1024, max(files), files[-1] - files[0]))

    def play(self, strategy):
        watch = Watch()
        run = self.start(*JOB, "--strategy", strategy)
        run.wait_working()
        if not strategy.endswith("gossip") and strategy != "hogwild":
            run = self.kill_hub(run, strategy)
        self.torment(run, watch)
        self.check(strategy, run, watch)

    def test_nothing_is_lost_and_nothing_leaks(self):
        began = time.monotonic()
        end = began + 60 * MINUTES
        turn = 0
        while turn < len(STRATEGIES) or time.monotonic() < end:
            strategy = STRATEGIES[turn % len(STRATEGIES)]
            with self.subTest(strategy, turn=turn):
                self.play(strategy)
            turn += 1
            if MINUTES and time.monotonic() >= end:
                break
        self.show(time.monotonic() - began)

    def show(self, seconds):
        print("\nstrategy       rounds    steps  hub kB/s  others kB/s  descriptors (change)")
        for name, rounds, steps, hub, others, files, change in self.rows:
            print(f"{name:12} {rounds:8} {steps:8} {hub:9.1f} {others:12.1f} {files:12} ({change})")
        rounds = sum(row[1] for row in self.rows)
        killed = ", ".join(f"{count} {kind}s" for kind, count in self.kills.items())
        print(f"{len(self.rows)} runs in {seconds:.0f} s, {rounds} rounds; killed: {killed}; "
              "every ledger exact", flush=True)


if __name__ == "__main__":
    support.main()
