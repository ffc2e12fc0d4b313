"""A minimal terminal emulator: rows wrap, and wrap again after a resize."""
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import support
from support import processes

SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|(\r|\n)|([^\x1b\r\n]+)")


class Screen:
    """The contents of a terminal, including rows that have scrolled away."""

    def __init__(self, columns):
        self.columns, self.row, self.column = columns, 0, 0
        self.rows = [""]
        self.colored = False

    def show(self, text):
        for number, letter, move, words in SEQUENCE.findall(text):
            if words:
                self.write(words)
            elif move == "\n":
                self.next_row()
            elif move == "\r":
                self.column = 0
            else:
                self.obey(letter, number)

    def write(self, words):
        for letter in words:
            if self.column == self.columns:
                self.next_row()
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[:self.column] + letter + row[self.column + 1:]
            self.column += 1

    def next_row(self):
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append("")

    def obey(self, letter, number):
        if letter == "A":
            self.row = max(0, self.row - int(number))
        elif letter in "KJ":
            self.rows[self.row] = self.rows[self.row][:self.column]
            if letter == "J":
                del self.rows[self.row + 1:]
        elif letter == "m":
            self.colored = True
        else:
            raise AssertionError(f"a sequence that ends in {letter}")

    def resize(self, columns):
        """Wraps rows that have become too long, as most terminals do."""
        wrapped, row = [], 0
        for index, text in enumerate(self.rows):
            if index == self.row:
                row = len(wrapped)
            pieces = [text[i:i + columns] for i in range(0, len(text), columns)] or [""]
            wrapped += pieces
        self.rows, self.row, self.columns = wrapped, row, columns

    def text(self):
        return "\n".join(self.rows)

    def count(self, words):
        return self.text().count(words)


class Terminal:
    """A run of the program whose standard error is a terminal; with `both`, standard output too."""

    def __init__(self, test, *arguments, columns=80, rows=24, both=False, **environment):
        try:
            self.ours, theirs = pty.openpty()
        except OSError as error:
            test.skipTest(f"no pseudoterminal available: {error}")
        self.screen = Screen(columns)
        self.bytes = self.all = b""
        self.set_size(columns, rows)
        left_out = ("NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE")
        env = {key: value for key, value in os.environ.items() if key not in left_out}
        env |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        self.process = subprocess.Popen(
            [support.ANYTIME, *map(str, arguments)], cwd=test.folder, stdin=subprocess.DEVNULL,
            stdout=theirs if both else subprocess.PIPE, stderr=theirs, env=env, text=True)
        os.close(theirs)
        os.set_blocking(self.ours, False)
        test.addCleanup(self.close)

    def set_size(self, columns, rows):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        """Shows new output; false at its end."""
        with contextlib.suppress(BlockingIOError):
            try:
                while piece := os.read(self.ours, 65536):
                    self.bytes += piece
                    self.all += piece
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise
                self.flush()
                return False
        self.flush()
        return True

    def said(self):
        """Everything that was written to the terminal so far."""
        return self.all.decode()

    def flush(self):
        """Shows complete lines and frames; an escape sequence may still be incomplete."""
        whole = max(self.bytes.rfind(b"\n"), self.bytes.rfind(b"\x1b[J") + 2)
        self.screen.show(self.bytes[:whole + 1].decode().replace("\r\n", "\n"))
        self.bytes = self.bytes[whole + 1:]

    def wait_shown(self, happens, what):
        """Waits until `happens` is true for the screen."""
        def look():
            self.read()
            return happens(self.screen)
        support.wait_until(look, lambda: f"{what}:\n{self.screen.text()}")

    def resize(self, columns, rows):
        """Resizes while the program is stopped, so that it cannot draw for the old size."""
        self.process.send_signal(signal.SIGSTOP)
        support.wait_until(lambda: processes.state(self.process.pid) == "T", "the program stops")
        self.read()
        self.screen.resize(columns)
        self.set_size(columns, rows)
        self.process.send_signal(signal.SIGCONT)

    def wait(self):
        """Waits for the end; returns exit code and standard output."""
        out = []
        def look():
            with contextlib.suppress(subprocess.TimeoutExpired):
                out.append(self.process.communicate(timeout=0.01)[0])
            return not self.read() and out
        support.wait_until(look, "the end of the run")
        return self.process.returncode, out[0]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        os.close(self.ours)
