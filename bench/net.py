#!/usr/bin/env python3
"""How much of the speed of bare sockets the links between machines have, on this machine.

    bench/net.py [BUILD]        BUILD: folder with the libraries [build]

For 1, 10 and 100 MB there and back: links against blocking sockets, and encrypted links against a
bare OpenSSL loop. The kinds take turns, so that a busy machine slows all of them; the best of all
round trips counts. The goal is 80 % of both.
"""
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
SIZES = ((1_000_000, 200), (10_000_000, 30), (100_000_000, 5))
KINDS = ("raw", "link", "openssl", "tls")
TURNS = 4


def compile_into(folder, build):
    program = pathlib.Path(folder, "net_link")
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-std=c17", f"-I{FOLDER.parent / 'src'}",
                    FOLDER / "net_link.c", build / "libat_net.a", build / "libat_base.a", "-lssl",
                    "-lcrypto", "-ljansson", "-lm", "-o", program], check=True)
    return program


def measure(program, size, rounds):
    """The shortest round trip of each kind in seconds."""
    best = dict.fromkeys(KINDS, float("inf"))
    for _ in range(TURNS):
        for kind in KINDS:
            done = subprocess.run([program, kind, str(size), str(rounds)], check=True, text=True,
                                  capture_output=True, timeout=60)
            best[kind] = min(best[kind], float(done.stdout.split()[0]))
    return best


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    print(f"{'MB':>5} {'raw':>10} {'link':>10} {'of raw':>7} {'openssl':>10} {'tls':>10} "
          f"{'of it':>7}   (GB/s in each direction)")
    with tempfile.TemporaryDirectory() as folder:
        program = compile_into(folder, build)
        for size, rounds in SIZES:
            best = measure(program, size, rounds)
            speed = {kind: 2 * size / best[kind] / 1e9 for kind in KINDS}
            print(f"{size / 1e6:5.0f} {speed['raw']:10.2f} {speed['link']:10.2f} "
                  f"{speed['link'] / speed['raw']:7.0%} {speed['openssl']:10.2f} "
                  f"{speed['tls']:10.2f} {speed['tls'] / speed['openssl']:7.0%}", flush=True)


if __name__ == "__main__":
    main()
