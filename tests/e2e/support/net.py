"""Runs whose hub and workers are separate processes that find each other over a network."""
import os
import subprocess

import support
from support import processes
from support.seats import WORKER


class Hub(support.Run):
    """`anytime hub`; its address is in a file, as a user would share it."""

    def __init__(self, arguments, folder, resume=False, listen="127.0.0.1:0", enter=()):
        self.hub_file = folder.with_name(folder.name + ".hub")
        self.token = folder / "token"
        self.hub_file.unlink(missing_ok=True)
        super().__init__(("--listen", listen, "--hub-file", self.hub_file, *arguments), folder,
                         resume=resume, verb="hub", launcher=enter)

    def address(self):
        self.wait_until(self.hub_file.exists, "the hub says where it listens")
        return self.hub_file.read_text().strip()


class TestCase(support.TestCase):
    def hub(self, *arguments, folder=None, **options):
        """Starts a hub, or resumes the run in `folder`."""
        self.runs += 1
        hub = Hub(arguments, folder or self.folder / f"run{self.runs}",
                  resume=folder is not None, **options)
        self.addCleanup(hub.close)
        return hub

    def spawn(self, command, env):
        """A process that is ended with the test at the latest; its output goes to .err_path."""
        self.workers = getattr(self, "workers", 0) + 1
        path = self.folder / f"worker{self.workers}.err"
        with open(path, "wb") as err:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                       stdout=err, stderr=err, env={**os.environ, **env})
        process.err_path = path
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()

    def work(self, hub, *arguments, scheme="", token=None, enter=()):
        """One of our own workers; `enter`: the words that put it on another machine."""
        return self.spawn((*enter, support.ANYTIME, "work", scheme + hub.address(), "--token",
                           token or hub.token, *arguments), {processes.MARK: hub.mark})

    def program(self, hub, *arguments, scheme="", token=None):
        """A program that takes a seat."""
        return self.spawn((WORKER, *arguments),
                          {processes.MARK: hub.mark, "ANYTIME_HUB": scheme + hub.address(),
                           "ANYTIME_TOKEN_FILE": str(token or hub.token)})

    def assert_ends(self, process, code=support.DONE):
        """Waits for the end of a worker; returns what it printed."""
        found = process.wait(support.BOUND)
        said = process.err_path.read_text()
        self.assertEqual(found, code, said)
        return said

    def complete(self, *arguments, workers=2, start=None, scheme="", words=(), **options):
        """A complete run with workers that all end well."""
        hub = self.hub("--workers", workers, *arguments, **options)
        begin = start or self.work
        crowd = [begin(hub, *words, scheme=scheme) for _ in range(workers)]
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)
        return ended
