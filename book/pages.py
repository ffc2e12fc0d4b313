"""Chapters as Markdown and as one HTML page.

A chapter is a list of blocks. Text has a little markup: `code`, **bold** and [text](address).
"""
import html
import re
import textwrap

COLUMNS = 110

STYLE = """
:root { color-scheme: light dark; --text: #1d2329; --soft: #57606a; --ground: #fff;
  --panel: #f5f6f8; --line: #d5dae0; --link: #0a58a8; --good: #14692b; --bad: #a32020;
  --open: #7a5200 }
@media (prefers-color-scheme: dark) { :root { --text: #e2e6ea; --soft: #9aa5b1;
  --ground: #14181d; --panel: #1f252c; --line: #3a434d; --link: #7ab8ff; --good: #6fd08c;
  --bad: #ff8f8f; --open: #e8bd6a } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 0 auto;
  padding: 1rem 1.2rem 4rem; color: var(--text); background: var(--ground) }
h1 { margin: 3.5rem 0 1rem; line-height: 1.2 } h1:first-child { margin-top: 1.5rem }
h2 { margin: 2.6rem 0 .8rem; padding-top: .8rem; border-top: 1px solid var(--line) }
a { color: var(--link) }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums }
td, th { border-bottom: 1px solid var(--line); padding: .3rem .7rem; vertical-align: top }
th { background: var(--panel); text-align: left; vertical-align: bottom }
td.number, th.number { text-align: right; white-space: nowrap }
pre { background: var(--panel); padding: .7rem .9rem; overflow-x: auto; border-radius: 6px;
  font-size: .85rem; line-height: 1.45 }
code { background: var(--panel); padding: .05em .3em; border-radius: 3px; font-size: .92em }
figure { margin: 1.2rem 0 } figure svg { max-width: 100%; height: auto; border-radius: 6px;
  background: #fff }
.agrees { color: var(--good) } .disagrees { color: var(--bad) }
.not-yet-run { color: var(--open) } .cannot-be-compared { color: var(--soft) }
h1, h2, h3, p, li { overflow-wrap: anywhere }
"""

VERDICTS = "agrees|disagrees|cannot be compared|not yet run"


class Heading:
    def __init__(self, level, text):
        self.level, self.text = level, text

    def markdown(self):
        return "#" * self.level + " " + self.text

    def html(self):
        return (f'<h{self.level} id="{anchor(self.text)}">{inline(self.text)}</h{self.level}>')


class Text:
    def __init__(self, text):
        self.text = " ".join(text.split())

    def markdown(self):
        return "\n".join(textwrap.wrap(self.text, COLUMNS, break_long_words=False,
                                       break_on_hyphens=False))

    def html(self):
        return f"<p>{inline(self.text)}</p>"


class Points:
    """A list."""

    def __init__(self, items):
        self.items = [" ".join(item.split()) for item in items]

    def markdown(self):
        return "\n".join(textwrap.fill(item, COLUMNS, initial_indent="- ", subsequent_indent="  ",
                                       break_long_words=False, break_on_hyphens=False)
                         for item in self.items)

    def html(self):
        return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in self.items) + "</ul>"


class Code:
    def __init__(self, *lines):
        self.lines = [part for line in lines for part in fold(line)]

    def markdown(self):
        return "```\n" + "\n".join(self.lines) + "\n```"

    def html(self):
        return "<pre>" + html.escape("\n".join(self.lines)) + "</pre>"


class Table:
    def __init__(self, header, rows):
        self.header, self.rows = header, [[str(cell) for cell in row] for row in rows]
        assert all(len(row) == len(header) for row in self.rows), "every row has every column"

    def markdown(self):
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def html(self):
        numbers = [self.rows and all(is_number(row[column]) for row in self.rows)
                   for column in range(len(self.header))]
        head = "".join(table_cell("th", cell, number)
                       for cell, number in zip(self.header, numbers, strict=True))
        body = "".join("<tr>" + "".join(table_cell("td", cell, number) for cell, number
                                        in zip(row, numbers, strict=True)) + "</tr>\n"
                       for row in self.rows)
        return f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>\n{body}</table></div>'


class Picture:
    """An SVG document; `about` is its description for those who do not see it."""

    def __init__(self, name, about, svg):
        self.name, self.about, self.svg = name, about, svg

    def markdown(self):
        return f"![{self.about}](images/{self.name}.svg)"

    def html(self):
        return f'<figure role="img" aria-label="{html.escape(self.about)}">\n{self.svg}</figure>'


def is_number(text):
    """A number with or without a unit, an interval, or nothing."""
    return re.fullmatch(r"|[+-]?[\d.,]+( ?(%|[a-zA-Z]+))?( ± [\d.]+)?( \[.*\])?|not reached|-|"
                        r"target missed", text) is not None


def table_cell(tag, text, number):
    kind = ' class="number"' if number else ""
    scope = ' scope="col"' if tag == "th" else ""
    return f"<{tag}{kind}{scope}>{inline(text)}</{tag}>"


def fold(line):
    """A long command line as several, each but the last with a backslash."""
    if line.startswith("#"):
        return textwrap.wrap(line, COLUMNS, subsequent_indent="# ")
    parts = textwrap.wrap(line, COLUMNS - 2, subsequent_indent="    ", break_long_words=False,
                          break_on_hyphens=False) or [""]
    return [part + " \\" for part in parts[:-1]] + parts[-1:]


def inline(text):
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*Verdict: (" + VERDICTS + r")\.\*\*", verdict, text)
    text = re.sub(r"\*\*([^*]*)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<i>\1</i>", text)
    if re.fullmatch(VERDICTS, text):
        return verdict_mark(text, text)
    return re.sub(r"\[([^]]*)\]\(([^)]*)\)", page_link, text)


def verdict(match):
    return verdict_mark(match[1], f"Verdict: {match[1]}.")


def verdict_mark(kind, text):
    return f'<b class="{kind.replace(" ", "-")}">{text}</b>'


def page_link(match):
    """Links to chapters become links within the page; others lose their address."""
    text, address = match[1], match[2]
    inside = re.fullmatch(r"(?:[a-z0-9-]+\.md)?#(.*)", address)
    if inside:
        return f'<a href="#{inside[1]}">{text}</a>'
    return f'<a href="{address}">{text}</a>'


def anchor(text):
    """The name that a heading has in Markdown renderers."""
    return re.sub(r"[^a-z0-9 _-]", "", text.lower()).replace(" ", "-")


def markdown(blocks):
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def body_of(blocks):
    """All blocks; the titles of chapters are headings below the title of the page."""
    titles = 0
    for block in blocks:
        if isinstance(block, Heading):
            titles += block.level == 1
            block = Heading(block.level + (titles > 1), block.text)
        yield block.html()


def page(title, blocks):
    body = "\n".join(body_of(blocks))
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n")
