#!/usr/bin/env python3
"""TensorBoard's own server reads the event files of a run: curves, histograms, graph, settings."""
import json
import math
import urllib.parse
import urllib.request

from tensorboard import program

import support


class TensorBoard(support.TestCase):
    def serve(self, folder):
        board = program.TensorBoard()
        board.configure(argv=[None, "--logdir", str(folder), "--host", "127.0.0.1", "--port", "0",
                              "--load_fast", "false", "--reload_interval", "1",
                              "--samples_per_plugin", "histograms=1000,scalars=1000"])
        self.address = board.launch()

    def ask(self, path, **query):
        words = f"?{urllib.parse.urlencode(query)}" if query else ""
        with urllib.request.urlopen(f"{self.address}data/{path}{words}", timeout=60) as answer:
            return answer.read().decode()

    def ask_json(self, path, **query):
        return json.loads(self.ask(path, **query))

    def test_the_server_shows_everything(self):
        ended = self.train(*support.SMALL, "--model", "mlp:16,8", "--workers", 2, "--steps", 60,
                           "--eval-every", 20)
        self.serve(ended.folder / "tensorboard")
        runs = support.wait_until(lambda: sorted(self.ask_json("runs")), "runs are loaded")
        self.assertLessEqual({"hub", "worker-01", "worker-02"}, set(runs))
        self.check_curves(ended.result)
        self.check_histograms()
        self.check_graph()
        (event,) = self.ask_json("plugin/text/text", run="hub", tag="settings")
        self.assertRegex(event["text"], r"<td>--batch</td>\s*<td>32</td>")

    def check_curves(self, result):
        tags = self.ask_json("plugin/scalars/tags")
        self.assertIn("train/loss", tags["hub"])
        self.assertIn("worker/compute_seconds", tags["worker-01"])
        points = self.ask_json("plugin/scalars/scalars", run="hub", tag="train/loss")
        self.assertEqual((points[0][1], points[-1][1]), (1, 60))
        self.assertTrue(all(math.isfinite(loss) for *_, loss in points))
        *_, (_, step, accuracy) = self.ask_json("plugin/scalars/scalars", run="hub",
                                                tag="test/accuracy")
        self.assertEqual(step, 60)
        self.assertAlmostEqual(accuracy, result["test"]["accuracy"], places=5)

    def check_histograms(self):
        tags = self.ask_json("plugin/histograms/tags")
        self.assertIn("rounds/compute_seconds", tags["hub"])
        shown = self.ask_json("plugin/histograms/histograms", run="hub",
                              tag="rounds/compute_seconds")
        rounds = sum(count for _, _, buckets in shown for _, _, count in buckets)
        self.assertEqual(round(rounds), 120)
        for _, _, buckets in shown:
            for low, high, count in buckets:
                self.assertTrue(low <= high and count >= 0, (low, high, count))

    def check_graph(self):
        self.assertTrue(self.ask_json("plugin/graphs/info")["hub"]["run_graph"])
        text = self.ask("plugin/graphs/graph", run="hub")
        for words in ('name: "dense1"', 'name: "dense3"', 'name: "loss"', 'input: "dense3"'):
            self.assertIn(words, text)


if __name__ == "__main__":
    support.main()
