"""Distributed training on unequal machines: seats for PyTorch and numpy programs.

    import anytime.torch            # four lines in a PyTorch script, see anytime.torch.Optimizer
    anytime.train(loss, params, samples, ["--strategy", "amb"])   # a numpy function
    anytime.Seat                    # the loop is yours
    anytime.Sampler(dataset)        # every seat draws its own samples
    anytime.read("runs/latest")     # curves and tables as numpy arrays
    anytime.load("runs/latest", model)   # trained weights into a torch module

Nothing here is compiled: the package calls libanytime.so.
"""
from ._library import (ABANDON, DONE, MORE, REFRESHED, REPORT, Error, Evicted, Lost)
from .own_model import train
from .runs import Run, load, read, weights
from .sampler import Sampler
from .seat import Seat, Spec, TensorSpec

__all__ = ["ABANDON", "DONE", "MORE", "REFRESHED", "REPORT", "Error", "Evicted", "Lost", "Run",
           "Sampler", "Seat", "Spec", "TensorSpec", "load", "read", "train", "version", "weights"]


def version() -> str:
    """Version of the library."""
    from ._library import load as load_library
    return str(load_library().at_version().decode())
