"""Runs whose workers are programs with their own loop."""
import os

import support

WORKER = os.environ.get("SEAT_WORKER", "build/tests/seat_worker")


class TestCase(support.TestCase):
    def launch(self, *arguments, program=(), env=None, folder=None):
        """Starts `anytime run`; words of `program` without a path are options of the worker."""
        self.runs += 1
        command = program if program and "/" in str(program[0]) else (WORKER, *program)
        run = support.Run(arguments, folder or self.folder / f"run{self.runs}", env,
                          program=command, resume=folder is not None)
        self.addCleanup(run.close)
        return run

    def seats(self, *arguments, program=(), code=support.DONE, **options):
        """A complete run; nothing of it is left, and its ledger is exact."""
        run = self.launch(*arguments, program=program, **options)
        ended = run.wait()
        self.assertEqual(ended.code, code, ended)
        self.assert_gone(run)
        if (ended.folder / "result.json").exists():
            self.assert_ledger(ended)
        return ended
