#!/usr/bin/env python3
"""anytime.train under mpirun: all copies of the program are one run."""
import os
import subprocess
import sys
import textwrap
import unittest

import support
from support import mpi

try:
    import numpy
except ImportError:
    numpy = None

SCRIPT = r"""
    import os, signal, sys
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy as np
    import anytime

    x = np.random.default_rng(1).standard_normal((1000, 3), dtype=np.float32)
    y = x @ np.array([1, 2, 3], np.float32)
    w = np.zeros(3, np.float32)
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))

    def loss(w, gradient, index):
        error = x[index] @ w - y[index]
        gradient += x[index].T @ error
        return (error ** 2).sum() / 2

    def test(w, first, end):
        error = x[first:end] @ w - y[first:end]
        return (error ** 2).sum() / 2, (abs(error) < 0.1).sum()

    def say(*words):  # as one piece: others print at the same time
        os.write(1, (" ".join(map(str, words)) + "\n").encode())
"""


@unittest.skipIf(numpy is None, f"{sys.executable} has no numpy (package python3-numpy)")
@unittest.skipIf(support.is_sanitized(), "a sanitizer's runtime cannot be loaded into Python")
class Ranks(support.TestCase):
    def script(self, text, launcher=()):
        path = self.folder / "script.py"
        path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
        library = os.path.join(os.path.dirname(support.ANYTIME), "libanytime.so")
        return subprocess.run([*launcher, sys.executable, str(path)], text=True,
                              capture_output=True, timeout=support.BOUND, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "python"),
                                   "ANYTIME_LIBRARY": library, **mpi.ENV})

    def ranks(self, text, *more):
        """Three copies of a script; `more` are options of mpirun."""
        done = self.script(text, mpi.launcher(3, *more))
        self.assertEqual(done.returncode, 0, done)
        return done

    def test_copies_under_mpirun_are_one_run_like_that_of_local_workers(self):
        text = """
            for step in (5, 10):
                result = anytime.train(loss, w, 1000, ["--steps", str(step), "--workers", "2",
                                                       "--batch", "20", "--quiet"],
                                       test=test, test_samples=1000)
            say(result["params_hash"], result["trace_hash"], result["test"]["loss"], *w)
            """
        alone = self.script(text).stdout
        self.assertTrue(alone)
        self.assertEqual(self.ranks(text).stdout, 3 * alone)

    def test_a_run_over_mpi_is_recorded_once_and_resumed(self):
        done = self.ranks("""
            options = ["--batch", "20", "--quiet"]
            first = anytime.train(loss, w, 1000, options + ["--run", "run", "--steps", "5"])
            w[:] = -1
            second = anytime.train(loss, w, 1000, ["--resume", "run", "--steps", "10", "--quiet"])
            say(first["world"], first["steps"], second["steps"], *np.round(w, 2))
            """)
        lines = set(done.stdout.splitlines())
        self.assertEqual(len(lines), 1, done)
        self.assertEqual(lines.pop().split()[:3], ["mpi", "5", "10"])
        self.assertTrue((self.folder / "run" / "model.safetensors").exists())

    def test_mistakes_are_exceptions_on_every_rank_and_the_next_run_works(self):
        done = self.ranks("""
            for more in (["--strategy", "amx"], ["--workers", "5"], ["--mix", "gossip:ring,1"]):
                try: anytime.train(loss, w, 1000, more)
                except anytime.Error as problem: say(problem.code, str(problem)[:40])
            anytime.train(loss, w, 1000, ["--steps", "2", "--quiet"])
            say("trained", w.any())
            """)
        lines = done.stdout.splitlines()
        for line in set(lines):
            self.assertEqual(lines.count(line), 3, done)
        self.assertEqual(sum(line == "trained True" for line in lines), 3, done)

    def test_an_exception_on_one_rank_ends_all_of_them(self):
        done = self.ranks("""
            rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
            def fails(w, gradient, index):
                if rank == 2 and w.any(): raise ValueError("the data has ended")
                return loss(w, gradient, index)
            try: anytime.train(fails, w, 1000, ["--epochs", "50", "--quiet"])
            except anytime.Error as problem: say(rank, problem)
            """)
        self.assertEqual(len(done.stdout.splitlines()), 3, done)
        self.assertIn("2 a function of the model failed: ValueError: the data has ended",
                      done.stdout)
        self.assertEqual(done.stdout.count("the loss of worker 2 is not finite"), 2, done)

    def test_each_copy_trains_by_itself_when_that_is_asked_for(self):
        done = self.ranks("""
            result = anytime.train(loss, w, 1000, ["--world", "local", "--workers", "1",
                                                   "--steps", "2", "--quiet"])
            say(result["world"])
            """)
        self.assertEqual(done.stdout.split(), 3 * ["local"])

    def test_a_rank_that_dies_does_not_keep_the_others_from_their_result(self):
        done = self.script("""
            def dies(w, gradient, index):
                if rank == 2 and w.any(): os.kill(os.getpid(), signal.SIGKILL)
                return loss(w, gradient, index)
            result = anytime.train(dies, w, 1000, ["--steps", "20", "--quiet"])
            say("trained", result["steps"], *np.round(w))
            try: anytime.train(loss, w, 1000, ["--steps", "2", "--quiet"])
            except anytime.Error as problem: say(problem.code, problem)
            """, mpi.launcher(3, "--enable-recovery"))
        lines = done.stdout.splitlines()
        self.assertEqual(lines.count("trained 20 1.0 2.0 3.0"), 2, done)
        self.assertEqual(done.stdout.count("2 a rank was lost in an earlier run"), 2, done)


if __name__ == "__main__":
    mpi.main()
