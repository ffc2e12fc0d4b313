"""Every name that a user can type (verb, option, strategy, rule, model, function) is documented.

Names are the rows {"name", ... or .name = "name", of the files below; documented means that
README.md or a page of docs/ has the name in backticks or in a code block. Names of the interfaces
in C and Python must be on the page of those.
"""
import fnmatch
import re

from tree import Finding

# Files with tables of names that users can type.
TABLES = ("src/step/rules/*.c", "src/step/strategy.c", "src/pace/pace.c",
          "src/learn/net/families.c", "src/learn/optim/*.c",
          "src/cli/options/options.c", "src/cli/verbs/verbs.c")

# Public names, and the page that must have all of them.
HEADER = "include/anytime.h"
PACKAGES = ("python/anytime/__init__.py", "python/anytime/torch.py")
API_PAGE = "docs/reference/api.md"

PUBLIC = re.compile(r"\b(at_[a-z_]+|AT_[A-Z_]+)\b")
ALL = re.compile(r"^__all__ = \[(.*?)\]", re.MULTILINE | re.DOTALL)
ROW = re.compile(r'^[ ]*(?:[A-Z]+\(|\{[ ]*|\.name = )"([a-z][a-z0-9-]*)",', re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def check(tree):
    yield from check_tables(tree)
    yield from check_interfaces(tree)


def public_names(file):
    """(position, name) of what programs can use."""
    if file.path == HEADER:
        yield from ((match.start(), match.group(1)) for match in PUBLIC.finditer(file.pure))
    elif file.path in PACKAGES:
        found = ALL.search(file.text)
        for match in re.finditer(r'"(\w+)"', found.group(1) if found else ""):
            yield found.start(1) + match.start(1), match.group(1)


def check_interfaces(tree):
    pages = [file for file in tree.files if file.path == API_PAGE]
    words = {word for page in pages for span in CODE.findall(page.text)
             for word in re.findall(r"\w+", span)}
    reported = set()
    for file in tree.files if pages else ():
        for position, name in public_names(file):
            if name not in words and name not in reported:
                reported.add(name)
                yield file.finding(position, f"`{name}` is not in {API_PAGE}")


def check_tables(tree):
    tables = [file for file in tree.c_files("src")
              if any(fnmatch.fnmatch(file.path, table) for table in TABLES)]
    if not tables:
        return
    pages = [file for file in tree.files if file.path == "README.md" or
             (file.below("docs") and file.suffix == ".md")]
    if not any(page.path == "README.md" for page in pages):
        yield Finding("README.md", 1, "README.md is missing")
        return
    code = "\n".join(span for page in pages for span in CODE.findall(page.text))
    for file in tables:
        for match in ROW.finditer(file.source):
            name = match.group(1)
            if not re.search(rf"(?<![\w-])(?:--)?{re.escape(name)}(?![\w-])", code):
                yield file.finding(match.start(1), f"`{name}` is in no code of README.md or docs/")
