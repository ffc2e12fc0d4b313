#!/usr/bin/env python3
"""Checks that two builds of the program give bit-identical results.

    tools/same_bits.py OLD/anytime NEW/anytime

Runs a fixed set of small jobs with both: every strategy in virtual time, barrier strategies with
worker processes and under mpirun, resumed runs and replays. Compares params_hash and trace_hash
and prints one line per job. Exits with 1 when any differ. Use it for a change that must not alter
results.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ENV = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_btl": "self,vader", "OMPI_MCA_oob_tcp_if_include": "lo"}
MPIRUN = ["mpirun", "-n", "4", "--oversubscribe", "--bind-to", "none"]

DENSE = ["--data", "synthetic:2000,20,5", "--batch", "32", "--micro-batch", "8"]
CLICKS = ["--data", "synthetic-clicks:4000,4096", "--model", "sparse-lr", "--batch", "64"]
SLOW = ["--straggler", "niagara", "--straggler-scale", "50%", "--sample-time", "1ms"]
SIM = ["--world", "sim", "--workers", "4", "--steps", "60", *SLOW]
NET = "conv 3x3x8 bias=no\nbn\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\ndense classes\n"

STRATEGIES = ("fmb", "amb", "backup", "batch-sync", "async", "async-fmb", "async-timed", "ssp",
              "dbs", "grow", "shrink", "loss", "noise", "probe")
FAULTS = ["--faults", "die:2@0.5+0.3,freeze:3@1+0.4,late:1@1.5+0.2"]


def jobs(net):
    """Name, launcher and options of each job."""
    for strategy in STRATEGIES:
        yield f"sim {strategy}", [], [*DENSE, *SIM, "--strategy", strategy]
    for strategy in ("amb", "async", "backup"):
        yield f"sim {strategy} with faults", [], [*DENSE, *SIM, *FAULTS, "--strategy", strategy]
    network = ["--latency", "2ms", "--bandwidth", "1e6", "--comm-delay", "5ms"]
    for strategy in ("ssp", "batch-sync", "backup", "async-timed"):
        yield f"sim {strategy} on a slow network", [], [*DENSE, *SIM, *network, "--strategy",
                                                        strategy, "--straggler", "exp:0,0.05"]
    yield "sim sparse", [], [*CLICKS, *SIM, "--strategy", "amb"]
    images = ["--data", "synthetic:300,3x12x12,4", "--model", net, "--batch", "20",
               "--micro-batch", "8", "--optimizer", "momentum", "--steps", "6"]
    yield "sim net", [], [*images, "--world", "sim", "--workers", "3", "--sample-time", "1ms"]
    for world, launcher, workers in (("local", [], ["--workers", "3"]), ("mpi", MPIRUN, [])):
        yield f"{world} fmb", launcher, [*DENSE, *workers, "--steps", "100"]
        yield f"{world} mlp adam", launcher, [*DENSE, *workers, "--steps", "100", "--model",
                                              "mlp:24,12", "--optimizer", "adam"]
        yield f"{world} net", launcher, [*images, *workers]
        yield f"{world} allreduce", launcher, [*DENSE, *workers, "--steps", "60", "--topology",
                                               "allreduce"]
        yield f"{world} two hubs", launcher, [*DENSE, *workers, "--steps", "60", "--hubs", "2"]
        yield f"{world} sparse", launcher, [*CLICKS, *workers, "--steps", "40"]
    yield "no hub", [], [*DENSE, "--workers", "0", "--steps", "100"]


def run(command):
    ended = subprocess.run([str(word) for word in command], env=ENV, capture_output=True,
                           text=True, timeout=300, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


def hashes(text):
    result = json.loads(text)
    return result["params_hash"], result["trace_hash"]


def all_hashes(program, folder):
    """Yields the name and the hashes of each job."""
    net = folder / "small.net"
    net.write_text(NET)
    for name, launcher, options in jobs(net):
        yield name, hashes(run([*launcher, program, "train", *options, "--record", "none",
                                "--eval-every", "0", "--quiet", "--json"]))
    for world in (["--world", "sim", *SLOW], []):
        kind = "sim" if world else "local"
        place = folder / f"resume-{kind}"
        run([program, "train", *DENSE, *world, "--workers", "3", "--steps", "40", "--quiet",
             "--checkpoint-every", "20", "--run", place])
        yield f"{kind} resumed", hashes(run([program, "train", "--resume", place, "--steps", "80",
                                             "--quiet", "--json"]))
        replay = json.loads(run([program, "replay", place, "--json"]))
        yield f"{kind} replayed", tuple(replay[key] for key in ("agrees", "steps", "trace_hash"))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
        before = dict(all_hashes(sys.argv[1], pathlib.Path(old)))
        after = dict(all_hashes(sys.argv[2], pathlib.Path(new)))
    different = [name for name in before if before[name] != after.get(name)]
    for name in before:
        print(f"{'DIFFERENT' if name in different else 'same':9}  {name}")
    print(f"{len(before)} jobs, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
