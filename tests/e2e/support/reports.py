"""Simulated runs and their reports, for tests of pages."""
import json

import support
from support import browser

RUN = ("--data", "synthetic:1500,12,3", "--batch", "16", "--micro-batch", "4", "--sample-time",
       "1ms", "--eval-every", "20", "--quiet")
SLOW = ("--workers", "4", "--straggler", "speed:1,1,1,2")


class TestCase(support.TestCase):
    """Runs and their reports in a temporary folder."""

    def simulate(self, name, *words):
        self.anytime("simulate", *RUN, *words, "--run", name)
        return self.folder / name

    def report(self, *words):
        """Writes a report; returns the path of its page."""
        self.anytime("report", *words, "--out", "out")
        return self.folder / "out" / "report.html"

    def visit(self, tab, page):
        """Shows a page, and waits until its charts are drawn."""
        tab.visit(page.as_uri())
        tab.wait_for(f"{browser.CHARTS_DRAWN} > 3")
        tab.settle()

    def text(self, tab, selector):
        return tab.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")
