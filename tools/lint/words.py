"""Text that must not be committed: open ends without an issue, paths of one machine."""
import re

# Split so that this file does not match itself.
OPEN_END = re.compile(r"\b(FIX" r"ME|XX" r"X|TO" r"DO)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:work|root|home/\w+)/[\w.]|/tmp/(?:brief|build)\b")
REGISTRY = re.compile(r"\b(?:https?://)?(?:registry|artifactory|nexus|proxy|mirror)s?"
                      r"\.[a-z0-9-]+(?:\.[a-z]+)+\b|https?://[\w.-]+\.(?:internal|corp|lan)\b")

# The tests of this check contain what it looks for.
EXEMPT = ("tests/lint/",)

RULES = (
    (OPEN_END, "an open end needs an issue number, as in {0}(#12)"),
    (MACHINE_PATH, "{0} is a path of one machine; use one that works everywhere"),
    (REGISTRY, "{0} is the address of a registry; name the package instead"),
)


def check(tree):
    for file in tree.files:
        if file.path.startswith(EXEMPT):
            continue
        for pattern, text in RULES:
            for match in pattern.finditer(file.text):
                yield file.finding(match.start(), text.format(match.group().strip()))
