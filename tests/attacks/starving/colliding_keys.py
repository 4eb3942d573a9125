"""Returns a dictionary whose keys all have the same hash."""
# exercise: worked-context
# where: answer


def worked_context():
    keys = [number * (2**61 - 1) for number in range(1000)]
    return dict.fromkeys(keys, 0)
