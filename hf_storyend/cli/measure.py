"""Commands that measure: `storyend evaluate`, `storyend score`, `storyend annotate sample` and `... report`."""

from __future__ import annotations

from pathlib import Path

from ..annotation.options import AnnotationReportOptions, AnnotationSampleOptions
from ..evaluation.options import EvaluateOptions, ScoreOptions
from .printing import print_json, print_line, print_page


def evaluate(options: EvaluateOptions) -> None:
    """
    Evaluate a model: perplexity, BLEU, ROUGE-L, diversity, use of knowledge, Story Cloze accuracy and ablations.

    Example: `storyend evaluate my_model --data_dir prepared --num_beams 4 --cloze cloze_test_val.csv --output_dir
    results`
    """
    from ..pretrained import find_model

    model = find_model(options.model)
    from ..evaluation.run import evaluate as run
    from ..processes import start_accelerator

    accelerator = start_accelerator()
    result = run(options, accelerator=accelerator)
    if not accelerator.is_main_process:
        return
    if options.json:
        print_json(result.to_json())
        return
    print_page(result.to_markdown(options.name or Path(model).name))


def score(options: ScoreOptions) -> None:
    """
    Score endings by any system, with the metrics of `storyend evaluate` that need no model.

    Example: `storyend score --endings theirs.txt --endings ours.jsonl --data_dir rocstories --name theirs --name ours`
    """
    from ..evaluation.results import compare_in_table
    from ..evaluation.run import score as run

    results = run(options)
    if options.json:
        print_json({name: result.to_dict() for name, result in results.items()})
        return
    print_page(compare_in_table(results))


def sample(options: AnnotationSampleOptions) -> None:
    """
    Sample stories and write blinded, shuffled sheets for annotators.

    `sheets/` is for them: a CSV sheet each, `annotate.html` to score in a browser, `guidelines.md`. `key.json` maps
    endings to systems: keep it to yourself.

    Example: `storyend annotate sample --endings ie.jsonl --endings seq2seq.jsonl --num_stories 200 --output_dir human`
    """
    from ..annotation.run import create_sample

    drawn = create_sample(options)
    num_systems = len({item.system for item in drawn.items})
    systems = "1 system" if num_systems == 1 else f"{num_systems} systems"
    print_line(f"{len(drawn.items):,} endings of {systems} for each of {options.num_annotators} annotators.")
    print_line(f"Give them {options.output_dir}/sheets, keep {options.output_dir}/key.json to yourself.")


def report(options: AnnotationReportOptions) -> None:
    """
    Read scored sheets: majority vote, mean scores, agreement, sign tests and kinds of error.

    Scores that are missing, duplicate or out of range are listed, all at once, with annotator, row and column.

    Example: `storyend annotate report --key human/key.json --sheets human/sheets/*.csv --output_dir human/report`
    """
    from ..annotation.report import describe_report, report_json
    from ..annotation.run import create_report

    numbers = create_report(options)
    if options.json:
        print_json(report_json(numbers))
        return
    print_page(describe_report(numbers))
