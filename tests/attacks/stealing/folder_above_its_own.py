"""Names another student's folder, on the way up and down again, as its own model."""
# chapter: 09_translator
# exercise: own-translator
# where: answer


def my_model():
    return "../../ada/09_translator/translator"
