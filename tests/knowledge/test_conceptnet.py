"""Files of every format, in any size and state, become edges; what can't be read is counted and shown."""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.knowledge import Edge, ReadReport, blocks, read_edges


def dump_line(head: str, relation: str, tail: str, information: str = '{"license": "cc", "weight": 1.0}') -> str:
    return f"/a/[{relation}/,{head}/,{tail}/]\t{relation}\t{head}\t{tail}\t{information}"


DOG = dump_line("/c/en/dog/n", "/r/IsA", "/c/en/pet", '{"sources": [{"x": 1}], "weight": 2.5}')
CAT = dump_line("/c/en/cat", "/r/AtLocation", "/c/en/warm_bed/n/wn/artifact")
GERMAN = dump_line("/c/de/größe", "/r/Synonym", "/c/en/size")


def write(path: Path, *lines: str | bytes, end: bytes = b"\n") -> Path:
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + end for line in lines))
    return path


def read(sources: Any, **options: Any) -> tuple[list[Edge], ReadReport]:
    report = ReadReport()
    return list(read_edges(sources, report=report, **options)), report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edges.csv"


class TestFormats:
    def test_dump_gives_weight_and_part_of_speech(self, path: Path) -> None:
        edges, report = read(write(path, DOG, GERMAN, CAT))
        assert edges == [
            Edge("dog", "IsA", "pet", 2.5, "n", None),
            Edge("cat", "AtLocation", "warm_bed", 1.0, None, "n"),
        ]
        assert report == ReadReport(num_lines=3, num_edges=2, num_other_language=1)

    def test_compact_list(self, path: Path) -> None:
        edges, report = read(write(path, "cook /r/AtLocation kitchen", "Dog /r/dbpedia/genre hot_dog"))
        assert edges == [Edge("cook", "AtLocation", "kitchen"), Edge("dog", "dbpedia/genre", "hot_dog")]
        assert report.num_edges == report.num_lines == 2

    def test_relation_and_phrases(self, path: Path) -> None:
        edges, _ = read(write(path, "AtLocation\thot soup\tkitchen", "/r/IsA\tdog\t good  pet "))
        assert edges == [Edge("hot_soup", "AtLocation", "kitchen"), Edge("dog", "IsA", "good_pet")]

    def test_several_files_of_different_formats_come_one_after_the_other(self, tmp_path: Path) -> None:
        compact = write(tmp_path / "a.txt", "cook /r/AtLocation kitchen")
        dump = write(tmp_path / "b.txt", DOG)
        assert [edge.head for edge in read([str(compact), dump])[0]] == ["cook", "dog"]
        assert [edge.head for edge in read((dump, compact))[0]] == ["dog", "cook"]

    def test_table(self) -> None:
        table = Dataset.from_dict(
            {
                "head": ["Dog", "/c/en/cook/v", "/c/fr/chat", "cat"],
                "relation": ["IsA", "/r/AtLocation", "IsA", "IsA"],
                "tail": ["good pet", "/c/en/kitchen", "pet", "pet"],
                "weight": [2.0, 1.0, 1.0, None],
                "comment": ["", "", "", ""],
            }
        )
        edges, report = read(table)
        assert edges == [Edge("dog", "IsA", "good_pet", 2.0), Edge("cook", "AtLocation", "kitchen", 1.0, "v")]
        assert (report.num_lines, report.num_other_language, report.num_malformed) == (4, 1, 1)
        assert "table, line 4: `weight` is 'None'" in report.examples[0]

    def test_table_without_weights(self) -> None:
        table = Dataset.from_dict({"head": ["dog"], "relation": ["IsA"], "tail": ["pet"]})
        assert read(table.to_iterable_dataset())[0] == read(table)[0] == [Edge("dog", "IsA", "pet", 1.0)]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_line_ends_and_a_missing_last_one(self, path: Path, end: bytes) -> None:
        whole, _ = read(write(path, DOG, CAT, end=end))
        path.write_bytes(path.read_bytes().removesuffix(end))
        assert read(path)[0] == whole == read(write(path, DOG, CAT))[0]

    def test_byte_order_mark(self, path: Path) -> None:
        write(path, b"\xef\xbb\xbf" + DOG.encode())
        assert len(read(path)[0]) == len(read(path, block_size=1)[0]) == 1

    @pytest.mark.parametrize(
        ("information", "weight"),
        [
            ('{"weight": 1}', 1.0),
            ('{"weight":0.5}', 0.5),
            ('{"weight": 2.5e-1}', 0.25),
            ('{"weight": -1.5}', -1.5),
            ('{"weight": 3.0, "license": "cc"}', 3.0),
            ('{"license": "cc"}', 1.0),
            ("{}", 1.0),
            ('{"weight": 3.0, "other": {"weight": 7.0}}', 3.0),
            ('{"weight": 3.0, "text": "a, \\"weight\\": 7.0}"}', 3.0),
            ('{"surfaceText": "[[a]] \\"weight\\": 9.0} of [[b]]", "weight": 4.0}', 4.0),
            ('{ "weight" : 5.0 }', 5.0),
        ],
    )
    def test_weight_wherever_it_stands(self, path: Path, information: str, weight: float) -> None:
        write(path, dump_line("/c/en/dog", "/r/IsA", "/c/en/pet", information))
        assert read(path)[0] == [Edge("dog", "IsA", "pet", weight)]

    @pytest.mark.parametrize(
        ("node", "concept", "part"),
        [
            ("/c/en/dog", "dog", None),
            ("/c/en/dog/v", "dog", "v"),
            ("/c/en/red/a/wn", "red", "a"),
            ("/c/en/of/p", "of", None),
            ("/c/en/dog/noun", "dog", None),
            ("/c/en/café/n", "café", "n"),
            ("/c/en/Ärger", "ärger", None),
            ("/c/en/dog/", "dog", None),
        ],
    )
    def test_concepts_of_uris(self, path: Path, node: str, concept: str, part: str | None) -> None:
        write(path, dump_line(node, "/r/IsA", node))
        assert read(path)[0] == [Edge(concept, "IsA", concept, 1.0, part, part)]

    def test_another_language(self, path: Path) -> None:
        write(path, DOG, dump_line("/c/de/hund/n", "/r/IsA", "/c/de/tier"), dump_line("/c/deu/x", "/r/IsA", "/c/de/y"))
        edges, report = read(path, language="de")
        assert edges == [Edge("hund", "IsA", "tier", 1.0, "n")]
        assert report.num_other_language == 2


class TestFilters:
    def test_relations_with_or_without_prefix(self, path: Path) -> None:
        write(path, DOG, CAT, GERMAN)
        for relations in (["IsA"], {"/r/IsA"}):
            edges, report = read(path, relations=relations)
            assert [edge.head for edge in edges] == ["dog"]
            assert (report.num_edges, report.num_filtered, report.num_other_language) == (1, 1, 1)

    def test_minimum_weight_is_still_in(self, path: Path) -> None:
        write(path, DOG, CAT)
        assert [edge.head for edge in read(path, min_weight=2.5)[0]] == ["dog"]
        assert read(path, min_weight=2.6)[0] == []

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"relations": []}, "`relations`"),
            ({"relations": "IsA"}, "`relations`.*'IsA'"),
            ({"language": "e/n"}, "`language`.*'e/n'"),
            ({"block_size": 0}, "`block_size`.*0"),
        ],
    )
    def test_bad_options_are_refused_at_once(self, path: Path, options: dict[str, Any], message: str) -> None:
        write(path, DOG)
        with pytest.raises(ValueError, match=message):
            read_edges(path, **options)


MALFORMED = {
    "4 columns": DOG.replace("\t/r/IsA\t", "\t"),
    "6 columns": DOG + "\tmore",
    "broken JSON": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": 1.0,}'),
    "is not a JSON object": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": 1.0'),
    "`weight` is 'heavy'": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": "heavy"}'),
    "`weight` is 'True'": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": true}'),
    "`weight` is 'nan'": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": NaN}'),
    "`weight` is 'inf'": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": 1e999}'),
    "`weight` is '1000": dump_line("/c/en/a", "/r/IsA", "/c/en/b", '{"weight": 1' + 400 * "0" + "}"),
    "starts with /a/": DOG.removeprefix("/a/"),
    "starts with /r/": dump_line("/c/en/a", "IsA", "/c/en/b"),
    "the relation is empty": dump_line("/c/en/a", "/r/", "/c/en/b"),
    "'en/a' instead": dump_line("en/a", "/r/IsA", "/c/en/b"),
    "'en/b' instead": dump_line("/c/en/a", "/r/IsA", "en/b"),
    "a concept is empty": dump_line("/c/en/a", "/r/IsA", "/c/en/"),
    "concept is empty": dump_line("/c/en", "/r/IsA", "/c/en/b"),
    "byte 3 is not UTF-8": b"/a\xe9" + DOG.encode()[2:],
    "longer than": DOG.replace("dog", 400_000 * "dog"),
}
MALFORMED_ELSEWHERE = {
    "3 columns": dump_line("/c/de/a", "/r/IsA", "/c/de/b").rsplit("\t", 2)[0],
    "is not a JSON object": dump_line("/c/de/a", "/r/IsA", "/c/de/b", '{"weight'),
    "'/d/de/b' instead": dump_line("/c/de/a", "/r/IsA", "/d/de/b"),
    "not UTF-8": dump_line("/c/de/b", "/r/IsA", "/c/de/ä").encode("latin-1"),
}


class TestMalformedLines:
    @pytest.mark.parametrize("line", [*MALFORMED.items(), *MALFORMED_ELSEWHERE.items()], ids=lambda item: item[0])
    @pytest.mark.parametrize("block_size", [16, 1 << 20])
    def test_are_counted_and_shown_with_their_number(
        self, path: Path, line: tuple[str, str | bytes], block_size: int
    ) -> None:
        reason, text = line
        edges, report = read(write(path, DOG, GERMAN, text, "", CAT), block_size=block_size)
        assert [edge.head for edge in edges] == ["dog", "cat"]
        assert (report.num_lines, report.num_other_language, report.num_malformed) == (4, 1, 1)
        assert report.examples[0].startswith("edges.csv, line 3: ")
        assert reason in report.examples[0]
        assert len(report.examples[0]) < 400

    @pytest.mark.parametrize(
        ("good", "bad"),
        [
            ("cook /r/AtLocation kitchen", "cook AtLocation kitchen"),
            ("cook /r/AtLocation kitchen", "cook /r/AtLocation big kitchen"),
            ("cook /r/AtLocation kitchen", "cook /r/ kitchen"),
            ("AtLocation\tcook\tkitchen", "AtLocation\tcook"),
            ("AtLocation\tcook\tkitchen", "AtLocation\tcook\tkitchen\t1"),
            ("AtLocation\tcook\tkitchen", "at location\tcook\tkitchen"),
            ("AtLocation\tcook\tkitchen", "AtLocation\t \tkitchen"),
        ],
    )
    def test_in_the_smaller_formats(self, path: Path, good: str, bad: str) -> None:
        edges, report = read(write(path, good, bad, good))
        assert (len(edges), report.num_malformed) == (2, 1)
        assert "line 2" in report.examples[0]

    @pytest.mark.parametrize("value", [None, 3])
    def test_in_tables(self, value: object) -> None:
        table = Dataset.from_dict({"head": [value], "relation": ["IsA"], "tail": ["pet"]})
        edges, report = read(table)
        assert edges == []
        assert f"`head` is {value!r}" in report.describe()

    def test_only_the_first_few_are_kept(self, path: Path) -> None:
        _, report = read(write(path, DOG, *(f"broken {number}" for number in range(20))))
        assert report.num_malformed == 20
        assert [f"'broken {number}'" in example for number, example in enumerate(report.examples)] == 5 * [True]
        assert report.describe().endswith("and 15 more")

    def test_numbers_go_on_behind_the_first_block(self, path: Path) -> None:
        _, report = read(write(path, *(500 * [GERMAN]), "broken"), block_size=1000)
        assert "line 501" in report.examples[0]

    def test_without_a_report_are_logged(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        write(path, DOG, "broken")
        list(read_edges(path))
        (record,) = caplog.records
        assert record.levelname == "WARNING" and record.name.startswith("hf_storyend.")
        assert re.search("1 malformed\n.*line 2", record.getMessage())
        caplog.clear()
        write(path, DOG)
        list(read_edges(path))
        assert not caplog.records


class TestFilesThatAreRefused:
    @pytest.mark.parametrize("content", [b"", b"\n \n\n"])
    def test_empty(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"edges\.csv is empty"):
            read_edges(path)

    @pytest.mark.parametrize("line", ["Once upon a time there was a dog.", "dog\tIsA\tpet", "a,b,c", "\x00\x01\x02"])
    def test_unknown_format(self, path: Path, line: str) -> None:
        with pytest.raises(ValueError, match=r"edges\.csv is in no known format"):
            read_edges(write(path, line))

    def test_before_the_first_edge_of_another_file(self, tmp_path: Path) -> None:
        good, bad = write(tmp_path / "good", DOG), write(tmp_path / "bad", "nonsense")
        with pytest.raises(ValueError, match="bad is in no known format"):
            read_edges([good, bad])

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            read_edges(tmp_path / "nowhere")

    def test_no_source(self) -> None:
        with pytest.raises(ValueError, match="`sources` is empty"):
            read_edges([])

    def test_something_else(self) -> None:
        with pytest.raises(ValueError, match="got dict"):
            read_edges({"head": ["dog"]})  # type: ignore[arg-type]

    def test_table_without_a_column(self) -> None:
        with pytest.raises(ValueError, match=r"'relation' or 'tail'.*\['head'\]"):
            read_edges(Dataset.from_dict({"head": ["dog"]}))


@pytest.fixture(params=["accelerated", "standard library"])
def gzip_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "standard library":
        monkeypatch.setitem(sys.modules, "isal", None)
        opened, error = blocks._gzip_library()
        assert (opened, error) == (gzip.GzipFile, zlib.error)
        monkeypatch.setattr(blocks, "_GzipFile", opened)
        monkeypatch.setattr(blocks, "_DeflateError", error)


@pytest.mark.usefixtures("gzip_library")
class TestGzip:
    def content(self) -> bytes:
        return gzip.compress("".join(f"{CAT.replace('cat', f'cat{n}')}\n" for n in range(2000)).encode())

    def test_is_known_by_its_content(self, path: Path) -> None:
        path.write_bytes(self.content())
        edges, _ = read(path)
        assert [edge.head for edge in edges] == [f"cat{n}" for n in range(2000)]

    def test_of_several_members(self, path: Path) -> None:
        path.write_bytes(self.content() + self.content())
        assert read(path, block_size=100)[1].num_edges == 4000

    @pytest.mark.parametrize("cut", [1, 9, 400])
    def test_truncated(self, path: Path, cut: int) -> None:
        path.write_bytes(self.content()[:-cut])
        with pytest.raises(ValueError, match=r"edges\.csv is a damaged or truncated gzip file"):
            read(path)

    def test_truncated_so_early_that_it_has_no_line(self, path: Path) -> None:
        path.write_bytes(self.content()[:12])
        with pytest.raises(ValueError, match=r"edges\.csv is a damaged"):
            read_edges(path)

    def test_damaged(self, path: Path) -> None:
        content = bytearray(self.content())
        content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"edges\.csv is a damaged"):
            read(path)


@pytest.mark.parametrize("compress", [False, True])
def test_progress_adds_up_to_the_size_of_the_file(path: Path, compress: bool) -> None:
    content = f"{DOG}\n".encode() * 5000
    path.write_bytes(gzip.compress(content) if compress else content)
    steps: list[int] = []
    assert b"".join(blocks.line_blocks(path, 1000, steps.append)) == content
    assert sum(steps) == path.stat().st_size


NODES = st.sampled_from(
    "/c/en/dog /c/en/dog/n /c/en/Hot_Dog/v/wn/food /c/en/café /c/en/x/p /c/en /c/en/ /c/enm/dog /c/e /c/de/hund "
    "/c/ja/犬/n http://example.org/dog https://x /x/y".split()
)
RELATIONS = st.sampled_from(["/r/IsA", "/r/dbpedia/genre", "/r/", "IsA"])
INFORMATION = st.sampled_from(
    [
        '{"weight": 1.0}',
        '{"a": "b", "weight": 2.25}',
        '{"a": "ü\t", "weight": 2.25}',
        '{"weight": 3, "a": "b"}',
        '{"weight": 1e-1}',
        '{"weight": "1"}',
        "{}",
        "{",
        "{broken}",
        "",
    ]
)
DUMP_LINES = st.builds(dump_line, NODES, RELATIONS, NODES, INFORMATION).map(str.encode)
ODD_LINES = st.sampled_from([b"", b" ", b"\t\t\t\t", b"/a/\xff\t/r/IsA\t/c/de/a\t/c/de/b\t{}", b"x\x00y", b"\x01\t\r"])
FILES = st.lists(DUMP_LINES | ODD_LINES, max_size=12)


def edge_by_definition(line: bytes) -> Edge | str:
    """What a line is, without any regard to speed."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "malformed"
    if not text.strip():
        return "blank"
    columns = text.split("\t")
    if len(columns) != 5 or not columns[0].startswith("/a/") or not columns[1].startswith("/r/"):
        return "malformed"
    nodes, information = columns[2:4], columns[4]
    if not all(node.startswith(("/c/", "http")) for node in nodes):
        return "malformed"
    if information[:1] + information[-1:] != "{}":
        return "malformed"
    parts = [node.split("/") for node in nodes]
    if any(part[:3] != ["", "c", "en"] for part in parts):
        return "other"
    try:
        weight = json.loads(information).get("weight", 1.0)
    except json.JSONDecodeError:
        return "malformed"
    if isinstance(weight, str) or not columns[1][3:] or any(part[3:4] in ([], [""]) for part in parts):
        return "malformed"
    tags = [part[4] if len(part) > 4 and part[4] in "nvars" else None for part in parts]
    return Edge(parts[0][3].lower(), columns[1][3:], parts[1][3].lower(), float(weight), tags[0], tags[1])


class TestFastReadingIsRightReading:
    @settings(deadline=None, max_examples=200)
    @given(FILES, st.integers(1, 200) | st.just(1 << 20), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
    def test_by_the_definition_whatever_the_block_size(
        self, lines: list[bytes], block_size: int, end: bytes, compress: bool
    ) -> None:
        lines = [DOG.encode(), *lines]
        content = b"".join(line + end for line in lines)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "dump")
            path.write_bytes(gzip.compress(content) if compress else content)
            edges, report = read(path, block_size=block_size)
        results = [edge_by_definition(line) for line in lines]
        assert edges == [result for result in results if isinstance(result, Edge)]
        assert report.num_edges == len(edges)
        assert report.num_other_language == results.count("other")
        assert report.num_malformed == results.count("malformed")
        assert report.num_lines == len(lines) - results.count("blank")
        numbers = [number for number, result in enumerate(results, start=1) if result == "malformed"]
        assert [example.split(":")[0] for example in report.examples] == [f"dump, line {n}" for n in numbers[:5]]
