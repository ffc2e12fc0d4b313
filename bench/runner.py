"""Runs anytime and the PyTorch baselines as child processes and returns their results."""
import contextlib
import csv
import json
import math
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import tempfile
import threading

FOLDER = pathlib.Path(__file__).resolve().parent
TIMEOUT_SECONDS = 300
STEPS_MIN = 6        # of a median, on however slow a machine
LONGER_RUNS_MAX = 3  # tries of a run that has not learned in its time

# Options of every run of anytime: no records, no progress, one evaluation after training.
QUIET = ("--record", "none", "--quiet", "--json")

# A run below this has not learned; its speed does not count.
ACCURACY_MIN = 0.6


class Broken(Exception):
    """A measurement failed; the message is the reason."""


class Runner:
    """Runs the programs; knows their paths and how long to run them."""

    def __init__(self, program, torch_pythons, quick, compiled=False):
        self.program = program
        self.torch_pythons = torch_pythons  # each with a PyTorch; the fastest counts
        self.compiled = compiled            # measure torch.compile as well
        self.seconds = 1.5 if quick else 3.0  # of training per run
        self.torch_seconds = 1.0 if quick else 2.0  # per timed loop
        self.quick = quick
        self.commands = {}  # the last command per label, stored with the results
        self.versions = {}
        self.step_seconds = {}  # of a trial, per command

    def anytime(self, label, *arguments, launcher=(), extra=None):
        """Trains once; returns result.json with `cpu_seconds` of all processes. `launcher` is a
        command that starts ranks, `extra` are its environment variables."""
        arguments = ["train", *QUIET, *map(str, arguments)]
        if "--data" not in arguments:
            arguments[1:1] = ["--data", "fashion-mnist"]
        self.commands[label] = shlex.join((*launcher, "anytime", *arguments))
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            document, cpu_seconds = self.run_json(
                label, [*launcher, self.program, *arguments, "--run", f"{folder}/run"], extra)
        self.versions["anytime"] = f"{document.get('anytime')} ({document.get('engine')})"
        return {**document, "cpu_seconds": cpu_seconds}

    def anytime_learns(self, label, *arguments, accuracy_min=ACCURACY_MIN, **options):
        """Trains once and refuses a run that has not learned. A slow machine gets more time."""
        arguments, accuracy = [*arguments], 0.0
        for _ in range(LONGER_RUNS_MAX):
            result = self.anytime(label, *arguments, **options)
            accuracy = (result.get("test") or {}).get("accuracy") or 0.0
            if accuracy >= accuracy_min:
                return result
            if "--seconds" not in arguments:
                break
            arguments[arguments.index("--seconds") + 1] *= 3
        raise Broken(f"{label} ended at a test accuracy of {accuracy:.3f}: it did not learn")

    def step_of_anytime(self, label, seconds, seed, *arguments):
        """Median step time of a run without a hub that takes about `seconds`, but has enough steps
        on any machine. A short trial finds out how many."""
        trial = (label, *map(str, arguments))
        if trial not in self.step_seconds:
            self.step_seconds[trial] = self.median_step(label, STEPS_MIN, seed, *arguments)
        steps = max(STEPS_MIN, round(seconds / self.step_seconds[trial]))
        return self.median_step(label, steps, seed, *arguments)

    def median_step(self, label, steps, seed, *arguments):
        """Median time of this many steps without a hub; losses must be finite."""
        arguments = ["train", *QUIET, "--workers", "0", "--record", "steps", "--eval-every", "0",
                     "--steps", str(steps), "--seed", str(seed), *map(str, arguments)]
        self.commands[label] = "anytime " + shlex.join(arguments)
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            document, _ = self.run_json(label, [self.program, *arguments, "--run", f"{folder}/run"])
            with open(f"{folder}/run/master_stats.csv", encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if row["loss"]]
        self.versions["anytime"] = f"{document['anytime']} ({document['engine']})"
        if len(rows) < STEPS_MIN or not all(math.isfinite(float(row["loss"])) for row in rows):
            raise Broken(f"{label} did {len(rows)} of {steps} steps, or some losses are not finite")
        ends = [float(row["time"]) for row in rows]
        return statistics.median(end - begin for begin, end in zip(ends, ends[1:]))

    def step_of_torch(self, label, threads, *arguments):
        """Median step time of each PyTorch in each of its layouts: {"1.13.1 nchw": seconds}."""
        times = {}
        if self.compiled:
            arguments = (*arguments, "--compiled")
        for document in self.torch_documents(label, "torch_steps.py", threads, "--threads",
                                             threads, *arguments):
            if document["threads"] != threads:
                raise Broken(f"PyTorch runs on {document['threads']} threads, not on {threads}")
            for layout, found in document["layouts"].items():
                if not math.isfinite(found["loss"]):
                    raise Broken(f"PyTorch ended with a loss of {found['loss']} in {layout}")
                times[f"{document['torch']} {layout}"] = found["step_seconds"]
        return times

    def slices(self, label, *arguments):
        """Runs `anytime slices` once; returns slices.json."""
        arguments = ["slices", "--plots", "none", "--quiet", "--json", *map(str, arguments)]
        self.commands[label] = "anytime " + shlex.join(arguments)
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            document, _ = self.run_json(
                label, [self.program, *arguments, "--out", f"{folder}/slices"])
        self.versions["anytime"] = f"{document['anytime']} ({document['engine']})"
        return document

    def memory(self, label, *arguments):
        """Peak memory of a run and all its processes, in bytes (PSS: shared memory counts once)."""
        arguments = ["train", "--record", "none", "--quiet", "--json", *map(str, arguments)]
        self.commands[label] = "anytime " + shlex.join(arguments)
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            with Scale() as scale:
                self.run_json(label, [self.program, *arguments, "--run", f"{folder}/run"],
                              started=scale.start)
        return scale.most

    def sklearn(self, label, *arguments):
        """One pass of scikit-learn: rows/s and the final loss."""
        arguments = [*map(str, arguments)]
        self.commands[label] = "python3 bench/sklearn_sparse.py " + shlex.join(arguments)
        document, _ = self.run_json(
            label, [self.torch_pythons[0], str(FOLDER / "sklearn_sparse.py"), *arguments],
            {"OMP_NUM_THREADS": "1"})
        self.versions["scikit-learn"] = package_version("python3-sklearn")
        return {"rows_per_second": document["rows_per_second"], "loss": document["loss"]}

    def python(self, label, text):
        """Runs a Python snippet that prints one JSON document; returns it."""
        self.commands[label] = "python3 -c ..."
        document, _ = self.run_json(label, [self.torch_pythons[0], "-c", text])
        return document

    def fma_peak(self, label):
        """Peak floating-point operations per second of one core, from fma_peak.c."""
        compiler = os.environ.get("CC", "cc")
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            program, sources = f"{folder}/fma_peak", FOLDER.parent / "src"
            command = [compiler, "-O2", "-D_GNU_SOURCE", f"-I{sources}", "-o", program,
                       str(FOLDER / "fma_peak.c"), str(sources / "base" / "clock.c")]
            self.commands[label] = "bench/fma_peak.c"
            with tempfile.TemporaryFile() as out:
                status, _ = run(command, out, out)
            if status != 0:
                raise Broken(f"{compiler} cannot compile bench/fma_peak.c")
            document, _ = self.run_json(label, [program])
        return 1e9 * document["gflops"]

    def torch(self, label, script, *arguments, falls_to=0.7):
        """Steps/s of the faster PyTorch with its faster way of drawing rows."""
        rates = []
        for document in self.torch_documents(label, script, 1, *arguments):
            for draw, found in document["draws"].items():
                if not found["loss"] < falls_to * found["loss_first"]:
                    raise Broken(f"PyTorch does not learn with {draw}: loss {found['loss']:.3f}")
                rates.append(found["steps_per_second"])
        return max(rates)

    def torch_documents(self, label, script, threads, *arguments):
        """Runs a script with every PyTorch."""
        return [self.torch_document(python, label, script, threads, *arguments)
                for python in self.torch_pythons]

    def torch_document(self, python, label, script, threads, *arguments):
        """Runs a PyTorch script with the right BLAS for the number of threads."""
        arguments = [*map(str, arguments), "--seconds", str(self.torch_seconds)]
        self.commands[label] = f"python3 bench/{script} " + shlex.join(arguments)
        extra = {}
        if threads > 1:
            extra = {"OMP_NUM_THREADS": str(threads), "LD_LIBRARY_PATH": openmp_blas()}
            self.commands[label] = f"LD_LIBRARY_PATH={openmp_blas()} " + self.commands[label]
        document, _ = self.run_json(label, [python, str(FOLDER / script), *arguments], extra)
        self.versions[f"torch {document['torch']}"] = " ".join(document["blas"])
        if not any("openblas" in name or "mkl" in name for name in document["blas"]):
            raise Broken(f"PyTorch runs on a slow BLAS ({document['blas']}); install libopenblas0")
        return document

    def text(self, label, command):
        """What a command prints."""
        self.commands[label] = shlex.join(["anytime", *map(str, command[1:])])
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if run(command, out, err)[0] != 0:
                raise Broken(f"`{self.commands[label]}` failed")
            out.seek(0)
            return out.read().decode()

    def run_json(self, label, command, extra=None, started=None):
        """Runs a command that prints one JSON document; returns it and the CPU seconds used."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            status, usage = run(command, out, err, extra, started)
            out.seek(0)
            err.seek(0)
            text = out.read().decode(errors="replace")
            said = err.read().decode(errors="replace").strip().splitlines()[-2:]
        if status != 0:
            raise Broken(f"`{self.commands[label]}` ended with {status}: "
                         f"{' / '.join(said) or 'no message'}")
        try:
            return json.loads(text), usage.ru_utime + usage.ru_stime
        except ValueError as error:
            raise Broken(f"`{self.commands[label]}` printed no JSON: {error}") from None


def openmp_blas():
    """The folder of the OpenBLAS that uses OpenMP threads, as PyTorch does. With the usual one two
    thread pools compete, and PyTorch would be many times slower."""
    for folder in pathlib.Path("/usr/lib").glob("*/openblas-openmp"):
        return str(folder)
    raise Broken("PyTorch needs libopenblas0-openmp for two threads; install it")


class Scale:
    """Samples the memory of a process and of all processes of its session."""

    def __init__(self):
        self.most = 0
        self.leader = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.leader is not None:
            self.thread.join()

    def start(self, leader):
        self.leader = leader
        self.thread.start()

    def watch(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, sum(map(self.pss, self.family())))

    def family(self):
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        for pid in pids:
            with contextlib.suppress(OSError):
                if os.getsid(pid) == self.leader:
                    yield pid

    @staticmethod
    def pss(pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                for line in file:
                    if line.startswith("Pss:"):
                        return 1024 * int(line.split()[1])
        return 0


def run(command, out, err, extra=None, started=None):
    """Exit status and resource usage, including all descendants that were waited for. `extra` are
    environment variables; started(pid) is called once it runs."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(extra or {})}
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env=environment, start_new_session=True)
    except OSError as error:
        raise Broken(f"cannot run {command[0]}: {error.strerror}") from None
    if started:
        started(child.pid)
    guard = threading.Timer(TIMEOUT_SECONDS, kill_family, (child.pid,))
    guard.start()
    try:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)  # already reaped here, so tell Popen
    finally:
        guard.cancel()
        if child.returncode is None:
            kill_family(child.pid)
    return child.returncode, usage


def kill_family(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def package_version(name):
    """The version of an installed Debian package, or None."""
    try:
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name],
                               capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout or None
