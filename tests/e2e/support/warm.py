"""A Python that has imported torch already, for runs with many short workers.

Importing torch takes longer than a whole run of the tests. `Warm` forks a server from a process
that has imported it. `Warm.command(SCRIPT)` is a command for `anytime run`: a small client that
asks the server to fork a process for the script. This process is in the group of the client, so
that the hub recognizes it as its own, has the client's environment and output, and ends with it.
"""
import contextlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback

FIELDS = ("argv", "environ", "cwd", "group")


def client(path, argv):
    """Runs in the hub's child: hands everything over and ends as the script does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        request = json.dumps(dict(zip(FIELDS, (argv, dict(os.environ), os.getcwd(),
                                               os.getpgrp()))))
        socket.send_fds(server, [request.encode()], [1, 2])
        answer = server.recv(16)
    status = int(answer or b"256")
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.WEXITSTATUS(status))


def _exit_code(problem):
    if problem.code is None or isinstance(problem.code, int):
        return problem.code or 0
    print(problem.code, file=sys.stderr)
    return 1


def _prepare(request, fds):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, request["group"])
    for number, fd in enumerate(fds, 1):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    if "torch" in sys.modules:  # PyTorch 2 renews its pool of threads after a fork, but not if
        sys.modules["torch"].set_num_threads(1)  # two threads need it at the same time
    sys.argv = request["argv"]
    sys.path[:0] = [os.path.dirname(sys.argv[0]), *os.environ.get("PYTHONPATH", "").split(":")]


def _run(request, fds):
    """The script, in a process of its own, which never returns."""
    code = 0
    try:
        _prepare(request, fds)
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as problem:
        code = _exit_code(problem)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _keep(connection):
    """Starts the script and reports how it ended; one process per connection."""
    raw, fds, _, _ = socket.recv_fds(connection, 1 << 17, 2)
    worker = os.fork()
    if worker == 0:
        connection.close()
        _run(json.loads(raw), fds)
    for fd in fds:
        os.close(fd)
    status = _wait(worker, connection)
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())


def _wait(worker, connection):
    """How the worker ended. It does not outlive its client."""
    while True:
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            return status
        if select.select([connection], [], [], 0.02)[0]:  # only its end can come
            os.kill(worker, signal.SIGKILL)
            return os.waitpid(worker, 0)[1]


def _serve(listener):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            try:
                _keep(connection)
            finally:
                os._exit(0)
        connection.close()


class Warm:
    """The server; close() ends it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "warm")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.path)
        listener.listen(64)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                _serve(listener)
            finally:
                os._exit(1)
        listener.close()

    def command(self, script, *arguments):
        """Words that run a script as a worker."""
        return (sys.executable, "-S", __file__, self.path, str(script), *map(str, arguments))

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.unlink(self.path)


if __name__ == "__main__":
    client(sys.argv[1], sys.argv[2:])
