#!/usr/bin/env python3
"""Very many simulated workers: counted, but not listed one by one."""
import support

MANY = 70_000
OPTIONS = ("--model", "none:1000", "--sample-time", "1ms", "--batch", 4, "--micro-batch", 4,
           "--steps", 2, "--json", "--quiet")


class Many(support.TestCase):
    def test_more_workers_than_are_listed(self):
        run = self.anytime("simulate", "--workers", MANY, *OPTIONS, "--record", "none", "--run",
                           self.folder / "many")
        self.assertEqual(run.result["workers"], MANY)
        self.assertEqual(run.result["samples"]["used"], 2 * 4 * MANY)
        self.assertEqual(run.result["worker"], [])
        self.assertFalse((self.folder / "many" / "workers.json").exists())

    def test_a_million_is_the_limit_and_real_workers_are_fewer(self):
        run = self.anytime("simulate", "--workers", 1_000_001, *OPTIONS, "--run",
                           self.folder / "refused", code=support.USAGE)
        self.assertIn("--workers 1000001 is out of range", run.err)
        run = self.anytime("train", "--data", "synthetic:100,5,2", "--workers", MANY, "--steps", 1,
                           "--run", self.folder / "refused", code=support.USAGE)
        self.assertIn("at most 65536", run.err)


if __name__ == "__main__":
    support.main()
