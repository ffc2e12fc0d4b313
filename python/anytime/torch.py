"""PyTorch: four changed lines make a training script a worker.

    import anytime.torch as anytime                  # 1
    opt = anytime.Optimizer(model, opt)              # 2
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        opt.backward(loss, len(x))                   # 3  instead of loss.backward()
        opt.step()
        if opt.done: break                           # 4

Started with `anytime run -n 4 -- python3 train.py` it trains with three others; started alone it
trains exactly as before.
"""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Callable, Iterator, Optional

import torch

from . import _library as c
from .runs import load, read, weights
from .sampler import Sampler, set_current
from .seat import Seat, Spec, TensorSpec

__all__ = ["Optimizer", "Sampler", "load", "read", "weights"]

_AT_HUB = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw",
           torch.optim.RMSprop: "rmsprop", torch.optim.Adagrad: "adagrad"}
_ELSEWHERE = ("amsgrad", "maximize", "centered", "dampening")  # options that only torch has
_joined: list = []  # a weak reference to the optimizer that has this process's seat


def _hub_optimizer(inner: torch.optim.Optimizer) -> Optional[str]:
    """Its name, if the hub has this optimizer with these options."""
    name = _AT_HUB.get(type(inner))
    if any(group.get(option) for group in inner.param_groups for option in _ELSEWHERE):
        return None
    return name


def _vector(address: int, count: int) -> torch.Tensor:
    """A tensor over memory that the library owns."""
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


class _Layout:
    """Which tensor of the model is where in the flat vector."""

    def __init__(self, model: torch.nn.Module, inner: torch.optim.Optimizer):
        group_of = {id(p): i for i, g in enumerate(inner.param_groups) for p in g["params"]}
        self.names, self.params, self.groups = [], [], []
        for name, param in model.named_parameters():
            if param.requires_grad and id(param) in group_of:
                self._check(name, param)
                self.names.append(name.replace("_orig_mod.", ""))
                self.params.append(param)
                self.groups.append(group_of[id(param)])
        if len(self.params) < sum(p.requires_grad for g in inner.param_groups
                                  for p in g["params"]):
            raise c.Error("the optimizer updates parameters that the model does not have: pass the "
                          "model that owns them", 2)
        if not self.params:
            raise c.Error("the optimizer has no parameters to train", 2)
        self.buffer_names, self.buffers, self.counters = [], [], {}
        for name, buffer in model.named_buffers():
            name = name.replace("_orig_mod.", "")
            if buffer.dtype == torch.float32:
                self.buffer_names.append(name)
                self.buffers.append(buffer)
            elif not buffer.is_floating_point():
                self.counters[name] = buffer
        sizes = [tensor.numel() for tensor in self.params + self.buffers]
        self.offsets = [sum(sizes[:i]) for i in range(len(sizes))]
        self.floats = sum(sizes)
        self.trained = sum(sizes[:len(self.params)])

    @staticmethod
    def _check(name: str, param: torch.Tensor) -> None:
        if param.layout != torch.strided:
            raise c.Error(f"{name} is sparse; only dense parameters can be trained together", 2)
        if param.dtype != torch.float32:
            raise c.Error(f"{name} is {param.dtype}; parameters must be float32 (autocast is "
                          "possible, model.half() is not)", 2)
        if param.numel() == 0:
            raise c.Error(f"{name} is empty", 2)

    def specs(self) -> list[TensorSpec]:
        """The tensors for the hub."""
        trained = [TensorSpec(n, tuple(p.shape), group=g)
                   for n, p, g in zip(self.names, self.params, self.groups)]
        return trained + [TensorSpec(n, tuple(b.shape), buffer=True)
                          for n, b in zip(self.buffer_names, self.buffers)]

    def cut(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Views of a flat vector, one per parameter and buffer."""
        return [flat[at:at + t.numel()].view(t.shape)
                for at, t in zip(self.offsets, self.params + self.buffers)]


class Optimizer(torch.optim.Optimizer):
    """Makes this process a worker: wraps any torch.optim optimizer, and is one.

    model          the module whose parameters `optimizer` updates
    update         "hub": the hub sums and updates once, for all (SGD, Adam, AdamW, RMSprop,
                   Adagrad in torch's exact order of operations). "worker": every process applies
                   the mean gradient with its own optimizer; needs a strategy that waits for all.
                   Default: the hub wherever it can
    reduction      what the loss is: the "mean" over the samples, as always, or the "sum"
    clip_norm      clips the norm of the step's mean gradient (updates at the workers)
    before_update  a function called with the mean gradient in .grad, before the update (same)
    samples        training samples of an epoch, for --epochs and `epoch`; default: unknown
    batch          samples of a usual micro-batch, for the default of --batch
    hub            the hub's address; default: ANYTIME_HUB. Without any, training is local

    `done` says that the run is over, `updated` that a step was closed by the last step() (call a
    scheduler's step() then), `first` that this process should print and evaluate. A module that
    is run before its parameters are wrapped (torch.compile) is compiled again.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *,
                 update: Optional[str] = None, reduction: str = "mean",
                 clip_norm: Optional[float] = None,
                 before_update: Optional[Callable[[], None]] = None, samples: int = 0,
                 batch: int = 0, hub: Optional[str] = None):
        _refuse(optimizer, update, reduction)
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.state = optimizer.state
        self.inner, self.model = optimizer, model
        self.reduction, self.clip_norm, self.before_update = reduction, clip_norm, before_update
        self.done, self.updated = False, False
        self._updates, self._samples, self._loss = 0, 0, 0.0
        self._seat: Optional[Seat] = None
        if hub or os.environ.get("ANYTIME_HUB"):
            self._join(update, samples, batch, hub)

    # ---- joining ----

    def _join(self, update, samples, batch, hub) -> None:
        if _joined and _joined[0]():
            raise c.Error("this process has a seat already; only one Optimizer can be wrapped", 2)
        at_hub = _hub_optimizer(self.inner)
        shapes_gradient = self.clip_norm is not None or self.before_update is not None
        if update == "hub" and (not at_hub or shapes_gradient):
            raise c.Error("this optimizer needs update=\"worker\": "
                          + ("clipping and before_update happen where torch is" if at_hub else
                             "the hub does not have it, or not with these options"), 2)
        self._at_worker = update == "worker" or not at_hub or shapes_gradient
        self._layout = _Layout(self.model, self.inner)
        device = self._layout.params[0].device
        self._take_over(device)
        spec = Spec(self._layout.specs(), optimizer=None if self._at_worker else at_hub,
                    groups=self.inner.param_groups, model=type(self.model).__name__, batch=batch,
                    samples=samples, update_at_worker=self._at_worker)
        self._seat = Seat.join(spec, self._host.data_ptr(), hub)
        if not self._seat:
            return
        _joined[:] = [weakref.ref(self)]
        set_current(self._seat)
        self._sent_groups: list = []
        self._begin_round()

    def _take_over(self, device: torch.device) -> None:
        """Moves parameters and buffers into one flat vector. The hub writes to `_host`; on other
        devices the model uses a copy."""
        layout = self._layout
        self._host = torch.zeros(layout.floats)
        self._flat = self._host if device.type == "cpu" else torch.zeros(layout.floats,
                                                                         device=device)
        self._views = layout.cut(self._flat)
        with torch.no_grad():
            for tensor, view in zip(layout.params + layout.buffers, self._views):
                view.copy_(tensor)
                tensor.data = view
        if self._flat is not self._host:
            self._host.copy_(self._flat)
        self.model.zero_grad = self.zero_grad  # it would clear half a round's sum

    # ---- facts ----

    @property
    def rank(self) -> int:
        """Number of this worker, counted from 0."""
        return self._seat.facts.rank if self._seat else 0

    @property
    def workers(self) -> int:
        """Number of workers present."""
        return self._seat.facts.workers if self._seat else 1

    @property
    def version(self) -> int:
        """Updates made so far."""
        return self._seat.facts.version if self._seat else self._updates

    @property
    def first(self) -> bool:
        """Is this the process that prints, evaluates and sets learning rates?"""
        return bool(self._seat.facts.first) if self._seat else True

    @property
    def epoch(self) -> int:
        """Passes over the data that all workers together have used; 0 without `samples`."""
        facts = self._seat.facts if self._seat else None
        return facts.samples_used // facts.samples if facts and facts.samples else 0

    # ---- a micro-batch ----

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clears gradients, but only at the start of a round."""
        if not self._seat:
            self.inner.zero_grad(set_to_none=set_to_none)

    def backward(self, loss: torch.Tensor, samples: int) -> None:
        """loss.backward() for a loss over this many samples."""
        if samples < 1:
            raise c.Error("backward needs the number of samples: opt.backward(loss, len(x))", 2)
        if self.done:
            return  # an outer loop over epochs goes on for a batch each
        if not self._seat:
            loss.backward()
            self._samples += samples
            return
        self._attach()
        value = loss.detach()
        if self.reduction == "mean":
            loss, value = loss * samples, value * samples
        loss.backward()
        self._samples += samples
        self._loss += float(value)

    def step(self, closure: Optional[Callable] = None) -> None:
        """Ends a micro-batch. When the round is over, reports it, waits and installs the next
        parameters."""
        if closure is not None:
            raise c.Error("step() takes no closure (LBFGS cannot be distributed)", 2)
        if self.done:
            return
        if self._samples == 0:
            raise c.Error("step() without opt.backward(loss, samples): replace loss.backward(); "
                          "GradScaler is not supported", 2)
        samples, loss, self._samples, self._loss = self._samples, self._loss, 0, 0.0
        self.updated = False
        if not self._seat:
            self._update_here()
            return
        status = self._seat.more(samples, loss)
        if status == c.MORE:
            return
        if status == c.REFRESHED:
            self._install()
            return
        if status == c.REPORT:
            self._report()
        self._begin_round()

    # ---- rounds ----

    def _attach(self) -> None:
        """Gradients are views of the round's vector; a script may have replaced them."""
        for param, view in zip(self._layout.params, self._grads):
            if param.grad is not view:
                if param.grad is not None:  # computed elsewhere in this round: not lost
                    view.add_(param.grad)
                param.grad = view

    def _begin_round(self) -> None:
        """Waits for the next round, applies and installs what came, and prepares gradients."""
        working = self._seat.next()
        order = self._seat.order
        self.updated = bool(order.updated) or not working
        if self._at_worker:
            self._update_at_worker(order)
        else:
            self._install()
        if not working:
            self._finish()
            return
        self._gradient = _vector(self._seat.gradient, self._layout.floats)
        if self._flat is not self._host:
            self._sum = torch.zeros_like(self._flat)
        else:
            self._sum = self._gradient
        self._grads = self._layout.cut(self._sum)[:len(self._layout.params)]
        for param, view in zip(self._layout.params, self._grads):
            param.grad = view
        self._send_groups()
        torch.manual_seed(self._seat.random(order.position) & (2**63 - 1))

    def _finish(self) -> None:
        self.done = True
        for param in self._layout.params:
            param.grad = None
        set_current(None)
        self._seat.leave()

    def _install(self) -> None:
        """The hub's vector is in `_host`."""
        if self._flat is not self._host:
            self._flat.copy_(self._host)
        for name, buffer in self._layout.counters.items():
            value = torch.zeros(1)
            if self._seat.get_state(name, value.data_ptr(), 1) == 1 and buffer.numel() == 1:
                buffer.fill_(int(value))

    def _report(self) -> None:
        """Checks that the script left the tensors where they were, and hands the round over."""
        layout, n = self._layout, len(self._layout.params)
        for name, tensor, view in zip(layout.names + layout.buffer_names,
                                      layout.params + layout.buffers, self._views):
            if tensor.data_ptr() != view.data_ptr() or tensor.dtype != torch.float32:
                raise c.Error(f"{name} was moved or converted after anytime.Optimizer was made "
                              "(.half(), .to(), .data = ...): do that before", 2)
        for name, param in zip(layout.names, layout.params):
            if not param.requires_grad:
                raise c.Error(f"requires_grad of {name} was changed during the run", 2)
        self._attach()
        for at, buffer in zip(layout.offsets[n:], layout.buffers):
            self._sum[at:at + buffer.numel()].copy_(buffer.reshape(-1))
        if self._sum is not self._gradient:
            self._gradient.copy_(self._sum)
        if self._seat.facts.first:
            for name, buffer in layout.counters.items():
                if buffer.numel() == 1:
                    value = torch.tensor([float(buffer)])
                    self._seat.put_state(name, value.data_ptr(), 1)
        self._seat.report()

    def _send_groups(self) -> None:
        """The first seat's learning rates bind everybody."""
        numbers = [{k: v for k, v in g.items() if k != "params"} for g in self.inner.param_groups]
        if numbers == self._sent_groups or not self._seat.facts.first:
            return
        for index, values in enumerate(numbers):
            self._seat.set_group(index, values)
        self._sent_groups = [dict(values) for values in numbers]

    # ---- updates with torch's own optimizer ----

    def _update_here(self) -> None:
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([p for g in self.inner.param_groups
                                            for p in g["params"] if p.grad is not None],
                                           self.clip_norm)
        if self.before_update is not None:
            self.before_update()
        self.inner.step()
        self._updates += 1
        self.updated = True

    def _update_at_worker(self, order: c.Order) -> None:
        if order.install:
            self._host.copy_(_vector(self._seat.params, self._layout.floats))
            self._install()
            self._take_state()
        if order.apply:
            mean = _vector(self._seat.mean, self._layout.floats).to(self._flat.device)
            views = self._layout.cut(mean.clone())
            for param, view in zip(self._layout.params, views):
                param.grad = view
            for buffer, view in zip(self._layout.buffers, views[len(self._layout.params):]):
                buffer.copy_(view)
            self._update_here()
        if order.publish:
            self._host.copy_(self._flat)
            self._seat.publish(self._host.data_ptr())
            self._give_state()

    def _states(self) -> Iterator[tuple[str, torch.Tensor, dict]]:
        for name, param in zip(self._layout.names, self._layout.params):
            yield name, param, self.inner.state[param]

    def _give_state(self) -> None:
        for name, _, state in self._states():
            for key, value in state.items():
                if not isinstance(value, (torch.Tensor, int, float)):
                    continue
                flat = torch.as_tensor(value, dtype=torch.float32).detach().reshape(-1).cpu()
                flat = flat.contiguous()
                self._seat.put_state(f"optimizer.{name}.{key}", flat.data_ptr(), flat.numel())

    def _take_state(self) -> None:
        params = dict(zip(self._layout.names, self._layout.params))
        for stored in self._seat.state_names():
            name, _, key = stored[len("optimizer."):].rpartition(".")
            if not stored.startswith("optimizer.") or name not in params:
                continue
            param = params[name]
            count = self._seat.get_state(stored, 0, 0)
            flat = torch.zeros(max(count, 1))
            self._seat.get_state(stored, flat.data_ptr(), count)
            scalar = count == 1 and (param.numel() != 1 or key == "step")
            self.inner.state[param][key] = (flat[0] if scalar else
                                            flat.view(param.shape).to(param.device))

    # ---- beside training ----

    def evaluated(self, accuracy: Optional[float] = None, loss: Optional[float] = None) -> None:
        """Tells the hub how good the present parameters are: for curves and --target."""
        if self._seat and not self.done:
            self._seat.evaluated(self._seat.order.version, accuracy, loss)

    def aside(self) -> Any:
        """`with opt.aside():` around evaluation or saving: no clock of the run counts it."""
        import contextlib
        return self._seat.aside() if self._seat and not self.done else contextlib.nullcontext()

    def add_param_group(self, param_group: dict) -> None:
        if getattr(self, "_seat", None):
            raise c.Error("parameters cannot be added after anytime.Optimizer was made", 2)
        super().add_param_group(param_group)

    def state_dict(self) -> dict:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        self.inner.load_state_dict(state_dict)
        self.param_groups, self.state = self.inner.param_groups, self.inner.state


def _refuse(optimizer, update, reduction) -> None:
    if isinstance(optimizer, torch.optim.LBFGS):
        raise c.Error("LBFGS evaluates the loss several times per step and cannot be distributed",
                      2)
    if isinstance(optimizer, Optimizer):
        raise c.Error("this optimizer is wrapped already", 2)
    if update not in (None, "hub", "worker"):
        raise c.Error(f"update is \"hub\" or \"worker\", not {update!r}", 2)
    if reduction not in ("mean", "sum"):
        raise c.Error(f"reduction is \"mean\" or \"sum\", not {reduction!r}", 2)
