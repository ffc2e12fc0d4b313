#!/usr/bin/env python3
"""Notes for runs in which the strategy has nothing to do: once, and with what to change."""
import support

JOB = (*support.SMALL, "--workers", 4)
SIM = ("--world", "sim", "--sample-time", "10us")


class Hints(support.TestCase):
    def notes(self, *arguments):
        """The notes on stderr, and in the event log."""
        ended = self.train(*JOB, *arguments)
        return [line for line in ended.err.splitlines() if line.startswith("note: ")]

    def assert_note(self, notes, *words):
        self.assertEqual(len(notes), 1, notes)
        for word in words:
            self.assertIn(word, notes[0])

    def test_timed_rounds_need_small_micro_batches(self):
        steps = ("--strategy", "amb", "--steps", 20, "--straggler", "speed:1,1,2,4")
        self.assert_note(self.notes(*steps, *SIM, "--micro-batch", 32), "amb", "--micro-batch 32",
                         "use --micro-batch 4")
        self.assertEqual(self.notes(*steps, *SIM, "--micro-batch", 4), [])

    def test_size_rules_by_epochs_need_an_epoch(self):
        for strategy in ("dbs", "grow"):
            self.assert_note(self.notes("--strategy", strategy, "--steps", 5, *SIM), strategy,
                             "never changed the batch", "0.32 epochs", "--epochs")
        slow = ("--strategy", "dbs", "--epochs", 3, "--straggler", "speed:1,1,2,4")
        self.assertEqual(self.notes(*slow, *SIM), [])

    def test_a_size_rule_may_have_no_room(self):
        self.assert_note(self.notes("--strategy", "dbs", "--epochs", 3, "--batch-min", 32,
                                    "--batch-max", 32, *SIM, "--straggler", "speed:1,2"),
                         "both 32", "leave room")
        self.assert_note(self.notes("--strategy", "dbs", "--epochs", 3, *SIM), "never changed",
                         "unequal workers")

    def test_backup_workers_need_slow_ones(self):
        for world in (SIM, ()):
            self.assert_note(self.notes("--strategy", "backup", "--k", 3, "--steps", 20,
                                        *world), "backup", "discards", "1 of 4", "--straggler")
        self.assertEqual(self.notes("--strategy", "backup", "--steps", 20, *SIM, "--straggler",
                                    "speed:1,1,1,4"), [])

    def test_equal_simulated_workers_are_noted_for_amb(self):
        self.assert_note(self.notes("--strategy", "amb", "--micro-batch", 4, "--steps", 20, *SIM),
                         "amb", "equally fast", "--straggler")

    def test_ordinary_runs_have_no_notes(self):
        for strategy in ("fmb", "async", "ssp"):
            self.assertEqual(self.notes("--strategy", strategy, "--steps", 20, *SIM), [])

    def test_quiet_runs_print_none(self):
        ended = self.train(*JOB, "--strategy", "backup", "--steps", 5, "--quiet")
        self.assertNotIn("note:", ended.err)

    def test_a_comparison_does_not_repeat_them(self):
        ended = self.anytime("compare", "fmb", "backup", *JOB, "--steps", 10, "--repeats", 3, *SIM,
                             "--plots", "none", "--out", "compared")
        self.assertLessEqual(ended.err.count("discards"), 1, ended)


if __name__ == "__main__":
    support.main()
