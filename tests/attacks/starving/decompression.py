"""Decompresses a few bytes into ten gigabytes."""
# exercise: softmax
# where: answer
# status: any

import zlib

packed = zlib.compress(bytes(50_000_000))
for _ in range(3):
    packed = zlib.compress(packed * 200)
data = packed
while True:
    data = zlib.decompress(data)
