#!/usr/bin/env python3
"""Spot machines: a fleet grows and shrinks as a real one did. Every run ends with an exact ledger,
and each worker's place has what it did. (bench/spot.py measures what is gained.)"""
import random
import signal

import support
from support import net

JOB = (*support.SMALL, "--quiet", "--eval-every", 0, "--sample-time", "200us", "--record", "steps")
FLEET = (3, 8, 7, 11, 0, 5, 2, 9, 0, 4)  # machines that are there, as in an availability trace
STRATEGIES = ("fmb", "amb", "async")


class Spot(net.TestCase):
    def resize(self, hub, crowd, machines, chance):
        """Kills or starts workers until there are that many; waits until the hub knows."""
        while len(crowd) > machines:
            victim = crowd.pop(chance.randrange(len(crowd)))
            victim.kill()
            victim.wait()
        crowd += [self.work(hub) for _ in range(machines - len(crowd))]
        hub.wait_until(lambda: sum(row["state"] == "working" for row in hub.workers().values())
                       == machines, f"{machines} workers are there")

    def test_a_fleet_that_comes_and_goes(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                chance, crowd = random.Random(1), []
                hub = self.hub(*JOB, "--strategy", strategy, "--workers", 1, "--workers-max", 16,
                               "--seconds", "1h", "--join-timeout", "1h")
                for machines in FLEET:
                    self.resize(hub, crowd, machines, chance)
                    if machines:
                        hub.wait_steps(hub.steps() + 5)
                hub.signal(signal.SIGTERM)
                ended = hub.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                for process in crowd:
                    self.assert_ends(process)
                self.assert_ledger(ended)
                self.check_members(ended)

    def check_members(self, ended):
        """Joins and losses are those of the fleet."""
        changes = [b - a for a, b in zip((0, *FLEET), FLEET)]
        rows = ended.result["worker"]
        joins = sum(change for change in changes if change > 0)
        losses = -sum(change for change in changes if change < 0)
        self.assertEqual(sum(row["incarnations"] for row in rows), joins)
        self.assertEqual(sum(row["connection"]["losses"] for row in rows
                             if "connection" in row), losses)


if __name__ == "__main__":
    support.main()
