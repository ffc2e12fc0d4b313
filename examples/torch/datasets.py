"""The data of the examples, as tensors: what `anytime data get NAME` has stored, or made up.

Without the files, every example trains on made-up data, so that it can be tried at once.
"""
import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import TensorDataset


def _folders(name):
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return [Path(folder) for folder in (os.environ.get("ANYTIME_DATA", ""), cache + "/anytime",
                                        "/usr/share/datasets") if folder for folder in
            (folder, f"{folder}/{name}")]


def _find(name, file):
    for folder in _folders(name):
        for path in (folder / file, folder / f"{file}.gz"):
            if path.is_file():
                return path
    return None


def _idx(path, header):
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def _pictures(channels, size, count, seed):
    """Ten classes of noisy pictures."""
    made = torch.Generator().manual_seed(seed)
    centres = torch.randn(10, channels, size, size, generator=torch.Generator().manual_seed(1))
    labels = torch.randint(0, 10, (count,), generator=made)
    return TensorDataset(centres[labels] + 2 * torch.randn(count, channels, size, size,
                                                           generator=made), labels)


def mnist(name="mnist"):
    """Training and test set of 28x28 grey pictures."""
    sets = []
    for part, count in (("train", 6000), ("t10k", 1000)):
        images = _find(name, f"{part}-images-idx3-ubyte")
        labels = _find(name, f"{part}-labels-idx1-ubyte")
        if not images or not labels:
            sets.append(_pictures(1, 28, count, count))
            continue
        x = torch.from_numpy(_idx(images, 16).reshape(-1, 1, 28, 28).astype(np.float32))
        y = torch.from_numpy(_idx(labels, 8).astype(np.int64))
        sets.append(TensorDataset((x / 255 - 0.1307) / 0.3081, y))
    return sets


def cifar10():
    """Training and test set of 32x32 colour pictures."""
    sets = []
    for files, count in (([f"data_batch_{i}.bin" for i in range(1, 6)], 2000),
                         (["test_batch.bin"], 500)):
        paths = [_find("cifar10", file) for file in files]
        if not all(paths):
            sets.append(_pictures(3, 32, count, count))
            continue
        rows = np.concatenate([np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073)
                               for path in paths])
        x = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32))
        sets.append(TensorDataset(x / 127.5 - 1, torch.from_numpy(rows[:, 0].astype(np.int64))))
    return sets


def text(length=64):
    """Windows of this program's own source as numbers, with the next character as the label."""
    raw = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("*.py")))
    alphabet = sorted(set(raw))
    codes = torch.tensor([alphabet.index(char) for char in raw])
    windows = codes.unfold(0, length + 1, 3)
    return TensorDataset(windows[:, :-1].contiguous(), windows[:, 1:].contiguous()), len(alphabet)
