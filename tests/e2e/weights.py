#!/usr/bin/env python3
"""model.safetensors: the trained parameters, as other programs read them."""
import hashlib
import json
import math
import struct
import unittest

import support


def read(path):
    """Header and bytes of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


class Weights(support.TestCase):
    def test_names_shapes_and_bytes_are_those_of_the_model(self):
        shapes = {"dense1.weight": [7, 20], "dense1.bias": [7], "dense2.weight": [5, 7],
                  "dense2.bias": [5]}
        for world in ("local", "sim"):
            with self.subTest(world=world):
                ended = self.train(*support.SMALL, "--model", "mlp:7", "--steps", 20,
                                   "--workers", 2, "--world", world)
                header, data = read(ended.folder / "model.safetensors")
                self.assertEqual(header.pop("__metadata__")["model"], "mlp:7")
                self.assertEqual({name: row["shape"] for name, row in header.items()}, shapes)
                self.assertEqual(hashlib.sha256(data).hexdigest(), ended.result["params_hash"])
                places = sorted(tuple(row["data_offsets"]) for row in header.values())
                self.assertEqual([first for first, _ in places],
                                 [0, *(end for _, end in places[:-1])])
                self.assertEqual(places[-1][1], len(data))
                for row in header.values():
                    first, end = row["data_offsets"]
                    self.assertEqual(end - first, 4 * math.prod(row["shape"]))

    def test_a_run_without_records_writes_no_weights(self):
        ended = self.train(*support.SMALL, "--steps", 5, "--record", "none")
        self.assertTrue((ended.folder / "result.json").exists())
        self.assertFalse((ended.folder / "model.safetensors").exists())


if __name__ == "__main__":
    support.main()
