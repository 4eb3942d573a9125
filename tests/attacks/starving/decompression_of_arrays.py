"""Loads a compressed archive of arrays that is a thousand times its size."""
# exercise: softmax
# where: answer
# status: any

import io

import numpy

archive = io.BytesIO()
numpy.savez_compressed(archive, **{f"a{n}": numpy.zeros(10_000_000) for n in range(3)})
kept = []
while True:
    archive.seek(0)
    loaded = numpy.load(archive)
    kept.append([loaded[name] for name in loaded])
