#!/usr/bin/env python3
"""What the processes of a run used: processor, memory, bytes sent and received, disk."""
import json
import unittest

import support
from support import mpi

FEATURES, CLASSES, WORKERS, STEPS = 31, 8, 3, 40  # the vectors need no padding
JOB = ("--model", "softmax", "--data", f"synthetic:2000,{FEATURES},{CLASSES}", "--workers",
       WORKERS, "--batch", 16, "--steps", STEPS, "--eval-every", 0)
VECTOR = 4 * CLASSES * (FEATURES + 1)  # bytes of the parameters, and of a gradient
HEADS = ["process", "CPU", "of a core", "memory", "sent", "received", "disk read",
         "disk write"]
FIELDS = {"cpu_seconds", "cpu_share", "peak_bytes", "sent_bytes", "received_bytes", "read_bytes",
          "write_bytes"}


def table_below(text, first):
    """Rows of the table whose header begins with this word, split at two or more spaces."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(first))
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[head:]]
    end = next((i for i, row in enumerate(cells) if not row or row[0].startswith("written")),
               len(cells))
    return cells[0], cells[2:end]


class Bytes(mpi.TestCase):
    """Bytes are counted by us, so they can be computed."""

    def train(self, *arguments):  # without mpirun
        return support.TestCase.anytime(self, "train", *arguments, "--run", self.folder / "run",
                                        "--json", "--quiet")

    def check_counts(self, result, steps=STEPS):
        self.assertEqual(result["messages"]["to_hub_bytes"], steps * WORKERS * VECTOR)
        # Every worker may have got the parameters after the last step, too.
        down = result["messages"]["to_workers_bytes"]
        self.assertIn(down, range(steps * WORKERS * VECTOR,
                                  (steps + 1) * WORKERS * VECTOR + 1, VECTOR))
        for row in result["worker"]:
            self.assertEqual(row["sent_bytes"], steps * VECTOR, row)
        self.assertEqual(sum(row["received_bytes"] for row in result["worker"]), down)

    def test_in_shared_memory(self):
        self.check_counts(self.train(*JOB, "--strategy", "fmb").result)

    def test_in_simulation(self):
        ended = self.train(*JOB, "--strategy", "fmb", "--world", "sim", "--sample-time", "1ms")
        self.check_counts(ended.result)

    @unittest.skipUnless(mpi.MPIRUN, "there is no mpirun")
    def test_over_mpi(self):
        ended = self.start(*JOB, "--strategy", "fmb", ranks=1 + WORKERS).wait()
        self.assertEqual(ended.code, support.DONE, ended)
        self.check_counts(ended.result)

    def test_nobody_sends_where_workers_update_together(self):
        ended = self.train(*JOB, "--strategy", "fmb", "--mix", "replicated")
        self.assertIsNone(ended.result["messages"])
        self.assertEqual([row["sent_bytes"] for row in ended.result["worker"]], [None] * WORKERS)

    def test_rounds_on_the_same_parameters_read_them_once(self):
        ended = self.train(*JOB, "--strategy", "async")
        rounds = sum(row["rounds"] for row in ended.result["worker"])
        messages = ended.result["messages"]
        self.assertLessEqual(messages["to_workers_bytes"], rounds * VECTOR)
        self.assertGreaterEqual(messages["to_hub_bytes"], STEPS * VECTOR)


class Tables(support.TestCase):
    def test_the_terminal_has_a_row_per_process(self):
        ended = self.train(*JOB, "--strategy", "fmb")
        head, rows = table_below(ended.out, "process ")
        self.assertEqual(head, HEADS)
        self.assertEqual([row[0] for row in rows[:4]], ["hub", "worker 1", "worker 2", "worker 3"])
        self.assertEqual({len(row) for row in rows}, {len(HEADS)})
        sent = f"{STEPS * WORKERS * VECTOR / 1e6:.2f} MB"
        self.assertEqual(rows[0][5], sent, "what the hub received")

    def test_compare_has_rows_per_strategy_and_means_per_run(self):
        ended = self.anytime("compare", "fmb", "async", *JOB, "--repeats", 2, "--out",
                             self.folder / "out", "--plots", "none")
        head, rows = table_below(ended.out.split("intervals", 1)[1], "strategy ")
        self.assertEqual(head, ["strategy", *HEADS])
        self.assertEqual({(row[0], row[1]) for row in rows} & {
            ("fmb", "hub"), ("async", "hub"), ("fmb", "worker (mean)")},
            {("fmb", "hub"), ("async", "hub"), ("fmb", "worker (mean)")})
        document = json.loads((self.folder / "out/compare.json").read_text())
        for entry in document["entries"]:
            for run in entry["runs"]:
                self.assertEqual(set(run["resources"]), {"hub", "worker", "evaluator"})
                self.assertEqual(set(run["resources"]["hub"]), FIELDS)
        fmb = document["entries"][0]["runs"][0]["resources"]
        self.assertEqual(fmb["hub"]["received_bytes"], STEPS * WORKERS * VECTOR)
        self.assertEqual(fmb["worker"]["sent_bytes"], STEPS * VECTOR)

    def test_the_report_has_it_on_the_page_in_markdown_and_on_the_terminal(self):
        run = self.train(*JOB, "--strategy", "fmb").folder
        ended = self.anytime("report", run, "--out", self.folder / "report", "--plots", "few")
        head, rows = table_below(ended.out.split("\n\n", 1)[1], "run ")
        self.assertEqual(head, ["run", *HEADS])
        self.assertEqual(rows[0][:2], [run.name, "hub"])
        markdown = (self.folder / "report/report.md").read_text()
        self.assertIn("| run | process | CPU |", markdown)
        self.assertIn(f"| {run.name} | worker (mean) |", markdown)
        page = (self.folder / "report/report.html").read_text()
        self.assertIn("A.ResourceTable", page)
        self.assertIn(f'"received_bytes":{float(STEPS * WORKERS * VECTOR)}', page)

    def test_simulations_show_bytes_only(self):
        ended = self.train(*JOB, "--strategy", "fmb", "--world", "sim", "--sample-time", "1ms")
        head, rows = table_below(ended.out, "process ")
        self.assertEqual(head, ["process", "sent", "received"])
        self.assertEqual(rows[0][0], "hub")
        self.assertEqual(rows[0][2], f"{STEPS * WORKERS * VECTOR / 1e6:.2f} MB")


if __name__ == "__main__":
    support.main()
