#!/usr/bin/env python3
"""Ranks over TCP, on a private network that is slow and loses packets: the same bits."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import support
from support import mpi, processes

TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo",
       "OMPI_MCA_btl_tcp_port_min_v4": "20000", "OMPI_MCA_btl_tcp_port_range_v4": "1000"}
PORTS = "20000-20999"
RELAY_PORT, RELAY_USER = 30000, 65534
RELAY = pathlib.Path(__file__).parent / "support" / "slow_relay.py"
TOOLS = ("ip", "nft", "unshare", "nsenter", "setpriv")

RULES = f"""
table ip test {{
    chain redirected {{
        type nat hook output priority -100
        tcp dport {PORTS} meta skuid != {RELAY_USER} redirect to :{RELAY_PORT}
    }}
    chain lost {{
        type filter hook input priority 0
        tcp dport {RELAY_PORT} numgen random mod 1000 < 5 counter drop
    }}
}}
"""


CUT = """
table ip cut {
    chain dropped {
        type filter hook input priority 0
        iifname "cable" drop
    }
}
"""


class Network:
    """A network namespace in which MPI's ports pass through a slow relay and lose packets."""

    def __init__(self, delay):
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
        self.enter = ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net"]
        self.relay = None
        support.wait_until(self._is_separate, "the namespace exists")
        self.call("ip", "link", "set", "lo", "up")
        self.call("nft", "-f", "-", input=RULES)
        self.relay = subprocess.Popen(
            [*self.enter, "setpriv", f"--reuid={RELAY_USER}", "--clear-groups", sys.executable,
             "-c", RELAY.read_text(), str(RELAY_PORT), str(delay)],
            stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise OSError("the relay did not start")

    def _is_separate(self):
        return os.readlink(f"/proc/{self.keeper.pid}/ns/net") != os.readlink("/proc/self/ns/net")

    def call(self, *command, **options):
        return subprocess.run([*self.enter, *command], check=True, text=True,
                              capture_output=True, timeout=support.BOUND, **options).stdout

    def close(self):
        for process in (self.relay, self.keeper):
            if process:
                process.kill()
                process.wait()
        if self.relay:
            self.relay.stdout.close()


class Tcp(mpi.TestCase):
    OPTIONS = (*support.SMALL, "--model", "mlp:40")

    def assert_bits_of_local(self, steps, *more, **options):
        arguments = (*self.OPTIONS, "--steps", steps, *more, "--quiet", "--json")
        here = self.local(*arguments, "--workers", 4).result
        there = self.train(*arguments, env=TCP, **options).result
        self.assertEqual(here["params_hash"], there["params_hash"])

    def test_tcp_gives_the_bits_of_shared_memory(self):
        self.assert_bits_of_local(100)

    def test_a_death_is_survived_as_well(self):
        run = self.start(*self.OPTIONS, "--steps", 10**7, "--sample-time", "50us", env=TCP,
                         more=("--enable-recovery",))
        rows = run.wait_working()
        run.wait_steps(20)
        os.kill(rows[2]["pid"], signal.SIGKILL)
        run.wait_until(lambda: run.workers()[2]["state"] == "lost", "the loss is reported")
        run.wait_steps(run.steps() + 20)
        os.kill(run.hub(), signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assert_ledger(ended)


@unittest.skipUnless(os.geteuid() == 0 and all(map(shutil.which, TOOLS)),
                     f"private networks need root and {', '.join(TOOLS)}")
class Slow(Tcp):
    """The same with a delay of 2 ms and one packet in 200 lost."""

    def setUp(self):
        super().setUp()
        try:
            self.network = Network(0.002)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"cannot create a private network: {error}")
        self.addCleanup(self.network.close)

    def start(self, *arguments, **options):
        return super().start(*arguments, enter=self.network.enter, **options)

    def dropped(self):
        rules = self.network.call("nft", "list", "ruleset")
        return int(re.search(r"counter packets (\d+)", rules)[1])

    def until_packets_are_lost(self, check):
        """Losses are random, so that a short run may have none."""
        for _ in range(20):
            check()
            if self.dropped() > 0:
                return
        self.fail("no packet was lost in 20 runs")

    def test_tcp_gives_the_bits_of_shared_memory(self):
        self.until_packets_are_lost(lambda: self.assert_bits_of_local(100))

    def test_every_sample_is_accounted_for(self):
        for strategy in ("async", "backup", "fmb-gossip:ring,1"):
            with self.subTest(strategy=strategy):
                ended = self.train(*self.OPTIONS, "--strategy", strategy, "--steps", 100, env=TCP)
                self.assert_ledger(ended)

    def test_gossip_has_the_bits_of_the_local_world(self):
        gossip = ("--strategy", "fmb-gossip:ring,1")
        self.until_packets_are_lost(lambda: self.assert_bits_of_local(30, *gossip))


class Machines:
    """Two machines: network namespaces joined by a virtual cable, each with its own host name."""

    NET = "10.99.0.0/24"

    def __init__(self, folder):
        self.names = [f"at-{os.getpid()}-{letter}" for letter in "ab"]
        for name in self.names:
            self.call("netns", "add", name)
        a, b = self.names
        self.call("link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable",
                  "netns", b)
        for number, name in enumerate(self.names, 1):
            self.call("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "cable")
            for device in ("lo", "cable"):
                self.call("-n", name, "link", "set", device, "up")
        self.hosts = folder / "hosts"
        self.hosts.write_text("10.99.0.1 slots=3\n10.99.0.2 slots=2\n")
        self.agent = folder / "agent.sh"  # used by mpirun instead of ssh
        self.agent.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {b} unshare --uts sh -c "
                              '"hostname node-b; $*"\n')
        self.agent.chmod(0o755)
        self.enter = ["ip", "netns", "exec", a, "unshare", "--uts", "sh", "-c",
                      'hostname node-a; exec "$@"', "sh"]
        self.env = {"OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_plm_rsh_agent": str(self.agent),
                    "OMPI_MCA_btl_tcp_if_include": self.NET,
                    "OMPI_MCA_oob_tcp_if_include": self.NET}
        self.more = ("--hostfile", str(self.hosts))

    @staticmethod
    def call(*command):
        subprocess.run(["ip", *command], check=True, capture_output=True, timeout=support.BOUND)

    def cut(self, cut=True):
        """The machines cannot reach each other any more; their connections do not notice."""
        rules = CUT if cut else "delete table ip cut\n"
        for name in self.names:
            subprocess.run(["ip", "netns", "exec", name, "nft", "-f", "-"], input=rules, text=True,
                           check=True, capture_output=True, timeout=support.BOUND)

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True,
                           timeout=support.BOUND)


@unittest.skipUnless(os.geteuid() == 0 and all(map(shutil.which, TOOLS)),
                     f"virtual machines need root and {', '.join(TOOLS)}")
class OnTwoMachines(mpi.TestCase):
    def setUp(self):
        super().setUp()
        try:
            self.machines = Machines(self.folder)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"cannot create network namespaces: {error.stderr}")
        self.addCleanup(self.machines.close)

    def start(self, *arguments, env=None, more=(), **options):
        return super().start(*arguments, env={**(env or {}), **self.machines.env},
                             more=(*more, *self.machines.more), enter=self.machines.enter,
                             **options)


class TwoMachines(OnTwoMachines, Tcp):
    def test_a_death_is_survived_as_well(self):
        """The process is on another machine, so only its silence shows the death."""
        run = self.start(*self.OPTIONS, "--steps", 10**7, "--sample-time", "50us",
                         more=("--enable-recovery",))
        rows = run.wait_working()
        self.assertEqual([row["host"] for row in rows.values()], ["node-a"] * 2 + ["node-b"] * 2)
        run.wait_steps(20)
        os.kill(rows[4]["pid"], signal.SIGKILL)
        run.wait_until(lambda: run.workers()[4]["state"] in ("lost", "evicted"),
                       "the loss is reported")
        run.wait_steps(run.steps() + 100)
        os.kill(run.hub(), signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assertEqual([row["worker"] for row in ended.result["lost_rounds"]], [4])
        self.assert_ledger(ended)
        support.wait_until(lambda: not run.left(), "all processes are gone")


class Partition(OnTwoMachines):
    """The cable between two machines is cut while workers average with their neighbors on both."""

    OPTIONS = Tcp.OPTIONS
    STRATEGIES = ("fmb-gossip:ring,1", "amb-gossip:ring,1")
    LASTS = 3  # seconds that a partition lasts which heals; TCP survives it

    def begin(self, strategy, *more, **options):
        run = self.start(*self.OPTIONS, *more, "--strategy", strategy, "--steps", 10**7,
                         "--sample-time", "50us", "--time-limit", "5ms", **options)
        run.wait_working()
        run.wait_steps(20)
        return run

    def test_gossip_goes_on_when_a_partition_heals(self):
        for strategy in self.STRATEGIES:
            with self.subTest(strategy=strategy):
                run = self.begin(strategy, "--lease", "60s")  # longer than TCP needs to recover
                self.machines.cut()
                time.sleep(self.LASTS)  # the partition, not a wait for something
                before = run.steps()
                self.machines.cut(False)
                run.wait_steps(before + 50)
                self.assertEqual({row["state"] for row in run.workers().values()}, {"working"})
                os.kill(run.hub(), signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.result["stopped"], "signal", ended)
                self.assertEqual(ended.result["lost_rounds"], [], ended)
                self.assert_ledger(ended)
                support.wait_until(lambda: not run.left(), "all processes are gone")

    def goes_on_without_the_machine(self, strategy):
        run = self.begin(strategy, more=("--enable-recovery",))
        self.machines.cut()
        run.wait_until(lambda: {row["state"] for row in list(run.workers().values())[2:]} <=
                       {"lost", "evicted"}, "both workers of the other machine are given up")
        run.wait_steps(run.steps() + 50)
        os.kill(run.hub(), signal.SIGTERM)
        run.wait_until(lambda: (run.folder / "result.json").exists(), "the result")
        support.wait_until(lambda: "anytime" not in map(processes.name, run.left()),
                           "all ranks are gone; only mpirun waits for a machine it cannot reach")
        run.process.kill()
        ended = run.wait()
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assertEqual([row["state"] for row in ended.result["worker"][:2]], ["finished"] * 2)
        self.assertLessEqual({row["state"] for row in ended.result["worker"][2:]},
                             {"lost", "evicted"})
        self.assert_ledger(ended)

    def test_gossip_goes_on_without_the_machine_that_does_not_come_back(self):
        self.goes_on_without_the_machine(self.STRATEGIES[0])

    def test_workers_that_average_with_lost_neighbors_are_not_given_up_with_them(self):
        """Nearly all of the time is averaging, so that nobody can report after the cut."""
        self.goes_on_without_the_machine("fmb-gossip:ring,60")


if __name__ == "__main__":
    mpi.main()
