"""What an evaluation reads and writes: endings of systems, splits, and files for people and for the Hub."""

import gzip
import json

import pytest
import yaml
from datasets import Dataset
from huggingface_hub import ModelCard, parse_eval_result_entries

from hf_storyend.data import load_stories
from hf_storyend.evaluation import (
    EvaluationOptions,
    compare_in_table,
    load_split,
    read_endings,
    save_evaluation,
    score_endings,
)

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


def test_endings_a_line(tmp_path):
    path = tmp_path / "endings.txt"
    path.write_bytes("The cake was burnt .\r\nTom slept \u2028 well .\r\n".encode())
    assert read_endings(path, STORIES) == [{"ending": "The cake was burnt ."}, {"ending": "Tom slept \u2028 well ."}]
    path.write_text("The cake was burnt .\n\n")
    assert read_endings(path, STORIES)[1] == {"ending": ""}


def test_endings_as_json_lines_may_be_gzipped_and_name_their_story(tmp_path):
    path = tmp_path / "endings.jsonl.gz"
    rows = [{"ending": "A"}, {"ending": "B", "context": ["Tom saw a film .", "it was long ."]}]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert read_endings(path, STORIES) == rows


def test_of_the_first_stories_the_file_may_have_all(tmp_path):
    path = tmp_path / "endings.txt"
    path.write_text("one\ntwo\n")
    assert read_endings(path, STORIES.select([0]), max_stories=1) == [{"ending": "one"}]
    with pytest.raises(ValueError, match="2 endings for 1 stories"):
        read_endings(path, STORIES.select([0]))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.txt", "one\n", "x.txt has 1 endings for 2 stories"),
        ("x.txt", "", "x.txt has 0 endings for 2 stories"),
        ("x.jsonl", '{"ending": "a"}\n{"ending": "b"\n', r"x.jsonl, line 2: column 15: not JSON"),
        ("x.jsonl", '{"ending": "a"}\n{"ending": 3}\n', "x.jsonl, line 2: must be an object with `ending`"),
        ("x.jsonl", '{"ending": "a"}\n["b"]\n', "x.jsonl, line 2: must be an object"),
        ("x.jsonl", '{"ending": "a"}\n\n', "x.jsonl, line 2: column 1: not JSON"),
        (
            "x.jsonl",
            '{"ending": "a", "context": ["We saw mice."]}\n{"ending": "b"}\n',
            "line 1: `context` is not that",
        ),
        ("x.jsonl", '{"ending": "a", "context": [3]}\n{"ending": "b"}\n', "line 1: `context` is not that"),
    ],
)
def test_bad_endings(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_endings(path, STORIES)


def write_splits(folder, **splits):
    folder.mkdir()
    for name, endings in splits.items():
        rows = [json.dumps({"context": ["It rained."], "ending": ending}) + "\n" for ending in endings]
        (folder / f"{name}.jsonl").write_text("".join(rows))


def test_a_directory_with_training_stories_gives_their_endings(tmp_path):
    write_splits(tmp_path / "data", train=["We got wet.", "We got wet.", "No."], val=["Sun."], test=["Snow.", "Rain."])
    stories, training_endings = load_split(str(tmp_path / "data"), "test")
    assert list(stories["ending"]) == ["Snow.", "Rain."]
    assert training_endings == ["We got wet.", "We got wet.", "No."]
    assert list(load_split(str(tmp_path / "data"), "val")[0]["ending"]) == ["Sun."]
    assert load_split(str(tmp_path / "data" / "test.jsonl"))[1] is None
    with pytest.raises(ValueError, match="no split `exam`; there is train, validation, test"):
        load_split(str(tmp_path / "data"), "exam")


def test_a_prepared_directory_holds_stories(tmp_path):
    write_splits(tmp_path / "data", train=["We got wet."], test=["Snow."])
    load_stories(tmp_path / "data").save_to_disk(tmp_path / "prepared" / "stories")
    stories, training_endings = load_split(str(tmp_path / "prepared"))
    assert list(stories["ending"]) == ["Snow."] and training_endings == ["We got wet."]


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
