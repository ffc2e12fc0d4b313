"""Repeats cheap runs and compares them with the results that the book was made of."""
import runs

# With the same instructions (runs.PINNED) bits are the same, except those of oneDNN, which adds in
# another order on other processors. Otherwise virtual times are still the same, and what was learnt
# differs in the last digits, which training amplifies.
SECONDS_TOLERANCE, LOSS_TOLERANCE = 0.01, 0.1


def cost(result):
    """Processor seconds, or time on the clock where they were not measured."""
    return result.get("processor_seconds", result["cost_seconds"])


def cheapest(every, results, budget):
    """Runs with a result whose cost adds up to at most `budget` seconds, the cheapest first."""
    made = {run.key: (cost(results.get(run)), run) for run in every
            if not run.measured and results.get(run)}
    chosen = []
    for seconds, run in sorted(made.values(), key=lambda item: (item[0], item[1].key)):
        budget -= seconds
        if budget < 0:
            break
        chosen.append(run)
    return chosen


def repeat(program, every, results, budget):
    """Prints a line per run that differs; their number."""
    chosen = cheapest(every, results, budget)
    different, same_bits = 0, 0
    for run in chosen:
        kept, again = results.get(run), runs.execute(program, run)
        same_bits += kept["result"]["params_hash"] == again["result"]["params_hash"]
        problem = difference(kept, again)
        if problem:
            different += 1
            print(f"{problem}: {run.command}", flush=True)
    print(f"book: {len(chosen)} runs repeated, {same_bits} with the same bits, {different} with "
          "other numbers")
    if different:
        print("book: if that was intended, increase EDITION in book/runs.py and run `make book`")
    return different


def owes_bits(kept, again):
    """Whether both runs must have given the same bits."""
    same = kept.get("instructions") == again["instructions"]  # not recorded in old results
    return same and kept["result"]["engine"] != "onednn"


def difference(kept, again):
    """What differs, or None."""
    before, now = kept["result"], again["result"]
    if all(before[name] == now[name] for name in ("params_hash", "trace_hash")):
        return None
    if owes_bits(kept, again):
        return "other bits"
    rows = [(name, before[name], now[name], SECONDS_TOLERANCE) for name in ("seconds", "steps")]
    rows.append(("test loss", before["test"]["loss"], now["test"]["loss"], LOSS_TOLERANCE))
    for name, old, new, tolerance in rows:
        if old is not None and abs(new - old) > tolerance * abs(old):
            return f"{name} {new:g} instead of {old:g}"
    return None
