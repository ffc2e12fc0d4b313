"""How far a book is, and how long the rest will take."""
import time


class Progress:
    """costs: {command: seconds} of runs that were made before, here or on another machine. How much
    faster or slower this machine is shows in the runs that have been made meanwhile."""

    def __init__(self, todo, costs, clock=time.monotonic):
        self.clock, self.began, self.jobs = clock, clock(), 1
        self.total, self.done, self.expected, self.spent = len(todo), 0, 0.0, 0.0
        known = [costs[run.command] for run in todo if run.command in costs]
        usual = sum(known) / len(known) if known else None
        self.left = {run.key: costs.get(run.command, usual) for run in todo}

    def seconds_left(self):
        """None as long as nothing is known."""
        speed = self.spent / self.expected if self.expected > 0 else 1.0
        if None in self.left.values():  # nothing was ever made before: all runs count the same
            return len(self.left) * self.spent / self.done / self.jobs if self.done else None
        return speed * sum(self.left.values()) / self.jobs

    def line(self, run, seconds):
        """What is printed when a run has been made, which took so long."""
        self.done += 1
        self.spent += seconds
        self.expected += self.left.pop(run.key, None) or 0.0
        left = self.seconds_left()
        about = "" if left is None else f", about {show(left)} left"
        return (f"{self.done} of {self.total} runs, {show(self.clock() - self.began)}{about}: "
                f"{seconds:.1f} s for {run.command}")


def show(seconds):
    """"3 min 5 s", "1 h 20 min\""""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
