#!/usr/bin/env python3
"""Where workers are, when they came and went, and how good their connections are: everywhere a user
looks."""
import json
import platform
import re
import signal
import socket

import support
from support import net

JOB = (*support.SMALL, "--quiet", "--eval-every", 0, "--sample-time", "50us")


def page_data(path):
    """The data in a report page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>',
                      path.read_text(), re.DOTALL)
    return json.loads(found.group(1))


class Looks(net.TestCase):
    def run_with_a_loss(self):
        """Two workers; the second is killed, and another one comes in its place."""
        hub = self.hub(*JOB, "--workers", 2, "--workers-min", 2, "--strategy", "fmb",
                       "--seconds", "1h", "--resources", "100ms")
        crowd = [self.work(hub), self.work(hub, scheme="tls://")]
        hub.wait_steps(5)
        rows = hub.wait_until(lambda: self.measured(hub), "connections are measured")
        crowd.pop().kill()
        hub.wait_until(lambda: any(row["state"] == "lost" for row in hub.workers().values()),
                       "a worker is lost")
        crowd.append(self.work(hub))
        hub.wait_until(lambda: any(row["incarnation"] == 2 for row in hub.workers().values()),
                       "another one has its place")
        hub.wait_steps(hub.steps() + 5)
        hub.signal(signal.SIGTERM)
        ended = hub.wait()
        for process in crowd:
            self.assert_ends(process)
        self.assert_ledger(ended)
        return rows, ended

    @staticmethod
    def measured(hub):
        rows = [row for row in hub.workers().values() if row["state"] == "working"]
        return rows if len(rows) == 2 and all(row.get("sent_bytes") for row in rows) else None

    def test_every_view_shows_hosts_losses_and_links(self):
        rows, ended = self.run_with_a_loss()
        here = socket.gethostname()[:63]
        for row in rows:  # workers.json
            self.assertEqual(row["host"], re.sub(r"[^\w.:-]", "?", here))
            self.assertRegex(row["address"], r"^127\.0\.0\.1:\d+$")
        used = [row for row in ended.result["worker"] if row["incarnations"]]
        links = [row["connection"] for row in used]
        self.assertEqual(sorted(link["losses"] for link in links), [0, 1])
        for link in links:
            self.assertGreater(link["sent_bytes"], 0)
            self.assertGreater(link["received_bytes"], 0)
        if platform.system() == "Linux":
            self.assertTrue(any(link["round_trip_seconds"] for link in links), links)
        self.check_messages(ended, used)
        table = ended.table("link_stats.csv")
        self.assertEqual({row["worker"] for row in table}, {"1", "2"})
        self.assertEqual(len({row["address"] for row in table}), 3)
        shown = self.anytime("show", ended.folder).out
        self.assertIn("round trip", shown)
        self.assertIn(links[0]["address"], shown)
        self.check_page(ended, used)

    def check_messages(self, ended, used):
        """Vectors are most of what is sent, and nobody counts less than they have."""
        messages = ended.result["messages"]
        self.assertGreaterEqual(sum(row["connection"]["sent_bytes"] for row in used),
                                messages["to_workers_bytes"])
        self.assertGreaterEqual(sum(row["connection"]["received_bytes"] for row in used),
                                messages["to_hub_bytes"])

    def check_page(self, ended, used):
        self.anytime("report", ended.folder, "--out", self.folder / "out")
        story = page_data(self.folder / "out" / "report.html")["runs"][0]["story"]
        links = {link["id"]: link for link in story["network"]["links"]}
        for row in used:
            link = links[row["id"]]
            self.assertEqual(link["sent"], row["connection"]["sent_bytes"])
            self.assertEqual(link["joins"], row["incarnations"])
            self.assertEqual(link["losses"], row["connection"]["losses"])
        counts = story["network"]["present"]["workers"]["mean"]
        self.assertEqual(max(counts), 2)
        self.assertIn(1, counts[2:])
        joined = [line["text"] for line in story["log"] if line["kind"] == "join"]
        for text in joined:
            self.assertRegex(text, r"^worker \d (joined|rejoined \(incarnation 2\)) from \S+$")

    def test_programs_say_where_they_are(self):
        hub = self.hub("--workers", 1, "--steps", 30, "--quiet")
        self.assert_ends(self.program(hub))
        ended = hub.wait()
        row = ended.result["worker"][0]
        self.assertEqual(row["connection"]["host"],
                         re.sub(r"[^\w.:-]", "?", socket.gethostname()[:63]))

    def test_runs_on_one_machine_have_no_links(self):
        ended = self.train(*support.SMALL, "--workers", 2, "--steps", 5, "--quiet")
        self.assertFalse((ended.folder / "link_stats.csv").exists())
        self.assertNotIn("connection", ended.result["worker"][0])


if __name__ == "__main__":
    support.main()
