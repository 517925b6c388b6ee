"""The command line as a whole: its help, what commands do without arguments, and how they refuse."""

import json
import sys
from importlib.metadata import version

import pytest
import typer
from hf_storyend.cli.main import COMMANDS, app, main
from hf_storyend.cli.models import find_model

import hf_storyend
from hf_storyend.hub import CodeCheck, PushPlan
from hf_storyend.pretrained import EXAMPLE_STORIES
from hf_storyend.systems import SYSTEMS

GROUP = typer.main.get_command(app)
COMMAND_LINES = [*(name for name in GROUP.commands if name != "annotate"), "annotate sample", "annotate report"]


@pytest.fixture
def storyend(capsys, monkeypatch, tmp_path, wide_terminal):
    """What a command printed, on both streams; it runs in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["storyend", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed

    return run


def test_the_help_groups_commands_by_what_people_want(storyend):
    printed = storyend("--help").out
    words = ["Write endings", "generate", "explain", "demo", "Data and training", "prepare", "systems", "compare"]
    words += ["Measure", "evaluate", "score", "annotate", "Share", "card", "push", "check-code"]
    places = [printed.index(f"─ {word} ") if word in (*COMMANDS,) else printed.index(f"│ {word} ") for word in words]
    assert places == sorted(places)
    assert "--install-completion" in printed


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_every_command_has_an_example(storyend, line):
    assert f"Example: storyend {line}" in storyend(*line.split(), "--help").out


def test_explain_without_arguments(storyend):
    explained = json.loads(storyend("explain", "--json").out)
    assert " ".join(explained["story"]) == EXAMPLE_STORIES[0] and explained["words"]


def test_explain_takes_a_story_with_or_without_a_model_before_it(storyend):
    story, model = "Anna put a cake in the oven. She fell asleep.", hf_storyend.default_model()
    alone = json.loads(storyend("explain", story, "--json").out)
    assert " ".join(alone["story"]) == story
    assert json.loads(storyend("explain", model, story, "--json").out) == alone
    assert json.loads(storyend("explain", story, "--model", model, "--json").out) == alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["my_model"], "'my_model' is no story. If it is a model, give it as `--model`"),
        (["Anna", "fell", "asleep."], "3 arguments were given: put quotation marks around the story"),
        (["one", "A story.", "--model", "two"], "Two models were given, 'one' and 'two'"),
    ],
)
def test_explain_says_what_it_can_not_take(storyend, arguments, message):
    printed = storyend("explain", *arguments, code=2)
    assert message in printed.err and "Traceback" not in printed.err and not printed.out


@pytest.mark.parametrize("command", ["generate --model", "explain --model", "evaluate", "check-code"])
@pytest.mark.parametrize("name", ["my_modle", "../my_model", "some/where/else", "/not/there"])
def test_a_model_that_is_not_there_is_not_looked_for_on_the_hub(storyend, command, name):
    assert f"Error: `{name}` is no model: there is no such directory" in storyend(*command.split(), name, code=2).err


def test_a_model_is_a_directory_a_name_on_the_hub_or_the_package_s_own(tmp_path):
    assert find_model(str(tmp_path)) == str(tmp_path)
    assert find_model("me/ie-msa-ca") == "me/ie-msa-ca"
    assert find_model(None) == hf_storyend.default_model()


def test_evaluate_without_model_and_data(storyend):
    measured = json.loads(storyend("evaluate", "--max-stories", "4", "--num-seeds", "0", "--json").out)
    assert measured["num_stories"] == 4 and measured["metrics"]["perplexity"] > 1


def test_score_without_endings_scores_those_of_the_package_s_own_model(storyend):
    scored = json.loads(storyend("score", "--max-stories", "4", "--json").out)
    assert list(scored) == ["default_model"] and scored["default_model"]["num_stories"] == 4


def test_annotate_without_arguments_draws_a_study_and_looks_for_its_scores(storyend, tmp_path):
    assert "human/key.json can't be opened" in storyend("annotate", "report", code=2).err
    printed = storyend("annotate", "sample", "--num-stories", "2", "--num-annotators", "1").out
    assert "2 endings of 1 system for each of 1 annotators" in printed
    assert (tmp_path / "human" / "sheets" / "sheet_1.csv").is_file()
    assert "rows 2 to 3, column `grammar`: blank" in storyend("annotate", "report", code=2).err


def test_card_without_a_model_is_that_of_the_package_s_own(storyend):
    assert "# Story endings" in storyend("card").out


def test_check_code_without_a_model_says_that_there_is_no_code(storyend):
    assert "carries no code: the package's own is used" in storyend("check-code").out
    found = json.loads(storyend("check-code", "--json").out)
    assert found.pop("is_identical") and found.pop("made_with") and not any(found.values())


def test_check_code_as_json_lists_what_is_missing(storyend, model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "words.py").unlink()
    found = json.loads(storyend("check-code", "saved", "--json", code=1).out)
    assert found["missing"] == ["words.py"] and not found["is_identical"] and set(found) > set(vars(CodeCheck()))


def test_prepare_without_arguments(storyend, tmp_path):
    report = json.loads(storyend("prepare", "--json").out)
    assert not report["cached"] and (tmp_path / "prepared" / "report.md").is_file()


def test_systems_without_arguments(storyend):
    printed = storyend("systems").out
    assert all(name in printed for name in SYSTEMS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "No such command 'nothing'. `storyend --help` shows what there is."),
        ("annotate draw", "No such command 'draw'. `storyend annotate --help` shows what there is."),
        ("card --nothing", "No such option: --nothing. `storyend card --help` shows what there is."),
        ("push", "Missing argument 'model'. `storyend push --help` shows what there is."),
        ("evaluate --split", "Option '--split' requires an argument."),
        ("evaluate --batch-size 0", "Invalid value for '--batch-size'"),
        ("prepare --policy big", "'big' is not one of 'weight'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(storyend, line, message):
    printed = storyend(*line.split(), code=2)
    assert printed.err.startswith("Error: ") and message in printed.err
    assert printed.err.count("\n") == 1 and not printed.out


@pytest.mark.parametrize("line", ["", "annotate"])
def test_no_command_at_all_shows_the_help(storyend, line):
    printed = storyend(*line.split(), code=2)
    assert "Usage: storyend" in printed.out and not printed.err


def test_the_version_is_that_of_the_package(storyend):
    assert storyend("--version").out == f"hf_storyend {version('hf_storyend')}\n"


def test_the_shell_completes_commands(storyend, monkeypatch):
    asked = {"_STORYEND_COMPLETE": "complete_bash", "COMP_WORDS": "storyend ex", "COMP_CWORD": "1"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert storyend().out.split() == ["explain"]


def test_ctrl_c_is_no_traceback(storyend, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_storyend.systems.count_parameters", interrupt)
    assert "Traceback" not in storyend("systems", code=130).err


def test_push_as_json_names_what_would_go(storyend, monkeypatch):
    plan = PushPlan("me/it", "main", False, None, {"config.json": b"{}"}, {}, ["old.py"], ["vocab.json"])
    monkeypatch.setattr("hf_storyend.hub.plan_push", lambda *_, **__: plan)
    printed = json.loads(storyend("push", "my_model", "--repo-id", "me/it", "--dry-run", "--json").out)
    assert (printed["repo_id"], printed["branch"], printed["has_repo"]) == ("me/it", "main", False)
    assert (printed["new"], printed["removed"], printed["unchanged"]) == (["config.json"], ["old.py"], ["vocab.json"])
    assert printed["commit_url"] is None
