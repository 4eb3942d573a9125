"""Nine English sentences, their translations, and where the translator looks."""

from tools.site.figure_data.heads import look, translations

VERBS = ("sees", "helps", "invites")
NOUNS = ("king", "queen", "girl")


def data() -> dict:
    """Give, for each verb and noun, words and weights: means of the last layers' heads.

    looks: rows are the words that are written, columns the English words (decoder).
    reads: rows and columns are the English words (encoder).
    instead: verb -> how likely each written word is after the same words, when the
        English sentence has this verb.
    """
    pairs = [(verb, noun) for verb in VERBS for noun in NOUNS]
    english = [f"Anna {verb} the clever {noun}." for verb, noun in pairs]
    found = {}
    for pair, text, german in zip(pairs, english, translations(english), strict=True):
        source, written, weights, sure = look(text, german)
        found["-".join(pair)] = {
            "source": source,
            "written": written[:-1],
            "looks": weights["cross"][-1].mean(0)[:-1].tolist(),
            "reads": weights["encoder"][-1].mean(0).tolist(),
            "sure": sure[:-1].tolist(),
            "instead": {
                verb: look(text.replace(pair[0], verb), german)[3][:-1].tolist()
                for verb in VERBS
                if verb != pair[0]
            },
        }
    return {"verbs": VERBS, "nouns": NOUNS, "sentences": found}
