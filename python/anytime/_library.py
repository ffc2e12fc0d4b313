"""The C library: where it is, and the types of anytime.h."""
import ctypes
import ctypes.util
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int,
                    c_int32, c_int64, c_uint32, c_uint64, c_void_p)
from pathlib import Path
from typing import Any


class Error(RuntimeError):
    """Something anytime refused or could not do; `code` is the exit code that fits."""

    def __init__(self, message: str, code: int = 1):
        super().__init__(message)
        self.code = code


class Lost(Error):
    """The hub is gone."""


class Evicted(Error):
    """The hub gave this worker up, because it was silent for too long."""


# at_seat_status
JOINED, ALONE, WORK, MORE, REPORT, ABANDON, REFRESHED, DONE, EVICTED, LOST, AGAIN, FAILED = \
    range(1, 13)
TRAINED, BUFFER = 0, 1  # at_seat_role
UPDATE_HUB, UPDATE_WORKER = 0, 1  # at_seat_update
DIMS_MAX, NAME_SIZE, GROUPS_MAX = 8, 200, 16


class Why(Structure):
    _fields_ = [("code", c_int32), ("message", c_char * 1020)]


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("shape", c_uint64 * DIMS_MAX), ("dims", c_uint32),
                ("role", c_uint32), ("group", c_uint32)]


class Group(Structure):
    _fields_ = [("lr", c_double), ("weight_decay", c_double), ("momentum", c_double),
                ("beta1", c_double), ("beta2", c_double), ("eps", c_double), ("alpha", c_double),
                ("lr_decay", c_double), ("accumulator", c_double), ("nesterov", c_int32),
                ("unused", c_int32)]


class Spec(Structure):
    _fields_ = [("model", c_char_p), ("tensors", POINTER(Tensor)), ("tensors_count", c_uint32),
                ("update", c_uint32), ("optimizer", c_char_p), ("groups", POINTER(Group)),
                ("groups_count", c_uint32), ("batch", c_uint32), ("samples", c_uint64),
                ("params", c_void_p), ("installs", c_int32), ("rank", c_int32),
                ("wait_ms", c_uint32), ("overwrites", c_uint32)]


class Order(Structure):
    _fields_ = [("version", c_uint64), ("position", c_uint64), ("samples_max", c_uint32),
                ("updated", c_int32), ("install", c_int32), ("apply", c_int32),
                ("publish", c_int32), ("unused", c_int32)]


class Facts(Structure):
    _fields_ = [("rank", c_uint32), ("workers", c_uint32), ("workers_start", c_uint32),
                ("first", c_int32), ("version", c_uint64), ("seed", c_uint64),
                ("samples_used", c_uint64), ("samples", c_uint64), ("floats", c_uint64),
                ("drawn", c_uint64)]


LOSS = CFUNCTYPE(c_double, c_void_p, POINTER(c_float), POINTER(c_float), c_uint64, c_uint64)
LOSS_AT = CFUNCTYPE(c_double, c_void_p, POINTER(c_float), POINTER(c_float), POINTER(c_uint64),
                    c_uint64)
TEST = CFUNCTYPE(c_double, c_void_p, POINTER(c_float), POINTER(c_uint64), c_uint64, c_uint64)


class OwnModel(Structure):
    _fields_ = [("user", c_void_p), ("parameters", c_uint64), ("samples", c_uint64),
                ("test_samples", c_uint64), ("loss", LOSS), ("test", TEST), ("name", c_char_p),
                ("loss_at", LOSS_AT)]


class Answer(Structure):
    _fields_ = [("code", c_int), ("message", c_char * 1024), ("result", c_char_p)]


_SIGNATURES = {
    "at_version": (c_char_p, []),
    "at_train": (c_int, [POINTER(OwnModel), c_void_p, c_int, POINTER(c_char_p), POINTER(Answer)]),
    "at_answer_free": (None, [POINTER(Answer)]),
    "at_seat_join": (c_int, [POINTER(c_void_p), c_char_p, POINTER(Spec), POINTER(Why)]),
    "at_seat_next": (c_int, [c_void_p, POINTER(Order)]),
    "at_seat_params": (c_void_p, [c_void_p]),
    "at_seat_gradient": (c_void_p, [c_void_p]),
    "at_seat_more": (c_int, [c_void_p, c_uint32, c_double]),
    "at_seat_report": (None, [c_void_p]),
    "at_seat_leave": (None, [POINTER(c_void_p)]),
    "at_seat_facts_get": (None, [c_void_p, POINTER(Facts)]),
    "at_seat_random": (c_uint64, [c_void_p, c_uint64]),
    "at_seat_sample": (c_uint64, [c_void_p, c_uint64, c_uint64]),
    "at_seat_group_set": (None, [c_void_p, c_uint32, POINTER(Group)]),
    "at_seat_evaluated": (None, [c_void_p, c_uint64, c_double, c_double]),
    "at_seat_aside": (None, [c_void_p, c_int]),
    "at_seat_state_put": (c_int, [c_void_p, c_char_p, c_void_p, c_uint64]),
    "at_seat_state_get": (c_int64, [c_void_p, c_char_p, c_void_p, c_uint64]),
    "at_seat_state_name": (c_int, [c_void_p, c_uint32, c_char_p]),
    "at_seat_mean": (c_void_p, [c_void_p]),
    "at_seat_publish": (None, [c_void_p, c_void_p]),
}


def find() -> str:
    """Path or name of the library: ANYTIME_LIBRARY, the build folder of a source tree, the library
    installed with this package (PREFIX/lib, with the package in PREFIX/lib/python3/dist-packages),
    or another installed one."""
    named = os.environ.get("ANYTIME_LIBRARY")
    if named:
        return named
    built = Path(__file__).resolve().parents[2] / "build" / "libanytime.so"
    if built.exists():
        return str(built)
    beside = sorted(Path(__file__).resolve().parents[3].glob("libanytime.so.*"))
    if beside:
        return str(beside[0])
    found = ctypes.util.find_library("anytime")
    if found:
        return found
    raise Error("libanytime.so was not found; build it with `make`, install it, or name it in "
                "ANYTIME_LIBRARY")


def load(kind: Any = ctypes.CDLL) -> Any:
    """The library with its functions declared. CDLL releases the global lock during calls, PyDLL
    keeps it."""
    path = find()
    try:
        library = kind(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as problem:
        raise Error(f"{path} is not a library of this version of anytime: {problem}") from None
    return library
