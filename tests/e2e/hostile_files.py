#!/usr/bin/env python3
"""Files and folders made by somebody who means harm: they are refused, and cost little."""
import gzip
import hashlib
import json
import lzma
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import unittest

import support

try:
    import numpy
except ImportError:
    numpy = None

SIM = ("--world", "sim", *support.SMALL, "--workers", 2, "--sample-time", "1ms")
MEMORY_MAX = 600 * 10**6


def reseal(path, change):
    """Changes the state in a checkpoint and gives it a right checksum again."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    state = json.loads(header["__metadata__"]["checkpoint"])
    change(state)
    header["__metadata__"]["checkpoint"] = json.dumps(state)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = struct.pack("<Q", len(text)) + text + raw[8 + size:-32]
    path.write_bytes(body + hashlib.sha256(body).digest())


class Libraries(support.TestCase):
    def test_none_is_loaded_from_the_current_folder(self):
        for name in ("libjansson.so.4", "libz.so.1", "libssl.so.3", "libopenblas.so.0"):
            (self.folder / name).write_bytes(b"not a library")
        self.assertIn("anytime", self.anytime("--version").out)


class Packed(support.TestCase):
    """Small files that expand to a lot."""

    def refused(self, path, *more):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        ended = self.anytime("data", "info", path, *more, code=support.FORMAT)
        self.assert_complaint(ended, path.name, "expand to more than")
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(max(before, after) * 1024, MEMORY_MAX)

    def bomb(self, opener, name, megabytes):
        path = self.folder / name
        with opener(path, "wb") as file:
            file.write(b"label,a\n")
            for _ in range(megabytes):
                file.write(b"1,2\n" * 250_000)
        return path

    def test_small_files_do_not_fill_the_memory(self):
        for opener, name in ((gzip.open, "bomb.csv.gz"), (lzma.open, "bomb.csv.xz")):
            with self.subTest(name):
                path = self.bomb(opener, name, 60)
                self.assertLess(path.stat().st_size, 400_000)
                self.refused(path, "--unpack-limit", "20MB")

    def test_the_limit_can_be_raised(self):
        path = self.bomb(gzip.open, "rows.csv.gz", 2)
        self.anytime("data", "info", path, "--unpack-limit", "1MB", code=support.FORMAT)
        for limit in ("3MB", "none", "auto"):
            self.assertIn("500,000", self.anytime("data", "info", path, "--unpack-limit",
                                                  limit).out.replace("500000", "500,000"))
        self.assert_complaint(self.anytime("data", "info", path, "--unpack-limit", "much",
                                           code=support.USAGE), "--unpack-limit")


class Weights(support.TestCase):
    def test_tensors_that_overlap_are_refused(self):
        run = self.train(*SIM, "--steps", 5, "--model", "mlp:4")
        path = run.folder / "model.safetensors"
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + size])
        names = [name for name in header if name != "__metadata__"]
        first, second = header[names[0]], header[names[-1]]
        begin, end = second["data_offsets"]
        shift = first["data_offsets"][0] - begin
        second["data_offsets"] = [begin + shift, end + shift]
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size:])
        self.assert_complaint(self.anytime("eval", path, code=support.FORMAT), "overlap")
        self.assert_complaint(self.train("--init", path, *SIM, "--model", "mlp:4", "--steps", 1,
                                         code=support.FORMAT), "overlap")


class Checkpoints(support.TestCase):
    """With a right checksum, but contents that no run has written."""

    CHANGES = {
        "a bucket twice": lambda t: t["steps"].update(
            buckets=[t["steps"]["buckets"][0], 1] * t["steps"]["count"]),
        "buckets that overflow": lambda t: t["steps"].update(
            buckets=[3, 2**62, 4, 2**62, 5, 2**62, 6, 2**62 + t["steps"]["count"] - 2**63]),
        "no steps but samples": lambda t: (t.update(step_count=0), t["steps"].update(
            count=0, buckets=[])),
        "a negative count": lambda t: t["steps"].update(count=-1),
        "steps after the end": lambda t: t.update(applied_at=10**15),
        "time that never was": lambda t: t.update(before=10**17),
        "weight of 1": lambda t: t.update(loss_weight=1.0),
        "weight not a number": lambda t: t.update(loss_weight=None),
        "workers of another kind": lambda t: t.update(workers=[{"rounds": "many"}]),
        "no list of buckets": lambda t: t["steps"].pop("buckets"),
    }

    def test_totals_that_cannot_be_are_refused_with_a_sentence(self):
        run = self.train(*SIM, "--steps", 20, "--checkpoint-every", 10)
        newest = sorted((run.folder / "checkpoint").iterdir())[-1]
        good = newest.read_bytes()
        for what, change in self.CHANGES.items():
            with self.subTest(what):
                newest.write_bytes(good)
                reseal(newest, lambda state: change(state["tally"]))
                ended = self.resume(run.folder, "--steps", 30).wait()
                self.assertEqual(ended.code, support.FORMAT, ended)
        newest.write_bytes(good)
        reseal(newest, lambda state: None)
        self.assertEqual(self.resume(run.folder, "--steps", 30).wait().code, support.DONE)


class Results(support.TestCase):
    """A result.json with numbers that no run has."""

    ROWS = (1, None, [], {}, {"compute_seconds": 1, "idle_seconds": -2},
            {"rounds": 2**63 - 1, "used": 2**63 - 1, "dropped": -2**63, "compute_seconds": 1e308},
            {"rounds": -1, "sleep_seconds": -1e308, "connection": 3, "sent_bytes": []})

    def test_they_are_shown_as_far_as_they_make_sense(self):
        run = self.train(*SIM, "--steps", 5)
        path = run.folder / "result.json"
        good = json.loads(path.read_text())
        for rows in (self.ROWS, 5 * self.ROWS, "rows", {"a": 1}):
            with self.subTest(rows=rows):
                path.write_text(json.dumps({**good, "worker": rows, "resources": rows}))
                self.assertIn("5 steps", self.anytime("show", run.folder).out)
                self.anytime("runs", self.folder)
                self.anytime("report", run.folder, "--plots", "none")


class Logs(support.TestCase):
    def test_a_changed_log_is_never_measured(self):
        """Every byte that is changed is noticed: the log is refused, wherever it is."""
        run = self.train(*SIM, "--steps", 40)
        log = run.folder / "events.bin"
        good = log.read_bytes()
        self.anytime("simulate", "--from", run.folder, "--steps", 3)
        rng = random.Random(5)
        for _ in range(60):
            place = rng.randrange(len(good))
            bad = bytearray(good)
            bad[place] ^= 1 << rng.randrange(8)
            log.write_bytes(bad)
            done = subprocess.run([support.ANYTIME, "simulate", "--from", run.folder, "--steps",
                                   "3"], capture_output=True, text=True, cwd=self.folder,
                                  timeout=support.BOUND, check=False)
            self.assertIn(done.returncode, (support.FORMAT, support.MISSING),
                          (place, done.stderr))

    def test_a_run_that_was_killed_can_be_measured(self):
        run = self.train(*SIM, "--steps", 40)
        log = run.folder / "events.bin"
        log.write_bytes(log.read_bytes()[:-7])
        self.assert_complaint(self.anytime("simulate", "--from", run.folder, "--steps", 3,
                                           code=support.FORMAT), "torn")
        (run.folder / "result.json").unlink()
        self.anytime("simulate", "--from", run.folder, "--steps", 3)


class Names(support.TestCase):
    """Control characters in files and in their names never reach the terminal."""

    EVIL = "x\x1b]0;y\x07\x1b[31m\x9b\x7f"
    SHOWN = r"x\?\]0;y\?\?\[31m\?{2,3}"

    def shown(self, *arguments):
        ended = self.anytime(*arguments, errors="surrogateescape")
        text = ended.out + ended.err
        self.assertFalse(set(text) & {"\x1b", "\x07", "\x9b", "\x7f"}, (arguments, text))
        return text

    def write_rows(self, name, classes):
        rows = (f"{row % 3},{row},\"{classes[row % 3]}\"\n" for row in range(60))
        (self.folder / name).write_text("a,b,label\n" + "".join(rows))

    def test_in_a_result(self):
        run = self.folder / "run"
        self.anytime("train", *SIM, "--steps", 5, "--quiet", "--run", run)
        path = run / "result.json"
        evil = {"command": self.EVIL, "strategy": self.EVIL, "data": "x**\n\n<img>"}
        path.write_text(json.dumps({**json.loads(path.read_text()), **evil}))
        self.assertRegex(self.shown("show", run), self.SHOWN)
        self.assertRegex(self.shown("report", run, "--out", "report"), self.SHOWN)
        self.assertIn(r"x\*\*??\<img\>", (self.folder / "report/report.md").read_text())
        exact = json.loads(self.shown("show", run, "--json"))
        self.assertEqual({key: exact[key] for key in evil}, evil)

    def test_of_files_folders_and_classes(self):
        data, run = self.EVIL + ".csv", self.EVIL + "-run"
        self.write_rows(data, [self.EVIL, "tab\t", "line\n"])
        train = ("train", "--data", data, "--label", "label", "--model", "mlp:4", "--workers", 1,
                 "--steps", 5)
        self.assertRegex(self.shown(*train, "--dry-run"), f"on {self.SHOWN}.csv")
        self.assertRegex(self.shown(*train, "--run", run), f" {self.SHOWN}.csv ")
        self.assertRegex(self.shown("runs", "."), self.SHOWN)
        self.assertRegex(self.shown("data", "info", data), self.SHOWN)
        for verb in ("show", "replay", "eval", "report"):
            self.shown(verb, run)
        rows = self.shown("predict", run, data).splitlines()[1:]
        self.assertEqual({len(row.split("\t")) for row in rows}, {2}, rows)
        for row in rows:
            self.assertRegex(row, rf"^({self.SHOWN}|tab\?|line\?)\t0\.")
        exact = json.loads(self.shown("predict", run, data, "--json"))
        self.assertEqual(set(exact["classes"]), {self.EVIL, "tab\t", "line\n"})
        self.assertRegex(self.shown("runs", "remove", run), self.SHOWN)

    def test_of_workers_and_in_nets(self):
        rows = (f"{step},{worker or self.EVIL},{0.1 + 0.3 * (not worker)}\n" for step in
                range(12) for worker in range(4))
        (self.folder / "log.csv").write_text("step,worker,seconds\n" + "".join(rows))
        self.assertRegex(self.shown("advise", "log.csv"), f"worker {self.SHOWN}:")
        (self.folder / "x.net").write_text(f"# {self.EVIL}\ninput 4\nclasses 3\ndense 3\n")
        self.assertRegex(self.shown("models", "show", "x.net"), self.SHOWN)

    def test_that_are_not_utf8_name_the_same_files_later(self):
        data, run, net = (os.fsdecode(b"\xe9" + name) for name in (b".csv", b"run", b"x.net"))
        self.write_rows(data, "abc")
        (self.folder / net).write_text("input 2\nclasses 3\ndense classes\n")
        done = self.shown("train", "--data", data, "--label", "label", "--model", net, "--workers",
                          1, "--steps", 5, "--quiet", "--run", run)
        self.assertEqual(self.shown("eval", run), self.shown("eval", run + "/model.safetensors"))
        self.assertIn(self.shown("eval", run), done)
        self.shown("predict", run)
        self.assertIn("9 steps", self.shown("train", "--resume", run, "--steps", 9))
        [row] = json.loads(self.shown("runs", ".", "--json"))["runs"]
        self.assertEqual(row["run"], "./?run")
        self.assertRegex(row["data"], r"/\?\.csv$")
        self.assertEqual(json.loads(self.shown("runs", "remove", run, "--json")),
                         {"removed": ["?run"]})

    def test_a_command_that_is_advised_is_quoted(self):
        run = self.folder / "it's; one"
        self.anytime("train", *SIM, "--steps", 40, "--straggler", "speed:1,4", "--quiet", "--run",
                     run)
        advice = self.anytime("advise", "it's; one").out
        self.assertRegex(advice, r"--run 'it'\\''s; one-\w+'")


class Pipes(support.TestCase):
    """Named pipes that nobody writes to, where a file should be: nothing waits for them."""

    REFUSED = (support.FORMAT, support.MISSING, support.IO)

    def refused(self, *arguments, codes=REFUSED):
        done = subprocess.run([support.ANYTIME, *map(str, arguments)], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=support.BOUND,
                              check=False)
        self.assertIn(done.returncode, codes, (arguments, done.stderr))
        self.assertTrue(done.stderr.startswith("anytime: "), (arguments, done.stderr))

    def test_in_options(self):
        run = self.train(*SIM, "--steps", 5)
        for name in ("pipe", "pipe.net", "pipe.safetensors"):
            os.mkfifo(self.folder / name, 0o600)
        for words in (("--config", "pipe"), ("--model", "pipe.net"), ("--init", "pipe.safetensors"),
                      ("--straggler", "trace:pipe"), ("--faults", "trace:pipe")):
            with self.subTest(words=words):
                self.refused("train", *SIM, "--steps", 5, *words)
        for words in (("predict", run.folder, "pipe"), ("eval", "pipe"),
                      ("work", "127.0.0.1:1", "--token", "pipe")):
            with self.subTest(words=words):
                self.refused(*words, codes=(*self.REFUSED, support.USAGE))

    def test_in_a_run(self):
        run = self.train(*SIM, "--steps", 10)
        verbs = {"events.bin": ("replay", "advise", "resume"),
                 "collect_stats.csv": ("report", "resume"), "result.json": ("show", "report"),
                 "model.safetensors": ("eval", "predict")}
        for name, readers in verbs.items():
            bad = self.folder / f"bad-{name}"
            shutil.copytree(run.folder, bad)
            (bad / name).unlink(missing_ok=True)
            os.mkfifo(bad / name)
            for reader in readers:
                with self.subTest(file=name, reader=reader):
                    words = ("train", "--steps", 20, "--resume") if reader == "resume" \
                        else reader.split()
                    self.refused(*words, bad)
        newest = max((run.folder / "checkpoint").iterdir())
        newest.unlink()
        for path in (newest, run.folder / "run.lock"):
            os.mkfifo(path)
        self.assertIn("run1", self.anytime("runs", self.folder).out)
        again = self.resume(run.folder, "--steps", 20).wait()
        self.assertEqual(again.code, support.DONE, again)
        self.assertIn("cannot be read; resuming from step 0", again.err)

    def test_in_place_of_the_result_of_a_run_that_has_ended(self):
        """Whether something is left to do depends on it."""
        run = self.train(*SIM, "--steps", 10)
        path = run.folder / "result.json"
        path.unlink()
        os.mkfifo(path)
        again = self.resume(run.folder).wait()
        self.assertEqual(again.code, support.DONE, again)
        self.assertEqual(again.result["params_hash"], run.result["params_hash"])

    def test_one_that_somebody_writes_to_is_read(self):
        """As in --config <(command)."""
        reading, writing = os.pipe()
        os.write(writing, b"steps = 7\n")
        os.close(writing)
        ended = subprocess.run([support.ANYTIME, "train", *map(str, SIM), "--json", "--quiet",
                                "--config", f"/dev/fd/{reading}"], cwd=self.folder, text=True,
                               pass_fds=(reading,), capture_output=True, timeout=support.BOUND,
                               check=False)
        os.close(reading)
        self.assertEqual(json.loads(ended.stdout)["steps"], 7, ended.stderr)


class Links(support.TestCase):
    """Symbolic links that appear in the place of a run's folders and files."""

    def start_one(self):
        run = self.start(*support.SMALL, "--workers", 2, "--steps", 10**7, "--checkpoint-every",
                         0, "--eval-every", 0, "--quiet")
        run.wait_working()
        run.wait_steps(20)
        return run

    def test_a_run_folder_that_is_replaced_is_not_followed(self):
        run = self.start_one()
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "checkpoint").mkdir()
        os.rename(run.folder, self.folder / "moved")
        os.symlink(victim, run.folder)
        run.signal(signal.SIGUSR1)
        run.wait_said("cannot write")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertNotEqual(ended.code, support.DONE)
        self.assertEqual([path.name for path in victim.iterdir()], ["checkpoint"])
        self.assertEqual(list((victim / "checkpoint").iterdir()), [])
        self.assertIn("symbolic link", ended.err)

    def test_folders_inside_a_run_are_not_followed(self):
        run = self.start_one()
        victim = self.folder / "victim"
        victim.mkdir()
        os.rename(run.folder / "checkpoint", self.folder / "moved")
        os.symlink(victim, run.folder / "checkpoint")
        run.signal(signal.SIGUSR1)
        run.wait_said("cannot write")
        run.signal(signal.SIGTERM)
        run.wait()
        self.assertEqual(list(victim.iterdir()), [])

    def test_tables_and_locks_of_a_resumed_run_are_not_followed(self):
        for name in ("master_stats.csv", "run.lock"):
            with self.subTest(name):
                run = self.train(*SIM, "--steps", 10)
                victim = self.folder / f"victim-{name}"
                victim.write_text("precious\n")
                (run.folder / name).unlink(missing_ok=True)
                os.symlink(victim, run.folder / name)
                ended = self.resume(run.folder, "--steps", 20).wait()
                self.assertEqual(victim.read_text(), "precious\n")
                self.assertNotEqual(ended.code, support.DONE, ended)

    def test_a_table_that_leads_to_a_device_is_not_read(self):
        run = self.train(*SIM, "--steps", 10)
        (run.folder / "worker_stats.csv").unlink()
        os.symlink("/dev/zero", run.folder / "worker_stats.csv")
        ended = self.resume(run.folder, "--steps", 20).wait()
        self.assertEqual(ended.code, support.IO, ended)
        self.assertIn("symbolic link", ended.err)

    def test_the_log_of_another_run_is_not_cut(self):
        """It has the checkpoint from which the run in its folder is resumed."""
        mine = self.train(*SIM, "--steps", 20, "--checkpoint-every", 10)
        before = (mine.folder / "events.bin").read_bytes()
        theirs = self.folder / "theirs"
        shutil.copytree(mine.folder, theirs)
        max((theirs / "checkpoint").iterdir()).unlink()
        (theirs / "events.bin").unlink()
        os.symlink(mine.folder / "events.bin", theirs / "events.bin")
        ended = self.resume(theirs, "--steps", 30).wait()
        self.assertEqual(ended.code, support.IO, ended)
        self.assertEqual((mine.folder / "events.bin").read_bytes(), before)

    def test_the_user_may_name_a_run_by_a_link(self):
        run = self.train(*SIM, "--steps", 10)
        os.symlink(run.folder, self.folder / "mine")
        again = self.resume(self.folder / "mine", "--steps", 20).wait()
        self.assertEqual(again.code, support.DONE, again)


@unittest.skipIf(numpy is None, f"{sys.executable} has no numpy (package python3-numpy)")
class Python(support.TestCase):
    """anytime.read and anytime.weights refuse what the program refuses, and wait for nothing."""

    def refused(self, function, file, code=support.FORMAT):
        """In a process of its own, which may take neither long nor much memory."""
        script = (f"import sys; sys.path.insert(0, {str(support.ROOT / 'python')!r})\n"
                  "import anytime, resource\n"
                  "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
                  f"try: anytime.{function}({str(self.folder)!r})\n"
                  "except anytime.Error as error: print(error); sys.exit(error.code)")
        done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True,
                              env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                              timeout=support.BOUND, check=False)
        self.assertEqual(done.returncode, code, (file, done))
        if code != support.DONE:
            self.assertIn(str(file), done.stdout)
        file.unlink()

    def test_pipes_and_devices(self):
        for name, function in (("result.json", "read"), ("master_stats.csv", "read"),
                               ("events.bin", "read"), ("model.safetensors", "weights")):
            with self.subTest(name=name):
                path = self.folder / name
                os.mkfifo(path)
                self.refused(function, path)
                path.symlink_to("/dev/zero")
                self.refused(function, path)

    def test_damaged_files(self):
        result, table = self.folder / "result.json", self.folder / "master_stats.csv"
        for raw in (b"", b'{"a":', b"[1]", b'"\xff"', b"[" * 200_000):
            with self.subTest(raw=raw[:10]):
                result.write_bytes(raw)
                self.refused("read", result)
        table.write_text("step,text\n1," + "x" * 200_000 + "\n")
        self.refused("read", table)

    def test_one_long_text_in_a_table_costs_its_own_length(self):
        table = self.folder / "worker_stats.csv"
        table.write_text("text\n" + "x" * 100_000 + "\n" + "a\n" * 100_000)
        self.refused("read", table, code=support.DONE)

    def write_tensors(self, header):
        raw = header.encode()
        path = self.folder / "model.safetensors"
        path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(4 * 100_000))
        return path

    def test_headers_of_weights(self):
        many = "[" + "1," * 99 + "1]"
        for shape in ("[-1,-4]", "[Infinity]", "[0,1180591620717411303424]", many):
            with self.subTest(shape=shape[:30]):
                size = 0 if "0," in shape else 4 if "[1," in shape else 16
                self.refused("weights", self.write_tensors(
                    f'{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{size}]}}}}'))
        self.refused("weights", self.write_tensors('{"a":' * 200_000))

    def test_many_tensors_are_compared_with_their_neighbors_only(self):
        header = {f"t{i}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
                  for i in range(100_000)}
        self.refused("weights", self.write_tensors(json.dumps(header)), code=support.DONE)
        header["t0"] = header["t99999"]
        self.refused("weights", self.write_tensors(json.dumps(header)))


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
class Privileges(support.TestCase):
    """Nothing is gained by running it: without any privilege it does the same."""

    NOBODY = 65534

    def test_it_needs_and_keeps_no_privileges(self):
        folder = pathlib.Path("/tmp") / f"anytime-nobody-{os.getpid()}"
        folder.mkdir(mode=0o700)
        self.addCleanup(shutil.rmtree, folder)
        os.chown(folder, self.NOBODY, self.NOBODY)
        program = folder / "anytime"  # the build folder may be closed to others
        shutil.copy(support.ANYTIME, program)
        program.chmod(0o755)
        ended = subprocess.run(
            ["setpriv", f"--reuid={self.NOBODY}", f"--regid={self.NOBODY}", "--clear-groups",
             "--no-new-privs", "--bounding-set=-all", program, "train", *support.SMALL,
             "--workers", "2", "--steps", "20", "--quiet", "--run", folder / "run"],
            env={"PATH": os.environ["PATH"], "HOME": str(folder)}, cwd=folder, text=True,
            capture_output=True, timeout=support.BOUND)
        self.assertEqual(ended.returncode, support.DONE, ended.stderr)
        owners = {path.stat().st_uid for path in (folder / "run").rglob("*")}
        self.assertEqual(owners, {self.NOBODY})


if __name__ == "__main__":
    support.main()
