#!/usr/bin/env python3
"""Workers and hubs on a network are killed again and again: the run goes on, its ledger is exact,
and nothing is left of it.

ANYTIME_CHAOS=200 kills that many workers in one run and a tenth as many hubs, and about as many
again over all strategies.
"""
import os
import pathlib
import random
import signal

import support
from support import net, processes

KILLS = int(os.environ.get("ANYTIME_CHAOS", "40"))
WORKERS = 3
STRATEGIES = (*support.GRADIENTS, *support.LOCAL_STEPS)
JOB = (*support.SMALL, "--quiet", "--eval-every", 0)


class Chaos(net.TestCase):
    def begin(self, *arguments):
        self.chance = random.Random(1)
        self.restless = self.hub(*JOB, "--workers", WORKERS, "--sample-time", "50us",
                                 "--steps", 10**7, "--checkpoint-every", 10, "--record", "steps",
                                 *arguments)
        self.address = self.restless.address()
        self.marks = [self.restless.mark]
        self.crowd = [self.work(self.restless) for _ in range(WORKERS)]

    def wait_busy(self):
        """Waits until all workers are there and make steps."""
        run = self.restless
        run.wait_until(lambda: sum(row["state"] == "working" for row in run.workers().values())
                       == WORKERS, "all workers are there")
        run.wait_steps(run.steps() + self.chance.randrange(1, 6))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.restless.pid}/fd"))

    def kill_workers(self, count):
        """Kills some of them and starts others."""
        for _ in range(count):
            victim = self.crowd.pop(self.chance.randrange(len(self.crowd)))
            victim.kill()
            victim.wait()
        self.crowd += [self.work(self.restless) for _ in range(count)]

    def kill_hub(self):
        """Workers come back to the next hub by themselves."""
        run = self.restless
        run.process.kill()
        run.wait()
        self.restless = self.hub(folder=run.folder, listen=self.address)
        self.marks.append(self.restless.mark)

    def storm(self, kills_max, hubs_max):
        """Descriptors do not add up: a seat may have one more, for the gradient of its last
        worker. Hubs die while they train, and while workers are joining."""
        self.wait_busy()
        most = self.descriptors() + WORKERS
        kills = hubs = 0
        while kills < kills_max or hubs < hubs_max:
            count = min(self.chance.choice((1, 1, 2, 3)), kills_max - kills)
            kills += count
            self.kill_workers(count)
            if self.chance.random() < 0.9:
                self.wait_busy()
                support.wait_until(lambda: self.descriptors() <= most, f"{most} descriptors")
            if hubs < kills * hubs_max // kills_max:
                hubs += 1
                self.kill_hub()
        self.wait_busy()
        return f"workers killed: {kills}, hubs killed: {hubs}"

    def finish(self):
        """Stops the run; what it has left behind is complete and in order."""
        run = self.restless
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        for process in self.crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)
        for mark in self.marks:
            support.wait_until(lambda mark=mark: not processes.marked(mark),
                               "the children of killed hubs have ended")
        return ended

    def test_killed_workers_and_hubs_lose_nothing(self):
        self.begin("--workers-min", WORKERS)
        print(self.storm(KILLS, KILLS // 10), flush=True)
        ended = self.finish()
        calm = self.complete(*JOB, "--steps", ended.result["steps"], "--record", "steps",
                             "--checkpoint-every", 10**6, workers=WORKERS)
        self.assertEqual(ended.result["params_hash"], calm.result["params_hash"],
                         "killed workers and hubs have changed the bits")
        names = [{path.name for path in pathlib.Path(run.folder).iterdir()}
                 for run in (ended, calm)]
        self.assertEqual(names[0], names[1])

    def test_every_strategy_survives_deaths_of_its_workers_and_of_its_hub(self):
        kills = max(2, KILLS // len(STRATEGIES))
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                self.begin("--strategy", strategy)
                print(f"{strategy}: {self.storm(kills, max(1, kills // 10))}", flush=True)
                self.finish()


if __name__ == "__main__":
    support.main()
