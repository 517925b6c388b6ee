"""Results in the two forms that the Hugging Face Hub reads: `model-index` in a model card, and `.eval_results`."""

from __future__ import annotations

from datetime import UTC, datetime

from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml
from huggingface_hub.utils import yaml_dump

from .result import METRIC_TITLES, Evaluation

# What the Hub calls the kinds of metrics; the others go by their own names.
_METRIC_TYPES = {
    "sampled_perplexity": "perplexity",
    "bleu_1": "bleu",
    "bleu_2": "bleu",
    "bleu_1_cased": "bleu",
    "bleu_2_cased": "bleu",
    "rouge_l": "rouge",
    "cloze_accuracy": "accuracy",
    "cloze_accuracy_normalised": "accuracy",
}
# Not about the model, but about the machine or about another metric.
_LEFT_OUT = ("stories_per_second", "sampled_perplexity_std")


def model_index(evaluation: Evaluation, model_name: str, dataset_id: str, split: str) -> str:
    """The block `model-index` of a model card, as YAML; it goes between the `---` lines at the top."""
    results = [
        EvalResult(
            task_type="text-generation",
            task_name="Story ending generation",
            dataset_type=dataset_id,
            dataset_name=dataset_id,
            dataset_split=split,
            metric_type=_METRIC_TYPES.get(name, name),
            metric_name=METRIC_TITLES[name],
            metric_value=round(value, 4),
            metric_args={"signature": evaluation.signatures[name]} if name in evaluation.signatures else None,
        )
        for name, value in _published(evaluation).items()
    ]
    return ModelCardData(model_name=model_name, eval_results=results).to_yaml() + "\n"


def eval_results(evaluation: Evaluation, dataset_id: str) -> str:
    """
    What a model's repository has in `.eval_results/NAME.yaml`: each metric as a task of the dataset `dataset_id`. The
    Hub shows them where that dataset declares itself a benchmark with tasks of these names.
    """
    today = datetime.now(UTC).date().isoformat()
    entries = [
        EvalResultEntry(
            dataset_id=dataset_id,
            task_id=name,
            value=round(value, 4),
            date=today,
            notes=evaluation.signatures.get(name, METRIC_TITLES[name]),
        )
        for name, value in _published(evaluation).items()
    ]
    return yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False)


def _published(evaluation: Evaluation) -> dict[str, float]:
    return {name: value for name, value in evaluation.metrics.items() if name not in _LEFT_OUT}
