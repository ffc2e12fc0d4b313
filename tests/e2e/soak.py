#!/usr/bin/env python3
"""Soak: all strategies in turn, while workers, evaluators, savers and hubs are killed.

The model is tiny and nothing is delayed, so that rounds are as short as they can be. Memory and
descriptors of every process are watched, and the ledger is exact at the end of each run. Something
is killed about every second. Each strategy has its turn, two minutes in all; ANYTIME_SOAK=60 takes
60 minutes, with longer turns. A line is printed for each run, and a sum at the end.
"""
import contextlib
import os
import random
import signal
import time

import support
from support import processes

MINUTES = float(os.environ.get("ANYTIME_SOAK", "0"))
SECONDS = 45 if MINUTES else 4  # of one strategy
HUBS = 3 if MINUTES else 1  # killed per strategy
KILLS_MIN = 3  # of others, however slow the machine is
GROWTH_MAX = 1024  # kB that a hub may gain
DESCRIPTORS_MAX = 8
DENSE = ("--data", "synthetic:300,4,2", "--batch", 2)
SPARSE = ("--data", "synthetic-clicks:2000,1024", "--model", "sparse-lr", "--batch", 8)
JOB = ("--workers", 3, "--steps", 10**12, "--time-limit", "200us", "--eval-every", 5000,
       "--checkpoint-every", "1s", "--record-limit", "2MB", "--lr", "1e-4")


def memory(pid):
    """Memory that a process has allocated, in kB; None: it is gone. Pages that it shares with
    others or has from files do not count: its share of them changes whenever another one dies."""
    with contextlib.suppress(OSError):
        for line in (processes.PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return None


def descriptors(pid):
    with contextlib.suppress(OSError):
        return len(os.listdir(processes.PROC / str(pid) / "fd"))
    return None


def growth(sizes):
    """What was gained in the later two thirds of the readings: at first buffers fill."""
    return sizes[-1] - sizes[len(sizes) // 3]


def children(pid):
    """Cheaper than a look at all processes, which would take more time than the run has."""
    with contextlib.suppress(OSError):
        text = (processes.PROC / str(pid) / "task" / str(pid) / "children").read_text()
        return {int(word) for word in text.split()}
    return processes.children(pid)


class Watch:
    """Readings of the processes of one run. The hub is one process over the whole run; a worker is
    followed from its first report on."""

    def __init__(self):
        self.memory, self.open = {}, {}

    def look(self, run):
        for pid in {run.pid, *children(run.pid)}:
            size, files = memory(pid), descriptors(pid)
            if size is not None and files is not None:
                self.memory.setdefault(pid, []).append(size)
                self.open.setdefault(pid, []).append(files)


def job_of(strategy):
    return (*(SPARSE if strategy == "hogwild" else DENSE), *JOB, "--strategy", strategy)


class Soak(support.TestCase):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(11)
        self.rows, self.kills = [], {"worker": 0, "evaluator": 0, "saver": 0, "hub": 0}

    def victims(self, run):
        """Pids by kind. A hub that was just resumed has not written workers.json yet: what is in it
        are processes that are gone, whose numbers may belong to others."""
        ours = children(run.pid)
        found = {"worker": [row["pid"] for row in run.workers().values()
                            if row["state"] == "working" and row["pid"] in ours]}
        for pid in ours:
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
        before = set(checkpoints.glob("step-*"))
        run.wait_until(lambda: set(checkpoints.glob("step-*")) - before, "a checkpoint")
        run.signal(signal.SIGKILL)
        run.wait()
        self.kills["hub"] += 1
        support.wait_until(lambda: not processes.marked(run.mark), "all its processes are gone")
        again = self.resume(run.folder)
        again.wait_until(lambda: self.victims(again)["worker"], f"{strategy} goes on")
        return again

    def torment(self, run, watch):
        """Kills until this strategy has had its share."""
        enough, end = sum(self.kills.values()) + KILLS_MIN, time.monotonic() + SECONDS
        while time.monotonic() < end or sum(self.kills.values()) < enough:
            run.wait_until(lambda: self.victims(run)["worker"], "a worker is there")
            watch.look(run)
            self.kill(run)
            time.sleep(self.rng.uniform(0.5, 1.5))  # the pace of the soak, not a wait
        run.wait_until(lambda: self.victims(run)["worker"], "a worker is there")
        watch.look(run)

    def check(self, strategy, run, watch, seconds):
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)
        gained, files = growth(watch.memory[run.pid]), watch.open[run.pid]
        self.assertLess(gained, GROWTH_MAX, f"{strategy}: the hub grows")
        early = max(files[:(len(files) + 1) // 2])  # evaluator and saver start on the way
        self.assertLess(files[-1], early + DESCRIPTORS_MAX, f"{strategy}: descriptors leak")
        rounds = sum(row["rounds"] for row in ended.result["worker"])
        others = [growth(sizes) for pid, sizes in watch.memory.items()
                  if pid != run.pid and len(sizes) >= 12]
        self.rows.append((rounds, gained))
        print(f"{strategy:12} {rounds:9} rounds {rounds / seconds:7.0f}/s, "
              f"{ended.result['steps']:9} steps; the hub gained {gained} kB, others at most "
              f"{max(others, default=0)}; {max(files)} descriptors ({files[-1] - files[0]:+})",
              flush=True)

    def play(self, strategy):
        watch, began = Watch(), time.monotonic()
        run = self.start(*job_of(strategy))
        run.wait_working()
        for _ in range(HUBS):
            run = self.kill_hub(run, strategy)
        self.torment(run, watch)
        self.check(strategy, run, watch, time.monotonic() - began)

    def test_nothing_is_lost_and_nothing_leaks(self):
        began = time.monotonic()
        end = began + 60 * MINUTES
        turn = 0
        while turn < len(support.STRATEGIES) or time.monotonic() < end:
            strategy = support.STRATEGIES[turn % len(support.STRATEGIES)]
            with self.subTest(strategy, turn=turn):
                self.play(strategy)
            turn += 1
            if MINUTES and time.monotonic() >= end:
                break
        self.show(turn, time.monotonic() - began)

    def show(self, runs, seconds):
        rounds = sum(row[0] for row in self.rows)
        gained = sorted(row[1] for row in self.rows) or [0]
        killed = ", ".join(f"{count} {kind}s" for kind, count in self.kills.items())
        print(f"{len(self.rows)} of {runs} runs exact in {seconds:.0f} s, {rounds} rounds; killed: "
              f"{killed}; memory gained by a hub: {gained[len(gained) // 2]} kB (median), at most "
              f"{gained[-1]} kB", flush=True)


if __name__ == "__main__":
    support.main()
