#!/usr/bin/env python3
"""Every MPI call of a rank fails once, at its n-th call, and messages arrive with wrong bytes.

A job whose MPI fails ends with a sentence; one whose worker sends nonsense goes on without it.
Nothing hangs, and no process dies from a signal.
"""
import json
import os
import pathlib
import subprocess
import unittest
import uuid

import support
from support import mpi, processes

FAULTY = os.environ.get("ANYTIME_FAULTY", "")
JOB = ("--data", "synthetic:500,10,3", "--steps", "12", "--quiet", "--no-data-cache",
       "--optimizer", "momentum", "--checkpoint-every", "4")
TOPOLOGIES = {"hub": (), "async": ("--strategy", "async"),
              "allreduce": ("--topology", "allreduce"), "hubs": ("--hubs", "2")}
POINT_TO_POINT, COLLECTIVE = ("MPI_Issend", "MPI_Irecv"), ("MPI_Iallgather",)
CALLS = {"hub": POINT_TO_POINT, "async": POINT_TO_POINT,
         "allreduce": (*COLLECTIVE, "MPI_Iallreduce", "MPI_Irecv"),
         "hubs": (*COLLECTIVE, "MPI_Ibcast", "MPI_Irecv")}


@unittest.skipUnless(FAULTY, "anytime_faulty is not built")
class InjectedFaults(mpi.TestCase):
    def begin(self, name, rank, fault, *arguments):
        """Runs a job of which one rank has a fault; its exit code, text and folder."""
        folder, script, mark = self.folder / name, self.folder / f"{name}.sh", uuid.uuid4().hex
        script.write_text(f"#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = {rank} ] && "
                          f"export ANYTIME_FAULT={fault}\nexec \"$@\"\n")
        script.chmod(0o755)
        env = {**os.environ, **mpi.ENV, processes.MARK: mark}
        try:
            ended = subprocess.run([*mpi.launcher(4), str(script), FAULTY, "train", *JOB,
                                    *arguments, "--run", str(folder)], env=env,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=support.BOUND, check=False)
        except subprocess.TimeoutExpired:
            for pid in processes.marked(mark):
                os.kill(pid, 9)
            self.fail(f"{name}, {fault} of rank {rank}: hangs")
        support.wait_until(lambda: not processes.marked(mark), "all processes are gone")
        return ended, folder

    def check_end(self, ended, folder, said):
        self.assertNotIn("received signal", ended.stderr, said)
        self.assertNotIn("Assertion", ended.stderr, said)
        result = pathlib.Path(folder, "result.json")
        if result.exists():
            samples = json.loads(result.read_text())["samples"]
            self.assertEqual(samples["drawn"], samples["used"] + samples["dropped"], said)

    def fail_calls(self, rank, counts):
        for topology, arguments in TOPOLOGIES.items():
            for call in (*CALLS[topology], "MPI_Testsome"):
                for n in counts:
                    with self.subTest(topology=topology, call=call, n=n):
                        ended, folder = self.begin(f"{topology}-{call}-{n}", rank, f"{call}:{n}",
                                                   *arguments)
                        said = f"{call}:{n} exits with {ended.returncode}: {ended.stderr[-900:]}"
                        self.check_end(ended, folder, said)
                        if ended.returncode != support.DONE:
                            self.assertIn(f"anytime: MPI failed in {call}", ended.stderr, said)

    def test_each_call_of_rank_0_may_fail_once(self):
        self.fail_calls(0, (1, 2, 7))

    def test_a_rank_that_cannot_start_ends_the_job_in_order(self):
        faults = ((0, "fork:2", "cannot start another process"),  # the evaluator
                  (0, "calloc:1", "not enough memory"), (1, "aligned_alloc:1", "rank 1 on"))
        for topology in ("hub", "allreduce", "hubs"):
            for rank, fault, says in faults:
                with self.subTest(topology=topology, rank=rank, fault=fault):
                    ended, folder = self.begin(f"start-{topology}-{rank}-{fault}", rank, fault,
                                               *TOPOLOGIES[topology])
                    said = f"{fault} exits with {ended.returncode}: {ended.stderr[-900:]}"
                    self.check_end(ended, folder, said)
                    self.assertEqual(ended.returncode, support.FAILED, said)
                    self.assertIn(says, ended.stderr, said)
                    self.assertNotIn("MPI_ABORT", ended.stderr, said)

    def test_a_call_of_a_worker_may_fail(self):
        for call in POINT_TO_POINT:
            for n in (1, 2, 4):
                with self.subTest(call=call, n=n):
                    ended, folder = self.begin(f"{call}-{n}", 2, f"{call}:{n}")
                    said = f"{call}:{n} exits with {ended.returncode}: {ended.stderr[-900:]}"
                    self.check_end(ended, folder, said)
                    self.assertIn(call, ended.stderr, said)

    def scramble(self, rank, counts, *arguments):
        texts = []
        for n in counts:
            with self.subTest(rank=rank, n=n):
                ended, folder = self.begin(f"scramble{rank}-{n}", rank, f"scramble:{n}", *arguments)
                said = f"scramble:{n} exits with {ended.returncode}: {ended.stderr[-900:]}"
                self.check_end(ended, folder, said)
                texts.append(ended.stderr)
        return texts

    def test_a_worker_that_sends_nonsense_is_evicted_and_the_run_goes_on(self):
        for n in (3, 4, 5, 8, 12):
            with self.subTest(n=n):
                ended, folder = self.begin(f"scramble{n}", 2, f"scramble:{n}")
                said = f"scramble:{n} exits with {ended.returncode}: {ended.stderr[-900:]}"
                self.check_end(ended, folder, said)
                result = json.loads((folder / "result.json").read_text())
                self.assertEqual((result["stopped"], result["steps"]), ("steps", 12), said)

    def test_a_rank_that_cannot_introduce_itself_is_refused(self):
        for n in (1, 2):
            with self.subTest(n=n):
                ended, folder = self.begin(f"refused{n}", 2, f"scramble:{n}")
                self.check_end(ended, folder, ended.stderr)
                if ended.returncode != support.DONE:
                    self.assertIn("anytime: rank 2", ended.stderr)

    def test_workers_survive_nonsense_of_the_hub(self):
        self.assertTrue(any("malformed" in text or "protocol" in text
                            for text in self.scramble(0, (1, 2, 3, 4, 7, 9))))


if __name__ == "__main__":
    mpi.main()
