"""A study of which every answer is known beforehand: 200 stories, three systems, three annotators."""

import sys

import pytest
from annotation.synthetic import write_endings

from hf_storyend.annotation import (
    build_report,
    describe_report,
    draw_sample,
    draw_scores,
    read_judgements,
    read_systems,
)

NUM_STORIES = 200
# Of every 200 stories, how many get grammar-logicality scores like these; the first two rows are published ones.
JOINT = {
    "IE": {"22": 72, "21": 68, "12": 4, "11": 8, "20": 48},
    "IE+MSA(GA)": {"22": 90, "21": 48, "12": 10, "11": 4, "20": 30, "00": 18},
    "poor": {"11": 100, "00": 100},
}


def known_scores(system: str) -> list[str]:
    return [scores for scores, count in JOINT[system].items() for _ in range(count)]


@pytest.fixture
def study(tmp_path, fill):
    """Annotators agree on everything, but annotator 3 gives 0 for grammar in every fifth story."""
    stories = [[f"Story {number} began."] for number in range(NUM_STORIES)]
    endings = {system: [f"{system} ended {number}." for number in range(NUM_STORIES)] for system in JOINT}
    sample = draw_sample(read_systems(write_endings(tmp_path, endings, stories), list(JOINT)), NUM_STORIES)
    known = {system: known_scores(system) for system in JOINT}

    def judge(annotator, system, story):
        scores = known[system][story]
        if annotator == 3 and story % 5 == 0:
            return "0" + scores[1:] + " other"
        return f"{scores} logicality" if scores == "20" else scores

    return sample, fill(sample, judge)


@pytest.fixture
def report(study):
    return build_report(study[0], read_judgements(*study))


def test_mean_scores(report):
    systems = report["systems"]
    assert systems["IE"]["grammar"]["mean"] == pytest.approx((2 * 188 + 12) / 200)
    assert systems["IE"]["logicality"]["mean"] == pytest.approx((2 * 76 + 76) / 200)
    assert systems["poor"]["logicality"]["mean"] == 0.5
    for system in systems.values():
        assert system["grammar"]["low"] <= system["grammar"]["mean"] <= system["grammar"]["high"]


def test_joint_scores(report):
    joint = report["systems"]["IE+MSA(GA)"]["joint"]
    assert list(joint) == ["2-2", "2-1", "2-0", "1-2", "1-1", "1-0", "0-2", "0-1", "0-0"]
    assert [joint[pair] for pair in ("2-2", "2-1", "1-2", "1-1")] == [0.45, 0.24, 0.05, 0.02]
    for system in report["systems"].values():
        assert sum(system["joint"].values()) == pytest.approx(1)


def test_agreement(report):
    known = {system: known_scores(system) for system in JOINT}
    # Annotator 3 differs in a fifth of the stories, unless the others gave a 0 too.
    differing = sum(known[system][story][0] != "0" for system in JOINT for story in range(0, NUM_STORIES, 5))
    shares = report["agreement"]["grammar"]["shares"]
    assert shares == {"3/3": pytest.approx(1 - differing / 600), "2/3": pytest.approx(differing / 600), "1/3": 0}
    assert report["agreement"]["logicality"]["shares"] == {"3/3": 1, "2/3": 0, "1/3": 0}
    assert report["agreement"]["logicality"]["fleiss_kappa"] == pytest.approx(1)
    assert 0 < report["agreement"]["grammar"]["fleiss_kappa"] < 1


def test_sign_tests_pair_systems_by_story(report):
    known = {system: [int(scores[1]) for scores in known_scores(system)] for system in JOINT}
    tests = {(test["system"], test["other"]): test for test in report["sign_tests"]["logicality"]}
    assert set(tests) == {("IE+MSA(GA)", "IE"), ("IE", "poor"), ("IE+MSA(GA)", "poor")}
    for (better, worse), test in tests.items():
        assert test["wins"] == sum(one > two for one, two in zip(known[better], known[worse], strict=True))
        assert test["losses"] == sum(one < two for one, two in zip(known[better], known[worse], strict=True))
        assert test["wins"] + test["losses"] + test["ties"] == NUM_STORIES
        assert test["p_value"] <= test["holm"]


def test_types_of_error(report):
    errors = report["systems"]["IE"]["errors"]
    # Bad: every ending whose logicality is 1 or 0, and with a 0 from annotator 3 also those with 1-2.
    scores = known_scores("IE")
    bad = [story for story in range(NUM_STORIES) if scores[story][1] < "2" or scores[story][0] < "2"]
    named_other = [story for story in bad if story % 5 == 0 and scores[story] != "20"]
    assert errors["num_bad"] == len(bad)
    assert errors["num_by_type"] == {"grammar": 0, "logicality": 48, "other": len(named_other)}
    assert errors["num_undecided"] == len(bad) - 48 - len(named_other)


def test_the_page_shows_every_table(report):
    page = describe_report(report)
    assert "600 endings of 200 stories, each scored by 3 annotators" in page
    assert "| IE+MSA(GA) | 45.0% | 24.0% | 15.0% | 5.0% | 2.0% | 0.0% | 0.0% | 0.0% | 9.0% |" in page
    assert "| logicality | 100.0% | 0.0% | 0.0% | 1.00 |" in page
    assert "| IE | 1.94 (1.9" in page
    assert page.count("\n## ") == 5
    widths = {len(line.split(" | ")) for line in page.splitlines() if "IE+MSA(GA) vs. " in line}
    assert widths == {7}


def test_names_can_not_break_tables(report):
    report["systems"]["a|*b*"] = report["systems"].pop("poor")
    assert "| a\\|\\*b\\* | 0.50 " in describe_report(report)


def test_one_system_and_one_annotator(tmp_path, fill):
    stories = [["Once."], ["Twice."]]
    systems = read_systems(write_endings(tmp_path, {"only": ["One.", "Two."]}, stories))
    sample = draw_sample(systems, 2, num_annotators=1)
    report = build_report(sample, read_judgements(sample, fill(sample, lambda *_: "22")))
    assert report["sign_tests"] == {"grammar": [], "logicality": []}
    assert report["agreement"]["grammar"] == {"shares": {"1/1": 1.0}, "fleiss_kappa": None}
    page = describe_report(report)
    assert "each scored by 1 annotator with" in page
    assert "There is only one system." in page
    assert "| grammar | 100.0% | not defined |" in page
    assert "| only | 0 | - | - | - | - |" in page


def test_the_picture_is_written(report, tmp_path):
    report["systems"]["cost $5 a $"] = report["systems"].pop("poor")
    draw_scores(report, tmp_path / "scores.png")
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_library_is_named_with_the_extra_to_install(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r'needs scipy. Install it with `pip install "hf_storyend\[evaluation\]"`'):
        build_report(study[0], read_judgements(*study))
