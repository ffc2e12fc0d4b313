#!/usr/bin/env python3
"""`anytime compare`: rejected entries, runs and output files."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

ANYTIME = os.environ["ANYTIME"]
SMALL = ("--data synthetic:1500,12,3 --workers 2 --batch 16 --micro-batch 8 --steps 40 "
         "--eval-every 10 --sample-time 20us").split()


def start(*words):
    return subprocess.Popen([ANYTIME, "compare", *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def compare(*words, expect=0):
    process = start(*words)
    out, said = process.communicate(timeout=300)
    assert process.returncode == expect, (words, process.returncode, said)
    return out, said


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def rows_of(*path):
    with open(os.path.join(*path), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_invalid_entries_are_rejected_before_anything_is_created():
    wrong = [([], "strategies"), (["fmb", "nope"], "nope"), (["fmb", "amb:lrr=1"], "--lr"),
             (["fmb", "amb:lr"], "not a duration"), (["fmb", "amb:seed=3"], "seed"),
             (["fmb", "amb:optimizer=adm"], "adm"), (["fmb", "amb:straggler=exq:1,2"], "exq"),
             (["fmb", "amb:lr-schedule=sine"], "sine"), (["fmb", "amb:label=../up"], "label"),
             (["amb:label=a", "fmb:label=a"], "label"), (["fmb", ":lr=1"], "entry ':lr=1'")]
    for entries, word in wrong:
        _, said = compare(*entries, *SMALL, "--out", "refused", expect=2)
        assert word in said, (word, said)
        assert not entries or "entry '" in said or "two entries" in said, said
        assert os.listdir(".") == [], (entries, os.listdir("."))


def test_an_existing_folder_is_rejected():
    os.mkdir("there")
    _, said = compare("fmb", "amb", *SMALL, "--out", "there", expect=2)
    assert "exists" in said
    assert os.listdir("there") == []


def test_the_table_has_one_row_per_entry_and_a_sentence_on_the_difference():
    out, said = compare("fmb", "amb", *SMALL, "--out", "out")
    lines = out.splitlines()
    for head in ("strategy", "step", "samples/s", "batch", "useful", "accuracy"):
        assert head in lines[0], (head, lines[0])
    assert "target" not in lines[0]
    assert [line.split()[0] for line in lines[2:4]] == ["fmb", "amb"]
    assert "±" in lines[2] and "[" in lines[3]
    found = [line for line in lines if line.startswith("amb is ") and " fmb at " in line]
    assert len(found) == 1 and " it uses " in found[0], out
    assert lines[-1] == "written to out"
    shown = [line for line in said.splitlines() if line.startswith("compare: run ")]
    assert len(shown) == 6, said
    assert "run 3 of 6, fmb, seed 2" in shown[2]


def test_json_is_one_document_with_all_runs():
    out, said = compare("fmb", "amb:lr=0.05,label=slow", *SMALL, "--seed", "7", "--repeats", "2",
                        "--json", "--quiet", "--out", "out")
    document = json.loads(out)
    # A busy machine may skip evaluations, and says so even with --quiet.
    assert not [line for line in said.splitlines() if "evaluations" not in line], said
    assert document == load("out", "compare.json")
    assert document["complete"] and document["folder"] == "out" and document["targets"] == []
    assert document["options"]["repeats"] == 2
    first, second = document["entries"]
    assert (first["label"], second["label"]) == ("fmb", "slow")
    assert second["strategy"] == "amb" and second["options"] == {"lr": "0.05"}
    assert first["speedup"] is None and first["finding"] is None
    ratio = second["speedup"]["samples_per_second"]
    assert ratio["value"] > 0 and ratio["count"] == 2
    assert ratio["low"] is None and ratio["high"] is None  # too few for an interval
    for entry, lr in ((first, 0.1), (second, 0.05)):
        assert [run["seed"] for run in entry["runs"]] == [7, 8]
        for run in entry["runs"]:
            assert run["folder"] == f"{entry['label']}-{run['seed']}"
            result = load("out", run["folder"], "result.json")
            assert result["seed"] == run["seed"] and result["strategy"] == entry["strategy"]
            assert result["options"]["lr"] == lr
            assert run["steps"] == result["steps"] == 40
            assert run["test_accuracy"] == result["test"]["accuracy"]
            assert run["target_seconds"] is None
    mean = sum(run["mean_batch"] for run in second["runs"]) / 2
    assert abs(second["summary"]["mean_batch"]["value"] - mean) < 1e-6 * mean


def test_the_csv_has_one_line_per_run():
    compare("fmb", "amb", *SMALL, "--repeats", "2", "--out", "out")
    rows = rows_of("out", "compare.csv")
    assert [(row["label"], row["seed"]) for row in rows] == [
        ("fmb", "1"), ("fmb", "2"), ("amb", "1"), ("amb", "2")]
    assert all(float(row["samples_per_second"]) > 0 for row in rows)
    assert all(row["target_seconds"] == "" for row in rows)


def test_entries_can_have_options_with_commas_and_get_unique_labels():
    compare("fmb", "fmb", "fmb:straggler=speed:1,2,lr=0.5", "amb", *SMALL, "--repeats", "1",
            "--out", "out")
    labels = [entry["label"] for entry in load("out", "compare.json")["entries"]]
    assert labels == ["fmb", "fmb-2", "fmb-straggler-speed-1-2-lr-0.5", "amb"], labels
    options = load("out", labels[2] + "-1", "result.json")["options"]
    assert options["straggler"] == "speed:1,2" and options["lr"] == 0.5


LABELS = ("--data", "t.csv", "--test-data", "t.csv", *SMALL[2:], "--repeats", "1", "--record",
          "none", "--out", "out")


def write_two_label_columns():
    """Column `first` has two classes, `second` three."""
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write("x,y,first,second\n")
        file.writelines(f"{i % 7},{i % 5},{i % 2},{i % 3}\n" for i in range(600))


def labels_and_sizes():
    entries = load("out", "compare.json")["entries"]
    results = [load("out", entry["label"] + "-1", "result.json") for entry in entries]
    return [(entry["label"], result["options"]["label"], result["parameters"])
            for entry, result in zip(entries, results, strict=True)]


def test_an_entry_has_a_label_and_the_option_label():
    write_two_label_columns()
    compare("fmb:--label=first,label=two", "fmb:label=three,--label=second", *LABELS)
    (_, one, small), (_, two, large) = found = labels_and_sizes()
    assert [row[0] for row in found] == ["two", "three"], found
    assert (one, two) == ("first", "second"), found
    assert small < large, found


def test_a_sweep_varies_the_option_label():
    write_two_label_columns()
    done = subprocess.run([ANYTIME, "sweep", "--over", "label=first,second", *LABELS],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = [row[:2] for row in labels_and_sizes()]
    assert found == [("label-first", "first"), ("label-second", "second")], found


def test_a_sweep_says_which_value_is_best():
    done = subprocess.run([ANYTIME, "sweep", "--over", "lr=1e-6,0.3", "--world", "sim", *SMALL],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    head = done.stdout.split("\n", 1)[0].split()
    assert head[0] == "lr" and head.count("lr") == 1, done.stdout
    assert "best: --lr 0.3, by accuracy at the end (" in done.stdout, done.stdout
    assert "compare" not in done.stderr and "sweep: run 1 of 6" in done.stderr, done.stderr


def test_more_samples_per_second_do_not_hide_a_worse_model():
    entries = ("fmb:lr=0.3,straggler=speed:1,4", "fmb:lr=1e-6,label=still")
    out, _ = compare(*entries, "--world", "sim", *SMALL, "--out", "out")
    assert "still is less accurate than fmb at equal time (" in out, out
    assert ", although it uses 4.00x the samples per second" in out, out
    out, _ = compare(*entries, "--world", "sim", *SMALL, "--record", "none", "--out", "bare")
    assert "still is less accurate than fmb at the end (after 12.8ms against 51.2ms)" in out, out


def test_a_wide_interval_is_not_taken_for_equality():
    job = ("--world", "sim", "--sample-time", "1ms", "--workers", "2", "--steps", "2", "--batch",
           "1", "--lr", "1", "--data", "synthetic:300,8,6", "--test-data", "synthetic:60,8,6")
    out, _ = compare("fmb", "fmb:label=equal", *job, "--out", "out")
    assert "equal is about as accurate as fmb" in out, out
    out, _ = compare("fmb", "fmb:lr=3,label=other", *job, "--out", "wide")
    assert "other is neither clearly more nor clearly less accurate than fmb" in out, out


def evaluations(*path):
    return [(float(row["time"]), float(row["accuracy"]), float(row["test_loss"]))
            for row in rows_of(*path, "master_stats.csv") if row["accuracy"]]


def at_time(points, seconds, column):
    """Interpolated between evaluations."""
    before = [point for point in points if point[0] <= seconds][-1]
    after = next((point for point in points if point[0] > seconds), before)
    share = (seconds - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
    return before[column] + share * (after[column] - before[column])


def test_runs_are_compared_at_the_end_of_the_shorter_one():
    compare("fmb:straggler=speed:1,3", "fmb:label=even,lr=0.02", "--world", "sim", *SMALL,
            "--out", "out")
    first, second = load("out", "compare.json")["entries"]
    assert first["equal_time"] is None
    for mine, other in zip(second["runs"], first["runs"], strict=True):
        seconds = mine["equal_time_seconds"]
        assert seconds == min(mine["seconds"], other["seconds"]) == mine["seconds"]
        for run, name in ((mine, "equal_time"), (other, "equal_time_first")):
            points = evaluations("out", run["folder"])
            for column, key in ((1, "accuracy"), (2, "test_loss")):
                expected = at_time(points, seconds, column)
                assert abs(mine[f"{name}_{key}"] - expected) < 1e-6, (name, key, mine)
    mean = sum(mine["equal_time_accuracy"] - mine["equal_time_first_accuracy"]
               for mine in second["runs"]) / 3
    difference = second["equal_time"]["accuracy_difference"]
    assert abs(difference["value"] - mean) < 1e-6 and difference["count"] == 3


def test_a_search_gives_every_entry_its_best_learning_rate():
    out, said = compare("fmb", "async", "amb:lr=0.05", "--tune", "lr=1e-6,0.1", "--world", "sim",
                        *SMALL, "--repeats", "2", "--jobs", "1", "--out", "out")
    assert "tuned lr: fmb 0.1, async 0.1 (2 values each, one run per value with seed 3)" in out, out
    assert "note: the best lr of async is the largest one tried (0.1)" in out, out
    assert "0.1 tuned" in out and "learning rate of fmb" not in out, out
    assert "tune: run 1 of 4, fmb-lr-1e-6, seed 3" in said, said
    document = load("out", "compare.json")
    assert document["tune"] == {"option": "lr", "values": ["1e-6", "0.1"], "runs_per_entry": 2,
                                "seed": 3, "folder": "tune"}
    fmb, stale, own = document["entries"]
    assert [entry["lr_source"] for entry in (fmb, stale, own)] == ["tuned", "tuned", "own"]
    assert [entry["lr"] for entry in (fmb, stale, own)] == [0.1, 0.1, 0.05]
    assert own["tuned"] is None
    for entry in (fmb, stale):
        low, high = entry["tuned"]["tried"]
        assert (low["value"], high["value"], entry["tuned"]["value"]) == ("1e-6", "0.1", "0.1")
        assert low["test_accuracy"] < high["test_accuracy"], entry["tuned"]
        assert load("out", "tune", low["label"] + "-3", "result.json")["options"]["lr"] == 1e-6
        for run in entry["runs"]:
            assert load("out", run["folder"], "result.json")["options"]["lr"] == 0.1
    assert len([name for name in os.listdir("out/tune") if name.endswith("-3")]) == 4


def test_stale_gradients_at_a_borrowed_learning_rate_are_pointed_out():
    small = ("--world", "sim", *SMALL, "--repeats", "1", "--plots", "none")
    out, _ = compare("fmb", "async", *small, "--out", "one")
    assert "note: async ran with the learning rate of fmb (0.1), not with one tuned" in out, out
    assert "--tune lr=0.01,0.033,0.1 " in out, out
    out, _ = compare("fmb", "amb", "async:lr=0.01", *small, "--out", "two")
    assert "not with one tuned" not in out, out


def test_invalid_searches_are_rejected_before_anything_is_created():
    for text, word in (("lr", "is not an option with two"), ("lr=0.1", "is not an option with two"),
                       ("lr=0.1,,1", "is not an option with two"), ("seed=1,2", "--seed"),
                       ("lrr=1,2", "--lr"), ("lr=0.1,x", "--tune")):
        _, said = compare("fmb", *SMALL, "--tune", text, "--out", "refused", expect=2)
        assert word in said, (word, said)
        assert os.listdir(".") == [], (text, os.listdir("."))


def test_all_entries_use_the_same_seeds():
    compare("fmb", "fmb:label=again", *SMALL, "--repeats", "2", "--straggler", "exp:0,200us",
            "--out", "out")
    runs = {name: load("out", name, "result.json")
            for name in ("fmb-1", "again-1", "fmb-2", "again-2")}
    for key in ("params_hash", "trace_hash"):
        assert runs["fmb-1"][key] == runs["again-1"][key]
        assert runs["fmb-2"][key] == runs["again-2"][key]
    assert runs["fmb-1"]["params_hash"] != runs["fmb-2"]["params_hash"]


def test_a_target_is_timed_and_counted():
    out, _ = compare("fmb", "amb", *SMALL, "--steps", "1000000", "--target", "accuracy=0.5",
                     "--out", "out")
    assert out.count("3 of 3") == 2, out
    found = r"amb reaches accuracy 0\.5 (\S+x (faster|slower) than|as fast as) fmb"
    assert re.search(found, out), out
    for entry in load("out", "compare.json")["entries"]:
        assert entry["summary"]["reached"] == 3
        for run in entry["runs"]:
            assert 0 < run["target_seconds"] and run["stopped"] == "target"


def test_a_missed_target_is_reported():
    out, _ = compare("fmb", "amb", *SMALL, "--target", "loss=1e-9", "--repeats", "1", "--out", "o")
    assert out.count("0 of 1\n") + out.count("0 of 1 ") == 3, out
    assert "never both reached loss 1e-09 with the same seed (0 and 0 of 1 runs); amb " in out, out
    assert " fmb at " in out and " uses " in out, out  # at equal time, if both were evaluated
    assert "intervals: they need 3 repeats" in out, out
    assert load("o", "compare.json")["entries"][1]["speedup"]["target_seconds"]["count"] == 0


def test_plots_are_drawn_with_their_data():
    compare("fmb", "amb", *SMALL, "--repeats", "2", "--out", "out")
    longest = max(load("out", run["folder"], "result.json")["wall_seconds"]
                  for entry in load("out", "compare.json")["entries"] for run in entry["runs"])
    for name in ("loss-vs-time", "test-loss-vs-time", "accuracy-vs-time"):
        rows = rows_of("out", name + ".csv")
        assert {row["name"] for row in rows} == {"fmb", "amb"}, rows[:3]
        assert all(0 <= float(row["x"]) <= longest for row in rows), (name, rows[:3])
        assert os.path.exists(f"out/{name}.gp")
        if shutil.which("gnuplot"):
            with open(f"out/{name}.png", "rb") as file:
                assert file.read(4) == b"\x89PNG"
            with open(f"out/{name}.svg", encoding="utf-8") as file:
                assert "<svg" in file.read()


PANELS = ("delay-density", "loss-vs-time", "loss-vs-step", "compute-time", "accuracy-vs-time",
          "learning-rate-vs-step", "worker-batch", "samples-vs-step", "time-vs-step")
HISTOGRAMS = ("staleness", "messages-per-step", "wait-time", "master-batch")
VIRTUAL = ("--world sim --data synthetic:1500,12,3 --workers 4 --batch 16 --micro-batch 4 "
           "--steps 60 --eval-every 20 --sample-time 1ms --straggler exp:0,4ms").split()


def area_of(rows, name):
    """The area of one histogram, whose last corner has height 0."""
    corners = [(float(row["x"]), float(row["y"])) for row in rows if row["name"] == name]
    assert corners[0][1] == 0 and corners[-1][1] == 0, corners
    return sum(y * (after - x) for (x, y), (after, _) in zip(corners, corners[1:]))


def test_panels_and_histograms_are_drawn_from_csv_files():
    out, _ = compare("fmb", "amb", *VIRTUAL, "--repeats", "2", "--out", "out")
    assert "panels.png" in out and "histograms.png" in out, out
    for name in PANELS + HISTOGRAMS:
        assert {row["name"] for row in rows_of("out", name + ".csv")} == {"fmb", "amb"}, name
    delays = rows_of("out", "delay-density.csv")
    assert 0.98 < area_of(delays, "fmb") < 1.000001  # a long tail is cut off
    steps = rows_of("out", "samples-vs-step.csv")
    last = [row for row in steps if row["name"] == "fmb"][-1]
    assert (float(last["x"]), float(last["y"])) == (60, 60 * 4 * 16), last
    messages = [row for row in rows_of("out", "messages-per-step.csv") if float(row["y"]) > 0]
    assert [(row["x"], row["y"]) for row in messages] == [("3.5", "100")] * 2, messages
    for sheet, heading in (("panels", "Batch size per round"),
                           ("histograms", "Gradient staleness")):
        assert os.path.exists(f"out/{sheet}.gp")
        if shutil.which("gnuplot"):
            with open(f"out/{sheet}.svg", encoding="utf-8") as file:
                assert heading in file.read()


def test_plots_all_and_none():
    _, said = compare("fmb", *VIRTUAL, "--plots", "some", "--out", "some", expect=2)
    assert "some" in said and "few" in said and not os.path.exists("some")
    out, _ = compare("fmb", *VIRTUAL, "--repeats", "1", "--plots", "none", "--out", "none")
    assert "plots:" not in out
    assert sorted(os.listdir("none")) == ["compare.csv", "compare.json", "fmb-1"]
    compare("fmb", *VIRTUAL, "--repeats", "1", "--plots", "all", "--out", "all")
    for name in PANELS + HISTOGRAMS + ("panels", "histograms"):
        assert os.path.exists(f"all/{name}.gp"), name
        assert not shutil.which("gnuplot") or os.path.exists(f"all/{name}.png"), name


def test_staleness_is_shown_unless_it_is_zero():
    out, _ = compare("fmb", "amb", *VIRTUAL, "--repeats", "1", "--out", "none")
    assert "staleness" not in out.splitlines()[0], out
    out, _ = compare("fmb", "async", *VIRTUAL, "--repeats", "1", "--out", "some")
    assert "staleness" in out.splitlines()[0], out
    first, second = load("some", "compare.json")["entries"]
    assert first["summary"]["mean_staleness"]["value"] == 0
    stale = load("some", "async-1", "result.json")["staleness"]["mean"]
    assert stale > 1
    assert abs(second["summary"]["mean_staleness"]["value"] - stale) < 1e-6 * stale
    assert abs(float(rows_of("some", "compare.csv")[1]["mean_staleness"]) - stale) < 1e-6 * stale


def test_without_gnuplot_there_is_only_a_warning():
    before = os.environ["PATH"]
    os.environ["PATH"] = os.getcwd()
    try:
        out, said = compare("fmb", *SMALL, "--repeats", "1", "--out", "out")
    finally:
        os.environ["PATH"] = before
    assert "gnuplot" in said and "plots:" not in out
    assert os.path.exists("out/accuracy-vs-time.csv") and os.path.exists("out/accuracy-vs-time.gp")


def test_runs_without_csv_files_have_no_plots():
    out, _ = compare("fmb", *SMALL, "--repeats", "1", "--record", "none", "--out", "out")
    assert "plots:" not in out
    assert sorted(os.listdir("out")) == ["compare.csv", "compare.json", "fmb-1", "report.html"]


def test_a_failing_run_ends_the_comparison_and_is_named():
    entry = "fmb:label=wild,model=mlp:8,lr=1e6"
    _, said = compare("fmb", entry, *SMALL, "--steps", "400", "--out", "out", expect=1)
    assert "wild, seed 1" in said, said
    document = load("out", "compare.json")
    assert not document["complete"]
    assert [len(entry["runs"]) for entry in document["entries"]] == [1, 0]


def wait_until(found, process):
    while not found():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_ctrl_c_keeps_completed_runs():
    process = start("fmb", "amb:steps=1000000", *SMALL, "--out", "out")
    wait_until(lambda: os.path.exists("out/amb-1/workers.json") and
               load("out", "amb-1", "workers.json"), process)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=300)
    assert process.returncode == 75, (process.returncode, said)
    assert "amb, seed 1" in said, said
    assert out.splitlines()[2].startswith("fmb "), out
    document = load("out", "compare.json")
    assert not document["complete"]
    assert [len(entry["runs"]) for entry in document["entries"]] == [1, 0]


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in tests:
        with tempfile.TemporaryDirectory(prefix="anytime-compare-") as folder:
            os.chdir(folder)
            test()
            os.chdir("/")
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
