"""Includes: allowed layers, own header first, restricted system headers."""
import fnmatch
import re

# A layer may include itself and the layers listed here. No layer includes cli.
MAY_INCLUDE = {
    "base": (),
    "step": ("base",),
    "pace": ("base",),
    "learn": ("base",),
    "data": ("base",),
    "message": ("base", "step"),
    "net": ("base",),
    "record": ("base", "step"),
    "task": ("base", "step", "learn"),
    "model_io": ("base", "step", "learn", "record", "task"),
    "world": ("base", "step", "pace", "learn", "data", "message", "net", "record", "task",
              "model_io"),
    "report": ("base", "record"),
    "serve": ("base", "record", "report"),
    "advise": ("base", "step", "pace", "data", "record", "task", "world", "report"),
    "cli": ("base", "step", "pace", "learn", "data", "message", "net", "record", "task",
            "model_io", "world", "report", "serve", "advise"),
}

# Libraries behind one interface: header pattern, and the only files that may include it.
HOMES = (
    ("mpi.h", "src/world/mpi/*.c"),
    ("microhttpd.h", "src/serve/*.c"),
    ("*dnnl*.h", "src/learn/engines/*.c"),
    ("cblas.h", "src/learn/engines/*.c"),
    ("openssl/ssl.h", "src/net/*.c"),
)

# One stands in for its library, one measures against it, one gives it turns with its client, one is
# a peer that is not ours.
GUESTS = (("mpi.h", "tests/faults/inject.c"), ("openssl/ssl.h", "bench/net_link.c"),
          ("microhttpd.h", "tests/unit/serve/clients.c"),
          ("openssl/ssl.h", "tests/unit/net/link.c"))

# step/ is pure: its results depend only on its arguments.
IMPURE = ("stdio.h", "unistd.h", "time.h", "sys/*", "pthread.h", "threads.h", "errno.h", "fcntl.h",
          "signal.h", "poll.h")

INCLUDE = re.compile(r'^[ ]*#[ ]*include[ ]*(?:"([^"\n]*)"|<([^>\n]*)>)', re.MULTILINE)


def check(tree):
    present = {file.path.split("/")[1] for file in tree.c_files("src")}
    for layer in sorted(present - set(MAY_INCLUDE)):
        path = next(file.path for file in tree.c_files("src") if file.below("src/" + layer))
        yield tree_finding(tree, path, f"src/{layer}/ is not in the table of layers of tools/lint")
    for file in tree.c_files("src", "include", "tests", "bench", "examples"):
        layer = layer_of(file)
        for match in INCLUDE.finditer(file.source):
            ours, system = match.groups()
            text = check_ours(file, layer, ours) if ours else check_system(file, layer, system)
            if text:
                yield file.finding(match.start(), text)
        yield from check_own_first(tree, file)


def tree_finding(tree, path, text):
    return next(file for file in tree.files if file.path == path).finding(0, text)


def layer_of(file):
    """The layer of a file; a unit test belongs to the layer of its folder."""
    if file.below("src"):
        return file.path.split("/")[1]
    if file.below("tests/unit"):
        return file.path.split("/")[2]
    return None


def check_ours(file, layer, header):
    target = header.split("/")[0]
    if file.below("include"):
        return f'the public header stands alone and must not include "{header}"'
    if header == "anytime.h" or target not in MAY_INCLUDE:
        generated = header.endswith(".pb-c.h")  # at build time, from a .proto of the same layer
        bare = file.below("src") and header != "anytime.h" and not generated
        return f'"{header}": paths start at src/, as in "base/err.h"' if bare else None
    if file.below("examples"):
        return f'examples use only "anytime.h", not "{header}"'
    if layer not in MAY_INCLUDE or target == layer or target in MAY_INCLUDE[layer]:
        return None
    if target == "cli":
        return f'no layer may include cli, but this includes "{header}"'
    allowed = " ".join(MAY_INCLUDE[layer]) or "nothing else"
    return f'{layer} may include {allowed}, not "{header}"'


def check_system(file, layer, header):
    for pattern, home in HOMES:
        if (header, file.path) in GUESTS:
            continue
        if fnmatch.fnmatch(header, pattern) and not fnmatch.fnmatch(file.path, home):
            return f"<{header}> may only be included in {home}"
    impure = layer == "step" and file.below("src")
    if impure and any(fnmatch.fnmatch(header, pattern) for pattern in IMPURE):
        return f"step is pure (no I/O, clock or threads) and must not include <{header}>"
    return None


def check_own_first(tree, file):
    """The own header comes first, which checks that it is self-contained."""
    own = re.sub(r"\.c$", ".h", file.path)
    first = INCLUDE.search(file.source)
    if own == file.path or not first or not file.below("src"):
        return
    if any(other.path == own for other in tree.files) and first.group(1) != own[len("src/"):]:
        yield file.finding(first.start(), f'the own header "{own[len("src/"):]}" must come first')
