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

import contextlib
import ctypes
import itertools
import mmap
import os
import time
import weakref
from typing import Any, Callable, ContextManager, Iterator, Optional

import torch

from . import _library as c
from .runs import is_statistic, load, read, weights
from .sampler import Sampler, set_current
from .seat import Seat, Spec, TensorSpec

__all__ = ["Optimizer", "Sampler", "load", "read", "weights"]

_AT_HUB = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw",
           torch.optim.RMSprop: "rmsprop", torch.optim.Adagrad: "adagrad"}
_ELSEWHERE = ("amsgrad", "maximize", "centered", "dampening")  # options that only torch has
_KEEP_EVERY = 1.0  # seconds between two times that the hub is given the other buffers
_joined: list = []  # a weak reference to the optimizer that has this process's seat


def _hub_optimizer(inner: torch.optim.Optimizer) -> Optional[str]:
    """Its name, if the hub has this optimizer with these options."""
    name = _AT_HUB.get(type(inner))
    if any(group.get(option) for group in inner.param_groups for option in _ELSEWHERE):
        return None
    if name == "adam" and any(g.get("decoupled_weight_decay") for g in inner.param_groups):
        return "adamw"
    return name


def _vector(address: int, count: int) -> torch.Tensor:
    """A tensor over memory that the library owns."""
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


def _whole_pages(count: int) -> torch.Tensor:
    """Zeros in memory where the library can map the hub's parameters."""
    size = -(-count * 4 // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=torch.float32, count=count)


def _versions(tensors: list) -> int:
    """Changes when one of the tensors is written to."""
    return sum(tensor._version for tensor in tensors if tensor is not None)


def _seed(seed: int) -> None:
    """torch.manual_seed(), which without a GPU takes a hundred times as long: it remembers the
    seed, and the stack of its caller, for one that may come."""
    if torch.cuda.is_initialized():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def _zeros(count: int) -> torch.Tensor:
    """A vector that the library can use, whatever torch's default device and type are."""
    return torch.zeros(count, dtype=torch.float32, device="cpu")


def _number(value: Any) -> Any:
    """A hyper-parameter as a number; PyTorch 2 allows tensors, which schedulers change in place."""
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _plain(name: str) -> str:
    """A tensor's name without what torch.compile puts in front."""
    return name.replace("_orig_mod.", "")


class _Layout:
    """Which tensor of the model is where in the flat vector: parameters, then statistics of batch
    norm. Other buffers stay outside."""

    def __init__(self, model: torch.nn.Module, inner: torch.optim.Optimizer):
        group_of = {id(p): i for i, g in enumerate(inner.param_groups) for p in g["params"]}
        self.names, self.params, self.groups = [], [], []
        for name, param in model.named_parameters():
            if param.requires_grad and id(param) in group_of:
                self._check(name, param)
                self.names.append(_plain(name))
                self.params.append(param)
                self.groups.append(group_of[id(param)])
        if len(self.params) < sum(p.requires_grad for g in inner.param_groups
                                  for p in g["params"]):
            raise c.Error("the optimizer updates parameters that the model does not have: pass the "
                          "model that owns them", 2)
        if not self.params:
            raise c.Error("the optimizer has no parameters to train", 2)
        self.buffer_names, self.buffers = [], []
        self.others: dict[str, torch.Tensor] = {}
        for name, buffer in model.named_buffers():
            if is_statistic(model, name, buffer):
                self.buffer_names.append(_plain(name))
                self.buffers.append(buffer)
            elif buffer.numel() > 0:
                self.others[_plain(name)] = buffer
        self._check_devices()
        sizes = [tensor.numel() for tensor in self.params + self.buffers]
        *self.offsets, self.floats = itertools.accumulate(sizes, initial=0)
        self.trained = sum(param.numel() for param in self.params)

    @staticmethod
    def _check(name: str, param: torch.Tensor) -> None:
        if param.layout != torch.strided:
            raise c.Error(f"{name} is sparse; only dense parameters can be trained together", 2)
        if hasattr(param, "placements"):
            raise c.Error(f"{name} is sharded over processes (FSDP, DTensor); every worker needs "
                          "the whole model", 2)
        if param.dtype != torch.float32:
            raise c.Error(f"{name} is {param.dtype}; parameters must be float32 (autocast is "
                          "possible, model.half() is not)", 2)
        if param.numel() == 0:
            raise c.Error(f"{name} is empty", 2)

    def _check_devices(self) -> None:
        """One vector holds all of them."""
        devices = sorted({str(tensor.device) for tensor in self.params + self.buffers})
        if len(devices) > 1:
            raise c.Error(f"the model is on several devices ({', '.join(devices)}); it must be on "
                          "one", 2)
        if devices == ["meta"]:
            raise c.Error("the model is on the meta device, without values: move it to a real "
                          "device first", 2)

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

    def check_unmoved(self, views: list[torch.Tensor]) -> None:
        """The script must have left the tensors where they were put."""
        for name, tensor, view in zip(self.names + self.buffer_names, self.params + self.buffers,
                                      views):
            if tensor.data_ptr() != view.data_ptr() or tensor.dtype != torch.float32:
                raise c.Error(f"{name} was moved or converted after anytime.Optimizer was made "
                              "(.half(), .to(), .data = ...): do that before", 2)
        for name, param in zip(self.names, self.params):
            if not param.requires_grad:
                raise c.Error(f"requires_grad of {name} was changed during the run: freeze "
                              "parameters before anytime.Optimizer is made", 2)


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
        _refuse(model, optimizer, update, reduction)
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.param_groups, self.state = optimizer.param_groups, optimizer.state
        self.inner, self.model = optimizer, model
        self.reduction, self.clip_norm, self.before_update = reduction, clip_norm, before_update
        self.done, self.updated = False, False
        self._updates, self._used, self._epoch_samples = 0, 0, samples
        self._samples, self._loss = 0, 0.0
        self._seat: Optional[Seat] = None
        if hub or os.environ.get("ANYTIME_HUB"):
            self._join(update, batch, hub)

    # ---- joining ----

    def _join(self, update: Optional[str], batch: int, hub: Optional[str]) -> None:
        if _joined and _joined[0]():
            raise c.Error("this process has a seat already; only one Optimizer can be wrapped", 2)
        at_hub = _hub_optimizer(self.inner)
        self._at_worker = self._updates_here(update, at_hub)
        self._layout = _Layout(self.model, self.inner)
        self._take_over(self._layout.params[0].device)
        spec = Spec(self._layout.specs(), optimizer=None if self._at_worker else at_hub,
                    groups=self.inner.param_groups, model=type(self.model).__name__, batch=batch,
                    samples=self._epoch_samples, update_at_worker=self._at_worker,
                    whole_pages=True, overwrites=True)
        self._seat = Seat.join(spec, self._host.data_ptr(), hub)
        if not self._seat:
            return
        _joined[:] = [weakref.ref(self)]
        set_current(self._seat)
        self._sent_groups: Optional[list] = None  # as they were; None: numbers change in place
        self._sent_numbers: list = []
        self._kept: dict[str, torch.Tensor] = {}
        self._kept_at = 0.0
        self._cuts: dict[int, tuple] = {}
        self._nothing = [None] * len(self._layout.params)
        self._statistics = self._flat[self._layout.trained:]
        self._finite_statistics = self._statistics.clone()
        self._ours: list = []  # gradients since the last step(), and how often they were written to
        self._ours_version = 0
        self._torn = False  # does the gradient have a part of a batch that failed?
        self._factor: Optional[tuple[int, torch.Tensor]] = None
        self._install()
        self._take_others()
        self._begin_round()

    def _updates_here(self, update: Optional[str], at_hub: Optional[str]) -> bool:
        """Does every worker update by itself?"""
        reason = None
        if not at_hub:
            reason = "the hub does not have it, or not with these options"
        elif self.clip_norm is not None or self.before_update is not None:
            reason = "clipping and before_update happen where torch is"
        elif any(float(state.get("step", 1)) > 0 for state in self.inner.state.values() if state):
            reason = "it has state already, which the hub cannot take over"
        if update == "hub" and reason:
            raise c.Error(f"this optimizer needs update=\"worker\": {reason}", 2)
        return update == "worker" or reason is not None

    def _take_over(self, device: torch.device) -> None:
        """Moves parameters and statistics into one flat vector. The hub writes to `_host`; on other
        devices the model uses a copy."""
        layout = self._layout
        self._host = _whole_pages(layout.floats)
        on_host = device.type == "cpu"
        self._flat = self._host if on_host else torch.zeros(layout.floats, device=device)
        self._views = layout.cut(self._flat)
        with torch.no_grad():
            for tensor, view in zip(layout.params + layout.buffers, self._views):
                view.copy_(tensor)
                tensor.data = view
                tensor.grad = None
        if not on_host:
            self._host.copy_(self._flat)

    # ---- facts ----

    def _facts(self) -> c.Facts:
        return self._final if self.done else self._seat.facts

    @property
    def rank(self) -> int:
        """Number of this worker, counted from 0."""
        return self._facts().rank if self._seat else 0

    @property
    def workers(self) -> int:
        """Number of workers present."""
        return self._facts().workers if self._seat else 1

    @property
    def version(self) -> int:
        """Updates made so far."""
        return self._facts().version if self._seat else self._updates

    @property
    def first(self) -> bool:
        """Is this the process that prints, evaluates and sets learning rates?"""
        return bool(self._facts().first) if self._seat else True

    @property
    def epoch(self) -> int:
        """Passes over the data that all workers together have used; 0 without `samples`."""
        used = self._facts().samples_used if self._seat else self._used
        return used // self._epoch_samples if self._epoch_samples else 0

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """GradScaler asks this before it calls step()."""
        raise c.Error("GradScaler is not supported: it would scale every worker's gradients "
                      "differently. Use autocast with bfloat16, or without a scaler", 2)

    # ---- a micro-batch ----

    def zero_grad(self, set_to_none: Optional[bool] = None) -> None:
        """As ever when training alone. In a run it does nothing: gradients are cleared when a round
        begins, and summed up until it ends."""
        if not self._seat:
            chosen = {} if set_to_none is None else {"set_to_none": set_to_none}
            self.inner.zero_grad(**chosen)

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
        if loss.numel() != 1:
            raise c.Error(f"the loss must be one number, not {list(loss.shape)}: take its mean (or "
                          "its sum, and say reduction=\"sum\")", 2)
        if loss.dtype in (torch.float16, torch.bfloat16):
            raise c.Error(f"the loss is {loss.dtype}, which cannot hold the number of samples: "
                          "compute it in float32, loss_fn(model(x).float(), y)", 2)
        self._check_whole()
        self._attach()
        factor = samples if self.reduction == "mean" else 1
        version = self._sum._version
        try:
            loss.backward(self._factor_like(loss, factor))
        except BaseException:
            self._take_back(version)
            raise
        self._ours = [param.grad for param in self._layout.params]
        self._ours_version = _versions(self._ours)
        self._samples += samples
        self._loss += loss.item() * factor

    def _take_back(self, version: int) -> None:
        """Some scripts go on without a batch that failed (no memory). What it has added to the
        gradient of earlier batches stays there."""
        changed = not self._fresh and self._sum._version != version
        self._torn = changed or bool(self._ours)
        for param in self._layout.params:
            param.grad = None

    def _check_whole(self) -> None:
        if self._torn:
            raise c.Error("an opt.backward() failed after it had added a part of its gradient to "
                          "that of earlier batches: let the script end, it is started again")

    def _factor_like(self, loss: torch.Tensor, factor: int) -> torch.Tensor:
        """The factor as a gradient of the loss; the same tensor while batches are alike."""
        kept = self._factor
        if kept is None or kept[0] != factor or kept[1].shape != loss.shape or \
                kept[1].dtype != loss.dtype or kept[1].device != loss.device:
            kept = self._factor = factor, torch.full_like(loss, factor, requires_grad=False)
        return kept[1]

    def step(self, closure: Optional[Callable] = None) -> None:
        """Ends a micro-batch. When the round is over, reports it, waits and installs the next
        parameters."""
        hooked = getattr(self, "_optimizer_step_pre_hooks", None) or \
            getattr(self, "_optimizer_step_post_hooks", None)
        (_step_with_hooks if hooked else Optimizer._step)(self, closure)

    step.hooked = True  # type: ignore[attr-defined]  # torch would wrap it, at 20 us per call

    def _step(self, closure: Optional[Callable] = None) -> None:
        if closure is not None:
            raise c.Error("step() takes no closure (LBFGS cannot be distributed)", 2)
        if self.done:
            return
        if self._samples == 0:
            raise c.Error("step() without opt.backward(loss, samples): replace loss.backward() "
                          "(GradScaler is not supported)", 2)
        samples, loss, self._samples, self._loss = self._samples, self._loss, 0, 0.0
        self.updated = False
        if not self._seat:
            self._used += samples
            self._update_here()
            return
        self._check_whole()
        self._detach()
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
        """A round's first gradients are torch's own, which step() copies into the round's vector:
        this is less work than clearing the vector and adding to it. The following ones are added
        to views of it."""
        ours = self._ours or self._nothing
        for name, param, own, view in zip(self._layout.names, self._layout.params, ours,
                                          self._grads):
            grad = param.grad
            if grad is not None and grad is own:
                continue
            if grad is not None and grad.any():
                raise c.Error(f"{name} has a gradient that is not from opt.backward(): call "
                              "opt.backward(loss, samples) instead of loss.backward()", 2)
            param.grad = own if self._ours else None if self._fresh else view

    def _detach(self) -> None:
        """Between step() and backward() parameters have no gradient, so that no zero_grad() can
        clear half a round. What the script did to the sum would be done again in each
        micro-batch, so it is refused."""
        changed = _versions(self._ours) != self._ours_version
        for param, own, view in zip(self._layout.params, self._ours, self._grads):
            changed = changed or (param.grad is not own and param.grad is not None)
            param.grad = None
            if self._fresh and own is None:
                view.zero_()
            elif self._fresh:
                view.copy_(own.to_dense() if own.is_sparse else own)
        self._ours, self._fresh = [], False
        if changed:
            raise c.Error("gradients were changed between opt.backward() and opt.step(); what is "
                          "clipped or changed is the mean gradient of a step: use "
                          "anytime.Optimizer(.., clip_norm=) or before_update=", 2)

    def _begin_round(self) -> None:
        """Waits for the next round, applies and installs what came, and prepares gradients."""
        working = self._seat.next(self._update_at_worker if self._at_worker else None)
        order = self._seat.order
        self.updated = bool(order.updated) or not working
        if not self._at_worker:
            self._install()
            self._note_step()
        if not working:
            self._finish()
            return
        self._keep_statistics()
        self._gradient, self._sum, self._grads = self._views_at(self._seat.gradient)
        self._fresh = True
        _seed(self._seat.random(order.position) & (2**63 - 1))

    def _keep_statistics(self) -> None:
        """A batch that was not finite has spoilt them, too. With --nonfinite skip the next round
        may have the same parameters, which are not installed again."""
        if not self._statistics.numel():
            return
        if self._statistics.isfinite().all():
            self._finite_statistics.copy_(self._statistics)
        else:
            self._statistics.copy_(self._finite_statistics)

    def _note_step(self) -> None:
        """The hub has made the step of torch's optimizer. Schedulers of that optimizer warn unless
        it says so: PyTorch 1 looks at the first of these, PyTorch 2 at the second."""
        if self.updated:
            self.inner._step_count = self._seat.order.version
            self.inner._opt_called = True

    def _views_at(self, address: int) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        """The round's vector, the vector of the sums on the model's device, and its parts. A seat
        has a few vectors in turn."""
        if address not in self._cuts:
            vector = _vector(address, self._layout.floats)
            sums = vector if self._flat is self._host else torch.zeros_like(self._flat)
            parts = self._layout.cut(sums)[:len(self._layout.params)]
            self._cuts[address] = (vector, sums, parts)
        return self._cuts[address]

    def _finish(self) -> None:
        """The first worker keeps its seat, to tell how good the final parameters are."""
        self.done = True
        self._final = self._seat.facts
        set_current(None)
        if not self._final.first:
            self._seat.leave()

    def _install(self) -> None:
        """The hub's vector is in `_host`."""
        if self._flat is not self._host:
            self._flat.copy_(self._host)

    def _report(self) -> None:
        """Checks that the script left the tensors where they were, and hands the round over."""
        layout, n = self._layout, len(self._layout.params)
        layout.check_unmoved(self._views)
        for at, buffer in zip(layout.offsets[n:], layout.buffers):
            self._sum[at:at + buffer.numel()].copy_(buffer.reshape(-1))
        if self._sum is not self._gradient:
            self._gradient.copy_(self._sum)
        self._send_groups()
        self._give_others()
        self._seat.report()

    def _send_groups(self) -> None:
        """The numbers of this step. Those of the first worker bind everybody."""
        if self.inner.param_groups == self._sent_groups:  # quick: most values are the same objects
            return
        numbers = [{k: _number(v) for k, v in g.items() if k != "params"}
                   for g in self.inner.param_groups]
        if numbers == self._sent_numbers:
            return
        for index, values in enumerate(numbers):
            self._seat.set_group(index, values)
        self._sent_numbers = numbers
        changes_in_place = any(isinstance(value, torch.Tensor)
                               for group in self.inner.param_groups for value in group.values())
        self._sent_groups = None if changes_in_place else [dict(g) for g in self.inner.param_groups]

    # ---- buffers that are no statistics: counters, masks ----

    def _give_others(self) -> None:
        """The hub keeps the first worker's, for those who join later."""
        now = time.monotonic()
        if not self._layout.others or now - self._kept_at < _KEEP_EVERY:
            return
        self._kept_at = now
        if not self._seat.facts.first:
            return
        for name, buffer in self._layout.others.items():
            values = buffer.detach().reshape(-1).to("cpu", torch.float32).contiguous()
            same = name in self._kept and torch.equal(self._kept[name], values)
            if same or not torch.equal(values.to(buffer.dtype), buffer.detach().reshape(-1).cpu()):
                continue  # nothing new, or not exact as floats
            self._kept[name] = values
            self._seat.put_state(f"buffer.{name}", values.data_ptr(), values.numel())

    def _take_others(self) -> None:
        for name, buffer in self._layout.others.items():
            values = _zeros(buffer.numel())
            count = self._seat.get_state(f"buffer.{name}", values.data_ptr(), values.numel())
            if count == values.numel():
                with torch.no_grad():
                    buffer.copy_(values.view(buffer.shape))

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
        """What the hub asks for while this worker waits: see at_seat_order."""
        if order.install:
            self._install()
            self._take_state()
        if order.apply:
            self._apply_mean()
        if order.publish and self._seat.facts.first:  # the hub keeps those of the first only
            if self._flat is not self._host:
                self._host.copy_(self._flat)
            self._seat.publish(self._host.data_ptr())
            with contextlib.suppress(c.Lost):  # next() says so, unless this is the end
                self._give_state()

    def _apply_mean(self) -> None:
        layout = self._layout
        if not hasattr(self, "_mean"):
            self._mean = torch.zeros_like(self._flat)
            self._mean_views = layout.cut(self._mean)
        self._mean.copy_(_vector(self._seat.mean, layout.floats))
        for param, view in zip(layout.params, self._mean_views):
            param.grad = view
        for buffer, view in zip(layout.buffers, self._mean_views[len(layout.params):]):
            buffer.copy_(view)
        self._update_here()
        for param in layout.params:
            param.grad = None

    def _states(self) -> Iterator[tuple[str, torch.Tensor, dict]]:
        for name, param in zip(self._layout.names, self._layout.params):
            yield name, param, self.inner.state[param]

    def _give_state(self) -> None:
        """A vector `optimizer.NAME.KEY` for each tensor of the state, with its shape at the end if
        that is not the parameter's: `optimizer.0.weight.row_var@16x1` (Adafactor)."""
        for name, param, state in self._states():
            for key, value in state.items():
                if not isinstance(value, (torch.Tensor, int, float)):
                    continue
                value = torch.as_tensor(value, dtype=torch.float32, device="cpu").detach()
                same = value.shape == param.shape
                shape = "" if same else "@" + "x".join(map(str, value.shape))
                flat = value.reshape(-1).contiguous()
                self._seat.put_state(f"optimizer.{name}.{key}{shape}", flat.data_ptr(),
                                     flat.numel())

    def _take_state(self) -> None:
        params = dict(zip(self._layout.names, self._layout.params))
        on_device = {id(p) for g in self.inner.param_groups for p in g["params"]
                     if g.get("capturable") or g.get("fused")}
        for stored in self._seat.state_names():
            name, _, key = stored[len("optimizer."):].rpartition(".")
            if not stored.startswith("optimizer.") or name not in params:
                continue
            param, (key, at, shape) = params[name], key.partition("@")
            count = self._seat.get_state(stored, 0, 0)
            flat = _zeros(max(count, 1))
            self._seat.get_state(stored, flat.data_ptr(), count)
            value = flat.view([int(size) for size in shape.split("x") if size] if at else
                              param.shape)
            if value.dim() > 0 or id(param) in on_device:  # torch keeps counters on the CPU
                value = value.to(param.device)
            self.inner.state[param][key] = value

    # ---- beside training ----

    def evaluated(self, accuracy: Optional[float] = None, loss: Optional[float] = None) -> None:
        """Tells the hub how good the present parameters are: for curves and --target. After the
        end it is the result's evaluation. Only those of the first worker count."""
        if self._seat and not self.done:
            self._seat.evaluated(self._seat.order.version, accuracy, loss)
        elif self._seat and self._final.first:
            self._seat.evaluated(self._final.version, accuracy, loss)

    def aside(self) -> ContextManager[None]:
        """`with opt.aside():` around evaluation or saving: the run's clocks skip it."""
        return self._seat.aside() if self._seat and not self.done else contextlib.nullcontext()

    def add_param_group(self, param_group: dict) -> None:
        """Only before training begins: the model of a run is fixed."""
        if getattr(self, "_seat", None):
            raise c.Error("parameters cannot be added after anytime.Optimizer was made", 2)
        super().add_param_group(param_group)

    def state_dict(self) -> dict:
        """That of torch's optimizer. With updates at the hub its momentum is in the run's own
        checkpoints (`anytime run --resume`), not here."""
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        """In a run, call it before anytime.Optimizer is made."""
        if self._seat:
            raise c.Error("load the optimizer's state before anytime.Optimizer is made, or "
                          "continue the run with `anytime run --resume`", 2)
        self.inner.load_state_dict(state_dict)
        self.param_groups, self.state = self.inner.param_groups, self.inner.state


# What torch 2 makes of a step() with hooks; torch 1 has none.
_step_with_hooks = getattr(torch.optim.Optimizer, "profile_hook_step", lambda step: step)(
    Optimizer._step)


def _refuse(model, optimizer, update, reduction) -> None:
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise c.Error("pass the model without DistributedDataParallel: anytime sums the gradients",
                      2)
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise c.Error("differentiable=True keeps the graph of an update, which other processes "
                      "do not have: leave it out", 2)
    if isinstance(optimizer, torch.optim.LBFGS):
        raise c.Error("LBFGS evaluates the loss several times per step and cannot be distributed",
                      2)
    if isinstance(optimizer, Optimizer):
        raise c.Error("this optimizer is wrapped already", 2)
    if update not in (None, "hub", "worker"):
        raise c.Error(f"update is \"hub\" or \"worker\", not {update!r}", 2)
    if reduction not in ("mean", "sum"):
        raise c.Error(f"reduction is \"mean\" or \"sum\", not {reduction!r}", 2)
