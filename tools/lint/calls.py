"""Functions that are banned, where, and why.

A ban holds in `folders` except in the files of `homes`. EXCEPTIONS excuses one function in one
file and says why; a ban that needs many of them is the wrong ban.
"""
import collections
import fnmatch
import re

Ban = collections.namedtuple("Ban", "names folders homes why")

EVERYWHERE = ("src", "include", "tests", "bench", "examples")

BANS = (
    Ban("clock_gettime clock_nanosleep time gettimeofday nanosleep usleep sleep clock "
        "timespec_get thrd_sleep",
        ("src", "include", "tests", "bench"), ("src/base/clock.c",),
        "time is an argument; only base/clock.c reads a clock or sleeps"),
    Ban("rand srand rand_r random srandom drand48 lrand48 mrand48 srand48 arc4random getrandom",
        EVERYWHERE, (),
        "randomness comes from a named stream (base/rng.h), so that runs repeat"),
    Ban("exit _exit _Exit quick_exit abort",
        ("src",), ("src/cli/main.c",),
        "a library returns its errors; only cli/main.c ends the program"),
    Ban("sprintf vsprintf strcpy strcat stpcpy gets",
        EVERYWHERE, (),
        "it writes without a bound; use snprintf or base/text.h"),
    Ban("atoi atol atoll atof",
        EVERYWHERE, (),
        "it cannot tell 0 from nonsense; use base/text.h"),
    Ban("strtok", EVERYWHERE, (), "it keeps hidden state"),
    Ban("system popen", EVERYWHERE, (), "a shell reads the words; use posix_spawn or execvp"),
    Ban("alloca __builtin_alloca", EVERYWHERE, (), "a stack has no error to return"),
    Ban("printf vprintf puts putchar perror",
        ("src",), ("src/cli/*", "src/record/sinks/console.c"),
        "libraries do not print; report a record or return an at_fail"),
    Ban("malloc calloc realloc reallocarray free aligned_alloc posix_memalign strdup strndup "
        "asprintf vasprintf mmap",
        ("src/step",), (),
        "step takes its memory from an arena at the start and runs without allocation"),
)

# Words rather than calls: whoever names the streams means to print.
STREAMS = Ban("stdout stderr", ("src",), ("src/cli/*", "src/record/sinks/console.c"),
              "libraries do not print; report a record or return an at_fail")

EXCEPTIONS = {
    ("src/data/fetch/subprocess.c", "_exit"):
        "a forked child that could not become another program has nobody to return to",
    ("src/world/process/child.c", "_exit"):
        "a forked worker must end without running the exit handlers of its parent",
}


def check(tree):
    for ban in BANS:
        yield from find(tree, ban, r"(?<![\w.])(?<!->)(%s)\s*\(", "%s(): ")
    yield from find(tree, STREAMS, r"\b(%s)\b", "%s: ")
    for file in tree.c_files(*EVERYWHERE):
        for match in re.finditer(r"\bgoto\s+(?!out\b)(\w+)", file.code):
            yield file.finding(match.start(), f"goto {match.group(1)}: the one label is `out`")


def find(tree, ban, pattern, prefix):
    names = re.compile(pattern % "|".join(ban.names.split()))
    for file in tree.c_files(*ban.folders):
        if any(fnmatch.fnmatch(file.path, home) for home in ban.homes):
            continue
        for match in names.finditer(file.code):
            name = match.group(1)
            if (file.path, name) not in EXCEPTIONS:
                yield file.finding(match.start(), prefix % name + ban.why)
