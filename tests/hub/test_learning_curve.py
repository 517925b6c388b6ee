"""The learning curve on a card: evaluations of the run, its picture, and nothing where there is nothing."""

import json

import pytest

from hf_storyend.evaluation import Evaluation, save_evaluation
from hf_storyend.hub import render_card_of
from hf_storyend.hub.learning_curve import learning_curve


def event(step: int, num_stories: float = 9, **others) -> dict:
    values = {"eval_perplexity": 100 / step, "eval_bleu_1": 20.0, "eval_bleu_2": 5.0, "eval_num_stories": num_stories}
    return {"step": step, "epoch": step / 10, "loss": 3.0, **values, **others}


def write(folder, *events) -> None:
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": list(events)}))


def test_a_card_has_the_evaluations_of_the_run(folder):
    write(folder, {"step": 1, "loss": 4.0}, event(10), event(20), event(20, 500))
    (folder / "curves.png").write_bytes(b"")
    card = render_card_of(folder)
    section = card[card.index("### Learning curve") : card.index("## Knowledge and sources")]
    assert "| 1 | 10 | 10 | 20 | 5 |" in section and "| 2 | 20 | 5 | 20 | 5 |" in section
    assert "](curves.png)" in section and "On 9 validation stories." in section
    assert section.count("| 2 | 20 |") == 1, "The last evaluation was on other stories."


def test_a_long_curve_is_thinned_out_and_ends_with_the_last_evaluation(tmp_path):
    write(tmp_path, *(event(step) for step in range(1, 101)))
    lines = [line for line in learning_curve(tmp_path).splitlines() if line.startswith("| ")]
    assert len(lines) <= 17 and lines[-1].startswith("| 10 | 100 |")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"log_history": 5}', '{"log_history": [5]}', '{"log_history": [{"step": "<b>", "epoch": 1}]}'],
)
def test_nothing_is_shown_where_nothing_is_known(folder, content):
    before = render_card_of(folder)
    (folder / "trainer_state.json").write_text(content)
    assert learning_curve(folder) is None and render_card_of(folder) == before and "Learning curve" not in before


def test_story_cloze_accuracy_is_that_of_the_model_not_of_a_split(folder):
    evaluation = Evaluation({"bleu_1": 21.5, "cloze_accuracy": 55.5})
    save_evaluation(evaluation, folder, name="mine", dataset_id="rocstories", split="test")
    (line,) = [line for line in render_card_of(folder).splitlines() if line.startswith("| Story Cloze accuracy, % |")]
    assert line.count("55.5") == 2
