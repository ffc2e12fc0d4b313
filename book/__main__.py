"""The book: every published figure and table beside ours.

    python3 book [--quick] [--no-run] [--only TEXT] [--jobs N] [--program FILE]

Makes the runs that docs/book/results does not have yet, then writes docs/book: a Markdown page per
chapter, their pictures, and everything on one page, book.html. --no-run only writes the pages.
--quick makes no new runs; it repeats the cheapest ones and fails if their numbers have changed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys

import check
import contents
import progress
import runs
from chapters import CHAPTERS


KEPT = runs.ROOT / "docs/book/results"


def parse():
    parser = argparse.ArgumentParser(prog="book", description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=runs.ROOT / "build/anytime")
    parser.add_argument("--out", type=pathlib.Path, default=runs.ROOT / "docs/book",
                        help="where pages are written [docs/book]")
    parser.add_argument("--results", type=pathlib.Path, default=KEPT,
                        help="where results are kept [docs/book/results]")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="run only the sections whose title contains TEXT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at the same time")
    parser.add_argument("--no-run", action="store_true", help="only write the pages")
    parser.add_argument("--quick", action="store_true",
                        help="repeat the cheapest runs and compare them with their results")
    parser.add_argument("--budget", type=float, default=240, metavar="SECONDS",
                        help="--quick: how long the repeated runs took when they were made [240]")
    parser.add_argument("--prune", action="store_true", help="remove results of no chapter")
    return parser.parse_args()


def wanted(options, results):
    """Runs without a result, in the order of the chapters, each once."""
    found = {}
    for chapter in CHAPTERS:
        for section in chapter.SECTIONS:
            if options.only.lower() in section.title.lower():
                found |= {run.key: run for run in section.missing(results).values()}
    return list(found.values())


def make(options, results):
    """Makes missing runs; the number of those that failed."""
    todo = wanted(options, results)
    real_time = [run for run in todo if run.measured]  # one at a time, so as not to disturb them
    shown = progress.Progress(todo, {**runs.Results(KEPT).costs(), **results.costs()})
    failed = 0
    for jobs, part in ((options.jobs, [run for run in todo if not run.measured]), (1, real_time)):
        shown.jobs = jobs
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            made = {pool.submit(runs.execute, options.program, run): run for run in part}
            for done in concurrent.futures.as_completed(made):
                failed += not finish(made[done], done, results, shown)
    return failed


def finish(run, done, results, shown):
    try:
        result = done.result()
    except runs.RunFailed as failure:
        print(f"book: {failure}", file=sys.stderr)
        return False
    results.put(run, result)
    print(shown.line(run, result["cost_seconds"]), flush=True)
    return True


def main():
    options = parse()
    results = runs.Results(options.results)
    every = [run for chapter in CHAPTERS for section in chapter.SECTIONS
             for run in section.runs.values()]
    failed = 0
    if options.quick:
        failed = check.repeat(options.program, every, results, options.budget)
    elif not options.no_run:
        failed = make(options, results)
    if options.prune:
        for path in results.unused(every):
            path.unlink()
    contents.write(CHAPTERS, results, options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
