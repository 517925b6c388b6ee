"""
A comparison: rows are trained and evaluated one after the other, by any number of processes that share a directory.

Each process takes the next row that is not finished and that nobody holds. A row's run is in `OUTPUT_DIR/systems/ROW`,
as `storyend train` writes it: runs that it has finished or begun there with the same options are taken over.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..data.stories import load_story_cloze
from ..evaluation.options import EvaluateOptions
from ..evaluation.run import evaluate
from ..evaluation.significance import scipy_stats
from ..files import atomic_write, make_directory, remove_leftovers
from ..hub.card import render_card_of
from ..processes import from_main_process
from ..training.data import load_training_data
from ..training.distributed import build_accelerator
from ..training.option_parsing import read_options
from ..training.options import TrainingOptions
from ..training.run import TrainingRun, train
from ..training.run_lock import DirectoryInUse, RunLock
from .estimate import RowProgress, estimate, relative_cost
from .figures import draw_chart, draw_curves
from .options import ComparisonOptions
from .paired import compare_pairs
from .publish import check_export_dir, publish_comparison
from .restore import restore_rows
from .row_run import LOG, Measurements, RowRun, read_json, read_log
from .table import PAPER_TABLE, markdown_table

logger = logging.getLogger(__name__)

TABLE, PAGE, CHART, CURVES = "comparison.json", "comparison.md", "comparison.png", "curves.png"
_LOCKS = "locks"
# The state of the comparison is logged whenever another such part of a row's training is done.
_REPORTS_A_ROW = 10


def compare(options: ComparisonOptions | None = None, training: TrainingOptions | None = None) -> dict[str, Any]:
    """
    Train and evaluate systems, and write `comparison.json`, `comparison.md` and pictures into `output_dir`.

    The run of each row is in `output_dir/systems`. Called again, finished rows are skipped and an interrupted training
    resumes; called by several processes, each takes rows that no other holds.

    Args:
        options: Rows, data, budget and evaluation; default: all systems on the package's stories.
        training: Options of every training run, except `system` and `output_dir`; default: those that `options` give.

    Returns:
        The content of `comparison.json`.
    """
    options = options or ComparisonOptions()
    _check_before_training(options)
    comparison = _Comparison(options, training or read_options(options.options_file, **options.training_overrides()))
    if options.train:
        comparison.run_all_rows()
    else:
        comparison.evaluate_trained_rows()
    return comparison.finish()


def _check_before_training(options: ComparisonOptions) -> None:
    """Find out now what an evaluation would fail on hours later."""
    if options.bootstrap_samples:
        scipy_stats()
    if options.cloze is not None:
        load_story_cloze(options.cloze)
    if options.export_dir is not None:
        check_export_dir(options.export_dir)


class _Comparison:
    def __init__(self, options: ComparisonOptions, training: TrainingOptions):
        self.options, self.training = options, training
        self.output = Path(options.output_dir)
        # Before any evaluation: Accelerate can't change its precision afterwards.
        self.accelerator = build_accelerator(training)
        data = load_training_data(training)
        self.data_dir, measurements = data.directory, Measurements.of(options)
        self.runs = {
            row.name: RowRun(
                row,
                row.options(training, str(self.output / "systems" / row.name)),
                measurements,
                data,
                self.accelerator,
            )
            for row in options.rows
        }
        make_directory(self.output)
        if options.published is not None:
            published = Path(options.published)
            from_main_process(lambda: restore_rows(self.runs.values(), published, self.data_dir))

    def run_all_rows(self) -> None:
        """Train and evaluate rows until all are finished or held by others."""
        held: set[str] = set()
        while (name := from_main_process(lambda: self._next_row(held))) is not None:
            try:
                with self._row_lock(name):
                    self._finish_row(self.runs[name])
            except DirectoryInUse as error:
                self._say(f"{name}: left out. {error}")
                held.add(name)
                continue
            # A row may have become free meanwhile.
            held.clear()
            from_main_process(self.write_table)

    def evaluate_trained_rows(self) -> None:
        """Evaluate rows whose training has finished, and leave the others out."""
        for name, run in self.runs.items():
            if not from_main_process(lambda run=run: run.is_trained() and run.result() is None):  # type: ignore[misc]
                continue
            try:
                with self._row_lock(name):
                    self._measure(run)
            except DirectoryInUse as error:
                self._say(f"{name}: left out. {error}")

    def finish(self) -> dict[str, Any]:
        """Write the table, and what can be published if there is an `export_dir`."""
        comparison = from_main_process(self.write_table)
        if self.options.export_dir is not None and comparison["systems"]:
            export_dir = Path(self.options.export_dir)
            from_main_process(lambda: publish_comparison(self.output, export_dir, self.data_dir))
            self._say(f"What can be published is in {export_dir}.")
        return comparison

    def write_table(self) -> dict[str, Any]:
        """Write the table of all rows that are finished, whichever process has finished them."""
        # One process at a time, or an older table could replace a newer one.
        make_directory(self.output / _LOCKS)
        with FileLock(self.output / _LOCKS / "table.lock"):
            remove_leftovers(self.output, r"comparison\.(?:json|md)")
            comparison = self._collect()
            atomic_write(self.output / TABLE, json.dumps(comparison, indent=1, ensure_ascii=False) + "\n")
            atomic_write(self.output / PAGE, markdown_table(comparison))
            if comparison["systems"]:
                draw_chart(comparison, self.output / CHART)
                draw_curves(comparison, self.output / CURVES)
        return comparison

    def _next_row(self, left_out: set[str]) -> str | None:
        """Return the next row that is not finished; say how far the comparison is."""
        open_rows = [name for name, run in self.runs.items() if not (run.is_trained() and run.result())]
        num_finished = len(self.runs) - len(open_rows)
        logger.info("%d of %d rows are finished: %s", num_finished, len(self.runs), self._estimate())
        return next((name for name in open_rows if name not in left_out), None)

    @contextmanager
    def _row_lock(self, name: str) -> Iterator[None]:
        """Hold a row, training and evaluation; in a launch of several processes, the main one holds it for all."""
        directory = self.output / _LOCKS / name
        lock = RunLock(directory)

        def acquire() -> None:
            make_directory(directory)
            lock.acquire()

        from_main_process(acquire)
        try:
            yield
        finally:
            lock.release()

    def _finish_row(self, run: RowRun) -> None:
        if not from_main_process(run.is_trained):
            self._say(f"{run.row.name}: training.")
            train(run.options, self._reporter(run))
        self._measure(run)

    def _reporter(self, run: RowRun) -> Callable[[TrainingRun], None]:
        """Return a function that says now and then how far the whole comparison is."""
        reported = int(_REPORTS_A_ROW * run.progress()[0])

        def report(training: TrainingRun) -> None:
            nonlocal reported
            part = int(_REPORTS_A_ROW * training.done)
            if part == reported or not self.accelerator.is_main_process:
                return
            reported = part
            own = RowProgress(relative_cost(run.row.system), training.done, training.state.elapsed)
            total = self._estimate({run.row.name: own})
            training.progress.info(f"{run.row.name}: {100 * training.done:.0f} % of its training; {total}")

        return report

    def _measure(self, run: RowRun) -> None:
        """Evaluate a row, unless another process has just done it."""
        if from_main_process(run.result) is None:
            self._evaluate(run)

    def _evaluate(self, run: RowRun) -> None:
        options, split, directory = self.options, self.options.split, run.directory
        self._say(f"{run.row.name}: evaluating on {split}.")
        start = time.monotonic()
        evaluation = evaluate(
            EvaluateOptions(
                model=str(directory),
                data_dir=str(self.data_dir),
                split=split,
                output_dir=str(run.evaluation_dir),
                batch_size=run.options.per_device_eval_batch_size * self.accelerator.num_processes,
                num_beams=options.num_beams,
                max_new_tokens=options.max_new_tokens,
                max_stories=options.max_stories,
                bootstrap_samples=options.bootstrap_samples,
                cloze=options.cloze,
                ablations=options.ablations,
                name=run.row.name,
                # Every row is measured with the same draws.
                seed=self.training.seed,
            ),
            accelerator=self.accelerator,
        )
        content = evaluation.to_dict()
        # A sentence of the corpus, which the table does not need.
        for name in ("constant_ending", "significance", "gender_swap"):
            del content[name]
        seconds = round(time.monotonic() - start, 1)
        from_main_process(lambda: _save(run, {**content, "evaluation_seconds": seconds}))

    def _collect(self) -> dict[str, Any]:
        finished = {name: result for name, run in self.runs.items() if run.is_trained() and (result := run.result())}
        endings = {name: self.runs[name].endings for name in finished}
        unfinished = [name for name in self.runs if name not in finished]
        return {
            "budget": _describe_budget(self.training),
            "split": self.options.split,
            "data": next((row["data"] for row in map(self._describe_row, finished)), None),
            "systems": {
                name: {**self._describe_row(name), **_own_numbers(result)} for name, result in finished.items()
            },
            "unfinished": {name: round(self.runs[name].progress()[0], 3) for name in unfinished},
            "pairs": compare_pairs(endings, self.options.bootstrap_samples) if self.options.bootstrap_samples else [],
        }

    def _describe_row(self, name: str) -> dict[str, Any]:
        """Return what the table says of a row's run."""
        run = self.runs[name]
        measured = read_json(run.directory / "metrics.json")
        facts, row = measured["run"], run.row
        known = ("data", "parameters", "updates", "epochs", "minutes", "best_step", "stories_per_second", "device")
        paper = PAPER_TABLE.get(row.system.name)
        return {
            "title": row.title,
            "system": row.system.name,
            "variant": row.variant,
            "seed": run.options.seed,
            **{fact: facts[fact] for fact in (*known, "precision", "versions")},
            "hours": round(facts["minutes"] / 60, 2),
            "validation": measured["validation"],
            "curve": _validation_curve(read_log(run.directory / LOG)),
            "paper": None
            if paper is None
            else dict(zip(("sampled_perplexity", "bleu_1", "bleu_2"), paper, strict=True)),
        }

    def _estimate(self, own: dict[str, RowProgress] | None = None) -> Any:
        rows = {name: self._progress(run) for name, run in self.runs.items()} | (own or {})
        return estimate(rows, self.training.max_minutes)

    def _progress(self, run: RowRun) -> RowProgress:
        result, (fraction, seconds) = run.result(), run.progress()
        evaluation = None if result is None else float(result["evaluation_seconds"])
        return RowProgress(relative_cost(run.row.system), 1.0 if result else fraction, seconds, evaluation)

    def _say(self, message: str) -> None:
        if self.accelerator.is_main_process:
            logger.info(message)


def _save(run: RowRun, result: dict[str, Any]) -> None:
    """Write the card of a row, with everything that was measured, and then its result, which finishes it."""
    atomic_write(run.directory / "README.md", render_card_of(run.directory))
    run.save_result(result)


def _own_numbers(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "settings"}


def _validation_curve(events: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Return the evaluations of a run on the same validation stories, by epoch."""
    evaluations = [event for event in events if "eval_perplexity" in event]
    same = [event for event in evaluations if event["eval_num_stories"] == evaluations[0]["eval_num_stories"]]
    names = {"eval_num_stories": "num_stories", "eval_perplexity": "perplexity"}
    names |= {f"eval_{name}": name for name in ("sampled_perplexity", "bleu_1", "bleu_2")}
    return [
        {"epoch": event["epoch"], "step": event["step"], **{own: event[name] for name, own in names.items()}}
        for event in same
    ]


def _describe_budget(training: TrainingOptions) -> str:
    batch = f"{training.per_device_train_batch_size} stories a process"
    if training.max_minutes is not None:
        return f"{training.max_minutes:g} minutes of training"
    if training.max_steps > 0:
        return f"{training.max_steps:,} updates of {batch}"
    return f"{training.num_train_epochs:g} epochs in updates of {batch}"
