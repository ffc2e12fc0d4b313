"""anytime.train: a model given as a numpy function."""
from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import signal
import sys
import threading
import traceback
from typing import Any, Callable, Iterator, Optional, Sequence

from . import _library as c

Loss = Callable[[Any, Any, Any], float]
Test = Callable[[Any, int, int], "tuple[float, int]"]
_TEXT_SIZE = 4096


class _Guard:
    """Runs callbacks. An exception must not count as a zero gradient: its text goes to the process
    that called train(), and that one ends the run."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._shared = mmap.mmap(-1, 1 + _TEXT_SIZE)  # has a worker asked to stop? its text
        self.exception: Optional[BaseException] = None  # of this process

    @property
    def text(self) -> str:
        """What the first failed callback said; empty: none has failed."""
        return self._shared[1:].split(b"\0", 1)[0].decode(errors="replace")

    def call(self, function: Callable[..., Any], *arguments: Any) -> float:
        """The value of function(*arguments), which is ignored after an exception."""
        try:
            return float("nan") if self.exception else float(function(*arguments))
        except BaseException as problem:  # also KeyboardInterrupt: C calls us, nobody catches it
            self._note(problem)
            if os.getpid() != self._pid:
                self._end_worker()
            self.exception = problem
            os.kill(self._pid, signal.SIGTERM)
            return float("nan")

    def _note(self, problem: BaseException) -> None:
        said = "".join(traceback.format_exception_only(type(problem), problem)).strip()
        raw = said.encode()[:_TEXT_SIZE - 1]
        if not self.text:
            self._shared[1:1 + len(raw)] = raw

    def _end_worker(self) -> None:
        """The first worker that fails asks at_train to stop. Asked twice, it would end at once."""
        if not self._shared[0]:
            self._shared[0] = 1
            traceback.print_exc()
            sys.stderr.flush()
            os.kill(self._pid, signal.SIGTERM)
        os._exit(1)


@contextlib.contextmanager
def _no_death_by_sigterm() -> Iterator[None]:
    """at_train handles signals while it trains; a callback may fail before that, when it measures
    how long a sample takes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check(params: Any, samples: int, test_samples: int) -> None:
    """What the library could not: it sees addresses, and numbers modulo 2^64."""
    import numpy as np
    if not isinstance(params, np.ndarray) or params.dtype != np.float32 or \
            not params.flags["C_CONTIGUOUS"] or not params.flags["WRITEABLE"]:
        raise c.Error("params must be a contiguous array of float32 that can be written to", 2)
    if not 0 < samples < 2 ** 63 or not 0 <= test_samples < 2 ** 63:
        raise c.Error("samples must be positive, and test_samples not negative", 2)


def train(loss: Loss, params: Any, samples: int, options: Sequence[str] = (), *,
          test: Optional[Test] = None, test_samples: int = 0,
          name: str = "numpy") -> dict[str, Any]:
    """Trains `params` (a float32 array, changed in place) and returns result.json.

    loss(params, gradient, index) returns the SUM of the losses of the samples with the numbers in
    the array `index`, and ADDS the sum of their gradients to `gradient`. It is called in worker
    processes, which are forked from this one; every worker walks random permutations of
    0 .. samples-1. test(params, first, end) returns the sum of losses and the number of correct
    predictions of the test samples first .. end-1. `options` are words of `anytime train`.

    An exception in one of them ends the run and is raised as anytime.Error.
    """
    import numpy as np
    _check(params, samples, test_samples)
    shape, guard = (params.size,), _Guard()
    array = np.ctypeslib.as_array

    def call_loss(_user: Any, w: Any, gradient: Any, index: Any, count: int) -> float:
        return guard.call(loss, array(w, shape), array(gradient, shape), array(index, (count,)))

    def call_test(_user: Any, w: Any, correct: Any, first: int, end: int) -> float:
        def score() -> float:
            assert test
            total, right = test(array(w, shape), first, end)
            correct[0] += int(right)
            return total
        return guard.call(score)

    model = c.OwnModel(parameters=params.size, samples=samples, test_samples=test_samples,
                       loss_at=c.LOSS_AT(call_loss), name=name.encode(),
                       test=c.TEST(call_test) if test else c.TEST(0))
    return _run(model, params, options, guard)


def _run(model: c.OwnModel, params: Any, options: Sequence[str],
         guard: _Guard) -> dict[str, Any]:
    words = [str(option).encode() for option in options]
    array, answer = (ctypes.c_char_p * len(words))(*words), c.Answer()
    # PyDLL keeps the global lock during the call, so that forked workers have it.
    library = c.load(ctypes.PyDLL)
    with _no_death_by_sigterm():
        code = library.at_train(ctypes.byref(model), params.ctypes.data, len(words), array,
                                ctypes.byref(answer))
    message, result = answer.message.decode(errors="replace"), answer.result
    text = result.decode() if result else "{}"
    library.at_answer_free(ctypes.byref(answer))
    if guard.text:
        raise c.Error(f"a function of the model failed: {guard.text}") from guard.exception
    if code:
        raise c.Error(message, code)
    result_json: dict[str, Any] = json.loads(text)
    return result_json
