#!/usr/bin/env python3
"""A network between namespaces: carries packets, late, out of order, slowly, or not at all.

usage: packet_switch.py PID ..   one process in the network namespace of each machine

Each namespace gets a device `net`. Prints "ready"; then each line of standard input sets the
properties of one machine's cable, as JSON: {"machine": 1, "delay": 0.01, "loss": 0.05, ..}. It ends
with its input, and the devices with it. (Many kernels have no netem.)
"""
import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_MAX = 65536
QUEUE_MAX = 0.2  # seconds of traffic that a slow cable holds; what comes then is lost


class Cable:
    """What happens to the packets of one machine, in both directions."""

    def __init__(self):
        self.delay = 0.0     # seconds
        self.loss = 0.0      # share of packets
        self.reorder = 0.0   # share of packets that others overtake
        self.rate = 0.0      # bytes per second; 0: no limit
        self.cut = False
        self.busy_until = 0.0

    def carry(self, now, size):
        """When a packet is through; None: it is lost."""
        if self.cut or random.random() < self.loss:
            return None
        start = max(now, self.busy_until)
        if start - now > QUEUE_MAX:
            return None
        if self.rate:
            start += size / self.rate
            self.busy_until = start
        late = 3 * self.delay + 0.002 if random.random() < self.reorder else 0.0
        return start + self.delay + late


def open_tap(pid):
    """A device in the namespace of that process, which becomes ours."""
    with open(f"/proc/{pid}/ns/net", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter a network namespace")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", b"net", IFF_TAP | IFF_NO_PI))
    return tap


class Switch:
    def __init__(self, taps):
        self.taps = taps
        self.cables = {tap: Cable() for tap in taps}
        self.home = {}  # device of each hardware address
        self.waiting = []
        self.number = itertools.count()  # packets that are due together leave in order

    def forward(self, tap, packet, now):
        self.home[packet[6:12]] = tap
        known = self.home.get(packet[:6])
        for other in (known,) if known else self.taps:
            if other == tap:
                continue
            there = self.cables[tap].carry(now, len(packet))
            due = there and self.cables[other].carry(there, len(packet))
            if due:
                heapq.heappush(self.waiting, (due, next(self.number), other, packet))

    def read_all(self, tap):
        try:
            while True:
                self.forward(tap, os.read(tap, FRAME_MAX), time.monotonic())
        except OSError:
            pass  # nothing more to read, or the device is down

    def deliver(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, tap, packet = heapq.heappop(self.waiting)
            try:
                os.write(tap, packet)
            except OSError:
                pass  # a lost packet

    def obey(self, line):
        words = json.loads(line)
        cable = self.cables[self.taps[words.pop("machine")]]
        for name, value in words.items():
            setattr(cable, name, value)
        print("done", flush=True)

    def serve(self):
        poll = select.epoll()
        for source in (*self.taps, sys.stdin.fileno()):
            poll.register(source, select.EPOLLIN)
        while True:
            due = self.waiting[0][0] - time.monotonic() if self.waiting else -1
            for source, _ in poll.poll(max(0, due) if self.waiting else -1):
                if source in self.cables:
                    self.read_all(source)
                    continue
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                self.obey(line)
            self.deliver()


if __name__ == "__main__":
    switch = Switch([open_tap(pid) for pid in sys.argv[1:]])
    print("ready", flush=True)
    switch.serve()
