#!/usr/bin/env python3
"""How runs of PyTorch scripts end: by themselves, by errors, by signals, by death."""
import os
import random
import signal

import support
from support import torch_runs

KILLS = int(os.environ.get("ANYTIME_TEST_KILLS", 3))

LOOP = """
    model = task.new_model()
    opt = anytime.Optimizer(model, task.new_optimizer("momentum", model))
    step = 0
    while not opt.done:
        step += 1
        x, y = task.samples(opt.rank, step, 8)
        opt.backward(task.loss_of(model, x, y), len(x))
        opt.step()
"""

WAITING = """
    import threading, time

    def count():
        for turn in range(20):
            time.sleep(0.01)
        open(f"{sys.argv[1]}/turning", "w").close()

    model = task.new_model()
    opt = anytime.Optimizer(model, task.new_optimizer("sgd", model))
    if opt.rank == 1:
        time.sleep(1000)
    x, y = task.samples(0, 1, 8)
    opt.backward(task.loss_of(model, x, y), 8)
    threading.Thread(target=count, daemon=True).start()
    try:
        opt.step()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


class Ends(torch_runs.TestCase):
    def test_scripts_decide_when_no_limit_is_given(self):
        result = self.torch("-n", 2, program=("steps=7",)).result
        self.assertEqual((result["stopped"], result["steps"]), ("workers left", 7))
        self.assertLessEqual(result["samples"]["dropped"], 2, "one begun by each")

    def test_a_script_that_exits_early_leaves_the_others_alone(self):
        script = self.script(LOOP + "        if opt.rank == 1 and step == 5: sys.exit(0)\n")
        result = self.torch("-n", 2, "--steps", 30, script=script).result
        self.assertEqual((result["steps"], result["respawns"]), (30, 0))
        self.assertEqual(result["worker"][1]["rounds"], 5)

    def test_a_script_that_raises_is_started_again_and_named_at_last(self):
        enough = self.folder / "enough"
        script = self.script(LOOP.replace(
            "opt.step()", "if opt.rank == 1: raise ValueError('no such luck')\n        opt.step()")
            .replace("not opt.done", f"not opt.done and not os.path.exists('{enough}')"))
        run = self.launch_script("-n", 2, "--restarts", 1, "--sample-time", "1ms", "--quiet",
                                 script=script)
        run.wait_until(lambda: "not started again: ValueError: no such luck" in run.err(),
                       "the script has failed twice")
        run.wait_steps(run.steps() + 3)  # the other one goes on
        enough.touch()
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"], ended.result["stopped"]),
                         (support.FAILED, 1, "workers left"), ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_the_code_of_a_script_is_that_of_the_run(self):
        script = self.script(LOOP + "    sys.exit(9 if opt.rank == 1 else 0)\n")
        ended = self.torch("-n", 2, "--steps", 5, script=script, code=9)
        self.assertEqual(ended.result["stopped"], "steps")

    def test_a_script_that_never_joins_fails_the_run_with_its_last_line(self):
        script = self.script("""
            import time
            print("loading forever", file=sys.stderr, flush=True)
            while True: time.sleep(1)
            """)
        ended = self.torch("-n", 2, "--join-timeout", "5s", script=script, code=support.FAILED)
        self.assertIn("no worker joined within 5 s", ended.err)
        self.assertIn("loading forever", ended.err.splitlines()[-2])

    def test_a_script_without_anytime_is_explained(self):
        ended = self.torch("-n", 1, script=self.script("print('trained alone')"),
                           code=support.FAILED)
        self.assertIn("none of them joined", ended.err)

    def test_a_script_that_never_steps_is_no_worker(self):
        script = self.script("""
            model = task.new_model()
            opt = anytime.Optimizer(model, task.new_optimizer("sgd", model))
            """)
        result = self.torch("-n", 2, "--steps", 5, script=script).result
        self.assertEqual((result["stopped"], result["steps"]), ("workers left", 0))

    def test_a_script_that_joins_and_hangs_does_not_outlive_the_run(self):
        """Nobody can say how long its first step may take; the limit of the run ends it."""
        script = self.script(LOOP.replace("step = 0", "step = 0\n    if opt.rank == 1: hang()"))
        script.write_text("import time\ndef hang(): time.sleep(1000)\n" + script.read_text())
        for strategy in ("fmb", "async"):
            with self.subTest(strategy=strategy):
                ended = self.torch("-n", 2, "--strategy", strategy, "--seconds", "1s", "--lease",
                                   "3s", "--quiet", script=script, code=None)
                self.assertEqual(ended.result["stopped"], "seconds", ended)
                self.assertGreater(ended.result["steps"], 0, ended)
                self.assertEqual(ended.result["worker"][1]["rounds"], 0, ended)

    def test_a_script_that_prints_much_does_not_disturb_the_run(self):
        script = self.script(LOOP + "        sys.stdout.write(('x' * 99 + '\\n') * 20000)\n")
        ended = self.torch("-n", 2, "--steps", 5, "--quiet", script=script)
        self.assertEqual(ended.result["steps"], 5)
        self.assertGreater(len(ended.out), 2 * 5 * 20000 * 100)


class Signals(torch_runs.TestCase):
    def test_ctrl_c_ends_all_scripts_in_order(self):
        script = self.script(LOOP + "    print('ended at version', opt.version)\n")
        run = self.launch_script("-n", 2, "--seconds", "1h", "--quiet", "--sample-time", "1ms",
                                 script=script)
        run.wait_steps(3)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["stopped"], "signal")
        self.assertEqual(ended.out.count(f"ended at version {ended.result['steps']}\n"), 2, ended)
        self.assert_gone(run)

    def test_a_waiting_script_can_be_interrupted_and_its_threads_go_on(self):
        """Rank 1 computes no more; rank 0 waits for it inside the library."""
        script = self.script(WAITING)
        run = self.launch_script("-n", 2, "--seconds", "1h", "--quiet", script=script,
                                 program=(self.folder,))
        run.wait_until((self.folder / "turning").exists, "a thread runs while the script waits")
        os.kill(run.wait_working()[1]["pid"], signal.SIGINT)
        run.wait_until(lambda: "interrupted" in run.out(), "the script was interrupted")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assert_ledger(ended)
        self.assert_gone(run)


class Deaths(torch_runs.TestCase):
    def kill_some(self, run):
        chance = random.Random(1)
        for _ in range(KILLS):
            victim = chance.choice(list(run.wait_working().values()))
            os.kill(victim["pid"], signal.SIGKILL)
            run.wait_until(lambda: run.workers()[victim["id"]]["pid"] != victim["pid"] and
                           run.workers()[victim["id"]]["state"] == "working", "it is replaced")
            run.wait_steps(run.steps() + 1)

    def test_killed_scripts_are_replaced_and_the_ledger_is_exact(self):
        for strategy, update in (("fmb", "hub"), ("fmb", "worker"), ("async", "hub")):
            with self.subTest(strategy=strategy, update=update):
                run = self.launch_script("-n", 3, "--strategy", strategy, "--seconds", "1000s",
                                         "--sample-time", "1ms", "--quiet", "--record", "steps",
                                         program=(f"update={update}", "optimizer=momentum",
                                                  f"out={self.folder}"))
                self.kill_some(run)
                run.signal(signal.SIGINT)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertGreaterEqual(ended.result["respawns"], KILLS)
                self.assert_ledger(ended)
                self.assert_gone(run)
                for rank in (1, 2):
                    self.assertTrue(torch_runs.torch.equal(self.saved(0), self.saved(rank)),
                                    f"rank {rank}{ended}")

    def test_a_frozen_script_is_evicted_and_replaced(self):
        run = self.launch_script("-n", 2, "--seconds", "1h", "--lease", "1s", "--quiet",
                                 "--sample-time", "1ms")
        run.wait_steps(5)
        victim = run.wait_working()[2]["pid"]
        os.kill(victim, signal.SIGSTOP)
        run.wait_until(lambda: run.workers()[2]["pid"] not in (victim, 0), "it is replaced")
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.result["evictions"], 1, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_an_ordinary_process_dies_with_its_hub(self):
        """Not forked from the test: as a user starts it."""
        run = self.launch_script("-n", 1, "--seconds", "1h", "--quiet", cold=True)
        run.wait_steps(3)
        run.process.kill()
        run.process.wait()
        support.wait_until(lambda: not support.processes.marked(run.mark), "everything has ended")


if __name__ == "__main__":
    support.main()
