#!/usr/bin/env python3
"""Simulated step times against real ones: MPI ranks in network namespaces with slow links.

    bench/sim_network.py [PROGRAM]        default: build/anytime; needs root, ip, tc and mpirun

Every rank has a namespace of its own, joined by a switch (a bridge), and a link with a limited rate
in both directions. As a user would, `anytime link` measures latency and bandwidth between two ranks
first, and the simulation gets what it finds. Computing is padded, so it takes as long as in the
simulation. Target: steps with a hub and with all-reduce within 5 %. Exits with 1 if that is missed,
with 77 if the namespaces cannot be made.

A gradient has 1 MB, one chunk of an all-reduce. By itself Open MPI sums along a tree, and several
chunks then overlap by chance: a step with 2 MB takes 3 to 5 transfers. `ring` asks it for
Rabenseifner's algorithm, which sends as much as a ring does.

Ranks use TCP's classic congestion control (reno), under which connections share a link equally; bbr
does not, and a step with a hub is then up to 10 % shorter. Not every kernel has artificial latency,
so packets are delayed by a process here (network_delay.py). Ranks that wait for a core look like a
slow network: on a busy machine, run it with a high priority, in a session of its own.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import network_delay

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKERS, STEPS, BATCH = 4, 15, 8
TOLERANCE = 0.05
RUN = ["--data", "synthetic:2000,1000,250", "--model", "softmax", "--batch", str(BATCH),
       "--sample-time", "25ms", "--steps", str(STEPS), "--strategy", "fmb", "--record", "none",
       "--eval-size", "10", "--json", "--quiet"]
# Mbit/s, seconds from one rank to another
NETWORKS = ((100, 0), (100, 0.004), (300, 0), (300, 0.002), (1000, 0))
# What the run and its simulation have in common, what only the simulation has, what MPI is told.
STEPS_OF = {"hub": ([], ["--broadcast", "share"], {}),
            "tree": (["--mix", "replicated"], ["--allreduce", "tree"], {}),
            "ring": (["--mix", "replicated"], ["--allreduce", "ring"],
                     {"OMPI_MCA_coll_libnbc_iallreduce_algorithm": "3"})}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class Cluster:
    """Ranks in namespaces 10.98.0.1, .2, .., joined by a switch."""

    def __init__(self, ranks, rate, delay, folder):
        self.names = [f"at{os.getpid()}n{i}" for i in range(ranks + 1)]  # the first is the switch
        self.delay = network_delay.Delay(delay / 2) if delay else None  # per link
        for name in self.names:
            ip("netns", "add", name)
        switch = self.names[0]
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for i, name in enumerate(self.names[1:], 1):
            self.plug_in(name, f"port{i}")
            ip("-n", switch, "link", "set", f"port{i}", "master", "switch", "up")
            ip("-n", name, "addr", "add", f"10.98.0.{i}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
            self.inside(name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
            self.limit(name, "cable", rate)
            self.limit(switch, f"port{i}", rate)
        if self.delay:
            self.delay.start()
        self.agent = folder / "agent.sh"  # used by mpirun instead of ssh: HOST COMMAND
        cases = "\n".join(f"10.98.0.{i}) ns={name};;" for i, name in enumerate(self.names[1:], 1))
        self.agent.write_text(f'#!/bin/sh\ncase $1 in\n{cases}\nesac\nshift\n'
                              'exec ip netns exec $ns unshare --uts sh -c "hostname $ns; $*"\n')
        self.agent.chmod(0o755)

    def plug_in(self, name, port):
        """A cable from a rank's namespace to a port of the switch."""
        switch = self.names[0]
        if not self.delay:
            ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "cable", "netns",
               name)
            return
        for device, (namespace, end) in zip(self.delay.cable(), ((name, "cable"), (switch, port)),
                                            strict=True):
            ip("link", "set", device, "netns", namespace, "name", end)
            ip("-n", namespace, "link", "set", end, "mtu", str(network_delay.MTU))

    @staticmethod
    def inside(name, *command):
        subprocess.run(["ip", "netns", "exec", name, *command], check=True, capture_output=True,
                       timeout=20)

    def limit(self, name, device, rate):
        """Sends at most `rate` bytes per second. A link that was idle may send `burst` at once: a
        timer that fires every 250 us must be able to keep it busy."""
        least = 2 * network_delay.MTU if self.delay else 8192
        burst = max(least, int(250e-6 * rate))
        self.inside(name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                    f"{int(8 * rate)}bit", "burst", str(burst), "latency", "50ms")

    def run(self, ranks, *command, tell_mpi=None):
        """The output of a command that mpirun starts in so many namespaces."""
        hosts = ",".join(f"10.98.0.{i}:1" for i in range(1, ranks + 1))
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_plm_rsh_agent": str(self.agent),
               "OMPI_MCA_btl_tcp_if_include": "10.98.0.0/24",
               "OMPI_MCA_oob_tcp_if_include": "10.98.0.0/24", **(tell_mpi or {})}
        first = self.names[1]
        return output(["ip", "netns", "exec", first, "unshare", "--uts", "sh", "-c",
                       f'hostname {first}; exec "$@"', "sh", "mpirun", "-n", str(ranks), "--host",
                       hosts, "--bind-to", "none", *command], env)

    def close(self):
        if self.delay:
            self.delay.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False,
                           timeout=20)


def output(command, env=None):
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n"
                 f"{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def measure_link(program, cluster):
    """Latency and bandwidth of one message, from round trips of two sizes."""
    link = cluster.run(2, program, "link", "--sizes", "500k,2M", "--seconds", "2", "--json",
                       "--quiet")
    small, large = ((row["bytes"], row["mpi"]["round_seconds"] / 2) for row in link["sizes"])
    bandwidth = (large[0] - small[0]) / (large[1] - small[1])
    return max(1e-6, small[1] - small[0] / bandwidth), bandwidth


def compare(program, network, cluster, folder):
    """Whether the simulated steps are near the real ones."""
    latency, bandwidth = measure_link(program, cluster)
    print(f"{network[0]} Mbit/s, {1e3 * network[1]:g} ms: measured {8e-6 * bandwidth:.1f} Mbit/s, "
          f"{1e3 * latency:.2f} ms per message", flush=True)
    good = True
    for what, (words, simulated_words, tell_mpi) in STEPS_OF.items():
        ranks = WORKERS + (what == "hub")
        name = f"{what}-{network[0]}-{1e3 * network[1]:g}"
        real = cluster.run(ranks, program, "train", *RUN, *words, "--run", str(folder / name),
                           tell_mpi=tell_mpi)["step_seconds"]["p50"]
        simulated = output([program, "simulate", *RUN, *words, *simulated_words, "--workers",
                            str(WORKERS), "--bandwidth", str(bandwidth), "--latency",
                            f"{1e6 * latency:.0f}us", "--run",
                            str(folder / f"{name}-sim")])["step_seconds"]["p50"]
        print(f"  {what:5} real {real:.3f} s, simulated {simulated:.3f} s, "
              f"{100 * (simulated / real - 1):+.1f} %", flush=True)
        good = good and abs(simulated / real - 1) <= TOLERANCE
    return good


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "anytime")
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "mpirun"))):
        print("skipped: needs root, ip, tc and mpirun")
        sys.exit(77)
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for megabits, delay in NETWORKS:
            cluster = Cluster(WORKERS + 1, megabits * 1e6 / 8, delay, folder)
            try:
                good = compare(program, (megabits, delay), cluster, folder) and good
            finally:
                cluster.close()
    sys.exit(not good)


if __name__ == "__main__":
    main()
