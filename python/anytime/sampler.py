"""Which samples a seat draws: PyTorch's sampler protocol."""
from __future__ import annotations

import random
from typing import Iterator, Optional, Sized

from .seat import Seat

_current: list[Seat] = []  # the seat of this process, once it has one


def set_current(seat: Optional[Seat]) -> None:
    """Names the seat that samplers of this process draw for; None: there is none any more."""
    _current[:] = [seat] if seat else []


class Sampler:
    """Yields the indices of a data set in the order of this seat.

        loader = DataLoader(dataset, batch_size=32, sampler=anytime.Sampler(dataset))

    Every seat walks random permutations of its own, a function of the run's seed, its rank and how
    many samples it has computed: what a loader has read ahead does not count, and a process that
    replaces a dead one continues where that one was. One pass yields the seat's share of an epoch.
    Without a hub it is an ordinary shuffle.
    """

    def __init__(self, dataset: Sized, seed: int = 0):
        self.samples = len(dataset)
        self._random = random.Random(seed)
        if self.samples == 0:
            raise ValueError("the data set is empty")

    def __len__(self) -> int:
        workers = int(_current[0].facts.workers_start) if _current else 1
        return -(-self.samples // max(1, workers))

    def __iter__(self) -> Iterator[int]:
        if not _current:
            order = list(range(self.samples))
            self._random.shuffle(order)
            yield from order
            return
        seat, count = _current[0], len(self)
        start = seat.position
        for position in range(start, start + count):
            yield seat.sample(position, self.samples)
