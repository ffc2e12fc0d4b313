"""Step time of a PyTorch net trained on images in memory.

    python3 bench/torch_steps.py --net cifar10-cnn --batch 64 --threads 1 --seconds 2

A step draws a new random batch from memory and does forward, backward and an SGD update. Both
layouts (NCHW, channels_last) are timed in turn, after a warm-up, and with --compiled a second time
under torch.compile if this PyTorch has it; one JSON document is printed. The figure is the median
of the steps.
"""
import argparse
import json
import math
import statistics
import time

import torch_task as task
from torch_nets import NETS, new_net
from torch_task import torch

LAYOUTS = ("nchw", "channels_last")
COMPILED = "compiled"  # ends the name of a layout that was timed under torch.compile
WARM_UP_STEPS = 3
STEPS_MIN = 5
FLOATS_MAX = 40 * 1000 * 1000  # in the data set: far more than caches hold


def images_of(shape, layout, batch):
    """Random images, stored in the order of their layout."""
    count = max(2 * batch, min(4096, FLOATS_MAX // math.prod(shape)))
    if layout == "channels_last":
        shape = (*shape[1:], shape[0])
    return torch.randn(count, *shape)


def draw(images, labels, batch, layout):
    index = torch.randint(len(images), (batch,))
    rows = images.index_select(0, index)
    if layout == "channels_last":
        rows = rows.permute(0, 3, 1, 2)  # only a view: its strides make it channels_last
    return rows, labels.index_select(0, index)


def time_layout(options, layout, compiled):
    torch.manual_seed(options.seed)
    _, shape, _ = NETS[options.net]
    net = new_net(options.net)
    if layout == "channels_last":
        net = net.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=options.lr)
    net = torch.compile(net) if compiled else net
    images = images_of(shape, layout, options.batch)
    labels = torch.randint(10, (len(images),))

    def step():
        rows, wanted = draw(images, labels, options.batch, layout)
        loss = torch.nn.functional.cross_entropy(net(rows), wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(WARM_UP_STEPS):
        step()
    times, spent = [], 0.0
    while spent < options.seconds or len(times) < STEPS_MIN:
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
        spent += times[-1]
    return {"steps": len(times), "step_seconds": statistics.median(times),
            "step_seconds_best": min(times), "loss": loss.item()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--net", choices=NETS, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--seconds", type=float, default=2, help="length of each timed loop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compiled", action="store_true", help="under torch.compile as well")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layouts = {layout: time_layout(options, layout, False) for layout in LAYOUTS}
    if options.compiled and hasattr(torch, "compile"):
        layouts |= {f"{layout} {COMPILED}": time_layout(options, layout, True)
                    for layout in LAYOUTS}
    print(json.dumps({"torch": torch.__version__, "blas": task.blas_in_use(), "net": options.net,
                      "batch": options.batch, "threads": torch.get_num_threads(),
                      "layouts": layouts}))


if __name__ == "__main__":
    main()
