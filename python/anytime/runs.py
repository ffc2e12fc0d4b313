"""Runs on disk: trained weights, curves and tables."""
from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import struct
from array import array
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Union

from ._library import Error

_HEADER_MAX = 100 * 1024 * 1024
_DIMS_MAX = 32  # of numpy
# What the parsers of Python raise for damaged files.
_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
            csv.Error)


@dataclass
class Run:
    """What a run has recorded. Tables are dictionaries of numpy arrays, one per column; missing
    numbers are NaN."""
    folder: Path
    result: dict[str, Any]     # result.json; empty while the run is not over
    curve: dict[str, Any]      # master_stats.csv: losses, learning rates, evaluations
    steps: dict[str, Any]      # collect_stats.csv: what each step gathered
    rounds: dict[str, Any]     # worker_stats.csv: what each worker did
    resources: dict[str, Any]  # resource_stats.csv
    events: dict[str, Any]     # event logs: time, version, kind, worker (0: none) and text

    def __repr__(self) -> str:
        """Short: a notebook shows it for a cell that ends with a run."""
        lengths = (f"{name}: {len(next(iter(table.values()), ()))} rows"
                   for name, table in (("curve", self.curve), ("steps", self.steps),
                                       ("rounds", self.rounds), ("resources", self.resources),
                                       ("events", self.events)))
        return f"<run {self.folder}; {', '.join(lengths)}>"


def _open(path: Path) -> BinaryIO:
    """Opens a file of a run. A pipe in its place would make us wait, a device never end."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise Error(f"{path}: not a regular file", 65)


def _bytes(path: Path) -> bytes:
    with _open(path) as file:
        return file.read()


def _result(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        result = json.loads(_bytes(path))
        return dict(result.items())
    except _DAMAGED as problem:
        raise Error(f"{path}: not the result of a run ({problem})", 65) from None


def _column(values: list[str]) -> Any:
    """Numbers if all are; texts are objects, or each would take as much memory as the longest."""
    import numpy
    try:
        return numpy.array([float(value) if value else float("nan") for value in values])
    except ValueError:
        return numpy.array(values, dtype=object)


def _table(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        with io.TextIOWrapper(_open(path), "utf-8", "replace", newline="") as file:
            # The last line may be half written.
            rows = list(csv.reader(line for line in file if line.endswith("\n")))
    except csv.Error as problem:
        raise Error(f"{path}: not a table ({problem})", 65) from None
    names = rows[0] if rows else []
    whole = [row for row in rows[1:] if len(row) == len(names)]
    return {name: _column([row[i] for row in whole]) for i, name in enumerate(names)}


_KINDS = {"S": "start", "J": "joined", "L": "lost", "M": "message", "A": "applied",
          "E": "evaluated", "T": "timer", "X": "stop", "s": "send", "t": "set timer", "+": "add",
          "a": "apply", "d": "drop", "e": "evaluate", "k": "save", "v": "evict", "n": "notice",
          "f": "finish", '"': "text", "%": "usage", "@": "link", "=": "totals"}
_LOG_HEAD = struct.Struct("<4sIII")
_LOG_FORMAT = 6


class _Torn(Exception):
    """The log ends within a record."""


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value, shift = 0, 0
    while at < len(raw) and shift < 64:
        value |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return value & (2 ** 64 - 1), at
    raise _Torn


def _change(raw: bytes, at: int, last: int) -> tuple[int, int]:
    """The sum of `last` and a signed number, modulo 2^64."""
    coded, at = _number(raw, at)
    return (last + (coded >> 1 ^ -(coded & 1))) & (2 ** 64 - 1), at


def _records(raw: bytes):
    """The records of an event log, up to the first that is torn."""
    if len(raw) < _LOG_HEAD.size or raw[:4] != b"ATEV":
        return
    _, version, size, _ = _LOG_HEAD.unpack_from(raw)
    at = _LOG_HEAD.size + size
    while version == _LOG_FORMAT and at < len(raw):
        try:
            length, at = _number(raw, at)
        except _Torn:
            return
        at += 4 + length  # a checksum comes first
        if length == 0 or at > len(raw):
            return
        yield raw[at - length:at]


def _logs(folder: Path):
    """The event logs of a run. Each time it was resumed, it began another one."""
    for part in count(1):
        path = folder / ("events.bin" if part == 1 else f"events-{part}.bin")
        if not path.exists():
            return
        yield path


def _rows(raw: bytes):
    """The rows of one event log; times are in nanoseconds, and every number is modulo 2^64."""
    now, version, gap = 0, 0, 0
    for record in _records(raw):
        kind, worker, text = chr(record[0]), 0, ""
        try:
            now, at = _change(record, 1, now)
            version, at = _change(record, at, version)
            if kind == '"':
                size, at = _number(record, at)
                text = record[at:at + size].decode("utf-8", "replace")
            elif kind.isupper():  # events have a time of their own
                gap, at = _change(record, at, gap)
            if kind == "=":
                text = record[at:].decode("utf-8", "replace")
            if kind not in '"%=':
                worker, at = _number(record, at)
        except _Torn:
            return
        yield now, version, _KINDS.get(kind, kind), worker, text


def _events(folder: Path) -> dict[str, Any]:
    """Arrays, because a log has millions of records."""
    import numpy
    now, version, worker, kind, text = array("Q"), array("Q"), array("Q"), [], []
    logs = list(_logs(folder))
    for row in (row for path in logs for row in _rows(_bytes(path))):
        for column, value in zip((now, version, kind, worker, text), row):
            column.append(value)
    if not logs:
        return {}
    now, version, worker = (numpy.array(column).astype(numpy.int64)
                            for column in (now, version, worker))
    return {"time": now / 1e9, "version": version, "kind": numpy.array(kind, dtype=str),
            "worker": worker, "text": numpy.array(text, dtype=object)}


_RUNS = Path("runs")
_MARKS = ("result.json", "workers.json", "run.lock", "events.bin", "checkpoint")


def _changed(folder: Path) -> float:
    """When a run has changed; 0 when the folder is no run."""
    return max((mark.stat().st_mtime for mark in map(folder.joinpath, _MARKS) if mark.exists()),
               default=0)


def _find(run: Union[str, Path]) -> Path:
    """The folder of a run, named as for the program: `latest` is the newest run in runs/, and NAME
    may stand for runs/NAME."""
    path = Path(run)
    if path.exists():
        return path
    if path in (Path("latest"), _RUNS / "latest"):
        newest = max(_RUNS.glob("*"), key=_changed, default=path)
        return newest if _changed(newest) else path
    return _RUNS / path if _changed(_RUNS / path) else path


def read(run: Union[str, Path]) -> Run:
    """Reads a run folder into numpy arrays. `latest` is the newest run in runs/."""
    folder = _find(run)
    if not folder.is_dir():
        raise Error(f"{folder}: there is no such run; `anytime runs` lists them", 66)
    return Run(folder, _result(folder / "result.json"),
               *(_table(folder / name) for name in ("master_stats.csv", "collect_stats.csv",
                                                    "worker_stats.csv", "resource_stats.csv")),
               _events(folder))


def _tensors(path: Path) -> dict[str, Any]:
    """The float32 tensors of a safetensors file, without those of the hub."""
    raw = _bytes(path)
    if len(raw) < 8:
        raise Error(f"{path}: too short for a safetensors file", 65)
    size = struct.unpack("<Q", raw[:8])[0]
    if size > min(len(raw) - 8, _HEADER_MAX):
        raise Error(f"{path}: its header does not fit into the file", 65)
    try:
        header = json.loads(raw[8:8 + size])
        data = memoryview(raw)[8 + size:]
        entries = [(*entry["data_offsets"], name, entry["shape"]) for name, entry in header.items()
                   if name != "__metadata__" and entry["dtype"] == "F32"]
        return _cut(path, data, entries)
    except _DAMAGED as problem:
        raise Error(f"{path}: not a safetensors file ({problem})", 65) from None


def _cut(path: Path, data: memoryview, entries: list[tuple]) -> dict[str, Any]:
    """Copies of the tensors. Each entry is a place in the data, a name and a shape."""
    import numpy
    last = 0
    for begin, end, name, shape in sorted(entries, key=lambda entry: entry[:2]):
        whole = len(shape) <= _DIMS_MAX and min(shape, default=0) >= 0 and \
            end - begin == 4 * math.prod(shape)
        if not whole or not 0 <= begin <= end <= len(data):
            raise Error(f"{path}: {name} does not fit into the file", 65)
        if begin < last:
            raise Error(f"{path}: {name} overlaps another tensor", 65)
        last = end
    return {name: numpy.frombuffer(data[begin:end], dtype="<f4").reshape(shape).copy()
            for begin, end, name, shape in entries if not name.startswith("anytime.")}


def _newest(path: Path) -> Path:
    """The file with the weights of a run; a file is its own."""
    model, saved = path / "model.safetensors", sorted(path.glob("checkpoint/step-*.safetensors"))
    if not path.is_dir():
        return path
    return model if model.exists() or not saved else saved[-1]


def weights(run: Union[str, Path]) -> dict[str, Any]:
    """The trained tensors of a run (a folder, or a .safetensors file) as numpy arrays. A run that
    is not over has those of its newest checkpoint."""
    path = _newest(_find(run))
    if not path.exists():
        raise Error(f"{path}: there is no such file; a run writes it at its end, and with "
                    "--record none not at all", 66)
    return _tensors(path)


def is_statistic(model: Any, name: str, buffer: Any) -> bool:
    """Is this buffer of a torch module a statistic of batch norm, which a run averages over its
    workers? Masks, tables and counters are not."""
    import torch
    owner = model.get_submodule(name.rpartition(".")[0])
    norm = isinstance(owner, torch.nn.modules.batchnorm._NormBase)
    return buffer.dtype == torch.float32 and (norm or "running_" in name.rpartition(".")[2])


def load(run: Union[str, Path], model: Any) -> Any:
    """Copies the trained tensors of a run into a PyTorch module and returns it. Every parameter
    that is not frozen and every statistic of batch norm must be in the run, with its shape."""
    import torch
    found, missing = weights(run), []
    needed = {name for name, p in model.named_parameters() if p.requires_grad}
    needed |= {name for name, b in model.named_buffers() if is_statistic(model, name, b)}
    with torch.no_grad():
        for stored, tensor in [*model.named_parameters(), *model.named_buffers()]:
            name = stored.replace("_orig_mod.", "")
            if name not in found:
                missing += [name] if stored in needed else []
                continue
            if list(tensor.shape) != list(found[name].shape):
                raise Error(f"{name} has the shape {list(found[name].shape)} in {run} and "
                            f"{list(tensor.shape)} in the model", 65)
            tensor.copy_(torch.from_numpy(found[name]))
    if missing:
        raise Error(f"{run} lacks {len(missing)} tensors of the model, the first is {missing[0]}",
                    65)
    return model
