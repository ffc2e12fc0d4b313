"""Banned functions.

A ban applies in `folders` except in the files of `homes`. EXCEPTIONS allows one function in one
file, with the reason; a ban that needs many exceptions is the wrong ban.
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
        "time is an argument; only base/clock.c reads the clock or sleeps"),
    Ban("rand srand rand_r random srandom drand48 lrand48 mrand48 srand48 arc4random getrandom",
        EVERYWHERE, (),
        "use a named random stream (base/rng.h), so that runs are reproducible"),
    Ban("exit _exit _Exit quick_exit abort",
        ("src",), ("src/cli/main.c",),
        "a library returns errors; only cli/main.c ends the program"),
    Ban("sprintf vsprintf strcpy strcat stpcpy gets",
        EVERYWHERE, (),
        "writes without a bound; use snprintf or base/text.h"),
    Ban("atoi atol atoll atof",
        EVERYWHERE, (),
        "cannot distinguish 0 from an invalid number; use base/text.h"),
    Ban("strtod strtof strtold", ("src",), ("src/base/text.c",),
        "depends on the locale; use at_text_real or at_text_strtod (base/text.h)"),
    Ban("strtok", EVERYWHERE, (), "keeps hidden state"),
    Ban("system popen", EVERYWHERE, (), "runs a shell; use posix_spawn or execvp"),
    Ban("alloca __builtin_alloca", EVERYWHERE, (), "a stack overflow cannot be handled"),
    Ban("printf vprintf puts putchar perror",
        ("src",), ("src/cli/*", "src/record/sinks/console.c"),
        "libraries do not print; report a record or return an at_fail"),
    Ban("malloc calloc realloc reallocarray free aligned_alloc posix_memalign strdup strndup "
        "asprintf vasprintf mmap",
        ("src/step",), (),
        "step takes its memory from an arena at the start and does not allocate"),
)

# Not calls: any use of these streams prints.
STREAMS = Ban("stdout stderr", ("src",), ("src/cli/*", "src/record/sinks/console.c"),
              "libraries do not print; report a record or return an at_fail")

EXCEPTIONS = {
    ("src/data/fetch/subprocess.c", "_exit"):
        "a forked child whose exec failed has no caller to return to",
    ("src/world/process/child.c", "_exit"):
        "a forked worker must exit without running the exit handlers of its parent",
    ("src/world/process/signals.c", "_exit"):
        "a signal cannot end process 1 of a container in another way",
    ("src/world/mpi/mpi_library.c", "_exit"):
        "the process exits already, and the exit handlers that are left could wait for a lost rank",
}


def check(tree):
    for ban in BANS:
        yield from find(tree, ban, r"(?<![\w.])(?<!->)(%s)\s*\(", "%s(): ")
    yield from find(tree, STREAMS, r"\b(%s)\b", "%s: ")
    for file in tree.c_files(*EVERYWHERE):
        for match in re.finditer(r"\bgoto\s+(?!out\b)(\w+)", file.code):
            yield file.finding(match.start(), f"goto {match.group(1)}: only `out` is allowed")


def find(tree, ban, pattern, prefix):
    names = re.compile(pattern % "|".join(ban.names.split()))
    for file in tree.c_files(*ban.folders):
        if any(fnmatch.fnmatch(file.path, home) for home in ban.homes):
            continue
        for match in names.finditer(file.code):
            name = match.group(1)
            if (file.path, name) not in EXCEPTIONS:
                yield file.finding(match.start(), prefix % name + ban.why)
