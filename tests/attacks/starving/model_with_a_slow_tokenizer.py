"""Hands in a tokenizer whose expressions take for ever, or name themselves."""
# chapter: 09_translator
# exercise: own-translator
# where: models

import json


def models():
    files = dict(RIGHT_MODEL)
    tokenizer = json.loads(files["tokenizer.json"])
    tokenizer["normalizer"] = {
        "type": "Replace",
        "pattern": {"Regex": "(((a|aa)+)+)+$"},
        "content": "a" * 100_000,
    }
    files["tokenizer.json"] = json.dumps(tokenizer).encode()
    return {"translator": files}
