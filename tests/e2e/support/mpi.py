"""Runs under mpirun."""
import json
import os
import shutil
import sys

import support
from support import processes

MPIRUN = None if "MPI" in support.missing_parts() else shutil.which("mpirun")

# Allows more ranks than cores and running as root, stays on this machine, and ignores leaks of MPI
# itself.
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_btl": "self,vader", "OMPI_MCA_oob_tcp_if_include": "lo",
       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def launcher(ranks, *more):
    return [MPIRUN, "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *more]


class Run(support.Run):
    """A run under mpirun: the hub is one of its children."""

    def hub(self):
        """The pid of rank 0."""
        return self.wait_until(self._hub, "rank 0 has written workers.json")

    def _hub(self):
        try:
            return json.loads((self.folder / "workers.json").read_text())["hub"]
        except FileNotFoundError:
            return None

    def left(self):
        """Processes of this run that still exist."""
        return processes.marked(self.mark)


class TestCase(support.TestCase):
    def start(self, *arguments, env=None, ranks=5, more=(), resume=None, enter=()):
        """`more` are options of mpirun; `enter` is a command that mpirun is run with."""
        self.runs += 1
        folder = resume or self.folder / f"run{self.runs}"
        run = Run(arguments, folder, {**ENV, **(env or {})}, resume is not None,
                  [*enter, *launcher(ranks, *more)])
        self.addCleanup(run.close)
        return run

    def endless(self, *arguments, **options):
        """A run in progress that only the test ends."""
        run = self.start("--steps", 10**7, *arguments, **options)
        run.wait_working()
        run.wait_steps(10)
        return run

    def assert_nothing_left(self, run):
        support.wait_until(lambda: not run.left(), "all processes are gone")

    def assert_sleep(self, run, pids):
        """Each of these processes gives its core away again and again while it waits. How much
        processor time that saves is a case of bench/ (mpi-waiting)."""
        before = {pid: processes.sleeps(pid) for pid in pids}
        for pid in pids:
            run.wait_until(lambda pid=pid: processes.sleeps(pid) >= before[pid] + 100,
                           f"process {pid} sleeps 100 times")

    def train(self, *arguments, code=support.DONE, **options):
        ended = self.start(*arguments, **options).wait()
        self.assertEqual(ended.code, code, ended)
        return ended

    def local(self, *arguments, code=support.DONE, env=None):
        """The same without a launcher."""
        ended = super().start(*arguments, env=env).wait()
        self.assertEqual(ended.code, code, ended)
        return ended


def main():
    if not MPIRUN:
        print("skipped: mpirun is not installed (apt-get install openmpi-bin), or this anytime is "
              "built without MPI")
        sys.exit(77)
    support.main()
