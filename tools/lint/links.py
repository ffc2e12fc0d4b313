"""Dead links in Markdown: relative files, anchors, and paths in backticks; pages without a link."""
import posixpath
import re

from tree import Finding, blank

FENCE = re.compile(r"^([ ]*)(```|~~~).*?^[ ]*\2[ ]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$",
                  re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ ]+(.*?)[ ]*#*$", re.MULTILINE)
NAMED_ANCHOR = re.compile(r"<\w+[^>]*\b(?:id|name)=[\"']([^\"']+)")
MAP = "docs/README.md"
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:|^//")

# Only paths that start with one of our folders are checked.
OUR_PATH = re.compile(r"^(?:src|include|tests|tools|cmake|docs|bench|examples|\.ci)/[\w./-]*$")
PLACEHOLDER = re.compile(r"[/_][A-Z]{2,}[/_.](?!md$)")  # src/LAYER/NAME.c, tests/e2e/test_NAME.py


def check(tree):
    there = {file.path for file in tree.files}
    for path in list(there):
        while path:
            path = posixpath.dirname(path)
            there.add(path)
    for file in tree.files:
        if file.suffix == ".md":
            prose = FENCE.sub(lambda m: blank(m.group()), file.text)
            yield from check_links(tree, there, file, prose)
            yield from check_names(tree, there, file, prose)
    yield from check_map(tree)


def exists(tree, there, path):
    return path in there or (tree.root / path).exists()


def local_links(file, prose):
    """The position, file and anchor of each link that stays within the project."""
    for match in LINK.finditer(SPAN.sub(lambda m: blank(m.group()), prose)):
        target = match.group(1) or match.group(2)
        if OUTSIDE.match(target):
            continue
        path, _, anchor = target.partition("#")
        full = file.path
        if path:
            full = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), path))
        yield match.start(), full, anchor


def check_links(tree, there, file, prose):
    for start, full, anchor in local_links(file, prose):
        if not exists(tree, there, full):
            yield file.finding(start, f"dead link: {full} does not exist")
        elif anchor and full.endswith(".md") and anchor not in anchors_of(tree, full):
            yield file.finding(start, f"dead link: {full} has no heading #{anchor}")


def check_map(tree):
    """Every page of docs/ can be reached from docs/README.md, directly or through other pages."""
    pages = {file.path: file for file in tree.files if file.below("docs") and file.suffix == ".md"}
    if MAP not in pages:
        return
    reached, ahead = {MAP}, [MAP]
    while ahead:
        page = pages[ahead.pop()]
        prose = FENCE.sub(lambda m: blank(m.group()), page.text)
        new = {full for _, full, _ in local_links(page, prose)} & set(pages) - reached
        reached |= new
        ahead += new
    for path in sorted(set(pages) - reached):
        yield Finding(MAP, 1, f"no link leads from here to {path}")


def check_names(tree, there, file, prose):
    for match in SPAN.finditer(prose):
        name = match.group()[1:-1].split()[0:1]
        path = re.sub(r":\d+$", "", name[0]) if name else ""
        if not OUR_PATH.match(path) or PLACEHOLDER.search(path):
            continue
        if not exists(tree, there, path.rstrip("/.")):
            yield file.finding(match.start(), f"`{path}` does not exist")


def anchors_of(tree, path):
    """The anchors that GitHub generates for the headings of a page."""
    text = next((file.text for file in tree.files if file.path == path), "")
    text = FENCE.sub(lambda m: blank(m.group()), text)
    anchors = set(NAMED_ANCHOR.findall(text))
    for match in HEADING.finditer(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while slug + (f"-{number}" if number else "") in anchors:
            number += 1
        anchors.add(slug + (f"-{number}" if number else ""))
    return anchors
