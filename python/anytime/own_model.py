"""anytime.train: a model given as a numpy function."""
from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from . import _library as c

Loss = Callable[[Any, Any, int, int], float]
Test = Callable[[Any, int, int], "tuple[float, int]"]


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


class _Guard:
    """Runs a callback in a worker process. An exception must not count as a zero gradient: it is
    printed, and the process ends."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, *arguments):
        try:
            return self.function(*arguments)
        except BaseException:  # also KeyboardInterrupt: there is nobody to catch it
            import os
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)


def train(loss: Loss, params: Any, samples: int, options: Sequence[str] = (), *,
          test: Optional[Test] = None, test_samples: int = 0, name: str = "numpy") -> dict:
    """Trains `params` (a float32 array, changed in place) and returns result.json.

    loss(params, gradient, first, end) returns the SUM of the losses of the samples first .. end-1
    and ADDS the sum of their gradients to `gradient`; it is called in worker processes, which are
    forked from this one. test(params, first, end) returns the sum of losses and the number of
    correct predictions of test samples. `options` are words of `anytime train`.
    """
    import numpy as np
    if params.dtype != np.float32 or not params.flags["C_CONTIGUOUS"]:
        raise c.Error("params must be a contiguous array of float32", 2)
    if _threads() > 1:
        print("anytime: this process has several threads (numpy and torch start them), which "
              "forked workers lack: set OPENBLAS_NUM_THREADS=1 and OMP_NUM_THREADS=1 if a worker "
              "hangs", file=sys.stderr)
    shape = (params.size,)

    def call_loss(_user, w, gradient, first, end):
        return float(loss(np.ctypeslib.as_array(w, shape), np.ctypeslib.as_array(gradient, shape),
                          first, end))

    def call_test(_user, w, correct, first, end):
        total, right = test(np.ctypeslib.as_array(w, shape), first, end)
        correct[0] += int(right)
        return float(total)

    model = c.OwnModel(parameters=params.size, samples=samples, test_samples=test_samples,
                       loss=c.LOSS(_Guard(call_loss)), name=name.encode(),
                       test=c.TEST(_Guard(call_test)) if test else c.TEST())
    words = [str(option).encode() for option in options]
    array, answer = (ctypes.c_char_p * len(words))(*words), c.Answer()
    # PyDLL keeps the global lock during the call, so that forked workers have it.
    library = c.load(ctypes.PyDLL)
    code = library.at_train(ctypes.byref(model), params.ctypes.data, len(words), array,
                            ctypes.byref(answer))
    message, result = answer.message.decode(errors="replace"), answer.result
    text = result.decode() if result else "{}"
    library.at_answer_free(ctypes.byref(answer))
    if code:
        raise c.Error(message, code)
    return json.loads(text)
