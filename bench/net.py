#!/usr/bin/env python3
"""How much of the speed of bare sockets the links between machines have, on this machine.

    bench/net.py [BUILD]        BUILD: folder with the libraries [build]

For 1, 10 and 100 MB there and back: links against blocking sockets, and encrypted links against a
bare OpenSSL loop. The kinds take turns, so that a busy machine slows all of them; the best of all
round trips counts. On a machine that is very busy only the processor time says something. The goal
is 80 % of both.
"""
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
SIZES = ((1_000_000, 100), (10_000_000, 10), (100_000_000, 2))
KINDS = ("raw", "link", "openssl", "tls")
TURNS = 3


def compile_into(folder, build):
    program = pathlib.Path(folder, "net_link")
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-std=c17", f"-I{FOLDER.parent / 'src'}",
                    FOLDER / "net_link.c", build / "libat_net.a", build / "libat_base.a", "-lssl",
                    "-lcrypto", "-ljansson", "-lm", "-o", program], check=True)
    return program


def measure(program, size, rounds):
    """The shortest round trip and the least processor time of each kind in seconds."""
    best = {kind: [float("inf")] * 2 for kind in KINDS}
    for _ in range(TURNS):
        for kind in KINDS:
            done = subprocess.run([program, kind, str(size), str(rounds)], check=True, text=True,
                                  capture_output=True, timeout=300)
            shortest, _, processor = map(float, done.stdout.split())
            best[kind] = [min(best[kind][0], shortest), min(best[kind][1], processor)]
    return best


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    print("GB/s in each direction; % of the bare loop: speed, and its processor time by ours")
    print(f"{'MB':>5} {'raw':>7} {'link':>7} {'speed':>6} {'cpu':>6}   {'openssl':>7} {'tls':>7} "
          f"{'speed':>6} {'cpu':>6}")
    with tempfile.TemporaryDirectory() as folder:
        program = compile_into(folder, build)
        for size, rounds in SIZES:
            best = measure(program, size, rounds)
            row = f"{size / 1e6:5.0f}"
            for bare, ours in (KINDS[:2], KINDS[2:]):
                speed = [2 * size / best[kind][0] / 1e9 for kind in (bare, ours)]
                row += (f" {speed[0]:7.2f} {speed[1]:7.2f} {speed[1] / speed[0]:6.0%} "
                        f"{best[bare][1] / best[ours][1]:6.0%}  ")
            print(row, flush=True)


if __name__ == "__main__":
    main()
