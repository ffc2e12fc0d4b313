#!/usr/bin/env python3
"""`anytime report`: compares recorded runs."""
import json
import os
import shutil
import subprocess
import tempfile

ANYTIME = os.environ["ANYTIME"]
RUN = ("--data synthetic:1500,12,3 --workers 3 --batch 16 --micro-batch 4 --steps 40 "
       "--eval-every 20 --sample-time 1ms --straggler exp:0,4ms --quiet").split()


def anytime(*words, expect=0):
    done = subprocess.run([ANYTIME, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, (words, done.returncode, done.stderr)
    return done.stdout, done.stderr


def simulate(name, *words):
    anytime("simulate", *RUN, "--run", name, *words)
    with open(f"{name}/result.json", encoding="utf-8") as file:
        return json.load(file)


def test_each_run_has_a_row_and_a_color():
    simulate("monday")
    simulate("tuesday", "--strategy", "async")
    out, _ = anytime("report", "monday/", "./tuesday", "--out", "both")
    lines = out.splitlines()
    assert [line.split()[:3] for line in lines[2:4]] == [["monday", "fmb", "sim"],
                                                         ["tuesday", "async", "sim"]]
    assert lines[-1] == "written to both", out
    with open("both/wait-time.csv", encoding="utf-8") as file:
        text = file.read()
    assert ",monday\n" in text and ",tuesday\n" in text
    if shutil.which("gnuplot"):
        assert "panels.png" in out and os.path.getsize("both/panels.png") > 0


def test_json_has_the_numbers_of_the_runs():
    result = simulate("run")
    out, err = anytime("report", "run", "--json", "--out", "out")
    document = json.loads(out)
    assert document["folder"] == "out"
    assert err == "" if shutil.which("gnuplot") else "gnuplot is not installed" in err, err
    run, = document["runs"]
    assert run["steps"] == result["steps"] == 40 and run["strategy"] == "fmb"
    assert abs(run["seconds"] - result["seconds"]) < 1e-6
    assert os.path.exists("out/panels.gp")


def test_without_plots_there_is_no_folder():
    simulate("run", "--record", "none")
    before = sorted(os.listdir("."))
    out, _ = anytime("report", "run", "--plots", "none")
    assert "written to" not in out
    assert sorted(os.listdir(".")) == before, os.listdir(".")


def test_a_run_that_recorded_nothing_has_a_page_with_its_result():
    simulate("run", "--record", "none")
    out, _ = anytime("report", "run", "--out", "out")
    assert "page: out/report.html" in out
    assert sorted(os.listdir("out")) == ["report.html", "report.md"], os.listdir("out")


def test_invalid_runs_and_options_are_rejected():
    os.mkdir("empty")
    os.mkdir("odd")
    with open("odd/result.json", "w", encoding="utf-8") as file:
        file.write("[1, 2]")
    for words, code, expected in (((), 2, "run folder"), (("empty",), 66, "result.json"),
                              (("nowhere",), 66, "nowhere"), (("odd",), 65, "odd/result.json"),
                              (("empty", "--plots", "some"), 2, "some"),
                              (("empty", "--out", "odd"), 2, "exists")):
        _, err = anytime("report", *words, expect=code)
        assert expected in err, (words, err)
    assert sorted(os.listdir(".")) == ["empty", "odd"]


def test_a_malformed_csv_file_is_reported_with_its_line():
    simulate("run")
    with open("run/collect_stats.csv", "a", encoding="utf-8") as file:
        file.write("41,three,0.1,48\n")
    out, err = anytime("report", "run", "--out", "out", expect=65)
    assert "run/collect_stats.csv:42" in err and out.splitlines()[2].startswith("run "), err
    assert not os.path.exists("out")


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in tests:
        with tempfile.TemporaryDirectory(prefix="anytime-report-") as folder:
            os.chdir(folder)
            test()
            os.chdir("/")
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
