"""
Loss and perplexity of the endings alone, for transformers' Trainer.

Its `eval_loss` is the training objective: the loss of the endings plus `config.encoder_loss_weight` times that of the
context sentences (with `label_smoothing_factor`, the smoothed loss of the endings). These two functions report the
endings' own loss beside it:

    Trainer(..., compute_metrics=ending_metrics, preprocess_logits_for_metrics=label_log_likelihoods)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

_IGNORED = -100


def label_log_likelihoods(logits: Any, labels: torch.Tensor) -> torch.Tensor:
    """
    Return the log-likelihood of each label [B, T], 0 at ignored ones: so much less to gather than logits [B, T, V].

    Args:
        logits: What the model returned beside its loss, the logits first.
        labels: The endings, `-100` at padding.
    """
    scores = logits[0] if isinstance(logits, (tuple, list)) else logits
    if scores.ndim != 3:
        raise ValueError(
            "`label_log_likelihoods` needs logits; `predict_with_generate=True` replaces them by generated ids. "
            "Evaluate without it."
        )
    chosen = scores.float().log_softmax(dim=2).gather(2, labels.clamp(min=0).unsqueeze(2)).squeeze(2)
    return chosen.masked_fill(labels == _IGNORED, 0.0)


def ending_metrics(prediction: Any) -> dict[str, float]:
    """Return `ending_loss`, the mean negative log-likelihood of a word of the endings, and its `perplexity`."""
    is_word = np.asarray(prediction.label_ids) != _IGNORED
    loss = -float(np.asarray(prediction.predictions, dtype=np.float64)[is_word].mean())
    return {"ending_loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf}
