#!/usr/bin/env python3
"""SIGINT, SIGTERM and SIGHUP: the first stops a run cleanly and promptly, the second at once."""
import contextlib
import os
import signal
import time

import support
from support import processes, seats

ENDLESS = (*support.SMALL, "--quiet", "--json", "--steps", 10 ** 9)
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping(support.TestCase):
    def assert_stopped(self, run, ended):
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assertTrue((run.folder / "result.json").exists(), ended)
        self.assertEqual(ended.result["test"]["count"], 400, ended)
        self.assertIn("stopped by a signal", ended.err)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_the_first_signal_stops_cleanly(self):
        for workers in (0, 3):
            for number in SIGNALS:
                with self.subTest(workers=workers, signal=number.name):
                    run = self.start(*ENDLESS, "--workers", workers)
                    run.wait_working()
                    run.wait_steps(1)
                    run.signal(number)
                    ended = run.wait()
                    self.assert_stopped(run, ended)
                    self.assertGreater(ended.result["steps"], 0, ended)

    def test_a_stop_does_not_wait_for_sleeping_workers(self):
        slow = {"induced sleep": ("--straggler", "exp:3000,1"),  # longer than the test waits
                "padding": ("--sample-time", "100s")}
        for workers in (0, 3):
            for name, option in slow.items():
                with self.subTest(workers=workers, slow=name):
                    run = self.start(*ENDLESS, "--workers", workers, "--lease", "1h", *option)
                    run.wait_working()
                    run.signal(signal.SIGINT)
                    self.assert_stopped(run, run.wait())

    def test_a_stop_does_not_wait_for_a_frozen_worker_beyond_its_lease(self):
        run = self.start(*ENDLESS, "--workers", 3, "--lease", "500ms", "--sample-time", "100us")
        os.kill(run.wait_working()[2]["pid"], signal.SIGSTOP)
        run.signal(signal.SIGINT)
        self.assert_stopped(run, run.wait())

    def test_an_interrupt_of_all_processes_still_stops_cleanly(self):
        run = self.start(*ENDLESS, "--workers", 3)
        run.wait_working()
        run.evaluator()
        for pid in run.children():
            os.kill(pid, signal.SIGINT)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assert_stopped(run, ended)
        self.assertEqual(ended.result["respawns"], 0, ended)

    def hang(self, workers):
        """A run that cannot stop promptly: a process it has to wait for is frozen."""
        run = self.start(*ENDLESS, "--workers", workers, "--lease", "1h")
        rows = run.wait_working()
        os.kill(rows[2]["pid"] if workers else run.evaluator(), signal.SIGSTOP)
        return run

    @staticmethod
    def ends_by(run, number):
        """Sends the signal; whether the run is over. One that comes soon after the first signal
        counts as the same request."""
        run.signal(number)
        return run.process.poll() is not None

    def test_the_second_signal_ends_the_run_at_once(self):
        for workers in (0, 3):
            for first, second in zip(SIGNALS + SIGNALS, SIGNALS + SIGNALS[::-1]):
                with self.subTest(workers=workers, first=first.name, second=second.name):
                    run = self.hang(workers)
                    run.signal(first)
                    support.wait_until(lambda: self.ends_by(run, second),
                                       "a later signal ends the run")
                    self.assertEqual(run.wait().code, -second, run.ended())
                    support.wait_until(lambda: not processes.marked(run.mark),
                                       "all its processes are gone")
                    self.assert_gone(run)
                    self.assertFalse((run.folder / "result.json").exists())


class Container(support.TestCase):
    """The program is process 1, for which signals have no default actions."""

    def setUp(self):
        super().setUp()
        if not processes.namespace():
            self.skipTest("this user may not make a namespace of process numbers")

    def ends_by(self, run, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        return run.process.poll() is not None

    def assert_second_ends(self, run, find_hub, worker):
        """It waits for a frozen worker when the signals come."""
        self.addCleanup(run.close)
        run.wait_working()
        first, = run.children()
        frozen = [pid for pid in processes.children(find_hub(first))
                  if processes.name(pid) == worker][0]
        os.kill(frozen, signal.SIGSTOP)
        os.kill(first, signal.SIGTERM)
        support.wait_until(lambda: self.ends_by(run, first), "a later signal ends the run")
        self.assertEqual(run.wait().code, 128 + signal.SIGINT, run.ended())
        support.wait_until(lambda: not processes.marked(run.mark), "all its processes are gone")

    def test_the_second_signal_ends_a_run_at_once(self):
        run = support.Run((*ENDLESS, "--workers", 2, "--lease", "1h"), self.folder / "run",
                          launcher=processes.namespace())
        self.assert_second_ends(run, lambda first: first, "anytime")

    def test_the_second_signal_ends_a_run_of_programs_at_once(self):
        run = support.Run(("-n", 2, "--quiet", "--steps", 10**9, "--lease", "1h"),
                          self.folder / "run", launcher=processes.namespace(),
                          program=(seats.WORKER,))
        self.assert_second_ends(run, lambda first: processes.children(first).pop(), "seat_worker")


class Groups(support.TestCase):
    """Signals to all processes of a run, as terminals, `timeout` and batch systems send them."""

    def start_group(self, *arguments):
        """A run in a process group of its own, whose number is the hub's pid."""
        self.runs += 1
        run = support.Run(arguments, self.folder / f"run{self.runs}", launcher=("setsid",))
        self.addCleanup(run.close)
        return run

    def test_a_signal_to_the_process_and_its_group_is_one_request(self):
        """As `timeout` does; at moments all over a round, in both orders."""
        for i in range(24):
            with self.subTest(i=i):
                run = self.start_group(*ENDLESS, "--workers", i % 4, "--sample-time", "50us")
                run.wait_working()
                run.wait_steps(1 + 7 * i % 40)
                for group in ((False, True), (True, False), (True, True, False))[i % 3]:
                    (os.killpg if group else os.kill)(run.pid, SIGNALS[i // 3 % 2])
                ended = run.wait()
                self.assertEqual((ended.code, ended.result["stopped"]),
                                 (support.STOPPED, "signal"), ended)
                self.assertTrue((run.folder / "result.json").exists(), ended)
                self.assertEqual(ended.result["respawns"], 0, ended)
                self.assertEqual({row["state"] for row in ended.result["worker"]}, {"finished"},
                                 ended)
                self.assert_ledger(ended)
                self.assert_gone(run)

    def test_a_closed_terminal_stops_cleanly_however_often_it_says_so(self):
        for workers in (0, 3):
            with self.subTest(workers=workers):
                run = self.start_group(*ENDLESS, "--workers", workers)
                run.wait_working()
                run.wait_steps(1)
                support.wait_until(lambda: self.hung_up(run), "the run ends")
                ended = run.wait()
                self.assertEqual((ended.code, ended.result["stopped"]),
                                 (support.STOPPED, "signal"), ended)
                self.assertEqual(ended.result["respawns"], 0, ended)
                self.assert_ledger(ended)
                self.assert_gone(run)

    @staticmethod
    def hung_up(run):
        """Sends SIGHUP to all processes; whether the run is over."""
        if run.process.poll() is None:
            os.killpg(run.pid, signal.SIGHUP)
        return run.process.poll() is not None

    def test_nohup_is_respected(self):
        for program in ((), (seats.WORKER,)):
            with self.subTest(program=program):
                self.runs += 1
                options = ("-n", 2, "--steps", 10**9) if program else (*ENDLESS, "--workers", 2)
                run = support.Run((*options, "--quiet"), self.folder / f"run{self.runs}",
                                  launcher=("setsid", "nohup"), program=program)
                self.addCleanup(run.close)
                run.wait_working()
                for _ in range(2):
                    os.killpg(run.pid, signal.SIGHUP)
                    run.wait_steps(run.steps() + 5)
                run.signal(signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertNotIn("starting it again", ended.err)

    def test_a_signal_to_all_workers_first_is_no_loss(self):
        for _ in range(5):
            run = self.start_group(*ENDLESS, "--workers", 3, "--no-respawn")
            for row in run.wait_working().values():
                os.kill(row["pid"], signal.SIGTERM)
            run.wait_steps(run.steps() + 5)
            os.killpg(run.pid, signal.SIGTERM)
            ended = run.wait()
            self.assertEqual((ended.code, ended.result["stopped"]), (support.STOPPED, "signal"),
                             ended)
            self.assertEqual({row["state"] for row in ended.result["worker"]}, {"finished"}, ended)

    def test_time_in_which_all_processes_were_stopped_does_not_count(self):
        """Ctrl-Z and fg: no worker is evicted, and the bits are those of an undisturbed run."""
        job = (*support.SMALL, "--quiet", "--json", "--steps", 150, "--sample-time", "1ms",
               "--lease", "1s", "--eval-every", 0)
        stop = 3.0  # seconds; three leases
        for workers in (0, 3):
            with self.subTest(workers=workers):
                expected = self.train(*job, "--workers", workers).result
                run = self.start_group(*job, "--workers", workers)
                run.wait_working()
                run.wait_steps(3)
                os.killpg(run.pid, signal.SIGSTOP)
                end = time.monotonic() + stop
                support.wait_until(lambda: time.monotonic() >= end, "its leases would be over")
                self.assertEqual(processes.state(run.pid), "T")
                os.killpg(run.pid, signal.SIGCONT)
                ended = run.wait()
                self.assertEqual(ended.code, support.DONE, ended)
                self.assertEqual((ended.result["evictions"], ended.result["respawns"]), (0, 0),
                                 ended)
                self.assertEqual(ended.result["params_hash"], expected["params_hash"], ended)
                self.assertEqual(ended.result["trace_hash"], expected["trace_hash"], ended)
                unaccounted = ended.result["wall_seconds"] - ended.result["seconds"]
                self.assertGreaterEqual(unaccounted, stop, ended)


if __name__ == "__main__":
    support.main()
