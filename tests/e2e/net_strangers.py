#!/usr/bin/env python3
"""Who may not join: no token, another one, an old proof, garbage, half-open connections, lies about
sizes. They are refused, and the run goes on in bounded memory."""
import hashlib
import os
import pathlib
import random
import signal
import socket
import ssl
import struct
import subprocess
import threading

import support
from support import net

JOB = (*support.SMALL, "--seconds", "120s", "--sample-time", "50us", "--record", "steps")

# Kinds of messages and sizes as in src/world/seat/seat_wire.h.
PROTOCOL, NONCE, DIGEST = 4, 16, 32
CHALLENGE, PROOF, HELLO, REFUSED, GREETING, OWN_HELLO, REPORT = 0, 1, 2, 6, 12, 15, 20


def head(kind, size):
    return b"ANTS" + struct.pack("<IQ", kind, size)


def message(kind, payload=b""):
    return head(kind, len(payload)) + payload


class Stranger:
    """Speaks the protocol by hand."""

    def __init__(self, hub):
        host, port = hub.address().rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=support.BOUND)

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
        text = token.encode()
        self.send(message(PROOF, hashlib.sha256(b"S" + nonce + text
                                                + bytes(65 - len(text))).digest()))

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
        token = self.folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        address, thread, happened = self.serve(context)
        ended = self.anytime("work", address, "--token", token, code=support.USAGE)
        self.assert_complaint(ended, "token")
        thread.join(support.BOUND)
        self.assertIsInstance(happened[0], Exception, "it was talked to")


class Strangers(net.TestCase):
    def setUp(self):
        super().setUp()
        self.training = self.hub(*JOB, "--workers", 1)
        self.worker = self.work(self.training)
        self.training.wait_steps(3)

    def assert_goes_on(self):
        """The run makes steps with the worker that it has, and ends in order."""
        self.training.wait_steps(self.training.steps() + 20)
        self.training.signal(signal.SIGTERM)
        ended = self.training.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ends(self.worker)
        self.assertEqual(ended.result["respawns"], 0, ended)

    def token(self):
        return self.training.token.read_text().strip()

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
        def resident():
            rows = pathlib.Path(f"/proc/{self.training.pid}/status").read_text().splitlines()
            return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))
        before = resident()
        for size in (4097, 1 << 40, (1 << 64) - 1):
            stranger = Stranger(self.training)
            stranger.send(head(GREETING, size) + bytes(100))
            self.assertTrue(stranger.is_closed())
        for size in ((17 << 20), 1 << 40, (1 << 64) - 1):  # one that knows the token
            stranger = Stranger(self.training)
            stranger.prove(self.token(), stranger.greet())
            stranger.send(head(OWN_HELLO, size) + bytes(100))
            self.assertTrue(stranger.is_closed())
        self.assertLess(resident() - before, 64 << 10, "kB")
        self.assert_goes_on()

    def test_half_open_connections_do_not_keep_others_out(self):
        crowd = [Stranger(self.training) for _ in range(300)]
        self.assertLess(len(os.listdir(f"/proc/{self.training.pid}/fd")), 250)
        late = self.work(self.training)
        rows = self.training.workers
        self.training.wait_until(lambda: rows().get(2, {}).get("state") == "working",
                                 "a worker joins beside them")
        for stranger in crowd:
            stranger.socket.close()
        late.kill()
        self.training.wait_steps(self.training.steps() + 20)
        self.training.signal(signal.SIGTERM)
        self.assertEqual(self.training.wait().code, support.STOPPED)


if __name__ == "__main__":
    support.main()
