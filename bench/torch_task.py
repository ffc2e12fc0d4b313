"""The task of both PyTorch baselines: softmax regression or an MLP on Fashion-MNIST.

Needs Debian's python3-torch and the package dataset-fashion-mnist. Everything favors PyTorch:
the whole data set is in memory as floats, no DataLoader, nothing is read back in the loop.
"""
import gzip
import os
import struct

os.environ.setdefault("OMP_NUM_THREADS", "1")  # libgomp reads it when it is loaded

import torch  # noqa: E402  (must come after the line above)

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
LEARNING_RATE = 0.1
WARM_UP_STEPS = 50

MODELS = {
    "softmax": (784, 10),
    "mlp": (784, 300, 100, 10),
}


def read_idx(name):
    """The data of a gzipped IDX file of bytes, as a tensor with the shape in its header."""
    with gzip.open(os.path.join(FOLDER, name + ".gz")) as file:
        raw = bytearray(file.read())
    zeros, kind, dimensions = struct.unpack(">HBB", raw[:4])
    assert zeros == 0 and kind == 8, f"{name} is not an IDX file of bytes"
    shape = struct.unpack(f">{dimensions}I", raw[4:4 + 4 * dimensions])
    return torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * dimensions).reshape(shape)


def load(part="train"):
    """Images as (count, 784) floats in 0 .. 1, and labels."""
    images = read_idx(f"{part}-images-idx3-ubyte")
    labels = read_idx(f"{part}-labels-idx1-ubyte")
    return images.reshape(len(images), -1).float().div_(255), labels.long()


def new_model(name):
    """Dense layers with ReLU between them."""
    widths = MODELS[name]
    layers = []
    for width_in, width_out in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(width_in, width_out), torch.nn.ReLU()]
    layers.pop()
    return layers[0] if len(layers) == 1 else torch.nn.Sequential(*layers)


def draw_randint(count, batch):
    """Row numbers, drawn independently: one small call per step."""
    while True:
        yield torch.randint(count, (batch,))


def draw_permutation(count, batch):
    """Row numbers from a new permutation in each epoch: one slice per step."""
    while True:
        order = torch.randperm(count)
        for start in range(0, count - batch + 1, batch):
            yield order[start:start + batch]


DRAWS = {"randint": draw_randint, "permutation": draw_permutation}


def train(model, optimizer, images, labels, rows, steps):
    """The plain loop: `steps` steps on the rows given by the iterator `rows`."""
    cross_entropy = torch.nn.functional.cross_entropy
    for _ in range(steps):
        index = next(rows)
        loss = cross_entropy(model(images.index_select(0, index)), labels.index_select(0, index))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def loss_of(model, images, labels):
    """Mean loss over these rows."""
    return torch.nn.functional.cross_entropy(model(images), labels).item()


def blas_in_use():
    """The BLAS of this process; with the reference BLAS PyTorch would be slow. PyPI's wheels have
    MKL built in."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    names = sorted(os.path.basename(path) for path in paths)
    return [*names, "mkl"] if torch.backends.mkl.is_available() else names
