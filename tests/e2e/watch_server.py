#!/usr/bin/env python3
"""The server of `anytime watch`: responses, access control and robustness."""
import json
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import time

import support
from support import dashboard, processes

FINISHED = (*support.SMALL, "--quiet", "--steps", 30, "--workers", 2)
ENDLESS = (*support.SMALL, "--quiet", "--steps", 10 ** 9, "--workers", 2, "--sample-time", "100us")

METRIC = re.compile(r'^anytime_[a-z_]+\{([a-z]+="(\\.|[^"\\\n])*",?)+\} '
                    r'(NaN|[+-]Inf|-?[0-9.]+(e[+-]?[0-9]+)?)$')


def lines_of(connection):
    """The lines of an event stream, without chunk sizes."""
    with connection.makefile("rb") as file:
        for line in file:
            yield line.decode(errors="replace").rstrip("\r\n")


class Responses(dashboard.TestCase):
    """Responses to allowed requests."""

    def setUp(self):
        super().setUp()
        self.run_folder = self.train(*FINISHED).folder

    def test_the_page_needs_the_token_and_sets_a_cookie(self):
        board = self.watch(self.run_folder)
        status, headers, body = board.get(f"/?token={board.token}", token=False)
        self.assertEqual(status, 200)
        self.assertIn(b"<!doctype html>", body)
        cookie = headers["Set-Cookie"]
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        status, _, _ = board.get("/api/runs", token=False,
                                 headers={"Cookie": cookie.split(";")[0]})
        self.assertEqual(status, 200)

    def test_every_response_has_security_headers(self):
        board = self.watch(self.run_folder)
        for path, token in (("/", True), ("/api/runs", True), ("/api/summary", True),
                            ("/metrics", True), ("/healthz", True), ("/nothing", True),
                            ("/", False), ("/api/runs", False)):
            _, headers, _ = board.get(path, token=token)
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"], path)
            self.assertIn("script-src 'self';", headers["Content-Security-Policy"], path)
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"], path)
            self.assertEqual(headers["X-Frame-Options"], "DENY", path)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff", path)
            self.assertEqual(headers["Cache-Control"], "no-store", path)
            self.assertEqual(headers["Referrer-Policy"], "no-referrer", path)
            self.assertIsNone(headers["Access-Control-Allow-Origin"], path)

    def test_all_files_of_the_page_are_served(self):
        board = self.watch(self.run_folder)
        page = board.get("/")[2].decode()
        names = re.findall(r'(?:src|href)="(assets/[^"]+)"', page)
        self.assertTrue(names)
        for name in names:
            status, headers, body = board.get("/" + name)
            self.assertEqual(status, 200, name)
            self.assertTrue(body, name)
            self.assertIn("css" if name.endswith("css") else "javascript", headers["Content-Type"])

    def test_a_summary_is_complete_first_and_then_only_updated(self):
        board = self.watch(self.run_folder)
        self.wait_known_steps(board, 30)
        whole = board.run()
        self.assertEqual(whole["state"], "ended")
        self.assertEqual(whole["result"]["steps"], 30)
        update = board.run(edition=whole["edition"], since=whole["story"]["serial"])
        self.assertEqual(update["story"]["serial"], whole["story"]["serial"])
        self.assertLess(len(json.dumps(update["story"])), len(json.dumps(whole["story"])) / 4)
        other = board.run(edition=1, since=whole["story"]["serial"])
        self.assertEqual(other["story"]["state"], whole["story"]["state"])

    def test_invalid_numbers_are_rejected(self):
        board = self.watch(self.run_folder)
        for query in ("run=x", "run=-1", "run=0&since=1e3", "run=" + "9" * 40, "run="):
            self.assertEqual(board.get("/api/summary?" + query)[0], 400, query)
        self.assertEqual(board.get("/api/summary?run=1")[0], 404)

    def test_metrics_have_the_newest_state(self):
        board = self.watch(self.run_folder)
        self.wait_known_steps(board, 30)
        status, headers, body = board.get("/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        self.check_metrics(body.decode())
        once = self.anytime("watch", self.run_folder, "--once")
        self.check_metrics(once.out)
        self.anytime("watch", self.run_folder, "--once", "--json", code=support.USAGE)

    def check_metrics(self, text):
        families, seen = set(), set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                families.add(line.split()[2])
                continue
            if line.startswith("# HELP "):
                continue
            self.assertRegex(line, METRIC)
            series = line.rpartition(" ")[0]
            self.assertNotIn(series, seen)
            seen.add(series)
            name = line.partition("{")[0]
            self.assertTrue({name, re.sub("_(sum|count)$", "", name)} & families, name)
        self.assertIn(f'anytime_steps_total{{run="{self.run_folder}"}} 30\n', text)
        self.assertIn('state="finished"} 2\n', text)

    def test_a_token_file_is_created_and_reused(self):
        path = self.folder / "token"
        tokens = []
        for _ in range(2):
            board = self.watch(self.run_folder, options=("--token", path))
            tokens.append(board.token)
            self.assertEqual(board.stop(), support.DONE)
        self.assertEqual(tokens[0], tokens[1])
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def test_a_token_that_others_can_read_gives_a_warning(self):
        path = self.folder / "token"
        path.write_text("a" * 32 + "\n")
        for mode, warns in ((0o644, True), (0o600, False)):
            path.chmod(mode)
            board = self.watch(self.run_folder, options=("--token", path))
            self.assertEqual(board.stop(), support.DONE)
            self.assertEqual("can read the token" in board.err(), warns, board.err())

    def test_open_shows_no_token_to_other_users(self):
        """A browser is led to the address by a private file, because arguments are public."""
        tools, said = self.folder / "bin", self.folder / "opened"
        tools.mkdir()
        (tools / "xdg-open").write_text(
            f'#!/bin/sh\necho "$1" > {said}.tmp\ncp -p "$1" {said}.html\nmv {said}.tmp {said}\n')
        (tools / "xdg-open").chmod(0o755)
        board = self.watch(self.run_folder, options=("--open",),
                           env={"PATH": f"{tools}:{os.environ['PATH']}",
                                "XDG_RUNTIME_DIR": str(self.folder)})
        support.wait_until(said.exists, "the browser was opened")
        path = pathlib.Path(said.read_text().strip())
        self.assertNotIn(board.token, str(path))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertIn(f"url=http://127.0.0.1:{board.port}/?token={board.token}", path.read_text())
        self.assertEqual(board.stop(), support.DONE)
        self.assertFalse(path.exists(), "it is removed with the dashboard")

    def test_several_runs_are_served(self):
        other = self.train(*FINISHED, "--strategy", "amb").folder
        board = self.watch(self.run_folder, other)
        self.wait_known_steps(board, 30, 0)
        self.wait_known_steps(board, 30, 1)
        labels = [run["label"] for run in board.json("/api/runs")["runs"]]
        self.assertEqual(labels, [self.run_folder.name, other.name])

    def test_wrong_usage_is_reported(self):
        self.assert_complaint(self.anytime("watch", code=support.USAGE), "at least one run folder")
        self.assert_complaint(self.anytime("watch", "a", "a", code=support.USAGE), "twice")
        self.assert_complaint(self.anytime("watch", "a", "--listen", "example.com:80",
                                           code=support.USAGE), "--listen")
        self.assert_complaint(self.anytime("watch", "a", "--listen", "192.0.2.1:0",
                                           code=support.IO), "an address of this machine")

    def test_a_port_in_use_is_reported(self):
        board = self.watch(self.run_folder)
        ended = self.anytime("watch", self.run_folder, "--listen", f"127.0.0.1:{board.port}",
                             code=support.IO)
        self.assert_complaint(ended, board.port)


class Access(dashboard.TestCase):
    """Access control."""

    def setUp(self):
        super().setUp()
        self.board = self.watch(self.train(*FINISHED).folder)

    def test_without_the_token_requests_are_refused(self):
        for path in ("/", "/api/runs", "/api/summary", "/api/stream", "/metrics",
                     "/assets/page.css", "/?token=", "/?token=" + "0" * 32,
                     "/api/runs?token=" + "f" * 32):
            status, _, body = self.board.get(path, token=False)
            self.assertEqual(status, 401, path)
            self.assertNotIn(self.board.token.encode(), body)
        wrong = {"Authorization": "Bearer " + self.board.token[:-1]}
        self.assertEqual(self.board.get("/api/runs", token=False, headers=wrong)[0], 401)

    def test_other_host_names_are_refused(self):
        for host in ("evil.example", "evil.example:%d" % self.board.port,
                     "localhost.evil.example", "127.0.0.1.nip.example", ""):
            self.assertEqual(self.board.get("/api/runs", headers={"Host": host})[0], 403, host)
        for host in ("localhost:9999", "127.0.0.1", "[::1]:80"):
            self.assertEqual(self.board.get("/api/runs", headers={"Host": host})[0], 200, host)

    def test_scripts_of_other_sites_are_refused(self):
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            self.assertEqual(self.board.get("/api/runs", headers={"Origin": origin})[0], 403)
        cross = {"Sec-Fetch-Site": "cross-site"}
        self.assertEqual(self.board.get("/metrics", headers=cross)[0], 403)
        own = {"Origin": f"http://127.0.0.1:{self.board.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(self.board.get("/api/runs", headers=own)[0], 200)

    def test_only_get_and_head_are_allowed(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"):
            status, headers, _ = self.board.get("/api/runs", method=method, body=b"x" * 5000)
            self.assertEqual(status, 405, method)
            self.assertEqual(headers["Allow"], "GET, HEAD", method)
        status, headers, body = self.board.get("/api/runs", method="HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 0)

    def test_paths_cannot_escape(self):
        for path in ("/../../etc/passwd", "/assets/../../../../etc/passwd", "/assets//etc/passwd",
                     "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/assets/", "/assets/.",
                     "/assets/..\\..\\etc\\passwd", "//etc/passwd", "/%2fetc/passwd", "/events.bin",
                     "/assets/result.json", "/api", "/api/"):
            status, _, body = self.board.get(path)
            self.assertEqual(status, 404, path)
            self.assertNotIn(b"root:", body)

    def test_large_bodies_close_the_connection(self):
        with self.board.connect() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: 1000000000\r\n\r\n")
            with self.assertRaises(OSError):
                for _ in range(100000):
                    connection.sendall(b"x" * 65536)
        self.assertTrue(self.board.is_alive())

    def test_listening_on_a_network_gives_a_warning(self):
        self.assertNotIn("warning", self.board.err())
        board = self.watch(self.folder, options=("--listen", "0.0.0.0:0"))
        self.assertIn("warning", board.err())


class Following(dashboard.TestCase):
    """Before, during and after a run."""

    def test_a_running_run_is_followed(self):
        run = self.start(*ENDLESS)
        board = self.watch(run.folder)
        self.wait_known_steps(board, 1)
        steps = board.steps()
        with board.stream() as stream:
            events = [line for line, _ in zip((line for line in lines_of(stream)
                                               if line.startswith("data: ")), range(3))]
        self.assertEqual(events, sorted(events, key=lambda line: int(line[6:])))
        self.wait_known_steps(board, steps + 1)
        run.signal(signal.SIGINT)
        run.wait()
        support.wait_until(lambda: board.json("/api/runs")["runs"][0]["state"] == "ended",
                           "the end of the run is shown")
        support.wait_until(lambda: board.run()["result"], "the result is shown")
        self.assertEqual(board.stop(), support.DONE)

    def test_a_missing_folder_is_waited_for(self):
        folder = self.folder / "run1"
        board = self.watch(folder)
        self.assertIn("waiting for it", board.err())
        self.assertEqual(board.json("/api/runs")["runs"][0]["state"], "waiting")
        self.train(*FINISHED)
        self.wait_known_steps(board, 30)

    def test_a_resumed_run_is_followed_across_logs(self):
        run = self.start(*ENDLESS)
        run.wait_steps(5)
        board = self.watch(run.folder)
        run.signal(signal.SIGINT)
        stopped = run.wait().result["steps"]
        self.wait_known_steps(board, stopped)
        self.anytime("train", "--resume", run.folder, "--steps", stopped + 50, "--quiet")
        support.wait_until(lambda: (board.run()["result"] or {}).get("steps") == stopped + 50,
                           "the result of the whole run is shown")
        self.wait_known_steps(board, stopped + 50)
        steps = board.run()["story"]["steps"]["step"]
        self.assertEqual(steps, sorted(steps))

    def test_runs_without_a_log_show_the_available_data(self):
        for keep in ("steps", "none"):
            ended = self.train(*FINISHED, "--record", keep)
            board = self.watch(ended.folder)
            support.wait_until(lambda board=board: board.run()["result"], "the result is shown")
            shown = board.run()
            self.assertEqual(shown["state"], "unrecorded")
            self.assertEqual(shown["result"]["steps"], 30)
            self.assertEqual(shown["story"] is not None, keep == "steps")
            self.assertIn("no event log", shown["word"])

    def test_a_torn_log_shows_the_records_before(self):
        ended = self.train(*FINISHED)
        with open(ended.folder / "events.bin", "ab") as log:
            log.write(b"\x7fnot a record")
        board = self.watch(ended.folder)
        self.wait_known_steps(board, 30)
        self.assertEqual(board.json("/api/runs")["runs"][0]["state"], "ended")

    def test_markup_in_names_is_served_as_text(self):
        folder = self.folder / '<img src=x onerror=alert(1)>"'
        ended = self.train(*FINISHED)
        ended.folder.rename(folder)
        board = self.watch(folder)
        self.wait_known_steps(board, 30)
        _, headers, body = board.get("/api/runs")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(json.loads(body)["runs"][0]["label"], folder.name)
        self.assertIn('onerror=alert(1)>\\""', board.get("/metrics")[2].decode())

    def test_train_watch_prints_its_url_and_ends_with_the_run(self):
        run = self.start(*ENDLESS, "--watch")
        run.wait_said("dashboard at http://127.0.0.1:")
        url = re.search(r"http://\S+", run.err()).group()
        board = dashboard.Dashboard.__new__(dashboard.Dashboard)
        board.err_path = run.err_path
        board.set_url(url)
        self.wait_known_steps(board, 1)
        with board.stream() as stream:
            lines = lines_of(stream)
            next(line for line in lines if line.startswith("data: "))
            run.signal(signal.SIGINT)
            self.assertIn("event: bye", lines)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertNotIn("watch", ended.result["options"])
        self.assert_gone(run)

    def test_a_frozen_dashboard_does_not_keep_a_run_from_ending(self):
        run = self.start(*ENDLESS, "--watch")
        workers = {row["pid"] for row in run.wait_working().values()}
        helpers = run.evaluator(), run.child_named("anytime-saver")  # they have their names
        board, = (pid for pid in run.children() - workers - set(helpers))
        os.kill(board, signal.SIGSTOP)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_gone(run)

    def test_a_killed_run_ends_its_dashboard(self):
        run = self.start(*ENDLESS, "--watch")
        run.wait_said("dashboard at http://127.0.0.1:")
        run.wait_working()
        run.process.kill()
        run.wait()
        support.wait_until(lambda: not support.processes.marked(run.mark), "all processes end")


class Load(dashboard.TestCase):
    """Many clients and malformed requests."""

    def setUp(self):
        super().setUp()
        low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(high, max(low, 2048)), high))

    def test_two_hundred_clients_are_notified(self):
        run = self.start(*ENDLESS)
        board = self.watch(run.folder)
        self.wait_known_steps(board, 1)
        streams = [board.stream() for _ in range(200)]
        waiting = dict.fromkeys(streams[20:], b"")  # the first 20 never read
        end = time.monotonic() + support.BOUND
        while waiting and time.monotonic() < end:
            for stream in select.select(list(waiting), [], [], 1)[0]:
                waiting[stream] += stream.recv(65536)
                if waiting[stream].count(b"data: ") >= 3:
                    del waiting[stream]
        self.assertFalse(waiting, "clients without events")
        self.assertGreater(board.steps(), 0)
        for stream in streams:
            stream.close()
        self.assertTrue(board.is_alive())
        self.assertEqual(board.stop(), support.DONE)

    def test_clients_that_never_read_do_not_block_others(self):
        board = self.watch(self.train(*FINISHED).folder)
        self.wait_known_steps(board, 30)
        request = (f"GET /assets/dygraph.min.js HTTP/1.1\r\nHost: localhost\r\n"
                   f"Authorization: Bearer {board.token}\r\n\r\n").encode() * 20
        silent = []
        for _ in range(60):
            connection = board.connect()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request)
            silent.append(connection)
        post = b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
        for start in (b"G", b"GET / HTTP/1.1\r\nHo", post):
            for _ in range(20):
                connection = board.connect()
                connection.sendall(start)
                silent.append(connection)
        for _ in range(50):
            self.assertEqual(board.get("/api/runs")[0], 200)
        for connection in silent:
            connection.close()
        self.assertTrue(board.is_alive())

    def test_slow_requests_do_not_keep_others_out(self):
        """More connections than there are places, or descriptors, each with half a request."""
        folder, most = self.train(*FINISHED).folder, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for descriptors in (1024, 256):
            with self.subTest(descriptors=descriptors):
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, most))
                board = self.watch(folder)
                resource.setrlimit(resource.RLIMIT_NOFILE, (2048, most))
                self.wait_known_steps(board, 30)
                self.be_slow(board)

    def be_slow(self, board):
        slow = []
        for _ in range(700):
            connection = board.connect()
            connection.sendall(b"GET / HTTP/1.1\r\nHo")
            slow.append(connection)
        for _ in range(20):
            self.assertEqual(board.get("/api/runs")[0], 200)
        slow[0].settimeout(support.BOUND)
        self.assertEqual(slow[0].recv(1), b"", "the oldest was closed")
        for connection in slow:
            connection.close()
        self.assertTrue(board.is_alive())

    def test_two_host_headers_are_refused(self):
        board = self.watch(self.train(*FINISHED).folder)
        for hosts, status in (("Host: localhost\r\n", b"200"),
                              ("Host: localhost\r\nHost: evil.example\r\n", b"400"),
                              ("Host: evil.example\r\nhost: localhost\r\n", b"400")):
            connection = board.connect()
            connection.sendall(f"GET /api/runs HTTP/1.1\r\n{hosts}Authorization: Bearer "
                               f"{board.token}\r\n\r\n".encode())
            self.assertIn(status, self.first_bytes(connection), hosts)

    def test_too_many_streams_are_refused(self):
        board = self.watch(self.train(*FINISHED).folder)
        streams = [board.stream() for _ in range(224)]
        for stream in streams:
            self.assertIn(b"200", stream.recv(64))
        late = board.stream()
        self.assertIn(b"503", late.recv(64))
        self.assertEqual(board.get("/api/runs")[0], 200)
        for stream in [*streams, late]:
            stream.close()
        support.wait_until(lambda: b"200" in self.first_bytes(board.stream()), "a stream is free")

    @staticmethod
    def first_bytes(connection):
        with connection:
            return connection.recv(64)

    def test_malformed_requests_are_survived(self):
        board = self.watch(self.train(*FINISHED).folder)
        for seed in range(4):
            with self.subTest(seed=seed):
                self.fuzz(board, random.Random(seed), 1000)
                self.assertTrue(board.is_alive())
        self.assertEqual(board.json("/api/runs")["runs"][0]["state"], "ended")

    def fuzz(self, board, rng, count):
        """Sends malformed requests on many connections, without waiting for responses."""
        good = (f"GET /api/summary?run=0&since=0 HTTP/1.1\r\nHost: localhost\r\nCookie: anytime_"
                f"{board.port}={board.token}\r\nAuthorization: Bearer {board.token}\r\n"
                f"Origin: http://localhost\r\n\r\n").encode()
        open_ones = []
        for _ in range(count):
            connection = board.connect()
            connection.setblocking(False)
            try:
                connection.send(self.corrupt(rng, good))
            except OSError:
                pass
            open_ones.append(connection)
            if len(open_ones) > 40:
                open_ones.pop(rng.randrange(len(open_ones))).close()
        for connection in open_ones:
            connection.close()

    @staticmethod
    def corrupt(rng, good):
        """A corrupted request, or random bytes."""
        kind = rng.randrange(6)
        if kind == 0:
            return rng.randbytes(rng.randrange(1, 400))
        bytes_ = bytearray(good)
        if kind == 1:
            for _ in range(rng.randrange(1, 30)):
                bytes_[rng.randrange(len(bytes_))] = rng.randrange(256)
        elif kind == 2:
            place = rng.randrange(len(bytes_))
            bytes_[place:place] = rng.randbytes(rng.randrange(200))
        elif kind == 3:
            return bytes(bytes_[:rng.randrange(len(bytes_))])
        elif kind == 4:
            return bytes(bytes_) * rng.randrange(1, 30)
        else:
            bytes_ = bytes_.replace(b"run=0", b"run=" + rng.choice(
                [b"%00", b"%", b"%zz", b"9" * 5000, b"&" * 3000, b"%f0%9f", b"-0", b"\t"]))
            bytes_ = bytes_.replace(b"/api/summary", rng.choice(
                [b"/api/summary", b"/metrics", b"/assets/" + b"a" * 4000, b"*", b"http://x/", b""]))
        return bytes(bytes_)


if __name__ == "__main__":
    dashboard.need()
    support.main()
