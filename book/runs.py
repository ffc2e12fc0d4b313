"""Runs of the program, and their results, which are kept by content.

A result is found by a key made of the command, the files that it names (configurations and nets)
and EDITION. So a run is repeated when one of them changes, and never otherwise. Whether EDITION is
still right is checked by repeating cheap runs (`make book QUICK=1`).
"""
import csv
import hashlib
import json
import os
import pathlib
import platform
import shlex
import subprocess
import tempfile
import threading
import time

import subsets

ROOT = subsets.ROOT

# Increase it when the program gives other numbers on purpose. All runs are then made again.
EDITION = 1

TIMEOUT_SECONDS = 3600
CURVE_POINTS = 120

# What is learnt depends on the processor in the last digits, which training amplifies. So all runs
# use the instructions that every recent x86 processor has; then bits are equal on all of them.
PINNED = {"ANYTIME_ISA": "avx2", "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}

# What is kept of result.json: enough for every table, little enough to be committed.
KEPT = ("strategy", "parameters", "engine", "stopped", "steps", "seconds", "wall_seconds",
        "samples", "samples_per_second", "mean_batch", "step_seconds", "useful_fraction",
        "staleness", "train", "test", "messages", "resources", "trace_hash", "params_hash")
WORKER_KEPT = ("rounds", "used", "compute_seconds", "sleep_seconds", "idle_seconds")


class RunFailed(Exception):
    """The program ended with an error; the text says which."""


class Run:
    """One run of the program.

    words: verb and options, without what only says where output goes. measured: its times are real
    ones, so they differ from machine to machine. rounds: histograms of its rounds are kept, too.
    """

    def __init__(self, *words, measured=False, rounds=False):
        self.words = [str(word) for word in words]
        self.measured, self.rounds = measured, rounds
        assert self.words, "a run has at least a verb"

    @property
    def command(self):
        """The command line, as a reader types it in the project's folder."""
        return "anytime " + shlex.join(self.words)

    @property
    def key(self):
        files = {word: hashlib.sha256((ROOT / word).read_bytes()).hexdigest()
                 for word in self.words if word.endswith((".conf", ".net"))}
        text = json.dumps([EDITION, self.words, files, self.rounds], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Results:
    """A folder of results, one JSON file per run."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def path(self, run):
        return self.folder / f"{run.key}.json"

    def get(self, run):
        """The result of a run, or None when it has not been made yet."""
        path = self.path(run)
        return json.loads(path.read_text()) if path.exists() else None

    def put(self, run, result):
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.path(run).with_suffix(".part")
        draft.write_text(lines_of(result))
        draft.rename(self.path(run))

    def costs(self):
        """{command: seconds} of all kept results, also of earlier editions."""
        kept = (json.loads(path.read_text()) for path in self.folder.glob("*.json"))
        return {result["command"]: result["cost_seconds"] for result in kept}

    def unused(self, runs):
        """Files of runs that no chapter has any more."""
        used = {self.path(run) for run in runs}
        return sorted(path for path in self.folder.glob("*.json") if path not in used)


def lines_of(result):
    """JSON with a line per part, so that changes are easy to read."""
    parts = (f"{json.dumps(name)}: {json.dumps(result[name])}" for name in sorted(result))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def execute(program, run):
    """Runs the program; what is kept of it."""
    began = time.monotonic()
    subsets.prepare(run.words)
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "run")
        printed, used = call([str(program), *run.words, *output_options(run, folder)])
        result = {"command": run.command, "edition": EDITION, "measured": run.measured,
                  "instructions": instructions(), "processor_seconds": used}
        if run.words[0] == "slices":
            result["slices"] = json.loads(printed)["points"]
        else:
            result.update(read_folder(json.loads(printed), folder, run))
    result["cost_seconds"] = round(time.monotonic() - began, 1)
    return result


def output_options(run, folder):
    if run.words[0] == "slices":
        return ["--out", str(folder), "--plots", "none", "--json", "--quiet"]
    record = "full" if run.rounds else "steps"
    return ["--run", str(folder), "--record", record, "--checkpoint-every", "none", "--json",
            "--quiet"]


def has_avx2():
    """Whether runs can be pinned here; other processors make runs of their own kind."""
    try:
        return " avx2 " in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def instructions():
    """With which instructions runs are made here; equal ones give equal bits."""
    return "avx2" if has_avx2() else platform.machine()


def call(words):
    """(what the program printed, its processor time in seconds)"""
    pinned = PINNED if has_avx2() else {}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        with subprocess.Popen(words, stdout=out, stderr=said, cwd=ROOT,
                              env={**os.environ, **pinned}) as process:
            code, usage = wait(process)
        out.seek(0)
        said.seek(0)
        if code != 0:
            raise RunFailed(f"{shlex.join(words)}: exit code {code}\n{said.read().decode()}")
        return out.read().decode(), round(usage.ru_utime + usage.ru_stime, 1)


def wait(process):
    """(exit code, usage) of a process and of the children that it waited for."""
    late = threading.Timer(TIMEOUT_SECONDS, process.kill)
    late.start()
    _, status, usage = os.wait4(process.pid, 0)
    late.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def read_folder(outcome, folder, run):
    """Numbers and curves of a recorded run."""
    steps, tests = read_curves(folder / "master_stats.csv")
    found = {"result": {name: outcome[name] for name in KEPT if name in outcome},
             "workers": [[worker[name] for name in WORKER_KEPT] for worker in outcome["worker"]],
             "steps": thin(steps), "tests": tests}
    if not run.measured:
        del found["result"]["wall_seconds"]
    if run.rounds:
        found["rounds"] = read_rounds(folder / "worker_stats.csv")
    return found


def read_curves(path):
    """[(seconds, step, loss)] of steps, and [(seconds, step, loss, accuracy)] of evaluations."""
    steps, tests = [], []
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file):
            at = [number(row["time"]), int(row["step"])]
            if row["test_loss"]:
                tests.append([*at, number(row["test_loss"]), number(row["accuracy"] or "nan")])
            elif row["loss"]:
                steps.append([*at, number(row["loss"])])
    last = {test[1]: test for test in tests}  # the last step may be evaluated twice
    return steps, [last[step] for step in sorted(last)]


def number(text, digits=6):
    return float(f"{float(text):.{digits}g}")


def thin(points):
    """At most CURVE_POINTS points: means of neighbours."""
    size = -(-len(points) // CURVE_POINTS) or 1
    blocks = (points[start:start + size] for start in range(0, len(points), size))
    return [[number(sum(column) / len(block)) for column in zip(*block)] for block in blocks]


def read_rounds(path):
    """Histograms {value: count} of what the rounds of all workers were like."""
    widths = {"compute_time": 0.1, "sleep_time": 0.1, "num_samples": 1}
    counts = {name: {} for name in widths}
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file):
            for name, width in widths.items():
                value = f"{round(float(row[name]) / width) * width:g}"
                counts[name][value] = counts[name].get(value, 0) + 1
    return counts
