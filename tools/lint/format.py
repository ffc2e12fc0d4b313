"""Every C file is formatted with clang-format (`make format`)."""
import re
import shutil
import subprocess

from tree import Finding

VIOLATION = re.compile(r"^(.*?):(\d+):\d+: error: code should be clang-formatted", re.MULTILINE)


def check(tree):
    paths = [file.path for file in tree.c_files("src", "include", "tests", "bench", "examples")]
    if not paths:
        return
    if not shutil.which("clang-format"):
        yield Finding(paths[0], 1, "clang-format is missing, nothing was checked; run `make deps`")
        return
    done = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths],
                          cwd=tree.root, capture_output=True, text=True, check=False)
    seen = set()
    for path, line in VIOLATION.findall(done.stderr):
        if path not in seen:
            seen.add(path)
            yield Finding(path, int(line), "not formatted; run `make format`")
    if done.returncode and not seen:
        yield Finding(paths[0], 1, f"clang-format failed: {done.stderr.strip()[:200]}")
