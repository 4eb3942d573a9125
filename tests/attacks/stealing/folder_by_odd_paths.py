"""Names folders in ways that some systems read as a way up."""
# chapter: 09_translator
# exercise: own-translator
# where: answer

NAMES = iter(["~", "..\\..\\ada", "translator/../../ada", "//etc", "C:\\", "\0", "."])


def my_model():
    return next(NAMES, "..")
