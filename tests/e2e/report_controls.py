#!/usr/bin/env python3
"""The page of `anytime report` in a real browser: labels, legends, and what a reader can choose."""
import json

import support
from support import browser, reports
from support.reports import RUN, SLOW


class Controls(reports.TestCase):
    """Rendered pages."""

    def test_axes_are_labeled_and_readouts_do_not_repeat_titles(self):
        self.simulate("run", *SLOW, "--steps", 60)
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            charts = tab.evaluate("""[...document.querySelectorAll(
                'section:not([hidden]) .chart:not([hidden])')].map((chart) =>
                           [chart.querySelector('h3').textContent,
                            chart.querySelector('.dygraph-xlabel').textContent,
                            chart.querySelector('.readout .at')?.textContent])""")
            axes = {title: axis for title, axis, _ in charts}
            self.assertEqual(axes["Training loss vs. time"], "virtual time")
            self.assertEqual(axes["Training loss vs. step"], "step")
            self.assertEqual(axes["Compute time per round"],
                             "compute time per round, including delay")
            for title, axis, about in charts:
                self.assertTrue(axis, title)
                if about:
                    self.assertNotIn(about.lower(), title.lower())

    def test_smoothing_ends_at_the_training_loss_of_the_summary(self):
        self.simulate("run", *SLOW, "--steps", 200)
        last = "Anytime.page.curves[0].series[0].curve.y.at(-1)[1]"
        summary = "Anytime.page.runs[0].summary.state.loss"
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            self.assertIn("half-life of 50 steps", self.text(tab, "#summary .note:not(.hint)"))
            wanted = tab.evaluate(summary)
            self.assertGreater(abs(tab.evaluate(last) - wanted), 1e-4 * wanted)
            tab.evaluate("""(() => {
                const select = document.getElementById('smoothing');
                select.value = '50';
                select.dispatchEvent(new Event('change'));
            })()""")
            self.assertLess(abs(tab.evaluate(last) - wanted), 1e-5 * wanted)
            tests = "Anytime.page.curves[1].series[0].curve.y.at(-1)[1]"
            accuracy = tab.evaluate("Anytime.page.runs[0].summary.state.test.accuracy")
            self.assertAlmostEqual(tab.evaluate(tests), accuracy, places=5)
            tab.check_quiet()

    def test_a_single_evaluation_is_a_visible_point(self):
        self.simulate("run", *SLOW, "--steps", 20, "--eval-every", 10 ** 6)
        chart = "Anytime.page.curves[1]"
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            self.assertEqual(tab.evaluate(f"{chart}.series[0].curve.x.length"), 1)
            low, high = tab.evaluate(f"{chart}.graph.xAxisRange()")
            at = tab.evaluate(f"{chart}.series[0].curve.x[0]")
            self.assertLess(at, high)
            started = tab.evaluate("Anytime.page.runs[0].summary.steps.t[0]")
            self.assertLess(0, low, "no time before the run")
            self.assertLessEqual(low, started, "the axis begins with that of the training loss")
            inked = tab.evaluate("""(() => {
                const canvas = %s.plot.querySelector('canvas');
                const {data} = canvas.getContext('2d').getImageData(
                    60, 0, canvas.width - 70, canvas.height - 50);
                const [r, g, b] = [0x0b, 0x72, 0xd0]; // the first color, light
                let count = 0;
                for (let i = 0; i < data.length; i += 4)
                    count += data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g)
                        + Math.abs(data[i + 2] - b) < 30;
                return count;
            })()""" % chart)
            self.assertGreater(inked, 12, "a mark has more than a dozen pixels")

    def test_nothing_is_cut_or_broken_in_a_narrow_window(self):
        self.simulate("run", *SLOW, "--steps", 20)
        with browser.open(800, 900) as tab:
            self.visit(tab, self.report("run"))
            cut = "(() => { const e = document.querySelector('%s'); " \
                "return e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight; })()"
            self.assertFalse(tab.evaluate(cut % "nav"))
            tab.resize(400, 900)
            tab.settle()
            self.assertFalse(tab.evaluate(cut % ".timeline .readout"))
            words = tab.evaluate("[...document.querySelectorAll('#settings .word')]"
                                 ".map((word) => [word.textContent, word.clientHeight])")
            self.assertIn("--steps", [word for word, _ in words])
            self.assertEqual(len({height for _, height in words}), 1, "a word is on two lines")

    def test_what_never_varies_has_no_histogram(self):
        self.simulate("run", *SLOW, "--steps", 20, "--strategy", "fmb")
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            titles = tab.evaluate("[...document.querySelectorAll('#histograms .chart:not([hidden]) "
                                  "h3')].map((title) => title.textContent)")
            self.assertIn("Compute time per round", titles)
            self.assertNotIn("Gradients per step", titles)

    def test_places_without_a_worker_have_no_row(self):
        self.simulate("run", *SLOW, "--steps", 20)
        with browser.open() as tab:
            self.visit(tab, self.report("run"))
            rows = tab.evaluate("Anytime.timelineOf({timeline: {rows: [{first: 1}, {first: 2}]}, "
                                "workers: [{first: 2}]}).rows")
            self.assertEqual(rows, [{"first": 2}])

    def test_runs_and_curves_can_be_hidden(self):
        for strategy in ("fmb", "amb"):
            for seed in (1, 2):
                self.simulate(f"{strategy}-{seed}", "--workers", 4, "--steps", 40, "--straggler",
                              "exp:0,8ms", "--strategy", strategy, "--seed", seed)
        folders = sorted(path.name for path in self.folder.iterdir())
        shown = "Anytime.page.curves[0].series.map((one) => one.label)"
        with browser.open() as tab:
            self.visit(tab, self.report(*folders))
            entry = "document.querySelector('#curves .entry')"
            self.assertEqual(tab.evaluate(shown), ["amb", "fmb"])
            tab.evaluate(f"{entry}.focus(), {entry}.click()")
            self.assertEqual(tab.evaluate(shown), ["fmb"])
            self.assertEqual(tab.evaluate("document.activeElement.ariaPressed"), "false")
            tab.press("Enter")
            self.assertEqual(tab.evaluate(shown), ["amb", "fmb"])
            box = "document.querySelector('#summary input')"
            whole = tab.evaluate("Anytime.page.curves[0].series[0].curve.y[100]")
            tab.evaluate(f"{box}.click()")  # without one of its two runs, a mean is another one
            self.assertEqual(tab.evaluate(shown), ["amb", "fmb"])
            self.assertNotEqual(tab.evaluate("Anytime.page.curves[0].series[0].curve.y[100]"),
                                whole)
            self.assertNotIn("amb: mean of", self.text(tab, "#curves .legend"))
            tab.check_quiet()

    def test_batch_sizes_of_many_workers_are_one_band(self):
        self.simulate("few", "--strategy", "amb", "--workers", 4, "--straggler", "exp:0,8ms",
                      "--steps", 60)
        self.simulate("many", "--strategy", "amb", "--workers", 20, "--straggler", "exp:0,8ms",
                      "--steps", 60)
        curves = "Anytime.page.workerBatch.series"
        spread = f"{curves}.map((one) => one.curve.y.some(([low, , high]) => low < high))"
        with browser.open() as tab:
            self.visit(tab, self.report("few", "many"))
            entries = "[...document.querySelectorAll('#workers .entry')].map((e) => e.textContent)"
            self.assertEqual(tab.evaluate(spread), [False] * 4)  # lines, no bands that overlap
            self.assertRegex(" ".join(tab.evaluate(entries)),
                             "worker 1.*worker 2.*worker 3.*worker 4")
            tab.evaluate("Anytime.page.choose(1)")
            self.assertEqual(tab.evaluate(spread), [True, False, False])
            self.assertRegex(" ".join(tab.evaluate(entries)),
                             "mean and range of 20 workers.*smallest.*largest")
            tab.check_quiet()

    def test_a_resumed_run_keeps_its_first_command(self):
        run = self.train(*RUN, *SLOW, "--steps", 20)
        self.anytime("train", "--resume", run.folder, "--steps", 40, "--quiet")
        self.anytime("train", "--resume", run.folder, "--steps", 60, "--quiet")
        result = json.loads((run.folder / "result.json").read_text())
        self.assertEqual(len(result["earlier_commands"]), 2)
        with browser.open() as tab:
            self.visit(tab, self.report(run.folder))
            rows = dict(tab.evaluate("""[...document.querySelectorAll('#settings tr')].map(
                (row) => [row.cells[0].textContent, row.cells[1].textContent])"""))
            self.assertIn("--straggler speed:1,1,1,2", rows["command"])
            self.assertIn("--steps 20", rows["command"])
            self.assertRegex(rows["resumed by"], "--steps 40.*; .*--steps 60")


if __name__ == "__main__":
    browser.need()
    support.main()
