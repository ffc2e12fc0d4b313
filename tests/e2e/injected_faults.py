#!/usr/bin/env python3
"""Every allocation, fork, write, fsync and rename of the hub fails once, at its n-th call.

The program recovers, or ends with a sentence and one of its exit codes; it never hangs, never dies
from a signal, leaves no process behind and never a result that cannot be read.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import unittest
import uuid

import support
from support import processes

FAULTY = os.environ.get("ANYTIME_FAULTY", "")
CODES = (support.DONE, support.FAILED, support.USAGE, support.FORMAT, support.MISSING, support.IO,
         support.STOPPED)
JOB = ("--data", "synthetic:500,10,3", "--workers", "2", "--steps", "6", "--checkpoint-every", "2",
       "--quiet", "--no-data-cache")


@unittest.skipUnless(FAULTY, "anytime_faulty is not built")
class InjectedFaults(support.TestCase):
    def run_with(self, name, fault, *arguments):
        """Exit code, text and run folder of a run in which one call fails."""
        folder = self.folder / name
        mark = uuid.uuid4().hex
        env = {**os.environ, "ANYTIME_FAULT": fault, processes.MARK: mark}
        try:
            ended = subprocess.run([FAULTY, "train", *arguments, "--run", str(folder)], env=env,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=support.BOUND, check=False)
        except subprocess.TimeoutExpired:
            for pid in processes.marked(mark):
                os.kill(pid, 9)
            return f"{fault}: hangs"
        return self.complaint(fault, ended, folder, mark)

    @staticmethod
    def complaint(fault, ended, folder, mark):
        """What is wrong with how it ended; None: nothing."""
        said = f"{fault}: exit code {ended.returncode}, stderr: {ended.stderr[-400:]}"
        if ended.returncode not in CODES:
            return said
        if ended.returncode != support.DONE and "anytime: " not in ended.stderr:
            return f"{said} (no sentence)"
        if processes.marked(mark):
            return f"{said} (left processes)"
        result = pathlib.Path(folder, "result.json")
        if result.exists():
            samples = json.loads(result.read_text())["samples"]
            if samples["drawn"] != samples["used"] + samples["dropped"]:
                return f"{said} (ledger)"
        return None

    def counts(self, *arguments):
        """How often the hub calls what, when nothing fails."""
        path = self.folder / "counts"
        env = {**os.environ, "ANYTIME_FAULT_COUNTS": str(path)}
        subprocess.run([FAULTY, "train", *arguments, "--run", str(self.folder / "whole")], env=env,
                       capture_output=True, timeout=support.BOUND, check=True)
        lines = (line.split() for line in path.read_text().splitlines())
        return {name: int(count) for name, count in lines}

    def fail_each(self, where, *arguments):
        counts = self.counts(*arguments)
        self.assertGreater(counts["write"], 5)
        faults = [f"{name}:{n}{where}" for name, count in counts.items()
                  for n in range(1, count + 3)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = pool.map(lambda i: self.run_with(f"run{i}", faults[i], *arguments),
                             range(len(faults)))
            complaints = [text for text in found if text]
        self.assertEqual(complaints, [], "\n".join([f"{len(complaints)} of {len(faults)}:",
                                                    *complaints]))

    def test_each_call_of_the_hub_may_fail_once(self):
        self.fail_each("", *JOB)

    def test_each_call_of_a_child_may_fail_once(self):
        self.fail_each("@child", *JOB)


if __name__ == "__main__":
    support.main()
