"""BLEU by sacrebleu: corpus level, 13a words, cumulative, in lower case and cased."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU, BLEUScore

_MAX_ORDER = 2
# name: (highest order of n-grams, whether case is ignored)
BLEU_KINDS = {
    "bleu_1": (1, True),
    "bleu_2": (2, True),
    "bleu_1_cased": (1, False),
    "bleu_2_cased": (2, False),
}


def bleu_metric(max_order: int, lower_case: bool, references: Sequence[str] | None = None) -> BLEU:
    """sacrebleu's metric, with the n-grams of the references counted beforehand if they are given."""
    return BLEU(
        lowercase=lower_case,
        tokenize="13a",
        max_ngram_order=max_order,
        # Published texts have spaces around marks, which 13a makes no difference of: no warning is needed.
        force=True,
        references=None if references is None else [list(references)],
    )


class CorpusBleu:
    """BLEU-1 and BLEU-2 of many systems against the same references, in percent."""

    def __init__(self, references: Sequence[str]):
        self._metrics = {lower_case: bleu_metric(_MAX_ORDER, lower_case, references) for lower_case in (True, False)}

    @property
    def signatures(self) -> dict[str, str]:
        """What sacrebleu says of how each score is computed; there after the first score."""
        return {name: str(self._metrics[lower].get_signature()) for name, (_, lower) in BLEU_KINDS.items()}

    def scores(self, endings: Sequence[str]) -> dict[str, float]:
        """The four scores of a system's endings."""
        counts = {lower: metric.corpus_score(list(endings), None) for lower, metric in self._metrics.items()}
        return {name: _score(counts[lower], order) for name, (order, lower) in BLEU_KINDS.items()}


def _score(counts: BLEUScore, order: int) -> float:
    """The score of a lower order from the counts that a higher one was made of."""
    return BLEU.compute_bleu(
        correct=list(counts.counts[:order]),
        total=list(counts.totals[:order]),
        sys_len=counts.sys_len,
        ref_len=counts.ref_len,
        smooth_method="exp",
        max_ngram_order=order,
    ).score
