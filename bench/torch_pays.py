#!/usr/bin/env python3
"""What time limits pay: ten PyTorch workers with stragglers, amb against DDP, samples per second.

    bench/torch_pays.py                    about five minutes

Compute is padded: a sample takes --sample-time on both sides, most of which is sleep, so that ten
workers fit on any machine. Every worker also sleeps at the start of each round, as --straggler
says: DDP's processes sleep exactly as long, rank by rank and step by step, as fmb's workers would.
amb solves for the time limit with the same mean batch. Exits with 0 if amb uses at least 1.35
times DDP's samples per second, with a mean batch within 5 %.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
ROOT = pathlib.Path(__file__).resolve().parents[1]
ANYTIME = os.environ.get("ANYTIME", str(ROOT / "build" / "anytime"))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
WORKERS, BATCH, MICRO, WARM_UP = 10, 60, 6, 20
CLAIM, BATCH_WITHIN = 1.35, 0.05


def delays(options):
    return ["--workers", str(WORKERS), "--batch", str(BATCH), "--sample-time",
            f"{options.sample_ms}ms", "--straggler", options.straggler, "--straggler-scale",
            options.scale, "--steps", str(WARM_UP + options.steps), "--seed", "1"]


# ---- one process ----

def new_task():
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Linear(784, 10)
    return torch, model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def batch_of(torch, size):
    return torch.randn(size, 784), torch.randint(0, 10, (size,))


def run_ddp(options):
    """Prints the seconds of the steps after the warm-up."""
    torch, model, opt = new_task()
    import torch.distributed as dist
    rank = int(os.environ["BENCH_RANK"])
    sleeps = json.loads(pathlib.Path(options.folder, "sleeps.json").read_text())[rank]
    dist.init_process_group("gloo", init_method=f"file://{options.folder}/meeting", rank=rank,
                            world_size=WORKERS)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    start = 0.0
    for step, sleep in enumerate(sleeps):
        if step == WARM_UP:
            dist.barrier()
            start = time.perf_counter()
        time.sleep(sleep)
        ready = time.perf_counter() + BATCH * options.sample_ms / 1000
        x, y = batch_of(torch, BATCH)
        opt.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(parallel(x), y)
        time.sleep(max(0.0, ready - time.perf_counter()))
        loss.backward()
        opt.step()
    dist.barrier()
    if rank == 0:
        print("SECONDS", time.perf_counter() - start, flush=True)


def run_seat(_options):
    torch, model, opt = new_task()
    import anytime.torch
    opt = anytime.torch.Optimizer(model, opt, batch=MICRO)
    while not opt.done:
        x, y = batch_of(torch, MICRO)
        opt.zero_grad()
        opt.backward(torch.nn.functional.cross_entropy(model(x), y), len(x))
        opt.step()


# ---- sides: samples per second and mean batch of a step ----

def write_sleeps(options, folder):
    """How long each worker of fmb sleeps before each of its rounds."""
    subprocess.run([ANYTIME, "simulate", "--model", "none:1000", "--strategy", "fmb", "--quiet",
                    "--run", f"{folder}/fmb", *delays(options)], check=True, capture_output=True,
                   timeout=120)
    sleeps = [[0.0] * (WARM_UP + options.steps) for _ in range(WORKERS)]
    with open(f"{folder}/fmb/worker_stats.csv", newline="") as file:
        for row in csv.DictReader(file):
            sleeps[int(row["rank"]) - 1][int(row["worker_step"])] = float(row["sleep_time"])
    pathlib.Path(folder, "sleeps.json").write_text(json.dumps(sleeps))


def command(side, options, folder):
    return [PYTHON, __file__, "--side", side, "--folder", folder, "--sample-ms",
            str(options.sample_ms)]


def side_ddp(options, folder):
    write_sleeps(options, folder)
    started = [subprocess.Popen(command("ddp", options, folder), stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "BENCH_RANK": str(rank)})
               for rank in range(WORKERS)]
    said = [process.communicate(timeout=900)[0] for process in started]
    return options.steps * WORKERS * BATCH / float(said[0].split("SECONDS")[1]), WORKERS * BATCH


def side_amb(options, folder):
    done = subprocess.run([ANYTIME, "run", "--strategy", "amb", "--quiet", "--join-timeout",
                           "300s", "--run", f"{folder}/amb", *delays(options), "--",
                           *command("seat", options, folder)], capture_output=True, text=True,
                          timeout=900, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    if done.returncode:
        sys.exit(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")
    with open(f"{folder}/amb/collect_stats.csv", newline="") as file:
        samples = [int(row["total_samples"]) for row in csv.DictReader(file)][WARM_UP:]
    with open(f"{folder}/amb/master_stats.csv", newline="") as file:
        times = [float(row["time"]) for row in csv.DictReader(file)]
    return sum(samples) / (times[-1] - times[WARM_UP - 1]), sum(samples) / len(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=150, help="timed steps of each side")
    parser.add_argument("--sample-ms", type=float, default=10, help="time of one sample")
    parser.add_argument("--straggler", default="niagara")
    parser.add_argument("--scale", default="20%")
    for hidden in ("--side", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        {"ddp": run_ddp, "seat": run_seat}[options.side](options)
        return
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        (ddp, batch), (amb, batch_amb) = side_ddp(options, folder), side_amb(options, folder)
    holds = amb / ddp >= CLAIM and abs(batch_amb / batch - 1) <= BATCH_WITHIN
    print("| side | samples/s | mean batch of a step |\n|---|---|---|")
    print(f"| DDP over gloo | {ddp:.0f} | {batch} |\n| amb | {amb:.0f} | {batch_amb:.0f} |")
    print(f"amb / DDP: {amb / ddp:.2f}, claim >= {CLAIM}: {'holds' if holds else 'FAILS'}")
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
