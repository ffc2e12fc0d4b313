#!/usr/bin/env python3
"""Tests that every check of tools/lint fails when it should, and only then.

A small good tree passes. Each row of BAD changes one file of it and gives the one finding that must
result, with file and line.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = {
    ".clang-format": (ROOT / ".clang-format").read_text(),
    "README.md": """# Title

See [the guide](docs/guide.md#how-to-use-it), [below](#end), `src/base/sum.c:3` and
`src/LAYER/NAME.c`; a [site](https://example.org/x#y) and `no/such/file.c` are not ours.

```
[no](link.md) and `src/no/file.c` in a block
anytime --exp-model pareto:1,2
```

## End
""",
    "docs/guide.md": "# Guide\n\n## How to *use* it?\n\nBack to [start](../README.md).\n",
    "docs/reference/api.md": "# Interfaces\n\n`at_run(a)`, `train(b)`\n",
    "tools/run.sh": "#!/bin/sh\necho hello\n",
    "src/base/sum.h": """/* sum.h - adds. */
#ifndef AT_BASE_SUM_H
#define AT_BASE_SUM_H

typedef struct at_sum {
    int (*put)(int); /* time( and printf( in a comment are only words */
} at_sum;

typedef void (*at_sum_done)(void);

/* Adds. */
int at_sum_of(int a, int b);
int at_sum_more(int the_first_of_the_numbers, int the_second_of_the_numbers, int the_third_of_them,
                int the_last);
int at_sum_many(int a);

int at_sum_less(int a); /* takes one away */

/* Twice. */
static inline int at_sum_twice(int a)
{
    return 2 * a;
}

#endif
""",
    "src/base/sum.c": """#include "base/sum.h"

#include <assert.h>

#define LATER(x)   \\
    do {           \\
        (void)(x); \\
    } while (0)

static const char *words[] = {"sleep(1) and rand() in a string"};

int at_sum_of(int a, int b)
{
    assert(words[0]);
    return a + b;
}
""",
    "src/base/clock.c": "int now(void)\n{\n    return clock_gettime(0, 0);\n}\n",
    "src/step/hub.c": '#include "base/sum.h"\n\n#include <string.h>\n',
    "src/record/sinks/console.c": '#include "step/hub.h"\n',
    "src/pace/pace.c": 'const char *models[][2] = {\n    {"pareto", "a heavy tail"},\n};\n',
    "src/world/process/child.c": "void child(void)\n{\n    _exit(0);\n}\n",
    "src/cli/main.c": '#include "world/core/host.h"\n\nint main(void)\n{\n    exit(puts(""));\n}\n',
    "tests/unit/step/hub.c": '#include "step/hub.h"\n\n#include "base/sum.h"\n',
    "include/anytime.h": """/* anytime.h - the library. */
#ifndef ANYTIME_H
#define ANYTIME_H

#ifdef __cplusplus
extern "C" {
#endif

/* Runs. */
int at_run(void);

#ifdef __cplusplus
}
#endif

#endif
""",
}


def c_function(*lines):
    return "int f(void)\n{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def header(body):
    return f"/* x.h - x. */\n#ifndef AT_BASE_X_H\n#define AT_BASE_X_H\n\n{body}\n#endif\n"


EMPTY_HEADER = header("").replace("\n\n\n", "\n\n")


# Fault, path, content, line of the finding, check, part of its sentence.
BAD = (
    ("base includes step", "src/base/x.c", '#include "step/hub.h"\n',
     1, "layers", 'base may include nothing else, not "step/hub.h"'),
    ("step includes learn", "src/step/x.c", '#include "base/sum.h"\n#include "learn/y.h"\n',
     2, "layers", "step may include base"),
    ("report includes world", "src/report/x.c", '#include "world/y.h"\n', 1, "layers", "report"),
    ("learn includes data", "src/learn/x.c", '#include "data/y.h"\n', 1, "layers", "learn"),
    ("world includes cli", "src/world/x.c", '#include "cli/y.h"\n', 1, "layers", "no layer may"),
    ("a step test includes world", "tests/unit/step/x.c", '#include "world/y.h"\n',
     1, "layers", "step may include base"),
    ("an example looks inside", "examples/x.c", '#include "base/sum.h"\n',
     1, "layers", "anytime.h"),
    ("the public header looks inside", "include/y.h",
     '/* y.h - y. */\n#ifndef Y_H\n#define Y_H\n\n#include "base/sum.h"\n\n#endif\n',
     5, "layers", "stands alone"),
    ("an unknown layer", "src/misc/x.c", "int x;\n", 1, "layers", "table of layers"),
    ("a path without a layer", "src/base/x.c", '#include "sum.h"\n', 1, "layers", "start at src/"),
    ("own header second", "src/base/sum.c", '#include <assert.h>\n\n#include "base/sum.h"\n',
     1, "layers", 'own header "base/sum.h" must come first'),
    ("MPI in a world that is not its own", "src/world/x.c", "#include <mpi.h>\n",
     1, "layers", "src/world/mpi"),
    ("oneDNN outside an engine", "src/learn/x.c", "#include <oneapi/dnnl/dnnl.h>\n",
     1, "layers", "engines"),
    ("BLAS outside an engine", "src/learn/x.c", "#include <cblas.h>\n", 1, "layers", "engines"),
    ("step prints", "src/step/x.c", "#include <stdio.h>\n", 1, "layers", "pure"),
    ("step asks the system", "src/step/x.c", "#include <sys/stat.h>\n", 1, "layers", "pure"),

    ("a clock", "src/world/x.c", c_function("return time(0);"), 3, "calls", "time()"),
    ("a sleep in a test", "tests/unit/base/x.c", c_function("return sleep(1);"),
     3, "calls", "sleep()"),
    ("a precise sleep", "src/step/x.c", c_function("return nanosleep(0, 0);"), 3, "calls", "clock"),
    ("rand", "src/pace/x.c", c_function("return rand();"), 3, "calls", "named random stream"),
    ("drand48 in a benchmark", "bench/x.c", c_function("return drand48() > 0;"),
     3, "calls", "named random stream"),
    ("exit in a library", "src/data/x.c", c_function("exit(1);"), 3, "calls", "cli/main.c"),
    ("abort beside an excused _exit", "src/world/process/child.c", c_function("abort();"),
     3, "calls", "abort()"),
    ("_exit where it is not excused", "src/world/sim/sim.c", c_function("_exit(1);"),
     3, "calls", "_exit()"),
    ("sprintf", "src/base/x.c", c_function("return sprintf(0, 0);"), 3, "calls", "bound"),
    ("strcpy", "src/base/x.c", c_function("return !strcpy(0, 0);"), 3, "calls", "bound"),
    ("strcat", "tests/unit/base/x.c", c_function("return !strcat(0, 0);"), 3, "calls", "bound"),
    ("gets", "src/cli/x.c", c_function("return !gets(0);"), 3, "calls", "bound"),
    ("atoi", "src/cli/x.c", c_function("return atoi(0);"), 3, "calls", "invalid number"),
    ("atof", "src/cli/x.c", c_function("return atof(0) > 0;"), 3, "calls", "invalid number"),
    ("strtod", "src/cli/x.c", c_function("return strtod(0, 0) > 0;"), 3, "calls", "the locale"),
    ("strtok", "src/cli/x.c", c_function("return !strtok(0, 0);"), 3, "calls", "hidden state"),
    ("system", "src/cli/x.c", c_function("return system(0);"), 3, "calls", "shell"),
    ("popen", "src/report/x.c", c_function("return !popen(0, 0);"), 3, "calls", "shell"),
    ("alloca", "src/base/x.c", c_function("return !alloca(9);"), 3, "calls", "stack"),
    ("a library prints", "src/learn/x.c", c_function('return printf("x");'), 3, "calls", "print"),
    ("a library names stderr", "src/data/x.c", c_function("return fputc('x', stderr);"),
     3, "calls", "stderr"),
    ("another sink names stdout", "src/record/x.c", c_function("return fflush(stdout);"),
     3, "calls", "stdout"),
    ("step allocates", "src/step/x.c", c_function("return !malloc(1);"), 3, "calls", "arena"),
    ("step frees", "src/step/x.c", c_function("free(0);"), 3, "calls", "arena"),
    ("a second label", "src/base/x.c", c_function("goto fail;"), 3, "calls", "goto fail"),

    ("a long line", "src/base/x.c", "/* " + 95 * "x" + " */\n", 1, "shape", "101 columns"),
    ("a long line in a script", "tools/x.py", "# " + 99 * "x" + "\n", 1, "shape", "101 columns"),
    ("a tab", "docs/x.md", "a\n\tb\n", 2, "shape", "tab"),
    ("a trailing blank", "docs/x.md", "a \n", 1, "shape", "end of the line"),
    ("no final line end", "docs/x.md", "a\nb", 2, "shape", "no line end"),
    ("an empty last line", "docs/x.md", "a\n\n", 2, "shape", "empty line"),
    ("a long function", "src/base/x.c", "\n" + c_function(*68 * ["f();"]), 2, "shape", "f has 71"),
    ("a long Python function", "tools/x.py", "def f():\n" + 70 * "    f()\n",
     1, "shape", "f has 71"),
    ("a long file", "src/base/x.c", 801 * "int x;\n", 801, "shape", "801 lines"),
    ("a long README", "README.md", GOOD["README.md"] + 140 * "x\n", 151, "shape", "150 allowed"),
    ("a script that is not executable", "docs/x.txt", "#!/bin/sh\n", 1, "shape", "executable"),

    ("no guard", "src/base/x.h", "/* x.h - x. */\n", 1, "headers", "AT_BASE_X_H"),
    ("a wrong guard", "src/base/x.h", EMPTY_HEADER.replace("AT_BASE_X_H", "X_H"),
     1, "headers", "AT_BASE_X_H"),
    ("no purpose", "src/base/x.h", EMPTY_HEADER.replace("/* x.h - x. */", "/* x */"),
     1, "headers", "opens with its purpose"),
    ("a bare prototype", "src/base/x.h", header("int a(void);\n"),
     5, "headers", "a has no comment"),
    ("a blank line ends a group", "src/base/x.h",
     header("/* Both. */\nint a(void);\n\nint b(\n    void);\n").replace("(\n    ", "("),
     8, "headers", "b has no comment"),
    ("a bare inline function", "src/base/x.h",
     header("static inline int a(void)\n{\n    return 1;\n}\n"), 5, "headers", "a has no comment"),
    ("a bare prototype between C++ brackets", "include/anytime.h",
     GOOD["include/anytime.h"].replace("/* Runs. */\n", ""), 9, "headers", "at_run has no comment"),

    ("a dead link", "docs/x.md", "a\n[b](c.md)\n", 2, "links", "docs/c.md does not exist"),
    ("a dead image link", "docs/x.md", "![b](c.png)\n", 1, "links", "docs/c.png does not exist"),
    ("a dead reference", "docs/x.md", "[a]\n\n[a]: b.md\n", 3, "links", "docs/b.md does not exist"),
    ("a dead anchor", "docs/x.md", "[b](guide.md#nowhere)\n", 1, "links", "no heading #nowhere"),
    ("a dead anchor of its own", "docs/x.md", "# A\n\n[b](#b)\n", 3, "links", "no heading #b"),
    ("a file that is not there", "docs/x.md", "run `src/base/y.c` now\n",
     1, "links", "src/base/y.c"),
    ("a page that is not there", "docs/x.md", "`docs/DATA.md`\n", 1, "links", "docs/DATA.md"),
    ("a script that is not there", "docs/x.md", "`tools/y.sh --all`\n", 1, "links", "tools/y.sh"),

    ("a page without a link", "docs/README.md",
     "# Map\n\n[up](../README.md), [api](reference/api.md)\n",
     1, "links", "no link leads from here to docs/guide.md"),

    ("an undocumented straggler model", "src/pace/pace.c",
     'const char *models[][2] = {\n    {"pareto", "known"},\n    {"exp", "unknown"},\n};\n',
     3, "names", "`exp`"),
    ("an undocumented optimizer", "src/learn/optim/x.c",
     'const at_optim at_optim_x = {\n    .name = "x",\n};\n', 2, "names", "`x`"),

    ("an undocumented function", "include/anytime.h",
     GOOD["include/anytime.h"].replace("at_run", "at_walk"), 10, "names", "`at_walk`"),
    ("an undocumented name in Python", "python/anytime/__init__.py",
     '__all__ = ["train",\n           "trim"]\n', 2, "names", "`trim`"),

    ("an open end", "src/base/x.c", "/* TODO: more */\n", 1, "words", "TODO(#12)"),
    ("an open end of another name", "docs/x.md", "a\nFIXME\n", 2, "words", "FIXME(#12)"),
    ("a machine path", "docs/x.md", "in /home/someone/main\n", 1, "words", "one machine"),
    ("another machine path", "tools/x.py", 'A = "/work/main"\n', 1, "words", "one machine"),
    ("a registry", "docs/x.md", "from registry.example.org\n", 1, "words", "registry"),

    ("a badly formed file", "src/base/x.c", "int  x;\n", 1, "format", "make format"),
)

# Looks like a fault but is fine: path, content.
FINE = (
    ("docs/README.md", "# Map\n\n[guide](guide.md), [api](reference/api.md)\n"),
    ("docs/x.md", "TODO(#12): later\n"),
    ("docs/x.md", "`src/base/`, `tests/unit/LAYER/TOPIC.c`, `src/learn/optim_NAME.c`,\n"
     "`src/LAYER/x.c` and [a](<guide.md>)\n"),
    ("src/base/x.c", c_function("return clock->time(1) + at_sleep(2) + x.exit(3);")),
    ("src/base/x.c", "int f(void)\n{\n    if (f()) goto out;\nout:\n    return f();\n}\n"),
    ("src/base/x.c", "\n" + c_function(*67 * ["f();"])),
    ("src/learn/engines/blas.c", "#include <cblas.h>\n"),
    ("src/world/mpi/mpi.c", "#include <mpi.h>\n"),
    ("src/record/sinks/console.c", c_function('return fprintf(stderr, "x");')),
    ("src/record/x.c", c_function("return !malloc(1) + fprintf(file, 0);")),
    ("tests/unit/cli/x.c", '#include "cli/options/options.h"\n'),
    ("tests/data/x.txt", "as\tit is \n\n"),
)


class Lint(unittest.TestCase):
    def lint(self, changed, *options):
        """Runs tools/lint on the good tree with some files replaced."""
        with tempfile.TemporaryDirectory() as folder:
            for path, content in {**GOOD, **changed}.items():
                full = pathlib.Path(folder, path)
                full.parent.mkdir(parents=True, exist_ok=True)
                full.write_text(content)
                full.chmod(0o755 if path == "tools/run.sh" else 0o644)
            done = subprocess.run(
                [sys.executable, str(ROOT / "tools/lint"), "--root", folder, *options],
                capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_a_good_tree_passes(self):
        code, lines = self.lint({})
        self.assertEqual(lines, [f"lint: {len(GOOD)} files, 0 findings"])
        self.assertEqual(code, 0)

    def test_each_fault_gives_exactly_one_finding(self):
        for what, path, content, line, check, words in BAD:
            with self.subTest(what):
                code, lines = self.lint({path: content})
                self.assertEqual(code, 1)
                self.assertEqual(len(lines), 2, "\n".join(lines))
                self.assertTrue(lines[0].startswith(f"{path}:{line}: [{check}] "), lines[0])
                self.assertIn(words, lines[0])

    def test_apparent_faults_pass(self):
        for path, content in FINE:
            with self.subTest(content):
                code, lines = self.lint({path: content})
                self.assertEqual(lines[:-1], [])
                self.assertEqual(code, 0)

    def test_an_executable_text_file_is_a_fault(self):
        code, lines = self.lint({"tools/run.sh": "echo hello\n"})
        self.assertEqual(code, 1)
        self.assertIn("tools/run.sh:1: [shape] executable, but not a script", lines)

    def test_paths_narrow_the_findings(self):
        bad = {"docs/x.md": "a ", "src/base/x.c": c_function("return rand();")}
        self.assertEqual(len(self.lint(bad, "src/base")[1]), 2)
        self.assertEqual(len(self.lint(bad, "src/base/x.c", "docs/")[1]), 4)
        self.assertEqual(self.lint(bad, "src/step")[0], 0)

    def test_every_check_is_tested(self):
        listed = [line.split()[0] for line in self.lint({}, "--list")[1]]
        self.assertEqual(set(listed), {row[4] for row in BAD})


if __name__ == "__main__":
    unittest.main()
