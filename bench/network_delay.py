"""Cables with a delay, for kernels without artificial latency (tc netem).

A cable is a pair of tap devices. A process moves every packet from one to the other after a fixed
time, in both directions. Large packets keep it from being the bottleneck.
"""
import collections
import fcntl
import os
import select
import signal
import struct
import time

MTU = 9000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Delay:
    """Some cables and the process that serves them."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.other = {}  # end of each tap's packets
        self.pid = 0

    def cable(self):
        """Names of two new devices of this namespace, which may be moved and renamed."""
        number = len(self.other)
        names = [f"t{os.getpid()}{end}{number}" for end in "ab"]
        left, right = map(open_tap, names)
        self.other.update({left: right, right: left})
        return names

    def start(self):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.serve()
            finally:
                os._exit(0)

    def serve(self):
        poll = select.epoll()
        for tap in self.other:
            poll.register(tap, select.EPOLLIN)
        waiting = collections.deque()  # all have the same delay, so they leave in order
        while True:
            timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else -1
            for tap, _ in poll.poll(timeout):
                self.read_all(tap, waiting)
            while waiting and waiting[0][0] <= time.monotonic():
                _, tap, packet = waiting.popleft()
                try:
                    os.write(tap, packet)
                except OSError:
                    pass  # the device is down: a lost packet

    def read_all(self, tap, waiting):
        try:
            while True:
                packet = os.read(tap, MTU + 64)
                waiting.append((time.monotonic() + self.seconds, self.other[tap], packet))
        except OSError:
            pass  # nothing more to read

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for tap in self.other:
            os.close(tap)
