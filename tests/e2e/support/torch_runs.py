"""Runs whose workers are PyTorch scripts."""
import pathlib
import sys
import tempfile
import textwrap
import unittest

import support
from support import seats, warm

try:
    import torch
    torch.set_num_threads(1)  # a pool of threads would be missing in forked processes
except ImportError:
    torch = None

WORKER = pathlib.Path(__file__).resolve().parents[2] / "programs" / "torch_worker.py"
sys.path.append(str(support.ROOT / "python"))
PATHS = f"{support.ROOT / 'python'}:{WORKER.parents[1] / 'e2e'}"


class TestCase(seats.TestCase):
    """A test whose runs have warm workers: see support/warm.py."""

    @classmethod
    def setUpClass(cls):
        if torch is None:
            raise unittest.SkipTest(f"{sys.executable} has no PyTorch (package python3-torch)")
        if support.is_sanitized():
            raise unittest.SkipTest("a sanitizer's runtime cannot be loaded into a plain Python")
        cls.server_folder = tempfile.TemporaryDirectory(prefix="warm-")
        cls.server = warm.Warm(cls.server_folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.server_folder.cleanup()

    def launch_script(self, *arguments, script=WORKER, program=(), cold=False, **options):
        """Starts a run of a script with these words; `cold`: as an ordinary process."""
        command = (sys.executable, str(script), *program) if cold else \
            self.server.command(script, *program)
        return self.launch(*arguments, program=command, env={"PYTHONPATH": PATHS}, **options)

    def script(self, text):
        """A script file with this text; it begins with the usual imports."""
        path = self.folder / "script.py"
        path.write_text("import os, sys, torch\nimport anytime.torch as anytime\n"
                        "from support import torch_task as task\n" + textwrap.dedent(text))
        return path

    def torch(self, *arguments, code=support.DONE, **options):
        """A complete run; nothing of it is left, and its ledger is exact. `code` None: any."""
        run = self.launch_script(*arguments, **options)
        ended = run.wait()
        self.assertEqual(ended.code, ended.code if code is None else code, ended)
        self.assert_gone(run)
        if (ended.folder / "result.json").exists():
            self.assert_ledger(ended)
        return ended

    def saved(self, rank, name="params"):
        """What a worker has saved with `out=FOLDER`."""
        return torch.load(self.folder / f"{name}-{rank}.pt")
