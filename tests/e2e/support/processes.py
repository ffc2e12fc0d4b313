"""Processes seen from outside, through /proc."""
import contextlib
import functools
import os
import pathlib
import signal
import subprocess

PROC = pathlib.Path("/proc")
NEXT_NUMBER = PROC / "sys" / "kernel" / "ns_last_pid"  # that of the next process, minus 1

# An environment variable with a different value for each run; children inherit it and keep it when
# they get another parent.
MARK = "ANYTIME_TEST_MARK"


def state(pid):
    """The state letter of /proc/PID/stat, or None if the process does not exist."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "stat").read_text().rpartition(") ")[2][0]
    return None


def parent(pid):
    with contextlib.suppress(OSError):
        return int((PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()[1])
    return None


def sleeps(pid):
    """How often the process has given its core away because it waits."""
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    raise ValueError(f"/proc/{pid}/status has no voluntary_ctxt_switches")


def all_pids():
    return {int(entry) for entry in os.listdir(PROC) if entry.isdigit()}


def alive(pids):
    """Those of the processes that are running; zombies are not."""
    return {pid for pid in pids if state(pid) not in (None, "Z", "X")}


def children(pid):
    return {other for other in alive(all_pids()) if parent(other) == pid}


def marked(mark):
    """All running processes with this mark."""
    found = set()
    wanted = f"{MARK}={mark}".encode()
    for pid in alive(all_pids()):
        with contextlib.suppress(OSError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found


def handles(pid, number):
    """Whether the process has a handler for this signal."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def threads_with(pid, number):
    """The threads of the process that do not block this signal."""
    found = set()
    for task in (PROC / str(pid) / "task").iterdir():
        with contextlib.suppress(OSError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("SigBlk:") and not int(line.split()[1], 16) >> (number - 1) & 1:
                    found.add(int(task.name))
    return found


def shared_names(pid):
    """Named memory objects of the process, which could be left behind."""
    names = set()
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "maps").read_text().splitlines():
            if "/dev/shm/" in line or "/SYSV" in line:
                names.add(line.split(maxsplit=5)[-1])
    with contextlib.suppress(OSError):
        for fd in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(fd).startswith("/dev/shm/"):
                    names.add(os.readlink(fd))
    return names


def sysv_segments(pids):
    """System V shared memory created by one of the processes."""
    with contextlib.suppress(OSError):
        rows = (PROC / "sysvipc" / "shm").read_text().splitlines()[1:]
        return [row for row in rows if int(row.split()[4]) in pids]
    return []


@functools.cache
def namespace():
    """Words that start a command as process 1 of a namespace of process numbers, or None."""
    rights = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    words = ("unshare", *rights, "--pid", "--fork", "--mount-proc")
    with contextlib.suppress(OSError):
        if subprocess.run([*words, "test", "-w", NEXT_NUMBER], capture_output=True,
                          check=False).returncode == 0:
            return words
    return None


def name(pid):
    """The name of the process, or None if it is gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "comm").read_text().strip()
    return None


def kill(pid):
    os.kill(pid, signal.SIGKILL)
