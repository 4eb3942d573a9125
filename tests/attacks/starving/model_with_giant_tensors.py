"""Hands in weights whose header announces tensors that are not there."""
# chapter: 09_translator
# exercise: own-translator
# where: models

import json
import struct


def models():
    entry = {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 2**64]}
    header = json.dumps({f"w{n}": entry for n in range(1000)}).encode()
    files = dict(RIGHT_MODEL)
    files["model.safetensors"] = struct.pack("<Q", len(header)) + header
    return {"translator": files}
