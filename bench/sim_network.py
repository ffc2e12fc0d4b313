#!/usr/bin/env python3
"""Simulated step times against real ones: MPI ranks in network namespaces with slow links.

    bench/sim_network.py [PROGRAM]        default: build/anytime; needs root, ip, tc and mpirun

Every rank has a namespace of its own, joined by a switch (a bridge), and a link with a limited rate
in both directions. Computing is padded, so it takes as long as in the simulation. Target: steps
with a hub and with all-reduce within 5 %. Exits with 1 if that is missed, with 77 if the namespaces
cannot be made. Not every kernel has artificial latency, so only bandwidth is limited. Run it on an
idle machine: ranks that wait for a core look like a slow network.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# 66 bytes of Ethernet, IP and TCP headers per 1,448 bytes of contents
OVERHEAD = 1514 / 1448
WORKERS, STEPS, BATCH = 4, 12, 8
TOLERANCE = 0.05
RUN = ["--data", "synthetic:2000,1000,500", "--model", "softmax", "--batch", str(BATCH),
       "--sample-time", "25ms", "--steps", str(STEPS), "--strategy", "fmb", "--record", "none",
       "--eval-size", "10", "--json", "--quiet"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class Cluster:
    """Ranks in namespaces 10.98.0.1, .2, .., joined by a switch."""

    def __init__(self, ranks, rate, folder):
        self.names = [f"at{os.getpid()}n{i}" for i in range(ranks + 1)]  # the first is the switch
        for name in self.names:
            ip("netns", "add", name)
        switch = self.names[0]
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for i, name in enumerate(self.names[1:], 1):
            ip("-n", switch, "link", "add", f"port{i}", "type", "veth", "peer", "name", "cable",
               "netns", name)
            ip("-n", switch, "link", "set", f"port{i}", "master", "switch", "up")
            ip("-n", name, "addr", "add", f"10.98.0.{i}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
            self.limit(name, "cable", rate)
            self.limit(switch, f"port{i}", rate)
        self.agent = folder / "agent.sh"  # used by mpirun instead of ssh: HOST COMMAND
        cases = "\n".join(f"10.98.0.{i}) ns={name};;" for i, name in enumerate(self.names[1:], 1))
        self.agent.write_text(f'#!/bin/sh\ncase $1 in\n{cases}\nesac\nshift\n'
                              'exec ip netns exec $ns unshare --uts sh -c "hostname $ns; $*"\n')
        self.agent.chmod(0o755)

    @staticmethod
    def limit(name, device, rate):
        """Sends at most `rate` bytes per second."""
        subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root",
                        "tbf", "rate", f"{int(8 * rate)}bit", "burst", "64k", "latency", "2s"],
                       check=True, capture_output=True, timeout=20)

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False,
                           timeout=20)


def step_seconds(command, folder, env=None):
    done = subprocess.run([*command, "--run", str(folder)], text=True, capture_output=True,
                          timeout=300, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])["step_seconds"]["p50"]


def real(program, cluster, ranks, folder, words):
    hosts = ",".join(f"10.98.0.{i}:1" for i in range(1, ranks + 1))
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_plm_rsh_agent": str(cluster.agent),
           "OMPI_MCA_btl_tcp_if_include": "10.98.0.0/24",
           "OMPI_MCA_oob_tcp_if_include": "10.98.0.0/24"}
    command = ["ip", "netns", "exec", cluster.names[1], "unshare", "--uts", "sh", "-c",
               f'hostname {cluster.names[1]}; exec "$@"', "sh", "mpirun", "-n", str(ranks),
               "--host", hosts, "--bind-to", "none", program, "train", *RUN, *words]
    return step_seconds(command, folder, env)


def compare(program, rate, what, folder):
    """Whether the simulated step is near the real one."""
    allreduce = what == "allreduce"
    words = ["--topology", "allreduce"] if allreduce else []
    network = ["--allreduce", "tree"] if allreduce else []  # nearer than a ring
    ranks = WORKERS if allreduce else WORKERS + 1
    cluster = Cluster(ranks, rate, folder)
    try:
        measured = real(program, cluster, ranks, folder / f"{what}-{rate:.0f}", words)
    finally:
        cluster.close()
    simulated = step_seconds([program, "simulate", *RUN, "--workers", str(WORKERS), "--bandwidth",
                              str(rate / OVERHEAD), *words, *network],
                             folder / f"sim-{what}-{rate:.0f}")
    print(f"{what:9} {rate * 8 / 1e6:5.0f} Mbit/s: real {measured:.3f} s, simulated "
          f"{simulated:.3f} s, {100 * (simulated / measured - 1):+.1f} %", flush=True)
    return abs(simulated / measured - 1) <= TOLERANCE


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "anytime")
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "mpirun"))):
        print("skipped: needs root, ip, tc and mpirun")
        sys.exit(77)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for megabits in (20, 100, 1000):
            for what in ("hub", "allreduce"):
                good = compare(program, megabits * 1e6 / 8, what, pathlib.Path(folder)) and good
    sys.exit(not good)


if __name__ == "__main__":
    main()
