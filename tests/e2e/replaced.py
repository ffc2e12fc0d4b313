#!/usr/bin/env python3
"""With --workers-min = --workers a killed worker changes no bit: its successor does the
round again, in every world whose workers can be replaced."""
import os
import signal

import support
from support import net, seats

JOB = (*support.SMALL, "--quiet", "--eval-every", 0, "--steps", 500, "--workers", 3,
       "--workers-min", 3)
SLOW = ("--sample-time", "1ms")  # time enough for all kills, on a busy machine too


class Replaced(net.TestCase, seats.TestCase):
    def assert_undisturbed(self, ended, calm):
        self.assertEqual(ended.code, support.DONE, ended)
        self.assertEqual(ended.result["params_hash"], calm["params_hash"])
        self.assertEqual(ended.result["samples"]["used"], calm["samples"]["used"])
        self.assert_ledger(ended)

    def kill_one(self, run, worker):
        """Kills a process by its pid, and waits until another has its place."""
        row = run.wait_working()[worker]
        os.kill(row["pid"], signal.SIGKILL)
        run.wait_until(lambda: run.workers()[worker]["pid"] not in (0, row["pid"]), "replaced")

    def present(self, hub, count):
        hub.wait_until(lambda: sum(row["state"] == "working" for row in hub.workers().values())
                       == count, f"{count} workers are there")

    def test_workers_of_a_hub_on_the_network(self):
        for deal in ("own", "global"):
            with self.subTest(deal=deal):
                job = (*JOB, "--deal", deal)
                calm = self.train(*job).result
                hub = self.hub(*job, *SLOW)
                crowd = [self.work(hub) for _ in range(3)]
                for death in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
                    self.present(hub, 3)
                    hub.wait_steps(hub.steps() + 3)
                    os.kill(crowd.pop(0).pid, death)
                    self.present(hub, 2)
                    crowd.append(self.work(hub))
                ended = hub.wait()
                for process in crowd:
                    self.assert_ends(process)
                self.assert_undisturbed(ended, calm)

    def test_processes_of_train(self):
        calm = self.train(*JOB).result
        run = self.start(*JOB, *SLOW)
        for worker in (1, 2, 3, 2):
            run.wait_steps(run.steps() + 3)
            self.kill_one(run, worker)
        self.assert_undisturbed(run.wait(), calm)

    def test_programs_of_run(self):
        options = ("-n", 3, "--steps", 500, "--workers-min", 3, "--quiet")
        calm = self.seats(*options).result
        run = self.launch(*options, *SLOW)
        for worker in (1, 2, 3):
            run.wait_steps(run.steps() + 3)
            self.kill_one(run, worker)
        self.assert_undisturbed(run.wait(), calm)

    def test_simulated_workers_also_with_rounds_of_random_size(self):
        for options in (("--deal", "own"), ("--deal", "global"),
                        ("--straggler-batch", "bernoulli:0.5,8")):
            job = ("--world", "sim", *JOB, "--sample-time", "1ms", *options)
            calm = self.train(*job).result
            ended = self.train(*job, "--faults", "die:1@100ms,die:2@1s,die:3@1.01s")
            self.assertEqual(ended.result["respawns"], 3)
            self.assert_undisturbed(ended, calm)

    def test_a_hub_that_is_resumed_after_its_workers_were_replaced(self):
        calm = self.train(*JOB).result
        run = self.start(*JOB, *SLOW, "--checkpoint-every", 5)
        run.wait_steps(20)
        self.kill_one(run, 2)
        run.wait_steps(run.steps() + 20)
        run.process.kill()
        run.wait()
        self.assert_undisturbed(self.resume(run.folder).wait(), calm)


if __name__ == "__main__":
    support.main()
