#!/usr/bin/env python3
"""Pages for everybody: names, contrast, keyboard and narrow windows of all pages, in a browser."""
import pathlib

import support
from support import accessibility, browser, dashboard

RUN = ("--data", "synthetic:1500,12,3", "--batch", "16", "--micro-batch", "4", "--sample-time",
       "1ms", "--eval-every", "20", "--workers", 4, "--straggler", "exp:0,8ms", "--steps", 60,
       "--quiet")
LIVE = (*RUN[:-3], "--steps", 10 ** 9, "--sample-time", "100us", "--quiet")
BOOK = pathlib.Path(__file__).parents[2] / "docs" / "book" / "book.html"
DRAWN = f"{browser.CHARTS_DRAWN} > 3"
HINTS = """[...document.querySelectorAll(".scroll")].filter((e) => e.checkVisibility())
    .map((e) => [e.scrollWidth > e.clientWidth + 1,
                 !e.previousSibling.hidden && e.tabIndex === 0])"""


class Pages(dashboard.TestCase):
    """Every page, light and dark, wide and narrow."""

    maxDiff = None

    def simulate(self, name, *words):
        self.anytime("simulate", *RUN, *words, "--run", name)
        return self.folder / name

    def report(self, *words):
        self.anytime("report", *words, "--out", "out")
        return (self.folder / "out" / "report.html").as_uri()

    def open_page(self, address, ready):
        page = self.enterContext(browser.open())
        page.visit(address)
        page.wait_for(ready)
        page.settle()
        return page

    def check(self, address, ready="1", keyboard=True):
        """All checks; the page, for those that follow."""
        page = self.open_page(address, ready)
        findings = accessibility.check(page, keyboard=keyboard)
        findings += accessibility.check(page, "dark", keyboard=False)
        page.resize(400, 800, mobile=True)
        findings += accessibility.check(page, keyboard=False)
        findings += accessibility.check_reflow(page)
        self.assertEqual(sorted(set(findings)), [])
        page.resize(400, 800, mobile=True)
        page.settle()
        return page

    def check_hints(self, page):
        """Tables that are cut say so, and can be scrolled with the keyboard."""
        tables = page.wait_for(HINTS)
        self.assertIn(True, [cut for cut, _ in tables], "no table is wider than a phone")
        for cut, said in tables:
            self.assertEqual(cut, said)

    def test_a_report_of_one_run(self):
        page = self.check(self.report(self.simulate("one")), DRAWN)
        self.check_hints(page)

    def test_a_report_of_several_runs(self):
        runs = [self.simulate(f"{strategy}-{seed}", "--strategy", strategy, "--seed", seed)
                for strategy in ("fmb", "amb") for seed in (1, 2)]
        self.check_hints(self.check(self.report(*runs), DRAWN))

    def test_the_live_page_of_a_run_that_has_ended(self):
        self.check(self.watch(self.simulate("one")).url, DRAWN, keyboard=False)

    def test_the_live_page_of_a_running_run(self):
        """While updates arrive; paused for the keyboard, whose stops come and go with the data."""
        run = self.start(*LIVE)
        page = self.open_page(self.watch(run.folder).url, DRAWN)
        page.press("p")
        page.wait_for("!Anytime.live.busy && !Anytime.live.timer")
        self.assertEqual(accessibility.check(page), [])

    def test_advice(self):
        self.anytime("advise", self.simulate("one"), "--html", "advice.html")
        self.check((self.folder / "advice.html").as_uri())

    def test_the_book(self):
        self.check(BOOK.as_uri(), keyboard=False)  # it has nothing but text and links


if __name__ == "__main__":
    dashboard.need()
    browser.need()
    support.main()
