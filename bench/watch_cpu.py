#!/usr/bin/env python3
"""Cost of a dashboard: processor time of `anytime watch` relative to that of the training.

    ANYTIME=build/anytime bench/watch_cpu.py [SECONDS]

One client behaves like the page: it reads the stream and requests updates at most once per second.
The training's time is that of all its processes. Prints one line per workload.
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ANYTIME = os.environ.get("ANYTIME", "build/anytime")
EVERY = 1.0  # seconds between two updates of a page, as in src/report/page/live.js

WORKLOADS = {
    "softmax, 4 workers, batch 60": ("--workers", "4", "--batch", "60"),
    "mlp:300,100, 4 workers, batch 256": ("--model", "mlp:300,100", "--workers", "4", "--batch",
                                          "256"),
    "softmax, 4 workers, batch 60, async": ("--workers", "4", "--batch", "60", "--strategy",
                                            "async"),
}


class Client:
    """Sends the same requests as the page."""

    def __init__(self, url):
        self.root, _, self.token = url.partition("/?token=")
        self.stream = self.open("/api/stream")
        self.edition = self.serial = 0
        self.updates = self.size = 0

    def open(self, path):
        request = urllib.request.Request(self.root + path,
                                         headers={"Authorization": "Bearer " + self.token})
        return urllib.request.urlopen(request, timeout=60)

    def get(self, path):
        body = self.open(path).read()
        self.size += len(body)
        return json.loads(body)

    def watch(self, until):
        """Follows updates until a given time."""
        while time.monotonic() < until:
            if not self.stream.readline().startswith(b"data: "):
                continue
            self.get("/api/runs")
            update = self.get(f"/api/summary?run=0&edition={self.edition}&since={self.serial}")
            if update["story"]:
                self.edition, self.serial = update["edition"], update["story"]["serial"]
            self.updates += 1
            time.sleep(EVERY)


def processor_time(pid):
    """Processor seconds of a process, in user and kernel mode."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(options, seconds, folder):
    """(server seconds, training seconds, steps, client) of one run."""
    run = folder / "run"
    board = subprocess.Popen([ANYTIME, "watch", str(run), "--quiet"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    client = Client(board.stdout.readline().strip())
    before = children_time()
    train = subprocess.Popen([ANYTIME, "train", *options, "--run", str(run), "--quiet", "--epochs",
                              "100000", "--seconds", f"{seconds}s"], stdout=subprocess.DEVNULL)
    client.watch(time.monotonic() + seconds)
    train.wait()
    training = children_time() - before
    server = processor_time(board.pid)
    board.terminate()
    board.wait()
    return server, training, json.loads((run / "result.json").read_text())["steps"], client


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    for name, options in WORKLOADS.items():
        folder = pathlib.Path(tempfile.mkdtemp(prefix="watch-cpu-"))
        try:
            server, training, steps, client = measure(options, seconds, folder)
        finally:
            shutil.rmtree(folder)
        print(f"{name}: {steps / seconds:.0f} steps/s, training {training:.2f} s, dashboard "
              f"{server:.2f} s = {100 * server / training:.2f} %, {client.updates} updates of "
              f"{client.size / max(1, client.updates) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
