"""The automatic part of Table 1 of the paper (arXiv version), to stand beside what is measured."""

from __future__ import annotations

# System: perplexity (sampled softmax), BLEU-1, BLEU-2, the last two in percent.
PAPER_TABLE: dict[str, tuple[float, float, float]] = {
    "seq2seq": (18.97, 18.64, 4.10),
    "hlstm": (17.26, 24.59, 7.71),
    "hlstm-copy": (19.93, 24.69, 7.83),
    "hlstm-msa-ga": (15.75, 25.88, 8.09),
    "hlstm-msa-ca": (12.53, 25.14, 8.25),
    "ie": (11.04, 25.14, 8.13),
    "ie-msa-ga": (9.72, 25.66, 8.54),
    "ie-msa-ca": (8.79, 26.82, 9.36),
}
