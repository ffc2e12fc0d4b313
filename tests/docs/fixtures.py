"""What the reader of a page is said to have: a build folder, and the files that the page names."""
import os
import pathlib
import random
import re
import struct
import subprocess
import zlib

import commands

SMALL = "--data synthetic:500,10,3 --workers 2 --steps 10 --quiet"
RUN = f"anytime train {SMALL} --run"
FOLDERS = ("examples", "include", "python")


def png(shade):
    """A gray picture of 8x8 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I",
                                                                         zlib.crc32(kind + data))
    pixels = (b"\0" + bytes([shade] * 8)) * 8
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def npy(kind, shape, data):
    """The bytes of an array as numpy.save writes it."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def pictures(folder):
    """~/flowers, ~/imagenet32, and a CIFAR-10 of 120 pictures."""
    for i in range(40):
        path = folder / "flowers" / ("daisy", "tulip")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(6 * i))
    arrays = folder / "imagenet32"
    arrays.mkdir()
    for part, count in (("train", 40), ("test", 10)):
        x = random.Random(part).randbytes(count * 3 * 32 * 32)
        (arrays / f"x_{part}.npy").write_bytes(npy("|u1", (count, 32, 32, 3), x))
        (arrays / f"y_{part}.npy").write_bytes(
            npy("|u1", (count,), bytes(i % 4 for i in range(count))))
    cifar = folder / ".cache" / "anytime" / "cifar10"
    cifar.mkdir(parents=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = (bytes([i % 10]) + random.Random(i).randbytes(3072) for i in range(20))
        (cifar / f"{name}.bin").write_bytes(b"".join(rows))


def tables(folder):
    """Prices of houses, and sparse rows with real-valued labels."""
    chance = random.Random(1)
    for name, count in (("houses", 200), ("houses-test", 50)):
        rows = [(chance.uniform(50, 200), chance.randint(1, 6)) for _ in range(count)]
        lines = [f"{area:.1f},{rooms},{3 * area + 10 * rooms:.1f}" for area, rooms in rows]
        (folder / f"{name}.csv").write_text("\n".join(["area,rooms,price", *lines, ""]))
    for name in ("rows", "more"):
        lines = [f"{chance.uniform(-1, 1):.3f} {chance.randint(1, 9)}:1 "
                 f"{chance.randint(10, 90)}:0.5" for _ in range(100)]
        (folder / f"{name}.svm").write_text("\n".join([*lines, ""]))


def net_file(folder):
    """my.net, as the page shows it, and a program in C."""
    page = commands.pages()["guide_own-models"].read_text()
    shown = re.search(r"^## A net file\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    (folder / "my.net").write_text(shown)
    (folder / "mine.c").write_bytes((folder / "examples" / "own_model.c").read_bytes())


# What a page needs: a function, or shell.
MAKE = {
    "README": "cp examples/torch/logistic_anytime.py examples/torch/datasets.py .; "
              "mv logistic_anytime.py train.py",
    "guide_data": pictures,
    "guide_own-models": net_file,
    "guide_regression": tables,
    "guide_report": f"{RUN} runs/monday; anytime compare fmb amb {SMALL} --repeats 2 --out cmp",
    "guide_seats": r"printf '#!/bin/sh\nexec build/example_seat\n' >program; chmod +x program",
    "guide_trained-models": f"{RUN} runs/my-run",
    "guide_watch": f"{RUN} runs/my-run; {RUN} runs/a; {RUN} runs/b",
}


def furnish(folder, page, environment):
    build = pathlib.Path(os.environ["ANYTIME"]).resolve().parent
    (folder / "bin").mkdir()
    (folder / "bin" / "anytime").symlink_to(build / "anytime")
    # Debian's Python has Debian's packages; another one may come first on PATH.
    (folder / "bin" / "python3").symlink_to(os.environ.get("PYTHON", "/usr/bin/python3"))
    (folder / "build").symlink_to(build)
    for name in FOLDERS:
        (folder / name).symlink_to(commands.ROOT / name)
    make = MAKE.get(page)
    if isinstance(make, str):
        subprocess.run(["bash", "-e", "-c", make], cwd=folder, env=environment, check=True)
    elif make:
        make(folder)
