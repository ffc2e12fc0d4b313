"""Machines on a private network whose cables are bad: network namespaces and a packet switch.

Everything belongs to processes that end when their input does, so nothing is left behind, even if
the test is killed.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import support

TOOLS = ("ip", "unshare", "nsenter")
SWITCH = pathlib.Path(__file__).parent / "packet_switch.py"


def why_not():
    """Why this machine cannot have private networks; None: it can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0:
        return "private networks need root"
    if missing:
        return f"private networks need {', '.join(missing)}"
    return None if os.path.exists("/dev/net/tun") else "private networks need /dev/net/tun"


class Network:
    """Machines 0, 1, ..; the addresses of machine i are 10.77.0.(i + 1) and fd77::(i + 1)."""

    def __init__(self, count):
        self.processes = []
        try:
            self.keepers = [self._start(["unshare", "--net", "cat"]) for _ in range(count)]
            for keeper in self.keepers:
                support.wait_until(lambda pid=keeper.pid: self._is_separate(pid),
                                   "the namespace exists")
            self.switch = self._start([sys.executable, SWITCH,
                                       *(keeper.pid for keeper in self.keepers)])
            self._expect("ready")
            for machine in range(count):
                self.call(machine, "ip", "link", "set", "lo", "up")
                self.call(machine, "ip", "link", "set", "net", "up")
                self.give_address(machine, machine + 1)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    @property
    def has_ipv6(self):
        """The kernel may be without it."""
        return os.path.exists("/proc/sys/net/ipv6")

    def _start(self, command):
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def _expect(self, word):
        if self.switch.stdout.readline() != word + "\n":
            raise OSError("the packet switch has failed")

    @staticmethod
    def _is_separate(pid):
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")

    def enter(self, machine):
        """The words in front of a command that runs on a machine."""
        return ("nsenter", f"--net=/proc/{self.keepers[machine].pid}/ns/net")

    def call(self, machine, *command):
        subprocess.run([*self.enter(machine), *command], check=True, capture_output=True,
                       timeout=support.BOUND)

    def give_address(self, machine, number):
        """The machine has this address from now on, and no other."""
        self.call(machine, "ip", "addr", "flush", "dev", "net")
        self.call(machine, "ip", "addr", "add", f"10.77.0.{number}/24", "dev", "net")
        if self.has_ipv6:
            self.call(machine, "ip", "addr", "add", f"fd77::{number}/64", "dev", "net", "nodad")

    def cable(self, machine, **properties):
        """Sets delay (s), loss, reorder (shares of packets), rate (bytes/s) or cut."""
        self.switch.stdin.write(json.dumps({"machine": machine, **properties}) + "\n")
        self.switch.stdin.flush()
        self._expect("done")

    def close(self):
        for process in reversed(self.processes):
            process.stdin.close()
            process.wait(support.BOUND)
            process.stdout.close()
        self.processes = []
