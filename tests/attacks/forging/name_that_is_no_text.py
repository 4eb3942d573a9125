"""Returns a path object and a text that is more than a text, for a folder's name."""
# chapter: 09_translator
# exercise: own-translator
# where: answer

import pathlib


class Name(str):
    def replace(self, *_):
        return "/etc"


def my_model():
    return Name("translator") if Name.replace else pathlib.Path("/")
