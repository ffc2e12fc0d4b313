"""What machine is this, and is it quiet?"""
import os
import platform
import resource
import subprocess
import time

BUSY_MAX = 0.05  # the share of the machine that other work may take before we complain


def facts(root):
    """What belongs to every figure: processor, cores, kernel, commit."""
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "python": platform.python_version(),
            "commit": commit(root)}


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def commit(root):
    """The commit that is checked out, with a + when sources differ from it; None without git."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True,
                              text=True, check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def load_average():
    """Of the last minute."""
    return round(os.getloadavg()[0], 2)


def cpu_ticks():
    """(busy, all) ticks of all cores since the start; time that a hypervisor took counts as busy.

    The last two fields, the guests' time, are part of the first two already."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def busy_share(seconds):
    """Which share of the machine is at work, while we sleep?"""
    busy, total = cpu_ticks()
    time.sleep(seconds)
    busy_now, total_now = cpu_ticks()
    return (busy_now - busy) / max(total_now - total, 1)


def wait_until_quiet(limit_seconds):
    """Returns as soon as the machine is quiet, or after the limit; how busy it was at last."""
    deadline = time.monotonic() + limit_seconds
    while True:
        busy = busy_share(1.0)
        if busy <= BUSY_MAX or time.monotonic() >= deadline:
            return busy


class Watch:
    """Says afterwards which share of the machine went to work that is not ours."""

    def __init__(self):
        self.start = (*cpu_ticks(), own_cpu_seconds())

    def foreign_share(self):
        busy, total = (now - then for now, then in zip(cpu_ticks(), self.start))
        own = (own_cpu_seconds() - self.start[2]) * os.sysconf("SC_CLK_TCK")
        return max(0.0, busy - own) / max(total, 1)


def own_cpu_seconds():
    """CPU time of this process and of all children that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF),
                resource.getrusage(resource.RUSAGE_CHILDREN)))
