"""Facts about this machine, and how busy it is."""
import os
import platform
import resource
import subprocess
import time

BUSY_MAX = 0.05  # share of the machine that other work may use without a warning

# What limits each library to an instruction set; wheels of PyTorch have MKL and their own oneDNN.
ISA_LIMITS = {
    "avx2": {"ANYTIME_ISA": "avx2", "OPENBLAS_CORETYPE": "Haswell", "ONEDNN_MAX_CPU_ISA": "AVX2",
             "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "avx512": {"ANYTIME_ISA": "avx512"},
}


def limit_isa(name):
    """Limits both sides of every case to an instruction set."""
    os.environ.update(ISA_LIMITS[name])


def isa():
    """The best instruction set that both sides may use."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read().split()
    best = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "older"
    return os.environ.get("ANYTIME_ISA") or best


def facts(root):
    """Facts stored with every figure: processor, instruction set, cores, kernel, commit."""
    return {"cpu": cpu_model(), "isa": isa(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "python": platform.python_version(),
            "commit": commit(root)}


def cpu_model():
    """The name, and the numbers that tell processors apart whose name a hypervisor hides."""
    found = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    if "model name" not in found:
        return platform.machine()
    return f"{found['model name']} ({found.get('cpu family')}/{found.get('model')})"


def commit(root):
    """The checked-out commit, with a + if src/ has changes; None without git."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True,
                              text=True, check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def load_average():
    """Load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def cpu_ticks():
    """(busy, all) ticks of all cores since boot; time stolen by a hypervisor counts as busy.

    The last two fields (guest time) are already included in the first two."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def busy_share(seconds):
    """Share of the machine in use while this process sleeps."""
    busy, total = cpu_ticks()
    time.sleep(seconds)
    busy_now, total_now = cpu_ticks()
    return (busy_now - busy) / max(total_now - total, 1)


def wait_until_quiet(limit_seconds):
    """Waits until the machine is quiet, at most for the limit; returns how busy it was at last."""
    deadline = time.monotonic() + limit_seconds
    while True:
        busy = busy_share(1.0)
        if busy <= BUSY_MAX or time.monotonic() >= deadline:
            return busy


class Watch:
    """Measures the share of the machine used by other work since it was created."""

    def __init__(self):
        self.start = (*cpu_ticks(), own_cpu_seconds())

    def foreign_share(self):
        busy, total = (now - then for now, then in zip(cpu_ticks(), self.start))
        own = (own_cpu_seconds() - self.start[2]) * os.sysconf("SC_CLK_TCK")
        return max(0.0, busy - own) / max(total, 1)


def own_cpu_seconds():
    """CPU time of this process and of all children it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF),
                resource.getrusage(resource.RUSAGE_CHILDREN)))
