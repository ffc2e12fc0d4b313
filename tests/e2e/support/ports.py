"""Ports for programs that cannot be asked to choose one themselves.

The system gives ports of its own range to every connection, and keeps them for a minute after the
end of a connection. On a busy machine one that was free a moment ago is soon taken, so these are
from below that range.
"""
import pathlib
import random
import socket

LOWEST = 10000
RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Different ports that nobody uses at the moment."""
    end = int(RANGE.read_text().split()[0])
    candidates = random.sample(range(LOWEST, end), end - LOWEST)
    free = [port for port, _ in zip(filter(is_free, candidates), range(count))]
    assert len(free) == count, f"no {count} free ports below {end}"
    return free


if __name__ == "__main__":
    print(*free_ports(1))
