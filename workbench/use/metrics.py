"""How good translations are: BLEU by sacrebleu with its signature, and exact match.

Two figures are in use for the same translations, and they differ by points. *Cased* is
sacrebleu's own, on raw text. *Lowercased, tokenised* is what most papers on Multi30k
report: both sides lowercased, then normalised and tokenised by the rules of Moses.
"""

from __future__ import annotations

import importlib.metadata
from functools import cache

import numpy as np
from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from workbench.errors import WorkbenchError
from workbench.use.comparison import Judged

RAW, LOWERCASED = "raw", "lowercased"


def lowercase_and_tokenise(text: str, language: str) -> str:
    """Do to a sentence what was done to Multi30k's files named lc.norm.tok.

    Args:
        text: one sentence, raw.
        language: of the text, such as "de".

    Returns:
        Its tokens with one space between them; quotes are written as &quot;.
    """
    normalizer, tokenizer = _moses(language)
    return tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True)


@cache
def _moses(language: str) -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    return MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)


def bleu_scores(
    hypotheses: list[str], references: list[str], language: str, form: str = RAW
) -> dict[str, float | dict[str, str]]:
    """Compute corpus BLEU, from 0 to 100.

    Args:
        hypotheses: translations.
        references: the right ones, in the same order.
        language: of both, such as "de".
        form: "raw", or "lowercased" if the texts are lowercased and tokenised already;
            a cased score cannot be had from these.

    Returns:
        "bleu_cased" (raw text only), "bleu_lowercased_tokenised", and "signatures":
        how each was counted.

    Raises:
        WorkbenchError: no sentences, or not as many on both sides.
    """
    scores: dict[str, float | dict[str, str]] = {}
    signatures = {}
    for name, (bleu, found, expected, how) in _counted(
        hypotheses, references, language, form
    ).items():
        scores[name] = bleu.corpus_score(found, [expected]).score
        signatures[name] = f"{bleu.get_signature()}{how}"
    return {**scores, "signatures": signatures}


def judge_bleu(
    hypotheses: list[str], references: list[str], language: str, form: str = RAW
) -> dict[str, Judged]:
    """Count what each sentence adds to corpus BLEU; arguments as for ``bleu_scores``.

    A row has the n-grams that are right and all that there are, of one to four words,
    and the lengths of both sides.
    """
    judged = {}
    counted = _counted(hypotheses, references, language, form)
    for name, (bleu, found, expected, _) in counted.items():
        bleu.effective_order = True  # no warning about single sentences
        rows = []
        for pair in zip(found, expected, strict=True):
            of = bleu.sentence_score(pair[0], [pair[1]])
            rows.append([*of.counts, *of.totals, of.sys_len, of.ref_len])
        judged[name] = Judged(np.array(rows), _bleu_of)
    return judged


def _bleu_of(sums: np.ndarray) -> float:
    right, there, (found, expected) = sums[:4], sums[4:8], sums[8:]
    score = BLEU.compute_bleu(
        right.tolist(), there.tolist(), int(found), int(expected), "exp"
    )
    return score.score


def _counted(
    hypotheses: list[str], references: list[str], language: str, form: str
) -> dict[str, tuple[BLEU, list[str], list[str], str]]:
    """Give the ways to count BLEU: by whom, of which texts, and how they were made."""
    _check(hypotheses, references)
    counted = {}
    how = f"|moses:sacremoses-{importlib.metadata.version('sacremoses')}-{language}"
    if form == RAW:
        counted["bleu_cased"] = BLEU(), hypotheses, references, ""
        hypotheses, references = (
            [lowercase_and_tokenise(each, language) for each in texts]
            for texts in (hypotheses, references)
        )
    elif form == LOWERCASED:
        how = "|moses:before"
    else:
        raise WorkbenchError(f"form must be 'raw' or 'lowercased', not {form!r}")
    # force: sacrebleu would warn that the text looks tokenised, as it is to be
    lowered = BLEU(lowercase=True, tokenize="none", force=True)
    counted["bleu_lowercased_tokenised"] = lowered, hypotheses, references, how
    return counted


def exact_match(hypotheses: list[str], references: list[str]) -> float:
    """The share of translations that are the reference, in percent.

    Spaces at the ends do not count; everything else does.

    Raises:
        WorkbenchError: no sentences, or not as many on both sides.
    """
    _check(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return 100 * sum(a.strip() == b.strip() for a, b in pairs) / len(references)


def _check(hypotheses: list[str], references: list[str]) -> None:
    if not references or len(hypotheses) != len(references):
        raise WorkbenchError(
            f"{len(hypotheses)} translations and {len(references)} references: there "
            "must be as many of both, and at least one"
        )
