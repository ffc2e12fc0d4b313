"""Line width, tabs, trailing blanks, length of functions and files, executable bits."""
import ast
import re

from tree import Finding

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
README_LINES_MAX = 150

CODE = (".c", ".h", ".py", ".sh", ".cmake", ".gp")
TEXT = CODE + (".md", ".json", ".txt", ".yml", ".yaml", ".html", ".css", ".js", "")

# Folders of test input, whose format is part of the test.
DATA = re.compile(r"(^|/)(data|golden|corpus)/")


def check(tree):
    for file in tree.files:
        is_input = DATA.search(file.path) and not file.below("src")
        if file.suffix not in TEXT or is_input:
            continue
        yield from check_lines(file)
        yield from check_end(file)
        yield from check_executable(file)
        if is_code(file):
            yield from check_code(file)
        if file.path == "README.md" and len(file.lines) > README_LINES_MAX:
            yield Finding(file.path, README_LINES_MAX + 1,
                          f"{len(file.lines)} lines, {README_LINES_MAX} allowed; "
                          "move details to docs/")


def is_code(file):
    return file.suffix in CODE or file.name in ("CMakeLists.txt", "Makefile")


def check_lines(file):
    for number, line in enumerate(file.lines, 1):
        if is_code(file) and len(line) > COLUMNS_MAX:
            yield Finding(file.path, number, f"{len(line)} columns, {COLUMNS_MAX} allowed")
        if "\t" in line and file.name != "Makefile":
            yield Finding(file.path, number, "tab; indent with spaces")
        if line != line.rstrip():
            yield Finding(file.path, number, "blanks at the end of the line")


def check_end(file):
    last = max(len(file.lines), 1)
    if file.text and not file.text.endswith("\n"):
        yield Finding(file.path, last, "no line end at the end of the file")
    if file.text.endswith("\n\n"):
        yield Finding(file.path, last, "empty line at the end of the file")


def check_executable(file):
    script = file.text.startswith("#!")
    if script and not file.executable:
        yield Finding(file.path, 1, "script is not executable; run chmod +x")
    if file.executable and not script:
        yield Finding(file.path, 1, "executable, but not a script")


def check_code(file):
    if len(file.lines) > FILE_LINES_MAX:
        yield Finding(file.path, FILE_LINES_MAX + 1,
                      f"{len(file.lines)} lines, {FILE_LINES_MAX} allowed; split the file")
    for name, first, last in functions_of(file):
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield Finding(file.path, first, f"{name} has {last - first + 1} lines, "
                                            f"{FUNCTION_LINES_MAX} allowed; split it")


def functions_of(file):
    if file.is_c:
        return c_functions(file)
    if file.suffix == ".py":
        return python_functions(file)
    return ()


def c_functions(file):
    """A block at depth 0 whose opening brace follows `)` is a function body."""
    depth = 0
    start = 0  # where the current declaration began
    for match in re.finditer(r"[{};]", file.pure):
        at = match.start()
        if match.group() == "{":
            head = file.pure[start:at]
            if depth == 0 and head.rstrip().endswith(")"):
                name = re.search(r"(\w+)\s*\(", head)
                first = file.line_of(start + len(head) - len(head.lstrip()))
                opened = (name.group(1) if name else "?", first)
            elif depth == 0:
                opened = None
            depth += 1
        elif match.group() == "}":
            depth = max(depth - 1, 0)
            if depth == 0 and opened:
                yield opened + (file.line_of(at),)
        if depth == 0:
            start = at + 1


def python_functions(file):
    try:
        module = ast.parse(file.text)
    except SyntaxError as error:
        yield f"(syntax error: {error.msg})", error.lineno or 1, 10 ** 6
        return
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno, node.end_lineno
