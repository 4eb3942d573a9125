"""Names a folder anywhere on the machine as its trained model."""
# chapter: 09_translator
# exercise: own-translator
# where: answer


def my_model():
    return f"{CLASS}/submitted/ada/09_translator/translator"
