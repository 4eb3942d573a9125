"""Hands in a model whose header lists a hundred thousand tensors."""
# exercise: own-translator
# where: models
# chapter: 09_translator

import json
import struct


def models():
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": entry for number in range(100_000)}).encode()
    files = dict(RIGHT_MODEL)
    files["model.safetensors"] = struct.pack("<Q", len(header)) + header
    return {"translator": files}
