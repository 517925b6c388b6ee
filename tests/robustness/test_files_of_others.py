"""Nothing that this program did not write is deleted, whatever it is called and wherever it lies."""

from dataclasses import replace
from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend.comparison import compare, publish_comparison
from hf_storyend.comparison.options import ComparisonOptions
from hf_storyend.comparison.publish import check_export_dir
from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.evaluation.results import Evaluation, save_evaluation
from hf_storyend.export import ExportOptions, export
from hf_storyend.training import TrainingRun

STRANGERS = (".ssh.old", ".thesis.partial", ".thesis.0a1b2c3d.old", ".best.backup.old", "checkpoint-final", ".cache")
LEFTOVERS = (".checkpoint-3.0a1b2c3d.partial", ".checkpoint-0.01234567.old", ".best.0a1b2c3d.old")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "embedded"
    prepare(PrepareOptions(output_dir=directory, vocab_size=300, hidden_size=10, num_layers=1, embedding_size=8))
    return directory


def fill(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).mkdir(parents=True)
        (directory / name / "work").write_text("years of it")


def contents(directory: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in directory.glob("*/work")}


@pytest.mark.parametrize("resume", ["auto", "never", "checkpoint-3"])
def test_a_refused_run_deletes_nothing(prepared, tmp_path, resume):
    home = tmp_path / "home"
    fill(home, *STRANGERS, *LEFTOVERS)
    before = contents(home)
    (tmp_path / "checkpoint-3").mkdir()
    path = str(tmp_path / resume) if resume.startswith("checkpoint") else resume
    with pytest.raises(ValueError, match="is not empty and not a training run"):
        TrainingRun(small_options(prepared, home, resume_from_checkpoint=path))
    assert contents(home) == before and len(before) == len(STRANGERS + LEFTOVERS)
    assert sorted(path.name for path in home.iterdir()) == sorted(before)


def test_a_run_deletes_its_leftovers_and_nothing_else(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run")
    with TrainingRun(options) as run:
        run.save()
    fill(tmp_path / "run", *STRANGERS, *LEFTOVERS)
    with TrainingRun(options):
        assert contents(tmp_path / "run").keys() == set(STRANGERS)


def test_links_with_names_of_leftovers_lead_nowhere(prepared, tmp_path):
    """Whoever can write to the directory chooses no other one to be emptied."""
    options = small_options(prepared, tmp_path / "run")
    with TrainingRun(options) as run:
        run.save()
    fill(tmp_path / "home", "work")
    for name in LEFTOVERS:
        (tmp_path / "run" / name).symlink_to(tmp_path / "home" / "work")
    with TrainingRun(options):
        assert contents(tmp_path / "home") == {"work": "years of it"}


@pytest.mark.parametrize("name", ["thesis.tex", "config.json", ".hidden"])
def test_prepare_replaces_only_what_it_has_written(tmp_path, name):
    output = tmp_path / "out"
    output.mkdir()
    (output / name).write_text("{}")
    with pytest.raises(ValueError, match="is not a prepared directory"):
        prepare(PrepareOptions(output_dir=output, overwrite=True))
    assert [path.name for path in output.iterdir()] == [name]


def test_prepare_does_not_replace_a_file_or_a_link(tmp_path):
    (tmp_path / "out").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("out", "link"):
        with pytest.raises(ValueError, match="is not a prepared directory"):
            prepare(PrepareOptions(output_dir=tmp_path / name, overwrite=True))
    assert (tmp_path / "out").read_text() == "years of work" and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("has_manifest", "name"), [(True, "notes.md"), (False, "notes.md"), (True, "stories/notes.md")]
)
def test_what_was_added_to_a_prepared_directory_is_kept(tmp_path, has_manifest, name):
    options = PrepareOptions(output_dir=tmp_path / "out", hidden_size=8, num_layers=1, embedding_size=6)
    prepare(options)
    if not has_manifest:
        (tmp_path / "out" / "manifest.json").unlink()
    changed = replace(options, seed=1, overwrite=True)
    (tmp_path / "out" / name).write_text("years of work")
    with pytest.raises(ValueError, match=f"it also has {name}"):
        prepare(changed)
    (tmp_path / "out" / name).unlink()
    # What `datasets` has computed is nobody's work.
    (tmp_path / "out" / "stories" / "cache-0a1b2c3d.arrow").touch()
    assert not prepare(changed)["cached"]


def test_prepare_cleans_up_after_one_that_was_killed(tmp_path):
    fill(tmp_path, ".out.0a1b2c3d.partial", ".other.0a1b2c3d.partial", ".out.partial", ".outer.0a1b2c3d.old")
    prepare(PrepareOptions(output_dir=tmp_path / "out", hidden_size=8, num_layers=1, embedding_size=6))
    assert contents(tmp_path).keys() == {".other.0a1b2c3d.partial", ".out.partial", ".outer.0a1b2c3d.old"}


def test_an_evaluation_follows_no_links(tmp_path):
    """A model that somebody else made may have any, and one in the cache of the Hub has those to its blobs."""
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "model" / ".eval_results").mkdir(parents=True)
    names = ("evaluation.json", "evaluation.md", "model_index.yaml", ".eval_results/storyend.yaml")
    for name in names:
        (tmp_path / "model" / name).symlink_to(tmp_path / "thesis.tex")
    evaluation = Evaluation({"bleu_1": 0.5}, num_stories=1)
    save_evaluation(evaluation, tmp_path / "model", name="x", dataset_id="ann/stories")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    assert not any((tmp_path / "model" / name).is_symlink() for name in names)


def test_an_evaluation_follows_no_link_to_a_folder(tmp_path):
    fill(tmp_path, "home")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / ".eval_results").symlink_to(tmp_path / "home")
    with pytest.raises(ValueError, match=r"\.eval_results is a link: nothing is written to where it leads"):
        save_evaluation(Evaluation({"bleu_1": 0.5}), tmp_path / "model", name="x", dataset_id="ann/stories")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["work"]


def test_the_export_of_a_comparison_replaces_no_other_readme(tmp_path, monkeypatch):
    """It says so before anything is trained."""
    monkeypatch.setattr("hf_storyend.comparison.run._Comparison", lambda *arguments: pytest.fail("It goes on."))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "README.md").write_text("years of work")
    options = ComparisonOptions(output_dir=str(tmp_path / "compared"), export_dir=str(tmp_path / "thesis"))
    with pytest.raises(ValueError, match=r"has a README\.md that is not of such an export and would be replaced"):
        compare(options)
    with pytest.raises(ValueError, match="name another `export_dir`"):
        publish_comparison(tmp_path / "compared", tmp_path / "thesis", tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]
    assert (tmp_path / "thesis" / "README.md").read_text() == "years of work"
    (tmp_path / "thesis" / "curves.json").touch()
    check_export_dir(tmp_path / "thesis")


def test_an_export_replaces_no_other_model(tmp_path, monkeypatch):
    """It needs onnx, but not for that."""
    monkeypatch.setattr("hf_storyend.export.onnx_files._check_installed", lambda: pytest.fail("It goes on."))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="holds another model, whose configuration and vocabulary would be replaced"):
        export(ExportOptions(output_dir=str(tmp_path / "model")))
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["config.json"]
