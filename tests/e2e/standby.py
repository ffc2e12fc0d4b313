#!/usr/bin/env python3
"""A hub that dies is replaced by one that stands by: the workers find it, and the bits stay."""
import signal

import support
from support import net, ports, processes

JOB = (*support.SMALL, "--quiet", "--eval-every", 0, "--workers", 2)


def free_address():
    return f"127.0.0.1:{ports.free_ports(1)[0]}"


class Standby(net.TestCase):
    def stand_by(self, hub, listen, *arguments):
        """Another hub for the same run, which waits."""
        other = self.spawn((support.ANYTIME, "hub", "--resume", hub.folder, "--standby", "--listen",
                            listen, "--hub-file", hub.hub_file, *arguments),
                           {processes.MARK: hub.mark})
        support.wait_until(lambda: "standing by" in other.err_path.read_text(), "it stands by")
        self.assertIn(str(hub.pid), other.err_path.read_text())
        return other

    def assert_undisturbed(self, hub, calm):
        result = support.Ended((), 0, "", "", hub.folder).result
        self.assertEqual(result["params_hash"], calm["params_hash"])
        self.assertEqual(result["steps"], calm["steps"])

    def test_two_hubs_die_and_the_third_completes_the_run(self):
        job = (*JOB, "--steps", 400)
        calm = self.train(*job).result
        hub = self.hub(*job, "--checkpoint-every", 10, "--sample-time", "200us")
        second, third = free_address(), free_address()
        everywhere = (hub.address(), second, third)
        other = self.stand_by(hub, second)
        crowd = [self.spawn((support.ANYTIME, "work", *everywhere, "--token", hub.token),
                            {processes.MARK: hub.mark}) for _ in range(2)]
        hub.wait_steps(30)
        hub.process.kill()
        hub.wait()
        support.wait_until(lambda: hub.steps() >= 60, "the second hub has taken over")
        other.kill()
        other.wait()
        self.assert_ends(self.spawn((support.ANYTIME, "hub", "--resume", hub.folder, "--standby",
                                     "--listen", third), {processes.MARK: hub.mark}))
        for process in crowd:
            self.assert_ends(process)
        self.assert_undisturbed(hub, calm)

    def test_programs_find_the_next_hub_through_a_file(self):
        job = ("--steps", 300, "--quiet")
        calm = self.complete(*job, start=self.program).result
        hub = self.hub(*job, "--workers", 2, "--checkpoint-every", 10, "--sample-time", "500us")
        hub.address()
        where = {processes.MARK: hub.mark, "ANYTIME_HUB": f"file:{hub.hub_file}",
                 "ANYTIME_TOKEN_FILE": str(hub.token)}
        crowd = [self.spawn((net.WORKER,), where) for _ in range(2)]
        hub.wait_steps(20)
        other = self.stand_by(hub, "127.0.0.1:0")
        hub.process.kill()
        hub.wait()
        self.assert_ends(other)
        for process in crowd:
            self.assert_ends(process)
        self.assert_undisturbed(hub, calm)

    def test_a_run_that_has_ended_needs_no_other_hub(self):
        hub = self.hub(*JOB, "--seconds", "1h", "--sample-time", "100us")
        crowd = [self.work(hub), self.work(hub)]
        hub.wait_steps(5)
        other = self.stand_by(hub, "127.0.0.1:0")
        hub.signal(signal.SIGTERM)
        self.assertEqual(hub.wait().code, support.STOPPED)
        self.assertIn("nothing to take over", self.assert_ends(other))
        for process in crowd:
            self.assert_ends(process)

    def test_one_that_is_told_to_stop_ends_and_the_run_goes_on(self):
        hub = self.hub(*JOB, "--seconds", "1h", "--sample-time", "100us")
        crowd = [self.work(hub), self.work(hub)]
        hub.wait_steps(5)
        for number in (signal.SIGINT, signal.SIGTERM):
            other = self.stand_by(hub, "127.0.0.1:0")
            other.send_signal(number)
            self.assertIn("stopped by a signal", self.assert_ends(other, support.STOPPED))
        hub.wait_steps(hub.steps() + 5)
        hub.signal(signal.SIGTERM)
        self.assertEqual(hub.wait().code, support.STOPPED)
        for process in crowd:
            self.assert_ends(process)

    def test_what_cannot_work_is_refused(self):
        alone = self.anytime("hub", "--standby", code=support.USAGE)
        self.assert_complaint(alone, "--resume")
        nowhere = self.anytime("hub", "--standby", "--resume", self.folder / "none",
                               code=support.MISSING)
        self.assert_complaint(nowhere, "no such folder")
        missing = self.anytime("work", "--token", "t", code=support.USAGE)
        self.assert_complaint(missing, "no hub was given")


if __name__ == "__main__":
    support.main()
