#!/usr/bin/env python3
"""Optional libraries (MPI, oneDNN, microhttpd) and gnuplot: what is there works, what is missing is
named and refused with a hint. `make test-without` runs this without each of them."""
import json
import os
import shutil

import support
from support import mpi

NAMES = {"MPI", "oneDNN", "microhttpd"}


class Parts(support.TestCase):
    def setUp(self):
        super().setUp()
        self.missing = support.missing_parts()
        self.assertLessEqual(self.missing, NAMES)

    def test_the_build_that_was_asked_for(self):
        wanted = os.environ.get("ANYTIME_WITHOUT")  # set by tools/test_without.sh
        if wanted is None:
            return
        if wanted == "gnuplot":  # not a library: it is hidden from PATH
            self.assertIsNone(shutil.which("gnuplot"))
            wanted = None
        self.assertEqual(self.missing, {wanted} - {None})

    def test_doctor_says_the_same_as_version(self):
        findings = json.loads(self.anytime("doctor", "--json").out)["findings"]
        parts = next(row for row in findings if row["what"] == "optional")
        self.assertEqual({name for name, there in parts["facts"].items() if not there},
                         self.missing)
        self.assertEqual(parts["verdict"], "note" if self.missing else "ok")
        if self.missing:
            self.assertIn("build again", parts["advice"])

    def test_convolutions_train_with_and_without_onednn(self):
        result = self.train_json("--data", "synthetic:200,1x8x8,3", "--model", self.net(),
                                 "--workers", 2, "--batch", 8, "--steps", 5)
        self.assertEqual(result["steps"], 5)
        self.assertEqual("onednn" in result["engine"], "oneDNN" not in self.missing,
                         result["engine"])

    def net(self):
        path = self.folder / "small.net"
        path.write_text("conv 3x3x16\nrelu\nconv 3x3x16\nrelu\ndense classes\n")
        return path

    def test_ranks_train_or_are_refused(self):
        if "MPI" not in self.missing:
            ended = self.train("--world", "mpi", code=support.USAGE)
            self.assert_complaint(ended, "not started by mpirun")
            return
        ranks = {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}
        for options, env in ((("--world", "mpi"), {}), ((), ranks)):
            ended = self.train(*support.SMALL, *options, code=support.USAGE,
                               env={**mpi.ENV, **env})
            self.assert_complaint(ended, "built without MPI", "anytime hub", "libopenmpi-dev")
        self.assertEqual(self.train_json(*support.SMALL, "--steps", 5)["steps"], 5)

    def test_reports_have_plots_or_say_what_draws_them(self):
        run = self.train(*support.SMALL, "--steps", 5).folder
        for name, path in (("here", os.environ["PATH"]), ("hidden", str(self.folder))):
            drawn = shutil.which("gnuplot", path=path) is not None
            with self.subTest(gnuplot=name):
                out = self.folder / f"report-{name}"
                ended = self.anytime("report", run, "--out", out,
                                     env={**os.environ, "PATH": path})
                self.assertTrue((out / "report.html").exists(), ended)
                self.assertTrue((out / "panels.gp").exists(), ended)
                self.assertEqual((out / "panels.png").exists(), drawn, ended)
                self.assertEqual("apt-get install gnuplot" in ended.err, not drawn, ended)

    def test_the_dashboard_opens_or_is_refused(self):
        run = self.train(*support.SMALL, "--steps", 5).folder
        self.assertIn("anytime_", self.anytime("watch", run, "--once").out)
        if "microhttpd" not in self.missing:
            self.train(*support.SMALL, "--steps", 5, "--watch")
            return
        for ended in (self.anytime("watch", run, code=support.USAGE),
                      self.train(*support.SMALL, "--steps", 5, "--watch", code=support.USAGE)):
            self.assertIn("built without libmicrohttpd", ended.err, ended)
            self.assertIn("anytime report", ended.err, ended)


if __name__ == "__main__":
    support.main()
