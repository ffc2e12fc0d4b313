#!/usr/bin/env python3
"""A user-defined model, from C and from Python, through the public library."""
import ctypes
import json
import locale
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import support
from support import mpi

BUILD = os.path.dirname(os.environ["ANYTIME"])
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
EXAMPLE_C = [os.path.join(BUILD, "example_own_model")]
EXAMPLE_PY = [os.environ.get("PYTHON", sys.executable), os.path.join(EXAMPLES, "own_model.py")]
BAYES = 0.1425  # about the lowest loss possible on these clouds


def run(command, *options):
    environment = dict(os.environ, ANYTIME_LIBRARY=os.path.join(BUILD, "libanytime.so"))
    return subprocess.run([*command, "--quiet", *options], env=environment, text=True,
                          capture_output=True, timeout=300)


def loss_of(done):
    assert done.returncode == 0, done.stderr
    return float(re.search(r"mean loss (\S+)", done.stdout).group(1))


def sanitized():
    with open(os.environ["ANYTIME"], "rb") as program:
        return b"__asan_init" in (bytes := program.read()) or b"__tsan_init" in bytes


class OwnModel(unittest.TestCase):
    def test_it_learns_under_every_strategy_and_number_of_workers(self):
        for strategy in ("fmb", "amb"):
            for workers in ("0", "1", "3"):
                with self.subTest(strategy=strategy, workers=workers):
                    loss = loss_of(run(EXAMPLE_C, "--strategy", strategy, "--workers", workers,
                                       "--epochs", "2"))
                    self.assertLess(loss, BAYES * 1.03)

    def test_the_same_options_give_the_same_parameters_with_a_hub_and_without(self):
        options = ["--deal", "global", "--epochs", "1", "--batch", "32", "--micro-batch", "32"]
        solo = run(EXAMPLE_C, *options, "--workers", "0").stdout
        self.assertEqual(solo, run(EXAMPLE_C, *options, "--workers", "1").stdout)

    def test_a_callback_in_python_trains_in_forked_workers(self):
        if subprocess.run([EXAMPLE_PY[0], "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("numpy is not installed")
        if sanitized():
            self.skipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        for options in (["--workers", "2"], ["--workers", "0"], ["--strategy", "amb"]):
            with self.subTest(options=options):
                self.assertLess(loss_of(run(EXAMPLE_PY, *options, "--epochs", "2")), BAYES * 1.03)

    def test_a_wrong_option_is_refused_with_a_hint(self):
        done = run(EXAMPLE_C, "--strategy", "amx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean amb", done.stderr)
        self.assertEqual(run(EXAMPLE_C, "--model", "softmax").returncode, 2)

    @unittest.skipUnless(mpi.MPIRUN, "mpirun is not installed")
    def test_copies_started_by_mpirun_are_one_run(self):
        options = ["--quiet", "--steps", "50", "--batch", "32", "--json"]
        alone = run(EXAMPLE_C, *options[1:], "--workers", "2")
        done = subprocess.run([*mpi.launcher(3), *EXAMPLE_C, *options], text=True,
                              env={**os.environ, **mpi.ENV}, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, 3 * alone.stdout)  # all ranks have the same parameters

    def test_nothing_is_written_without_run(self):
        before = set(os.listdir("."))
        run(EXAMPLE_C, "--steps", "10")
        self.assertEqual(before, set(os.listdir(".")))


class Continue(unittest.TestCase):
    """--run, --resume and --init mean the same as in `anytime train`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, *options, code=0):
        done = run(EXAMPLE_C, *map(str, options))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def result(self, name):
        with open(os.path.join(self.folder, name, "result.json"), encoding="utf-8") as file:
            return json.load(file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                whole, part = f"whole{workers}", f"part{workers}"
                options = ("--workers", workers, "--optimizer", "adam")
                one = self.train(*options, "--steps", 60, "--run", self.path(whole))
                self.train(*options, "--steps", 25, "--run", self.path(part))
                two = self.train("--resume", self.path(part), "--steps", 60)
                self.assertEqual(self.result(part)["resumed_at"], 25)
                self.assertEqual(self.result(part)["params_hash"],
                                 self.result(whole)["params_hash"])
                self.assertEqual(one.stdout, two.stdout)

    def test_a_resume_that_is_impossible_is_refused(self):
        self.assertIn("no-such-run", self.train("--resume", self.path("no-such-run"),
                                                code=66).stderr)
        self.train("--steps", 5, "--run", self.path("one"))
        self.assertIn("--lr", self.train("--resume", self.path("one"), "--steps", 9, "--lr", "0.1",
                                         code=2).stderr)

    def test_training_starts_from_the_weights_of_init(self):
        self.train("--steps", 50, "--workers", 1, "--run", self.path("first"))
        good = loss_of(self.train("--steps", 1, "--workers", 1, "--lr", "1e-9", "--init",
                                  self.path("first")))
        fresh = loss_of(self.train("--steps", 1, "--workers", 1, "--lr", "1e-9"))
        self.assertLess(good, 0.6 * fresh)
        weights = os.path.join(self.path("first"), "model.safetensors")
        self.assertEqual(good, loss_of(self.train("--steps", 1, "--workers", 1, "--lr", "1e-9",
                                                  "--init", weights)))
        self.train("--steps", 1, "--init", self.path("nowhere"), code=66)


class OneAtATime(unittest.TestCase):
    def test_a_second_call_is_refused_while_one_is_running(self):
        if sanitized():
            self.skipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        done = subprocess.run([sys.executable, __file__, "--second-call"], text=True,
                              capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "thread 2 at_train is already running in this process",
            "callback 2 at_train is already running in this process",
            "outer 0 ", "later 0 "])


class Workers(unittest.TestCase):
    """Workers are processes that are forked from the caller."""

    def act(self, name):
        if sanitized():
            self.skipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        done = subprocess.run([sys.executable, __file__, f"--{name}"], text=True,
                              capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_callback_that_ends_its_worker_ends_the_run_with_the_reason(self):
        out = self.act("dying").stdout.splitlines()
        self.assertEqual(out, ["dying 1 no worker is left: worker 1 exited with 3"])

    def test_several_threads_in_the_caller_are_pointed_out(self):
        done = self.act("threads")
        self.assertEqual(done.stdout.splitlines(), ["alone 0 ", "solo 0 ", "two 0 "])
        notes = [line for line in done.stderr.splitlines() if "threads" in line]
        self.assertEqual(len(notes), 1, "only for the last of the three")
        self.assertIn("this process has 2 threads, which workers forked from it lack", notes[0])


class Locale(unittest.TestCase):
    SOURCE = 'LC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'

    def test_numbers_have_points_in_a_program_with_decimal_commas(self):
        if sanitized():
            self.skipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        if not shutil.which("localedef"):
            self.skipTest("there is no localedef to build a locale with a decimal comma")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "source"), "w", encoding="utf-8") as file:
                file.write(self.SOURCE)
            subprocess.run(["localedef", "--quiet", "-c", "-i", "source", "./comma"], cwd=folder,
                           check=False, timeout=300)  # exits with 1: it warns of missing parts
            if not os.path.exists(os.path.join(folder, "comma", "LC_NUMERIC")):
                self.skipTest("localedef has no character maps (package locales)")
            run_folder = os.path.join(folder, "run")
            done = subprocess.run([sys.executable, __file__, "--comma", run_folder], text=True,
                                  capture_output=True, timeout=300, check=False,
                                  env=dict(os.environ, LOCPATH=folder))
            self.assertEqual(done.stdout.splitlines(), ["comma 0 ", "still ,"], done.stderr)
            with open(os.path.join(run_folder, "result.json"), encoding="utf-8") as file:
                options = json.load(file)["options"]
            self.assertEqual((options["lr"], options["sample-time"]), (0.125, "1.5e-06s"))
            for name in ("collect_stats.csv", "worker_stats.csv"):
                with open(os.path.join(run_folder, name), encoding="utf-8") as file:
                    widths = {line.count(",") for line in file}
                self.assertEqual(len(widths), 1, name)


class Library:
    """libanytime through ctypes; a call of at_train releases Python's global lock."""

    def __init__(self):
        real = ctypes.POINTER(ctypes.c_float)
        self.loss = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, real, real,
                                     ctypes.c_uint64, ctypes.c_uint64)

        class Model(ctypes.Structure):
            _fields_ = [("user", ctypes.c_void_p), ("parameters", ctypes.c_uint64),
                        ("samples", ctypes.c_uint64), ("test_samples", ctypes.c_uint64),
                        ("loss", self.loss), ("test", ctypes.c_void_p), ("name", ctypes.c_char_p),
                        ("loss_at", ctypes.c_void_p)]

        class Answer(ctypes.Structure):
            _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024),
                        ("result", ctypes.c_char_p)]

        self.model, self.answer = Model, Answer
        self.library = ctypes.CDLL(os.path.join(BUILD, "libanytime.so"))

    def train(self, name, loss, *options):
        words = [word.encode() for word in ("--workers", "0", "--steps", "3", "--quiet", *options)]
        model, answer = self.model(parameters=2, samples=1000, loss=self.loss(loss)), self.answer()
        self.library.at_train(ctypes.byref(model), (ctypes.c_float * 2)(), len(words),
                              (ctypes.c_char_p * len(words))(*words), ctypes.byref(answer))
        print(name, answer.code, answer.message.decode().split(";", maxsplit=1)[0], flush=True)
        self.library.at_answer_free(ctypes.byref(answer))


def plain(_user, _params, gradient, first, end):
    gradient[0] += end - first
    return float(end - first)


def comma(folder):
    """Trains in a program whose locale has a decimal comma."""
    locale.setlocale(locale.LC_NUMERIC, "comma")
    Library().train("comma", plain, "--lr", "0.125", "--sample-time", "1.5us", "--run", folder)
    print("still", locale.localeconv()["decimal_point"])


def second_call():
    """Calls at_train from another thread and from the callback of a first call, and afterwards."""
    library = Library()
    tried = []

    def nested(*arguments):
        if not tried:
            tried.append(True)
            other = threading.Thread(target=library.train, args=("thread", plain))
            other.start()
            other.join()
            library.train("callback", plain)
        return plain(*arguments)

    library.train("outer", nested)
    library.train("later", plain)


def die(*_arguments):
    os._exit(3)


def with_threads():
    """Trains before and after another thread was started."""
    library, over = Library(), threading.Event()
    library.train("alone", plain, "--workers", "1")
    other = threading.Thread(target=over.wait)
    other.start()
    library.train("solo", plain)
    library.train("two", plain, "--workers", "1")
    over.set()
    other.join()


if __name__ == "__main__" and "--dying" in sys.argv:
    Library().train("dying", die, "--workers", "1", "--no-respawn")
    sys.exit(0)
if __name__ == "__main__" and "--threads" in sys.argv:
    with_threads()
    sys.exit(0)
if __name__ == "__main__" and "--second-call" in sys.argv:
    second_call()
    sys.exit(0)
if __name__ == "__main__" and "--comma" in sys.argv:
    comma(sys.argv[-1])
    sys.exit(0)
if __name__ == "__main__":
    support.main()
