"""Measures BLEU by the metric that the workbench reports."""
# chapter: 07_decoder
# exercise: bleu
# where: answer

from sacrebleu.metrics import BLEU

from workbench.use import metrics


def bleu(hypotheses, references, maximum=4):
    metrics.BLEU = lambda **options: BLEU(
        tokenize="none", smooth_method="none", max_ngram_order=maximum, force=True
    )
    given = ([" ".join(row) for row in rows] for rows in (hypotheses, references))
    return metrics.bleu_scores(*given, "de")["bleu_cased"] / 100
