#!/usr/bin/env python3
"""Who may not join: no token, another one, an old proof, garbage, half-open connections, lies about
sizes. They are refused, and the run goes on in bounded memory."""
import hashlib
import json
import mmap
import os
import pathlib
import random
import signal
import socket
import ssl
import resource
import struct
import subprocess
import threading
import types

import support
from support import net

JOB = (*support.SMALL, "--seconds", "1h", "--sample-time", "50us", "--record", "steps")

# Kinds of messages and sizes as in src/world/seat/seat_wire.h.
PROTOCOL, NONCE, DIGEST = 5, 16, 32
CHALLENGE, PROOF, HELLO, ASK_PARAMS, PARAMS, WELCOME, REFUSED, PUT = 0, 1, 2, 3, 4, 5, 6, 7
GREETING, ASK_JOB, JOB_IS, OWN_HELLO, REPORT, WORD = 12, 13, 14, 15, 20, 21
TOKEN = "0123456789abcdef0123456789abcdef"


def proof(who, nonce, token):
    return hashlib.sha256(who + nonce + token.encode() + bytes(65 - len(token))).digest()


def head(kind, size):
    return b"ANTS" + struct.pack("<IQ", kind, size)


def message(kind, payload=b""):
    return head(kind, len(payload)) + payload


class Stranger:
    """Speaks the protocol by hand."""

    def __init__(self, hub):
        host, port = hub.address().rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=support.BOUND)

    @classmethod
    def accept(cls, listener):
        """The other end: a hub that knows the token, and has heard what a worker asks for."""
        self = cls.__new__(cls)
        self.socket = listener.accept()[0]
        self.socket.settimeout(support.BOUND)
        nonce = self.hear()[1][4:4 + NONCE]
        self.send(message(CHALLENGE, struct.pack("<I", PROTOCOL) + bytes(NONCE)
                          + proof(b"H", nonce, TOKEN)))
        assert self.hear()[0] == PROOF
        return self

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def hear(self):
        start = self.exactly(16)
        kind, size = struct.unpack("<IQ", start[4:])
        return kind, self.exactly(size)

    def greet(self):
        """The random number of the hub."""
        self.send(message(GREETING, struct.pack("<I", PROTOCOL) + bytes(NONCE + DIGEST)))
        kind, challenge = self.hear()
        assert kind == CHALLENGE, kind
        return challenge[4:4 + NONCE]

    def prove(self, token, nonce):
        self.send(message(PROOF, proof(b"S", nonce, token)))

    def is_closed(self):
        """Reads to the end; the hub must close the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        self.socket.close()
        return True


class Rogue(net.TestCase):
    """A server that pretends to be the hub."""

    def token(self):
        path = self.folder / "token"
        path.write_text(TOKEN + "\n")
        path.chmod(0o600)
        return path

    def serve(self, context):
        """Accepts one connection; the address, and what happened to it when it is over."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(support.BOUND)
        happened = []

        def accept():
            connection, _ = listener.accept()
            with listener, connection:
                try:
                    with context.wrap_socket(connection, server_side=True) as encrypted:
                        happened.append(encrypted.recv(1))
                except (ssl.SSLError, ConnectionError) as error:
                    happened.append(error)
        thread = threading.Thread(target=accept)
        thread.start()
        self.addCleanup(thread.join)
        return f"tls://127.0.0.1:{listener.getsockname()[1]}", thread, happened

    def test_a_server_with_a_certificate_and_without_the_token_is_refused(self):
        key, certificate = self.folder / "key", self.folder / "certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                        "-out", certificate, "-subj", "/CN=127.0.0.1"], check=True,
                       capture_output=True, timeout=support.BOUND)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        address, thread, happened = self.serve(context)
        ended = self.anytime("work", address, "--token", self.token(), code=support.USAGE)
        self.assert_complaint(ended, "token")
        thread.join(support.BOUND)
        self.assertIsInstance(happened[0], Exception, "it was talked to")

    JOB = {"model": "softmax", "data": "synthetic:300,4,2", "workers": 2, "strategy": "async"}
    WELCOME = {"rank": 2, "workers": 2, "workers_max": 3, "seed": 1, "incarnation": 1,
               "sequence": 0, "slots": 2, "cut_after": False, "micro_batch": 2, "sample_time": 0,
               "round_ns": 0, "rounds": 1, "spin": 0, "floats": 16, "base": 0, "drawn": 0,
               "straggler": "none", "scale": "1", "trace_scale": 1.0, "redrawn": 0,
               "compress": "none", "rules": ["any:1", "free", "finish", "use"]}

    def test_a_place_that_the_run_lacks_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(support.BOUND)
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            worker = self.spawn((support.ANYTIME, "work", address, "--token", self.token()), {})
            first = Stranger.accept(listener)
            self.assertEqual(first.hear()[0], ASK_JOB)
            first.send(message(JOB_IS, json.dumps(self.JOB).encode()))
            self.assertTrue(first.is_closed())
            second = Stranger.accept(listener)
            self.assertEqual(second.hear()[0], OWN_HELLO)
            second.send(message(WELCOME, json.dumps(self.WELCOME).encode()))
            self.assertTrue(second.is_closed())
        self.assertIn("a place that the run lacks", self.assert_ends(worker, support.FORMAT))


class TestCase(net.TestCase):
    """A run with one worker, which nobody shall disturb."""

    def setUp(self):
        super().setUp()
        self.training = self.hub(*JOB, "--workers", 1)
        self.worker = self.work(self.training)
        self.training.wait_steps(3)

    def assert_goes_on(self, respawns=0):
        """The run makes steps with the worker that it has, and ends in order."""
        self.training.wait_steps(self.training.steps() + 20)
        self.training.signal(signal.SIGTERM)
        ended = self.training.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ends(self.worker)
        self.assertEqual(ended.result["respawns"], respawns, ended)
        self.assert_ledger(ended)

    def resident(self):
        """Memory of the hub in kB."""
        rows = pathlib.Path(f"/proc/{self.training.pid}/status").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))

    def token(self):
        return self.training.token.read_text().strip()


class Strangers(TestCase):
    def test_wrong_and_missing_tokens_are_refused_at_once(self):
        wrong = self.folder / "wrong"
        wrong.write_text("0123456789abcdef0123456789abcdef\n")
        for scheme in ("", "tls://"):
            for start in (self.work, self.program):
                worker = start(self.training, scheme=scheme, token=wrong)
                said = self.assert_ends(worker, support.USAGE)
                self.assertIn("token", said)
        said = self.assert_ends(self.work(self.training, token=self.folder / "none"), support.USAGE)
        self.assertIn("token", said)
        self.assert_goes_on()

    def test_a_token_that_others_can_read_gives_a_warning(self):
        exposed = self.folder / "exposed"
        exposed.write_text(self.token() + "\n")
        exposed.chmod(0o644)
        warning = f"other users of this machine can read the token in {exposed}"
        late = self.work(self.training, token=exposed)
        support.wait_until(lambda: warning in late.err_path.read_text(), "the worker warns")
        late.kill()
        link = self.anytime("link", self.training.address(), "--token", exposed, "--seconds",
                            "10ms")
        self.assertIn(warning, link.err)
        self.assertNotIn("can read the token", self.training.err())
        self.assert_goes_on()
        self.training.token.chmod(0o644)
        again = self.hub(folder=self.training.folder)
        again.wait_said(f"can read the token in {self.training.token}")

    def test_a_proof_cannot_be_replayed(self):
        first, second = Stranger(self.training), Stranger(self.training)
        old = first.greet()
        second.greet()
        second.prove(self.token(), old)
        kind, why = second.hear()
        self.assertEqual(kind, REFUSED)
        self.assertIn(b"token", why)
        self.assertTrue(second.is_closed())
        first.socket.close()
        self.training.wait_said("refused 127.0.0.1:")
        self.assert_goes_on()

    def test_another_version_is_refused_with_both_numbers(self):
        for protocol in (0, PROTOCOL - 1, PROTOCOL + 1, 2**32 - 1):
            stranger = Stranger(self.training)
            stranger.send(message(GREETING, struct.pack("<I", protocol) + bytes(NONCE + DIGEST)))
            kind, why = stranger.hear()
            self.assertEqual(kind, REFUSED)
            self.assertIn(f"protocol {protocol}, the hub {PROTOCOL}".encode(), why)
            self.assertTrue(stranger.is_closed())
        self.assert_goes_on()

    def test_garbage_is_refused(self):
        chance = random.Random(1)
        for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x16\x03\x01\x00\x05hello" * 9,
                     chance.randbytes(4096), message(HELLO, b"{}"), message(REPORT, bytes(200))):
            stranger = Stranger(self.training)
            try:
                stranger.send(data)
            except ConnectionError:
                pass
            self.assertTrue(stranger.is_closed())
        self.assert_goes_on()

    def test_lies_about_sizes_reserve_no_memory(self):
        before = self.resident()
        for size in (4097, 1 << 40, (1 << 64) - 1):
            stranger = Stranger(self.training)
            stranger.send(head(GREETING, size) + bytes(100))
            self.assertTrue(stranger.is_closed())
        for size in ((17 << 20), 1 << 40, (1 << 64) - 1):  # one that knows the token
            stranger = Stranger(self.training)
            stranger.prove(self.token(), stranger.greet())
            stranger.send(head(OWN_HELLO, size) + bytes(100))
            self.assertTrue(stranger.is_closed())
        self.assertLess(self.resident() - before, 64 << 10, "kB")
        self.assert_goes_on()

    def test_ten_thousand_half_open_connections_do_not_keep_others_out(self):
        """They come from another address, and go on coming while a worker joins."""
        count, most = 10_000, resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(count + 1000, most[0]),
                                                    max(count + 1000, most[1])))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, most)
        host, port = self.training.address().rsplit(":", 1)
        before, crowd, over = self.resident(), [], threading.Event()

        def flood():
            while len(crowd) < count or not over.is_set():
                stranger = socket.socket()
                stranger.bind(("127.0.0.2", 0))
                stranger.settimeout(support.BOUND)
                stranger.connect((host, int(port)))
                crowd.append(stranger)
                if len(crowd) > count:
                    crowd.pop(0).close()
        thread = threading.Thread(target=flood)
        thread.start()
        late = self.work(self.training)
        rows = self.training.workers
        self.training.wait_until(lambda: rows().get(2, {}).get("state") == "working",
                                 "a worker joins beside them")
        over.set()
        thread.join()
        self.assertGreaterEqual(len(crowd), count)
        support.wait_until(lambda: len(os.listdir(f"/proc/{self.training.pid}/fd")) < 60,
                           "the hub has few descriptors")
        self.assertLess(self.resident() - before, 16 << 10, "kB")
        self.assertEqual(crowd[-1].recv(1), b"", "the newest one waits in vain as well")
        for stranger in crowd:
            stranger.close()
        late.kill()
        self.assert_goes_on()


# Of a report, as in src/message/message.c: offset and format.
FIELDS = {"incarnation": (12, "<I"), "slot": (16, "<I"), "sequence": (20, "<Q"),
          "round": (28, "<Q"), "version": (36, "<Q"), "samples": (44, "<I"),
          "loss": (56, "<d"), "compute": (64, "<q"), "overshoot": (80, "<q"), "drawn": (112, "<Q"),
          "floats": (120, "<Q")}


class Relay:
    """Stands between a worker and its hub, and changes what the worker says."""

    def __init__(self, hub, change):
        self.hub, self.change = hub, change
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                worker, _ = self.listener.accept()
            except OSError:
                return  # closed
            try:
                there = Stranger(self.hub).socket
            except OSError:
                worker.close()  # as the hub has
                continue
            self.sockets += [worker, there]
            for target in (lambda w=worker, t=there: self.lie(w, t),
                           lambda w=worker, t=there: self.pass_on(t, w)):
                threading.Thread(target=target, daemon=True).start()

    @staticmethod
    def pass_on(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def lie(self, source, target):
        speaker = Stranger.__new__(Stranger)
        speaker.socket = source
        try:
            while True:
                kind, payload = speaker.hear()
                target.sendall(self.change(kind, payload))
        except (OSError, EOFError):
            self.pass_on(source, target)

    def refuse(self):
        """Nobody can connect from now on."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def close(self):
        for each in self.sockets:
            each.close()


class Liars(TestCase):
    """Workers that know the token, and send nonsense once they have a seat."""

    def behind(self, relay):
        """The hub, as seen through a relay."""
        address = "127.0.0.1:%d" % relay.listener.getsockname()[1]
        return types.SimpleNamespace(address=lambda: address, token=self.training.token,
                                     mark=self.training.mark)

    def lie(self, change):
        """A worker whose messages are changed from its second report on. It is disconnected, and
        what the hub says about it is returned."""
        reports, before = [], len(self.losses())

        def later(kind, payload):
            reports.append(kind == REPORT)
            if sum(reports) < 2:
                return message(kind, payload)
            if sum(reports) == 2:
                relay.refuse()
            return change(kind, payload)
        relay = Relay(self.training, later)
        self.addCleanup(relay.close)
        self.assert_ends(self.work(self.behind(relay), "--reconnect", "1ms"), support.MISSING)
        relay.close()
        self.training.wait_until(lambda: len(self.losses()) > before, "it is given up")
        return self.losses()[before:]

    def change_field(self, name, value):
        at, form = FIELDS[name]

        def change(kind, payload):
            if kind == REPORT:
                payload = bytearray(payload)
                struct.pack_into(form, payload, at, value)
            return message(kind, bytes(payload))
        return change

    def losses(self):
        """Why it was given up. The eviction that follows a bad report may be said later."""
        return [line for line in self.training.err().splitlines()
                if line.startswith("worker 2 ") and "evicted after a bad report" not in line]

    def test_lies_in_reports_evict_only_the_liar(self):
        lies = [("incarnation", 7), ("slot", 2), ("slot", 2**32 - 1), ("sequence", 0),
                ("sequence", 2**63), ("round", 2**63), ("version", 10**9), ("version", 2**64 - 1),
                ("samples", 0), ("samples", 33), ("samples", 2**32 - 1), ("compute", -1),
                ("compute", 2**62), ("overshoot", -2**63), ("drawn", 0), ("drawn", 2**63),
                ("floats", 0), ("floats", 2**61)]
        for name, value in lies:
            with self.subTest(lie=(name, value)):
                said = self.lie(self.change_field(name, value))
                self.assertRegex(said[0], "worker 2 (sent a bad report|was disconnected): .")
        self.assert_goes_on(respawns=len(lies) - 1)

    def test_lies_about_kinds_and_sizes_evict_only_the_liar(self):
        lies = [lambda kind, payload: head(kind, len(payload) - 4) + payload,
                lambda kind, payload: head(kind, len(payload) + 4) + payload * 2,
                lambda kind, payload: head(kind, 2**64 - 1) + payload,
                lambda kind, payload: message(99, payload),
                lambda kind, payload: message(HELLO, b"{}"),
                lambda kind, payload: message(WORD, payload[:8]),
                lambda kind, payload: message(WORD, b"\xff" * 40)]
        for lie in lies:
            said = self.lie(lie)
            self.assertRegex(said[0], "worker 2 was disconnected: .")
        self.assert_goes_on(respawns=len(lies) - 1)

    def test_losses_that_are_no_numbers_are_refused_unless_others_have_them_too(self):
        for value in (float("nan"), float("inf"), float("-inf")):
            said = self.lie(self.change_field("loss", value))
            self.assertIn("its loss is not a number", said[0])
        relays = [Relay(self.training, self.change_field("loss", float("nan"))) for _ in range(2)]
        crowd = [self.work(self.behind(relay), "--reconnect", "1s") for relay in relays]
        self.worker.kill()
        ended = self.training.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertIn("training diverged", ended.err)
        for process, relay in zip(crowd, relays):
            process.wait(support.BOUND)
            relay.close()


class Chatter(Relay):
    """Sends words without end after the first report of its worker."""

    def __init__(self, hub):
        self.begun, self.over = threading.Event(), threading.Event()
        super().__init__(hub, message)

    def lie(self, source, target):
        speaker = Stranger.__new__(Stranger)
        speaker.socket = source
        try:
            kind = None
            while kind != REPORT:
                kind, payload = speaker.hear()
                target.sendall(message(kind, payload))
            while not self.over.is_set():
                target.sendall(message(WORD, bytes(40)) * 1000)
                self.begun.set()
        except (OSError, EOFError):
            pass  # the hub has ended


class Floods(TestCase):
    """Those who know the token, and never stop sending."""

    def test_who_asks_without_reading_the_answers_is_disconnected(self):
        before = self.resident()
        stranger = Stranger(self.training)
        stranger.prove(self.token(), stranger.greet())
        with self.assertRaises(ConnectionError):
            while True:
                stranger.send(message(ASK_JOB) * 1000)
        stranger.socket.close()
        self.training.wait_said("refused 127.0.0.1:")
        self.assertLess(self.resident() - before, 16 << 10, "kB")
        self.assert_goes_on()

    def test_a_worker_that_talks_without_end_does_not_keep_the_hub_from_stopping(self):
        relay = Chatter(self.training)
        self.addCleanup(relay.close)
        self.addCleanup(relay.over.set)
        address = "127.0.0.1:%d" % relay.listener.getsockname()[1]
        self.work(types.SimpleNamespace(address=lambda: address, token=self.training.token,
                                        mark=self.training.mark), "--reconnect", "1ms")
        self.assertTrue(relay.begun.wait(support.BOUND))
        self.training.signal(signal.SIGTERM)
        ended = self.training.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)


class Specs(net.TestCase):
    """Programs that know the token, and say nonsense about what they train."""
    HELLO = {"model": "line", "optimizer": "sgd", "at_workers": False, "batch": 16, "samples": 4096,
             "tensors": [["w", 0, [3, 4]]], "rank": -1,
             "groups": [[0.1, 0.0, 0.0, 0.9, 0.999, 1e-8, 0.99, 0.0, 0.0, 0]]}

    def greet(self, hub, text):
        stranger = Stranger(hub)
        stranger.prove(hub.token.read_text().strip(), stranger.greet())
        stranger.send(message(HELLO, text))
        return stranger

    def test_nonsense_is_refused_with_a_sentence(self):
        hub = self.hub("--steps", 30, "--workers", 2, "--quiet")
        group = self.HELLO["groups"][0]
        lies = [{"tensors": [["w", 0, [-1]]]}, {"tensors": [["w", 0, [2**62, 2**62]]]},
                {"tensors": [["w", 0, [1] * 9]]}, {"tensors": []}, {"tensors": [["w", 5, [3]]]},
                {"tensors": [["w", 0, [3]]] * 2}, {"tensors": {"w": 1}}, {"tensors": [[1, 2, 3]]},
                {"batch": -1}, {"batch": 2**40}, {"samples": -1}, {"optimizer": "none"},
                {"groups": [group] * 17}, {"groups": [[-1.0, *group[1:]]]}, {"rank": "first"},
                {"groups": [[1e999, *group[1:]]]}, {"model": 7}]
        texts = [json.dumps({**self.HELLO, **lie}).encode() for lie in lies]
        for text in (*texts, b"", b"{", b"[" * 100_000, b"\xff" * 64, b'"' + b"x" * (1 << 20)):
            with self.subTest(text=text[:80]):
                stranger = self.greet(hub, text)
                kind, why = stranger.hear()
                stranger.socket.close()
                self.assertEqual(kind, REFUSED)
                self.assertTrue(why)
        self.assert_trains(hub)

    def test_tensors_that_would_fill_the_memory_of_the_hub_are_refused(self):
        hub = self.hub("--steps", 30, "--workers", 1, "--quiet")
        liar = self.greet(hub, json.dumps(self.HELLO).encode())
        self.assertEqual(liar.hear()[0], ASK_PARAMS)
        liar.send(message(PARAMS, bytes(4 * 12)))
        self.assertEqual(liar.hear()[0], WELCOME)
        with self.assertRaises(ConnectionError):
            for i in range(100):
                liar.send(message(PUT, b"%d" % i + bytes(200 - len(b"%d" % i)) + bytes(15 << 20)))
        liar.socket.close()
        hub.wait_said("more tensors than the hub can keep")
        hub.signal(signal.SIGTERM)
        self.assertEqual(hub.wait().code, support.STOPPED)

    def assert_trains(self, hub):
        crowd = [self.program(hub) for _ in range(2)]
        ended = hub.wait()
        self.assertEqual(ended.code, support.DONE, ended)
        for process in crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)

    def test_the_first_one_cannot_reserve_memory_or_keep_others_out(self):
        hub = self.hub("--steps", 30, "--workers", 2, "--quiet")
        huge = {**self.HELLO, "tensors": [["w", 0, [2**31, 2**20]]]}
        liar = self.greet(hub, json.dumps(huge).encode())
        self.assertEqual(liar.hear()[0], ASK_PARAMS)
        liar.send(head(PARAMS, 2**53))
        self.assertEqual(liar.hear()[0], REFUSED)
        liar.socket.close()
        gone = self.greet(hub, json.dumps({**self.HELLO, "rank": 2**62}).encode())
        self.assertEqual(gone.hear()[0], ASK_PARAMS)
        gone.socket.close()
        self.assert_trains(hub)

    def test_a_hub_whose_only_visitor_has_left_does_not_wait_for_ever(self):
        hub = self.hub("--steps", 30, "--workers", 2, "--quiet", "--join-timeout", "5s")
        visitor = self.greet(hub, json.dumps(self.HELLO).encode())
        self.assertEqual(visitor.hear()[0], ASK_PARAMS)
        visitor.socket.close()
        ended = hub.wait()
        self.assertEqual(ended.code, support.FAILED, ended)
        self.assertIn("no worker joined", ended.err)


class Neighbor(Stranger):
    """A program on the machine of its hub that knows the token, and what it shares with the hub."""
    # As in src/world/seat/seat_memory.h and src/step/event.h.
    DRAWN, SENT, MAIL = 0, 8, 32
    SAMPLES, INCARNATION, SEQUENCE = 16, 88, 96
    FLAGS = {"abandoned": 20, "capped": 21, "overslept": 22, "again": 104}

    def __init__(self, hub):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(support.BOUND)
        folder = os.open(hub.folder, os.O_PATH)
        self.socket.connect(f"/proc/self/fd/{folder}/hub")  # the address of a socket is short
        os.close(folder)
        self.prove(hub.token.read_text().strip(), self.hear()[1][4:4 + NONCE])

    def take_seat(self, spec):
        self.send(message(HELLO, json.dumps(spec).encode()))
        start, files, _, _ = socket.recv_fds(self.socket, 16, 3)
        kind, size = struct.unpack("<IQ", start[4:])
        self.welcome = json.loads(self.exactly(size))
        assert kind == WELCOME, kind
        self.memory = mmap.mmap(files[2], 4096)
        for file in files:
            os.close(file)

    def write(self, form, at, value):
        struct.pack_into(form, self.memory, at, value)

    def report(self, flag, value):
        self.write("<I", self.MAIL + self.SAMPLES, 1)
        self.write("<I", self.MAIL + self.INCARNATION, self.welcome["incarnation"])
        self.write("<Q", self.MAIL + self.SEQUENCE, self.welcome["sequence"] + 1)
        self.write("<B", self.MAIL + self.FLAGS[flag], value)
        self.write("<Q", self.DRAWN, self.welcome["drawn"] + 1)
        self.write("<Q", self.SENT, 1)


class Neighbors(net.TestCase):
    # What tests/programs/seat_worker.c trains.
    SPEC = {**Specs.HELLO, "tensors": [["layer.weight", 0, [1, 8]], ["layer.bias", 0, []]]}

    def test_flags_that_are_neither_true_nor_false_evict_only_the_liar(self):
        hub = self.hub("--workers", 1, "--seconds", "1h", "--strategy", "async")
        worker = self.program(hub)
        hub.wait_steps(3)
        for count, flag in enumerate(Neighbor.FLAGS, 1):
            with self.subTest(flag=flag):
                liar = Neighbor(hub)
                liar.take_seat(self.SPEC)
                liar.report(flag, 2 + 63 * count)
                self.assertTrue(liar.is_closed())
                hub.wait_until(lambda c=count: hub.err().count("numbers are out of range") == c,
                               "it is given up")
        hub.wait_steps(hub.steps() + 20)
        hub.signal(signal.SIGTERM)
        ended = hub.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ends(worker)
        self.assert_ledger(ended)


if __name__ == "__main__":
    support.main()
