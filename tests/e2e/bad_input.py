#!/usr/bin/env python3
"""Bad files, bad options and full disks: one clear sentence, the right exit code, no partial
output."""
import json
import os
import re
import subprocess

import support
from support import idx

QUICK = ("--workers", 2, "--batch", 8, "--steps", 20, "--quiet")


def contents(folder):
    """Every file below the folder and its bytes."""
    return {path: path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


class Refusals(support.TestCase):
    def refuse(self, code, *arguments, words=()):
        """The call fails with `code` and one sentence with these words, and creates nothing."""
        before = contents(self.folder)
        ended = self.anytime(*arguments, code=code)
        self.assert_complaint(ended, *words)
        self.assertEqual(ended.out, "", ended)
        self.assertEqual(contents(self.folder), before, ended)
        return ended


class BadFiles(Refusals):
    def bad_sets(self):
        """What is wrong, the bad file, all files."""
        train, labels, *_ = idx.FILES
        good = idx.good()
        packed = idx.packed(good[train])
        damaged = bytearray(packed)
        damaged[len(damaged) // 2] ^= 0xff
        swap = {
            "empty": (train, b""),
            "three bytes": (train, b"\0\0\x08"),
            "header only": (train, good[train][:16]),
            "truncated": (train, good[train][:-1]),
            "too long": (train, good[train] + b"\0"),
            "wrong magic": (train, idx.images(60, magic=0x12345678)),
            "labels for images": (train, good[labels]),
            "text": (train, b"<html><body>404 not found</body></html>\n" * 40),
            "claims 4 billion": (train, idx.images(60, claimed=0xffffffff)),
            "claims none": (train, idx.images(0)),
            "truncated labels": (labels, good[labels][:-1]),
            "wrong magic of labels": (labels, idx.labels(60, magic=0x805)),
            "not gzip": (f"{train}.gz", good[train]),
            "empty gzip": (f"{train}.gz", idx.packed(b"")),
            "truncated gzip": (f"{train}.gz", packed[:-9]),
            "damaged gzip": (f"{train}.gz", bytes(damaged)),
            "gzip of garbage": (f"{train}.gz", idx.packed(b"garbage" * 100)),
        }
        for what, (name, content) in swap.items():
            files = dict(good)
            files.pop(name.removesuffix(".gz"))
            yield what, name, {**files, name: content}
        yield "fewer labels", labels, {**good, labels: idx.labels(59)}
        yield "more labels", labels, {**good, labels: idx.labels(61)}

    def test_a_good_set_is_read_plain_and_compressed(self):
        plain = idx.write(self.folder / "plain", idx.good())
        packed = idx.write(self.folder / "packed", {f"{name}.gz": idx.packed(content)
                                                    for name, content in idx.good().items()})
        one, two = (self.train_json(*QUICK, "--data", data) for data in (plain, packed))
        self.assertEqual(one["params_hash"], two["params_hash"])
        self.assertEqual(one["test"]["count"], 20)

    def test_malformed_files_are_named_and_nothing_is_created(self):
        for number, (what, name, files) in enumerate(self.bad_sets()):
            with self.subTest(bad=what):
                folder = idx.write(self.folder / f"set{number}", files)
                self.refuse(support.FORMAT, "train", *QUICK, "--data", folder, words=[name])
                self.refuse(support.FORMAT, "train", *QUICK, "--data", folder, "--run", "here",
                            words=[name])

    def test_splits_of_different_shapes_are_refused(self):
        folder = idx.write(self.folder / "set", {**idx.good(), idx.FILES[2]: idx.images(20, 5)})
        self.refuse(support.FORMAT, "train", *QUICK, "--data", folder, words=["4x4", "5x5"])

    def test_missing_files_are_named(self):
        for name in idx.FILES:
            with self.subTest(missing=name):
                files = idx.good()
                files.pop(name)
                folder = idx.write(self.folder / f"without-{name}", files)
                self.refuse(support.MISSING, "train", *QUICK, "--data", folder, words=[name])

    def test_missing_paths_are_named(self):
        for option, value, word in (("--data", "no-such-folder/", "no-such-folder/"),
                                    ("--data", "no-images,no-labels", "no-images"),
                                    ("--data", "fashion-mnits", "fashion-mnist"),
                                    ("--config", "no.conf", "no.conf"),
                                    ("--straggler", "trace:no.csv", "no.csv")):
            with self.subTest(option=option, value=value):
                small = () if option == "--data" else support.SMALL
                self.refuse(support.MISSING, "train", *small, *QUICK, option, value, words=[word])

    def test_a_pipe_or_a_folder_instead_of_a_file_is_refused(self):
        files = idx.good()
        content = files.pop(idx.FILES[0])
        self.assertTrue(content)
        for make in (os.mkfifo, os.mkdir):
            with self.subTest(made_with=make.__name__):
                folder = idx.write(self.folder / make.__name__, files)
                make(folder / idx.FILES[0])
                ended = self.anytime("train", *QUICK, "--data", folder, code=support.IO)
                self.assert_complaint(ended, idx.FILES[0])


class BadOptions(Refusals):
    BAD = (
        ("--lr", "-1"), ("--lr", "0"), ("--lr", "nan"), ("--lr", "inf"), ("--lr", "fast"),
        ("--batch", "0"), ("--batch", "-5"), ("--batch", "1.5"), ("--batch", "1e99"),
        ("--micro-batch", "0"), ("--workers", "-1"), ("--workers", "many"), ("--steps", "0"),
        ("--epochs", "-1"), ("--seconds", "0"), ("--seconds", "soon"), ("--lease", "-1s"),
        ("--time-limit", "0"), ("--time-limit", "5parsecs"), ("--sample-time", "x"),
        ("--seed", "-1"), ("--seed", "1e30"), ("--strategy", "fnb"), ("--model", "sofmax"),
        ("--model", "mlp:0"), ("--model", "mlp:"), ("--optimizer", "adm"), ("--gather", "first:0"),
        ("--gather", "first:99"), ("--release", "later"), ("--size", "?"), ("--cut", "middle"),
        ("--straggler", "exp:1"), ("--straggler", "speed:-1"), ("--straggler-scale", "-2"),
        ("--lr-schedule", "up"), ("--target", "accuracy=2"), ("--target", "beauty=1"),
        ("--record", "all"), ("--world", "parallel"), ("--deal", "fair"), ("--engine", "steam"),
        ("--data", "synthetic:0,1,1"), ("--data", "synthetic:10"), ("--config", "/dev/null/x"),
        ("--weight-decay", "-1"), ("--eval-size", "0"), ("--k", "0"), ("--shard=maybe",),
        ("--batsh", "3"), ("--run",), ("word",),
    )

    def test_invalid_values_are_refused_and_named(self):
        for name, *value in self.BAD:
            with self.subTest(option=name, value=value):
                code = support.MISSING if name == "--config" else support.USAGE
                ended = self.refuse(code, "train", *support.SMALL, *QUICK, name, *value)
                named = [name.partition("=")[0], *re.split("[:=]", "".join(value))[:1]]
                self.assertTrue(any(word and word in ended.err for word in named), ended)

    def test_contradictions_are_refused(self):
        for options in (("--workers", 2, "--gather", "first:3"),
                        ("--strategy", "fmb", "--work", "timed:0"),
                        ("--work", "fixed:16", "--batch", 32),
                        ("--workers", 0, "--release", "free")):
            with self.subTest(options=options):
                self.refuse(support.USAGE, "train", *support.SMALL, "--quiet", *options)

    def test_errors_in_a_config_file_name_file_and_line(self):
        config = self.folder / "bad.conf"
        for text, line in (("lr = 0.1\nbatsh = 3\n", 2), ("\n# words\nlr\n", 3),
                           ("batch = none\n", 1), ("config = x\n", 1)):
            with self.subTest(text=text):
                config.write_text(text)
                self.refuse(support.USAGE, "train", "--config", config,
                            words=[f"{config}:{line}"])

    def test_an_unknown_verb_and_no_verb_are_refused(self):
        self.refuse(support.USAGE, "trian", words=["train"])
        ended = self.anytime(code=support.USAGE)
        self.assertIn("usage: anytime", ended.err)

    def test_an_existing_folder_is_refused_and_not_changed(self):
        (self.folder / "old").mkdir()
        (self.folder / "old" / "result.json").write_text("precious")
        self.refuse(support.USAGE, "train", *support.SMALL, *QUICK, "--run", "old", words=["old"])


class FullDisk(support.TestCase):
    TRAIN = ("train", *support.SMALL, "--workers", 1, "--quiet")

    def in_mount(self, options, *arguments):
        """Runs the program with a private file system at ./disk; afterwards ./left has a copy of
        its contents."""
        script = ('mount -t tmpfs -o "$1" none disk 2>mount.err || exit 99; shift; "$@"; code=$?; '
                  'cp -r disk left; exit $code')
        (self.folder / "disk").mkdir(exist_ok=True)
        try:
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", options,
                                   support.ANYTIME, *map(str, arguments)], cwd=self.folder,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=support.BOUND)
        except FileNotFoundError:
            self.skipTest("full and read-only disks: unshare is not installed")
        if done.returncode == 99 or done.stderr.startswith("unshare:"):
            self.skipTest("full and read-only disks: mounting is not permitted here")
        return support.Ended(done.args, done.returncode, done.stdout, done.stderr,
                             self.folder / "left" / "run")

    def assert_complete(self, ended, steps):
        """Tables and logs may end early; files that are written at once are complete or absent."""
        if (ended.folder / "result.json").exists():
            self.assertEqual(ended.result["steps"], steps, ended)
        if (ended.folder / "workers.json").exists():
            json.loads((ended.folder / "workers.json").read_text())
        self.assertEqual([path.name for path in ended.folder.iterdir()
                          if path.name.endswith(".tmp")], [], ended)

    def test_a_full_disk_is_reported_and_leaves_no_half_result(self):
        for size in ("8k", "64k", "256k"):
            with self.subTest(size=size):
                ended = self.in_mount(f"size={size}", *self.TRAIN, "--steps", 3000, "--run",
                                      "disk/run")
                self.assertEqual(ended.code, support.IO, ended)
                notes = [line for line in ended.err.splitlines(True)
                         if "cannot write a checkpoint" in line or "nearly full" in line or
                         "no trace.json" in line]
                self.assertIn("nearly full: recording stops", "".join(notes), ended)
                ended.err = "".join(line for line in ended.err.splitlines(True)
                                    if line not in notes)
                self.assert_complaint(ended, "disk/run/", "No space left on device", "disk is full")
                self.assert_complete(ended, 3000)
                subprocess.run(["rm", "-r", self.folder / "left", self.folder / "disk"], check=True)

    def test_the_result_of_a_run_on_a_full_disk_is_still_printed(self):
        ended = self.in_mount("size=16k", *self.TRAIN, "--steps", 3000, "--run", "disk/run",
                              "--json")
        self.assertEqual(ended.code, support.IO, ended)
        self.assertEqual(ended.result["steps"], 3000)
        self.assert_ledger(ended)

    def test_a_read_only_disk_is_reported(self):
        ended = self.in_mount("ro", *self.TRAIN, "--steps", 10, "--run", "disk/run")
        self.assertEqual(ended.code, support.IO, ended)
        self.assert_complaint(ended, "disk/run", "Read-only file system")
        self.assertFalse(ended.folder.exists())

    def test_a_folder_that_cannot_be_created_is_reported(self):
        (self.folder / "file").write_text("")
        for folder in ("file/run", "file/a/b", "/proc/anytime"):
            with self.subTest(folder=folder):
                ended = self.anytime(*self.TRAIN, "--steps", 10, "--run", folder, code=support.IO)
                self.assert_complaint(ended, folder)

    def test_a_full_standard_output_is_reported(self):
        for run, json_flag in (("a", "--json"), ("b", "--no-json")):
            with self.subTest(json=json_flag), open("/dev/full", "w") as full:
                done = subprocess.run([support.ANYTIME, *map(str, self.TRAIN), "--steps", "10",
                                       "--run", run, json_flag], cwd=self.folder, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=support.BOUND)
                ended = support.Ended(done.args, done.returncode, "", done.stderr,
                                      self.folder / run)
                self.assertEqual(ended.code, support.IO, ended)
                self.assert_complaint(ended, "standard output")
                self.assertEqual(ended.result["steps"], 10, "the folder has the result")

    def test_closed_standard_streams_are_not_mistaken_for_files(self):
        for closed, code in (("2>&-", support.DONE), (">&-", support.IO), ("<&-", support.DONE),
                             ("<&- >&- 2>&-", support.IO)):
            with self.subTest(closed=closed):
                run = f"run{self.runs}"
                self.runs += 1
                command = [support.ANYTIME, "train", *map(str, support.SMALL), "--workers", "9",
                           "--steps", "30", "--json", "--run", run]
                done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command],
                                      cwd=self.folder, capture_output=True, text=True,
                                      timeout=support.BOUND)
                ended = support.Ended(command, done.returncode, done.stdout, done.stderr,
                                      self.folder / run)
                self.assertEqual(ended.code, code, ended)
                self.assertEqual(ended.result["steps"], 30, ended)
                self.assertEqual(len(ended.table("collect_stats.csv")), 30, ended)
                self.assertEqual(len(ended.table("worker_stats.csv")), 270, ended)


class LittleMemory(support.TestCase):
    def test_a_run_that_does_not_fit_says_so_and_ends(self):
        """Wherever the memory is used up: OpenBLAS, too, needs 128 MB and would wait for them."""
        if support.is_sanitized():
            self.skipTest("sanitizers reserve more address space than any limit allows")
        for megabytes in range(250, 600, 50):
            with self.subTest(megabytes=megabytes):
                done = subprocess.run(
                    ["prlimit", f"--as={megabytes * 10**6}", support.ANYTIME, "train", "--data",
                     "synthetic:2000,20,5", "--batch", "32", "--model", "mlp:2000,2000",
                     "--workers", "2", "--steps", "3", "--quiet", "--run",
                     self.folder / f"run{megabytes}"], capture_output=True, text=True,
                    stdin=subprocess.DEVNULL, timeout=support.BOUND, check=False)
                self.assertIn(done.returncode, (support.DONE, support.FAILED), done.stderr)
                if done.returncode:
                    self.assertIn("memory", done.stderr)


if __name__ == "__main__":
    support.main()
