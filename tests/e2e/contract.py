#!/usr/bin/env python3
"""One contract for every world: each strategy hears its orders, drains for checkpoints, keeps its
ledger and can be replayed, with automatic time limits and slow workers."""
import json
import pathlib
import re
import unittest

import support
from support import mpi, seats

TIMED = ("amb", "async-timed", "anytime-sgd", "amb-gossip")
STEPS, EVERY = 60, 15
JOB = ("--data", "synthetic:2000,20,5", "--batch", 16, "--micro-batch", 2, "--straggler",
       "niagara", "--straggler-scale", "60%", "--sample-time", "100us", "--steps", STEPS,
       "--checkpoint-every", EVERY, "--eval-every", 0, "--quiet")


class Contract:
    """The scenarios; each world below plays them."""
    more = (*support.LOCAL_STEPS, *support.GOSSIP)

    def play(self, *arguments):
        raise NotImplementedError

    def check(self, strategy, ended):
        result = json.loads((ended.folder / "result.json").read_text())
        self.assertEqual(ended.code, support.DONE, ended)
        samples = result["samples"]
        self.assertEqual(samples["drawn"], samples["used"] + samples["dropped"], ended)
        self.check_saved(ended)
        if strategy in TIMED:
            sizes = {row["num_samples"] for row in ended.table("worker_stats.csv")}
            self.assertGreater(len(sizes), 3, f"{strategy} is not timed: {sizes}")
        replay = self.anytime("replay", ended.folder, "--json")
        self.assertTrue(json.loads(replay.out)["agrees"], replay)

    def check_saved(self, ended):
        """Two checkpoints are kept: the last, and the newest of those on the way (a busy machine
        may skip some of them)."""
        steps = sorted(int(path.stem.split("-")[1])
                       for path in pathlib.Path(ended.folder, "checkpoint").iterdir())
        self.assertEqual(len(steps), 2, ended)
        self.assertEqual(steps[1], STEPS)
        self.assertGreaterEqual(steps[0], EVERY, "no checkpoint was taken on the way")

    def test_every_strategy_hears_its_orders_and_drains_for_checkpoints(self):
        for strategy in (*support.GRADIENTS, *self.more):
            with self.subTest(strategy=strategy):
                self.check(strategy, self.play(*JOB, "--strategy", strategy))

    def test_old_gradients_can_be_corrected(self):
        self.check("async", self.play(*JOB, "--strategy", "async", "--stale", "compensate:0.1"))


class Table(support.TestCase):
    def test_every_strategy_is_played(self):
        text = self.anytime("train", "--help").out
        listed = re.search(r"--strategy S\[:ARGS\]\s[^:]*:([^[]*)\[", text).group(1)
        self.assertEqual(set(listed.split()), set(support.STRATEGIES))


class Local(Contract, support.TestCase):
    def play(self, *arguments):
        return self.train(*arguments, "--workers", 3)

    def test_hogwild_hears_its_orders_and_drains_for_checkpoints(self):
        job = [word if word != "synthetic:2000,20,5" else "synthetic-clicks:4000,4096"
               for word in JOB]
        self.check("hogwild", self.play(*job, "--model", "sparse-lr", "--strategy", "hogwild"))


class Sim(Contract, support.TestCase):
    def play(self, *arguments):
        return self.train(*arguments, "--workers", 3, "--world", "sim")


class Seats(Contract, seats.TestCase):
    """The micro-batch is the program's; model, data and evaluation, too."""
    THEIRS = ("--data", "--micro-batch", "--eval-every")
    more = ()

    @classmethod
    def without_theirs(cls, arguments):
        words = list(arguments)
        for option in cls.THEIRS:
            at = words.index(option)
            del words[at:at + 2]
        return words

    def play(self, *arguments):
        return self.seats(*self.without_theirs(arguments), "-n", 3, program=("batch=2",))


@unittest.skipUnless(mpi.MPIRUN, "mpirun is not installed")
class Ranks(Contract, mpi.TestCase):
    def play(self, *arguments):
        return self.train(*arguments, ranks=4)


if __name__ == "__main__":
    support.main()
