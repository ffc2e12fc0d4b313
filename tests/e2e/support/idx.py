"""IDX files, valid and invalid."""
import gzip
import struct

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

IMAGES_MAGIC, LABELS_MAGIC = 0x803, 0x801


def images(count, side=4, magic=IMAGES_MAGIC, claimed=None):
    """Images of side x side bytes; the header may claim another count."""
    head = struct.pack(">IIII", magic, count if claimed is None else claimed, side, side)
    return head + bytes((i * 37) % 256 for i in range(count * side * side))


def labels(count, magic=LABELS_MAGIC, claimed=None, classes=3):
    head = struct.pack(">II", magic, count if claimed is None else claimed)
    return head + bytes(i % classes for i in range(count))


def good():
    """A small data set: {file name: bytes}."""
    return dict(zip(FILES, (images(60), labels(60), images(20), labels(20))))


def write(folder, files):
    """Writes the files as they are; names with .gz are not compressed."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def packed(content):
    return gzip.compress(content, mtime=0)
