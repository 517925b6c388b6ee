"""
All benchmarks in one table: the package's model, the plain loop and the tests' reference.

    python benchmarks/run_all.py --output bench_results

Ratios come first, because they hold on other machines; times are of this one. The directory gets `results.json` and
`results.png`. More options, such as `--stories` and `--triples` for files of one's own or `--hidden` for another size,
go to the parts that train and write: see `training_step.py --help`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
DATA_PARTS = ("training_step", "generation", "input_pipeline")
ALONE_PARTS = {"tokenising": ["--stories", "20000"], "knowledge_building": ["--lines", "500000"]}

Row = tuple[str, float | None, str]  # what, ratio to the plain way, absolute numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="bench_results", help="directory for results (default: bench_results)")
    parser.add_argument("--no-picture", action="store_true", help="do without matplotlib")
    options, for_parts = parser.parse_known_args()
    directory = Path(options.output)
    directory.mkdir(parents=True, exist_ok=True)
    if not options.no_picture:
        check_that_matplotlib_is_there()
    started = time.monotonic()
    results = run_parts(for_parts, directory)
    rows = make_rows(results)
    print_rows(results["training_step"]["machine"], rows, time.monotonic() - started)
    (directory / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if not options.no_picture:
        draw(rows, directory / "results.png")


def check_that_matplotlib_is_there() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'The picture needs matplotlib: `pip install "hf_storyend[plots]"`, or give `--no-picture`.'
        ) from error


def run_parts(options: list[str], directory: Path) -> dict[str, dict]:
    """Each part in a process of its own, so that none finds the memory or caches of another."""
    results = {}
    for part in (*DATA_PARTS, *ALONE_PARTS):
        file = directory / f"{part}.json"
        arguments = options if part in DATA_PARTS else ALONE_PARTS[part]
        print(f"{part.replace('_', ' ')} ...", flush=True)
        command = [sys.executable, str(HERE / f"{part}.py"), *arguments, "--json", str(file)]
        subprocess.run(command, check=True)
        results[part] = json.loads(file.read_text(encoding="utf-8"))
    return results


def make_rows(results: dict[str, dict]) -> list[Row]:
    training = results["training_step"]
    rows = [row for kind in ("ga", "ca") for row in training_rows(kind.upper(), training[kind])]
    rows += growth_rows(training["growth"])
    rows += [row for kind in ("ga", "ca") for row in generation_rows(kind.upper(), results["generation"][kind])]
    delivered = results["input_pipeline"]["stories_per_second"]
    consumed = training["ca"]["random"]["stories_per_second"]["ours"]
    rows.append(("input pipeline against training", delivered / consumed, f"{delivered:,.0f} stories/s delivered"))
    tokenising, knowledge = results["tokenising"], results["knowledge_building"]["gzip"]
    rows.append(("tokenising", tokenising["ratio"], f"{tokenising['stories_per_second']['tokenizer']:,.0f} stories/s"))
    rows.append(("knowledge", knowledge["times_faster"], f"{knowledge['lines_per_second']:,.0f} lines/s"))
    return rows


def training_rows(kind: str, result: dict) -> list[Row]:
    rows: list[Row] = []
    for batching in ("random", "bucketed"):
        if batching not in result:
            continue
        timed = result[batching]
        rates = timed["stories_per_second"]
        text = f"{rates['ours']:.1f} stories/s, plain loop {rates['plain loop']:.1f}; "
        text += f"{timed['share_of_sgemm']:.0%} of the sgemm rate on the work needed"
        rows.append((f"training {kind}, {batching} batches", timed["ratio"], text))
    reference = result["reference_stories_per_second"]
    speed = result["random"]["stories_per_second"]["ours"]
    rows.append((f"training {kind}, against the reference", speed / reference, f"reference {reference:.2f} stories/s"))
    waits = result["host_waits"]
    rows.append((f"host synchronisations {kind}", None, f"{waits} a batch, forward and backward"))
    for name, what, unit in (("operations", "operations", ""), ("peak_mb", "peak memory", " MB")):
        ours, plain = result[name]["ours"], result[name]["plain loop"]
        rows.append((f"{what} {kind}", plain / ours, f"{ours:,.0f}{unit}, plain loop {plain:,.0f}{unit}"))
    return rows


def generation_rows(kind: str, modes: dict) -> list[Row]:
    rows: list[Row] = []
    for name, mode in modes.items():
        times = mode["ms_per_story"]
        text = f"{times['ours']:.1f} ms a story, plain loop {times['plain loop']:.1f}"
        if "share_of_generate_itself" in mode:
            text += f"; generate() itself {mode['share_of_generate_itself']:.0%}"
        rows.append((f"{name}, {kind}", mode["ratio"], text))
    return rows


def growth_rows(growth: dict) -> list[Row]:
    rates = ", ".join(f"{size}: {rate:.1f}" for size, rate in growth["stories_per_second"].items())
    rows: list[Row] = [("training by batch size", None, f"stories/s at {rates}")]
    for name in ("16_against_4_sentences", "whole_against_half_sentences"):
        text = f"{growth[name]['time']:.2f}x the time, {growth[name]['work']:.2f}x the work"
        rows.append((f"a word, {name.replace('_', ' ')}", None, text))
    return rows


def print_rows(machine: dict, rows: list[Row], elapsed: float) -> None:
    print("\n" + ", ".join(f"{name} {value}" for name, value in machine.items()))
    for what, ratio, text in rows:
        print(f"{what:<44} {'' if ratio is None else f'{ratio:.2f}x':>8}  {text}")
    print(f"in {elapsed / 60:.1f} minutes")


def draw(rows: list[Row], path: Path) -> None:
    """Bars of the ratios; 1 is the plain way."""
    from matplotlib.figure import Figure

    bars = [(what, ratio) for what, ratio, _ in rows if ratio is not None][::-1]
    figure = Figure(figsize=(9, 0.35 * len(bars) + 1), layout="constrained")
    axes = figure.subplots()
    # From 1 on, to the left of it where the plain way is better.
    drawn = axes.barh([what for what, _ in bars], [ratio - 1 for _, ratio in bars], left=1.0, color="#4878a8")
    axes.bar_label(drawn, [f"{ratio:.2f}x" for _, ratio in bars], padding=3, fontsize=8)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times better than the plain way (logarithmic)")
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
