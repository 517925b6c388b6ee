"""Results as tables, as JSON, and as files that the Hub reads."""

import json

import pytest
import yaml
from datasets import Dataset
from huggingface_hub import ModelCard, parse_eval_result_entries

from hf_storyend.evaluation.loading import read_endings
from hf_storyend.evaluation.options import EvaluationOptions
from hf_storyend.evaluation.results import compare_in_table, current_metrics, save_evaluation
from hf_storyend.evaluation.scoring import score_endings

STORIES = Dataset.from_list(
    [
        {"context": ["Anna put a cake in the oven."], "ending": "The cake was burnt."},
        {"context": ["Tom saw a film.", "It was long."], "ending": "Tom fell asleep | at once."},
    ]
)


@pytest.fixture
def result():
    return score_endings(
        STORIES, ["The cake was good.", 'Tom said "no".'], options=EvaluationOptions(bootstrap_samples=20)
    )


def test_json_has_everything_but_the_endings(result):
    content = json.loads(result.to_json())
    assert content["metrics"] == result.metrics and content["trivial_baselines"] == result.trivial_baselines
    assert content["intervals"]["bleu_1"] == list(result.intervals["bleu_1"])
    assert content["num_stories"] == 2 and "endings" not in content


def test_saved_files(result, tmp_path):
    save_evaluation(result, tmp_path / "a" / "b", name="ours", dataset_id="someone/stories", split="test")
    folder = tmp_path / "a" / "b"
    assert json.loads((folder / "evaluation.json").read_text()) == json.loads(result.to_json())
    assert (folder / "evaluation.md").read_text() == result.to_markdown("ours")
    lines = (folder / "endings.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.endings
    assert [row["ending"] for row in read_endings(folder / "endings.jsonl", STORIES)] == [
        "The cake was good.",
        'Tom said "no".',
    ]


def test_the_hub_reads_model_index_and_eval_results(result, tmp_path):
    result.metrics |= {"sampled_perplexity": 9.0, "sampled_perplexity_std": 0.1, "stories_per_second": 3.0}
    save_evaluation(result, tmp_path, name="ours", dataset_id="someone/stories")
    card = ModelCard(f"---\n{(tmp_path / 'model_index.yaml').read_text()}---\nA model.\n")
    by_name = {(entry.metric_type, entry.metric_name): entry for entry in card.data.eval_results}
    assert by_name["bleu", "BLEU-2"].metric_value == round(result.metrics["bleu_2"], 4)
    assert by_name["bleu", "BLEU-2"].metric_args == {"signature": result.signatures["bleu_2"]}
    assert by_name["perplexity", "Perplexity, sampled softmax (the paper's protocol)"].metric_value == 9.0
    assert {(entry.dataset_type, entry.dataset_split) for entry in card.data.eval_results} == {
        ("someone/stories", "test")
    }
    entries = parse_eval_result_entries(yaml.safe_load((tmp_path / ".eval_results" / "storyend.yaml").read_text()))
    values = {entry.task_id: entry.value for entry in entries}
    assert values["bleu_1"] == round(result.metrics["bleu_1"], 4)
    assert {entry.dataset_id for entry in entries} == {"someone/stories"}
    assert not {"stories_per_second", "sampled_perplexity_std"} & set(values)


def test_several_systems_in_one_table(result):
    other = score_endings(STORIES, ["a", "b"])
    table = compare_in_table({"ours": result, "a|b": other})
    header, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    assert header == r"| 2 stories | ours | a\|b | one constant ending | copy of the last sentence | people |"
    assert {row.replace(r"\|", "").count("|") for row in rows} == {7}
    assert "nrefs:1|case:lc" in table


def test_metrics_of_older_result_files_are_renamed():
    assert current_metrics({"bleu_1": 20.0, "recited": 3.0}) == {"bleu_1": 20.0, "training_overlap": 3.0}
