"""PyTorch's plain training loop on one thread: steps per second.

    python3 bench/torch_plain.py --model softmax --batch 60 --seconds 2

Times every way of drawing rows in turn and prints one JSON document. Loading and a warm-up are
not timed; the loss before and after shows that the loop learns.
"""
import argparse
import json
import time

import torch_task as task
from torch_task import torch


def time_loop(options, draw, images, labels):
    """One timed loop with a new model; its length is derived from the warm-up."""
    torch.manual_seed(options.seed)
    model = task.new_model(options.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.LEARNING_RATE)
    rows = task.DRAWS[draw](len(images), options.batch)
    loss_first = task.loss_of(model, images[:10000], labels[:10000])

    task.train(model, optimizer, images, labels, rows, task.WARM_UP_STEPS)
    start = time.perf_counter()
    task.train(model, optimizer, images, labels, rows, task.WARM_UP_STEPS)
    step_seconds = (time.perf_counter() - start) / task.WARM_UP_STEPS
    steps = max(task.WARM_UP_STEPS, round(options.seconds / step_seconds))

    start = time.perf_counter()
    task.train(model, optimizer, images, labels, rows, steps)
    seconds = time.perf_counter() - start
    return {"steps": steps, "seconds": seconds, "steps_per_second": steps / seconds,
            "loss_first": loss_first, "loss": task.loss_of(model, images[:10000], labels[:10000])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=task.MODELS, default="softmax")
    parser.add_argument("--batch", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=2, help="length of each timed loop")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(1)
    images, labels = task.load()
    draws = {draw: time_loop(options, draw, images, labels) for draw in task.DRAWS}
    print(json.dumps({"torch": torch.__version__, "blas": task.blas_in_use(),
                      "model": options.model, "batch": options.batch, "draws": draws}))


if __name__ == "__main__":
    main()
