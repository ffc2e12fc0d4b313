"""Headers: a purpose in the first line, a guard, a comment at every prototype."""
import re

from tree import Finding


def check(tree):
    for file in tree.c_files("src", "include"):
        if file.suffix == ".h":
            yield from check_opening(file)
            yield from check_guard(file)
            yield from check_prototypes(file)


def check_opening(file):
    if not file.text.startswith(f"/* {file.name} - "):
        yield Finding(file.path, 1, f"a header opens with its purpose: /* {file.name} - ... */")


def guard_of(file):
    """src/base/err.h is guarded by AT_BASE_ERR_H, include/anytime.h by ANYTIME_H."""
    words = re.sub(r"[^A-Za-z0-9]", "_", file.path.split("/", 1)[1]).upper()
    return "AT_" + words if file.below("src") else words


def check_guard(file):
    guard = guard_of(file)
    directives = re.findall(r"^[ ]*#.*", file.code, re.MULTILINE)
    opening = [f"#ifndef {guard}", f"#define {guard}"]
    closed = file.code.rstrip().endswith("#endif")
    if [line.strip() for line in directives[:2]] != opening or not closed:
        yield Finding(file.path, 1, f"the include guard must be {guard} and enclose the header")


def check_prototypes(file):
    """A comment is on the line above, beside it, or at a prototype directly above."""
    ends = {comment.last for comment in file.comments}
    starts = {comment.first for comment in file.comments}
    explained = set()  # last lines of prototypes that have a comment
    for first, last, name in prototypes_of(file):
        beside = any(line in starts for line in range(first, last + 1))
        if beside or first - 1 in ends or first - 1 in explained:
            explained.add(last)
        else:
            yield Finding(file.path, first, f"{name} has no comment; state what it does")


def prototypes_of(file):
    """First line, last line and name of every function declared at depth 0."""
    text = re.sub(r'extern\s+" "\s*\{', lambda m: re.sub(r"\S", " ", m.group()), file.pure)
    depth = 0
    start = 0
    for match in re.finditer(r"[{};]", text):
        head = text[start:match.start()]
        opens = match.group() == "{"
        if depth == 0 and match.group() in "{;":
            name = name_of(head)
            if name:
                first = file.line_of(start + len(head) - len(head.lstrip()))
                yield first, file.line_of(match.start()), name
        depth = max(depth + (opens - (match.group() == "}")), 0)
        if depth == 0 or opens:
            start = match.end()


def name_of(head):
    """The name of a declared function, or None for other declarations."""
    if "(" not in head or re.match(r"\s*(typedef|_Static_assert|struct\s+\w+\s*$)", head):
        return None
    if re.search(r"\(\s*\*|=", head.split("__attribute__")[0].split(")")[0]):
        return None  # a function pointer or an initializer
    found = re.search(r"(\w+)\s*\(", head)
    return found.group(1) if found else None
