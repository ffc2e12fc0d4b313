"""Chapters as Markdown and as one HTML page.

A chapter is a list of blocks. Text has a little markup: `code`, **bold** and [text](address).
"""
import html
import re
import textwrap

COLUMNS = 110

STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border: 1px solid #ccc; padding: 3px 9px }
h1, h2, h3, p, li { overflow-wrap: anywhere } .scroll { overflow-x: auto }
th { background: #f2f2f2; text-align: left }
pre { background: #f6f6f6; padding: 8px; overflow: auto }
code { background: #f6f6f6 } svg { max-width: 100%; height: auto } nav ul { columns: 2 }
.agrees { color: #1a6e1a } .disagrees { color: #a11 } .verdict { font-weight: bold }
"""


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
        head = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>\n"
                       for row in self.rows)
        return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>'


class Picture:
    """An SVG document; `about` is its description for those who do not see it."""

    def __init__(self, name, about, svg):
        self.name, self.about, self.svg = name, about, svg

    def markdown(self):
        return f"![{self.about}](images/{self.name}.svg)"

    def html(self):
        return f'<figure role="img" aria-label="{html.escape(self.about)}">\n{self.svg}</figure>'


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
    text = re.sub(r"\*\*([^*]*)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\[([^]]*)\]\(([^)]*)\)", page_link, text)


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
