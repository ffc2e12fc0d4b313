"""A dashboard under test: `anytime watch` as a process, and helpers for requests to it."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.parse

import support


def need():
    """Skips the tests of a script if the program has no dashboard."""
    if "microhttpd" in support.missing_parts():
        print("skipped: this anytime is built without microhttpd")
        sys.exit(77)


class Dashboard:
    """`anytime watch` of some folders; close() ends it."""

    def __init__(self, folders, *options, err_path, env=None):
        self.command = [support.ANYTIME, "watch", *map(str, folders), *map(str, options)]
        self.err_path = err_path
        with open(err_path, "wb") as err:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=err, text=True,
                                            env={**os.environ, **(env or {})})
        self.set_url(self.process.stdout.readline().strip())

    def set_url(self, url):
        parts = urllib.parse.urlsplit(url)
        assert parts.scheme == "http", f"expected a URL, got '{url}'{self.err()}"
        self.url, self.host, self.port = url, parts.hostname, parts.port
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]

    @property
    def pid(self):
        return self.process.pid

    def err(self):
        return self.err_path.read_text(errors="replace")

    def get(self, path, method="GET", token=True, headers=None, body=None):
        """(status, headers, body) of one request."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=support.BOUND)
        sent = {"Authorization": f"Bearer {self.token}"} if token is True else {}
        connection.request(method, path, body=body, headers={**sent, **(headers or {})})
        response = connection.getresponse()
        result = response.status, response.headers, response.read()
        connection.close()
        return result

    def json(self, path):
        status, _, body = self.get(path)
        assert status == 200, (status, path, body)
        return json.loads(body)

    def run(self, run=0, edition=0, since=0):
        """A run with its summary (`story` in JSON) and result."""
        return self.json(f"/api/summary?run={run}&edition={edition}&since={since}")

    def steps(self, run=0):
        """The number of steps that the dashboard has read."""
        summary = self.run(run)["story"]
        return summary["state"]["steps"] if summary else 0

    def connect(self):
        """A plain connection."""
        return socket.create_connection((self.host, self.port), timeout=support.BOUND)

    def stream(self):
        """An event stream: a connection from which lines can be read."""
        connection = self.connect()
        connection.sendall(f"GET /api/stream HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
                           f"Authorization: Bearer {self.token}\r\n\r\n".encode())
        return connection

    def is_alive(self):
        return self.process.poll() is None and self.get("/healthz", token=False)[0] == 200

    def stop(self):
        """Sends Ctrl-C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(support.BOUND)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class TestCase(support.TestCase):
    """A test with dashboards."""

    def watch(self, *folders, options=(), env=None):
        board = Dashboard(folders, *options, err_path=self.folder / "watch.err", env=env)
        self.addCleanup(board.close)
        return board

    def wait_known_steps(self, board, count, run=0):
        """Waits until the dashboard has read `count` steps."""
        support.wait_until(lambda: board.steps(run) >= count, f"the dashboard has step {count}")
