"""Reads safetensors files."""
import array
import json


def read(path):
    """The float32 tensors of a file by name, as flat arrays."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + size])
    tensors = {}
    for name, row in head.items():
        if name == "__metadata__" or row["dtype"] != "F32":
            continue
        first, end = row["data_offsets"]
        tensors[name] = array.array("f", data[8 + size + first:8 + size + end])
    return tensors
