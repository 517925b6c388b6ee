"""
Model cards, from what training and evaluation measured. What was not measured is called so.

`python -m hf_storyend.hub.card hub_cards` writes the cards of all systems before any training.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..evaluation.ablation_results import Ablations
from ..evaluation.results import METRIC_TITLES, Evaluation, current_metrics, model_index
from ..systems import SYSTEMS, System, find_system
from ..terminal import printable

# Stands for the repository until a push knows its name.
PLACEHOLDER = "OWNER/NAME"
_NOT_MEASURED = "not measured"
_SETTINGS = ("story_encoder", "knowledge", "copy", "tail_pointer")
# What means something in Markdown, in the middle of a line.
_MARKUP = re.compile(r"[\\`*\[\]|!&]|_(?=\W|$)|(?<!\w)_|://|@")
_MAX_CELL = 300
_KNOWLEDGE_NAMES = {"graph_attention": "graph attention", "contextual_attention": "contextual attention", None: None}


def render_card(
    system_name: str,
    run: dict[str, Any] | None = None,
    validation: dict[str, float] | None = None,
    test: dict[str, float] | None = None,
    test_results: list[EvalResult] | None = None,
    ablations: Ablations | None = None,
) -> str:
    """
    Return the text of a model card, with its metadata.

    Args:
        system_name: The system, one of `SYSTEMS`.
        run: The entry `run` of the `metrics.json` of the training run.
        validation: Metrics on the validation split at the end of that run.
        test: Metrics of an `evaluation.json`.
        test_results: The same as entries of `model-index`.
        ablations: Ablations on the test split.
    """
    system, run = find_system(system_name), run or {}
    for metrics in (validation or {}, test or {}):
        _check_numbers(metrics)
    results = _validation_results(system, run, validation or {}) + (test_results or [])
    card = ModelCard.from_template(
        _metadata(system, run, results),
        template_path=str(files("hf_storyend.hub_cards") / "template.md"),
        repo_id=PLACEHOLDER,
        title=system.paper_name or system.name,
        system=system.name,
        description=system.description,
        paper_name=system.paper_name,
        knowledge=_KNOWLEDGE_NAMES[system.knowledge],
        copy=system.copy,
        tail_pointer=system.tail_pointer,
        data=_code(run.get("data")),
        is_embedded=_is_embedded(run),
        training=_table({"": _training_facts(run)}),
        evaluation=_table({"validation": _measured(validation), "test": _measured(test)}),
        ablations=ablations.to_markdown() if ablations else None,
        hardware=_plain(f"{run.get('num_processes')} x {run.get('device')}") if run else _NOT_MEASURED,
        hours=_plain(f"{run.get('minutes')} minutes") if run else _NOT_MEASURED,
        carbon=_NOT_MEASURED,
    )
    return str(card).rstrip() + "\n"


def card_of(folder: str | Path) -> str:
    """Return the card of a model directory: its README.md or, if there is none, a new one."""
    readme = Path(folder) / "README.md"
    return readme.read_text(encoding="utf-8") if readme.is_file() else render_card_of(folder)


def render_card_of(folder: str | Path) -> str:
    """
    Return a new card for a model directory.

    Its numbers are those of `metrics.json`, which training writes, and of `evaluation.json` and `model_index.yaml`,
    which `storyend evaluate --output_dir` writes, as far as they exist.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise ValueError(f"`{folder}` is no model: it has no config.json.")
    measured, evaluation = _read_json(folder / "metrics.json"), _read_json(folder / "evaluation.json")
    run = measured.get("run")
    system_name = run["system"] if run else _system_of(_read_json(folder / "config.json")).name
    index = folder / "model_index.yaml"
    return render_card(
        system_name,
        run,
        measured.get("validation"),
        evaluation.get("metrics"),
        _parse_results(index.read_text(encoding="utf-8")) if index.is_file() else None,
        Ablations.from_dict(evaluation["ablations"]) if evaluation.get("ablations") else None,
    )


def _training_facts(run: dict[str, Any]) -> dict[str, str]:
    """Return what is known about a run, by the names of the rows of the card."""
    options, versions = run.get("options") or {}, run.get("versions") or {}
    parameters = run.get("parameters")
    facts = {
        "stories": run.get("data"),
        "parameters": None if parameters is None else f"{parameters:,}",
        "updates": run.get("updates"),
        "epochs": run.get("epochs"),
        "batch size per process": options.get("per_device_train_batch_size"),
        "recipe": options.get("recipe"),
        "seed": options.get("seed"),
        "precision": run.get("precision"),
        "stories per second": run.get("stories_per_second"),
        "peak memory, MB": run.get("peak_memory_mb"),
        "library versions": ", ".join(f"{name} {version}" for name, version in versions.items()) or None,
    }
    return {name: _NOT_MEASURED if value is None else str(value) for name, value in facts.items()}


def _table(columns: dict[str, dict[str, str]]) -> str:
    """Return columns with the same rows as a Markdown table."""
    rows = next(iter(columns.values()))
    lines = [_line("", *columns), "| --- |" + " --- |" * len(columns)]
    lines += [_line(row, *(column[row] for column in columns.values())) for row in rows]
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Escape text for Markdown: it is shown as it is, on one line, and can't be a link, a picture, HTML or a row."""
    return _MARKUP.sub(r"\\\g<0>", _one_line(text)).replace("<", "&lt;")


def _code(text: Any) -> str | None:
    """Return text that can stand between backticks."""
    return None if text is None else _one_line(str(text)).replace("`", "'")


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())[:_MAX_CELL]


def _metadata(system: System, run: dict[str, Any], results: list[EvalResult]) -> ModelCardData:
    tags = ["story-ending-generation", "story-generation", "commonsense", "arxiv:1808.10113", system.name]
    return ModelCardData(
        language="en",
        license="apache-2.0" if _is_embedded(run) else "cc-by-sa-4.0",
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=tags,
        datasets=_datasets(run),
        metrics=["perplexity", "bleu", "rouge"],
        model_name=system.name if results else None,
        eval_results=results or None,
    )


def _is_embedded(run: dict[str, Any]) -> bool:
    """Whether a run used the stories of the package. (`prepared` was the option of earlier versions.)"""
    return "options" in run and run["options"].get("data_dir", run["options"].get("prepared")) is None


def _datasets(run: dict[str, Any]) -> list[str] | None:
    """Return the datasets for the Hub's metadata; None where the run does not tell."""
    is_roc = not run or "roc" in str(run.get("data")).lower()
    return ["rocstories"] if is_roc and not _is_embedded(run) else None


def _validation_results(system: System, run: dict[str, Any], metrics: dict[str, float]) -> list[EvalResult]:
    known = {name: value for name, value in metrics.items() if name in METRIC_TITLES}
    if not known:
        return []
    dataset_id = "hf_storyend-embedded" if _is_embedded(run) else str(run.get("data", "unknown"))
    return _parse_results(model_index(Evaluation(known), system.name, dataset_id, "validation"))


def _parse_results(index: str) -> list[EvalResult]:
    data = ModelCard(f"---\n{index}\n---\n").data
    assert isinstance(data, ModelCardData)
    return data.eval_results or []


def _measured(metrics: dict[str, float] | None) -> dict[str, str]:
    metrics = current_metrics(metrics or {})
    return {
        title: f"{metrics[name]:.4g}" if name in metrics else _NOT_MEASURED
        for name, title in METRIC_TITLES.items()
        if name != "stories_per_second"
    }


def _check_numbers(metrics: dict[str, float]) -> None:
    for name, value in metrics.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"The metric `{name}` must be a number; got {value!r:.80}.")


def _system_of(config: dict[str, Any]) -> System:
    # Models of version 0.1 have no tail pointer.
    settings = {"tail_pointer": False, **{name: config[name] for name in _SETTINGS if name in config}}
    for system in SYSTEMS.values():
        if system.settings == settings:
            return system
    raise ValueError(f"No system has the settings {settings} of config.json: write its README.md by hand.")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error


def write_system_cards(folder: str | Path) -> list[Path]:
    """Write `<system>.md` for every system, with what is known before training."""
    paths = [Path(folder) / f"{name}.md" for name in SYSTEMS]
    for name, path in zip(SYSTEMS, paths, strict=True):
        path.write_text(render_card(name), encoding="utf-8")
    return paths


if __name__ == "__main__":
    write_system_cards(sys.argv[1])
