"""A section of a chapter: one published figure or table beside ours."""
import pages

AGREES, DISAGREES, NOT_COMPARABLE = "agrees", "disagrees", "cannot be compared"
NOT_RUN = "not yet run"


# For experiments of which only the results were described.
NO_COMMAND = ("# none was published: programs started by hand on each machine",)


class Section:
    """runs: {name: Run}. show(results) gives blocks, verdict(results) (kind, sentence), where
    results has the result of every run by its name. theirs: the published command line, if there is
    one; ours: a command line of the program that does the same, if not that of the runs. optional:
    a function of a run's name; results of optional runs are None as long as they are missing."""

    def __init__(self, title, *, about, runs=None, theirs=(), ours=(), differences=(), show=None,
                 verdict=None, optional=lambda name: False):
        self.title, self.about, self.runs = title, about, runs or {}
        self.theirs, self.ours = list(theirs), list(ours)
        self.differences, self.show, self.verdict = list(differences), show, verdict
        self.optional = optional
        assert verdict, "every section has a verdict"

    def missing(self, results):
        return {name: run for name, run in self.runs.items() if results.get(run) is None}

    def needed(self, results):
        """Missing runs without which there is no verdict."""
        return {name: run for name, run in self.missing(results).items()
                if not self.optional(name)}

    def judge(self, results):
        """(kind, sentence) for what has been run."""
        missing = self.needed(results)
        if missing:
            return NOT_RUN, f"{len(missing)} of {len(self.runs)} runs have not been made."
        return self.verdict(self.gather(results))

    def gather(self, results):
        return {name: results.get(run) for name, run in self.runs.items()}

    def blocks(self, results):
        yield pages.Heading(2, self.title)
        yield pages.Text(self.about)
        if self.theirs:
            yield pages.Text("Published command:")
            yield pages.Code(*self.theirs)
        if self.ours or self.runs:
            yield pages.Text("Ours:")
            yield pages.Code(*(self.ours or first_commands(self.runs.values())))
        if not self.needed(results) and self.show:
            yield from self.show(self.gather(results))
        if self.differences:
            yield pages.Text("Differences from the published experiment:")
            yield pages.Points(self.differences)
        kind, sentence = self.judge(results)
        yield pages.Text(f"**Verdict: {kind}.** {sentence}")
        if self.missing(results):
            yield pages.Text("Still to run:")
            yield pages.Code(*(run.command for run in self.missing(results).values()))


def first_commands(runs, most=4):
    """The command lines of a section; with many runs only some of them."""
    commands = [run.command for run in runs]
    if len(commands) <= most:
        return commands
    every = max(1, len(commands) // most)
    rest = f"# and {len(commands) - most} more, with other seeds or values"
    return [*commands[::every][:most], rest]
