#!/usr/bin/env python3
"""Event logs of runs that were killed: what was recorded before the tear is shown."""
import json
import signal

import support

SMALL = (*support.SMALL, "--workers", 2, "--quiet")


class TornLogs(support.TestCase):
    def run_of(self, *arguments):
        return self.train(*SMALL, "--steps", 60, *arguments)

    def cut(self, path, size):
        path.write_bytes(path.read_bytes()[:size])

    @staticmethod
    def records(path):
        """Where each record of a log begins, and at last where the log ends."""
        log = path.read_bytes()
        starts = [16 + int.from_bytes(log[8:12], "little")]
        while starts[-1] < len(log):
            at, size, shift = starts[-1], 0, 0
            while True:
                size |= (log[at] & 127) << shift
                at, shift = at + 1, shift + 7
                if log[at - 1] < 128:
                    break
            starts.append(at + 4 + size)
        return starts

    def replay(self, folder, code=support.DONE):
        return self.anytime("replay", folder, "--json", code=code)

    def report(self, folder, *words):
        """A page is written, and a single note says what is missing."""
        self.reports = getattr(self, "reports", 0) + 1
        out = self.folder / f"report{self.reports}"
        ended = self.anytime("report", folder, "--out", out)
        self.assertTrue((out / "report.html").exists(), ended)
        notes = [line for line in ended.err.splitlines() if "events" in line]
        self.assertEqual(len(notes), 1, ended)
        for word in words:
            self.assertIn(word, notes[0])

    def assert_replays_a_part(self, folder):
        """As if the run had been killed, and so had no result."""
        result, aside = folder / "result.json", folder / "result.aside"
        result.rename(aside)
        replay = json.loads(self.replay(folder).out)
        self.assertFalse(replay["complete"])
        self.assertTrue(replay["agrees"])
        aside.rename(result)

    def test_a_torn_tail_is_left_out_with_a_warning(self):
        ended = self.run_of()
        log = ended.folder / "events.bin"
        starts = self.records(log)
        self.assertEqual(starts[-1], log.stat().st_size)
        for missing in (1, 20):
            start, end = starts[-missing - 1], starts[-missing]
            for size in (end - 1, start + 1):
                with self.subTest(missing=missing, size=size):
                    self.cut(log, size)
                    self.report(ended.folder, f"torn at byte {start};")
                    self.assert_replays_a_part(ended.folder)
        self.cut(log, start)  # it ends with a record, as while a run writes it
        self.assert_replays_a_part(ended.folder)

    def test_a_torn_head_is_a_sentence_and_the_tables_are_shown(self):
        for size in (0, 3, 10, 200):
            with self.subTest(size=size):
                ended = self.run_of()
                self.cut(ended.folder / "events.bin", size)
                said = self.replay(ended.folder, code=support.MISSING)
                self.assert_complaint(said, "events.bin", "no complete head")
                self.report(ended.folder, "no complete head")

    def test_a_torn_second_log_does_not_hide_the_first(self):
        first = self.run_of()
        again = self.resume(first.folder, "--steps", 80, "--quiet").wait()
        self.assertEqual(again.code, support.DONE, again)
        self.cut(first.folder / "events-2.bin", 9)
        (first.folder / "result.json").unlink()
        self.assertEqual(json.loads(self.replay(first.folder).out)["steps"], 60)
        more = self.resume(first.folder, "--steps", 100, "--quiet").wait()
        self.assertEqual(more.code, support.DONE, more)
        self.assertFalse((first.folder / "events-3.bin").exists())

    def test_logs_of_the_first_version_are_refused(self):
        ended = self.run_of()
        log = bytearray((ended.folder / "events.bin").read_bytes())
        log[4] = 3
        (ended.folder / "events.bin").write_bytes(log)
        self.assert_complaint(self.replay(ended.folder, code=support.FORMAT), "anytime 0.1")
        self.report(ended.folder, "anytime 0.1")

    def test_whoever_sees_a_log_sees_its_head(self):
        for _ in range(5):
            run = self.start(*SMALL, "--steps", 10**7)
            log = run.folder / "events.bin"
            run.wait_until(lambda: log.exists() and log.stat().st_size > 0, "a log is there")
            run.signal(signal.SIGKILL)
            run.wait()
            self.assertFalse(json.loads(self.replay(run.folder).out)["complete"])


if __name__ == "__main__":
    support.main()
