"""Returns an integer of ten million digits."""
# exercise: worked-context
# where: answer


def worked_context():
    return {"context": 1 << 33_000_000, "unchanged_row": 10**5000}
