#!/usr/bin/env python3
"""The batch scripts of docs/guide/slurm.md under a real Slurm: results, deaths, requeue, cancel."""
import os
import re
import signal
import sys

import support
from support import processes, slurm

PAGE = support.ROOT / "docs" / "guide" / "slurm.md"
SLOW = (*support.SMALL, "--sample-time", "50us", "--eval-every", "0")
STEPS = 4000  # so many that a job still works when the signal arrives


def scripts():
    """The batch scripts of the page, by the names of their jobs."""
    blocks = re.findall(r"^```sh\n(#!.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {re.search(r"--job-name=anytime-(\S+)", block)[1]: block for block in blocks}


class Slurm(support.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm.Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.scripts = scripts()

    def submit(self, name, *arguments, folder=None):
        folder = folder or self.folder / name
        folder.mkdir(exist_ok=True)
        job = slurm.Job(self.cluster, folder, self.scripts[name], *arguments)
        self.addCleanup(job.cancel)  # a job that is not over would keep the next one waiting
        return job

    def plain(self, *arguments):
        """The result of the same run with four processes of this machine."""
        return self.train(*arguments, "--workers", 4, "--quiet", "--json").result

    def test_srun_and_mpirun_give_the_bits_of_one_machine(self):
        options = (*support.SMALL, "--steps", 60)
        wanted = self.plain(*options)
        for name in ("srun", "mpirun"):
            with self.subTest(script=name):
                job = self.submit(name, *options)
                job.wait_state("COMPLETED", "FAILED")
                result = job.ended().result
                self.assertEqual((result["world"], result["workers"]), ("mpi", 4))
                self.assertEqual(result["params_hash"], wanted["params_hash"], job.describe())

    def test_mpirun_goes_on_without_a_killed_rank(self):
        job = self.submit("mpirun", *SLOW, "--steps", 600)
        rows = job.wait_working()
        self.assertIn("the run continues without a rank that dies", job.output())
        os.kill(rows[1]["pid"], signal.SIGKILL)
        job.wait_state("COMPLETED", "FAILED")
        ended = job.ended()
        self.assertEqual(job.state()["JobState"], "COMPLETED", ended)
        self.assertEqual(ended.result["steps"], 600, ended)
        self.assert_ledger(ended)
        self.assertEqual([row["state"] for row in ended.result["worker"]].count("lost"), 1, ended)

    def test_srun_ends_the_job_with_a_killed_rank_and_the_run_can_be_resumed(self):
        job = self.submit("srun", *SLOW, "--steps", 10**7, "--checkpoint-every", 50)
        rows = job.wait_working(60)
        os.kill(rows[1]["pid"], signal.SIGKILL)
        job.wait_state("FAILED", "CANCELLED")
        self.assertIn("srun ends all ranks when one dies", job.output())
        support.wait_until(lambda: not processes.alive([row["pid"] for row in rows]),
                           "all ranks are gone")
        steps = max(int(re.search(r"\d+", path.name)[0])
                    for path in (job.run / "checkpoint").iterdir()) + 10
        resumed = self.resume(job.run, "--steps", steps, "--quiet", "--json").wait()
        self.assertEqual((resumed.code, resumed.result["steps"]), (support.DONE, steps), resumed)

    def test_a_requeued_job_resumes_and_ends_with_the_bits_of_an_undisturbed_run(self):
        job = self.submit("requeue", *SLOW, "--steps", STEPS)
        job.wait_working(50)
        self.cluster.ask("scontrol", "requeue", job.id)
        self.assertEqual(job.wait_requeued()["JobState"], "COMPLETED", job.describe())
        wanted = self.plain(*support.SMALL, "--eval-every", 0, "--steps", STEPS)
        self.assertEqual(job.ended().result["params_hash"], wanted["params_hash"], job.describe())

    def test_a_job_that_is_told_to_stop_requeues_itself(self):
        job = self.submit("requeue", *SLOW, "--steps", STEPS)
        job.wait_working(50)
        job.cancel("--signal=TERM")  # as --signal does before the limit
        self.assertEqual(job.wait_requeued()["JobState"], "COMPLETED", job.describe())
        self.assertEqual(job.ended().result["steps"], STEPS)

    def test_scancel_stops_a_run_cleanly(self):
        for name in ("srun", "requeue"):
            with self.subTest(script=name):
                job = self.submit(name, *SLOW, "--steps", 10**7)
                job.wait_working()
                job.cancel()
                job.wait_state("CANCELLED")
                ended = job.wait_result()
                self.assertEqual(ended.result["stopped"], "signal", ended)
                self.assert_ledger(ended)
                self.assertEqual(self.resume(job.run, "--steps", ended.result["steps"] + 10,
                                             "--quiet").wait().code, support.DONE)

    def test_an_array_of_workers_joins_a_hub(self):
        folder = self.folder / "hub"
        folder.mkdir()
        token = folder / "hub.token"
        token.write_text(os.urandom(24).hex())
        token.chmod(0o600)
        hub = self.submit("hub", *SLOW, "--workers", 4, "--workers-min", 1, "--steps", 10**7)
        array = self.submit("work", folder=folder)
        hub.wait_working()
        self.cluster.ask("scancel", f"{array.id}_2")
        hub.wait_working(count=3)
        hub.cancel()
        ended = hub.wait_result()
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assert_ledger(ended)
        self.assertEqual(len(re.findall(r"worker \d left", ended.err)), 1, ended)


if __name__ == "__main__":
    if slurm.missing():
        print(f"skipped: {' '.join(slurm.missing())} not installed (apt-get install slurm-wlm "
              "munge openmpi-bin)")
        sys.exit(77)
    support.main()
