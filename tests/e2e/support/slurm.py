"""A Slurm of its own for a test: munged, slurmctld and one slurmd on the loopback.

Everything is in one folder and belongs to the user who runs the test. The node pretends to have
eight cores, so that jobs do not wait for each other.
"""
import getpass
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid

import support
from support import mpi, ports, processes

PATH = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "mpirun")

# The node has the name of the machine, so that mpirun starts ranks itself and not by a daemon.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,sched_interval=1
OverTimeLimit=0
KillWait=20
NodeName={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=8
PartitionName=all Nodes={host} Default=YES
"""


def missing():
    """Programs that are not installed."""
    return [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]


class Cluster:
    def __init__(self):
        # Not in the build folder: the path of a Unix socket is at most 107 bytes long.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="anytime-slurm-"))
        self.folder.chmod(0o755)  # munge wants its socket to be reachable for all
        self.mark = uuid.uuid4().hex
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "anytime").symlink_to(pathlib.Path(support.ANYTIME).resolve())
        settings = self.folder / "slurm.conf"
        self.env = {**os.environ, **mpi.ENV, "SLURM_CONF": str(settings),
                    "PATH": f"{programs}{os.pathsep}{PATH}", processes.MARK: self.mark}
        controller_port, node_port = ports.free_ports(2)
        settings.write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname().partition(".")[0],
            user=getpass.getuser(), controller_port=controller_port, node_port=node_port))
        self.daemons = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {"key-file": key, "socket": self.folder / "munge.socket",
                 "pid-file": self.folder / "munged.pid", "seed-file": self.folder / "seed",
                 "log-file": self.folder / "munged.log"}
        self._daemon("munged", "--foreground", "--force",
                     *(f"--{name}={path}" for name, path in files.items()))
        support.wait_until(files["socket"].exists, lambda: f"munged listens\n{self.logs()}")
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        support.wait_until(self._is_idle, lambda: f"the node is idle\n{self.logs()}")

    def _daemon(self, name, *arguments):
        with open(self.folder / f"{name}.out", "wb") as out:
            self.daemons.append(subprocess.Popen(
                [shutil.which(name, path=PATH), *arguments], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, env=self.env))

    def _is_idle(self):
        for daemon in self.daemons:
            if daemon.poll() is not None:
                raise AssertionError(f"{daemon.args[0]} has ended\n{self.logs()}")
        return "State=IDLE" in self.ask("scontrol", "show", "nodes", check=False)

    def logs(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                       for path in sorted(self.folder.glob("*.out")))

    def ask(self, *command, check=True, cwd=None):
        """Standard output of one of Slurm's commands."""
        done = subprocess.run(list(map(str, command)), env=self.env, cwd=cwd, text=True,
                              capture_output=True, timeout=support.BOUND)
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.stderr}\n{self.logs()}")
        return done.stdout

    def close(self):
        """Ends jobs and daemons, whatever the test did."""
        if len(self.daemons) == 3:
            self.ask("scancel", "--signal=KILL", "--full", "--user", getpass.getuser(),
                     check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in processes.marked(self.mark):
            with support.contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Job:
    """A batch job; its files are in `folder`."""

    def __init__(self, cluster, folder, script, *arguments):
        self.cluster, self.folder = cluster, folder
        path = folder / "script.sh"
        path.write_text(script)
        self.id = cluster.ask("sbatch", "--parsable", path, *arguments,
                              cwd=folder).strip()
        self.run = folder / "runs" / self.id

    def state(self):
        """The state of the job and its other properties, by their names in Slurm."""
        text = self.cluster.ask("scontrol", "show", "--oneliner", "job", self.id)
        return dict(re.findall(r"(\w+)=(\S*)", text.splitlines()[0]))

    def output(self):
        return "".join(path.read_text(errors="replace")
                       for path in sorted(self.folder.glob("slurm-*.out")))

    def describe(self):
        state = {name: value for name, value in self.state().items()
                 if name in ("JobState", "Reason", "Restarts", "ExitCode")}
        return f"\n{state}\n{self.output()[-3000:]}"

    def cancel(self, *options):
        self.cluster.ask("scancel", *options, self.id)

    def wait_state(self, *wanted):
        support.wait_until(lambda: self.state()["JobState"] in wanted,
                           lambda: f"state {' or '.join(wanted)}{self.describe()}")
        return self.state()

    def wait_requeued(self):
        """Waits until the job is queued again and releases it, which Slurm would do after two
        minutes; returns its state at the end. A node refuses credentials of the second in which it
        ended the job, so the job starts two seconds later."""
        support.wait_until(lambda: self.state()["Restarts"] == "1",
                           lambda: f"the job is requeued{self.describe()}")
        self.wait_state("PENDING")
        self.cluster.ask("scontrol", "update", f"jobid={self.id}", "starttime=now+2")
        return self.wait_state("COMPLETED", "FAILED")

    def workers(self):
        """The rows of workers.json."""
        try:
            return support.json.loads((self.run / "workers.json").read_text())["workers"]
        except FileNotFoundError:
            return []

    def wait_working(self, steps=20, count=4):
        """Waits until that many workers work and some steps are done; returns their rows."""
        def work():
            rows = [row for row in self.workers() if row["state"] == "working"]
            return len(rows) == count and rows
        rows = support.wait_until(work, lambda: f"{count} workers work{self.describe()}")
        self.wait_steps(steps)
        return rows

    def wait_steps(self, count):
        path = self.run / "collect_stats.csv"
        support.wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") > count,
                           lambda: f"step {count}{self.describe()}")

    def wait_result(self):
        """The end of a cancelled job: its processes may outlive its entry for a moment."""
        support.wait_until((self.run / "result.json").exists,
                           lambda: f"result.json{self.describe()}")
        return self.ended()

    def ended(self):
        return support.Ended(["job", self.id], self.state()["ExitCode"], "", self.output(),
                             self.run)
