"""Every name that a user can type (verb, option, strategy, rule, model) is documented.

Names are the rows {"name", ... or .name = "name", of the files below; documented means that
README.md or a page of docs/ has the name in backticks or in a code block.
"""
import fnmatch
import re

from tree import Finding

# Files with tables of names that users can type.
TABLES = ("src/step/rules/*.c", "src/step/strategy.c", "src/pace/pace.c",
          "src/learn/net/families.c", "src/learn/optim/*.c",
          "src/cli/options/options.c", "src/cli/verbs/verbs.c")

ROW = re.compile(r'^[ ]*(?:[A-Z]+\(|\{[ ]*|\.name = )"([a-z][a-z0-9-]*)",', re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def check(tree):
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
