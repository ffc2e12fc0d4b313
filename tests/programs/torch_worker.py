"""A PyTorch script with the four lines changed; words `name=value` choose what it does.

    optimizer, model   see support/torch_task.py
    update             hub or worker
    sizes              samples of a batch, one per rank, or one for all
    out                folder for the final parameters and what was seen on the way
    steps              stop by itself after so many micro-batches
"""
import os
import sys

import torch

import anytime.torch as anytime
from support import torch_task as task

words = dict(word.split("=", 1) for word in sys.argv[1:])


def option(name, default=None):
    return words.get(name, default)


def main():
    model = task.new_model(option("model", "mlp"))
    opt = task.new_optimizer(option("optimizer", "sgd"), model)
    clip = float(option("clip")) if option("clip") else None
    opt = anytime.Optimizer(model, opt, update=option("update"), clip_norm=clip)
    sizes = [int(size) for size in option("sizes", "8").split(",")]
    size = sizes[opt.rank % len(sizes)]
    schedule = None
    if option("schedule"):
        schedule = torch.optim.lr_scheduler.StepLR(opt, int(option("schedule")), 0.5)
    rates, micro = [], 0
    while not opt.done and micro < int(option("steps", 10**9)):
        micro += 1
        clear(model, opt)
        x, y = task.samples(opt.rank, micro, size)
        opt.backward(task.loss_of(model, x, y), len(x))
        opt.step()
        if schedule and opt.updated:
            rates.append(opt.param_groups[0]["lr"])
            schedule.step()
    if option("out"):
        rank = os.environ.get("ANYTIME_RANK", "0")
        torch.save(task.flat(model).clone(), f"{option('out')}/params-{rank}.pt")
        torch.save({"rates": rates, "state": {k: v.clone() for k, v in model.state_dict().items()},
                    "version": opt.version, "micro": micro}, f"{option('out')}/facts-{rank}.pt")


def clear(model, opt):
    """Scripts clear gradients in many ways."""
    how = option("clear", "opt")
    if how == "opt":
        opt.zero_grad()
    elif how == "none":
        opt.zero_grad(set_to_none=True)
    elif how == "model":
        model.zero_grad()
    elif how == "model-none":
        model.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
