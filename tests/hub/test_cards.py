"""Cards say what was measured, and that the rest was not."""

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from typer.testing import CliRunner

from hf_storyend.evaluation import Evaluation, save_evaluation
from hf_storyend.evaluation.ablation_results import AblationRow, Ablations, AblationSubset
from hf_storyend.evaluation.gender_swap_result import GenderSwap
from hf_storyend.evaluation.notes import note_evaluation
from hf_storyend.hub import render_card, render_card_of
from hf_storyend.hub.card import card_of, render_published_card, write_system_cards
from hf_storyend.hub.run_facts import RunFacts
from hf_storyend.pretrained import EXAMPLE_STORIES
from hf_storyend.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
CARDS = ROOT / "hub_cards"
PUBLISHED = ROOT / "results" / "table1"
MEASURED = sorted(name for name in SYSTEMS if (PUBLISHED / "rows" / name).is_dir())
RUN = {
    "system": "ie-msa-ca",
    "data": "rocstories",
    "parameters": 1234567,
    "updates": 99,
    "epochs": 2.5,
    "minutes": 61.2,
    "stories_per_second": None,
    "peak_memory_mb": 551,
    "num_processes": 2,
    "device": "cpu (1 threads a process)",
    "precision": "no",
    "versions": {"hf_storyend": "0.1"},
    "options": {"recipe": "modern", "seed": 7, "data_dir": "/home/somebody/private", "output_dir": "/home/me/mine"},
}
SOURCES = {
    "stories": "rocstories.csv",
    "num_stories": {"train": 89502, "test": 4081},
    "conceptnet": ["conceptnet-assertions-5.7.0.csv.gz"],
    "glove": "glove.6B.200d.txt",
}
SWAP = GenderSwap(2, 1, (("He ran. It rained.", "He fell.", "She won."),), {"He cried.": -0.5}, {"nurse": 0.1})


def rows(card: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in card.splitlines() if line[:1] == "|"]
    return {name: values for name, *values in cells}


@pytest.mark.parametrize("name", SYSTEMS)
def test_cards_of_systems_are_up_to_date(name, tmp_path):
    text = (CARDS / f"{name}.md").read_text()
    written = {path.stem: path for path in write_system_cards(tmp_path, PUBLISHED)}
    assert text == written[name].read_text(), "out of date: python -m hf_storyend.hub.card hub_cards results/table1"
    assert name not in MEASURED or text == (PUBLISHED / "rows" / name / "card.md").read_text()


@pytest.mark.parametrize("name", MEASURED)
def test_cards_of_published_runs_have_their_numbers_and_curves(name):
    text = (CARDS / f"{name}.md").read_text()
    published = json.loads((PUBLISHED / "rows" / name / "metrics.json").read_text())
    validation, test = rows(text)["Perplexity, full softmax"]
    assert validation == f"{published['validation']['perplexity']:.4g}"
    assert test == f"{published['metrics']['perplexity']:.4g}"
    assert rows(text)["parameters"] == [f"{published['run']['parameters']:,}"]
    for needed in (
        "### Learning curve",
        "### Ablations",
        "ROCStories (Mostafazadeh",
        "ConceptNet 5",
        'name = "my_model"',
    ):
        assert needed in text
    assert not {"not measured"} & set(rows(text)["BLEU-1"] + rows(text)["training time"])


@pytest.mark.parametrize("name", sorted(set(SYSTEMS) - set(MEASURED)))
def test_cards_of_untrained_systems_claim_nothing(name):
    text = (CARDS / f"{name}.md").read_text()
    card = ModelCard(text)
    assert card.data.eval_results is None and card.data.license is None and card.data.datasets is None
    assert card.data.to_dict()["pipeline_tag"] == "text-generation" and card.data.library_name == "transformers"
    assert card.data.language == "en" and set(card.data.metrics) == {"perplexity", "bleu", "rouge"}
    assert rows(text)["BLEU-1"] == ["not measured", "not measured"]
    assert rows(text)["training time"] == rows(text)["parameters"] == ["not measured"]
    assert "ROCStories (Mosta" not in text and "GloVe" not in text and "OWNER" not in text
    for needed in ("There is no training run", "Limitations", "@inproceedings{guan2019story"):
        assert needed in text


def test_a_folder_without_a_published_run_has_no_card(tmp_path):
    with pytest.raises(ValueError, match="no published row"):
        render_published_card(tmp_path)


def test_a_card_has_the_numbers_of_its_run_and_no_paths():
    text = render_card("ie-msa-ca", RUN, {"perplexity": 31.234, "bleu_1": 24.5, "stories_per_second": 3.0})
    table = rows(text)
    assert table["Perplexity, full softmax"] == ["31.23", "not measured"]
    assert table["Perplexity, sampled softmax (the paper's protocol)"] == ["not measured", "not measured"]
    assert table["parameters"] == ["1,234,567"] and table["stories per second"] == ["not measured"]
    assert table["training time"] == ["61.2 minutes"] and table["energy and carbon emitted"] == ["not measured"]
    assert "/home" not in text and 'name = "mine"' in text
    results = ModelCard(text).data.eval_results
    assert {(one.metric_name, one.metric_value, one.dataset_split) for one in results} == {
        ("Perplexity, full softmax", 31.234, "validation"),
        ("BLEU-1", 24.5, "validation"),
    }


def test_a_card_from_what_run_and_evaluation_left(folder):
    (folder / "metrics.json").write_text(json.dumps({"run": RUN, "validation": {"bleu_1": 20.0}}))
    save_evaluation(
        Evaluation({"bleu_1": 21.5, "perplexity": 30.0}), folder, name="mine", dataset_id="rocstories", split="test"
    )
    text = render_card_of(folder)
    assert rows(text)["BLEU-1"] == ["20", "21.5"] and rows(text)["Perplexity, full softmax"] == ["not measured", "30"]
    found = {(one.metric_name, one.metric_value, one.dataset_split) for one in ModelCard(text).data.eval_results}
    assert ("BLEU-1", 20.0, "validation") in found and ("BLEU-1", 21.5, "test") in found and len(found) == 3


def test_a_card_shows_ablations_where_they_were_measured(folder):
    rows = (AblationRow("as it is", 30.0), AblationRow("without sentence 1", 33.0, 10.0))
    ablations = Ablations((AblationSubset("stories", 5, 50, 0, rows),), ("not all was measured",))
    assert "### Ablations" not in render_card_of(folder)
    evaluation = Evaluation({"perplexity": 30.0}, ablations=ablations)
    save_evaluation(evaluation, folder, name="mine", dataset_id="rocstories", split="test")
    text = render_card_of(folder)
    section = text[text.index("### Ablations") : text.index("## Limitations")]
    assert "| without sentence 1 | 33.00 | +10.0 % |  |  |" in section and "- not all was measured" in section
    assert ModelCard(text).data.eval_results


def test_a_model_without_a_run_is_recognised_by_its_configuration(folder):
    assert render_card_of(folder) == render_card("ie-msa-ca", name=folder.name)


def test_the_data_are_those_that_the_run_recorded():
    text = render_card("ie", {**RUN, "sources": SOURCES})
    data = ModelCard(text).data
    assert data.datasets == ["rocstories"] and data.license == "cc-by-sa-4.0"
    assert rows(text)["training stories"] == ["89,502"] and "`rocstories.csv`" in text
    for needed in ("ROCStories (Mostafazadeh", "ConceptNet 5", "GloVe (Pennington", "mostly in the United States"):
        assert needed in text


@pytest.mark.parametrize("name", ["processed", "fables.csv", "rocket_stories", "my-procstories"])
def test_a_name_with_roc_in_it_is_not_rocstories(name):
    own = {"stories": name, "num_stories": {"train": 5}, "conceptnet": ["triples.tsv"], "glove": None}
    for run in ({**RUN, "data": name}, {**RUN, "sources": own}):
        text = render_card("ie", run)
        data = ModelCard(text).data
        assert data.datasets is None and data.license is None
        assert "ROCStories (Mosta" not in text and "GloVe" not in text and "United States" not in text
        assert f"`{name}`. The run does not say whose they are" in text


def test_a_dataset_of_the_hub_is_named_and_one_without_knowledge_has_none():
    sources = {**SOURCES, "stories": "somebody/fables", "conceptnet": [], "glove": None}
    text = render_card("ie", {**RUN, "sources": sources}, {"bleu_1": 3.0})
    assert ModelCard(text).data.datasets == ["somebody/fables"] and "**Knowledge**: none." in text
    assert ModelCard(text).data.eval_results[0].dataset_type == "somebody/fables"


def test_the_small_corpus_owes_nothing_to_others():
    old = {**RUN, "system": "ie", "data": "our own", "options": {"data_dir": None}}
    new = {**RUN, "sources": {"stories": "embedded", "num_stories": {}, "conceptnet": [], "glove": None}}
    for run in (old, new):
        text = render_card("ie", run, {"bleu_1": 3.0})
        assert ModelCard(text).data.datasets is None and "ROCStories (Mostafazadeh" not in text
        assert ModelCard(text).data.eval_results[0].dataset_type == "hf_storyend-embedded"
        assert ModelCard(text).data.license == "apache-2.0" and "660 stories" in text


def test_hours_are_those_of_all_runs():
    earlier = [{"updates": 5, "epochs": 1.0, "minutes": 60.0}, {"updates": 7, "epochs": 1.0, "minutes": 30.5}]
    shown = rows(render_card("ie", {**RUN, "earlier_runs": earlier}))["training time"]
    assert shown == ["151.7 minutes (2.5 hours) in 3 runs, each from the one before; the last took 61.2 minutes"]
    unknown = rows(render_card("ie", {**RUN, "earlier_runs": [None]}))["training time"]
    assert "not recorded" in unknown[0]


def test_a_local_evaluation_is_found_wherever_it_was_written(folder):
    (folder / "metrics.json").write_text(json.dumps({"run": RUN, "validation": {"bleu_1": 20.0}}))
    evaluation = Evaluation({"bleu_1": 21.5}, num_stories=7, gender_swap=SWAP)
    note = {"dataset_id": "rocstories", "decoding": "preset paper", "examples": {EXAMPLE_STORIES[1]: "He walked."}}
    note_evaluation(folder, evaluation, split="test", **note)
    text = render_card_of(folder)
    assert rows(text)["BLEU-1"] == ["20", "21.5"] and "test: 7 stories; decoding: preset paper" in text
    assert "1 of 2 get another greedy ending" in text and "nurse 10 %" in text
    outputs = [example.get("output") for example in ModelCard(text).data.to_dict()["widget"]]
    assert outputs == [None, {"text": "He walked."}, None]
    # Another one of the same stories takes its place; one of other stories stands beside it.
    note_evaluation(folder, Evaluation({"bleu_1": 22.5}), split="test", **note)
    note_evaluation(folder, Evaluation({"bleu_1": 9.0}), split="test", **{**note, "dataset_id": "fables"})
    assert rows(render_card_of(folder))["BLEU-1"] == ["20", "22.5", "9"]
    assert "|  | validation | test | test of fables |" in render_card_of(folder)


def test_an_evaluation_of_other_weights_is_not_shown(folder):
    settings = {"dataset_id": "a", "split": "test", "decoding": "preset paper", "examples": {}}
    note_evaluation(folder, Evaluation({"bleu_1": 21.5}), **settings)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert rows(render_card_of(folder))["BLEU-1"] == ["not measured", "not measured"]


def test_notes_that_are_none_are_named(folder):
    for text in ("{", "[1]", '[{"dataset_id": 1}]', "5"):
        (folder / "evaluations.json").write_text(text)
        with pytest.raises(ValueError, match=r"evaluations\.json holds no evaluations"):
            render_card_of(folder)


def test_text_of_an_evaluation_is_no_markup(folder):
    swap = GenderSwap(2, 1, (("<script>|[x](y)", "`a`", "![b](c)"),), {"He ran.": 0.1}, {"nurse": 0.1})
    settings = {"dataset_id": "<b>|", "split": "test", "decoding": "[x](y)", "examples": {}}
    note_evaluation(folder, Evaluation({"bleu_1": 1.0}, num_stories=1, gender_swap=swap), **settings)
    body = render_card_of(folder).split("---\n", 2)[2]
    assert "<script>" not in body and "[x](y)" not in body and "<b>" not in body


def test_the_card_of_training_is_made_anew_and_one_of_your_own_is_kept(folder):
    measured = {"run": RUN, "validation": {"bleu_1": 20.0}}
    (folder / "metrics.json").write_text(json.dumps(measured))
    (folder / "README.md").write_text(render_card(RUN["system"], RUN, measured["validation"]))
    settings = {"dataset_id": "rocstories", "split": "test", "decoding": "preset paper", "examples": {}}
    note_evaluation(folder, Evaluation({"bleu_1": 21.5}), **settings)
    assert rows(card_of(folder))["BLEU-1"] == ["20", "21.5"] and 'name = "run"' in card_of(folder)
    assert 'name = "me/it"' in card_of(folder, "me/it") and "my own" not in card_of(folder)
    (folder / "README.md").write_text(card_of(folder) + "\nAnd a line of my own.\n")
    note_evaluation(folder, Evaluation({"bleu_1": 22.5}), **settings)
    assert rows(card_of(folder))["BLEU-1"] == ["20", "21.5"] and "of my own" in card_of(folder)
    assert 'name = "me/it"' in card_of(folder, "me/it") and "of my own" in card_of(folder, "me/it")


def test_the_command(folder):
    from hf_storyend.cli.main import app

    written = folder / "README.md"
    assert CliRunner().invoke(app, ["card", str(folder), "--output_file", str(written)]).exit_code == 0
    assert written.read_text() == render_card("ie-msa-ca", name=folder.name)
    assert "# Story endings" in CliRunner().invoke(app, ["card", str(folder)]).stdout
    with pytest.raises(ValueError, match=r"no config\.json"):
        render_card_of(folder / "best" / "nothing")


@pytest.mark.slow
def test_the_code_of_a_card_runs_in_gradio(folder, monkeypatch):
    """`Interface.from_pipeline` refuses pipelines that are not of transformers; the card says what does."""
    gradio, client = pytest.importorskip("gradio"), pytest.importorskip("gradio_client")
    code = "\n".join(re.findall(r"```python\n(.*?)```", render_card_of(folder), re.S))
    code = code.replace("gr.Interface", "app = gr.Interface")
    monkeypatch.chdir(folder.parent)
    names: dict = {}
    exec(code.replace(".launch()", ""), names)
    with pytest.raises(ValueError, match="must be a transformers.pipeline"):
        gradio.Interface.from_pipeline(names["write"])
    _, address, _ = names["app"].launch(prevent_thread_lock=True, quiet=True)
    try:
        told = client.Client(address, verbose=False).predict("Tom opened the window.", fn_index=0)
    finally:
        names["app"].close()
    assert told == names["write"]("Tom opened the window.")[0]["ending"]


def test_further_training_stories_are_named_and_no_licence_is_taken_for_granted():
    sources = {"stories": "embedded", "conceptnet": [], "glove": None, "num_stories": {"train": 594}}
    plain = RunFacts.of({"sources": sources, "minutes": 1.0, "options": {"extra_stories": None}})
    extended = RunFacts.of({"sources": sources, "minutes": 1.0, "options": {"extra_stories": "/home/me/taught.jsonl"}})
    assert plain.licence == "apache-2.0" and extended.licence is None
    (line,) = [line for line in extended.describe_sources() if "Further stories" in line]
    assert "`taught.jsonl`" in line and "/home" not in line and len(plain.describe_sources()) == 1
