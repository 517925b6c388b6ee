"""Comparison of systems: tables, pictures and JSON; finished rows are kept, begun ones go on, held ones are left."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hf_storyend.comparison import ComparisonOptions, compare, markdown_table
from hf_storyend.comparison import run as comparison_run
from hf_storyend.evaluation import EvaluateOptions, evaluate
from hf_storyend.training import train
from hf_storyend.training.run_lock import RunLock

ROW = {
    "title": "IE",
    "system": "ie",
    "variant": None,
    "metrics": {},
    "trivial_baselines": {},
    "num_stories": 1,
    "parameters": 5,
    "stories_per_second": None,
    "hours": 0.0,
    "device": "",
    "paper": None,
    "curve": [],
}


def trained(messages: list[str]) -> list[str]:
    return [message for message in messages if "training" in message.split(".")[0] and "%" not in message]


def test_every_row_has_what_the_paper_and_this_project_measure(finished):
    output, result = finished
    assert list(result["systems"]) == ["seq2seq", "ie", "ie.state"] and result["unfinished"] == {}
    for row in result["systems"].values():
        assert row["num_stories"] == 5 and row["updates"] == 2 and row["parameters"] > 0
        assert {"perplexity", "sampled_perplexity", "bleu_1", "bleu_2", "distinct_2"} <= row["metrics"].keys()
        assert row["metrics"]["cloze_accuracy"] in (0, 50, 100)
        assert {"perplexity", "bleu_1", "bleu_2"} <= row["intervals"].keys()
        assert row["ablations"]["subsets"][0]["rows"][0]["name"] == "as it is"
        assert [point["step"] for point in row["curve"]] == [1, 2]
        assert row["validation"]["perplexity"] > 1 and row["hours"] >= 0 and row["stories_per_second"] > 0
        assert "constant_ending" not in row, "It is a sentence of the corpus."
    assert result["systems"]["ie"]["paper"] == {"sampled_perplexity": 11.04, "bleu_1": 25.14, "bleu_2": 8.13}
    assert json.loads((output / "comparison.json").read_text()) == result


def test_pairs_are_tested_and_neighbours_marked(finished):
    pairs = finished[1]["pairs"]
    named = [(pair["first"], pair["second"], pair["are_neighbours"]) for pair in pairs]
    assert named == [("seq2seq", "ie", True), ("seq2seq", "ie.state", False), ("ie", "ie.state", True)]
    rows = finished[1]["systems"]
    for pair in pairs:
        for metric in ("perplexity", "bleu_1", "bleu_2"):
            values = [rows[pair[name]]["metrics"][metric] for name in ("second", "first")]
            assert pair[metric]["difference"] == pytest.approx(values[0] - values[1])
            assert pair[metric]["low"] <= pair[metric]["high"] and 0 < pair[metric]["p_value"] <= 1


def test_the_page_has_all_tables(finished):
    page = (finished[0] / "comparison.md").read_text()
    assert "| Seq2Seq |" in page and "| IE, by the paper's equations |" in page and "18.64" in page
    assert "2 updates of 6 stories" in page and "| one constant ending |" in page and "Story Cloze" in page
    assert "3 validation stories after each epoch" in page and "last change" in page
    assert "paired bootstrap" in page and "uniform state attention" in page and "Not finished" not in page
    for name in ("comparison.png", "curves.png"):
        assert (finished[0] / name).read_bytes().startswith(b"\x89PNG")


def test_a_variant_and_a_seed_are_options_of_their_runs(finished, data):
    def run_options(name: str) -> dict:
        return json.loads((finished[0] / "systems" / name / "training_options.json").read_text())

    assert run_options("ie")["prediction_vector"] is None and run_options("ie.state")["prediction_vector"] == "state"
    config = json.loads((finished[0] / "systems" / "ie.state" / "config.json").read_text())
    assert config["prediction_vector"] == "state"


def test_finished_rows_are_neither_trained_nor_evaluated_again(options, training, messages, finished):
    killed = Path(options.output_dir) / ".comparison.json.0a1b2c3d.partial"
    killed.write_text("{")
    assert compare(options, training) == finished[1]
    (message,) = messages()
    assert message.startswith("3 of 3 rows are finished: 100 % of the comparison, about 0 minutes left")
    assert not killed.exists(), "What a killed comparison left behind is deleted."


def test_less_than_was_measured_is_not_measured_again_but_more_is(options, training, messages):
    one = replace(options, systems="seq2seq")
    compare(replace(one, cloze=None, ablations=False), training)
    assert len(messages()) == 1
    result = compare(replace(one, max_stories=3), training)
    assert [message for message in messages() if "evaluating" in message] == ["seq2seq: evaluating on test."]
    assert result["systems"]["seq2seq"]["num_stories"] == 3


def test_a_killed_evaluation_is_repeated_and_nothing_else(options, training, messages):
    run = Path(options.output_dir) / "systems" / "ie"
    (run / "result.json").unlink()
    (run / "test" / "endings.jsonl").write_text('{"ending": "Half of')
    compare(options, training)
    assert [message for message in messages() if "ie" in message and ":" in message[:10]] == [
        "ie: evaluating on test."
    ]


def test_changed_endings_or_weights_are_no_result_any_more(options, training, messages):
    run = Path(options.output_dir) / "systems" / "ie"
    (run / "test" / "endings.jsonl").write_text("")
    compare(replace(options, systems="ie"), training)
    assert "ie: evaluating on test." in messages()


def test_runs_of_storyend_train_are_taken_over(data, training, tmp_path, messages):
    """Options that change nothing of the run may differ."""
    output = tmp_path / "out"
    by_hand = replace(
        training,
        system="ie",
        output_dir=str(output / "systems" / "ie"),
        logging_steps=2,
        save_steps=1,
        data_dir=str(data),
    )
    train(by_hand)
    options = ComparisonOptions("ie", output_dir=str(output), max_new_tokens=4, max_stories=3, bootstrap_samples=0)
    result = compare(options, training)
    assert trained(messages()) == [] and result["systems"]["ie"]["updates"] == 2 and result["pairs"] == []


def test_a_run_of_other_options_or_data_is_refused(options, training):
    for changed, message in (
        (replace(training, dropout=0.5), "`dropout` was 0.1, is 0.5"),
        (replace(training, max_train_samples=40), "`max_train_samples` was 46, is 40"),
        (replace(training, per_device_train_batch_size=5), "on other data"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(options, changed)


def test_a_begun_run_goes_on(options, training, messages, caplog):
    run = Path(options.output_dir) / "systems" / "ie"
    for name in ("manifest.json", "result.json", "metrics.json"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoint-2", ignore_errors=True)
    compare(replace(options, systems="ie"), training)
    assert trained(messages()) == ["ie: training."]


def test_a_longer_budget_continues_finished_runs(options, training, messages):
    result = compare(replace(options, systems="ie"), replace(training, max_steps=3))
    assert result["systems"]["ie"]["updates"] == 3 and result["budget"].startswith("3 updates")
    assert "ie: evaluating on test." in messages(), "The weights are others."


def test_a_held_row_is_left_to_its_holder(options, training, messages):
    for name in ("seq2seq", "ie"):
        (Path(options.output_dir) / "systems" / name / "result.json").unlink()
    lock = RunLock(Path(options.output_dir) / "locks" / "seq2seq")
    lock.acquire()
    result = compare(options, training)
    lock.release()
    said = messages()
    assert any(message.startswith("seq2seq: left out.") and "in use by another run" in message for message in said)
    assert "ie: evaluating on test." in said
    assert list(result["systems"]) == ["ie", "ie.state"] and result["unfinished"] == {"seq2seq": 1.0}
    assert "Not finished: seq2seq (100 % trained)" in (Path(options.output_dir) / "comparison.md").read_text()


def test_a_row_that_storyend_train_works_on_is_left_out(options, training, messages):
    run = Path(options.output_dir) / "systems" / "ie"
    for name in ("manifest.json", "result.json"):
        (run / name).unlink()
    lock = RunLock(run)
    lock.acquire()
    result = compare(options, training)
    lock.release()
    assert list(result["systems"]) == ["seq2seq", "ie.state"]
    assert any(message.startswith("ie: left out.") for message in messages())


def test_without_training_only_trained_rows_are_evaluated(options, training, messages):
    run = Path(options.output_dir) / "systems" / "ie"
    (run / "result.json").unlink()
    shutil.rmtree(Path(options.output_dir) / "systems" / "seq2seq")
    result = compare(replace(options, train=False), training)
    assert messages() == ["ie: evaluating on test."]
    assert list(result["systems"]) == ["ie", "ie.state"] and result["unfinished"] == {"seq2seq": 0.0}


def test_progress_tells_of_the_whole_comparison(training, tmp_path, caplog):
    caplog.set_level("INFO", logger="hf_storyend")
    options = ComparisonOptions(
        "seq2seq,ie", output_dir=str(tmp_path), max_new_tokens=3, max_stories=3, bootstrap_samples=0
    )
    compare(options, training)
    said = [record.getMessage() for record in caplog.records]
    assert "0 of 2 rows are finished: 0 % of the comparison, time left: not known yet" in said
    halfway = [message for message in said if message.startswith("seq2seq: 50 % of its training; ")]
    assert len(halfway) == 1 and "17 % of the comparison, about" in halfway[0]


def test_the_numbers_are_those_of_storyend_evaluate(finished, data):
    output, result = finished
    options = EvaluateOptions(
        model=str(output / "systems" / "ie"),
        data_dir=str(data),
        num_beams=1,
        max_new_tokens=4,
        max_stories=5,
        bootstrap_samples=20,
    )
    metrics = evaluate(options).metrics
    for name in ("perplexity", "sampled_perplexity", "bleu_1", "bleu_2", "distinct_2"):
        assert result["systems"]["ie"]["metrics"][name] == pytest.approx(metrics[name])


def test_training_options_come_from_the_file_and_then_from_the_comparison(data, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(comparison_run._Comparison, "run_all_rows", lambda self: seen.extend(self.runs.values()))
    file = tmp_path / "options.yaml"
    file.write_text("dropout: 0.3\nmax_steps: 9\nlearning_rate: 1e-3\n")
    given = {"data_dir": str(data), "output_dir": str(tmp_path), "options_file": str(file)}
    for budget in ({}, {"max_steps": 4}, {"max_minutes": 2.0}):
        compare(ComparisonOptions("ie", **given, **budget))
    runs = [run.options for run in seen]
    assert [(run.max_steps, run.max_minutes) for run in runs] == [(9, None), (4, None), (10**9, 2.0)]
    assert {(run.data_dir, run.dropout, run.learning_rate) for run in runs} == {(str(data), 0.3, 1e-3)}


def test_what_an_evaluation_would_fail_on_is_found_before_training(training, tmp_path):
    bad = tmp_path / "cloze.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="cloze.csv"):
        compare(ComparisonOptions("ie", output_dir=str(tmp_path / "out"), cloze=str(bad)), training)
    assert not (tmp_path / "out").exists()


def test_throughput_may_be_unknown_and_no_row_finished():
    page = markdown_table({"systems": {"ie": ROW}, "split": "test", "budget": "nothing", "unfinished": {}})
    assert "not measured" in page
    assert "No row is finished." in markdown_table({"systems": {}, "unfinished": {"ie": 0.5}})


def test_close_rows_with_one_seed_are_named():
    def row(system: str, perplexity: float, variant: str | None = None) -> dict:
        metrics = {"perplexity": perplexity}
        return {**ROW, "title": system.upper(), "system": system, "variant": variant, "metrics": metrics}

    def page(**rows: dict) -> str:
        names = {name.replace("_", "."): own for name, own in rows.items()}
        return markdown_table({"systems": names, "split": "test", "budget": "nothing", "unfinished": {}})

    three = page(seq2seq=row("seq2seq", 20.0), ie=row("ie", 19.7), hlstm=row("hlstm", 25.0))
    assert "with one seed each: SEQ2SEQ and IE. More seeds: `seq2seq.seed1,ie.seed1`." in three
    two_seeds = {"ie": row("ie", 19.7), "ie_seed1": row("ie", 19.6)}
    assert "one seed each" not in page(seq2seq=row("seq2seq", 20.0), **two_seeds)
    assert "IE and IE. More" in page(ie=row("ie", 20.0), ie_state=row("ie", 20.1, "state"))


def test_other_stories_of_rows_are_not_paired(options, training):
    path = Path(options.output_dir) / "systems" / "ie" / "test" / "endings.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[0]["reference"] = "Another story."
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    from hf_storyend.comparison.paired import compare_pairs

    other = path.parents[2] / "seq2seq" / "test" / "endings.jsonl"
    with pytest.raises(ValueError, match="different stories"):
        compare_pairs({"seq2seq": other, "ie": path}, 5)
