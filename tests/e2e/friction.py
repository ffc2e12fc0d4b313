#!/usr/bin/env python3
"""What new users ran into: grids, simulations beside their original, the published log lines."""
import json
import re

import support

RUN = (*support.SMALL, "--workers", 2, "--batch", 8)


class Sweep(support.TestCase):
    def test_several_options_make_a_grid(self):
        out = self.folder / "grid"
        ended = self.anytime("sweep", "--over", "lr=0.01,0.1", "--over", "batch=4,8,16",
                             *support.SMALL,
                             "--workers", 2, "--steps", 5, "--repeats", 1, "--world", "sim",
                             "--sample-time", "1ms", "--plots", "none", "--out", out)
        self.assertIn("lr, batch", ended.out)
        self.assertIn("0.1, 16", ended.out)
        self.assertIn("best: ", ended.out)
        entries = json.loads((out / "compare.json").read_text())["entries"]
        self.assertEqual(len(entries), 6)


class Original(support.TestCase):
    def test_a_simulation_is_shown_beside_it(self):
        run = self.train(*RUN, "--steps", 20).folder
        told = self.anytime("simulate", "--from", run, "--strategy", "amb", "--run", "sim").out
        self.assertRegex(told, r"original +fmb")
        self.assertRegex(told, r"simulated +amb")

    def test_other_workers_than_recorded_are_refused(self):
        run = self.train(*RUN, "--steps", 20).folder
        ended = self.anytime("simulate", "--from", run, "--workers", 20, "--run", "more",
                             code=support.USAGE)
        self.assert_complaint(ended, "--workers 20", "2 workers")


class Classic(support.TestCase):
    def test_the_lines_of_the_published_programs(self):
        told = self.anytime("train", *RUN, "--steps", 6, "--log-style", "classic", "--run", "c").out
        number = r"[-+0-9.enaif]+"
        rounds = re.findall(rf"^wk([12])\|Sending \[8\] examples, compute_time \[{number}\], "
                            rf"last_idle \[{number}\], last_send \[{number}\]$", told, re.M)
        steps = re.findall(rf"^wk0\|step = (\d+), loss = {number}, learning_rate = {number}, "
                           rf"accuracy = {number} \({number} sec\)$", told, re.M)
        self.assertEqual(len(rounds), 12, told)
        self.assertEqual(steps, [str(step) for step in range(1, 7)], told)


class Explosion(support.TestCase):
    def test_a_loss_that_explodes_is_warned_of(self):
        ended = self.train(*RUN, "--steps", 30, "--lr", 1e5)
        self.assertIn("the loss has exploded", ended.err)
        calm = self.train(*RUN, "--steps", 30)
        self.assertNotIn("exploded", calm.err)


if __name__ == "__main__":
    support.main()
