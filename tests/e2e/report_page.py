#!/usr/bin/env python3
"""The page of `anytime report` in a real browser, and the correctness of its blame."""
import json
import os
import pathlib
import re

import support
from support import browser, reports
from support.reports import RUN, SLOW

SCREENSHOTS = pathlib.Path.cwd() / "screenshots"  # kept in the build folder for inspection


def data_of(path):
    """The data embedded in the page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>',
                      pathlib.Path(path).read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found.group(1))


class Reports(reports.TestCase):
    def workers(self, page):
        return data_of(page)["runs"][0]["story"]["workers"]


class Blame(Reports):
    """A worker that is slower by a known factor is blamed for the extra time."""

    def check(self, page, steps):
        *others, slow = self.workers(page)
        usual = sorted(worker["compute"] for worker in others)[len(others) // 2]
        induced = slow["compute"] - usual
        self.assertGreater(induced, 0.9 * steps * 16e-3)
        self.assertLess(abs(slow["waited"] - induced), 0.05 * induced, (slow, induced))
        for worker in others:
            self.assertLess(worker["waited"], 0.05 * induced, worker)

    def test_in_virtual_time(self):
        self.simulate("run", *SLOW, "--steps", 200)
        self.check(self.report("run"), 200)

    def test_in_virtual_time_with_a_slow_network(self):
        self.simulate("run", *SLOW, "--steps", 200, "--latency", "3ms")
        self.check(self.report("run"), 200)

    def test_in_real_time(self):
        run = self.train(*RUN, *SLOW, "--steps", 100)
        self.check(self.report(run.folder), 100)

    def test_with_a_bound_on_staleness(self):
        self.simulate("run", *SLOW, "--strategy", "ssp", "--steps", 400)
        *others, slow = self.workers(self.report("run"))
        waiting = sum(worker["idle"] for worker in others) / len(others)
        self.assertGreater(waiting, 0)
        self.assertLess(abs(slow["waited"] - waiting), 0.05 * waiting)

    def test_wasted_work_is_reported_separately(self):
        self.simulate("run", *SLOW, "--strategy", "backup", "--steps", 200)
        page = self.report("run")
        *others, slow = self.workers(page)
        self.assertEqual([worker["waited"] for worker in (*others, slow)], [0] * 4)
        self.assertLess(abs(slow["wasted"] - slow["compute"]), 0.05 * slow["compute"])


class Files(Reports):
    """Files in the folder of a report."""

    def test_the_table_is_also_written_as_markdown(self):
        self.simulate("a_run", *SLOW, "--steps", 40)
        self.report("a_run")
        title, _, head, rule, row, *_ = (self.folder / "out/report.md").read_text().splitlines()
        self.assertEqual(title, "**softmax on synthetic:1500,12,3**")
        self.assertTrue(head.startswith("| run | strategy |"), head)
        self.assertEqual(head.count("|"), rule.count("|"))
        self.assertTrue(row.startswith("| a\\_run | fmb | sim | 40 |"), row)

    def test_the_page_of_a_thousand_workers_and_steps_is_small(self):
        steps = 20 if support.is_sanitized() else 1000
        self.simulate("run", "--model", "none:1000", "--workers", 1000, "--steps", steps,
                      "--straggler", "exp:0,4ms")
        page = self.report("run")
        self.assertLess(page.stat().st_size, 5_000_000)
        self.assertEqual(len(self.workers(page)), 1000)
        if not browser.find():
            self.skipTest("chromium is not installed")
        with browser.open() as tab:
            self.visit(tab, page)
            SCREENSHOTS.mkdir(exist_ok=True)
            tab.screenshot(SCREENSHOTS / "thousand.png")
            tab.check_quiet()


class Looks(Reports):
    """Rendered pages."""

    def setUp(self):
        super().setUp()
        if not browser.find():
            self.skipTest("chromium is not installed")
        SCREENSHOTS.mkdir(exist_ok=True)

    def test_one_run_light_dark_and_narrow(self):
        run = self.train(*RUN, *SLOW, "--steps", 60)
        with browser.open() as tab:
            self.visit(tab, self.report(run.folder))
            self.assertRegex(self.text(tab, ".finding"), "worker 4 caused [0-9.]+ % of that")
            rows = tab.evaluate("document.querySelectorAll('#workers tbody tr').length")
            self.assertEqual(rows, 4)
            sections = tab.evaluate("[...document.querySelectorAll('nav a')].map(a => a.text)")
            for wanted in ("Summary", "Training curves", "Workers", "Histograms",
                           "Samples used and dropped", "Resource usage", "Events", "Settings"):
                self.assertIn(wanted, sections)
            tab.screenshot(SCREENSHOTS / "light.png")
            tab.prefer("dark")
            tab.settle()
            ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            self.assertLess(sum(map(int, re.findall(r"\d+", ground))), 150, ground)
            tab.screenshot(SCREENSHOTS / "dark.png")
            tab.resize(360, 740, mobile=True)
            tab.settle()
            self.assertLessEqual(tab.evaluate("document.documentElement.scrollWidth"), 360)
            tab.screenshot(SCREENSHOTS / "narrow.png")
            tab.check_quiet()
            self.assertEqual(len(tab.requests), 1, tab.requests)

    def test_repeated_runs_are_shown_as_bands(self):
        for strategy in ("fmb", "amb"):
            for seed in (1, 2, 3):
                self.simulate(f"{strategy}-{seed}", "--workers", 4, "--steps", 60, "--straggler",
                              "exp:0,8ms", "--strategy", strategy, "--seed", seed)
        folders = sorted(path.name for path in self.folder.iterdir())
        with browser.open() as tab:
            self.visit(tab, self.report(*folders))
            legend = self.text(tab, "#curves .legend")
            self.assertIn("amb: mean of 3 runs and 95 % confidence interval", legend)
            self.assertIn("fmb: mean of 3 runs and 95 % confidence interval", legend)
            self.assertEqual(
                tab.evaluate("document.querySelectorAll('#summary tbody tr').length"), 6 + 2)
            self.assertEqual(tab.evaluate("Anytime.page.curves[0].series.length"), 2)
            tab.screenshot(SCREENSHOTS / "bands.png")
            tab.evaluate("Anytime.page.choose(5)")
            self.assertEqual(tab.evaluate("Anytime.page.timeline.timeline.rows.length"), 4)
            tab.check_quiet()

    def test_keys_pan_and_zoom(self):
        self.simulate("run", *SLOW, "--steps", 60)
        window = "Anytime.page.curves[0].graph.xAxisRange()"
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            for _ in range(60):  # until the first chart has the focus
                tab.press("Tab")
                if tab.evaluate("document.activeElement.classList.contains('chart')"):
                    break
            whole = tab.evaluate(window)
            tab.press("ArrowUp")
            zoomed = tab.evaluate(window)
            self.assertLess(zoomed[1] - zoomed[0], whole[1] - whole[0])
            tab.press("ArrowRight")
            self.assertGreater(tab.evaluate(window)[0], zoomed[0])
            tab.press("0")
            self.assertEqual(tab.evaluate(window), whole)
            tab.evaluate("document.querySelector('.timeline canvas').focus()")
            tab.press("ArrowUp")
            low, high = tab.evaluate("Anytime.page.timeline.view")
            self.assertLess(high - low, 1)
            tab.press("Escape")
            self.assertEqual(tab.evaluate("Anytime.page.timeline.view"), [0, 1])
            tab.check_quiet()

    def test_markup_in_names_is_shown_as_text(self):
        name = "<img src=x onerror=alert(1)>&amp;"
        self.simulate("run", *SLOW, "--steps", 40)
        os.rename(self.folder / "run", self.folder / name)
        with browser.open() as tab:
            self.visit(tab, self.report(name))
            self.assertEqual(self.text(tab, "h1"), name)
            self.assertEqual(tab.evaluate("document.images.length"), 0)
            tab.check_quiet()

    def test_runs_with_less_recorded_show_the_available_data(self):
        self.simulate("steps", *SLOW, "--steps", 40, "--record", "steps")
        self.simulate("none", *SLOW, "--steps", 40, "--record", "none")
        with browser.open() as tab:
            self.visit(tab, self.report("steps", "none"))
            rows = tab.evaluate("document.querySelectorAll('#summary tbody tr').length")
            self.assertEqual(rows, 2)
            self.assertTrue(tab.evaluate("document.getElementById('workers').hidden"))
            self.assertEqual(tab.evaluate("Anytime.page.curves[0].series.length"), 1)
            tab.check_quiet()


if __name__ == "__main__":
    support.main()
