#!/usr/bin/env python3
"""`anytime run` starts its hub again when something kills it, and with it the programs."""
import json
import os
import signal

import support
from support import processes, seats

JOB = ("-n", 2, "--steps", 400, "--quiet")
SLOW = (*JOB, "--sample-time", "300us", "--checkpoint-every", 10)


class Restart(seats.TestCase):
    def hub_of(self, run):
        """The process that has the run, which is a child of what the user has started."""
        def look():
            if not (run.folder / "workers.json").exists():
                return None
            hub = json.loads((run.folder / "workers.json").read_text())["hub"]
            return hub in processes.children(run.pid) and hub
        return run.wait_until(look, "it has a hub")

    @staticmethod
    def assert_all_end(run):
        """The system ends what depends on a process that was killed, but not at once."""
        support.wait_until(lambda: not processes.marked(run.mark), "everything has ended")

    def kill_hub(self, run):
        """Kills it after another checkpoint."""
        def saved():
            return {path.name for path in (run.folder / "checkpoint").glob("step-*.safetensors")}
        before, hub = saved(), self.hub_of(run)
        run.wait_until(lambda: saved() - before, "a checkpoint is written")
        self.assertNotEqual(hub, run.pid)
        os.kill(hub, signal.SIGKILL)
        run.wait_until(lambda: self.hub_of(run) != hub, "there is another hub")

    def test_a_hub_that_is_killed_continues_with_the_same_bits(self):
        calm = self.seats(*JOB).result
        run = self.launch(*SLOW)
        for _ in range(3):
            self.kill_hub(run)
        ended = run.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assertEqual(ended.err.count("starting it again from its last checkpoint"), 3)
        self.assertEqual(ended.result["params_hash"], calm["params_hash"])
        self.assertEqual(ended.result["steps"], 400)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_run_that_is_resumed_has_a_guard_too(self):
        run = self.launch(*SLOW)
        self.kill_hub(run)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)
        run = self.launch(folder=run.folder)
        self.kill_hub(run)
        ended = run.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.assertEqual(ended.result["steps"], 400)
        self.assert_ledger(ended)

    def test_who_stops_the_run_means_it(self):
        run = self.launch(*SLOW)
        run.wait_steps(5)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertNotIn("starting it again", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_hub_that_dies_after_it_was_told_to_stop_is_not_started_again(self):
        run = self.launch(*SLOW)
        run.wait_steps(5)
        hub = self.hub_of(run)
        os.kill(hub, signal.SIGSTOP)
        run.signal(signal.SIGTERM)
        os.kill(hub, signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertIn(f"anytime run --resume {run.folder} -- COMMAND", ended.err)
        self.assertNotIn("starting it again", ended.err)
        self.assert_all_end(run)
        ended = self.launch(folder=run.folder).wait()
        self.assertEqual((ended.code, ended.result["steps"]), (support.DONE, 400), ended)
        self.assert_ledger(ended)

    def test_a_hub_that_keeps_dying_is_given_up(self):
        run = self.launch(*SLOW, "--restarts", 0)
        run.wait_steps(25)
        os.kill(self.hub_of(run), signal.SIGKILL)
        ended = run.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertIn("killed by signal 9", ended.err)
        self.assert_all_end(run)

    def test_everything_ends_with_what_the_user_has_started(self):
        run = self.launch(*SLOW)
        run.wait_steps(5)
        run.process.kill()
        run.wait()
        self.assert_all_end(run)


if __name__ == "__main__":
    support.main()
