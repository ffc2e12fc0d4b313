#!/usr/bin/env python3
"""The same PyTorch CNN under anytime, DDP, torchft and Hivemind: samples per second.

    tools/torch2_env.py build/torch2 torchft hivemind     once
    bench/torch_peers.py --page docs/guide/pytorch.md     about 30 minutes on a quiet machine
    bench/torch_peers.py --side ddp --side anytime-amb --weather calm --seconds 5 --repeats 1

Three weathers: `calm`; `stragglers`: every process sleeps as the model `niagara` says, the same
sleeps on all sides; `kills`: one random process is killed every 5 seconds. All sides train the
MNIST CNN of examples/torch on the same synthetic samples, momentum SGD, 64 samples per worker and
step (amb: on average), one thread per process, over loopback. A sample counts when it has gone
into the parameters of the process that computed it. Each repeat runs all sides one after the
other; the table has medians, in Markdown.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]
ANYTIME = os.environ.get("ANYTIME", str(ROOT / "build" / "anytime"))
WORKER = str(ROOT / "bench" / "torch_peer.py")
WEATHERS = ("calm", "stragglers", "kills")
KILL_EVERY = 5.0
MARK_BEGIN, MARK_END = "<!-- torch_peers: begin -->", "<!-- torch_peers: end -->"
PATIENCE = 240.0  # seconds until every process has trained

Side = collections.namedtuple("Side", "title needs start on_kill")


# ---- how each side is started: processes that do not end by themselves ----

class Processes:
    """What a side has started. A mark in their environment finds all of it, so that nothing is
    left: launchers put their workers into sessions of their own."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.log = folder / "log"
        self.log.mkdir()
        self.output = open(folder / "output", "wb")
        self.started, self.respawned = [], []
        self.mark = f"ANYTIME_PEERS={uuid.uuid4().hex}"

    def start(self, words, **more):
        environment = {**os.environ, **dict([self.mark.split("=")])}
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                   stderr=self.output, stdout=more.pop("stdout", self.output),
                                   cwd=self.folder, env=environment, **more)
        self.started.append(process)
        return process

    def worker(self, role, *more):
        """Words that run bench/torch_peer.py."""
        return [self.options.python, WORKER, role, "--notes", self.log, "--processes",
                self.options.processes, "--scale", self.scale(), *more]

    def scale(self):
        return self.options.scale if self.options.now == "stragglers" else 0

    def keep(self, words):
        """A process that is started again when it dies, by respawn()."""
        self.respawned.append([words, self.start(words)])

    def respawn(self):
        for row in self.respawned:
            if row[1].poll() is not None:
                row[1] = self.start(row[0])

    def have_ended(self):
        return not self.respawned and all(p.poll() is not None for p in self.started)

    def meeting(self, role):
        """The address that a server prints."""
        server = self.start([self.options.python, WORKER, role], stdout=subprocess.PIPE)
        for line in server.stdout:
            if line.startswith(b"MEETING "):
                return line.split()[1].decode()
        raise RuntimeError(f"{role} did not start:\n{self.last_words()}")

    def last_words(self):
        self.output.flush()
        text = (self.folder / "output").read_text(errors="replace")
        return "\n".join(text.splitlines()[-15:])

    def marked(self):
        """Pids of everything that belongs to this side."""
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes().split(b"\0"):
                    yield int(path.parent.name)
            except OSError:  # it has ended, or is not ours
                pass

    def close(self):
        end = time.monotonic() + 30
        while (left := list(self.marked())) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.started:
                process.poll()  # so that it does not stay as a zombie
            time.sleep(0.02)
        self.output.close()


def start_anytime(processes, strategy):
    options = processes.options
    processes.start([ANYTIME, "run", "-n", options.processes, "--strategy", strategy, "--batch",
                     64, "--quiet", "--record", "none", "--restarts", 100000, "--join-timeout",
                     f"{PATIENCE:.0f}s", "--seconds", "100000s", "--run",
                     processes.folder / "run", "--", *processes.worker(f"anytime-{strategy}")])


def start_ddp(processes):
    python, *words = processes.worker("ddp")
    processes.start([python, "-m", "torch.distributed.run", "--standalone", "--local-addr",
                     "127.0.0.1", "--nproc-per-node", processes.options.processes,
                     "--max-restarts", 100000, "--monitor-interval", 0.1, *words])


def start_replicas(processes, server, role):
    """Processes that find each other through a server, and are started again one by one."""
    meeting = processes.meeting(server)
    for rank in range(processes.options.processes):
        processes.keep(processes.worker(role, "--rank", rank, "--meeting", meeting))


SIDES = {
    "anytime-fmb": Side("anytime, fmb", "torch", lambda p: start_anytime(p, "fmb"),
                        "one process restarts, the others continue"),
    "anytime-amb": Side("anytime, amb", "torch", lambda p: start_anytime(p, "amb"),
                        "one process restarts, the others continue"),
    "ddp": Side("DDP (gloo, torchrun)", "torch", start_ddp,
                "the run ends; torchrun --max-restarts starts all processes again, from nothing "
                "without checkpoints of the script's own"),
    "torchft": Side("torchft", "torchft",
                    lambda p: start_replicas(p, "serve-torchft", "torchft"),
                    "the step is lost, the others continue; an outside supervisor must restart the "
                    "process"),
    "hivemind": Side("Hivemind, same step", "hivemind",
                     lambda p: start_replicas(p, "serve-hivemind", "hivemind"),
                     "the others continue; an outside supervisor must restart the process"),
    "hivemind-16": Side("Hivemind, steps of 16 batches", "hivemind",
                        lambda p: start_replicas(p, "serve-hivemind", "hivemind-16"),
                        "as above"),
}


# ---- measuring ----

class Logs:
    """What the processes of a side have written."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self):
        """(rank, pid, time, samples) of everything so far."""
        for path in self.folder.iterdir():
            rank, pid = map(int, path.name.split("-"))
            for line in path.read_text().splitlines(keepends=True):
                words = line.split()
                if line.endswith("\n") and len(words) == 2:
                    yield rank, pid, float(words[0]), int(words[1])

    def ranks(self):
        return {rank for rank, *_ in self.rows()}

    def alive(self):
        """Pids of the processes that have trained and still exist."""
        return sorted({pid for _, pid, *_ in self.rows() if os.path.exists(f"/proc/{pid}")})

    def used(self, begin, end):
        return sum(samples for *_, when, samples in self.rows() if begin <= when < end)


def wait_for_all(processes, logs):
    """Until every rank has trained."""
    end = time.monotonic() + PATIENCE
    while len(logs.ranks()) < processes.options.processes:
        if time.monotonic() > end or processes.have_ended():
            raise RuntimeError(f"not every process has trained:\n{processes.last_words()}")
        processes.respawn()
        time.sleep(0.1)


def measure(name, options):
    """Samples per second of one side in the present weather."""
    with tempfile.TemporaryDirectory(prefix="anytime-peers-", ignore_cleanup_errors=True) as folder:
        processes = Processes(options, pathlib.Path(folder))
        logs = Logs(processes.log)
        try:
            SIDES[name].start(processes)
            wait_for_all(processes, logs)
            time.sleep(options.warm_up)
            return observe(processes, logs)
        finally:
            processes.close()


def observe(processes, logs):
    options, chance = processes.options, random.Random(1)
    begin = time.time()
    next_kill = begin + KILL_EVERY / 2 if options.now == "kills" else float("inf")
    while time.time() < begin + options.seconds:
        time.sleep(0.05)
        processes.respawn()
        if time.time() >= next_kill:
            next_kill += KILL_EVERY
            victims = logs.alive()
            if victims:  # otherwise all are being started again: nobody is there to be killed
                os.kill(chance.choice(victims), signal.SIGKILL)
    return logs.used(begin, begin + options.seconds) / options.seconds


def missing(needs, options):
    """Why a side cannot run, or None."""
    tried = subprocess.run([options.python, "-W", "ignore", "-c", f"import {needs}"], text=True,
                           capture_output=True, check=False, timeout=300)
    if tried.returncode == 0:
        return None
    return f"`import {needs}` fails: {tried.stderr.strip().splitlines()[-1]}"


def attempt(name, weather, options):
    """Samples per second, or None after saying what went wrong."""
    options.now = weather
    try:
        value = measure(name, options)
    except RuntimeError as problem:
        print(f"{name}, {weather}: {problem}", file=sys.stderr)
        return None
    print(f"{name}, {weather}: {value:.0f} samples/s", file=sys.stderr)
    return value


def measure_all(names, options):
    """{(side, weather): values}, all sides one after the other in each repeat."""
    values = collections.defaultdict(list)
    for weather in options.weather:
        for _ in range(options.repeats):
            for name in names:
                values[name, weather].append(attempt(name, weather, options))
    return values


def cell(values):
    trained = [value for value in values if value is not None]
    return f"{statistics.median(trained):.0f}" if trained else "did not train"


def lost(cells, options):
    """How much work a kill costs, where both weathers were measured."""
    rates = {weather: float(text) for weather, text in zip(options.weather, cells)
             if text.isdigit()}
    if "kills" not in rates or not rates.get("calm"):
        return ""
    seconds = KILL_EVERY * (1 - rates["kills"] / rates["calm"])
    return f"; {max(0.0, seconds):.1f} s of work lost per kill"


def table(options):
    """The table in Markdown, with a line about its conditions."""
    names = options.side or list(SIDES)
    absent = {name: missing(SIDES[name].needs, options) for name in names}
    values = measure_all([name for name in names if not absent[name]], options)
    lines = ["| samples/s | " + " | ".join(options.weather) + " | when a process is killed |",
             "|---|" + "---|" * (len(options.weather) + 1)]
    for name in names:
        cells = ["not installed" if absent[name] else cell(values[name, weather])
                 for weather in options.weather]
        remark = absent[name] or SIDES[name].on_kill + lost(cells, options)
        lines.append(f"| {SIDES[name].title} | {' | '.join(cells)} | {remark} |")
    lines += ["", f"({options.processes} processes on {os.cpu_count()} cores, PyTorch "
              f"{torch_version(options)}, sleeps of `niagara` times {options.scale:g}, "
              f"{options.repeats} x {options.seconds:g} s each, medians)"]
    return "\n".join(lines)


def torch_version(options):
    return subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"],
                          text=True, capture_output=True, check=True, timeout=300).stdout.strip()


def put_into(page, text):
    """Replaces what is between the two marks of the page."""
    before, rest = page.read_text().split(MARK_BEGIN)
    page.write_text(f"{before}{MARK_BEGIN}\n{text}\n{MARK_END}{rest.split(MARK_END)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default=str(ROOT / "build" / "torch2" / "bin" / "python3"),
                        help="Python with torch 2, torchft and hivemind [%(default)s]")
    parser.add_argument("--side", action="append", choices=SIDES)
    parser.add_argument("--weather", action="append", choices=WEATHERS)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20, help="length of each measurement")
    parser.add_argument("--warm-up", type=float, default=5, help="seconds before it")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=0.05, help="of the sleeps (mean 1 s)")
    parser.add_argument("--page", type=pathlib.Path,
                        help="also put the table into this page, between its marks")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and clean up on the way
    options.weather = options.weather or WEATHERS
    if not os.path.exists(options.python):
        sys.exit(f"{options.python} does not exist: run tools/torch2_env.py build/torch2 torchft "
                 "hivemind, or name another Python with --python")
    text = table(options)
    print(text)
    if options.page:
        put_into(options.page, text)


if __name__ == "__main__":
    main()
