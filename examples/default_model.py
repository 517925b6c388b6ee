"""
Make the model that comes with the package, from data that can't come with it:

    python examples/default_model.py --stories rocstories/ --conceptnet conceptnet-assertions-5.7.0.csv.gz \\
        --glove glove.6B.100d.txt --output default_model

Hours on one core. Stopped in whatever way, the same command goes on from where it was. The model is in OUTPUT/model:
weights in half precision, tokenizer, knowledge, and a card with what was measured on validation and test stories.
"""

import argparse
import json
from pathlib import Path

import torch
import yaml

from hf_storyend import IncrementalEncoderForEndingGeneration, StoryEndingPipeline
from hf_storyend.data.stories import embedded_stories
from hf_storyend.evaluation import EvaluateOptions, evaluate
from hf_storyend.half_precision import save_compact
from hf_storyend.hub import render_card_of
from hf_storyend.modeling import IncrementalEncoderTokenizer
from hf_storyend.preparation import PreparationOptions, prepare
from hf_storyend.training import TrainingOptions, TrainingRun

NUM_SHOWN = 20


def train(options: TrainingOptions, stop_after: int | None) -> Path:
    """A run, or its first updates only; returns the directory of its best model so far."""
    with TrainingRun(options) as run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
            if run.state.step == stop_after:
                return Path(options.output_dir) / "best"
        run.finish()
    return Path(options.output_dir)


def train_all(recipe: dict, prepared: Path, output: Path) -> list[Path]:
    """
    The runs of the recipe, each from the model of the one before; those that are done are not done again. Returns the
    directories of their models.
    """
    models: list[Path] = []
    for number, own in enumerate(recipe["runs"], start=1):
        settings = {**recipe["shared"], **own}
        stop_after = settings.pop("stop_after", None)
        directory = output / f"run_{number}"
        done = directory / "best" if stop_after else directory
        if not ((directory / f"checkpoint-{stop_after}").is_dir() or (directory / "metrics.json").is_file()):
            start = str(models[-1]) if models else None
            options = TrainingOptions(
                prepared=str(prepared), output_dir=str(directory), model_name_or_path=start, **settings
            )
            done = train(options, stop_after)
        models.append(done)
    return models


def average(models: list[Path], output: Path, scale: float, shift: float) -> None:
    """
    A model whose weights are the mean of those of several that were trained on from one another. The scores of words
    that are generated, not copied, are multiplied by `scale` and raised by `shift`.
    """
    networks = [IncrementalEncoderForEndingGeneration.from_pretrained(path, dtype=torch.float32) for path in models]
    weights = [network.state_dict() for network in networks]
    mean = {name: torch.stack([one[name] for one in weights]).mean(dim=0) for name in weights[-1]}
    mean["lm_head.weight"] *= scale
    mean["lm_head.bias"] = scale * mean["lm_head.bias"] + shift
    networks[-1].load_state_dict(mean)
    networks[-1].save_pretrained(output)
    IncrementalEncoderTokenizer.from_pretrained(models[-1]).save_pretrained(output)


def describe_runs(recipe: dict, output: Path) -> str:
    """What the card's table, which is about the last run, does not tell."""
    num_updates, num_epochs, num_seconds = [], 0.0, 0.0
    for number, run in enumerate(recipe["runs"], start=1):
        lines = (output / f"run_{number}" / "train_log.jsonl").read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines]
        # The trainer may have gone on for some updates before it was stopped.
        num_steps = run.get("stop_after") or entries[-1]["step"]
        last = [entry for entry in entries if entry["step"] <= num_steps][-1]
        num_updates.append(f"{last['step']:,}")
        num_epochs += last["epoch"]
        num_seconds += last["elapsed"]
    averaged, calibration = ", ".join(map(str, recipe["averaged_runs"])), recipe["calibration"]
    return (
        f"The table is about the last of {len(num_updates)} runs, each of which started from the one before\n"
        "(`examples/default_model.yaml` in the source of `hf_storyend`). Their updates: "
        f"{', '.join(num_updates)};\n{num_epochs:.1f} epochs and {num_seconds / 3600:.1f} hours in all. "
        f"The weights are the mean of those after runs\n{averaged}; scores of words that are generated are multiplied "
        f"by {calibration['scale']} and raised by {calibration['shift']}.\n"
    )


def measure(model: Path, prepared: Path, cloze: str | None, last_run: Path, output: Path) -> dict[str, float]:
    """What the card tells, into the directory of the model it is about: facts of the last run, validation and test."""
    stories = {"model": str(model), "data_dir": str(prepared)}
    validation = evaluate(EvaluateOptions(**stories, split="validation", bootstrap_samples=0))
    facts = json.loads((last_run / "metrics.json").read_text(encoding="utf-8"))["run"]
    measured = {"run": facts, "validation": validation.metrics}
    (output / "metrics.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    names = {"name": "default model", "dataset_id": "rocstories"}
    return evaluate(EvaluateOptions(**stories, cloze=cloze, output_dir=str(output), **names)).metrics


def write_card(model: Path, measured: Path, runs: str) -> None:
    """The card that the numbers make, with endings that nobody picked: those of the first embedded stories."""
    stories = embedded_stories()[:NUM_SHOWN]
    pipeline = StoryEndingPipeline(
        model=IncrementalEncoderForEndingGeneration.from_pretrained(model),
        tokenizer=IncrementalEncoderTokenizer.from_pretrained(model),
    )
    rows = [
        f"| {' '.join(story['context'])} | {pipeline(tuple(story['context']))[0]['ending']} |" for story in stories
    ]
    endings = "\n".join(("| story | ending |", "| --- | --- |", *rows))
    intro = f"The first {NUM_SHOWN} stories that come with `hf_storyend`, which it was not trained on."
    text = f"## {NUM_SHOWN} endings, not picked\n\n{intro}\n\n{endings}\n\n## Limitations"
    card = render_card_of(measured).replace("## Limitations", text)
    card = card.replace("## Knowledge and sources", f"{runs}\n## Knowledge and sources")
    (model / "README.md").write_text(card, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--stories", required=True, help="what `storyend prepare --stories` takes")
    parser.add_argument("--conceptnet", required=True, nargs="+", help="files with triples")
    parser.add_argument("--glove", required=True, help="word vectors, of 100 numbers to stay small")
    parser.add_argument("--cloze", help="Story Cloze file, to answer its questions, too")
    parser.add_argument("--recipe", default=Path(__file__).with_suffix(".yaml"), type=Path, help="options of the runs")
    parser.add_argument("--output", default=Path("default_model"), type=Path, help="directory for all that is made")
    arguments = parser.parse_args()
    recipe = yaml.safe_load(arguments.recipe.read_text(encoding="utf-8"))

    # The card names the stories after this directory.
    prepared, model = arguments.output / Path(arguments.stories).stem, arguments.output / "model"
    sources = PreparationOptions(
        stories=arguments.stories, conceptnet=tuple(arguments.conceptnet), glove=arguments.glove
    )
    prepare(sources, prepared)
    runs, averaged = train_all(recipe, prepared, arguments.output), arguments.output / "averaged"
    average([runs[number - 1] for number in recipe["averaged_runs"]], averaged, **recipe["calibration"])
    save_compact(averaged, model, **recipe["generation"])
    metrics = measure(model, prepared, arguments.cloze, runs[-1], averaged)
    write_card(model, averaged, describe_runs(recipe, arguments.output))
    print(json.dumps(metrics, indent=1))


if __name__ == "__main__":
    main()
