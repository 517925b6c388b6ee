"""Sheets and page show endings without their systems, and nothing in them runs as a formula or script."""

import json
import re

import pytest
from annotation.sheet_rows import rows_of
from annotation.synthetic import synthetic_systems
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.annotation import draw_sample, write_sample
from hf_storyend.annotation.sheets import escape_formula, render_page, unescape_formula

FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"


def test_neither_sheets_nor_page_name_a_system(tmp_path):
    (tmp_path / ".out.0a1b2c3d.partial").mkdir()
    write_sample(draw_sample(synthetic_systems(3, 5), 5), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "What a killed command left behind is deleted."
    files = list((tmp_path / "out" / "sheets").iterdir())
    assert {path.name for path in files} == {
        "annotate.html", "guidelines.md", "sheet_1.csv", "sheet_2.csv", "sheet_3.csv"
    }  # fmt: skip
    for path in files:
        assert "secret" not in path.read_text()
    assert "secret" in (tmp_path / "out" / "key.json").read_text()


def test_sheets_show_story_and_ending_and_leave_scores_blank(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    rows = rows_of(tmp_path / "out" / "sheets" / "sheet_2.csv")
    assert list(rows[0]) == [
        "sample", "annotator", "item", "context", "ending", "grammar", "logicality", "error_type"
    ]  # fmt: skip
    assert [row["item"] for row in rows] == [sample.items[place].id for place in sample.order(2)]
    assert {(row["annotator"], row["grammar"], row["logicality"], row["error_type"]) for row in rows} == {
        ("2", "", "", "")
    }
    assert "[no ending]" in {row["ending"] for row in rows}


def test_a_directory_with_scores_is_never_overwritten(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    with pytest.raises(ValueError, match="maybe with scores in it. Name another"):
        write_sample(sample, tmp_path / "out")
    (tmp_path / "empty").mkdir()
    write_sample(sample, tmp_path / "empty")
    assert (tmp_path / "empty" / "key.json").is_file()


def test_stories_are_data_that_can_not_end_their_element(sample):
    page = render_page(sample)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
    assert not set("<>&") & set(data)
    assert [tuple(story) for story in json.loads(data)["stories"]] == [story.context for story in sample.stories]
    assert page.count("</script>") == 2


def test_the_page_loads_nothing(sample):
    page = re.sub(r'(id="data">).*?<', r"\1<", render_page(sample), flags=re.S)
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:https?:)?//\w+\.\w+|<link|@import|url\(|\ssrc=""", page)


def test_csv_quotes_every_cell(sample, tmp_path):
    """A separator of another locale inside a text must not start a cell."""
    write_sample(sample, tmp_path / "out")
    lines = (tmp_path / "out" / "sheets" / "sheet_1.csv").read_bytes().decode().split("\r\n")
    assert len(lines) == 1 + len(sample.items) + 1
    assert all(re.fullmatch(r'("([^"]|"")*",){7}"([^"]|"")*"', line) for line in lines[:-1])


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("'" + FORMULA_STARTS + "a b"), max_size=6) | st.text())
def test_no_cell_is_a_formula_and_every_cell_reads_back(text):
    cell = escape_formula(text)
    assert not cell.startswith(tuple(FORMULA_STARTS))
    assert unescape_formula(cell) == text


def test_only_cells_that_need_it_are_changed():
    assert escape_formula("'Why?' asked Tom.") == "'Why?' asked Tom."
    assert escape_formula("A = B") == "A = B"
    assert escape_formula("=A") == "'=A"
    assert escape_formula("'=A") == "''=A"


def test_no_cell_of_a_sheet_is_a_formula(sample, fill):
    for path in fill(sample, lambda *_: "22"):
        cells = {cell for row in rows_of(path) for cell in row.values()}
        assert {"'-1 key was left.", "'@home they ate it anyway.", "''=She' lost."} <= cells
        assert not any(cell.startswith(tuple(FORMULA_STARTS)) for cell in cells)
