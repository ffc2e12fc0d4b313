#!/usr/bin/env python3
"""Workers on other machines: the same bits as on one, whoever comes, goes and comes back."""
import os
import pathlib
import signal
import socket

import support
from support import net, seats

JOB = (*support.SMALL, "--quiet", "--eval-every", 0)


class Bits(net.TestCase):
    def test_our_own_workers_compute_what_train_computes(self):
        for strategy in ("fmb", "local-sgd"):
            job = (*JOB, "--strategy", strategy, "--steps", 40)
            here = self.train(*job, "--workers", 2).result
            there = self.complete(*job).result
            for key in ("params_hash", "trace_hash", "samples", "engine"):
                self.assertEqual(there[key], here[key], f"{strategy}: {key}")
            self.assertEqual(there["world"], "net")

    def test_programs_get_the_same_parameters_over_memory_tcp_and_tls(self):
        options = ("--steps", 30, "--quiet")
        for words in (("batch=16",), ("batch=16", "installs=1"), ("batch=16", "update=1")):
            memory = support.Run((*options, "-n", 2), self.folder / words[-1],
                                 program=(seats.WORKER, *words))
            self.addCleanup(memory.close)
            wanted = memory.wait().result["params_hash"]
            for scheme in ("", "tls://"):
                ended = self.complete(*options, start=self.program, scheme=scheme, words=words)
                self.assertEqual(ended.result["params_hash"], wanted, (words, scheme))

    def test_vectors_larger_than_the_buffers_of_a_socket_arrive_whole(self):
        words = ("batch=16", "extra=3000000")
        hashes = {self.complete("--steps", 6, "--strategy", strategy, "--quiet",
                                start=self.program, scheme=scheme,
                                words=words).result["params_hash"]
                  for strategy, scheme in (("fmb", ""), ("fmb", "tls://"))}
        self.assertEqual(len(hashes), 1)
        self.complete("--steps", 12, "--strategy", "async", "--quiet", start=self.program,
                      words=words)


    def test_addresses_of_version_6_work_with_and_without_encryption(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        hashes = {self.complete(*JOB, "--steps", 20, listen="[::1]:0", scheme=scheme)
                  .result["params_hash"] for scheme in ("", "tls://")}
        self.assertEqual(len(hashes), 1)


class Elastic(net.TestCase):
    def present(self, hub, count):
        hub.wait_until(lambda: sum(row["state"] == "working" for row in hub.workers().values())
                       == count, f"{count} workers are there")

    def test_from_one_worker_to_eight_and_down_to_two(self):
        for strategy in ("fmb", "amb", "async", "ssp", "dbs"):
            with self.subTest(strategy=strategy):
                hub = self.hub(*JOB, "--workers", 1, "--strategy", strategy, "--seconds", "1h",
                               "--sample-time", "50us", "--record", "steps")
                crowd = [self.work(hub)]
                self.present(hub, 1)
                crowd += [self.work(hub) for _ in range(7)]
                self.present(hub, 8)
                hub.wait_steps(hub.steps() + 20)
                for process in crowd[:6]:
                    process.kill()
                self.present(hub, 2)
                steps = hub.steps()
                hub.wait_steps(steps + 20)
                hub.signal(signal.SIGTERM)
                ended = hub.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                for process in crowd[6:]:
                    self.assert_ends(process)
                self.assert_ledger(ended)

    def test_a_worker_that_is_told_to_stop_leaves_in_order(self):
        hub = self.hub(*JOB, "--workers", 2, "--seconds", "1h", "--sample-time", "100us")
        leaver, other = self.work(hub), self.work(hub)
        self.present(hub, 2)
        hub.wait_steps(5)
        leaver.send_signal(signal.SIGTERM)
        self.assertIn("the run continues", self.assert_ends(leaver, support.STOPPED))
        self.present(hub, 1)
        hub.wait_steps(hub.steps() + 10)
        hub.signal(signal.SIGTERM)
        ended = hub.wait()
        self.assertIn("anytime hub --resume", ended.err)
        self.assert_ends(other)
        self.assert_ledger(ended)

    def test_workers_that_leave_while_the_hub_sends_parameters_are_not_lost(self):
        """What they said last is read although nothing can be sent to them any more."""
        for scheme in ("", "tls://"):
            hub = self.hub(*support.SMALL, "--model", "mlp:2000", "--workers", 1, "--strategy",
                           "async", "--seconds", "1h", "--sample-time", "20us")
            other = self.work(hub)
            for _ in range(3):
                crowd = [self.work(hub, scheme=scheme) for _ in range(3)]
                self.present(hub, 4)
                hub.wait_steps(hub.steps() + 20)
                for process in crowd:
                    process.send_signal(signal.SIGTERM)
                for process in crowd:
                    self.assert_ends(process, support.STOPPED)
                self.present(hub, 1)
            hub.signal(signal.SIGTERM)
            ended = hub.wait()
            self.assert_ends(other)
            self.assert_ledger(ended)
            self.assertNotIn("lost its connection", ended.err)

    def test_a_run_holds_while_too_few_workers_are_there(self):
        hub = self.hub(*JOB, "--steps", 400, "--workers-min", 2, "--sample-time", "200us",
                       "--workers", 2)
        crowd = [self.work(hub), self.work(hub)]
        hub.wait_steps(5)
        for _ in range(2):
            crowd.pop(0).kill()
            self.present(hub, 1)
            crowd.append(self.work(hub))
            self.present(hub, 2)
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assertEqual(ended.result["steps"], 400)
        self.assert_ledger(ended)

    def test_workers_come_back_to_a_hub_that_was_killed_and_resumed(self):
        job = (*JOB, "--steps", 400)
        calm = self.train(*job, "--workers", 2).result
        hub = self.hub(*job, "--workers", 2, "--checkpoint-every", 10, "--sample-time", "200us")
        address = hub.address()
        crowd = [self.work(hub), self.work(hub)]
        for steps in (30, 70):
            hub.wait_steps(steps)
            hub.process.kill()
            hub.wait()
            hub = self.hub(folder=hub.folder, listen=address)
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assertEqual(ended.result["params_hash"], calm["params_hash"])
        self.assert_ledger(ended)

    def test_workers_come_back_to_a_hub_that_expects_more_of_them(self):
        hub = self.hub(*JOB, "--steps", 300, "--workers", 2, "--checkpoint-every", 10,
                       "--sample-time", "200us")
        address = hub.address()
        crowd = [self.work(hub), self.work(hub)]
        hub.wait_steps(30)
        hub.process.kill()
        hub.wait()
        hub = self.hub("--workers", 3, folder=hub.folder, listen=address)
        crowd.append(self.work(hub))
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        said = [self.assert_ends(process) for process in crowd]
        self.assertIn("joining it again", said[0])
        self.assertEqual(len([row for row in ended.result["worker"] if row["used"]]), 3)
        self.assert_ledger(ended)

    def test_only_the_hub_has_its_port(self):
        """Its children may need long to end after it was killed, and another hub wants the port."""
        hub = self.hub(*support.SMALL, "--quiet", "--workers", 1, "--seconds", "1h")
        worker = self.work(hub)
        self.present(hub, 1)  # a run may end without those that still load their data
        child = hub.evaluator()
        port = int(hub.address().rsplit(":", 1)[1])
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()]
        inode = next(row[9] for row in rows[1:]
                     if row[3] == "0A" and int(row[1].split(":")[1], 16) == port)  # it listens

        def has(pid):
            links = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
            return f"socket:[{inode}]" in [os.readlink(link) for link in links
                                           if os.path.lexists(link)]
        self.assertTrue(has(hub.pid))
        self.assertFalse(has(child))
        hub.signal(signal.SIGTERM)
        hub.wait()
        self.assert_ends(worker)

    def test_programs_come_back_to_a_hub_that_was_killed_and_resumed(self):
        job = ("--steps", 400, "--quiet")
        calm = self.complete(*job, start=self.program).result
        hub = self.hub(*job, "--workers", 2, "--checkpoint-every", 10, "--sample-time", "500us")
        address = hub.address()
        crowd = [self.program(hub, "slice=50"), self.program(hub, scheme="tls://")]
        hub.wait_steps(40)
        hub.process.kill()
        hub.wait()
        hub = self.hub(folder=hub.folder, listen=address)
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assertEqual(ended.result["params_hash"], calm["params_hash"])

    def test_a_frozen_worker_is_given_up_and_comes_back(self):
        hub = self.hub(*JOB, "--workers", 2, "--lease", "1s", "--seconds", "1h",
                       "--sample-time", "100us", "--record", "steps")
        frozen, other = self.work(hub), self.work(hub)
        self.present(hub, 2)
        hub.wait_steps(5)
        os.kill(frozen.pid, signal.SIGSTOP)
        self.present(hub, 1)
        os.kill(frozen.pid, signal.SIGCONT)
        self.present(hub, 2)
        hub.signal(signal.SIGTERM)
        self.assertEqual(hub.wait().code, support.STOPPED)
        for process in (frozen, other):
            self.assert_ends(process)


class Told(net.TestCase):
    """Workers that are told to stop while they wait for a hub, or twice at once."""

    def seek(self, address):
        token = self.folder / "token"
        token.write_text("0" * 32 + "\n")
        token.chmod(0o600)
        return self.spawn((support.ANYTIME, "work", address, "--token", token), {})

    def assert_stops(self, worker, number=signal.SIGTERM):
        worker.send_signal(number)
        said = self.assert_ends(worker, support.STOPPED)
        self.assertIn("stopped by a signal while waiting for the hub", said)

    def wait_said(self, worker, words):
        support.wait_until(lambda: words in worker.err_path.read_text(), f"it says: {words}")

    def listen(self, backlog):
        server = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.addCleanup(server.close)
        return server, "127.0.0.1:%d" % server.getsockname()[1]

    def test_while_there_is_no_hub(self):
        server, address = self.listen(1)
        server.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                worker = self.seek(address)
                self.wait_said(worker, "trying again")
                self.assert_stops(worker, number)

    def test_while_the_hub_does_not_answer(self):
        server, address = self.listen(1)
        worker = self.seek(address)
        self.addCleanup(server.accept()[0].close)
        self.assert_stops(worker)

    def test_while_nobody_takes_the_connection(self):
        _, address = self.listen(0)
        port = int(address.rsplit(":", 1)[1])

        def begun():  # state 2: the connection was asked for
            rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
            return sum(row.split()[3] == "02" and int(row.split()[2].split(":")[1], 16) == port
                       for row in rows)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            self.addCleanup(filler.close)
        support.wait_until(begun, "the queue is full")
        before = begun()
        worker = self.seek(address)
        support.wait_until(lambda: begun() > before, "the worker tries to connect")
        self.assert_stops(worker)

    def test_while_its_hub_is_gone(self):
        hub = self.hub(*JOB, "--workers", 1, "--seconds", "1h", "--sample-time", "100us")
        worker = self.work(hub)
        hub.wait_steps(5)
        hub.process.kill()
        hub.wait()
        self.wait_said(worker, "trying again")
        self.assert_stops(worker)

    def test_twice_at_once_is_one_request(self):
        """As `timeout` does, which signals the process and its group."""
        hub = self.hub(*JOB, "--workers", 1, "--seconds", "1h", "--sample-time", "1ms")
        for _ in range(10):
            steps = hub.steps()
            worker = self.work(hub)
            hub.wait_steps(steps + 2)
            worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGTERM)
            self.assertIn("the run continues", self.assert_ends(worker, support.STOPPED))
        hub.signal(signal.SIGTERM)
        hub.wait()


if __name__ == "__main__":
    support.main()
