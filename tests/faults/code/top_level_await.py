"""Uses await outside of a function, which notebooks allow."""
# exercise: softmax
# where: before

import asyncio

await asyncio.sleep(0.01)
