"""Every format, source and mistake that `load_stories` knows."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import datasets
import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.data.embedded import embedded_stories
from hf_storyend.data.stories import STORY_FEATURES, load_stories, load_story_cloze
from hf_storyend.data.story_records import StoryRecord

STORIES: list[StoryRecord] = [
    {"context": ["Ida lost a glove.", "She went back.", "It was dark.", "A dog barked."], "ending": "He had it!"},
    {"context": ["Bo baked, for once.", 'He said "hm".', "It rose.", "It fell."], "ending": "Bo bought bread."},
]
ROC_HEADER = ["storyid", "storytitle", "sentence1", "sentence2", "sentence3", "sentence4", "sentence5"]
CLOZE_HEADER = [
    "InputStoryid",
    "InputSentence1",
    "InputSentence2",
    "InputSentence3",
    "InputSentence4",
    "RandomFifthSentenceQuiz1",
    "RandomFifthSentenceQuiz2",
    "AnswerRightEnding",
]


def csv_text(*rows: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def roc_rows(stories: Sequence[StoryRecord]) -> list[list[str]]:
    return [ROC_HEADER] + [["id", "title", *story["context"], story["ending"]] for story in stories]


def cloze_row(story: StoryRecord, wrong: str, right: str) -> list[str]:
    endings = [story["ending"], wrong] if right == "1" else [wrong, story["ending"]]
    return ["id", *story["context"], *endings, right]


def json_lines(stories: Sequence[object]) -> str:
    return "".join(json.dumps(story) + "\n" for story in stories)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(loaded: DatasetDict, split: str = "train") -> list[StoryRecord]:
    assert list(loaded) == [split]
    assert loaded[split].features == STORY_FEATURES
    return loaded[split].to_list()


def problem(path: object, **options: str) -> str:
    with pytest.raises(ValueError) as caught:
        load_stories(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


class TestFormats:
    def test_features_are_a_list_of_sentences_and_an_ending(self, tmp_path: Path) -> None:
        loaded = load_stories(write(tmp_path / "a.jsonl", json_lines(STORIES)))
        assert loaded["train"].features == datasets.Features(
            {"context": datasets.List(datasets.Value("string")), "ending": datasets.Value("string")}
        )

    def test_rocstories_csv(self, tmp_path: Path) -> None:
        assert rows(load_stories(write(tmp_path / "a.csv", csv_text(*roc_rows(STORIES))))) == STORIES

    def test_columns_of_a_table_may_stand_in_any_order_among_others(self, tmp_path: Path) -> None:
        shuffled = [list(reversed([*row, "more"])) for row in roc_rows(STORIES)]
        assert rows(load_stories(write(tmp_path / "a.csv", csv_text(*shuffled)))) == STORIES

    @pytest.mark.parametrize("right", ["1", "2"])
    def test_story_cloze_csv_gives_the_right_ending(self, tmp_path: Path, right: str) -> None:
        table = csv_text(CLOZE_HEADER, *(cloze_row(story, "Wrong.", right) for story in STORIES))
        assert rows(load_stories(write(tmp_path / "a.csv", table))) == STORIES

    def test_story_cloze_csv_as_questions(self, tmp_path: Path) -> None:
        table = csv_text(CLOZE_HEADER, cloze_row(STORIES[0], "Wrong.", "1"), cloze_row(STORIES[1], "No.", "2"))
        questions = load_story_cloze(write(tmp_path / "a.csv", table)).to_list()
        assert [(q["ending1"], q["ending2"], q["right"]) for q in questions] == [
            ("He had it!", "Wrong.", 1),
            ("No.", "Bo bought bread.", 2),
        ]
        assert [q["context"] for q in questions] == [story["context"] for story in STORIES]

    @pytest.mark.parametrize("named", ["a.post", "a.response", ["a.post", "a.response"]])
    def test_post_and_response_by_either_name_or_both(self, tmp_path: Path, named: str | list[str]) -> None:
        write(tmp_path / "a.post", "".join("\t".join(story["context"]) + "\n" for story in STORIES))
        write(tmp_path / "a.response", "".join(story["ending"] + "\n" for story in STORIES))
        source = tmp_path / named if isinstance(named, str) else [tmp_path / name for name in named]
        assert rows(load_stories(source)) == STORIES

    def test_post_and_response_by_their_common_name(self, tmp_path: Path) -> None:
        write(tmp_path / "v1.0.post", "Ida ran .\tShe fell .\n")
        write(tmp_path / "v1.0.response", "She cried .\n")
        expected = [{"context": ["Ida ran .", "She fell ."], "ending": "She cried ."}]
        assert rows(load_stories(tmp_path / "v1.0", format="post-response")) == expected

    def test_json_lines_ignore_other_keys(self, tmp_path: Path) -> None:
        lines = json_lines([{**story, "source": None, "id": 3} for story in STORIES])
        assert rows(load_stories(write(tmp_path / "a.jsonl", lines))) == STORIES

    def test_contexts_may_have_any_number_of_sentences(self, tmp_path: Path) -> None:
        stories = [{"context": ["One."] * number, "ending": "End."} for number in (1, 2, 7)]
        assert rows(load_stories(write(tmp_path / "a.jsonl", json_lines(stories)))) == stories

    def test_text_with_a_story_a_line(self, tmp_path: Path) -> None:
        text = "Ida saw Dr. Ho. He was out. She left.\nBo ran. He won!\n\n"
        assert rows(load_stories(write(tmp_path / "a.txt", text))) == [
            {"context": ["Ida saw Dr. Ho.", "He was out."], "ending": "She left."},
            {"context": ["Bo ran."], "ending": "He won!"},
        ]

    @pytest.mark.parametrize("blank", ["\n", "  \n\n"])
    def test_text_with_a_story_a_paragraph(self, tmp_path: Path, blank: str) -> None:
        text = f"\nIda saw\nher aunt. They talked.\nShe left.\n{blank}Bo ran. He won!\n"
        assert rows(load_stories(write(tmp_path / "a.txt", text))) == [
            {"context": ["Ida saw her aunt.", "They talked."], "ending": "She left."},
            {"context": ["Bo ran."], "ending": "He won!"},
        ]

    def test_format_overrides_the_name(self, tmp_path: Path) -> None:
        assert rows(load_stories(write(tmp_path / "a.txt", json_lines(STORIES)), format="jsonl")) == STORIES
        assert (
            rows(load_stories(write(tmp_path / "a.dat", csv_text(*roc_rows(STORIES))), format="rocstories")) == STORIES
        )

    @pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])
    def test_gzip_is_known_by_its_content(self, tmp_path: Path, name: str) -> None:
        assert rows(load_stories(write(tmp_path / name, gzip.compress(json_lines(STORIES).encode())))) == STORIES

    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_line_ends_marks_and_final_blank_lines_do_no_harm(self, tmp_path: Path, line_end: str) -> None:
        ending = line_end * 2 + " " + line_end
        for name, text in (("a.jsonl", json_lines(STORIES)), ("a.csv", csv_text(*roc_rows(STORIES)))):
            text = text.replace("\r\n", "\n").replace("\n", line_end) + ending
            assert rows(load_stories(write(tmp_path / name, text.encode("utf-8-sig")))) == STORIES

    def test_a_separator_of_unicode_is_not_a_line_end(self, tmp_path: Path) -> None:
        story = '{"context": ["Ida\u2028ran.", "She\x85fell."], "ending": "Oh\x1c no."}\n'
        assert rows(load_stories(write(tmp_path / "a.jsonl", story.replace("\x1c", "\\u001c")))) == [
            {"context": ["Ida\u2028ran.", "She\x85fell."], "ending": "Oh\x1c no."}
        ]


readable = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)
sentence = st.builds("{} {}{}".format, readable, st.text('ab,"\n\r\t ;'), readable)
five_sentences = st.builds(
    lambda sentences: {"context": sentences[:-1], "ending": sentences[-1]}, st.lists(sentence, min_size=5, max_size=5)
)


class TestNothingIsLost:
    @given(stories=st.lists(five_sentences, min_size=1, max_size=5))
    @settings(deadline=None)
    def test_what_csv_and_json_lines_hold_comes_back(
        self, stories: list[StoryRecord], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        directory = tmp_path_factory.mktemp("files")
        assert rows(load_stories(write(directory / "a.csv", csv_text(*roc_rows(stories))))) == stories
        assert rows(load_stories(write(directory / "a.jsonl", json_lines(stories)))) == stories

    @given(cut=st.integers(min_value=0, max_value=400))
    @settings(max_examples=200, deadline=None)
    def test_a_file_cut_anywhere_keeps_every_story_it_starts_or_is_refused(
        self, cut: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        directory = tmp_path_factory.mktemp("files")
        for name, text, num_headers in (
            ("a.csv", csv_text(*roc_rows(STORIES)), 1),
            ("a.jsonl", json_lines(STORIES), 0),
        ):
            part = text[:cut].rstrip("\r\n")
            num_started = len(part.splitlines()) - num_headers
            path = write(directory / name, part)
            try:
                loaded = load_stories(path)
            except ValueError as error:
                assert str(path) in str(error)
            else:
                assert len(loaded["train"]) == num_started

    def test_a_gzip_file_cut_anywhere_is_refused(self, tmp_path: Path) -> None:
        content = gzip.compress(json_lines(STORIES).encode())
        for length in range(len(content)):
            path = write(tmp_path / "a.jsonl.gz", content[:length])
            assert str(path) in problem(path)


class TestBrokenFiles:
    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt", "a.jsonl.gz"])
    @pytest.mark.parametrize("content", ["", "\n", " \n\n"])
    def test_an_empty_file(self, tmp_path: Path, name: str, content: str) -> None:
        data = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
        path = write(tmp_path / name, data)
        assert problem(path).startswith(f"{path} is empty")

    def test_a_table_with_nothing_but_a_header(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", csv_text(ROC_HEADER))
        assert problem(path) == f"{path} is empty: there is no story in it."
        questions = write(tmp_path / "b.csv", csv_text(CLOZE_HEADER))
        with pytest.raises(ValueError, match="there is no question in it"):
            load_story_cloze(questions)

    def test_a_row_with_too_few_or_too_many_columns(self, tmp_path: Path) -> None:
        good, bad = roc_rows(STORIES)[:2], roc_rows(STORIES)[2]
        message = problem(write(tmp_path / "a.csv", csv_text(*good, bad[:5])))
        assert "a.csv, line 3: the row has 5 columns, the header 7: column `sentence4` is missing" in message
        message = problem(write(tmp_path / "a.csv", csv_text(*good, [*bad, "x"])))
        assert "a.csv, line 3: the row has 8 columns, the header 7: there is text behind column `sentence5`" in message

    def test_lines_are_counted_as_an_editor_counts_them(self, tmp_path: Path) -> None:
        header, first, second = roc_rows(STORIES)
        first[3] = "She\nwent\r\nback."
        second[4] = " \t"
        path = write(tmp_path / "a.csv", csv_text(header, first, second))
        assert problem(path) == f"{path}, line 5: `sentence3` is blank: every sentence must have a word."

    @pytest.mark.parametrize("broken", ['id,t,"s1,s2,s3,s4,s5\nid,t,s1,s2,s3,s4,s5\n', 'id,t,"s"1,s2,s3,s4,s5\n'])
    def test_a_quotation_mark_too_few(self, tmp_path: Path, broken: str) -> None:
        message = problem(write(tmp_path / "a.csv", csv_text(*roc_rows(STORIES)) + broken))
        assert "a.csv, line 4: the row that starts here is not valid CSV" in message

    def test_a_table_of_something_else(self, tmp_path: Path) -> None:
        message = problem(write(tmp_path / "a.csv", "id;sentence1;sentence2\n1;a;b\n"))
        assert "a.csv, line 1: the columns are 'id;sentence1;sentence2'" in message
        assert "sentence5" in message and "AnswerRightEnding" in message
        message = problem(write(tmp_path / "a.csv", csv_text(CLOZE_HEADER)), format="rocstories")
        assert "rocstories" in message and "storycloze" not in message
        message = problem(write(tmp_path / "a.csv", csv_text([*ROC_HEADER, "sentence1"])))
        assert "line 1: column `sentence1` is there twice" in message

    def test_a_right_ending_that_is_neither(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", csv_text(CLOZE_HEADER, cloze_row(STORIES[0], "Wrong.", "3")))
        assert "line 2: `AnswerRightEnding` must be 1 or 2, the number of the right ending; got '3'" in problem(path)
        with pytest.raises(ValueError, match="line 2: `AnswerRightEnding`"):
            load_story_cloze(path)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ('{"context": ["a."], "ending": ', "line 2, column 31: Expecting value"),
            ('{"context": ["a."]}', "line 2: key `ending` is missing; there is 'context'"),
            ("[]", "line 2: a JSON list"),
            ('{"context": "a. b.", "ending": "c."}', "line 2: `context` must be a list of at least one sentence"),
            ('{"context": [], "ending": "c."}', "line 2: `context` must be a list of at least one sentence; got []"),
            ('{"context": ["a.", 5], "ending": "c."}', "line 2: `context[1]` must be a string; got 5"),
            ('{"context": ["a.", null], "ending": "c."}', "line 2: `context[1]` must be a string; got None"),
            ('{"context": ["a.", "\\u200b "], "ending": "c."}', "line 2: `context[1]` is blank"),
            ('{"context": ["a."], "ending": ""}', "line 2: `ending` is blank"),
            ('{"context": ["a."], "ending": "\\ud800."}', "line 2: `ending` has half a character"),
            ("", "line 2: a blank line among the stories"),
            ("[" * 100_000, "line 2"),
        ],
    )
    def test_json_lines_that_are_no_stories(self, tmp_path: Path, line: str, expected: str) -> None:
        first, last = json_lines(STORIES).splitlines()
        path = write(tmp_path / "a.jsonl", f"{first}\n{line}\n{last}\n")
        assert problem(path).startswith(f"{path}, {expected}")

    def test_a_blank_line_among_the_rows_of_a_table(self, tmp_path: Path) -> None:
        header, first, second = (csv_text(row) for row in roc_rows(STORIES))
        path = write(tmp_path / "a.csv", header + first + "\n\n" + second)
        assert problem(path).startswith(f"{path}, line 3: a blank line among the rows")

    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt"])
    def test_other_encodings_are_named(self, tmp_path: Path, name: str) -> None:
        text = "Fine.\nIda met Zoé.\n"
        message = problem(write(tmp_path / name, text.encode("latin-1")))
        assert f"{name}, line 2 (byte 16): not UTF-8 text" in message and "Latin-1" in message
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            assert "looks like UTF-16" in problem(write(tmp_path / name, text.encode(encoding)))
        assert "cut off inside a character" in problem(write(tmp_path / name, text.encode()[:-3]))
        assert "(byte 12)" in problem(write(tmp_path / name, b"\xef\xbb\xbfFine.\nAn \xe9."))
        assert "damaged" in problem(write(tmp_path / name, text.encode() + b"\xff\xff\n"))
        assert "line 2 (byte 6): not UTF-8 text (a zero byte)" in problem(
            write(tmp_path / name, b"Fine.\n\0" + b"x" * 9)
        )

    def test_a_pair_of_unequal_length(self, tmp_path: Path) -> None:
        post = write(tmp_path / "a.post", "A.\tB.\nC.\tD.\n")
        response = write(tmp_path / "a.response", "E.\n")
        assert f"{post} has 2 lines, {response} 1" in problem(post)

    @pytest.mark.parametrize(("present", "missing"), [("a.post", "a.response"), ("a.response", "a.post")])
    def test_half_a_pair(self, tmp_path: Path, present: str, missing: str) -> None:
        assert f"{tmp_path / missing} is missing" in problem(write(tmp_path / present, "A.\tB.\n"))

    def test_blank_sentences_of_a_pair(self, tmp_path: Path) -> None:
        post, response = write(tmp_path / "a.post", "A.\tB.\nC.\t\n"), write(tmp_path / "a.response", "E.\nF.\n")
        assert problem(post).startswith(f"{post}, line 2: `sentence 2` is blank")
        write(post, "A.\tB.\nC.\nD.\n")
        write(response, "E.\n\nF.\n")
        assert problem(post).startswith(f"{response}, line 2: `ending` is blank")

    def test_contexts_that_are_not_separated_by_tabs(self, tmp_path: Path) -> None:
        write(tmp_path / "a.response", "Bo won.\n")
        assert "separated by a tab" in problem(write(tmp_path / "a.post", "Bo ran. Ida ran too.\n"))

    def test_text_with_a_story_of_one_sentence(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.txt", "Bo ran. He won.\nBo ran and won.\n")
        assert problem(path).startswith(f"{path}, line 2: `story` has 1 sentence, a story needs two or more")
        path = write(tmp_path / "a.txt", "Bo ran.\nHe won.\n\nBo ran and won.\n")
        assert problem(path).startswith(f"{path}, line 4: `story` has 1 sentence")

    def test_text_that_could_be_a_story_a_line_or_a_paragraph(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.txt", "Bo ran. He won.\nIda ran. She won.\n\nEli ran. He fell.\n")
        assert problem(path).startswith(f"{path}, lines 1 to 2: one story, or 2?")

    def test_names_that_lead_nowhere(self, tmp_path: Path) -> None:
        assert "what is in a file called 'a.dat' is not known" in problem(write(tmp_path / "a.dat", "x"))
        assert "can't be opened: No such file" in problem(tmp_path / "none.csv")
        assert "can't be opened: No such file" in problem("none.jsonl")
        assert "can't be opened: No such file" in problem(str(tmp_path / "none"), format="text")
        assert "`format` must be one of rocstories" in problem(tmp_path / "none.csv", format="tsv")
        assert "`source` must be a path" in problem(5)
        assert "empty list" in problem([])
        assert "names no files" in problem({})

    def test_archives_and_false_names(self, tmp_path: Path) -> None:
        assert "is a zip archive" in problem(write(tmp_path / "a.csv", b"PK\x03\x04rest"))
        assert "is not a gzip file" in problem(write(tmp_path / "a.csv.gz", csv_text(*roc_rows(STORIES))))


class TestSources:
    def test_several_files_make_one_split(self, tmp_path: Path) -> None:
        one = write(tmp_path / "one.csv", csv_text(*roc_rows(STORIES[:1])))
        two = write(tmp_path / "two.jsonl", json_lines(STORIES[1:]))
        assert rows(load_stories([one, str(two)])) == STORIES
        assert rows(load_stories([one, two], split="test"), "test") == STORIES

    def test_a_dict_gives_the_splits(self, tmp_path: Path) -> None:
        one = write(tmp_path / "one.jsonl", json_lines(STORIES[:1]))
        two = write(tmp_path / "two.jsonl", json_lines(STORIES[1:]))
        loaded = load_stories({"train": [one, two], "dev": one, "extra": two})
        assert {split: len(part) for split, part in loaded.items()} == {"train": 2, "validation": 1, "extra": 1}
        assert rows(load_stories({"train": one, "val": two}, split="valid"), "validation") == STORIES[1:]
        assert "mean the same" in problem({"val": one, "dev": two})
        assert "`split` 'test' is not there; there is train" in problem({"train": one}, split="test")

    def test_a_directory_is_read_by_the_names_of_its_files(self, tmp_path: Path) -> None:
        write(tmp_path / "README.txt", "Read me.")
        write(tmp_path / "test.post", "A.\tB.\n")
        write(tmp_path / "test.response", "C.\n")
        write(tmp_path / "Val.jsonl.gz", gzip.compress(json_lines(STORIES).encode()))
        write(tmp_path / "train.csv", csv_text(*roc_rows(STORIES)))
        loaded = load_stories(tmp_path)
        assert list(loaded) == ["train", "validation", "test"]
        assert loaded["validation"].to_list() == STORIES
        assert loaded["test"].to_list() == [{"context": ["A.", "B."], "ending": "C."}]

    def test_only_the_split_asked_for_is_read(self, tmp_path: Path) -> None:
        write(tmp_path / "train.jsonl", "broken")
        write(tmp_path / "test.jsonl", json_lines(STORIES))
        assert rows(load_stories(str(tmp_path), split="test"), "test") == STORIES

    def test_a_file_that_may_be_meant_is_not_left_out_in_silence(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(tmp_path / "train.jsonl", json_lines(STORIES))
        write(tmp_path / "train.more.jsonl", json_lines(STORIES))
        assert rows(load_stories(tmp_path)) == STORIES
        (record,) = caplog.records
        assert record.levelname == "WARNING" and "train.more.jsonl is left out" in record.getMessage()

    def test_a_directory_that_does_not_say_what_is_what(self, tmp_path: Path) -> None:
        assert "there is nothing that could be stories" in problem(tmp_path)
        write(tmp_path / "spring.csv", csv_text(*roc_rows(STORIES)))
        assert "no file is called train, validation or test; there is spring.csv" in problem(tmp_path)
        write(tmp_path / "dev.csv", csv_text(*roc_rows(STORIES)))
        write(tmp_path / "val.jsonl", json_lines(STORIES))
        assert "both dev.csv and val.jsonl are the validation split" in problem(tmp_path)

    def test_the_embedded_corpus(self) -> None:
        assert rows(load_stories("embedded")) == embedded_stories()
        assert len(load_stories("embedded", split="test")["test"]) == len(embedded_stories())


class TestTables:
    def test_what_datasets_has_loaded(self) -> None:
        table = Dataset.from_list([{**story, "id": 1} for story in STORIES])
        assert rows(load_stories(table)) == STORIES
        assert rows(load_stories(table.with_format("numpy"), split="test"), "test") == STORIES
        loaded = load_stories(DatasetDict({"train": table, "val": table.select([1])}))
        assert {split: len(part) for split, part in loaded.items()} == {"train": 2, "validation": 1}

    def test_the_columns_of_the_published_tables(self) -> None:
        by_sentence = [dict(zip(ROC_HEADER, row, strict=True)) for row in roc_rows(STORIES)[1:]]
        assert rows(load_stories(Dataset.from_list(by_sentence))) == STORIES
        hub_header = [
            "story_id",
            *(f"input_sentence_{number}" for number in range(1, 5)),
            "sentence_quiz1",
            "sentence_quiz2",
            "answer_right_ending",
        ]
        questions = [dict(zip(hub_header, cloze_row(story, "No.", "2"), strict=True)) for story in STORIES]
        numbered = [{**question, "answer_right_ending": 2} for question in questions]
        assert rows(load_stories(Dataset.from_list(numbered))) == STORIES
        assert rows(load_stories(Dataset.from_list([{"text": "Bo ran. He won."}]))) == [
            {"context": ["Bo ran."], "ending": "He won."}
        ]

    def test_format_chooses_among_columns(self) -> None:
        table = Dataset.from_list([{**STORIES[0], "text": "Bo ran. He won."}])
        assert rows(load_stories(table, format="text")) == [{"context": ["Bo ran."], "ending": "He won."}]
        assert "is one of files" in problem(table, format="post-response")

    @pytest.mark.parametrize("name", ["single", "dict"])
    def test_what_datasets_has_saved(self, tmp_path: Path, name: str) -> None:
        table = Dataset.from_list(STORIES)
        saved = table if name == "single" else DatasetDict({"train": table})
        saved.save_to_disk(str(tmp_path / name))
        assert rows(load_stories(tmp_path / name)) == STORIES

    def test_saved_data_cut_anywhere_is_refused(self, tmp_path: Path) -> None:
        Dataset.from_list(STORIES).save_to_disk(str(tmp_path / "saved"))
        (arrow,) = (tmp_path / "saved").glob("*.arrow")
        content = arrow.read_bytes()
        for length in range(0, len(content), 7):
            write(arrow, content[:length])
            assert f"{arrow} is truncated" in problem(tmp_path / "saved")
        arrow.unlink()
        assert f"{tmp_path / 'saved'} is not a whole dataset" in problem(tmp_path / "saved")

    def test_rows_that_are_no_stories(self) -> None:
        table = Dataset.from_list([*STORIES, {"context": ["A.", None], "ending": "B."}])
        assert problem(table) == "the dataset, row 2: `context[1]` must be a string; got None."
        assert "split test: the columns are 'title'" in problem(
            DatasetDict({"test": Dataset.from_dict({"title": ["A"]})})
        )
        assert "the dataset is empty" in problem(Dataset.from_list(STORIES).select([]))
        assert "the dataset is empty" in problem(DatasetDict())

    def test_a_name_that_is_no_path_is_looked_up_on_the_hub(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hub = {"someone/stories": DatasetDict({"train": Dataset.from_list(STORIES)})}

        def load_dataset(name: str) -> DatasetDict:
            if name not in hub:
                raise FileNotFoundError(f"Dataset '{name}' doesn't exist on the Hub.")
            return hub[name]

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        assert rows(load_stories("someone/stories")) == STORIES
        assert "'someone/else' is no file or directory, and no dataset that the Hub can deliver" in problem(
            "someone/else"
        )

    @pytest.mark.parametrize(
        "source", ["some/where/else", "./here", "/root_of_all", "none.csv", Path("someone/stories")]
    )
    def test_a_path_is_never_looked_up_on_the_hub(self, monkeypatch: pytest.MonkeyPatch, source: str | Path) -> None:
        monkeypatch.setattr(datasets, "load_dataset", lambda name: pytest.fail(f"looked up {name}"))
        problem(source)
