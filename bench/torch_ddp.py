"""PyTorch's DistributedDataParallel over gloo on this machine: steps per second.

    python3 bench/torch_ddp.py --model softmax --batch 60 --processes 4 --seconds 3

One thread per process; the data set is loaded once and shared by fork. Times every way of drawing
rows (for convolutional nets: both layouts) in turn and prints one JSON document; loading, joining
and a warm-up are not timed.
"""
import argparse
import json
import os
import tempfile
import time

import torch_task as task
from torch_nets import NETS, new_net
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
    """Number of steps that fill the time; the first process decides for all."""
    steps = torch.tensor([max(10, round(seconds / step_seconds))])
    dist.broadcast(steps, src=0)
    return int(steps)


class NetOnRows(torch.nn.Module):
    """A net that takes flat rows and reads them as images in its layout."""

    def __init__(self, name, layout):
        super().__init__()
        _, self.shape, _ = NETS[name]
        self.format = getattr(torch, layout)
        self.net = new_net(name).to(memory_format=self.format)

    def forward(self, rows):
        images = rows.reshape(-1, *self.shape)  # one channel: the same bytes in both layouts
        return self.net(images.contiguous(memory_format=self.format))


def loops_of(name):
    """The loops to time: {name: (way of drawing rows, constructor of the model)}."""
    if name in NETS:
        return {layout: ("randint", lambda layout=layout: NetOnRows(name, layout))
                for layout in ("contiguous_format", "channels_last")}
    return {draw: (draw, lambda: task.new_model(name)) for draw in task.DRAWS}


def time_loop(options, draw, new_model, images, labels):
    """One timed loop with a fresh model."""
    warm_up, looked_at = (10, 1000) if options.model in NETS else (task.WARM_UP_STEPS, 10000)
    torch.manual_seed(options.seed)
    model = torch.nn.parallel.DistributedDataParallel(new_model(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.LEARNING_RATE)
    torch.manual_seed(options.seed + 1 + dist.get_rank())  # now each draws its own rows
    rows = task.DRAWS[draw](len(images), options.batch)
    some = images[:looked_at], labels[:looked_at]
    loss_first = task.loss_of(model.module, *some)

    loop = (model, optimizer, images, labels, rows)
    timed_steps(warm_up, *loop)
    steps = steps_for(options.seconds, timed_steps(warm_up, *loop) / warm_up)
    seconds = timed_steps(steps, *loop)
    return {"steps": steps, "seconds": seconds, "steps_per_second": steps / seconds,
            "loss_first": loss_first, "loss": task.loss_of(model.module, *some)}


def process(rank, options, folder, images, labels):
    """One process; the first one prints the result."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                            world_size=options.processes)
    draws = {name: time_loop(options, *loop, images, labels)
             for name, loop in loops_of(options.model).items()}
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "blas": task.blas_in_use(),
                          "model": options.model, "batch": options.batch,
                          "processes": options.processes, "draws": draws}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=[*task.MODELS, *NETS], default="softmax")
    parser.add_argument("--batch", type=int, default=60, help="rows per process")
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
