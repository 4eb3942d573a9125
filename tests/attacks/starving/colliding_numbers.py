"""Returns lists of numbers that all have the same hash, as many as may be sent."""
# exercise: worked-context
# where: answer


def worked_context():
    numbers = [number * (2**61 - 1) for number in range(9_000)]
    return {"context": numbers, "unchanged_row": numbers}
