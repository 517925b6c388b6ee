"""
Model cards, from what training and evaluation measured. What was not measured is called so.

`python -m hf_storyend.hub.card hub_cards results/table1` writes the cards of all systems: of the runs of a published
comparison, and of the systems that it lacks before any training.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..evaluation.ablation_results import Ablations
from ..evaluation.gender_swap_result import GenderSwap
from ..evaluation.notes import NOTES, EvaluationNote, parse_notes, read_notes
from ..evaluation.results import METRIC_TITLES, Evaluation, current_metrics, model_index
from ..pretrained import EXAMPLE_STORIES
from ..systems import SYSTEMS, System, find_system
from ..terminal import printable
from .learning_curve import learning_curve, published_learning_curve
from .run_facts import RunFacts

# The model of the package, which its card loads by this and not by a name.
DEFAULT_MODEL = "hf_storyend.default_model()"
_MY_MODEL = "my_model"
# The line of a card's code that a push rewrites; cards of 0.1 had a placeholder instead.
_NAME_LINE = re.compile(r'^name = ".*"$', re.MULTILINE)
_OLD_PLACEHOLDER = "OWNER/NAME"
_NOT_MEASURED = "not measured"
_SPLITS = ("validation", "test")
_OF_NO_SPLIT = ("cloze_accuracy", "cloze_accuracy_normalised")
_SETTINGS = ("story_encoder", "knowledge", "copy", "tail_pointer")
# What means something in Markdown, in the middle of a line.
_MARKUP = re.compile(r"[\\`*\[\]|!&]|_(?=\W|$)|(?<!\w)_|://|@")
_MAX_CELL = 300
_MAX_LINE = 1000
_KNOWLEDGE_NAMES = {"graph_attention": "graph attention", "contextual_attention": "contextual attention", None: None}


def render_card(
    system_name: str,
    run: dict[str, Any] | None = None,
    validation: dict[str, float] | None = None,
    evaluations: Sequence[EvaluationNote] = (),
    name: str | None = None,
    curve: str | None = None,
) -> str:
    """
    Return the text of a model card, with its metadata.

    Args:
        system_name: The system, one of `SYSTEMS`.
        run: The entry `run` of the `metrics.json` of the training run.
        validation: Metrics on the validation split at the end of that run.
        evaluations: Later evaluations; one of the validation split takes the place of `validation`.
        name: What the model is loaded by: a directory or a name on the Hub; default: the directory of the run.
        curve: The learning curve as Markdown, from `learning_curve`.
    """
    system, run = find_system(system_name), run or {}
    for metrics in (validation or {}, *(note.metrics for note in evaluations)):
        _check_numbers(metrics)
    facts = RunFacts.of(run)
    columns = _columns(facts, validation or {}, evaluations)
    ablations = [note.ablations for note in evaluations if note.ablations]
    # Story Cloze questions are of no split: whichever evaluation asked them, the answers are the model's.
    cloze = {name: value for column in columns for name, value in column.metrics.items() if name in _OF_NO_SPLIT}
    swaps = [note.gender_swap for note in evaluations if note.gender_swap]
    card = ModelCard.from_template(
        _metadata(system, facts, columns, _examples(evaluations)),
        template_path=str(files("hf_storyend.hub_cards") / "template.md"),
        name=_loaded_by(name or _directory_of(run)),
        in_package=name == DEFAULT_MODEL,
        story=EXAMPLE_STORIES[0],
        title=system.paper_name or system.name,
        system=system.name,
        description=system.description,
        paper_name=system.paper_name,
        knowledge=_KNOWLEDGE_NAMES[system.knowledge],
        copy=system.copy,
        tail_pointer=system.tail_pointer,
        facts=facts,
        stories=_code(facts.stories),
        sources="\n".join(f"- {line}" for line in facts.describe_sources()),
        training=_table({"": _training_facts(run, facts)}),
        curve=curve,
        evaluation=_table({column.title: _measured({**cloze, **column.metrics}) for column in columns}),
        notes="\n".join(f"- {_plain(column.note)}" for column in columns if column.note),
        ablations=_escaped(Ablations.from_dict(ablations[-1])).to_markdown() if ablations else None,
        gender_swap=_escaped_lines(GenderSwap.from_dict(swaps[-1]).to_markdown()) if swaps else None,
        hardware=_plain(f"{run.get('num_processes')} x {run.get('device')}") if run else _NOT_MEASURED,
        hours=_plain(facts.training_time()),
        carbon=_NOT_MEASURED,
    )
    return str(card).rstrip() + "\n"


def card_of(folder: str | Path, name: str | None = None) -> str:
    """
    Return the card of a model directory: its README.md if somebody wrote or changed it, else a new one.

    Args:
        folder: The directory.
        name: What the model is loaded by, for the code of the card; default: the name of the directory.
    """
    readme = Path(folder) / "README.md"
    if not readme.is_file():
        return render_card_of(folder, name)
    text = readme.read_text(encoding="utf-8")
    if text == _card_of_training(Path(folder)):
        return render_card_of(folder, name)
    return text if name is None else _renamed(text, name)


def render_card_of(folder: str | Path, name: str | None = None) -> str:
    """
    Return a new card for a model directory.

    Its numbers are those of `metrics.json`, which training writes, and of the evaluations of these weights, wherever
    `storyend evaluate --output_dir` wrote them.

    Args:
        folder: The directory.
        name: What the model is loaded by, for the code of the card; default: the name of the directory.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise ValueError(f"`{folder}` is no model: it has no config.json.")
    measured = _read_json(folder / "metrics.json")
    run = measured.get("run")
    system_name = run["system"] if run else _system_of(_read_json(folder / "config.json")).name
    evaluations = [*_evaluation_beside(folder), *read_notes(folder)]
    # A note is of the same evaluation as the file beside it, or of a later one.
    latest = {(note.dataset_id, note.split): note for note in evaluations}
    return render_card(
        system_name,
        run,
        measured.get("validation"),
        list(latest.values()),
        name or folder.resolve().name,
        learning_curve(folder),
    )


def render_published_card(folder: str | Path) -> str:
    """
    Return the card of a row that a comparison has published, from its `metrics.json`, `evaluations.json` and log.

    Args:
        folder: The directory of the row, `rows/ROW`.
    """
    folder = Path(folder)
    measured = _read_json(folder / "metrics.json")
    if "run" not in measured:
        raise ValueError(f"`{folder}` is no published row: it has no metrics.json of a run.")
    notes = parse_notes(folder / NOTES)
    curve = published_learning_curve(folder)
    return render_card(measured["run"]["system"], measured["run"], measured["validation"], notes, _MY_MODEL, curve)


def _card_of_training(folder: Path) -> str | None:
    """Return the card that training wrote, None if there was no run or its files are not readable."""
    try:
        measured = _read_json(folder / "metrics.json")
        return render_card(measured["run"]["system"], measured["run"], measured["validation"])
    except (ValueError, KeyError, TypeError):
        return None


def _evaluation_beside(folder: Path) -> list[EvaluationNote]:
    """Return the evaluation whose files were written into the directory of the model."""
    content, index = _read_json(folder / "evaluation.json"), folder / "model_index.yaml"
    if not content:
        return []
    text = index.read_text(encoding="utf-8") if index.is_file() else ""
    results = _parse_results(text) if text else []
    first = results[0] if results else None
    return [
        EvaluationNote(
            dataset_id=first.dataset_name if first else "unknown",
            split=(first.dataset_split if first else None) or "test",
            index=text,
            metrics=content.get("metrics") or {},
            num_stories=int(content.get("num_stories") or 0),
            ablations=content.get("ablations"),
            gender_swap=content.get("gender_swap"),
        )
    ]


@dataclass(frozen=True)
class _Column:
    """A column of the table of numbers."""

    title: str
    metrics: dict[str, float]
    results: list[EvalResult]
    note: str = ""


def _columns(facts: RunFacts, validation: dict[str, float], notes: Sequence[EvaluationNote]) -> list[_Column]:
    """Return validation and test, whatever was measured, and then splits of other names and of other stories."""
    own = facts.results_name if facts.is_known else (notes[0].dataset_id if notes else None)
    columns = {(own, split): _Column(split, {}, []) for split in _SPLITS}
    columns[own, "validation"] = _Column("validation", validation, _validation_results(facts, validation))
    for note in notes:
        split = note.split or "test"
        title = split if note.dataset_id == own else f"{split} of {note.dataset_id}"
        results = _parse_results(note.index) if note.index else []
        columns[note.dataset_id, split] = _Column(title, note.metrics, results, _describe_note(title, note))
    return list(columns.values())


def _describe_note(title: str, note: EvaluationNote) -> str:
    parts = [f"{note.num_stories:,} stories"] if note.num_stories else []
    parts += [f"decoding: {note.decoding}"] if note.decoding else []
    parts += [f"measured on {note.date}"] if note.date else []
    return f"{title}: {'; '.join(parts)}" if parts else ""


def _examples(notes: Sequence[EvaluationNote]) -> dict[str, str]:
    return {story: ending for note in notes for story, ending in note.examples.items()}


def _directory_of(run: dict[str, Any]) -> str:
    """Return the name of the directory that a run wrote, without its path."""
    options = run.get("options")
    return Path(str(options.get("output_dir") or "")).name if isinstance(options, dict) else ""


def _loaded_by(name: str) -> str:
    """Return the code that a card loads its model by: a string, or the package's own function."""
    return name if name == DEFAULT_MODEL else json.dumps(_one_line(name) or _MY_MODEL, ensure_ascii=False)


def _renamed(text: str, name: str) -> str:
    """Return a card whose code loads the model by another name."""
    line = f"name = {_loaded_by(name)}"
    return _NAME_LINE.sub(lambda _: line, text).replace(_OLD_PLACEHOLDER, name)


def _training_facts(run: dict[str, Any], facts: RunFacts) -> dict[str, str]:
    """Return what is known about a run, by the names of the rows of the card."""
    options, versions = run.get("options") or {}, run.get("versions") or {}
    parameters = run.get("parameters")
    known = {
        "training stories": None if facts.num_train is None else f"{facts.num_train:,}",
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
    return {name: _NOT_MEASURED if value is None else str(value) for name, value in known.items()}


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


def _escaped(ablations: Ablations) -> Ablations:
    """Escape what is text in ablations, as `_plain` does."""
    subsets = [
        replace(
            subset,
            name=_plain(subset.name),
            rows=tuple(replace(row, name=_plain(row.name)) for row in subset.rows),
        )
        for subset in ablations.subsets
    ]
    return replace(ablations, subsets=tuple(subsets), notes=tuple(map(_plain, ablations.notes)))


def _escaped_lines(text: str) -> str:
    """Escape bullets of Markdown line by line, as `_plain` does."""
    lines = (" ".join(printable(line.removeprefix("- ")).split())[:_MAX_LINE] for line in text.splitlines())
    return "\n".join("- " + _MARKUP.sub(r"\\\g<0>", line).replace("<", "&lt;") for line in lines)


def _metadata(system: System, facts: RunFacts, columns: list[_Column], examples: dict[str, str]) -> ModelCardData:
    tags = ["story-ending-generation", "story-generation", "commonsense", "arxiv:1808.10113", system.name]
    results = [result for column in columns for result in column.results]
    return ModelCardData(
        language="en",
        license=facts.licence,
        library_name="transformers",
        # The task of `custom_pipelines`, so that the snippet that the Hub shows loads the pipeline.
        pipeline_tag="text-generation",
        tags=tags,
        datasets=[facts.dataset] if facts.dataset else None,
        metrics=["perplexity", "bleu", "rouge"],
        model_name=system.name if results else None,
        eval_results=results or None,
        widget=[_widget_example(story, examples.get(story)) for story in EXAMPLE_STORIES],
    )


def _widget_example(story: str, ending: str | None) -> dict[str, Any]:
    """Return an example for the Hub's page; it shows the ending without running the model."""
    example: dict[str, Any] = {"example_title": story.partition(".")[0], "text": story}
    return example if ending is None else {**example, "output": {"text": ending}}


def _validation_results(facts: RunFacts, metrics: dict[str, float]) -> list[EvalResult]:
    known = {name: value for name, value in metrics.items() if name in METRIC_TITLES}
    if not known:
        return []
    return _parse_results(model_index(Evaluation(known), "model", facts.results_name, "validation"))


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


def write_system_cards(folder: str | Path, published: str | Path | None = None) -> list[Path]:
    """
    Write `<system>.md` for every system.

    Args:
        folder: Directory to write to.
        published: A published comparison, whose runs the cards tell of. Cards of systems without a row there say what
            is known before training.
    """
    paths = [Path(folder) / f"{name}.md" for name in SYSTEMS]
    for name, path in zip(SYSTEMS, paths, strict=True):
        row = None if published is None else Path(published) / "rows" / name
        text = render_published_card(row) if row is not None and row.is_dir() else render_card(name)
        path.write_text(text, encoding="utf-8")
    return paths


if __name__ == "__main__":
    write_system_cards(*sys.argv[1:3])
