"""The shell commands of the documentation, and what a test does with each."""
import dataclasses
import pathlib
import re

import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    """The pages whose commands are run, by the names of their tests."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
    return {("guide_" if path.parent.name == "guide" else "") + path.stem: path for path in paths}


@dataclasses.dataclass
class Command:
    """A command with its line in the page."""
    page: str
    line: int
    text: str

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def commands(path):
    """The commands of a page, each in one line and without its comment."""
    text = path.read_text()
    page = str(path.relative_to(ROOT))
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1)) + 1
        if block[1].startswith("#!"):  # a script to be saved; it is a command as a whole
            yield Command(page, line, block[1])
            continue
        for piece in re.finditer(r"(?:[^\n\\]|\\\n|\\.)*\n", block[1]):
            words = re.sub(r"\s*\\\n\s*", " ", piece[0].strip())
            words = re.sub(r"(^|\s+)#.*$", "", words)
            if words:
                yield Command(page, line + block[1].count("\n", 0, piece.start()), words)


def plan(command):
    """The lines of shell that a test runs for a command, or None, and the rules that apply."""
    for rule in rules.LEFT_OUT:
        if re.search(rule.pattern, command.text):
            return None, [rule]
    words, applied = command.text, []
    for rule in rules.CHANGED:
        changed = re.sub(rule.pattern, rule.instead, words)
        if changed != words:
            words, applied = changed, [*applied, rule]
    return words, applied
