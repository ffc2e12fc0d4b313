"""A worker's place in a run, for programs that own their training loop."""
from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional, Sequence

from . import _library as c

_WAIT_MS = 50  # Ctrl-C is handled between two waits


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of the flat vector. Buffers come after all parameters."""
    name: str
    shape: Sequence[int]
    buffer: bool = False
    group: int = 0


@dataclass
class Spec:
    """What is trained; the same for all seats of a run. See at_seat_spec in anytime.h."""
    tensors: Sequence[TensorSpec]
    optimizer: Optional[str] = None
    groups: Sequence[dict[str, Any]] = field(default_factory=list)
    model: Optional[str] = None
    batch: int = 0
    samples: int = 0
    update_at_worker: bool = False
    whole_pages: bool = False  # the vector of parameters has whole pages: they can be mapped there
    overwrites: bool = False  # a round's first micro-batch writes the whole gradient


def _float(value: Any) -> float:
    """A hyper-parameter; 0 for what only some optimizer of PyTorch understands, such as pairs."""
    return 0.0 if value is None or isinstance(value, (tuple, list, str)) else float(value)


def group_values(values: dict) -> c.Group:
    """Hyper-parameters called as in PyTorch, as the library wants them."""
    group = c.Group()
    for name in ("lr", "weight_decay", "momentum", "eps", "alpha", "lr_decay"):
        setattr(group, name, _float(values.get(name)))
    group.beta1, group.beta2 = (_float(beta) for beta in (*values.get("betas", ()), 0, 0)[:2])
    group.accumulator = float(values.get("initial_accumulator_value", 0))
    group.nesterov = int(bool(values.get("nesterov", False)))
    return group


class Seat:
    """A seat at a hub.

        seat = anytime.Seat.join(spec, params_address)
        while seat.next():
            while True:
                ...  # add gradient sums to the floats at seat.gradient
                status = seat.more(samples, loss_sum)
                if status not in (anytime.MORE, anytime.REFRESHED): break
            if status == anytime.REPORT: seat.report()
        seat.leave()

    Addresses are those of float32 vectors; `floats` is their length. Calls that wait release the
    global lock and are interrupted by Ctrl-C. A lost hub raises Lost, an eviction Evicted.
    """

    def __init__(self, library: Any, handle: ctypes.c_void_p, keep: c.Spec):
        self._library, self._handle, self._keep = library, handle, keep
        self.order = c.Order()
        self.position = 0  # in this seat's sequence of samples: where the next micro-batch begins
        self.done = False

    @classmethod
    def join(cls, spec: Spec, params: int, hub: Optional[str] = None) -> Optional["Seat"]:
        """Takes a seat; None when no hub is named here or in ANYTIME_HUB. `params` is the address
        of the flat vector with the initial values, in which parameters are installed."""
        library, handle, why = c.load(), ctypes.c_void_p(), c.Why()
        described = _describe(spec, params)
        name = hub.encode() if hub else None
        while True:
            status = library.at_seat_join(ctypes.byref(handle), name, ctypes.byref(described),
                                          ctypes.byref(why))
            if status != c.AGAIN:
                break
        if status == c.ALONE:
            return None
        if status != c.JOINED:
            error = c.Lost if status == c.LOST else c.Error
            raise error(why.message.decode(errors="replace"), why.code or 1)
        return cls(library, handle, described)

    def _check(self, status: int) -> int:
        if status == c.LOST:
            raise c.Lost("the hub is gone", 75)
        if status == c.EVICTED:
            raise c.Evicted("the hub gave this worker up, because it was silent for too long", 75)
        if status == c.DONE:
            self.done = True
        return status

    def next(self, update: Optional[Callable[[c.Order], None]] = None) -> bool:
        """Waits for the next round, described in `order`; False: the run is over. Where workers
        update, `update` is called with every order that asks for something: see at_seat_order."""
        while True:
            status = self._library.at_seat_next(self._handle, ctypes.byref(self.order))
            order = self.order
            if update and (order.install or order.apply or order.publish):
                update(order)
            if status == c.DONE and order.publish:  # says that all of it was handed over
                self._library.at_seat_next(self._handle, ctypes.byref(c.Order()))
            if status == c.WORK:
                self.position = order.position
            if status != c.AGAIN:
                return self._check(status) == c.WORK

    def more(self, samples: int, loss_sum: float) -> int:
        """To be called after each micro-batch. MORE, REFRESHED, REPORT, ABANDON or DONE."""
        self.position += samples
        while True:
            status = self._library.at_seat_more(self._handle, samples, loss_sum)
            if status != c.AGAIN:
                return self._check(status)
            samples, loss_sum = 0, 0.0

    def report(self) -> None:
        """Hands the round over to the hub."""
        self._library.at_seat_report(self._handle)

    def leave(self) -> None:
        """Gives the seat up. It can be called more than once."""
        self._library.at_seat_leave(ctypes.byref(self._handle))

    @property
    def gradient(self) -> int:
        """Address of this round's gradient, zeroed by next()."""
        return int(self._library.at_seat_gradient(self._handle))

    @property
    def mean(self) -> int:
        """Address of the mean gradient to apply, when updates happen at the workers."""
        return int(self._library.at_seat_mean(self._handle))

    @property
    def params(self) -> int:
        """Address of the installed parameters."""
        return int(self._library.at_seat_params(self._handle))

    @property
    def facts(self) -> c.Facts:
        """Rank, number of workers, version and so on: at_seat_facts."""
        facts = c.Facts()
        self._library.at_seat_facts_get(self._handle, ctypes.byref(facts))
        return facts

    def random(self, position: int) -> int:
        """A random number of this seat at this position, the same in every run with its seed."""
        return int(self._library.at_seat_random(self._handle, position))

    def sample(self, position: int, samples: int) -> int:
        """Index of the sample to draw at this position."""
        return int(self._library.at_seat_sample(self._handle, position, samples))

    def set_group(self, index: int, values: dict[str, Any]) -> None:
        """Sets hyper-parameters; only the first seat's count."""
        self._library.at_seat_group_set(self._handle, index, ctypes.byref(group_values(values)))

    def evaluated(self, version: int, accuracy: Optional[float], loss: Optional[float]) -> None:
        """Reports an evaluation, for curves and --target."""
        nan = float("nan")
        self._library.at_seat_evaluated(self._handle, version,
                                        nan if accuracy is None else accuracy,
                                        nan if loss is None else loss)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While the block runs, the round's clock stands still, and the hub does not evict it."""
        self._library.at_seat_aside(self._handle, 1)
        try:
            yield
        finally:
            self._library.at_seat_aside(self._handle, 0)

    def put_state(self, name: str, address: int, count: int) -> None:
        """Stores a named vector at the hub."""
        if len(name.encode()) >= c.NAME_SIZE:
            raise c.Error(f"the name `{name}` is too long", 2)
        if self._library.at_seat_state_put(self._handle, name.encode(), address, count) != 0:
            raise c.Lost(f"the hub did not take `{name}`: it is gone", 75)

    def get_state(self, name: str, address: int, count: int) -> int:
        """Reads a named vector; returns its size, -1 when there is none."""
        return int(self._library.at_seat_state_get(self._handle, name.encode(), address, count))

    def state_names(self) -> list[str]:
        """Names of the vectors that the hub keeps."""
        names: list[str] = []
        buffer = ctypes.create_string_buffer(c.NAME_SIZE)
        while self._library.at_seat_state_name(self._handle, len(names), buffer) == 0:
            names.append(buffer.value.decode())
        return names

    def publish(self, address: int) -> None:
        """Hands this seat's parameters to the hub, when updates happen at the workers."""
        self._library.at_seat_publish(self._handle, address)


def _describe(spec: Spec, params: int) -> c.Spec:
    """The C form of a spec. The result keeps everything it points to alive."""
    tensors = (c.Tensor * len(spec.tensors))()
    for to, tensor in zip(tensors, spec.tensors):
        if len(tensor.shape) > c.DIMS_MAX:
            raise c.Error(f"{tensor.name} has {len(tensor.shape)} dimensions; at most "
                          f"{c.DIMS_MAX} are possible", 2)
        to.name = tensor.name.encode()
        to.dims = len(tensor.shape)
        to.shape[:to.dims] = list(tensor.shape)
        to.role = c.BUFFER if tensor.buffer else c.TRAINED
        to.group = tensor.group
    if len(spec.groups) > c.GROUPS_MAX:
        raise c.Error(f"the optimizer has {len(spec.groups)} parameter groups; at most "
                      f"{c.GROUPS_MAX} are possible", 2)
    groups = (c.Group * max(1, len(spec.groups)))(*map(group_values, spec.groups))
    return c.Spec(model=spec.model.encode() if spec.model else None, tensors=tensors,
                  tensors_count=len(spec.tensors),
                  update=c.UPDATE_WORKER if spec.update_at_worker else c.UPDATE_HUB,
                  optimizer=spec.optimizer.encode() if spec.optimizer else None,
                  groups=groups if spec.groups else None, groups_count=len(spec.groups),
                  batch=spec.batch, samples=spec.samples, params=params,
                  installs=2 if spec.whole_pages else 1, rank=-1, wait_ms=_WAIT_MS,
                  overwrites=int(spec.overwrites))
