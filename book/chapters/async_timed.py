"""Seed 001: Async-FMB and Async-Timed."""
import pages
import stats
import svg
from runs import Run
from section import NOT_COMPARABLE, Section

NAME, SHORT = "03-async-timed", "001"
TITLE = "Async-Timed and Async-FMB (source 001)"
INTRODUCTION = """
A hub and three workers learn ImageNet, scaled to 32x32, with Wide ResNet 28-2. Nobody waits:
workers send a gradient and go on. Under Async-FMB a gradient has 1024 samples, and the hub makes a
step of K of them; under Async-Timed a gradient takes a fixed time, and the hub makes a step every
200 ms.

The document has the commands of figures 3 and 4, but neither results nor times per sample. So there
is nothing to compare with; 0.28 ms per sample is *assumed*, because a batch of 1024 then takes
about as long as the time limit that the authors chose, and the straggler model `cedar` is assumed
for figure 4. What can be checked is what the paper claims: with stragglers and slow messages,
Async-Timed learns faster.
"""

FOLDER = "examples/published"
COLORS = {"async-fmb": 1, "async-timed": 0}
THEIRS = ("mpirun -n 4 python -u src/run_perf_amb.py imagenet32 {scheme} sgd 1024 --test_size 128 "
          "--last_step 400000 --learning_rate 0.1 --dist_sgy async {rest} --cuda gpu_all "
          "--gpus_per_node 4")
# Batches of 64 instead of 1024 samples, which take 16 times as long: rounds last as long.
SMALL = ("--model", "wrn-28-2-8", "--data", "cifar10", "--prep", "resize:8", "--batch", 64,
         "--sample-time", "4.48ms", "--seconds", "40s", "--eval-every", 20, "--eval-size", 1000)
MICRO = {"fig3-async-fmb": 64, "fig3-async-timed": 32, "fig4-async-fmb": 64,
         "fig4-async-timed": 16}


def timing(name):
    return Run("simulate", "--config", f"{FOLDER}/{name}.conf")


SEEDS = (1, 2, 3)


def learnt(name, seed):
    own = () if seed == 1 else ("--seed", seed)
    return Run("simulate", "--config", f"{FOLDER}/{name}.conf", *SMALL, "--micro-batch",
               MICRO[name], "--steps", 100000, *own)


def figure_runs(figure):
    runs = {}
    for strategy in COLORS:
        runs[strategy, "timing"] = timing(f"{figure}-{strategy}")
        for seed in SEEDS:
            runs[strategy, seed] = learnt(f"{figure}-{strategy}", seed)
    return runs


def show(figure, results):
    rows = []
    for strategy in COLORS:
        ours = results[strategy, "timing"]["result"]
        ends = [results[strategy, seed]["result"]["test"] for seed in SEEDS]
        rows.append([f"`{strategy}`", f"{ours['step_seconds']['mean']:.4f}",
                     f"{ours['samples_per_second']:.0f}", f"{ours['mean_batch']:.0f}",
                     f"{ours['staleness']['mean']:.2f}",
                     stats.show_mean([end["loss"] for end in ends]),
                     stats.show_mean([end["accuracy"] for end in ends])])
    yield pages.Table(["strategy", "s per step", "samples/s", "mean batch", "mean staleness",
                       "learnt: test loss after 40 s", "accuracy"], rows)
    plots = [svg.plot(f"{title} ({figure})", "virtual time, s", title,
                      [svg.Curve(strategy, [(test[0], test[column]) for test in
                                            results[strategy, SEEDS[0]]["tests"]], color)
                       for strategy, color in COLORS.items()])
             for title, column in (("test loss", 2), ("test accuracy", 3))]
    yield pages.Picture(f"async-timed-{figure}", "test loss and accuracy over time",
                        svg.document(plots))


def judge(results):
    fmb, timed = ([results[strategy, seed]["result"]["test"]["loss"] for seed in SEEDS]
                  for strategy in COLORS)
    mean, half = stats.interval([a - b for a, b in zip(timed, fmb, strict=True)])
    word = "not clearly different from" if abs(mean) <= half else (
        "lower than" if mean < 0 else "higher than")
    return NOT_COMPARABLE, (
        f"No numbers were published. In our runs the test loss of Async-Timed after 40 s is {word} "
        f"that of Async-FMB: a difference of {mean:+.3f} ± {half:.3f} over three seeds.")


DIFFERENCES = ["The net of the same program for 8x8 images (`wrn-28-2-8`), and CIFAR-10 in that "
               "size.",
               "Batches of 64 samples, each of which takes 16 times as long.",
               "Micro-batches have at least 16 samples, because batch norm needs them: four per "
               "round instead of eight in figure 4."]


def section(figure, title, about, fmb, timed):
    return Section(title, about=about, runs=figure_runs(figure),
                   theirs=[THEIRS.format(scheme="fmb", rest=fmb),
                           THEIRS.format(scheme="amb", rest=timed)],
                   differences=DIFFERENCES, show=lambda results: show(figure, results),
                   verdict=judge)


SECTIONS = [
    section("fig3", "Figure 3: no induced stragglers",
            "Async-FMB with K = 3, Async-Timed with T = 290 ms in 2 partitions.",
            "--async_master batch --async_master_batch_min 3",
            "--async_master time --async_master_time 0.2 --amb_time_limit 0.290 "
            "--amb_num_partitions 2"),
    section("fig4", "Figure 4: stragglers and slow messages",
            "Async-FMB with K = 2, Async-Timed with T = 320 ms in 8 partitions; computing is "
            "delayed, and every message by |N(0, 1)| x 50 ms.",
            "--async_master batch --async_master_batch_min 2 --async_delay_std 0.05 --induce",
            "--async_master time --async_master_time 0.2 --induce --async_delay_std 0.05 "
            "--amb_time_limit 0.320 --amb_num_partitions 8"),
]
