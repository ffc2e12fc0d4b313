"""Shared by the end-to-end tests: running the program and waiting for its effects.

Tests never rely on sleeping. They wait for something visible (a file, a message, the end of a
process) and give up after BOUND seconds, which only limits how long a failure takes. On a busy
machine tests take many times as long as on a quiet one.
"""
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from support import processes

ANYTIME = os.environ.get("ANYTIME", "anytime")
ROOT = pathlib.Path(__file__).resolve().parents[3]
BOUND = 300.0

# Small enough to load quickly, large enough to learn from.
SMALL = ("--data", "synthetic:2000,20,5", "--batch", "32")

# All strategies, by what their workers report: gradients, the changes that local steps made, or
# only counts, because they average with their neighbors.
GRADIENTS = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
             "ringmaster", "quorum", "adasync", "dbs", "grow", "shrink", "loss", "noise", "stall",
             "loss-target", "probe")
LOCAL_STEPS = ("anytime-sgd", "local-sgd", "diloco")
GOSSIP = ("amb-gossip", "fmb-gossip")
STRATEGIES = (*GRADIENTS, *LOCAL_STEPS, *GOSSIP, "hogwild")

DONE, FAILED, USAGE, FORMAT, MISSING, IO, STOPPED = 0, 1, 2, 65, 66, 74, 75


@functools.cache
def is_sanitized():
    """Whether the program is built with sanitizers, which make it many times slower."""
    doctor = subprocess.run([ANYTIME, "doctor"], capture_output=True, text=True,
                            timeout=BOUND)
    return "sanitizers" in doctor.stdout


@functools.cache
def missing_parts():
    """Optional libraries that the program is built without."""
    said = subprocess.run([ANYTIME, "--version"], capture_output=True, text=True, timeout=BOUND,
                          check=True).stdout
    line = next((line for line in said.splitlines() if line.startswith("built without: ")), None)
    return set(line.partition(": ")[2].split(", ")) if line else set()


def wait_until(happens, what, bound=BOUND):
    """The first true value of happens(); fails after `bound` seconds."""
    end = time.monotonic() + bound
    while time.monotonic() < end:
        value = happens()
        if value:
            return value
        time.sleep(0.002)  # polling interval; nothing depends on its length
    raise AssertionError(f"waited {bound:.0f} s in vain for {what() if callable(what) else what}")


class Ended:
    """A finished run: exit code, output, and the files in its folder."""

    def __init__(self, command, code, out, err, folder):
        self.command, self.code, self.out, self.err = command, code, out, err
        self.folder = folder

    @property
    def result(self):
        """result.json, from standard output (--json) or from the folder."""
        if self.out.startswith("{"):
            return json.loads(self.out)
        return json.loads((self.folder / "result.json").read_text())

    def table(self, name):
        """A CSV file of the folder as a list of dicts, one per row."""
        head, *lines = (self.folder / name).read_text().splitlines()
        columns = head.split(",")
        return [dict(zip(columns, line.split(","), strict=True)) for line in lines]

    def __str__(self):
        return (f"\n$ {' '.join(map(str, self.command))}\nexit code {self.code}"
                f"\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}")


class Run:
    """A run in progress. A mark in their environment identifies all its processes."""

    def __init__(self, arguments, folder, env=None, resume=False, launcher=(), program=(),
                 verb=None):
        self.folder = folder
        self.mark = uuid.uuid4().hex
        verb = verb or ("run" if program else "train")
        self.command = [*launcher, ANYTIME, verb, *map(str, arguments),
                        "--resume" if resume else "--run", str(folder)]
        if program:
            self.command += ["--", *map(str, program)]
        self.err_path = folder.with_name(folder.name + ".err")
        self.out_path = folder.with_name(folder.name + ".out")
        with open(self.err_path, "wb") as err, open(self.out_path, "wb") as out:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env={**os.environ, **(env or {}),
                                                             processes.MARK: self.mark})
        self.seen = set()  # every worker pid that has appeared in workers.json

    @property
    def pid(self):
        return self.process.pid

    def err(self):
        return self.err_path.read_text(errors="replace")

    def out(self):
        return self.out_path.read_text(errors="replace")

    def workers(self):
        """The rows of workers.json by id; empty while the file does not exist."""
        try:
            rows = json.loads((self.folder / "workers.json").read_text())["workers"]
        except FileNotFoundError:
            return {}
        self.seen.update(row["pid"] for row in rows if row["pid"])
        return {row["id"]: row for row in rows}

    def wait_until(self, happens, what):
        """Waits for something this run does; fails if the run ends first."""
        def look():
            over = self.process.poll() is not None
            value = happens()
            if over and not value:
                raise AssertionError(f"the run ended before {what}{self.ended()}")
            return value
        return wait_until(look, lambda: f"{what}{self.ended()}")

    def wait_working(self):
        """Waits until every worker has started; returns the rows of workers.json."""
        def all_work():
            rows = self.workers()
            return rows and all(row["state"] == "working" for row in rows.values()) and rows
        return self.wait_until(all_work, "all workers are working")

    def steps(self):
        """Number of steps in the files of the run."""
        with contextlib.suppress(FileNotFoundError):
            return max(0, (self.folder / "collect_stats.csv").read_bytes().count(b"\n") - 1)
        return 0

    def wait_steps(self, count):
        """Waits until the files of the run have that many steps."""
        self.wait_until(lambda: self.steps() >= count, f"step {count} is recorded")

    def wait_said(self, words):
        self.wait_until(lambda: words in self.err(), f"it says '{words}'")

    def children(self):
        return processes.children(self.pid)

    def evaluator(self):
        """The pid of the evaluator."""
        return self.child_named("anytime-eval")

    def child_named(self, name):
        def find():
            return next((pid for pid in self.children() if processes.name(pid) == name), None)
        return self.wait_until(find, f"a child {name} exists")

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self):
        code = self.process.poll()
        return Ended(self.command, code, self.out(), self.err(), self.folder)

    def wait(self, bound=BOUND):
        """Waits for the end."""
        try:
            self.process.wait(bound)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not over after {bound:.0f} s{self.ended()}") from None
        return self.ended()

    def close(self):
        """Ends all processes of the run, whatever the test did."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in processes.marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class TestCase(unittest.TestCase):
    """A test with its own folder for runs."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.id().split('.')[-1]}-", dir="."))
        self.folder = self.folder.resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs = 0

    def start(self, *arguments, env=None):
        """Starts a training run; it is ended with the test at the latest."""
        self.runs += 1
        run = Run(arguments, self.folder / f"run{self.runs}", env)
        self.addCleanup(run.close)
        return run

    def resume(self, folder, *arguments):
        """Resumes a run in its folder."""
        run = Run(arguments, folder, resume=True)
        self.addCleanup(run.close)
        return run

    def train(self, *arguments, code=DONE, env=None):
        """A complete training run; its exit code must be `code`."""
        ended = self.start(*arguments, env=env).wait()
        self.assertEqual(ended.code, code, ended)
        return ended

    def train_json(self, *arguments, **options):
        """The result of a successful run."""
        return self.train(*arguments, "--quiet", "--json", **options).result

    def anytime(self, *arguments, code=DONE, **options):
        """Any other call of the program, in this test's folder."""
        options.setdefault("cwd", self.folder)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([ANYTIME, *map(str, arguments)], text=True, capture_output=True,
                              timeout=BOUND, **options)
        ended = Ended(done.args, done.returncode, done.stdout, done.stderr, self.folder)
        self.assertEqual(ended.code, code, ended)
        return ended

    def assert_ledger(self, ended):
        """For each worker: drawn (counted by the worker) = used + dropped (counted by the hub)."""
        result = ended.result
        for row in [*result["worker"], result["samples"]]:
            self.assertEqual(row["drawn"], row["used"] + row["dropped"], f"{row}{ended}")
        for key in ("drawn", "used", "dropped"):
            self.assertEqual(result["samples"][key], sum(row[key] for row in result["worker"]),
                             f"{key}{ended}")

    def assert_gone(self, run):
        """No process of the run is left, neither by pid nor under another parent."""
        processes_left = processes.marked(run.mark) | processes.alive(run.seen)
        self.assertEqual(processes_left, set(), f"left behind by{run.ended()}")

    def assert_complaint(self, ended, *words):
        """stderr is one sentence and at most one hint, and contains the words."""
        lines = ended.err.splitlines()
        self.assertTrue(lines and lines[0].startswith("anytime: "), ended)
        self.assertTrue(len(lines) == 1 or len(lines) == 2 and lines[1].startswith("  hint: "),
                        f"not one sentence and a hint:{ended}")
        for word in words:
            self.assertIn(str(word), ended.err, ended)


def main():
    """Runs the tests of the script; prints why tests were skipped; exits with 77 if all were."""
    program = unittest.main(exit=False, verbosity=2)
    outcome = program.result
    for _, reason in outcome.skipped:
        print(f"skipped: {reason}", flush=True)
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
