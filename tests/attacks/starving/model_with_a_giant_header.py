"""Hands in weights whose first bytes announce an exabyte of header."""
# chapter: 09_translator
# exercise: own-translator
# where: models

import struct


def models():
    files = dict(RIGHT_MODEL)
    files["model.safetensors"] = struct.pack("<Q", 2**60) + b"{}"
    return {"translator": files}
