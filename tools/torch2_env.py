#!/usr/bin/env python3
"""Makes a virtual environment with the newest PyTorch, as small as possible.

    tools/torch2_env.py FOLDER [PACKAGE ..]    such as build/torch2 torchft hivemind

Where https://download.pytorch.org can be reached, PyTorch comes from there, for CPUs only (about
200 MB). PyPI has only the build for GPUs, which cannot be loaded without its CUDA libraries; it is
installed without those that no CPU needs (triton, cuSOLVER and others; about 2.5 GB instead of
3.2). TORCH_INDEX names another package index. Other packages are installed without touching that
choice.
"""
import os
import re
import subprocess
import sys
import urllib.request

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDLESS = {"torch", "triton", "cuda-bindings"}
NEEDLESS_EXTRAS = {"cusolver", "nvtx"}
REQUIRES = """
import importlib.metadata, sys
print("\\n".join(r for r in importlib.metadata.requires(sys.argv[1]) or [] if "extra ==" not in r))
"""


def reachable(address):
    try:
        with urllib.request.urlopen(address + "/torch/", timeout=5):
            return True
    except OSError:
        return False


def trimmed(requirement):
    """A requirement without what no CPU needs; None: not needed at all."""
    name, extras = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", requirement).groups()
    if name.lower() in NEEDLESS:
        return None
    if not extras:
        return requirement
    kept = [extra for extra in extras.split(",") if extra.strip() not in NEEDLESS_EXTRAS]
    return requirement.replace(f"[{extras}]", f"[{','.join(kept)}]")


class Environment:
    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "bin", "python3")

    def can_import(self, *names):
        words = [self.python, "-W", "ignore", "-c", f"import {', '.join(names)}"]
        return os.path.exists(self.python) and subprocess.run(
            words, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def pip(self, *words):
        """pip warns about what was left out: only its errors matter, and they end this."""
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet",
                               "--disable-pip-version-check", *words], check=False, text=True,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"pip install {' '.join(words)}:\n{done.stderr}")

    def install(self, package):
        """A package and its requirements, except PyTorch and what no CPU needs."""
        self.pip("--no-deps", package)
        wanted = subprocess.run([self.python, "-c", REQUIRES, package], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.splitlines()
        self.pip(*filter(None, map(trimmed, wanted)))


def main():
    folder, *packages = sys.argv[1:] or sys.exit(__doc__)
    environment = Environment(os.path.abspath(folder))
    index = os.environ.get("TORCH_INDEX")
    if not environment.can_import("torch", "numpy"):
        base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        subprocess.run([base, "-m", "venv", environment.folder], check=True)
        if not index and reachable(CPU_INDEX):
            index = CPU_INDEX
        if index:
            environment.pip("--index-url", index, "torch", "numpy")
        else:
            print("PyTorch for CPUs cannot be reached; about 2.5 GB come from PyPI, once")
            environment.install("torch")
            environment.pip("numpy")
    for package in packages:
        if not environment.can_import(package):
            environment.install(package)
    print(f"{environment.python} is ready")


if __name__ == "__main__":
    main()
