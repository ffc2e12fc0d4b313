#!/usr/bin/env python3
"""Breaks the code on purpose, one place at a time, and checks that the tests of faults notice.

    tests/mutants/run.py [NAME ..]       all mutants, or those named, against the build in build/

A mutant is compiled beside the build and linked in front of the libraries, so that neither the
sources nor the build change. Exits with 1 if one survives.
"""
import json
import pathlib
import re
import resource
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WORK = BUILD / "mutants"
SWARM, CRASH, FILES = "test_world_swarm", "test_world_crash", "test_model_io_checkpoint"

# Name, file, what is there, what it becomes, and the test that must fail.
MUTANTS = (
    ("file-not-synced", "src/base/atomic_file.c",
     "if (!error && at_disk->fsync(file->fd)) error = errno;", "", SWARM),
    ("folder-not-synced", "src/base/atomic_file.c",
     "error = at_file_sync_folder(file->path);", "error = 0;", SWARM),
    ("run-folders-not-synced", "src/world/process/saver.c",
     "if (!err) err = sync_folders(s, fail);", "(void)sync_folders;", SWARM),
    ("cut-log-not-synced", "src/record/log/rewind.c", " || at_disk->fsync(fd)", "", CRASH),
    ("later-checkpoints-kept", "src/model_io/checkpoint.c",
     "files.step[i] <= written && kept++", "files.step[i] <= written + 9999 && kept++", FILES),
    ("seal-not-checked", "src/model_io/checkpoint.c",
     "return memcmp(seal, found, sizeof seal) == 0", "return seal[0] <= 255", FILES),
    ("failed-write-confirmed", "src/world/process/saver.c",
     'snprintf(s->shared->trouble, sizeof s->shared->trouble, "%.500s", fail.text);',
     "atomic_store(&s->shared->newest, parts.step);", SWARM),
    ("snapshot-forgets-drops", "src/step/snapshot.c", ".dropped = member->dropped,", "", SWARM),
    ("duplicate-accepted", "src/step/hub.c", " && report->sequence > member->sequence;", ";",
     SWARM),
    ("dead-worker-heard", "src/step/hub.c",
     "report->incarnation == member->incarnation && report->sequence", "report->sequence", SWARM),
    ("lost-samples-not-dropped", "src/step/hub.c",
     "uint64_t lost = event->as.lost.drawn - counted;", "uint64_t lost = 0 * counted;", SWARM),
    ("stale-report-not-booked", "src/step/hub.c",
     "drop(hub, member, &piece, work->samples, AT_DROP_STALE, out);", ";", SWARM),
    ("stale-report-used", "src/step/hub.c", "if (piece.weight < 0)", "if (piece.weight < -1)",
     SWARM),
    ("order-forgotten", "src/step/hub.c",
     "    drain_if_due(hub, out);\n    release_ready(hub, now, out);",
     "    drain_if_due(hub, out);\n    if (hub->version % 5) release_ready(hub, now, out);", SWARM),
    ("weights-ignored", "src/world/core/update.c", "u->weights[i] = (float)weight;",
     "u->weights[i] = weight > 0;", SWARM),
    ("resumed-without-trace", "src/step/snapshot.c", "hub->trace = snapshot->trace;", "", SWARM),
    ("draws-not-counted", "src/world/core/driver.c",
     "atomic_store_explicit(o->drawn, drawn + action->samples",
     "atomic_store_explicit(o->drawn, drawn", SWARM),
)


def command_of(source):
    """How the build compiles a file."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    entry = next(e for e in entries if pathlib.Path(e["file"]) == source)
    return shlex.split(entry["command"]), entry["directory"]


def compile_mutant(name, file, old, new):
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        sys.exit(f"{name}: {file} has the text {text.count(old)} times")
    source, target = WORK / f"{name}.c", WORK / f"{name}.o"
    source.write_text(text.replace(old, new))
    command, folder = command_of(ROOT / file)
    command[command.index("-o") + 1] = str(target)
    command[command.index("-c") + 1] = str(source)
    subprocess.run([*command, "-Wno-error"], cwd=folder, check=True, capture_output=True)
    return target


def link_mutant(target, test):
    """The linker takes the first definition it meets."""
    program = WORK / target.stem
    link = BUILD / "tests" / "CMakeFiles" / f"{test}.dir" / "link.txt"
    command = shlex.split(link.read_text())
    command[command.index("-o") + 1] = str(program)
    command.insert(command.index("-o"), str(target))
    subprocess.run(command, cwd=BUILD / "tests", check=True, capture_output=True)
    return program


def verdict(program):
    """What the test says about the mutant; None: nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if ended.returncode == 0:
        return None, seconds
    seed = re.search(r"SWARM_SEED=\d+", ended.stderr + ended.stdout)
    return (seed.group() if seed else "failed"), seconds


def main():
    wanted, survivors = sys.argv[1:], 0
    WORK.mkdir(exist_ok=True)
    for name, file, old, new, test in MUTANTS:
        if wanted and name not in wanted:
            continue
        noticed, seconds = verdict(link_mutant(compile_mutant(name, file, old, new), test))
        survivors += noticed is None
        print(f"{name:26} {test:18} {noticed or 'SURVIVES':20} {seconds:6.1f} s", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
