#!/usr/bin/env python3
"""Interrupted comparisons continue with --resume, and end as if nothing had happened; their
page."""
import fcntl
import json
import os
import shutil
import signal
import subprocess

import support

SMALL = ("--data", "synthetic:1500,12,3", "--workers", 2, "--batch", 16, "--micro-batch", 8,
         "--steps", 40, "--eval-every", 10, "--sample-time", "20us")
SIMULATED = ("fmb", "async", *SMALL, "--world", "sim", "--repeats", 2)
FEW = ("--plots", "none")


def numbers(folder):
    """What a comparison has found; times of processors differ from run to run."""
    document = json.loads((folder / "compare.json").read_text())
    for entry in document["entries"]:
        for run in entry["runs"]:
            run.pop("resources")
    return {key: document[key] for key in ("command", "complete", "targets", "tune", "entries")}


class Resume(support.TestCase):
    def compare(self, *words, verb="compare", code=support.DONE, **options):
        return self.anytime(verb, *words, code=code, **options)

    def whole(self, *words, verb="compare"):
        self.compare(*words, *FEW, "--out", "whole", verb=verb)
        return self.folder / "whole"

    def cut(self, whole, gone, begun):
        """A copy of a finished comparison in which some runs are missing, and one is incomplete."""
        copy = self.folder / "cut"
        shutil.copytree(whole, copy)
        for name in gone:
            shutil.rmtree(copy / name)
        (copy / begun / "result.json").unlink()
        return copy

    def test_finished_runs_are_kept_and_the_rest_is_made(self):
        whole = self.whole(*SIMULATED)
        copy = self.cut(whole, ["async-2"], "fmb-2")
        (copy / "fmb-2" / "leftover").touch()
        kept = (copy / "async-1" / "result.json").stat().st_mtime_ns
        for jobs in (1, 2):
            with self.subTest(jobs=jobs):
                ended = self.compare("--resume", copy, "--jobs", jobs)
                self.assertEqual(ended.err.count("compare: run "), 2 if jobs == 1 else 0, ended)
                self.assertEqual(numbers(copy), numbers(whole))
                self.assertEqual((copy / "async-1" / "result.json").stat().st_mtime_ns, kept)
                self.assertFalse((copy / "fmb-2" / "leftover").exists())
        self.assertFalse((copy / "compare.lock").exists())

    def begin(self, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE):
        return subprocess.Popen([support.ANYTIME, "compare", *map(str, words), *FEW],
                                cwd=self.folder, stdout=stdout, stderr=stderr, text=True)

    def test_a_killed_comparison_ends_as_if_nothing_had_happened(self):
        words = ("fmb", "async", *SMALL, "--steps", 4000, "--world", "sim", "--repeats", 3)
        whole = self.whole(*words)
        for jobs in (1, 2):
            with self.subTest(jobs=jobs):
                out = self.folder / f"cut-{jobs}"
                process = self.begin(*words, "--jobs", jobs, "--out", out)
                support.wait_until((out / "fmb-1" / "result.json").exists, "the first run")
                process.kill()
                process.communicate()
                self.compare("--resume", out)
                found, expected = numbers(out), numbers(whole)
                self.assertTrue(found["complete"])
                self.assertEqual(found["entries"], expected["entries"])

    def test_a_stopped_comparison_says_at_once_that_it_stops_and_how_to_go_on(self):
        for jobs in (1, 2):
            with self.subTest(jobs=jobs):
                out = self.folder / f"out-{jobs}"
                process = self.begin("fmb", "amb", *SMALL, "--steps", 10 ** 9, "--world", "sim",
                                     "--jobs", jobs, "--out", out.name)
                table = out / "fmb-1" / "collect_stats.csv"
                support.wait_until(lambda: table.exists() and table.read_text().count("\n") > 9,
                                   "a run takes steps")
                process.terminate()
                said = process.communicate()[1]
                self.assertEqual(process.returncode, support.STOPPED, said)
                self.assertEqual(said.count("stopping after the current micro-batch"), 1, said)
                self.assertIn(f"`anytime compare --resume {out.name}` continues it", said)

    def assert_stopped(self, process, out, said, shown):
        """It ended with the table of its first run and how to resume it."""
        self.assertEqual(process.returncode, support.STOPPED, said)
        self.assertIn(f"`anytime compare --resume {out.name}` continues it", said)
        self.assertRegex(shown, r"(?m)^ *fmb ", said)
        document = json.loads((out / "compare.json").read_text())
        self.assertFalse(document["complete"])
        self.assertEqual([len(entry["runs"]) for entry in document["entries"]], [1, 0])

    def test_an_interrupt_during_a_run_shows_the_runs_that_are_complete(self):
        for world in ("local", "sim"):
            with self.subTest(world=world):
                out = self.folder / world
                process = self.begin("fmb:steps=5", f"async:steps={10 ** 9}", *SMALL, "--repeats",
                                     1, "--jobs", 1, "--world", world, "--out", out.name,
                                     stdout=subprocess.PIPE)
                table = out / "async-1" / "collect_stats.csv"
                support.wait_until(lambda: table.exists() and table.read_text().count("\n") > 9,
                                   "the second run takes steps")
                process.send_signal(signal.SIGINT)
                shown, said = process.communicate()
                self.assert_stopped(process, out, said, shown)

    def test_an_interrupt_between_two_runs_shows_the_runs_that_are_complete(self):
        """stderr is a pipe with room for the line of the first run, but not for that of the
        second. So when the first run is in compare.json, the second has not begun."""
        line = "compare: run 1 of 2, fmb, seed 1\n"
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"x" * (size - len(line) - 5))
        out = self.folder / "out"
        process = self.begin("fmb", "async", *SMALL, "--repeats", 1, "--jobs", 1, "--world", "sim",
                             "--out", out.name, stdout=subprocess.PIPE, stderr=writer)
        os.close(writer)
        found = out / "compare.json"
        support.wait_until(lambda: found.exists() and numbers(out)["entries"][0]["runs"],
                           "the first run is in compare.json")
        process.send_signal(signal.SIGINT)
        with open(reader, encoding="utf-8") as stream:
            said = stream.read().lstrip("x")
        shown = process.communicate()[0]
        self.assertEqual(said[:len(line)], line)
        self.assert_stopped(process, out, said, shown)
        self.compare("--resume", out)
        self.assertEqual(numbers(out)["entries"], numbers(self.whole(
            "fmb", "async", *SMALL, "--repeats", 1, "--world", "sim"))["entries"])

    def test_a_run_in_real_time_goes_on_from_its_checkpoint(self):
        out = self.folder / "out"
        words = ("fmb", *SMALL, "--steps", 100000, "--repeats", 1, "--checkpoint-every", 20)
        process = self.begin(*words, "--out", out)
        checkpoints = out / "fmb-1" / "checkpoint"
        support.wait_until(lambda: list(checkpoints.glob("step-*[1-9]*.safetensors")),
                           "a checkpoint")
        process.kill()
        process.communicate()
        document = json.loads((out / "compare.json").read_text())
        document["options"]["steps"] = max(  # or the test would take long
            int(path.stem.split("-")[1]) for path in checkpoints.iterdir() if path.suffix ==
            ".safetensors") + 30
        (out / "compare.json").write_text(json.dumps(document))
        self.compare("--resume", out)
        self.assertTrue((out / "fmb-1" / "events-2.bin").exists())
        run, = json.loads((out / "compare.json").read_text())["entries"][0]["runs"]
        self.assertEqual(run["steps"], document["options"]["steps"])

    def test_a_search_is_not_made_again(self):
        words = ("fmb", "async", *SMALL, "--world", "sim", "--repeats", 1, "--tune", "lr=0.01,0.1",
                 "--jobs", 1)
        whole = self.whole(*words)
        copy = self.cut(whole, ["tune/async-lr-0.1-2"], "fmb-1")
        ended = self.compare("--resume", copy)
        self.assertEqual(ended.err.count("tune: run "), 1, ended)
        self.assertEqual(ended.err.count("compare: run "), 1, ended)
        self.assertEqual(numbers(copy), numbers(whole))
        ended = self.compare("--resume", copy, "--repeats", 2, code=support.USAGE)
        self.assert_complaint(ended, "--repeats", "--tune")

    def test_more_repeats_can_be_added(self):
        more = ("fmb", "async", *SMALL, "--world", "sim", "--repeats", 3)
        whole = self.whole(*more)
        self.compare(*SIMULATED, *FEW, "--out", "short")
        self.compare("--resume", "short", "--repeats", 3)
        found, expected = numbers(self.folder / "short"), numbers(whole)
        self.assertEqual(found["entries"], expected["entries"])

    def test_a_measured_time_of_samples_is_not_measured_again(self):
        words = ("fmb", "amb", *SMALL[:-2], "--sample-time", "measure", "--world", "sim",
                 "--repeats", 2)
        whole = self.whole(*words)
        copy = self.cut(whole, ["amb-2"], "fmb-2")
        self.compare("--resume", copy)
        self.assertEqual(numbers(copy), numbers(whole))

    def test_a_sweep_goes_on_from_another_folder_with_its_own_files(self):
        (self.folder / "t.csv").write_text(
            "x,y,label\n" + "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(300)))
        words = ("--over", "lr=0.01,0.1", "--over", "batch=8,16", "--data", "t.csv", "--steps", 20,
                 "--world", "sim", "--workers", 2, "--sample-time", "1ms", "--repeats", 1)
        whole = self.whole(*words, verb="sweep")
        copy = self.cut(whole, ["lr-0.1-batch-16-1"], "lr-0.1-batch-8-1")
        (self.folder / "elsewhere").mkdir()
        ended = subprocess.run([support.ANYTIME, "sweep", "--resume", copy],
                               cwd=self.folder / "elsewhere", capture_output=True, text=True,
                               timeout=support.BOUND, check=False)
        self.assertEqual(ended.returncode, support.DONE, ended.stderr)
        self.assertIn("best: ", ended.stdout)
        self.assertEqual(numbers(copy), numbers(whole))

    def test_what_cannot_be_resumed_is_refused(self):
        whole = self.whole(*SIMULATED)
        before = (whole / "compare.json").read_text()
        for words, expected in ((("amb",), "takes no entries"), (("--lr", 1), "--lr cannot be"),
                                (("--repeats", 1), "less than before"),
                                (("--", "x"), "no programs"),
                                (("--out", "other"), "--out cannot be")):
            ended = self.compare("--resume", whole, *words, code=support.USAGE)
            self.assert_complaint(ended, expected)
        self.assertEqual((whole / "compare.json").read_text(), before)
        ended = self.compare("--resume", self.folder / "nowhere", code=support.MISSING)
        self.assert_complaint(ended, "not the folder of a comparison")
        self.assertFalse((self.folder / "nowhere").exists())

    def test_two_processes_do_not_write_to_one_comparison(self):
        out = self.folder / "out"
        process = self.begin("fmb", *SMALL, "--steps", 10 ** 9, "--world", "sim", "--out", out)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        support.wait_until((out / "compare.json").exists, "the comparison begins")
        ended = self.compare("--resume", out, code=support.USAGE)
        self.assert_complaint(ended, "is in use", str(process.pid))


class Page(support.TestCase):
    def test_a_comparison_writes_a_page_of_its_runs(self):
        out = self.folder / "out"
        ended = self.anytime("compare", *SIMULATED, "--out", out)
        self.assertIn(f"page: {out}/report.html\n", ended.out)
        text = (out / "report.html").read_text()
        for name in ("fmb-1", "fmb-2", "async-1", "async-2"):
            self.assertIn(f'"label":"{name}"', text)

    def test_without_plots_there_is_no_page(self):
        ended = self.anytime("compare", *SIMULATED, *FEW, "--out", "out")
        self.assertNotIn("page:", ended.out)
        self.assertFalse((self.folder / "out" / "report.html").exists())


if __name__ == "__main__":
    support.main()
