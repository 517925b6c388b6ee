"""Sheets read back as written; all problems are reported at once, with annotator, row and column."""

import pytest
from annotation.sheet_rows import rewrite, rows_of

from hf_storyend.annotation import read_judgements


def judge(annotator, system, story):
    return f"{annotator - 1}{story % 3}" + (" logicality" if system == "graph" else "")


def test_judgements_read_back(sample, fill):
    judgements = read_judgements(sample, fill(sample, judge))
    assert list(judgements) == [item.id for item in sample.items]
    for item in sample.items:
        assert [judgement.scores for judgement in judgements[item.id]] == [
            {"grammar": grammar, "logicality": item.story % 3} for grammar in (0, 1, 2)
        ]
        wanted = "logicality" if item.system == "graph" else None
        assert {judgement.error_type for judgement in judgements[item.id]} == {wanted}


def test_the_order_of_rows_and_of_files_does_not_matter(sample, fill):
    paths = fill(sample, judge)
    before = read_judgements(sample, paths)
    rewrite(paths[1], lambda rows: rows[::-1])
    assert read_judgements(sample, paths[::-1]) == before


def test_results_of_mechanical_turk_are_read_as_they_come(sample, fill):
    paths = fill(sample, judge)
    before = read_judgements(sample, paths)

    def as_results(rows):
        given = ("sample", "annotator", "item", "context", "ending", "grammar", "logicality", "error_type")
        answers = ("grammar", "logicality", "error_type")
        return [
            {
                "HITId": "3X",
                **{f"Input.{name}": "" if name in answers else row[name] for name in given},
                **{f"Answer.{name}": row[name] for name in answers},
            }
            for row in rows
        ]

    rewrite(paths[0], as_results)
    assert read_judgements(sample, paths) == before


def problems_of(sample, paths) -> list[str]:
    with pytest.raises(ValueError) as caught:
        read_judgements(sample, paths)
    first, *problems = str(caught.value).splitlines()
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    assert first == f"{count} in the sheets (row 1 is the header)."
    return problems


def test_all_problems_are_reported_at_once(sample, fill):
    one, two, three = fill(sample, judge)
    removed = rows_of(two)[2]["item"]

    def corrupt_first(rows):
        rows[0]["grammar"] = "3"
        rows[1]["logicality"] = ""
        rows[2]["logicality"] = " "
        rows[4]["logicality"] = ""
        rows[5]["error_type"] = "boring"
        return [*rows, rows[6]]

    def corrupt_second(rows):
        rows[0]["grammar"] = "1.5"
        rows[1]["item"] = "item-99"
        del rows[2]

    missing = rows_of(two)[1]["item"]
    double = rows_of(one)[6]["item"]
    rewrite(one, corrupt_first)
    rewrite(two, corrupt_second)
    rewrite(three, lambda rows: rows[3].update(sample="sample-0", annotator="7"))
    strange = rows_of(three)[3]["item"]
    assert sorted(problems_of(sample, [one, two, three])) == sorted(
        [
            f"{one}: annotator 1, row 2, column `grammar`: must be 0, 1 or 2; got '3'",
            f"{one}: annotator 1, rows 3 to 4, column `logicality`: blank; must be 0, 1 or 2",
            f"{one}: annotator 1, row 6, column `logicality`: blank; must be 0, 1 or 2",
            f"{one}: annotator 1, row 7, column `error_type`: must be blank or one of grammar, logicality, other; "
            "got 'boring'",
            f"{one}: annotator 1, row 10, column `item`: {double} is there twice, also at {one}: annotator 1, row 8",
            f"{two}: annotator 2, row 2, column `grammar`: must be 0, 1 or 2; got '1.5'",
            f"{two}: annotator 2, row 3, column `item`: 'item-99' is not in the key",
            f"annotator 2: the row of {missing} is missing",
            f"annotator 2: the row of {removed} is missing",
            f"{three}: annotator 7, row 5, column `sample`: 'sample-0' is not the key's, {sample.id!r}",
            f"annotator 3: the row of {strange} is missing",
        ]
    )


def test_the_same_ending_scored_in_two_files_is_double(sample, fill, tmp_path):
    paths = fill(sample, judge)
    copy = tmp_path / "copy.csv"
    copy.write_bytes(paths[2].read_bytes())
    problems = problems_of(sample, [*paths, copy])
    assert len(problems) == len(sample.items)
    item = rows_of(copy)[0]["item"]
    place = f"{paths[2]}: annotator 3, row 2"
    assert problems[0] == f"{copy}: annotator 3, row 2, column `item`: {item} is there twice, also at {place}"


def test_a_file_given_twice_is_one_problem(sample, fill):
    paths = fill(sample, judge)
    assert problems_of(sample, [*paths, paths[0]]) == [f"{paths[0]}: given twice"]


def test_an_annotator_without_a_sheet_is_one_problem(sample, fill):
    one, _, three = fill(sample, judge)
    assert problems_of(sample, [one, three]) == ["annotator 2: there is no row of theirs in any sheet"]


def test_an_unknown_annotator(sample, fill):
    paths = fill(sample, judge)
    rewrite(paths[2], lambda rows: [row | {"annotator": "4"} for row in rows])
    problems = problems_of(sample, paths)
    assert problems[0] == f"{paths[2]}: annotator 4, row 2, column `annotator`: must be from 1 to 3; got '4'"


def test_columns_that_were_sorted_apart_are_noticed(sample, fill):
    """Sorting one column alone would give an ending the scores of another."""
    paths = fill(sample, judge)

    def sort_one_column(rows):
        for row, ending in zip(rows, sorted(row["ending"] for row in rows), strict=True):
            row["ending"] = ending

    moved = [row["ending"] for row in rows_of(paths[0])]
    rewrite(paths[0], sort_one_column)
    num_moved = sum(one != two for one, two in zip(moved, sorted(moved), strict=True))
    problems = problems_of(sample, paths)
    assert len(problems) == num_moved > 0
    assert "column `ending`: not the text of item-" in problems[0]


def test_context_and_ending_are_optional(sample, fill):
    paths = fill(sample, judge)
    before = read_judgements(sample, paths)
    kept = ("sample", "annotator", "item", "grammar", "logicality")
    rewrite(paths[0], lambda rows: [{name: row[name] for name in kept} for row in rows])
    after = read_judgements(sample, paths)
    assert [each[0].scores for each in after.values()] == [each[0].scores for each in before.values()]


def test_a_corrupted_sheet_does_not_hide_the_problems_of_the_others(sample, fill):
    one, two, three = fill(sample, judge)
    one.write_text("item;grammar\n")
    rewrite(two, lambda rows: rows[0].update(grammar="x"))
    three.write_bytes(three.read_bytes()[:-40])
    problems = problems_of(sample, [one, two, three])
    assert f"{one}, line 1: column `sample` is missing; there is 'item;grammar'." in problems
    assert f"{two}: annotator 2, row 2, column `grammar`: must be 0, 1 or 2; got 'x'" in problems
    assert any(problem.startswith(f"{three}, line 9: ") for problem in problems), problems
