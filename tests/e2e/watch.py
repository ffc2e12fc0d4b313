#!/usr/bin/env python3
"""The page of `anytime watch` in a real browser, during and after a run."""
import os
import pathlib
import signal

import support
from support import browser, dashboard

LIVE = ("--data", "synthetic:4000,20,5", "--batch", "32", "--micro-batch", "4", "--quiet",
        "--strategy", "amb", "--workers", 4, "--sample-time", "100us", "--eval-every", 40,
        "--straggler", "exp:0,1ms", "--steps", 10 ** 9)
ENDED = (*support.SMALL, "--quiet", "--workers", 2, "--steps", 40)
SCREENSHOTS = pathlib.Path.cwd() / "screenshots"  # kept in the build folder for inspection

STEPS = "((Anytime.live.runs[0] || {}).summary || {state: {steps: 0}}).state.steps"
STATUS = "document.querySelector('.status').textContent"
NOTICES = "document.querySelector('.notices').textContent"
FITTING = ("[...document.querySelectorAll('section:not([hidden]) .chart:not([hidden]) "
           ".plot')].every((plot) => "
           "Math.abs(plot.querySelector('canvas').clientWidth - plot.clientWidth) < 2)")


class Live(dashboard.TestCase):
    """Contents of the page."""

    def open_page(self, board):
        """The dashboard in a browser; at the end, no error may have been logged and no other
        host contacted."""
        page = self.enterContext(browser.open())
        page.visit(board.url)
        self.addCleanup(page.check_quiet, {f"{board.host}:{board.port}"})
        return page

    def screenshot(self, page, name, **options):
        SCREENSHOTS.mkdir(exist_ok=True)
        page.settle()
        page.screenshot(SCREENSHOTS / f"{name}.png", **options)

    def test_a_growing_run_is_shown_and_a_killed_worker_appears_as_lost(self):
        run = self.start(*LIVE)
        page = self.open_page(self.watch(run.folder))
        page.wait_for(f"{STEPS} > 20 && {browser.CHARTS_DRAWN} > 5")
        steps = page.evaluate(STEPS)
        points = page.evaluate("Anytime.live.page.curves[0].series[0].curve.x.length")
        page.wait_for(f"{STEPS} > {steps + 20}")
        page.wait_for(f"Anytime.live.page.curves[0].series[0].curve.x.length > {points}")
        self.assertIn("live", page.evaluate(STATUS))

        os.kill(run.workers()[2]["pid"], signal.SIGKILL)
        page.wait_for("/worker 2 was lost: killed by signal 9/.test("
                      "(document.querySelector('.log .lost') || {}).textContent)")
        page.wait_for("/worker 2 rejoined/.test(document.querySelector('.log').textContent)")
        page.wait_for("!document.querySelector('.timeline').hidden")
        self.screenshots(page)

        run.signal(signal.SIGINT)
        run.wait()
        page.wait_for(f"/has ended/.test({NOTICES})")
        page.wait_for(f"/finished/.test({STATUS})")
        page.wait_for("Anytime.live.runs[0].result")
        self.screenshot(page, "ended", whole=False)

    def screenshots(self, page):
        """Light and dark, wide and narrow; nothing is wider than the window."""
        self.screenshot(page, "light")
        self.assertTrue(page.evaluate(FITTING), "a chart does not fill its container")
        page.prefer("dark")
        self.screenshot(page, "dark")
        page.resize(390, 844, mobile=True)
        self.screenshot(page, "narrow", whole=False)
        page.evaluate("document.getElementById('workers').scrollIntoView()")
        self.screenshot(page, "narrow-workers", whole=False)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 390)
        page.resize(1360, 900)
        page.prefer("light")

    def test_pause_and_time_range_by_keyboard(self):
        run = self.start(*LIVE)
        page = self.open_page(self.watch(run.folder))
        page.wait_for(f"{STEPS} > 20 && {browser.CHARTS_DRAWN} > 5")
        page.press("p")
        page.wait_for("!Anytime.live.busy && !Anytime.live.timer")
        self.assertIn("paused", page.evaluate(STATUS))
        steps = page.evaluate(STEPS)
        page.wait_for("Anytime.live.outdated")  # there are new data, which are not fetched
        self.assertEqual(page.evaluate(STEPS), steps)
        page.press("p")
        page.wait_for(f"{STEPS} > {steps}")

        for _ in range(3):
            page.press("w")
        shown = "Anytime.live.page.curves[0].graph.xAxisRange()"
        page.wait_for("Anytime.live.runs[0].summary.state.at > 11")
        page.wait_for(f"Math.abs({shown}[1] - {shown}[0] - 10) < 1e-6")
        self.assertGreater(page.evaluate("Anytime.live.page.timeline.view[0]"), 0)
        page.press("w")
        page.wait_for(f"{shown}[1] - {shown}[0] > 10")

    def test_the_token_is_removed_from_the_url_and_reloading_works(self):
        board = self.watch(self.train(*ENDED).folder)
        page = self.open_page(board)
        page.wait_for(f"{STEPS} == 40")
        page.wait_for(f"/finished/.test({STATUS})")  # a run that has ended is not live
        self.assertNotIn("token", page.evaluate("location.href"))
        page.evaluate("document.body.id = 'before'")
        page.call("Page.reload")
        page.wait_for("document.readyState == 'complete' && document.body.id != 'before'")
        page.wait_for(f"{STEPS} == 40")

    def test_several_runs_one_of_which_does_not_exist_yet(self):
        first = self.train(*ENDED).folder
        second = self.folder / "run2"
        page = self.open_page(self.watch(first, second))
        page.wait_for(f"/run2: the run folder does not exist yet/.test({NOTICES})")
        page.wait_for(f"{STEPS} == 40")
        self.train(*ENDED, "--strategy", "amb", "--time-limit", "5ms")
        page.wait_for("Anytime.live.runs[1].result && Anytime.live.page.runs.length == 2")
        page.wait_for("document.querySelectorAll('#summary tbody tr').length == 2")
        self.screenshot(page, "two", whole=False)

    def test_a_run_without_a_log_shows_its_result(self):
        page = self.open_page(self.watch(self.train(*ENDED, "--record", "none").folder))
        page.wait_for(f"/no event log/.test({NOTICES})")
        page.wait_for("/40/.test(document.getElementById('summary').textContent)")

    def test_markup_in_a_name_stays_text(self):
        folder = self.folder / "<img src=x onerror=document.title='owned'>"
        self.train(*ENDED).folder.rename(folder)
        page = self.open_page(self.watch(folder))
        page.wait_for(f"{STEPS} == 40")
        self.assertEqual(page.evaluate("document.images.length"), 0)
        self.assertIn("<img src=x", page.evaluate("document.querySelector('h1').textContent"))

    def test_when_the_server_stops_the_page_says_so_and_keeps_its_data(self):
        board = self.watch(self.train(*ENDED).folder)
        page = self.open_page(board)
        page.wait_for(f"{STEPS} == 40")
        self.assertEqual(board.stop(), support.DONE)
        page.wait_for(f"/has stopped/.test({STATUS})")
        self.assertGreater(page.evaluate(browser.CHARTS_DRAWN), 5)


if __name__ == "__main__":
    dashboard.need()
    browser.need()
    support.main()
