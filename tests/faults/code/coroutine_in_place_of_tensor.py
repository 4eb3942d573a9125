"""Writes an async function."""
# exercise: softmax
# where: answer
# lost: softmax
# says: coroutine


async def softmax(scores):
    return scores
