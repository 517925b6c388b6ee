"""Commands without arguments, and as JSON."""

import json

from hf_storyend.hub import CodeCheck, PushPlan
from hf_storyend.systems import SYSTEMS


def test_evaluate(storyend):
    measured = json.loads(storyend("evaluate", "--max_stories", "4", "--num_seeds", "0", "--json").out)
    assert measured["num_stories"] == 4 and measured["metrics"]["perplexity"] > 1


def test_score_without_endings_scores_those_of_the_packages_model(storyend):
    scored = json.loads(storyend("score", "--max_stories", "4", "--json").out)
    assert list(scored) == ["default_model"] and scored["default_model"]["num_stories"] == 4


def test_annotate_draws_a_sample_and_looks_for_its_scores(storyend, tmp_path):
    assert "human/key.json can't be opened" in storyend("annotate", "report", code=2).err
    printed = storyend("annotate", "sample", "--num_stories", "2", "--num_annotators", "1").out
    assert "2 endings of 1 system for each of 1 annotators" in printed
    assert (tmp_path / "human" / "sheets" / "sheet_1.csv").is_file()
    assert "rows 2 to 3, column `grammar`: blank" in storyend("annotate", "report", code=2).err


def test_card_is_that_of_the_packages_model(storyend):
    assert "# Story endings" in storyend("card").out


def test_check_code_of_the_packages_model(storyend):
    assert "carries no code: the package's own is used" in storyend("check-code").out
    found = json.loads(storyend("check-code", "--json").out)
    assert found.pop("is_identical") and found.pop("library_versions")
    settings = ["config.json: `model_type`", "tokenizer_config.json: `tokenizer_class`"]
    assert found.pop("settings") == settings and not any(found.values())


def test_check_code_as_json_lists_what_is_missing(storyend, model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "knowledge_table.py").unlink()
    found = json.loads(storyend("check-code", "saved", "--json", code=1).out)
    assert found["missing"] == ["knowledge_table.py"] and not found["is_identical"]
    assert set(found) > set(vars(CodeCheck()))


def test_prepare(storyend, tmp_path):
    report = json.loads(storyend("prepare", "--json").out)
    assert not report["cached"] and (tmp_path / "prepared" / "report.md").is_file()


def test_systems(storyend):
    printed = storyend("systems").out
    assert all(name in printed for name in SYSTEMS)


def test_push_as_json_names_what_would_be_pushed(storyend, monkeypatch):
    plan = PushPlan("me/it", "main", False, None, {"config.json": b"{}"}, {}, ["old.py"], ["vocab.json"])
    monkeypatch.setattr("hf_storyend.hub.plan_push", lambda *_, **__: plan)
    printed = json.loads(storyend("push", "my_model", "--repo_id", "me/it", "--dry_run", "--json").out)
    assert (printed["repo_id"], printed["revision"], printed["has_repo"]) == ("me/it", "main", False)
    assert (printed["new"], printed["removed"], printed["unchanged"]) == (["config.json"], ["old.py"], ["vocab.json"])
    assert printed["commit_url"] is None
