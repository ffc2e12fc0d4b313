#!/usr/bin/env python3
"""`anytime predict` prints one line per row; --init starts from trained weights."""
import support

NET = "conv 3x3x8\nrelu\nmaxpool 2\nbn\ndense classes\n"


class Predict(support.TestCase):
    def lines(self, *arguments):
        """The lines after the header."""
        return [line.split() for line in self.anytime("predict", *arguments).out.splitlines()[1:]]

    def write_rows(self, name, count, start):
        """Rows of two features, classes separated by a line, one row in ten on the wrong side."""
        path = self.folder / name
        labels = []
        with path.open("w") as file:
            for i in range(start, start + count):
                x, y = (i * 37 % 101) / 50 - 1, (i * 53 % 97) / 48 - 1
                label = (x + y > 0) != (i % 10 == 0)
                labels.append("1" if label else "-1")
                file.write(f"{'+1' if label else '-1'} 1:{x:.4f} 2:{y:.4f}\n")
        return path, labels

    def test_one_line_per_row_that_agrees_with_the_accuracy_of_the_run(self):
        train, _ = self.write_rows("train.txt", 600, 0)
        test, labels = self.write_rows("test.txt", 200, 600)
        for model in ("softmax", "sparse-lr"):
            with self.subTest(model=model):
                ended = self.train("--data", train, "--test-data", test, "--model", model, "--lr",
                                   0.5, "--epochs", 20, "--workers", 1, "--batch", 10)
                lines = self.lines(ended.folder)
                correct = [line[0] == label for line, label in zip(lines, labels)]
                self.assertEqual(len(lines), len(labels))
                self.assertAlmostEqual(sum(correct) / 200, ended.result["test"]["accuracy"])
                self.assertGreater(ended.result["test"]["accuracy"], 0.8)
                for label, probability in lines:  # of the second class
                    self.assertEqual(label == "1", float(probability) > 0.5)
                more, _ = self.write_rows("more.txt", 7, 900)
                self.assertEqual(len(self.lines(ended.folder, "--test-data", more)), 7)

    def test_a_model_with_batch_norm_uses_its_running_statistics(self):
        net = self.folder / "small.net"
        net.write_text(NET)
        ended = self.train("--model", net, "--workers", 2, "--steps", 200, "--optimizer",
                           "momentum", "--eval-size", 2000)
        self.assertGreater(ended.result["test"]["accuracy"], 0.7)
        self.assertEqual(len(self.lines(ended.folder)), 10000)

    def test_a_missing_run_is_refused(self):
        ended = self.anytime("predict", self.folder / "nothing", code=support.MISSING)
        self.assert_complaint(ended, "nothing")

    def test_a_file_cannot_be_read_as_synthetic_data(self):
        rows = self.folder / "rows.csv"
        rows.write_text("a,b\n1,2\n")
        ended = self.train(*support.SMALL, "--steps", 2)
        self.assert_complaint(self.anytime("predict", ended.folder, rows, code=support.USAGE),
                              "rows.csv", "synthetic", "--test-data")

    def test_exactly_one_run_is_required(self):
        self.assert_complaint(self.anytime("predict", code=support.USAGE), "one run")


class Init(support.TestCase):
    """--init: training starts from the weights of a file or a run."""

    def run_of(self, *arguments, **options):
        return self.train(*support.SMALL, "--model", "mlp:8", "--workers", 1, *arguments, **options)

    def test_starting_from_a_run_starts_where_it_ended(self):
        first = self.run_of("--steps", 80)
        again = self.run_of("--steps", 1, "--lr", 1e-12, "--init", first.folder)
        self.assertAlmostEqual(again.result["test"]["loss"], first.result["test"]["loss"], places=5)

    def test_weights_of_another_shape_are_refused_with_name_and_both_shapes(self):
        first = self.run_of("--steps", 2)
        ended = self.train(*support.SMALL, "--model", "mlp:9", "--init", first.folder,
                           code=support.FORMAT)
        self.assert_complaint(ended, "dense1.weight", "[9,20]", "[8,20]", "hint")

    def test_a_net_with_other_tensors_is_refused(self):
        first = self.train(*support.SMALL, "--model", "softmax", "--steps", 2)
        ended = self.run_of("--init", first.folder, code=support.FORMAT)
        self.assert_complaint(ended, "dense1.weight", "hint")

    def test_a_damaged_file_is_refused(self):
        whole = (self.run_of("--steps", 2).folder / "model.safetensors").read_bytes()
        damaged = self.folder / "damaged.safetensors"
        header = 8 + int.from_bytes(whole[:8], "little")
        for size in (0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) - 1):
            with self.subTest(size=size):
                damaged.write_bytes(whole[:size])
                ended = self.run_of("--init", damaged, code=support.FORMAT)
                self.assert_complaint(ended, "damaged.safetensors")
        damaged.write_bytes((1 << 62).to_bytes(8, "little") + whole[8:])
        self.run_of("--init", damaged, code=support.FORMAT)

    def test_a_missing_file_is_refused(self):
        self.assert_complaint(self.run_of("--init", self.folder / "no", code=support.MISSING), "no")


if __name__ == "__main__":
    support.main()
