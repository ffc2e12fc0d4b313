#!/usr/bin/env python3
"""Makes the pictures of the documentation, docs/images/*.png: make pictures [T=report].

Runs are simulated, so that a picture changes only when the program does; only `demo` and `watch`
run in real time. Needs gnuplot for plots and chromium for pages.
"""
import argparse
import base64
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
ANYTIME = os.environ.get("ANYTIME", str(ROOT / "build" / "anytime"))

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from support import browser  # noqa: E402  pylint: disable=wrong-import-position

NIAGARA = "--straggler niagara --straggler-scale 20%"
TEN = f"--workers 10 --micro-batch 4 --sample-time 300us --lr 0.05 {NIAGARA}"
DRAWN = "document.querySelectorAll('.chart:not([hidden]) .plot canvas').length > 3"
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
# The part of the page from the first element of one selector to the end of the n-th visible one
# of another.
BOX = """((first, last, number) => {
    const seen = (s) => [...document.querySelectorAll(s)].filter((e) => e.checkVisibility());
    const top = seen(first)[0].getBoundingClientRect();
    const bottom = seen(last)[number - 1].getBoundingClientRect();
    return {x: 0, y: Math.max(0, top.top + scrollY - 12), width: innerWidth,
            height: bottom.bottom - top.top + 24, scale: 1};
})(%r, %r, %d)"""
CURVES = "#curves .chart"


def run(words, folder):
    """Runs the program in a folder; prints what was run."""
    print("anytime", words, flush=True)
    subprocess.run([ANYTIME, *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def shoot(address, name, part, width=1100, ready=DRAWN):
    """A picture of a part of a page: see BOX."""
    with browser.open() as page:
        page.resize(width, 900)
        page.visit(address)
        page.wait_for(ready)
        page.evaluate(SETTLED)
        answer = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip=page.evaluate(BOX % part))
        (IMAGES / f"{name}.png").write_bytes(base64.b64decode(answer["data"]))


def stragglers(folder):
    """The guide: ten workers, some of them slow."""
    run(f"simulate {TEN} --steps 30 --run one", folder)
    run("report one --out page", folder)
    shoot((folder / "page" / "report.html").as_uri(), "stragglers",
          (".timeline", ".timeline + .card", 1))


def compare(folder):
    """The guide: accuracy over time."""
    run(f"compare fmb amb --world sim {TEN} --target accuracy=0.8 --out cmp", folder)
    shutil.copy(folder / "cmp" / "accuracy-vs-time.png", IMAGES / "compare.png")


def panels(folder):
    """docs/guide/compare.md: all panels."""
    run(f"compare fmb amb --world sim --workers 10 {NIAGARA} --sample-time 100us --micro-batch 4 "
        "--steps 400 --eval-every 20 --lr-schedule cosine --out cmp", folder)
    shutil.copy(folder / "cmp" / "panels.png", IMAGES / "panels.png")


def report(folder):
    """docs/guide/report.md: the page of six runs."""
    for strategy in ("fmb", "amb"):
        for seed in (1, 2, 3):
            run(f"simulate {TEN} --strategy {strategy} --seed {seed} --steps 200 --eval-every 10 "
                f"--run {strategy}-{seed}", folder)
    run("report fmb-1 fmb-2 fmb-3 amb-1 amb-2 amb-3 --out page", folder)
    shoot((folder / "page" / "report.html").as_uri(), "report", ("h1", CURVES, 6), width=1280)


@contextlib.contextmanager
def process(words, folder):
    """A process that is ended at the end of the block."""
    print("anytime", words, flush=True)
    with subprocess.Popen([ANYTIME, *words.split()], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as started:
        try:
            yield started
        finally:
            started.terminate()


def watch(folder):
    """docs/guide/watch.md: a run in progress."""
    words = "--strategy amb --sample-time 100us --eval-every 50 --seconds 600 --quiet --run live"
    with process(f"train --workers 4 --micro-batch 4 {NIAGARA} {words}", folder):
        with process("watch live", folder) as board:
            address = board.stdout.readline().strip()
            steps = "((Anytime.live.runs[0] || {}).summary || {state: {steps: 0}}).state.steps"
            shoot(address, "watch", ("h1", CURVES, 3), width=1280,
                  ready=f"{DRAWN} && {steps} > 400 && !document.querySelector('.silent')")


def demo(_folder):
    """The README: `make demo`, which wants a quiet machine and takes 100 seconds."""
    subprocess.run([ROOT / "tools" / "demo.sh"], check=True)
    shutil.copy(ROOT / "runs" / "demo" / "accuracy-vs-time.png", IMAGES / "demo-accuracy.png")


PICTURES = {made.__name__: made for made in (stragglers, compare, panels, report, watch, demo)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", metavar="NAME",
                        help=f"which ones: {', '.join(PICTURES)}; default: all")
    names = parser.parse_args().name or list(PICTURES)
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        parser.error(f"no picture is called {unknown[0]}; there are {', '.join(PICTURES)}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](pathlib.Path(folder))


if __name__ == "__main__":
    main()
