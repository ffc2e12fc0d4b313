"""A real terminal: tmux, with keys that a user would press."""
import subprocess
import uuid

import support


class Terminal:
    def __init__(self, test, command, cwd, env):
        self.name, self.env = f"anytime-{uuid.uuid4().hex[:8]}", {**env, "TERM": "xterm-256color"}
        test.addCleanup(self.ask, "kill-server", check=False)
        self.ask("-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", "-c", str(cwd),
                 command)

    def ask(self, *words, check=True):
        """Standard output of a command of tmux, on a server of its own."""
        return subprocess.run(["tmux", "-L", self.name, *words], env=self.env, check=check,
                              text=True, capture_output=True, timeout=support.BOUND).stdout

    def type(self, *keys):
        """Text, or names of keys such as Enter and Tab."""
        self.ask("send-keys", *keys)

    def text(self):
        return self.ask("capture-pane", "-p")

    def wait_shown(self, words):
        support.wait_until(lambda: words in self.text(), lambda: f"'{words}':\n{self.text()}")
