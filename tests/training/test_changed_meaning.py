"""A run that resumes under other data or options than it began with is refused, or told what changes."""

import json
import shutil
from pathlib import Path

import pytest
from datasets import DatasetDict, load_from_disk
from training_runs import small_options

from hf_storyend import IncrementalEncoderTokenizer
from hf_storyend.training import TrainingRun


@pytest.fixture
def begun(prepared, tmp_path) -> Path:
    """A run on a copy of the data, with a checkpoint after three updates."""
    shutil.copytree(prepared, tmp_path / "data")
    with TrainingRun(small_options(tmp_path / "data", tmp_path / "run")) as run:
        run.state.step = 3
        run.save()
    return tmp_path


def resume(begun: Path, **changes) -> None:
    with TrainingRun(small_options(begun / "data", begun / "run", **changes)) as run:
        assert run.state.step == 3


def test_nothing_is_said_where_nothing_changed(begun, caplog):
    resume(begun)
    assert not caplog.records


def test_other_knowledge(begun):
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(begun / "data")
    first, second = list(tokenizer.get_vocab())[-2:]
    tokenizer.add_triples([(first, "AtLocation", second)])
    tokenizer.save_pretrained(begun / "data")
    with pytest.raises(ValueError, match="belongs to another run: `knowledge` was"):
        resume(begun)


def test_another_vocabulary(begun):
    path = begun / "data" / "vocab.json"
    words = json.loads(path.read_text())
    first, second = list(words)[-2:]
    path.write_text(json.dumps({**words, first: words[second], second: words[first]}))
    with pytest.raises(ValueError, match="belongs to another run: `vocabulary` was"):
        resume(begun)


@pytest.mark.parametrize("name", ["stories", "tokenised"])
def test_other_validation_stories(begun, name):
    splits = load_from_disk(begun / "data" / name)
    fewer = DatasetDict({**splits, "validation": splits["validation"].select(range(1, 9))})
    fewer.save_to_disk(begun / "new")
    shutil.rmtree(begun / "data" / name)
    (begun / "new").rename(begun / "data" / name)
    with pytest.raises(ValueError, match="belongs to another run: .*`validation stories` was"):
        resume(begun)


def test_other_training_stories_under_the_same_fingerprint(begun):
    """The fingerprint is a word in a file beside the stories, which stays when the stories are replaced."""
    folder = begun / "data" / "tokenised" / "train"
    load_from_disk(folder).select(range(45, -1, -1)).save_to_disk(begun / "other")
    (begun / "other" / "data-00000-of-00001.arrow").replace(folder / "data-00000-of-00001.arrow")
    with pytest.raises(ValueError, match="belongs to another run: `training stories` was"):
        resume(begun)


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("config.json", {"attend_empty_graphs": False}, "`model` was {'attend_empty_graphs': True}, is"),
        ("config.json", {"max_triples": 1}, "`model` was {'max_triples': 10}, is {'max_triples': 1}"),
        ("config.json", {"max_ending_length": 3}, "`model` was {'max_ending_length'"),
        ("tokenizer_config.json", {"do_lower_case": False}, "`tokenizer` was"),
        ("word_forms.json", {"in": "IN"}, "`tokenizer` was"),
    ],
)
def test_other_settings_of_the_prepared_model(begun, file, change, said):
    """None of them changes a shape."""
    path = begun / "data" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=f"belongs to another run: {said}"):
        resume(begun)


def test_files_that_datasets_leaves_beside_the_stories_are_no_other_stories(begun, caplog):
    for name in ("stories/validation", "tokenised/validation", "tokenised/train"):
        folder = begun / "data" / name
        shutil.copy(folder / "data-00000-of-00001.arrow", folder / "cache-0a1b2c3d.arrow")
    resume(begun)
    assert not caplog.records


@pytest.mark.parametrize("change", [{"max_eval_samples": 5}, {"num_beams": 2}])
def test_other_evaluations(begun, change):
    """The best value so far would be compared with values of another kind."""
    with pytest.raises(ValueError, match=f"belongs to another run: `{next(iter(change))}` was"):
        resume(begun, **change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_steps": 2}, "3 updates, more than `max_steps` (2): nothing is left to train"),
        ({"max_steps": 12}, "another `max_steps` (20 before, 12 now): the learning rate follows"),
        ({"eval_steps": 5}, "another `eval_steps` (7 before, 5 now)"),
        ({"max_minutes": 5.0}, "another `max_minutes` (None before, 5.0 now)"),
    ],
)
def test_what_may_change_is_said_aloud(begun, caplog, change, said):
    resume(begun, **change)
    assert said in caplog.text and {record.levelname for record in caplog.records} == {"WARNING"}


def edit_identity(begun: Path, edit) -> None:
    """Change what the checkpoint tells, and its checksums."""
    from hf_storyend.manifest import write_manifest

    path = begun / "run" / "checkpoint-3" / "state.json"
    state = json.loads(path.read_text())
    edit(state["identity"])
    path.write_text(json.dumps(state))
    write_manifest(path.parent, "checkpoint", step=3)


def test_another_number_of_processes_is_said_aloud(begun, caplog):
    edit_identity(begun, lambda identity: identity["changeable"].update({"number of processes": 2}))
    resume(begun)
    assert "another `number of processes` (2 before, 1 now)" in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_checkpoint_of_version_0_1_says_what_it_does_not_tell(begun, caplog):
    def forget(identity: dict) -> None:
        for name in ("changeable", "knowledge", "vocabulary", "validation stories", "num_beams", "max_eval_samples"):
            del identity[name]
        for name in ("training stories", "tokenizer", "model"):
            del identity[name]

    edit_identity(begun, forget)
    resume(begun)
    assert "does not tell its" in caplog.text and "`knowledge`" in caplog.text
