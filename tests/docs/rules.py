"""What is done with commands of the documentation that cannot run here as they stand.

A pattern is searched in a command, which is one line. A command that matches none runs as it is.
docs.rules fails when a rule matches nothing any more.
"""
import typing


class LeftOut(typing.NamedTuple):
    pattern: str
    why: str


class Changed(typing.NamedTuple):
    pattern: str
    instead: str
    why: str


class Need(typing.NamedTuple):
    """Commands that are left out on a machine without an optional package."""
    pattern: str
    program: str  # exits with 0 if it is there
    package: str


LEFT_OUT = (
    LeftOut(r"^#!/bin/bash\n#SBATCH", "a batch script: tests/e2e/slurm.py runs it"),
    LeftOut(r"^sbatch ", "needs a Slurm: tests/e2e/slurm.py submits these scripts"),
    LeftOut(r"^make( |$)", "a target of its own: tests/docs/targets.py says where it runs"),
    LeftOut(r"^apt install ", "needs root: tools/test_bare.sh installs the packages"),
    LeftOut(r"^ssh ", "needs another machine"),
    LeftOut(r"data get ", "needs the internet"),
    LeftOut(r"--data a9a ", "needs the internet"),
    LeftOut(r"^tools/torch2_env\.py ", "downloads 2.5 GB"),
    LeftOut(r"^bench/torch_peers\.py ", "takes an hour on a quiet machine"),
    LeftOut(r"/shared/a|A:7000 B:7000", "three programs at once: tests/e2e/standby.py"),
    LeftOut(r"photo\.jpg|predict runs/houses", "pictures and tables: tests/e2e/tables.py"),
    LeftOut(r"anytime link 10\.0\.0\.7", "needs a hub: tests/e2e/link.py"),
)

CHANGED = (
    # Other machines are this one.
    Changed(r"^anytime hub --listen 0\.0\.0\.0:7000",
            "beside anytime hub --listen 127.0.0.1:$port",
            "the hub runs beside the next command, on the loopback"),
    Changed(r"^anytime work 10\.0\.0\.7:7000 --token token",
            "await_file runs/a/token; anytime work 127.0.0.1:$port --token runs/a/token",
            "the token need not be copied"),
    Changed(r"(anytime hub .*)--workers \d+", r"\1--workers 1 --steps 20", "one worker joins"),
    # Data that cannot be installed from Debian.
    Changed(r"--data mnist\b", "--data fashion-mnist", "the same form, and a Debian package"),
    # What ends with Ctrl-C.
    Changed(r"^anytime watch (?!.*--once)(.*)", r"until_address anytime watch \1",
            "Ctrl-C as soon as the address is printed"),
    Changed(r" --open\b", "", "there is no browser on a server"),
    Changed(r"--listen 127\.0\.0\.1:9464", "--listen 127.0.0.1:0", "that port may be in use"),
    Changed(r"/var/lib/node_exporter/", "", "the folder of another program"),
    Changed(r" \.\.\.$", "", "any options"),
    # What takes minutes.
    Changed(r"(anytime train|anytime run -n \d+(?= -- python3 train))(?!.*--(?:steps|seconds)\b)",
            r"\1 --steps 20", "a short run"),
    Changed(r"--seconds (?:20|30)\b", "--seconds 2", "a short run"),
)

NEEDS = (
    Need(r"mpirun", "command -v mpirun && ! anytime --version | grep -q '^built without.*MPI'",
         "openmpi-bin"),
    Need(r"torch|train\.py", "python3 -c 'import torch'", "python3-torch"),
    Need(r"own_model\.py", "python3 -c 'import numpy'", "python3-numpy"),
    Need(r"anytime watch|--watch", "! anytime --version | grep -q '^built without.*microhttpd'",
         "libmicrohttpd-dev"),
)
