#!/usr/bin/env python3
"""Programs that die, freeze, hang and shout: the run goes on, and nothing is left of it.

ANYTIME_CHAOS=200 kills that many of them, under every strategy.
"""
import os
import random
import signal

import support
from support import processes, seats

KILLS_EACH = -(-int(os.environ.get("ANYTIME_CHAOS", "38")) // len(support.GRADIENTS))


class Chaos(seats.TestCase):
    def kill_some(self, run, kills):
        """Kills workers one after the other, each when all of them are working."""
        chance = random.Random(1)
        for _ in range(kills):
            rows = run.wait_working()
            victim = chance.choice(list(rows.values()))
            os.kill(victim["pid"], signal.SIGKILL)
            run.wait_until(lambda: run.workers()[victim["id"]]["pid"] != victim["pid"] and
                           run.workers()[victim["id"]]["state"] == "working", "it is replaced")

    def test_killed_workers_are_replaced_and_the_ledger_is_exact(self):
        for strategy in support.GRADIENTS:
            with self.subTest(strategy=strategy):
                run = self.launch("-n", 3, "--strategy", strategy, "--sample-time", "100us",
                                  "--steps", 10**9, "--quiet", "--record", "steps",
                                  program=("batch=16",))
                self.kill_some(run, KILLS_EACH)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertGreaterEqual(ended.result["respawns"], KILLS_EACH)
                self.assert_ledger(ended)
                self.assert_gone(run)
                print(f"{strategy}: {KILLS_EACH} programs killed", flush=True)

    def test_the_bits_of_fmb_survive_deaths(self):
        options = ("-n", 3, "--steps", 60, "--workers-min", 3)
        calm = self.seats(*options).result
        restless = self.seats(*options, program=("abort=20",)).result
        self.assertGreater(restless["respawns"], 0)
        self.assertEqual(restless["samples"]["used"], calm["samples"]["used"])
        self.assertEqual(restless["params_hash"], calm["params_hash"])

    def test_a_gradient_outlives_the_worker_that_computed_it(self):
        """It dies between its report and the step, and another process has its seat by then."""
        options = ("-n", 3, "--steps", 10)
        calm = self.seats(*options).result
        restless = self.seats(*options, program=("hand_over=6", "only=0")).result
        self.assertEqual(restless["respawns"], 1)
        self.assertEqual(restless["samples"], calm["samples"])
        self.assertEqual(restless["params_hash"], calm["params_hash"])

    def test_a_frozen_worker_is_evicted_and_replaced(self):
        run = self.launch("-n", 3, "--steps", 100000, "--seconds", "1h", "--lease", "1s",
                          "--sample-time", "100us", "--quiet")
        run.wait_steps(5)
        victim = run.wait_working()[2]["pid"]
        os.kill(victim, signal.SIGSTOP)
        run.wait_until(lambda: run.workers()[2]["pid"] not in (victim, 0), "it is replaced")
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.result["evictions"], 1, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_programs_are_not_killed_for_a_slow_disk(self):
        """The hub waits for its last checkpoint for longer than a lease before it lets them go."""
        run = self.launch("-n", 2, "--seconds", "1h", "--lease", "1s", "--sample-time", "100us",
                          "--checkpoint-every", 0)
        run.wait_steps(5)
        saver = next(pid for pid in processes.marked(run.mark)
                     if processes.name(pid) == "anytime-saver")
        os.kill(saver, signal.SIGSTOP)
        run.signal(signal.SIGTERM)
        run.wait_said("waiting for the checkpoint of step")
        os.kill(saver, signal.SIGCONT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["evictions"], 0, ended)
        self.assert_ledger(ended)

    def test_workers_die_with_a_killed_hub(self):
        run = self.launch("-n", 3, "--seconds", "1h", "--sample-time", "100us", "--quiet")
        run.wait_steps(5)
        run.workers()
        run.process.kill()
        run.process.wait()
        support.wait_until(lambda: not processes.marked(run.mark), "all processes have ended")

    def test_a_program_that_prints_a_lot_does_not_disturb_the_run(self):
        ended = self.seats("-n", 2, "--steps", 20, "--quiet", program=("print_mb=20",))
        self.assertEqual(ended.result["steps"], 20)
        self.assertGreater(len(ended.out), 2 * 20 << 20)

    @staticmethod
    def relay(run):
        """The process through which programs print."""
        return next((pid for pid in processes.marked(run.mark)
                     if processes.name(pid) == "anytime-output"), None)

    def test_a_relay_of_output_that_is_killed_is_replaced(self):
        run = self.launch("-n", 2, "--seconds", "1h", "--quiet", "--sample-time", "100us")
        run.wait_steps(3)
        for _ in range(3):
            relay = self.relay(run)
            os.kill(relay, signal.SIGKILL)
            run.wait_until(lambda: self.relay(run) not in (None, relay), "there is another one")
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 0), ended)
        self.assertEqual(ended.out.count("status 8"), 2, "what they printed at last is there")
        self.assert_gone(run)

    def test_ctrl_c_ends_the_run_in_order(self):
        run = self.launch("-n", 2, "--seconds", "1h", "--quiet", "--sample-time", "100us")
        run.wait_steps(3)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["stopped"], "signal")
        self.assertIn(f"anytime run --resume {run.folder} -- COMMAND", ended.err)
        self.assertEqual(ended.out.count("status 8"), 2, "programs see DONE and end by themselves")
        self.assert_gone(run)

    def test_a_program_that_ends_without_leaving_is_no_loss(self):
        result = self.seats("-n", 2, "--steps", 20, program=("unleft=1",)).result
        self.assertEqual((result["stopped"], result["respawns"]), ("steps", 0))


if __name__ == "__main__":
    support.main()
