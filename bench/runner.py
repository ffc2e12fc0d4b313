"""Runs anytime and the PyTorch yardsticks as child processes and hands back what they report."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import threading

FOLDER = pathlib.Path(__file__).resolve().parent
TIMEOUT_SECONDS = 300

# Part of every run of anytime: it only trains, leaves no records, and scores once, after `seconds`.
QUIET = ("--data", "fashion-mnist", "--record", "none", "--quiet", "--json")

# A run that learns anything at all is above this; a fast program that learns nothing is not fast.
ACCURACY_MIN = 0.6


class Broken(Exception):
    """A measurement that could not be made, with the reason as a sentence."""


class Runner:
    """Where the programs are and how long to run them."""

    def __init__(self, program, torch_python, quick):
        self.program = program
        self.torch_python = torch_python
        self.seconds = 1.5 if quick else 3.0  # of training, in each run
        self.torch_seconds = 1.0 if quick else 2.0  # of each timed loop
        self.quick = quick
        self.commands = {}  # the last command of each kind, for the record
        self.versions = {}

    def anytime(self, label, *arguments):
        """Trains once. The document of result.json, with `cpu_seconds` of the whole family."""
        arguments = ["train", *QUIET, *map(str, arguments)]
        self.commands[label] = "anytime " + shlex.join(arguments)
        with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
            document, cpu_seconds = self.run_json(
                label, [self.program, *arguments, "--run", f"{folder}/run"])
        self.versions["anytime"] = f"{document.get('anytime')} ({document.get('engine')})"
        return {**document, "cpu_seconds": cpu_seconds}

    def anytime_learns(self, label, *arguments):
        """Trains once and refuses a run that has not learnt."""
        result = self.anytime(label, *arguments)
        accuracy = (result.get("test") or {}).get("accuracy") or 0.0
        if accuracy < ACCURACY_MIN:
            raise Broken(f"{label} ended at a test accuracy of {accuracy:.3f}: it does not learn")
        return result

    def torch(self, label, script, *arguments):
        """One timing by PyTorch: the steps/s of its fastest way of drawing rows."""
        arguments = [*map(str, arguments), "--seconds", str(self.torch_seconds)]
        self.commands[label] = f"python3 bench/{script} " + shlex.join(arguments)
        document, _ = self.run_json(label, [self.torch_python, str(FOLDER / script), *arguments])
        self.versions["torch"] = package_version("python3-torch") or document["torch"]
        self.versions["torch_blas"] = " ".join(document["blas"])
        if not any("openblas" in name or "mkl" in name for name in document["blas"]):
            raise Broken(f"PyTorch runs on a slow BLAS ({document['blas']}); install libopenblas0")
        for draw, found in document["draws"].items():
            if not found["loss"] < 0.7 * found["loss_first"]:
                raise Broken(f"PyTorch does not learn with {draw}: loss {found['loss']:.3f}")
        return max(found["steps_per_second"] for found in document["draws"].values())

    def run_json(self, label, command):
        """Runs what prints one JSON document: the document and the CPU seconds it took."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            status, usage = run(command, out, err)
            out.seek(0)
            err.seek(0)
            text = out.read().decode(errors="replace")
            said = err.read().decode(errors="replace").strip().splitlines()[-2:]
        if status != 0:
            raise Broken(f"`{self.commands[label]}` ended with {status}: "
                         f"{' / '.join(said) or 'it said nothing'}")
        try:
            return json.loads(text), usage.ru_utime + usage.ru_stime
        except ValueError as error:
            raise Broken(f"`{self.commands[label]}` printed no JSON: {error}") from None


def run(command, out, err):
    """Exit status and resource usage, with all descendants that were waited for."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env=environment, start_new_session=True)
    except OSError as error:
        raise Broken(f"cannot run {command[0]}: {error.strerror}") from None
    guard = threading.Timer(TIMEOUT_SECONDS, kill_family, (child.pid,))
    guard.start()
    try:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)  # it is reaped; Popen must know
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
