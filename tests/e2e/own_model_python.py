#!/usr/bin/env python3
"""anytime.train: a numpy function as a model, and what happens when it fails."""
import os
import re
import subprocess
import sys
import textwrap
import unittest

import support

try:
    import numpy
except ImportError:
    numpy = None

SCRIPT = """
    import os, sys
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy as np
    import anytime

    x = np.random.default_rng(1).standard_normal((1000, 3), dtype=np.float32)
    y = x @ np.array([1, 2, 3], np.float32)

    def loss(w, gradient, index):
        error = x[index] @ w - y[index]
        gradient += x[index].T @ error
        return (error ** 2).sum() / 2

    def test(w, first, end):
        error = x[first:end] @ w - y[first:end]
        return (error ** 2).sum() / 2, (abs(error) < 0.1).sum()

    w = np.zeros(3, np.float32)
"""


@unittest.skipIf(numpy is None, f"{sys.executable} has no numpy (package python3-numpy)")
@unittest.skipIf(support.is_sanitized(), "a sanitizer's runtime cannot be loaded into Python")
class Train(support.TestCase):
    def script(self, text, *, code=0):
        path = self.folder / "script.py"
        path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
        library = os.path.join(os.path.dirname(support.ANYTIME), "libanytime.so")
        done = subprocess.run([sys.executable, str(path)], text=True,
                              capture_output=True, timeout=support.BOUND, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "python"),
                                   "ANYTIME_LIBRARY": library})
        self.assertEqual(done.returncode, code, done)
        return done

    def test_a_function_is_trained_and_tested(self):
        done = self.script("""
            result = anytime.train(loss, w, 1000, ["--workers", "2", "--epochs", "3", "--lr",
                                                   "0.1", "--quiet"], test=test, test_samples=1000)
            print(result["test"]["accuracy"] > 0, *np.round(w))
            """)
        self.assertEqual(done.stdout.split(), ["True", "1.0", "2.0", "3.0"])

    def test_a_pass_has_every_sample_once_in_an_order_of_its_own(self):
        done = self.script("""
            seen = []
            def watch(w, gradient, index):
                seen.extend(index.tolist())
                return loss(w, gradient, index)
            anytime.train(watch, w, 1000, ["--workers", "0", "--epochs", "2", "--batch", "100",
                                           "--quiet"])
            passes = [seen[:1000], seen[1000:]]
            print(len(seen), [sorted(part) == list(range(1000)) for part in passes],
                  passes[0] == passes[1], seen[:5] == [0, 1, 2, 3, 4])
            """)
        self.assertEqual(done.stdout.strip(), "2000 [True, True] False False")

    def test_an_exception_ends_the_run_with_its_message(self):
        for options in (["--workers", "2"], ["--workers", "0"],
                        ["--workers", "1", "--sample-time", "measure"]):
            with self.subTest(options=options):
                done = self.script(f"""
                    def fails(w, gradient, index):
                        if w.any(): raise ValueError("the data has ended")
                        return loss(w, gradient, index)
                    if "measure" in {options}: w += 1
                    anytime.train(fails, w, 1000, {options} + ["--epochs", "50", "--quiet"])
                    print("not reached")
                    """, code=1)
                self.assertEqual(done.stdout, "")
                self.assertIn("a function of the model failed: ValueError: the data has ended",
                              done.stderr.splitlines()[-1])
                self.assertEqual(len(re.findall("in fails", done.stderr)), 1, done.stderr)

    def test_an_exception_of_the_test_function_ends_the_run_too(self):
        done = self.script("""
            anytime.train(loss, w, 1000, ["--workers", "1", "--epochs", "2", "--quiet"],
                          test=lambda w, first, end: 1 / 0, test_samples=10)
            """, code=1)
        self.assertIn("failed: ZeroDivisionError", done.stderr.splitlines()[-1])

    def test_threads_of_the_caller_are_mentioned(self):
        done = self.script("""
            import threading
            end = threading.Event()
            threading.Thread(target=end.wait).start()
            anytime.train(loss, w, 1000, ["--workers", "1", "--steps", "2", "--quiet"])
            end.set()
            """)
        self.assertIn("2 threads, which workers forked from it lack", done.stderr)

    def test_mistakes_are_exceptions(self):
        done = self.script("""
            for arguments in ((w.astype(float), 1000), (w, 1000, ["--strategy", "amx"])):
                try: anytime.train(loss, *arguments)
                except anytime.Error as problem: print(problem.code, problem)
            """)
        self.assertRegex(done.stdout, "2 params must be a contiguous array of float32 that .*\n"
                                      "2 .*did you mean amb")

    def test_what_the_library_cannot_see_is_checked(self):
        """It would write to memory that is protected, or take -1 for 2^64 - 1."""
        done = self.script("""
            np.save("w.npy", w)
            for arguments, options in (((np.load("w.npy", mmap_mode="r"), 1000), {}),
                                       (([0.0, 0.0, 0.0], 1000), {}), ((w, -1), {}),
                                       ((w, 1 << 64), {}),
                                       ((w, 1000), {"test": test, "test_samples": -1})):
                words = ["--steps", "1", "--record", "none"]
                try: anytime.train(loss, *arguments, words, **options)
                except anytime.Error as problem: print(problem.code)
            """)
        self.assertEqual(done.stdout.split(), ["2"] * 5, done)


if __name__ == "__main__":
    support.main()
