"""Writes the book: contents, one Markdown page per chapter, pictures, and book.html."""
import pages
from chapters import central

TITLE = "The book: published experiments beside ours"

INTRODUCTION = """Each section has a published figure or table, the command of ours that does the
same, our numbers beside the published ones, what is different, and a verdict."""

HOW = """Gradients are computed for real. Time is virtual: a sample takes the time that the section
says, and delays come from the published table, so the numbers do not depend on the machine or its
load. Runs marked *measured* are the exception: they ran on two cores of one machine that did other
work, too, so processor time is shown, and only ratios within a table should be read. Nets are
learnt at a scale that fits a desktop computer: fewer samples in a round, each of which takes
longer, so that a round takes as long as a published one, and fewer steps. Every number is in
`docs/book/results`, one file per run. `make book` makes the runs that are missing there and writes
these pages; `make book QUICK=1` repeats cheap runs and checks that their numbers are still the
same: all runs use AVX2 instructions, also where the processor has more, so that numbers are equal
on every machine that has them (convolutions to about five digits). Parts of data sets (below
`build/book/data`) are written by `make book`, too."""


def chapter_blocks(chapter, results):
    yield pages.Heading(1, chapter.TITLE)
    for paragraph in chapter.INTRODUCTION.strip().split("\n\n"):
        yield pages.Text(paragraph)
    for section in chapter.SECTIONS:
        yield from section.blocks(results)


def verdict_table(chapters, results):
    rows = []
    for chapter in chapters:
        for section in chapter.SECTIONS:
            link = f"[{section.title}]({chapter.NAME}.md#{pages.anchor(section.title)})"
            kind, sentence = section.judge(results)
            rows.append([chapter.SHORT, link, kind, sentence])
    return pages.Table(["source", "experiment", "verdict", ""], rows)


def cost(chapters, results):
    made = {run.key: results.get(run) for chapter in chapters for section in chapter.SECTIONS
            for run in section.runs.values()}
    seconds = sum(result.get("processor_seconds", result["cost_seconds"])
                  for result in made.values() if result)
    done = sum(result is not None for result in made.values())
    return pages.Text(f"{done} of {len(made)} runs have been made; they took "
                      f"{seconds / 60:.0f} minutes of one core.")


def start_blocks(chapters, results):
    yield pages.Heading(1, TITLE)
    yield pages.Text(INTRODUCTION)
    claim = central.headline(results)
    if claim:
        yield pages.Text(claim)
    yield pages.Text(HOW)
    yield pages.Points([f"[{chapter.TITLE}]({chapter.NAME}.md#{pages.anchor(chapter.TITLE)})"
                        for chapter in chapters])
    yield pages.Heading(2, "All verdicts")
    yield verdict_table(chapters, results)
    yield cost(chapters, results)


def write(chapters, results, folder):
    """Writes every page below folder; what is equal already is not touched."""
    start = list(start_blocks(chapters, results))
    every, files = list(start), {"README.md": pages.markdown(start)}
    for chapter in chapters:
        blocks = list(chapter_blocks(chapter, results))
        every += blocks
        files[f"{chapter.NAME}.md"] = pages.markdown(blocks)
    for block in every:
        if isinstance(block, pages.Picture):
            assert f"images/{block.name}.svg" not in files, "pictures have names of their own"
            files[f"images/{block.name}.svg"] = block.svg
    files["book.html"] = pages.page(TITLE, every)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
