"""Small parts of data sets, so that an epoch of a large net is affordable.

`build/book/data/mnist-2000` has the first 2000 training samples of MNIST and the first 500 test
samples; `cifar10-2000` the same of CIFAR-10. `cifar10-classes-0,6` has the samples of two classes
in its first two batches. made_data.py has more kinds. They are written when a run first names them.
"""
import os
import pathlib
import re

import made_data

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "build/book/data"
TEST_SHARE = 4  # a fourth as many test samples

CIFAR_RECORD = 1 + 3 * 32 * 32


def source(name):
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(cache, "anytime", name)
    if not folder.exists():
        raise SystemExit(f"{name} is not here: run `anytime data get {name}`")
    return folder


def prepare(words):
    """Writes every data set that the words of a command name."""
    for word in words:
        match = re.search(FOLDER + r"/(?:(cifar10-classes-)([\d,]+)|([a-z0-9]+-)(\d+))", word)
        if match and not (ROOT / match[0]).exists():
            write(ROOT / match[0], WRITERS[match[1] or match[3]], match[2] or match[4])


def write(folder, writer, numbers):
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    writer(draft, [int(number) for number in numbers.split(",")])
    draft.rename(folder)


def write_mnist(folder, numbers):
    count = numbers[0]
    for part, samples in (("train", count), ("t10k", count // TEST_SHARE)):
        for kind, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            name = f"{part}-{kind}-ubyte"
            with open(source("mnist") / name, "rb") as file:
                start = bytearray(file.read(header))
                start[4:8] = samples.to_bytes(4, "big")
                (folder / name).write_bytes(bytes(start) + file.read(samples * size))


def write_cifar10(folder, numbers):
    count = numbers[0]
    for name, samples in (("data_batch_1.bin", count), ("test_batch.bin", count // TEST_SHARE)):
        with open(source("cifar10") / name, "rb") as file:
            (folder / name).write_bytes(file.read(samples * CIFAR_RECORD))


def write_classes(folder, classes):
    for name, sources in (("data_batch_1.bin", ("data_batch_1.bin", "data_batch_2.bin")),
                          ("test_batch.bin", ("test_batch.bin",))):
        data = b"".join((source("cifar10") / part).read_bytes() for part in sources)
        records = (data[at:at + CIFAR_RECORD] for at in range(0, len(data), CIFAR_RECORD))
        (folder / name).write_bytes(b"".join(bytes([classes.index(record[0])]) + record[1:]
                                             for record in records if record[0] in classes))


WRITERS = {"mnist-": write_mnist, "cifar10-": write_cifar10, "cifar10-classes-": write_classes,
           "criteo-": made_data.write_criteo, "flowers-": made_data.write_flowers}
