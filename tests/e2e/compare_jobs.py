#!/usr/bin/env python3
"""`compare` and `sweep` with simulated runs at the same time: the same results for any --jobs."""
import json
import signal
import subprocess

import support

SIMULATED = ("--world", "sim", "--model", "none:1000", "--workers", 20, "--sample-time", "1ms",
             "--straggler", "niagara", "--plots", "none")


class Jobs(support.TestCase):
    def compare(self, name, *arguments, verb="compare", code=0):
        ended = self.anytime(verb, *arguments, "--out", self.folder / name, code=code)
        return ended, self.folder / name

    def results(self, name, *arguments, **options):
        """Entries of compare.json, and per run what does not depend on how long it really took."""
        _, folder = self.compare(name, *arguments, **options)
        entries = json.loads((folder / "compare.json").read_text())["entries"]
        runs = {}
        for path in sorted(folder.glob("*/result.json")):
            result = json.loads(path.read_text())
            del result["wall_seconds"], result["command"], result["options"]
            runs[path.parent.name] = result
        self.assertTrue(runs)
        return entries, runs

    def test_the_number_of_jobs_changes_nothing(self):
        one, *others = (self.results(f"jobs{jobs}", "fmb", "amb:batch=32", "async", *SIMULATED,
                                     "--steps", 60, "--repeats", 3, "--jobs", jobs)
                        for jobs in (1, 2, 7, 100))
        for other in others:
            self.assertEqual(one, other)

    def test_a_sweep_runs_at_the_same_time_too(self):
        sweep = ("--strategy", "fmb", "--over", "batch=8,16,32", *SIMULATED, "--steps", 20)
        self.assertEqual(self.results("one", *sweep, "--jobs", 1, verb="sweep"),
                         self.results("all", *sweep, verb="sweep"))

    def test_the_error_of_a_run_comes_with_its_name(self):
        ended, _ = self.compare("broken", "fmb", "amb:faults=die:1@1ms,label=dies", *SIMULATED,
                                "--workers", 1, "--no-respawn", "--steps", 9, "--jobs", 2,
                                code=support.FAILED)
        self.assertIn("dies, seed 1", ended.err)

    def test_real_runs_have_the_machine_to_themselves(self):
        ended, folder = self.compare("real", "fmb", *support.SMALL, "--workers", 1, "--steps", 1,
                                     "--jobs", 2, code=support.USAGE)
        self.assertIn("only simulated runs", ended.err)
        self.assertFalse(folder.exists())

    def test_ctrl_c_ends_all_jobs(self):
        folder = self.folder / "stopped"
        command = [support.ANYTIME, "compare", "fmb", "amb", *map(str, SIMULATED), "--steps",
                   "1000000000", "--record", "none", "--jobs", "2", "--out", str(folder)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              text=True) as process:
            support.wait_until(lambda: len(list(folder.glob("*-1/run.lock"))) == 2, "two runs")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=support.BOUND)
        self.assertEqual(process.returncode, support.STOPPED, said)
        self.assertIn("stopped by a signal", said)


if __name__ == "__main__":
    support.main()
