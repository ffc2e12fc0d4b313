#!/usr/bin/env python3
"""Sixteen spot machines that come and go: what a run makes of them.

    bench/spot.py TRACE [--program build/anytime] [--strategies amb fmb async] [--first 2330]
                  [--intervals 120] [--repeats 1]

TRACE is an availability trace ({"metadata": .., "data": [machines, ..]}). Each interval (300 s in
the trace) takes one second. A machine is a process `anytime work`; one that is taken away is killed
with SIGKILL, one that comes is started. Every sample takes 4 ms of sleep, so that sixteen workers
do not compete for the cores of this machine.

    ideal      as many samples per worker and second as eight workers make that nobody interrupts
    elastic    the workers that are there join a hub that goes on
    restart    at every change the run is killed, and resumed from its last checkpoint with the
               workers that are there, as `torchrun` does; a checkpoint every second (300 s of the
               trace). Programs on machines that stay load the job again without being started
               again, which is less than `torchrun` does

Goodput is samples used per second; the useful share is the time for those samples by the time that
machines were there. Both count start-up: a machine is paid for while its program loads.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

SAMPLE = 0.004
JOB = ("--data", "synthetic:2000,20,5", "--batch", "32", "--eval-every", "0", "--quiet",
       "--sample-time", f"{SAMPLE * 1000:g}ms", "--record", "steps")
CALM_WORKERS, CALM_SECONDS = 8, 12


class Fleet:
    """A hub and the machines that are there."""

    def __init__(self, options, strategy, folder):
        self.options, self.strategy, self.folder = options, strategy, folder
        self.chance = random.Random(1)
        self.hub, self.crowd, self.kills = None, [], 0

    def start(self, *words):
        return subprocess.Popen([str(self.options.program), *map(str, words)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=self.folder.with_suffix(".err").open("ab"))

    @property
    def hub_file(self):
        return self.folder.with_suffix(".hub")

    @property
    def token(self):
        return self.folder.with_suffix(".token")

    def open_hub(self, *words):
        """A new run, or the rest of one that has a checkpoint."""
        self.hub_file.unlink(missing_ok=True)
        where = ("--listen", "127.0.0.1:0", "--hub-file", self.hub_file, "--token", self.token)
        resumes = any((self.folder / "checkpoint").glob("step-*.safetensors"))
        if not resumes:
            shutil.rmtree(self.folder, ignore_errors=True)
        what = ("--resume", self.folder) if resumes else \
            (*JOB, "--strategy", self.strategy, "--workers-max", 16, "--run", self.folder)
        self.hub = self.start("hub", *where, *what, *words)
        while not self.hub_file.exists():
            assert self.hub.poll() is None, self.folder.with_suffix(".err").read_text()
            time.sleep(0.005)

    def machines(self, count):
        """Takes machines away or brings some, until there are that many."""
        while len(self.crowd) > count:
            victim = self.crowd.pop(self.chance.randrange(len(self.crowd)))
            victim.kill()
            victim.wait()
            self.kills += 1
        while len(self.crowd) < count:
            self.crowd.append(self.start("work", "--hub-file", self.hub_file, "--token",
                                         self.token, "--reconnect", "30s"))

    def replace_ended(self):
        """Workers that have ended by themselves are a defect; say so."""
        for worker in [one for one in self.crowd if one.poll() is not None]:
            print(f"a worker ended with code {worker.returncode}: see "
                  f"{self.folder.with_suffix('.err')}")
            self.crowd.remove(worker)

    def kill_hub(self):
        if self.hub:
            self.hub.kill()
            self.hub.wait()
        self.hub = None

    def close(self):
        """Stops the run in order; returns its result."""
        if self.hub:
            self.hub.send_signal(signal.SIGTERM)
            self.hub.wait(60)
        self.hub = None
        self.machines(0)
        return json.loads((self.folder / "result.json").read_text())


def follow(trace, act):
    """Calls act(machines) when it is time for the next interval."""
    begin = time.monotonic()
    for index, machines in enumerate(trace):
        time.sleep(max(0, begin + index - time.monotonic()))
        act(machines)
    time.sleep(max(0, begin + len(trace) - time.monotonic()))


def elastic(options, strategy, folder, trace):
    fleet = Fleet(options, strategy, folder)
    fleet.open_hub("--workers", 1, "--seconds", "1h", "--join-timeout", "1h")

    def act(machines):
        fleet.replace_ended()
        fleet.machines(machines)
    follow(trace, act)
    return fleet.close(), fleet.kills


def restart(options, strategy, folder, trace):
    """Nothing runs without machines."""
    fleet = Fleet(options, strategy, folder)
    before = [0]

    def act(machines):
        fleet.replace_ended()
        failed = fleet.hub and fleet.hub.poll() is not None  # nobody came in time
        if machines == before[0] and not failed:
            return
        before[0] = machines
        fleet.kill_hub()
        fleet.machines(min(machines, len(fleet.crowd)))
        if machines:
            fleet.open_hub("--workers", machines, "--seconds", "1h", "--join-timeout", "1s",
                           "--checkpoint-every", "1s")
            fleet.machines(machines)
    follow(trace, act)
    changes = sum(a != b for a, b in zip([0, *trace], trace))
    if not fleet.hub:  # ends without machines: what counts is the last checkpoint
        fleet.open_hub("--workers", 1, "--seconds", "1ms")
        fleet.machines(1)
        fleet.hub.wait(60)
    return fleet.close(), changes


def calm(options, strategy, folder):
    """Samples per worker and second when nobody is interrupted."""
    fleet = Fleet(options, strategy, folder)
    fleet.open_hub("--workers", CALM_WORKERS, "--seconds", f"{CALM_SECONDS}s")
    fleet.machines(CALM_WORKERS)
    fleet.hub.wait(CALM_SECONDS + 60)
    fleet.hub = None
    result = fleet.close()
    return result["samples"]["used"] / result["seconds"] / CALM_WORKERS


def measure(options, strategy, trace, folder):
    """Samples used by each way, with how often it was disturbed."""
    rate = calm(options, strategy, folder / f"{strategy}-calm")
    rows = {"ideal": (rate * sum(trace), 0)}
    for name, play in (("elastic", elastic), ("restart", restart)):
        result, disturbed = play(options, strategy, folder / f"{strategy}-{name}", trace)
        samples = result["samples"]
        assert samples["drawn"] == samples["used"] + samples["dropped"], samples
        rows[name] = (samples["used"], disturbed)
    return rows


def show(strategy, repeats, trace):
    paid = sum(trace)
    for name in ("ideal", "elastic", "restart"):
        used = [rows[name][0] for rows in repeats]
        ideal = [rows["ideal"][0] for rows in repeats]
        share = statistics.median(a / b for a, b in zip(used, ideal))
        middle = statistics.median(used)
        print(f"{strategy:8} {name:8} {middle / len(trace):11.0f} {middle * SAMPLE / paid:13.1%} "
              f"{share:9.1%} {repeats[0][name][1]:10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/anytime"))
    parser.add_argument("--strategies", nargs="+", default=["amb", "fmb", "async"])
    parser.add_argument("--first", type=int, default=2330)
    parser.add_argument("--intervals", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    options.program = options.program.resolve()
    data = json.loads(options.trace.read_text())["data"]
    trace = data[options.first:options.first + options.intervals]
    changes = sum(a != b for a, b in zip([0, *trace], trace))
    print(f"{len(trace)} s, {sum(trace)} worker-seconds, at most {max(trace)} machines, "
          f"{changes} changes, load {os.getloadavg()[0]:.1f}")
    print(f"{'strategy':8} {'':8} {'samples/s':>11} {'useful share':>13} {'of ideal':>9} "
          f"{'disturbed':>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for strategy in options.strategies:
            repeats = [measure(options, strategy, trace, pathlib.Path(folder, str(repeat)))
                       for repeat in range(options.repeats)
                       if pathlib.Path(folder, str(repeat)).mkdir(exist_ok=True) is None]
            show(strategy, repeats, trace)


if __name__ == "__main__":
    main()
