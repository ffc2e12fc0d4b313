"""Repeats cheap runs and compares them with the results that the book was made of."""
import runs

# With other instructions (runs.PINNED) virtual times are the same; what was learnt differs in the
# last digits, which training amplifies.
SECONDS_TOLERANCE, LOSS_TOLERANCE = 0.01, 0.1


def cheapest(every, results, budget):
    """Runs with a result whose cost adds up to at most `budget` seconds, the cheapest first."""
    made = {run.key: (results.get(run)["cost_seconds"], run) for run in every
            if not run.measured and results.get(run)}
    chosen = []
    for cost, run in sorted(made.values(), key=lambda item: (item[0], item[1].key)):
        budget -= cost
        if budget < 0:
            break
        chosen.append(run)
    return chosen


def repeat(program, every, results, budget):
    """Prints a line per run that differs; their number."""
    chosen = cheapest(every, results, budget)
    different, same_bits = 0, 0
    for run in chosen:
        kept, again = results.get(run)["result"], runs.execute(program, run)["result"]
        same_bits += kept["params_hash"] == again["params_hash"]
        problem = difference(kept, again)
        if problem:
            different += 1
            print(f"{problem}: {run.command}")
    print(f"book: {len(chosen)} runs repeated, {same_bits} with the same bits, {different} with "
          "other numbers")
    if different:
        print("book: if that was intended, increase EDITION in book/runs.py and run `make book`")
    return different


def difference(kept, again):
    """What differs, or None."""
    if kept["params_hash"] == again["params_hash"] and kept["trace_hash"] == again["trace_hash"]:
        return None
    rows = [(name, kept[name], again[name], SECONDS_TOLERANCE) for name in ("seconds", "steps")]
    if kept["test"]:
        rows.append(("test loss", kept["test"]["loss"], again["test"]["loss"], LOSS_TOLERANCE))
    for name, old, new, tolerance in rows:
        if abs(new - old) > tolerance * abs(old):
            return f"{name} {new:g} instead of {old:g}"
    return None
