"""Reads the files to check, and the views of C source that the checks use."""
import bisect
import collections
import pathlib
import re
import subprocess

Finding = collections.namedtuple("Finding", "path line text")

Comment = collections.namedtuple("Comment", "first last")  # line numbers

IGNORED = re.compile(r"^(\.git|build|build-[^/]*|runs)(/|$)|(^|/)__pycache__(/|$)")

# A comment, a string or a character constant, whichever comes first; inside one of them the other
# two have no meaning.
LEXEME = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
                    re.DOTALL | re.VERBOSE)

# A preprocessor line with its continuation lines.
DIRECTIVE = re.compile(r"^[ ]*\#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)


def blank(text):
    """Replaces everything but line ends by spaces, which keeps positions."""
    return re.sub(r"[^\n]", " ", text)


class File:
    """One text file. `path` is relative to the root, with slashes."""

    def __init__(self, path, text, executable):
        self.path = path
        self.text = text
        self.executable = executable
        self.name = path.rsplit("/", 1)[-1]
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
        self.is_c = self.suffix in (".c", ".h")
        if self.is_c:
            self._read_c()

    def _read_c(self):
        """source: no comments. code: also empty strings. pure: code without directives."""
        self.comments = []

        def forget(match, strings_too):
            found = match.group(0)
            if found.startswith("/"):
                return blank(found)
            return found[0] + blank(found[1:-1]) + found[-1] if strings_too else found

        for match in LEXEME.finditer(self.text):
            if match.group(0).startswith("/"):
                self.comments.append(Comment(self.line_of(match.start()),
                                             self.line_of(match.end() - 1)))
        self.source = LEXEME.sub(lambda m: forget(m, False), self.text)
        self.code = LEXEME.sub(lambda m: forget(m, True), self.text)
        self.pure = DIRECTIVE.sub(lambda m: blank(m.group(0)), self.code)

    def line_of(self, position):
        """The line number, from 1, of this position in the text."""
        if not hasattr(self, "_ends"):
            self._ends = [m.start() for m in re.finditer("\n", self.text)]
        return bisect.bisect_left(self._ends, position) + 1

    def finding(self, position, text):
        return Finding(self.path, self.line_of(position), text)

    def below(self, *folders):
        return self.path.startswith(tuple(folder + "/" for folder in folders))


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = []
        for path in list_paths(self.root):
            full = self.root / path
            try:
                text = full.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue  # images and other binary data
            if "\0" not in text:
                self.files.append(File(path, text, bool(full.stat().st_mode & 0o100)))

    def c_files(self, *folders):
        return [file for file in self.files if file.is_c and file.below(*folders)]


def list_paths(root):
    """Files that git tracks or would track; without git, all files except build output."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        if (root / ".git").exists():
            out = subprocess.run(command, capture_output=True, check=True).stdout.decode()
            return sorted(p for p in set(out.split("\0")) if p and (root / p).is_file())
    except (OSError, subprocess.CalledProcessError):
        pass  # no git, or a clone that git refuses to read
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in paths if not IGNORED.search(path))
