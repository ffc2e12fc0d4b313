#!/usr/bin/env python3
"""A run on a disk that fills up: it says so, keeps what it wrote and still saves checkpoints."""
import os
import re
import shutil
import signal
import subprocess

import support

ENDLESS = (*support.SMALL, "--workers", 2, "--steps", 10**7, "--eval-every", 0,
           "--checkpoint-every", 0)


def tables(folder):
    return {path.name: path.stat().st_size for path in folder.iterdir()
            if path.name.endswith((".csv", ".bin"))}


class FullDisk(support.TestCase):
    def mount(self, size):
        if os.geteuid() != 0 or not shutil.which("mount"):
            self.skipTest("only root can mount a small disk")
        disk = self.folder / "disk"
        disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest(f"cannot mount: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        return disk

    def test_recording_stops_before_checkpoints_do(self):
        disk = self.mount("8m")
        self.folder, outside = disk, self.folder
        run = self.start(*ENDLESS)
        run.wait_said("recording stops")
        said = run.err()
        self.assertEqual(said.count("recording stops"), 1, said)
        before = tables(run.folder)
        self.assertGreater(before["events.bin"], 0)
        run.signal(signal.SIGUSR1)
        checkpoints = run.folder / "checkpoint"
        run.wait_until(lambda: len(list(checkpoints.glob("step-*"))) == 2, "a checkpoint")
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.IO, ended)
        self.assertNotIn("cannot write a checkpoint", ended.err)
        after = tables(run.folder)
        for name, size in before.items():
            self.assertGreaterEqual(after[name], size, name)
        self.assertGreater(ended.result["steps"], 0)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = self.resume(run.folder, "--steps", ended.result["steps"] + 50, "--quiet").wait()
        self.assertEqual(again.code, support.DONE, again)
        self.folder = outside

    def test_a_file_beyond_the_limit_is_an_error_and_not_a_death(self):
        run = self.folder / "run"
        command = ["prlimit", "--fsize=30000", support.ANYTIME, "train", *support.SMALL,
                   "--workers", "2", "--steps", "3000", "--eval-every", "0", "--run", run]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=support.BOUND, check=False)
        self.assertEqual(done.returncode, support.IO, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertTrue((run / "result.json").exists())
        self.assertGreater((run / "events.bin").stat().st_size, 0)
        tables = sorted(run.glob("*.csv"))
        self.assertTrue(any(not table.read_bytes().endswith(b"\n") for table in tables))
        self.anytime("report", run, "--out", self.folder / "report")  # the steps that were written

    def test_checkpoints_that_cannot_be_written_are_reported(self):
        for verb in (("simulate",), ("train", "--workers", 0), ("train", "--workers", 2)):
            with self.subTest(verb):
                run = self.folder / "-".join(map(str, verb))
                command = ["prlimit", "--fsize=14000", support.ANYTIME, *verb, "--data",
                           "synthetic:200,400,5", "--batch", 2, "--optimizer", "momentum",
                           "--record", "steps", "--steps", 50, "--checkpoint-every", 10,
                           "--resources", 0, "--run", run]
                done = subprocess.run([str(word) for word in command], capture_output=True,
                                      text=True, stdin=subprocess.DEVNULL, timeout=support.BOUND,
                                      check=False)
                said = re.findall(r"step-0*(\d+)\.safetensors: cannot write", done.stderr)
                self.assertEqual(said[0], "0", done.stderr)
                self.assertEqual(said[-1], "50", done.stderr)
                self.assertEqual(len(said), len(set(said)), done.stderr)

    def test_other_verbs_do_not_die_either(self):
        run = self.train(*support.SMALL, "--workers", 2, "--steps", 50)
        for verb in ("report", "predict"):
            with self.subTest(verb), open(self.folder / "out", "wb") as out:
                command = ["prlimit", "--fsize=1000", support.ANYTIME, verb, run.folder]
                done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                      stdout=out, stderr=subprocess.PIPE, timeout=support.BOUND,
                                      check=False)
                self.assertEqual(done.returncode, support.IO, done.stderr)
                self.assertTrue(done.stderr)


if __name__ == "__main__":
    support.main()
