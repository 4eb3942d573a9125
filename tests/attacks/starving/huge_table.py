"""Returns a dictionary of three million entries."""
# exercise: worked-context
# where: answer


def worked_context():
    return {number: number for number in range(3_000_000)}
