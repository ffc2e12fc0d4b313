#!/usr/bin/env python3
"""Output on a terminal: resizing, many workers, narrow windows, the summary at the end."""
import os
import signal

import support
from support.screen import Terminal

ENDLESS = ("--data", "synthetic:2000,20,5", "--batch", 32, "--sample-time", "100us", "--steps",
           10 ** 9, "--eval-every", 0)
TITLE = "fmb · softmax"


class LiveBlock(support.TestCase):
    def run_on(self, *arguments, **options):
        self.runs += 1
        return Terminal(self, "train", *arguments, "--run", f"run{self.runs}", **options)

    def stop(self, terminal):
        terminal.process.send_signal(signal.SIGINT)
        code, _ = terminal.wait()
        self.assertEqual(code, support.STOPPED, terminal.screen.text())

    def assert_fits(self, screen):
        """The last column stays free: terminals disagree on clearing after a character there."""
        for row in screen.rows:
            self.assertLess(len(row), screen.columns, screen.text())

    def test_a_resized_window_shows_one_block_that_fits(self):
        terminal = self.run_on(*ENDLESS, "--workers", 3, columns=100)
        terminal.wait_shown(lambda screen: "░ idle" in screen.text() and "elapsed" in screen.text(),
                            "the complete title is shown")
        for columns, rows, shown, hidden in ((60, 24, "3 █", "░ idle"),
                                             (30, 10, "3 █", "░  step"),
                                             (120, 40, "░ idle", "\0")):
            terminal.resize(columns, rows)
            terminal.wait_shown(lambda screen: shown in screen.text() and
                                hidden not in screen.text(), f"drawn for {columns} columns")
            self.assertEqual(terminal.screen.count(TITLE), 1, terminal.screen.text())
            self.assert_fits(terminal.screen)
        self.stop(terminal)
        self.assertEqual(terminal.screen.count(TITLE), 1, terminal.screen.text())

    def test_the_block_fits_into_a_window_with_few_rows(self):
        terminal = self.run_on(*ENDLESS, "--workers", 8, columns=40, rows=6)
        terminal.wait_shown(lambda screen: "7-8 " in screen.text(), "groups of workers")
        self.assertLess(len(terminal.screen.rows), 7, terminal.screen.text())
        terminal.resize(40, 3)
        terminal.wait_shown(lambda screen: TITLE not in screen.text(), "only the progress line")
        self.assertIn("step ", terminal.screen.text())
        self.stop(terminal)

    def test_a_thousand_workers_are_drawn_in_groups(self):
        terminal = Terminal(self, "simulate", "--model", "none:1000", "--workers", 1000, "--batch",
                            8, "--straggler", "exp:0.001,0.01", "--sample-time", "1ms", "--steps",
                            10 ** 9, "--record", "none", "--faults", "die:7@50ms", "--run", "run1",
                            "--respawn", "no", "--data", "synthetic:2000,20,5")
        terminal.wait_shown(lambda screen: "1 lost" in screen.text() and "all workers: compute" in
                            screen.text() and "967-1000" in screen.text(), "groups of workers")
        self.assertLess(len(terminal.screen.rows), 24, terminal.screen.text())
        self.assertIn("×", terminal.screen.text())
        self.assert_fits(terminal.screen)
        self.stop(terminal)

    def test_very_narrow_windows_work(self):
        for columns in (39, 20, 8, 2):
            with self.subTest(columns=columns):
                terminal = self.run_on(*ENDLESS, "--workers", 2, columns=columns)
                terminal.wait_shown(lambda screen: len(screen.rows) > 2, "a block")
                self.assert_fits(terminal.screen)
                self.stop(terminal)

    def test_the_environment_selects_ascii_and_colors(self):
        short = (*support.SMALL, "--workers", 2, "--steps", 50)
        for environment, is_ascii, has_color in (({}, False, True), ({"LANG": "C"}, True, True),
                                                  ({"NO_COLOR": "1"}, False, False),
                                                  ({"LC_ALL": "POSIX", "NO_COLOR": "1"}, True,
                                                   False)):
            with self.subTest(**environment):
                terminal = self.run_on(*short, **environment)
                self.assertEqual(terminal.wait()[0], support.DONE)
                self.assertEqual(terminal.screen.text().isascii(), is_ascii)
                self.assertEqual(terminal.screen.colored, has_color)
                self.assertIn("step 50/50", terminal.screen.text())

    def test_quiet_prints_nothing_to_the_terminal(self):
        terminal = self.run_on(*support.SMALL, "--workers", 2, "--sample-time", "10us", "--steps",
                               50, "--quiet")
        code, out = terminal.wait()
        self.assertEqual((code, terminal.screen.text().strip()), (support.DONE, ""))
        self.assertIn("50 steps", out)
        self.assertNotIn("compute", out)


class Summary(support.TestCase):
    def workers_table(self, *arguments):
        """Header and rows of the table at the end, the rows keyed by their first column."""
        ended = self.train(*support.SMALL, "--steps", 50, *arguments)
        lines = ended.out.splitlines()
        head = next(i for i, line in enumerate(lines) if line.startswith("worker "))
        rows = [line.split() for line in lines[head + 2:lines.index("", head)]]
        self.assertIn("of the workers' time useful", lines[0])
        self.assertTrue(lines[-1].startswith("written to "), ended)
        return lines[head].split(), {row[0]: row[1:] for row in rows}, ended

    def test_the_summary_shows_where_the_time_went(self):
        head, rows, ended = self.workers_table("--workers", 3, "--straggler", "exp:0.001,0.002")
        self.assertEqual(head, ["worker", "rounds", "used", "dropped", "compute", "sleep", "idle"])
        self.assertEqual(list(rows), ["1", "2", "3", "all"])
        self.assertEqual(rows["all"][:3], ["150", "4800", "0"])
        for row in ended.result["worker"]:
            self.assertEqual(rows[str(row["id"])][:3],
                             [str(row[key]) for key in ("rounds", "used", "dropped")])
        shares = [int(share) for share in rows["all"][3:9:2]]
        self.assertAlmostEqual(sum(shares), 100, delta=2)

    def test_many_workers_are_shortened_to_slowest_and_fastest(self):
        speeds = ",".join(str(1 + worker % 20 / 10) for worker in range(40))
        _, rows, _ = self.workers_table("--workers", 40, "--world", "sim", "--straggler",
                                        f"speed:{speeds}")
        self.assertEqual(list(rows), ["20", "40", "19", "39", "..", "2", "22", "1", "21", "all"])
        self.assertEqual(rows[".."], ["32", "more"])
        self.assertEqual(rows["all"][0], "2000")

    def test_logs_have_plain_lines(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 50)
        self.assertNotIn("\x1b", ended.err + ended.out)
        self.assertNotIn("\r", ended.err + ended.out)
        self.assertRegex(ended.err, r"(?m)^step 50/50  100%")


class Resources(support.TestCase):
    def test_resource_usage_is_in_table_and_result(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 200, "--resources", "10ms",
                           "--sample-time", "10us")
        rows = ended.table("resource_stats.csv")
        self.assertEqual({row["node"] for row in rows}, {"hub", "1", "2", "evaluator"})
        resources = ended.result["resources"]
        for node, used in (("hub", resources["hub"]), ("1", resources["worker"][0]),
                            ("2", resources["worker"][1])):
            mine = [row for row in rows if row["node"] == node]
            self.assertEqual(len({row["pid"] for row in mine}), 1)
            cpu = [float(row["cpu_seconds"]) for row in mine]
            self.assertEqual(cpu, sorted(cpu))
            self.assertAlmostEqual(used["cpu_seconds"], cpu[-1], places=5)
            self.assertGreater(used["peak_bytes"], 100_000)
        self.assertEqual([float(row["time"]) for row in rows],
                         sorted(float(row["time"]) for row in rows))
        replay = self.anytime("replay", ended.folder)
        self.assertIn("every action agrees", replay.out)

    def test_usage_of_a_replaced_worker_is_summed(self):
        run = self.start(*ENDLESS, "--workers", 2, "--resources", "20ms")
        run.wait_steps(20)
        victim = run.workers()[1]["pid"]
        os.kill(victim, signal.SIGKILL)
        run.wait_until(lambda: run.workers()[1]["pid"] not in (victim, None), "it is replaced")
        steps = run.steps()
        run.wait_steps(steps + 20)
        run.signal(signal.SIGINT)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        mine = [row for row in ended.table("resource_stats.csv") if row["node"] == "1"]
        last = {row["pid"]: float(row["cpu_seconds"]) for row in mine}
        self.assertEqual(len(last), 2, last)
        used = ended.result["resources"]["worker"][0]["cpu_seconds"]
        self.assertAlmostEqual(used, sum(last.values()), places=4)

    def test_usage_is_not_sampled_when_it_is_not_recorded(self):
        for options in (("--record", "none"), ("--resources", 0), ("--world", "sim")):
            with self.subTest(options=options):
                ended = self.train(*support.SMALL, "--workers", 2, "--steps", 20, *options)
                self.assertIsNone(ended.result["resources"])
                self.assertFalse((ended.folder / "resource_stats.csv").exists())
        ended = self.train(*support.SMALL, "--resources", "1ms", code=support.USAGE)
        self.assert_complaint(ended, "--resources", "10ms")


if __name__ == "__main__":
    support.main()
