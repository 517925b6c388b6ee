"""
Train the model that comes with the package. Its data are not part of the package:

    python examples/default_model.py --stories rocstories/ --conceptnet conceptnet-assertions-5.7.0.csv.gz \\
        --glove glove.6B.100d.txt --output_dir default_model

This takes hours on one core; the same command resumes after an interruption. The result, OUTPUT_DIR/model, has weights
in half precision, the tokenizer with its knowledge, and a model card with validation and test metrics.
"""

import argparse
import json
from pathlib import Path

import yaml

from hf_storyend import IncrementalEncoderForEndingGeneration, StoryEndingPipeline
from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.data.embedded import embedded_stories
from hf_storyend.data.sources import data_sources
from hf_storyend.evaluation import EvaluateOptions, evaluate
from hf_storyend.evaluation.notes import NOTES, read_notes
from hf_storyend.half_precision import save_half_precision
from hf_storyend.hub import render_card
from hf_storyend.hub.card import DEFAULT_MODEL
from hf_storyend.modeling import IncrementalEncoderTokenizer
from hf_storyend.training import TrainingOptions, TrainingRun, run_as_program
from hf_storyend.training.outputs import save_model

NUM_SHOWN = 20
STOPPED = "stopped"


def train(options: TrainingOptions, stop_after: int | None) -> Path:
    """Train for a whole run, or for `stop_after` updates; returns the directory of the model."""
    with TrainingRun(options) as run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
            if run.state.step == stop_after:
                stopped = Path(options.output_dir) / STOPPED
                model = run.accelerator.unwrap_model(run.module)
                save_model(stopped, model, model.state_dict(), run.data.tokenizer)
                return stopped
        run.finish()
    return Path(options.output_dir)


def train_all(recipe: dict, data_dir: Path, output_dir: Path) -> list[Path]:
    """
    Train all runs of the recipe, each from the weights of the previous one; finished runs are skipped.

    Returns the directories of their models.
    """
    models: list[Path] = []
    for number, own in enumerate(recipe["runs"], start=1):
        settings = {**recipe["shared"], **own}
        stop_after = settings.pop("stop_after", None)
        directory = output_dir / f"run_{number}"
        done = directory / STOPPED if stop_after else directory
        if not ((done / "model.safetensors").is_file() and (stop_after or (directory / "metrics.json").is_file())):
            start = str(models[-1]) if models else None
            options = TrainingOptions(
                data_dir=str(data_dir), output_dir=str(directory), model_name_or_path=start, **settings
            )
            done = train(options, stop_after)
        models.append(done)
    return models


def measured_runs(recipe: dict, output_dir: Path) -> list[dict[str, float]]:
    """Return updates, epochs and minutes of each run, up to the checkpoint that the next one starts from."""
    runs = []
    for number, run in enumerate(recipe["runs"], start=1):
        lines = (output_dir / f"run_{number}" / "train_log.jsonl").read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines]
        # The log may go on for some updates after the checkpoint.
        num_steps = run.get("stop_after") or entries[-1]["step"]
        last = [entry for entry in entries if entry["step"] <= num_steps][-1]
        runs.append({"updates": last["step"], "epochs": last["epoch"], "minutes": round(last["elapsed"] / 60, 1)})
    return runs


def describe_runs(runs: list[dict[str, float]]) -> str:
    """Describe all runs for the model card, whose table covers only the last one."""
    num_updates = ", ".join(f"{run['updates']:,}" for run in runs)
    num_epochs, num_minutes = (sum(run[name] for run in runs) for name in ("epochs", "minutes"))
    return (
        f"The table is about the last of {len(runs)} runs, each of which started from the one before\n"
        f"(`examples/default_model.yaml` in the source of `hf_storyend`). Their updates: {num_updates};\n"
        f"{num_epochs:.1f} epochs and {num_minutes / 60:.1f} hours in all.\n"
    )


def measure(model: Path, data_dir: Path, cloze: str | None, last_run: Path) -> dict[str, float]:
    """Evaluate on validation and test stories; the model's directory notes both. Returns the test metrics."""
    stories = {"model": str(model), "data_dir": str(data_dir), "name": "default model"}
    validation = {"split": "validation", "bootstrap_samples": 0, "output_dir": str(last_run / "validation")}
    evaluate(EvaluateOptions(**stories, **validation))
    test = {"cloze": cloze, "ablations": True, "gender_swap": True, "output_dir": str(last_run / "test")}
    return evaluate(EvaluateOptions(**stories, **test)).metrics


def write_card(model: Path, last_run: Path, data_dir: Path, runs: list[dict[str, float]]) -> None:
    """Write the model card, with the endings of the first embedded stories."""
    facts = json.loads((last_run / "metrics.json").read_text(encoding="utf-8"))["run"]
    facts |= {"sources": data_sources(data_dir), "earlier_runs": runs[:-1]}
    card = render_card(facts["system"], facts, None, read_notes(model), DEFAULT_MODEL)
    # It is part of the package, which has the card and needs no notes to make one.
    (model / NOTES).unlink()
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
    card = card.replace("## Limitations", text)
    card = card.replace("## Knowledge and sources", f"{describe_runs(runs)}\n## Knowledge and sources")
    (model / "README.md").write_text(card, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--stories", required=True, help="what `storyend prepare --stories` takes")
    parser.add_argument("--conceptnet", required=True, nargs="+", help="files with triples")
    parser.add_argument("--glove", required=True, help="word vectors of 100 dimensions")
    parser.add_argument("--cloze", help="Story Cloze file, for its accuracy")
    parser.add_argument("--recipe", default=Path(__file__).with_suffix(".yaml"), type=Path, help="options of the runs")
    parser.add_argument("--output_dir", default=Path("default_model"), type=Path, help="directory for all results")
    arguments = parser.parse_args()
    recipe = yaml.safe_load(arguments.recipe.read_text(encoding="utf-8"))

    output_dir = arguments.output_dir
    data_dir, model = (output_dir / name for name in (Path(arguments.stories).stem, "model"))
    sources = {"stories": arguments.stories, "conceptnet": tuple(arguments.conceptnet), "glove": arguments.glove}
    prepare(PrepareOptions(output_dir=str(data_dir), **sources, **recipe["prepare"]))
    runs = train_all(recipe, data_dir, output_dir)
    save_half_precision(runs[-1], model)
    metrics = measure(model, data_dir, arguments.cloze, runs[-1])
    write_card(model, runs[-1], data_dir, measured_runs(recipe, output_dir))
    print(json.dumps(metrics, indent=1))


if __name__ == "__main__":
    run_as_program(main)
