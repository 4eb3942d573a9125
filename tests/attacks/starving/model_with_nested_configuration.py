"""Hands in a configuration that is a list in a list, a million deep."""
# chapter: 09_translator
# exercise: own-translator
# where: models


def models():
    files = dict(RIGHT_MODEL)
    files["config.json"] = b"[" * 30_000 + b"]" * 30_000
    files["tokenizer.json"] = b"[" * 1_000_000 + b"]" * 1_000_000
    return {"translator": files}
