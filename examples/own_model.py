#!/usr/bin/env python3
"""A user-defined model in Python: the logistic regression of own_model.c, with numpy.

    /usr/bin/python3 examples/own_model.py --strategy amb --workers 2

Debian installs numpy for its own Python, which may not be the first python3 on PATH. Arguments
after the file name are options of `anytime train`.
"""
import ctypes
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread per worker
import numpy as np

SAMPLES, FEATURES = 100_000, 10
LOSS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.POINTER(ctypes.c_float),
                        ctypes.POINTER(ctypes.c_float), ctypes.c_uint64, ctypes.c_uint64)


class OwnModel(ctypes.Structure):  # at_own_model in anytime.h
    _fields_ = [("user", ctypes.c_void_p), ("parameters", ctypes.c_uint64),
                ("samples", ctypes.c_uint64), ("test_samples", ctypes.c_uint64),
                ("loss", LOSS), ("test", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class Answer(ctypes.Structure):  # at_answer in anytime.h
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024),
                ("result", ctypes.c_char_p)]


def load_library():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "libanytime.so")
    # PyDLL holds Python's global lock during the call, so the forked workers hold it as well.
    return ctypes.PyDLL(os.environ.get("ANYTIME_LIBRARY", here))


def train(loss, params, samples, options):
    """Trains params (float32, in place); loss(params, gradient, first, end) returns a sum."""
    def call(_user, w, gradient, first, end):
        shape = (params.size,)
        return loss(np.ctypeslib.as_array(w, shape), np.ctypeslib.as_array(gradient, shape),
                    first, end)

    library, answer = load_library(), Answer()
    model = OwnModel(parameters=params.size, samples=samples, loss=LOSS(call), name=b"numpy")
    words = (ctypes.c_char_p * len(options))(*[word.encode() for word in options])
    pointer = params.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    code = library.at_train(ctypes.byref(model), pointer, len(options), words, ctypes.byref(answer))
    message = answer.message.decode()
    library.at_answer_free(ctypes.byref(answer))
    if code:
        raise RuntimeError(message)


def main():
    random = np.random.default_rng(1)
    label = (np.arange(SAMPLES) % 2).astype(np.float32)
    x = random.standard_normal((SAMPLES, FEATURES + 1), dtype=np.float32)
    x[:, :FEATURES] += label[:, None] - 0.5
    x[:, FEATURES] = 1  # the bias

    def loss(w, gradient, first, end):
        z = x[first:end] @ w
        gradient += x[first:end].T @ (1 / (1 + np.exp(-z)) - label[first:end])
        return float(np.logaddexp(0, np.where(label[first:end] > 0, -z, z)).sum())

    params = np.zeros(FEATURES + 1, np.float32)
    train(loss, params, SAMPLES, sys.argv[1:] or ["--workers", "2", "--epochs", "3"])
    print(f"mean loss {loss(params, np.zeros_like(params), 0, SAMPLES) / SAMPLES:.4f}")


if __name__ == "__main__":
    main()
