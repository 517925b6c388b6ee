"""Cards say what was measured, and that the rest was not."""

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from typer.testing import CliRunner

from hf_storyend.evaluation import Evaluation, save_evaluation
from hf_storyend.evaluation.ablation_results import AblationRow, Ablations, AblationSubset
from hf_storyend.hub import render_card, render_card_of
from hf_storyend.hub.card import PLACEHOLDER
from hf_storyend.systems import SYSTEMS

CARDS = Path(__file__).parent.parent.parent / "hub_cards"
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
    "options": {"recipe": "modern", "seed": 7, "data_dir": "/home/somebody/private"},
}


def rows(card: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in card.splitlines() if line[:1] == "|"]
    return {name: values for name, *values in cells}


@pytest.mark.parametrize("name", SYSTEMS)
def test_cards_of_untrained_systems_claim_nothing(name):
    text = (CARDS / f"{name}.md").read_text()
    assert text == render_card(name), "out of date: python -m hf_storyend.hub.card hub_cards"
    card = ModelCard(text)
    assert card.data.eval_results is None
    assert card.data.to_dict()["pipeline_tag"] == "text-generation" and card.data.library_name == "transformers"
    assert card.data.license == "cc-by-sa-4.0" and card.data.language == "en"
    assert card.data.datasets == ["rocstories"] and set(card.data.metrics) == {"perplexity", "bleu", "rouge"}
    assert rows(text)["BLEU-1"] == ["not measured", "not measured"]
    assert rows(text)["training time"] == rows(text)["parameters"] == ["not measured"]
    for needed in ("ConceptNet", "CC BY-SA 4.0", "ROCStories", "GloVe", "Limitations", "@inproceedings{guan2019story"):
        assert needed in text


def test_a_card_has_the_numbers_of_its_run_and_no_paths():
    text = render_card("ie-msa-ca", RUN, {"perplexity": 31.234, "bleu_1": 24.5, "stories_per_second": 3.0})
    table = rows(text)
    assert table["Perplexity, full softmax"] == ["31.23", "not measured"]
    assert table["Perplexity, sampled softmax (the paper's protocol)"] == ["not measured", "not measured"]
    assert table["parameters"] == ["1,234,567"] and table["stories per second"] == ["not measured"]
    assert table["training time"] == ["61.2 minutes"] and table["energy and carbon emitted"] == ["not measured"]
    assert "/home" not in text
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
    assert render_card_of(folder) == render_card("ie-msa-ca")


def test_nothing_is_claimed_of_data_that_may_be_anybodys():
    text = render_card("ie", {**RUN, "data": "fables"})
    assert ModelCard(text).data.datasets is None and "The report of the prepared data `fables` says which" in text


def test_the_small_corpus_owes_nothing_to_others():
    run = {**RUN, "system": "ie", "data": "our own", "options": {"data_dir": None}}
    text = render_card("ie", run, {"bleu_1": 3.0})
    assert ModelCard(text).data.datasets is None and "ROCStories (Mostafazadeh" not in text
    assert ModelCard(text).data.eval_results[0].dataset_type == "hf_storyend-embedded"
    assert ModelCard(text).data.license == "apache-2.0" and "660 stories" in text


def test_the_command(folder):
    from hf_storyend.cli.main import app

    written = folder / "README.md"
    assert CliRunner().invoke(app, ["card", str(folder), "--output_file", str(written)]).exit_code == 0
    assert written.read_text() == render_card("ie-msa-ca")
    assert "# Story endings" in CliRunner().invoke(app, ["card", str(folder)]).stdout
    with pytest.raises(ValueError, match=r"no config\.json"):
        render_card_of(folder / "best" / "nothing")


@pytest.mark.slow
def test_the_code_of_a_card_runs_in_gradio(folder):
    """`Interface.from_pipeline` refuses pipelines that are not of transformers; the card says what does."""
    gradio, client = pytest.importorskip("gradio"), pytest.importorskip("gradio_client")
    code = "\n".join(re.findall(r"```python\n(.*?)```", render_card_of(folder), re.S))
    code = code.replace(PLACEHOLDER, str(folder)).replace("gr.Interface", "app = gr.Interface")
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
