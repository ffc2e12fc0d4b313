#!/usr/bin/env python3
"""Machines on a bad network: late, lost and overtaken packets, slow cables, partitions that heal
and one that does not, a new address. Every run ends, and its ledger adds up.

All strategies run at the same time on the same machines: a hub each on the first one, a worker each
on the others.
"""
import signal
import unittest

import support
from support import machines, net

STRATEGIES = ("fmb", "amb", "async", "ssp", "dbs")
JOB = (*support.SMALL, "--quiet", "--eval-every", 0, "--sample-time", "200us")
WORKERS = 4


@unittest.skipIf(machines.why_not(), machines.why_not())
class TestCase(net.TestCase):
    def setUp(self):
        super().setUp()
        try:
            self.network = machines.Network(1 + WORKERS)
        except OSError as error:
            self.skipTest(f"cannot create a private network: {error}")
        self.addCleanup(self.network.close)

    def begin(self, *arguments, work=(), listen="10.77.0.1:0"):
        """Starts all runs; self.hubs by strategy, self.crowd[strategy][machine]."""
        self.hubs = {strategy: self.hub(*JOB, "--strategy", strategy, "--workers", WORKERS,
                                        *arguments, listen=listen,
                                        enter=self.network.enter(0))
                     for strategy in STRATEGIES}
        self.crowd = {strategy: {machine: self.work(hub, *work,
                                                    enter=self.network.enter(machine))
                                 for machine in range(1, 1 + WORKERS)}
                      for strategy, hub in self.hubs.items()}

    def wait_all(self, happens, what):
        for strategy, hub in self.hubs.items():
            hub.wait_until(lambda hub=hub: happens(hub), f"{strategy}: {what}")

    def wait_further(self, steps):
        """Waits until every run has made that many more steps."""
        goals = {hub: hub.steps() + steps for hub in self.hubs.values()}
        self.wait_all(lambda hub: hub.steps() >= goals[hub], f"{steps} more steps")

    def wait_present(self, count):
        self.wait_all(lambda hub: sum(row["state"] == "working" for row in hub.workers().values())
                      == count, f"{count} workers are there")

    def wait_busy(self):
        """Waits until all workers compute, and have reported."""
        self.wait_present(WORKERS)
        self.wait_further(40)

    def stop(self):
        for hub in self.hubs.values():
            hub.signal(signal.SIGTERM)

    def assert_over(self, code, machines_left):
        """All runs end in order; returns their results by strategy."""
        results = {}
        for strategy, hub in self.hubs.items():
            ended = hub.wait()
            self.assertEqual(ended.code, code, ended)
            self.assert_ledger(ended)
            results[strategy] = ended.result
            for machine in machines_left:
                self.assert_ends(self.crowd[strategy][machine])
        return results


class BadCables(TestCase):
    def test_bad_cables_lose_nothing(self):
        self.check_bad_cables("10.77.0.1:0")

    def test_addresses_may_be_of_version_6(self):
        if not self.network.has_ipv6:
            self.skipTest("this kernel has no IPv6")
        results = self.check_bad_cables("[fd77::1]:0")
        for strategy, result in results.items():
            for row in result["worker"]:
                self.assertRegex(row["connection"]["address"], rf"^\[fd77::[2-5]\]:\d+$",
                                 strategy)

    def check_bad_cables(self, listen):
        self.network.cable(1, delay=0.01)
        self.network.cable(2, loss=0.03)
        self.network.cable(3, reorder=0.2)
        self.network.cable(4, rate=300_000)
        self.begin("--steps", 40, listen=listen)
        results = self.assert_over(support.DONE, range(1, 1 + WORKERS))
        for strategy, result in results.items():
            self.assertEqual(result["respawns"], 0, strategy)
        calm = self.train(*JOB, "--strategy", "fmb", "--workers", WORKERS, "--steps", 40).result
        self.assertEqual(results["fmb"]["params_hash"], calm["params_hash"])
        self.check_links(results)
        return results

    def check_links(self, results):
        """Nobody's round trip is shorter than the cable; lost packets were sent again."""
        links = [row["connection"] for result in results.values() for row in result["worker"]]
        slow = min(link["round_trip_seconds_min"] for link in links
                   if "2]" in link["address"] or ".2:" in link["address"])
        self.assertGreater(slow, 0.02)
        self.assertGreater(sum(link["resent_packets"] for link in links), 0)


class Ports(TestCase):
    def test_a_worker_does_not_take_itself_for_the_hub(self):
        """With few ports, the one it connects from is soon the one it connects to."""
        self.network.call(1, "sh", "-c",
                          "echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range")
        token = self.folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        worker = self.spawn((*self.network.enter(1), support.ANYTIME, "work", "127.0.0.1:40000",
                             "--token", token, "--reconnect", "3s"), {})
        said = self.assert_ends(worker, support.MISSING)
        self.assertIn("Connection refused", said.splitlines()[-2] + said.splitlines()[-1])


class Partitions(TestCase):
    def test_one_that_heals_before_the_lease_ends_loses_nobody(self):
        self.begin("--seconds", "1h", "--lease", "60s", "--record", "steps")
        self.wait_busy()
        self.network.cable(2, cut=True)
        free = self.hubs["async"]
        free.wait_steps(free.steps() + 100)  # the others do not wait
        self.network.cable(2, cut=False)
        self.wait_further(20)
        self.stop()
        results = self.assert_over(support.STOPPED, range(1, 1 + WORKERS))
        for strategy, result in results.items():
            self.assertEqual(result["respawns"], 0, strategy)

    def test_one_that_heals_one_that_does_not_and_a_new_address(self):
        self.begin("--seconds", "1h", "--lease", "1s", "--record", "steps",
                   work=("--reconnect", "1s"))
        self.wait_busy()
        self.network.cable(2, cut=True)
        self.network.cable(3, cut=True)
        self.network.give_address(4, 104)
        self.wait_present(1)
        self.wait_further(20)
        self.network.cable(2, cut=False)
        self.wait_present(3)  # without the third
        for strategy in STRATEGIES:
            said = self.assert_ends(self.crowd[strategy][3], support.MISSING)
            self.assertIn("trying again", said)
        self.wait_further(20)
        self.stop()
        results = self.assert_over(support.STOPPED, (1, 2, 4))
        for strategy, result in results.items():
            rows = {row["id"]: row for row in result["worker"]}
            self.assertGreater(rows[3]["used"], 0, strategy)
            self.assertEqual(len([row for row in rows.values() if row["drawn"]]), WORKERS, strategy)


if __name__ == "__main__":
    support.main()
