#!/usr/bin/env python3
"""The cache of parsed data: it is used when valid, and never trusted without a check."""
import json
import os

import support


class DataCache(support.TestCase):
    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.parsed = self.folder / "cache" / "anytime" / "parsed"
        self.rows = self.folder / "rows.libsvm"
        self.write("1")

    def write(self, value):
        """Writes a text of more than a megabyte with an old modification time."""
        self.rows.write_text("".join(f"{'+-'[i % 2]}1 {1 + i % 50}:{value} {60 + i % 7}:0.25\n"
                                     for i in range(90000)))
        os.utime(self.rows, (1e9, 1e9))

    def info(self, *options):
        """Checks the contents; returns whether the data set came from the cache."""
        ended = self.anytime("data", "info", self.rows, "--json", *options, env=self.env)
        facts = json.loads(ended.out)
        self.assertEqual(facts["train"]["samples"], 90000)
        self.assertEqual(facts["train"]["labels"], [45000, 45000])
        return facts["cached"]

    def entry(self):
        entries = list(self.parsed.iterdir())
        self.assertEqual(len(entries), 1, entries)
        return entries[0]

    def train(self, *arguments, **options):
        return super().train("--data", self.rows, "--test-data", self.rows, "--workers", 2,
                             "--steps", 20, *arguments, env=self.env, **options)

    def test_the_second_start_does_not_read_again(self):
        self.assertFalse(self.info())
        self.assertTrue(self.info())
        # With equal size and time only the first bytes are read, to detect the format.
        whole = self.rows.read_bytes()
        self.rows.write_bytes(whole[:1000] + b"x" * (len(whole) - 1000))
        os.utime(self.rows, (1e9, 1e9))
        self.assertTrue(self.info())

    def test_a_changed_source_is_read_again(self):
        self.assertFalse(self.info())
        self.write("2")
        os.utime(self.rows, (1e9 + 1, 1e9 + 1))
        self.assertFalse(self.info())
        self.assertTrue(self.info())

    def test_a_touched_source_is_recognized_by_its_hash(self):
        self.assertFalse(self.info())
        os.utime(self.rows, (2e9, 1.5e9))
        self.assertTrue(self.info())

    def test_training_gives_the_same_result_with_and_without_the_cache(self):
        options = ("--quiet", "--json")
        hashes = [self.train(*options, *more).result["params_hash"]
                  for more in (("--no-data-cache",), (), (), ("--data-cache", "no"))]
        self.assertEqual(len(set(hashes)), 1)
        self.assertGreaterEqual(len(list(self.parsed.iterdir())), 1)

    def test_no_entry_is_written_with_no_data_cache(self):
        self.assertFalse(self.info("--no-data-cache"))
        self.assertFalse(self.parsed.exists())

    def test_a_damaged_entry_is_ignored_and_replaced(self):
        self.assertFalse(self.info())
        whole = self.entry().read_bytes()
        damages = [whole[:cut] for cut in (0, 1, 20, 100, 400, 65536, 65600, len(whole) - 1)]
        for at in (0, 17, 30, 90, 200, 65536, len(whole) // 2, len(whole) - 1):
            damages.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        for damage in damages:
            self.entry().write_bytes(damage)
            self.assertFalse(self.info())
            self.assertTrue(self.info())

    def test_a_refused_source_leaves_no_entry(self):
        self.rows.write_text("+1 1:x\n" * 300000)
        self.anytime("data", "info", f"libsvm:{self.rows}", code=support.FORMAT, env=self.env)
        self.assertFalse(self.parsed.exists() and list(self.parsed.iterdir()))

    def test_an_unwritable_cache_is_not_an_error(self):
        (self.folder / "cache").write_text("no folder")
        self.assertFalse(self.info())
        self.assertFalse(self.info())


if __name__ == "__main__":
    support.main()
