"""`storyend annotate` from endings to report, as typed."""

import json
import sys

import pytest
from annotation.sheet_rows import rewrite

from hf_storyend.annotation import read_key
from hf_storyend.cli.main import main


@pytest.fixture
def storyend(monkeypatch, capsys):
    """Run a command; its exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["storyend", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        printed = capsys.readouterr()
        return caught.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture
def drawn(storyend, endings, tmp_path):
    one, two = endings
    output = tmp_path / "human"
    arguments = ["--endings", one, "--endings", two, "--name", "first", "--name", "second", "--output_dir", output]
    code, printed, _ = storyend("annotate", "sample", *arguments, "--num_stories", 3, "--seed", 5, "--references")
    assert code == 0
    assert "9 endings of 3 systems for each of 3 annotators." in printed
    return output


def score(output):
    systems = {item.id: item.system for item in read_key(output / "key.json").items}
    for path in sorted((output / "sheets").glob("*.csv")):
        rewrite(
            path,
            lambda rows: [
                row | {"grammar": "2", "logicality": "2" if systems[row["item"]] == "reference" else "1"}
                for row in rows
            ],
        )
    return sorted((output / "sheets").glob("*.csv"))


def test_from_endings_to_report(storyend, drawn, tmp_path):
    sheets = score(drawn)
    folder = tmp_path / "report"
    # As a shell writes it: one option, then every file.
    code, printed, _ = storyend(
        "annotate", "report", "--key", drawn / "key.json", "--output_dir", folder, "--sheets", *sheets
    )
    assert code == 0
    assert "Human evaluation" in printed
    report = json.loads((folder / "report.json").read_text())
    assert list(report["systems"]) == ["first", "second", "reference"]
    assert report["systems"]["reference"]["logicality"]["mean"] == 2
    assert (folder / "report.md").read_text().startswith("# Human evaluation\n")
    assert (folder / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_json(storyend, drawn):
    sheets = [argument for sheet in score(drawn) for argument in ("--sheets", sheet)]
    code, printed, _ = storyend("annotate", "report", "--key", drawn / "key.json", *sheets, "--json")
    assert code == 0
    assert json.loads(printed)["num_endings"] == 9


def test_problems_are_listed_with_exit_code_2(storyend, drawn):
    one, two, three = score(drawn)
    rewrite(one, lambda rows: rows[4].update(grammar="5"))
    rewrite(three, lambda rows: rows[0].update(logicality=""))
    code, printed, errors = storyend("annotate", "report", "--key", drawn / "key.json", "--sheets", one, two, three)
    assert code == 2
    assert not printed
    assert "2 problems in the sheets" in errors
    assert f"{one}: annotator 1, row 6, column `grammar`: must be 0, 1 or 2; got '5'" in errors
    assert f"{three}: annotator 3, row 2, column `logicality`: blank" in errors


def test_a_sample_is_not_drawn_over_another(storyend, drawn, endings):
    code, _, errors = storyend(
        "annotate", "sample", "--endings", endings[0], "--output_dir", drawn, "--num_stories", 1
    )
    assert code == 2
    assert "Name another output directory" in errors
