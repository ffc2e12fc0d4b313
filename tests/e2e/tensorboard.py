#!/usr/bin/env python3
"""The TensorBoard files of a run, read as TensorBoard reads them (itself: tests/readers)."""
import signal

import support
from support import tfevents

STEP_TAGS = {"train/loss", "train/learning_rate", "step/seconds", "step/seconds_longest",
             "step/batch", "step/gradients", "step/staleness", "step/samples_per_second",
             "samples/used", "samples/dropped", "workers/there"}
TEST_TAGS = {"test/loss", "test/accuracy"}
WORKER_TAGS = {"worker/batch", "worker/compute_seconds", "worker/sleep_seconds",
               "worker/wait_seconds", "worker/send_seconds", "worker/staleness", "worker/loss",
               "worker/samples_per_second"}
HISTOGRAMS = {"rounds/batch", "rounds/compute_seconds", "rounds/staleness"}


def resources(tags):
    return {tag for tag in tags if tag.startswith("resources/")}


class Files(support.TestCase):
    def folders(self, ended, **options):
        top = ended.folder / "tensorboard"
        return {path.name: tfevents.Folder(path, **options) for path in sorted(top.iterdir())}

    def assert_series(self, folder):
        """Steps never decrease, and histogram buckets are consistent."""
        for tag in folder.tags():
            steps = [step for step, _ in folder.series(tag)]
            self.assertEqual(steps, sorted(steps), tag)
        for tag in folder.tags("histogram"):
            for _, histogram in folder.series(tag, "histogram"):
                limits, buckets = histogram["limits"], histogram["buckets"]
                self.assertEqual(len(limits), len(buckets))
                self.assertEqual(limits, sorted(set(limits)), tag)
                self.assertEqual(sum(buckets), histogram["num"])
                self.assertLessEqual(histogram.get("max", 0), limits[-1])

    def test_hub_and_each_worker_have_a_folder(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 200, "--eval-every", 50)
        folders = self.folders(ended)
        self.assertLessEqual({"hub", "worker-01", "worker-02", "worker-03"}, set(folders))
        hub = folders["hub"]
        self.assertEqual(hub.tags() - resources(hub.tags()), STEP_TAGS | TEST_TAGS)
        for name, folder in folders.items():
            self.assertEqual(len(folder.files), 1)
            self.assert_series(folder)
            if name.startswith("worker"):
                self.assertEqual(folder.tags() - resources(folder.tags()), WORKER_TAGS)
                self.assertEqual(folder.tags("histogram"), HISTOGRAMS)

    def test_values_match_the_result(self):
        ended = self.train(*support.SMALL, "--workers", 3, "--steps", 200, "--eval-every", 50)
        result, folders = ended.result, self.folders(ended)
        hub = folders["hub"]
        self.assertEqual(hub.series("train/loss")[0][0], 1)
        self.assertEqual(hub.series("train/loss")[-1][0], 200)
        step, accuracy = hub.series("test/accuracy")[-1]
        self.assertEqual(step, 200)
        self.assertAlmostEqual(accuracy, result["test"]["accuracy"], places=5)
        self.assertEqual(hub.series("samples/used")[-1][1], result["samples"]["used"])
        self.assertEqual({value for _, value in hub.series("step/batch")}, {96})
        for tag in HISTOGRAMS:
            count = sum(one["num"] for _, one in hub.series(tag, "histogram"))
            self.assertEqual(count, 600, tag)
        for row in result["worker"]:
            rounds = folders[f"worker-{row['id']:02}"].series("rounds/compute_seconds", "histogram")
            seconds = sum(one["sum"] for _, one in rounds)
            self.assertAlmostEqual(seconds, row["compute_seconds"], delta=1e-6)

    def test_points_carry_simulated_time(self):
        ended = self.train(*support.SMALL, "--world", "sim", "--workers", 4, "--steps", 50,
                           "--strategy", "async", "--sample-time", "10ms", "--straggler",
                           "exp:0,0.1")
        hub = self.folders(ended)["hub"]
        self.assert_series(hub)
        times = [event["wall_time"] for event in hub.events if "train/loss" in
                 {value["tag"] for value in event.get("summary", {}).get("values", ())}]
        self.assertAlmostEqual(times[-1] - hub.events[0]["wall_time"], ended.result["seconds"],
                               delta=1)
        stale = hub.series("rounds/staleness", "histogram")
        self.assertGreater(max(one.get("max", 0) for _, one in stale), 0)

    def test_the_model_is_a_graph(self):
        ended = self.train(*support.SMALL, "--model", "mlp:16,8", "--workers", 1, "--steps", 3)
        graph = self.folders(ended)["hub"].only("graph")
        inputs = {node["name"]: node.get("inputs", []) for node in graph["nodes"]}
        self.assertEqual(inputs["dense1"], ["samples"])
        self.assertEqual(inputs["dense2"], ["dense1"])
        self.assertEqual(inputs["loss"], ["dense3", "labels"])
        for name, reads in inputs.items():
            self.assertLessEqual(set(reads), set(inputs), name)
        dense = next(node for node in graph["nodes"] if node["name"] == "dense1")
        attributes = {entry["key"]: entry["value"] for entry in dense["attributes"]}
        shape = attributes["_output_shapes"]["list"]["shapes"][0]
        sizes = [dim.get("size") for dim in shape["dims"]]
        self.assertEqual(sizes, [-1, 16])
        self.assertEqual(attributes["parameters"]["number"], 21 * 16)

    def test_the_settings_are_a_table(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 3)
        (_, tensor), = self.folders(ended)["hub"].series("settings", "tensor")
        table, = tensor["texts"]
        self.assertEqual(tensor["dtype"], 7)
        self.assertIn("| --batch | 32 |\n", table)
        self.assertIn("| strategy | fmb |\n", table)
        self.assertEqual({line.count("|") for line in table.splitlines()}, {3})

    def test_a_resumed_run_writes_new_files(self):
        first = self.train(*support.SMALL, "--workers", 2, "--steps", 30)
        self.anytime("train", "--resume", first.folder, "--steps", 60, "--quiet")
        hub = self.folders(first)["hub"]
        self.assertEqual(len(hub.files), 2)
        self.assertEqual(hub.only("session"), {"status": 1})
        restarted, = [event["step"] for event in hub.events if "session" in event]
        self.assertEqual(restarted, 31)
        self.assertEqual(hub.series("train/loss")[-1][0], 60)
        self.assert_series(hub)

    def test_a_killed_run_leaves_complete_records(self):
        run = self.start(*support.SMALL, "--workers", 2, "--steps", 10 ** 9, "--quiet")
        run.wait_steps(100)
        run.signal(signal.SIGKILL)
        run.wait()
        for folder in self.folders(run, whole=False).values():
            self.assert_series(folder)

    def test_many_workers_do_not_open_many_files(self):
        ended = self.train("--world", "sim", "--model", "none:1000", "--data",
                           "synthetic:2000,20,5", "--workers", 200, "--steps", 5, "--batch", 4)
        names = set(self.folders(ended))
        self.assertIn("worker-64", names)
        self.assertNotIn("worker-65", names)

    def test_they_are_written_only_with_record_full(self):
        ended = self.train(*support.SMALL, "--workers", 1, "--steps", 3, "--record", "steps")
        self.assertFalse((ended.folder / "tensorboard").exists())


if __name__ == "__main__":
    support.main()
