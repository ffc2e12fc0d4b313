#!/usr/bin/env python3
"""What verbs print to stdout: one JSON document with --json; nothing is said when nobody reads."""
import json
import subprocess

import support

RUN = (*support.SMALL, "--workers", 2, "--batch", 8, "--steps", 6)
SIMULATED = ("--model", "softmax", *RUN, "--world", "sim", "--sample-time", "1ms")
SPLIT = ("--data", "synthetic:60,36,3", "--batches", "8", "--slices", "1,2", "--repeats", 1,
         "--plots", "none")

# A verb, its words (RUN is a finished run), and a key of the document; 0: it is a list.
VERBS = (
    ("train", RUN, "steps"),
    ("train", (*RUN, "--dry-run"), "memory_bytes"),
    ("simulate", SIMULATED, "steps"),
    ("compare", ("fmb", "amb", *SIMULATED, "--repeats", 1, "--plots", "none"), "entries"),
    ("sweep", ("--over", "lr=0.1,0.2", *SIMULATED, "--repeats", 1, "--plots", "none"), "entries"),
    ("advise", ("RUN",), "advice"),
    ("calibrate", ("RUN",), "options"),
    ("slices", SPLIT, "points"),
    ("link", ("--sizes", "4k", "--workers", 1, "--seconds", "10ms"), "sizes"),
    ("runs", (".",), "runs"),
    ("runs", ("remove", "GONE"), "removed"),
    ("show", ("RUN",), "steps"),
    ("report", ("RUN", "--plots", "none"), "runs"),
    ("report", ("RUN", "--out", "page"), "runs"),
    ("replay", ("RUN",), "agrees"),
    ("eval", ("RUN",), "test"),
    ("predict", ("RUN",), "rows"),
    ("export", ("RUN", "--out", "model.onnx"), "file"),
    ("data", ("list",), 0),
    ("data", ("info", "synthetic:60,36,3"), "features"),
    ("models", ("list",), 0),
    ("models", ("show", "mnist-cnn"), "layers"),
    ("doctor", (), "problems"),
)

# Those that print no results (text for other programs), serve until they are stopped, or need a
# hub, another machine or the internet: run, hub, work and watch --json are tested with them.
OTHERS = {"run", "hub", "work", "watch", "manual", "completion"}


class Output(support.TestCase):
    def prepare(self):
        run = self.train(*RUN, "--straggler", "exp:0.001,0.002", "--steps", 40).folder
        gone = self.train(*RUN).folder
        return {"RUN": run, "GONE": gone}

    def test_json_is_one_document_and_nothing_else(self):
        names = self.prepare()
        for verb, words, key in VERBS:
            with self.subTest(verb=verb, words=words):
                words = [names.get(word, word) for word in words]
                ended = self.anytime(verb, *words, "--json")
                document = json.loads(ended.out)
                if key == 0:
                    self.assertIsInstance(document, list)
                    self.assertTrue(document)
                else:
                    self.assertIn(key, document)

    def test_the_table_has_every_verb(self):
        said = self.anytime("--help").out
        verbs = {line.split()[0] for line in said.splitlines() if line.startswith("  ")}
        self.assertEqual(verbs, {verb for verb, _, _ in VERBS} | OTHERS)

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        names = self.prepare()
        rows = [row for row in VERBS if row[1][:1] != ("remove",)]
        rows += [("train", (*RUN, "--log-style", "classic"), None), ("manual", (), None),
                 ("completion", ("bash",), None), ("train", ("--help", "all"), None)]
        for verb, words, _ in rows:
            with self.subTest(verb=verb, words=words):
                words = [str(names.get(word, word)) for word in words]
                if verb == "report" or verb == "export":
                    words = [f"other-{word}" if word in ("page", "model.onnx") else word
                             for word in words]
                process = subprocess.Popen([support.ANYTIME, verb, *words], cwd=self.folder,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           stdin=subprocess.DEVNULL, text=True)
                process.stdout.close()
                said = process.stderr.read()
                process.stderr.close()
                self.assertEqual(process.wait(support.BOUND), support.DONE, said)
                self.assertNotIn("roken pipe", said)
                self.assertNotIn("cannot write", said)


if __name__ == "__main__":
    support.main()
