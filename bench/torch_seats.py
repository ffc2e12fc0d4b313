#!/usr/bin/env python3
"""PyTorch scripts as workers: samples per second against DDP over gloo and the plain script.

    bench/torch_seats.py                      all cases, about 15 minutes on a quiet machine
    bench/torch_seats.py --only mnist-cnn --seconds 5 --repeats 3

Each repeat runs all sides one after the other, each going first in turn; the ratio of a claim is
the median of the ratios within repeats. All sides train the same net on the same synthetic samples
from memory, momentum SGD, one thread per process. Timed are steps after a warm-up, between barriers
under DDP and between the first and the last of a worker's steps in a run. Prints a table and exits
with 0 if every claim holds. --kills N instead kills workers of one run N times and checks its
ledger.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
ROOT = pathlib.Path(__file__).resolve().parents[1]
ANYTIME = os.environ.get("ANYTIME", str(ROOT / "build" / "anytime"))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
WARM_UP = 5

# name: batch, lowest ratio to DDP with 2 and 4 processes, highest slowdown against the plain script
CASES = {"logistic": (60, {2: 3.0, 4: 10.0}, 1.15),
         "mnist-cnn": (64, {2: 1.2, 4: 1.3}, 1.02),
         "resnet18": (16, {2: 1.1, 4: 1.1}, 1.02)}


# ---- one process of a side ----

def new_task(name, width):
    """A model and 512 samples."""
    sys.path.append(str(ROOT / "examples" / "torch"))
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if name == "logistic":
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
        shape = (1, 28, 28)
    elif name == "mnist-cnn":
        from mnist_cnn import Net
        model, shape = Net(), (1, 28, 28)
    else:
        from cifar10_resnet18 import ResNet18
        model, shape = ResNet18(width), (3, 32, 32)
    return torch, model, torch.randn(512, *shape), torch.randint(0, 10, (512,))


def batches(torch, x, y, size):
    while True:
        index = torch.randint(0, len(x), (size,))
        yield x[index], y[index]


def measure(options):
    """One process: trains for about --seconds and prints steps and seconds."""
    torch, model, x, y = new_task(options.case, options.width)
    size = CASES[options.case][0]
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    run = {"plain": run_plain, "ddp": run_ddp, "seat": run_seat}[options.side]
    steps, seconds, first = run(torch, model, opt, batches(torch, x, y, size), options)
    if first:
        print("MEASURED", json.dumps({"steps": steps, "seconds": seconds}), flush=True)


def one_step(torch, model, opt, rows):
    x, y = next(rows)
    opt.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    opt.step()


def timed(step, seconds, agree=lambda steps: steps, barrier=lambda: None):
    """Steps that fill the time, and the time they took."""
    for _ in range(WARM_UP):
        step()
    start = time.perf_counter()
    for _ in range(WARM_UP):
        step()
    each = (time.perf_counter() - start) / WARM_UP
    steps = agree(max(10, round(seconds / each)))
    barrier()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    barrier()
    return steps, time.perf_counter() - start


def run_plain(torch, model, opt, rows, options):
    return *timed(lambda: one_step(torch, model, opt, rows), options.seconds), True


def run_ddp(torch, model, opt, rows, options):
    import torch.distributed as dist
    rank = int(os.environ["BENCH_RANK"])
    dist.init_process_group("gloo", init_method=f"file://{options.meeting}", rank=rank,
                            world_size=options.processes)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)

    def agree(steps):
        count = torch.tensor([steps])
        dist.broadcast(count, src=0)
        return int(count)

    steps, seconds = timed(lambda: one_step(torch, parallel, opt, rows), options.seconds, agree,
                           dist.barrier)
    dist.barrier()
    return steps, seconds, rank == 0


def run_seat(torch, model, opt, rows, options):
    import anytime.torch
    opt = anytime.torch.Optimizer(model, opt, batch=CASES[options.case][0])
    first, done, start, finish = opt.first, 0, 0.0, float("inf")
    while not opt.done and time.perf_counter() < finish:
        if done == WARM_UP:
            start = time.perf_counter()
            finish = start + options.seconds if first else finish
        x, y = next(rows)
        opt.zero_grad()
        opt.backward(torch.nn.functional.cross_entropy(model(x), y), len(x))
        opt.step()
        done += 1
    seconds = time.perf_counter() - start
    return done - WARM_UP, seconds, first


# ---- sides ----

def command(side, options, *more):
    return [PYTHON, __file__, "--side", side, "--case", options.case, "--seconds",
            str(options.seconds), "--width", str(options.width), *map(str, more)]


def read(text):
    line = next(line for line in text.splitlines() if "MEASURED" in line)
    return json.loads(line.split("MEASURED", 1)[1])


def samples_per_second(measured, options, processes):
    return measured["steps"] * CASES[options.case][0] * processes / measured["seconds"]


def side_plain(options, _processes):
    done = subprocess.run(command("plain", options), capture_output=True, text=True, check=True,
                          timeout=600)
    return samples_per_second(read(done.stdout), options, 1)


def side_ddp(options, processes):
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        words = command("ddp", options, "--processes", processes, "--meeting", f"{folder}/meeting")
        started = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "BENCH_RANK": str(rank)})
                   for rank in range(processes)]
        said = [process.communicate(timeout=600)[0] for process in started]
    return samples_per_second(read(said[0]), options, processes)


def side_seat(options, processes):
    """The run lasts a little longer than what its first worker times."""
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        done = subprocess.run(
            [ANYTIME, "run", "-n", str(processes), "--quiet", "--record", "none", "--run",
             f"{folder}/run", "--seconds", f"{options.seconds + 2}s", "--",
             *command("seat", options)], capture_output=True, text=True, timeout=600,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, check=False)
    if "MEASURED" not in done.stdout:
        sys.exit(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")
    return samples_per_second(read(done.stdout), options, processes)


SIDES = {"plain": side_plain, "ddp": side_ddp, "seat": side_seat}


def in_turn(options, processes, sides):
    """Values of all sides, measured one right after the other, another one first every time."""
    values = {side: [] for side in sides}
    for repeat in range(options.repeats):
        for side in sides[repeat % len(sides):] + sides[:repeat % len(sides)]:
            values[side].append(SIDES[side](options, processes))
    return values


def median_ratio(one, two):
    return statistics.median(a / b for a, b in zip(one, two))


def compare(name, options):
    """Rows of the table: case, figures, ratio, claim, holds."""
    options.case = name
    _, claims, slowdown = CASES[name]
    for processes, least in claims.items():
        values = in_turn(options, processes, ["seat", "ddp"])
        ratio = median_ratio(values["seat"], values["ddp"])
        yield (f"{name}, {processes} processes", max(values["seat"]), max(values["ddp"]), ratio,
               f">= {least}", ratio >= least)
    values = in_turn(options, 1, ["seat", "plain"])
    ratio = median_ratio(values["plain"], values["seat"])
    yield (f"{name}, one seat against the plain script", max(values["seat"]),
           max(values["plain"]), ratio, f"<= {slowdown}", ratio <= slowdown)


# ---- kills ----

def kill_workers(kills):
    """Kills workers of a run one after the other; its ledger must be exact."""
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        run = pathlib.Path(folder) / "run"
        hub = subprocess.Popen(
            [ANYTIME, "run", "-n", "3", "--quiet", "--seconds", "100000s", "--run", str(run), "--",
             PYTHON, str(ROOT / "examples" / "torch" / "logistic_anytime.py"), "--epochs",
             "100000"], env={**os.environ, "PYTHONPATH": str(ROOT / "python"),
                            "XDG_CACHE_HOME": "/nowhere"},  # synthetic data load quickly
            stdout=subprocess.DEVNULL)
        try:
            for number in range(kills):
                victim = random.choice(wait_working(run))
                os.kill(victim, signal.SIGKILL)
                wait_working(run, without=victim)
                print(f"killed {number + 1} of {kills}", end="\r", file=sys.stderr)
            hub.send_signal(signal.SIGINT)
            hub.wait(120)
        finally:
            hub.kill()  # and with it its workers
        result = json.loads((run / "result.json").read_text())
    exact = all(row["drawn"] == row["used"] + row["dropped"] for row in result["worker"])
    print(f"{result['respawns']} replaced after {kills} kills, {result['steps']} steps, ledger "
          f"{'exact' if exact else 'WRONG'}")
    return exact and result["respawns"] >= kills


def wait_working(run, without=0):
    """Pids of the workers, once all of them work and `without` has been replaced."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            rows = json.loads((run / "workers.json").read_text())["workers"]
        except (FileNotFoundError, json.JSONDecodeError):
            rows = []
        pids = [row["pid"] for row in rows if row["state"] == "working"]
        if rows and len(pids) == len(rows) and without not in pids:
            return pids
        time.sleep(0.05)
    sys.exit("the workers did not come back within two minutes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--seconds", type=float, default=5, help="length of each measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--width", type=int, default=64, help="of ResNet-18, the same on all sides")
    parser.add_argument("--kills", type=int, help="kill workers this often instead")
    for hidden in ("--side", "--case", "--meeting"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure(options)
        return
    if options.kills:
        sys.exit(0 if kill_workers(options.kills) else 1)
    all_hold = True
    print("| case | seats, samples/s | other, samples/s | ratio | claim | |")
    print("|---|---|---|---|---|---|")
    for name in options.only or CASES:
        for case, seat, other, ratio, claim, holds in compare(name, options):
            all_hold = all_hold and holds
            print(f"| {case} | {seat:.0f} | {other:.0f} | {ratio:.3f} | {claim} | "
                  f"{'holds' if holds else 'FAILS'} |", flush=True)
    sys.exit(0 if all_hold else 1)


if __name__ == "__main__":
    main()
