"""Hands in a configuration of a model that no machine can hold."""
# chapter: 09_translator
# exercise: own-translator
# where: models

import json


def models():
    files = dict(RIGHT_MODEL)
    config = json.loads(files["config.json"])
    config |= {"layers": 10**9, "d_model": 10**12, "vocab_size": 10**18}
    files["config.json"] = json.dumps(config).encode()
    return {"translator": files}
