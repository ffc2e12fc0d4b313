"""PyTorch's DistributedDataParallel over gloo on this machine: how many steps a second?

    python3 bench/torch_ddp.py --model softmax --batch 60 --processes 4 --seconds 3

One thread a process, the set loaded once and shared by fork. Times every way of drawing rows in
turn and prints one JSON document; loading, joining and a warm-up are outside the timing.
"""
import argparse
import json
import os
import tempfile
import time

import torch_task as task
from torch_task import torch

import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def timed_steps(count, *loop):
    """Seconds that `count` steps take, from all processes ready to all processes done."""
    dist.barrier()
    start = time.perf_counter()
    task.train(*loop, count)
    dist.barrier()
    return time.perf_counter() - start


def steps_for(seconds, step_seconds):
    """How many steps fill the time: the first process decides, for a step takes all of them."""
    steps = torch.tensor([max(task.WARM_UP_STEPS, round(seconds / step_seconds))])
    dist.broadcast(steps, src=0)
    return int(steps)


def time_loop(options, draw, images, labels):
    """One timed loop with a fresh model."""
    torch.manual_seed(options.seed)
    model = torch.nn.parallel.DistributedDataParallel(
        task.new_model(options.model), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.LEARNING_RATE)
    torch.manual_seed(options.seed + 1 + dist.get_rank())  # from here on each draws its own rows
    rows = task.DRAWS[draw](len(images), options.batch)
    loss_first = task.loss_of(model.module, images[:10000], labels[:10000])

    loop = (model, optimizer, images, labels, rows)
    timed_steps(task.WARM_UP_STEPS, *loop)
    steps = steps_for(options.seconds, timed_steps(task.WARM_UP_STEPS, *loop) / task.WARM_UP_STEPS)
    seconds = timed_steps(steps, *loop)
    return {"steps": steps, "seconds": seconds, "steps_per_second": steps / seconds,
            "loss_first": loss_first,
            "loss": task.loss_of(model.module, images[:10000], labels[:10000])}


def process(rank, options, folder, images, labels):
    """One of the processes; the first one writes the result."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                            world_size=options.processes)
    draws = {draw: time_loop(options, draw, images, labels) for draw in task.DRAWS}
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "blas": task.blas_in_use(),
                          "model": options.model, "batch": options.batch,
                          "processes": options.processes, "draws": draws}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=task.MODELS, default="softmax")
    parser.add_argument("--batch", type=int, default=60, help="rows of each process")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3, help="length of each timed loop")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    images, labels = task.load()
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        multiprocessing.start_processes(process, (options, folder, images, labels),
                                        nprocs=options.processes, start_method="fork")


if __name__ == "__main__":
    main()
