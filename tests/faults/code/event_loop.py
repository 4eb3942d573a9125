"""Runs an event loop of its own."""
# exercise: softmax
# where: before

import asyncio


async def wait():
    await asyncio.sleep(0.01)


asyncio.run(wait())
