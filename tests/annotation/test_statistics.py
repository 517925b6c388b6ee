"""Votes, agreement, tests and kinds of error, against answers worked out by hand."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.annotation.judgements import Judgement
from hf_storyend.annotation.statistics import (
    agreement_shares,
    error_table,
    error_type,
    fleiss_kappa,
    is_bad,
    majority_vote,
    mean_and_interval,
    sign_tests,
)

three_scores = st.tuples(*[st.integers(0, 2)] * 3)


@pytest.mark.parametrize("scores", list(product(range(3), repeat=3)))
def test_of_three_scores_two_win_and_a_three_way_tie_is_the_median(scores):
    score, count = Counter(scores).most_common(1)[0]
    assert majority_vote(scores) == (score if count >= 2 else 1)


def test_votes_of_more_annotators():
    assert majority_vote([2]) == 2
    assert majority_vote([0, 0, 2, 2, 1]) == 1  # a tie of 0 and 2: the median
    assert majority_vote([0, 0, 1, 2, 2, 0, 1]) == 0  # most frequent, though not the median


def test_agreement_shares():
    rows = [(2, 2, 2), (1, 1, 1), (2, 2, 0), (0, 1, 0), (1, 2, 2), (0, 1, 2), (2, 1, 0), (0, 0, 1)]
    assert agreement_shares(rows) == {3: 2 / 8, 2: 4 / 8, 1: 2 / 8}
    assert agreement_shares([(0, 0, 1, 1, 2), (2, 2, 2, 2, 2)]) == {5: 0.5, 4: 0, 3: 0, 2: 0.5}


@settings(deadline=None)
@given(st.lists(three_scores, min_size=1))
def test_agreement_shares_add_up(rows):
    assert sum(agreement_shares(rows).values()) == pytest.approx(1)


def test_kappa_of_a_case_worked_out_by_hand():
    # Pairs that agree: 3 of 3, 1 of 3, 1 of 3, 0 of 3, mean 5/12. Of 12 scores 3 are 0, 3 are 1 and 6 are 2: by chance
    # 1/16 + 1/16 + 1/4 = 3/8. (5/12 - 3/8) / (1 - 3/8) = 1/15.
    rows = [(2, 2, 2), (2, 2, 0), (0, 1, 1), (0, 1, 2)]
    assert fleiss_kappa(rows) == pytest.approx(1 / 15)


def test_kappa_at_its_ends():
    assert fleiss_kappa([(0, 0, 0), (1, 1, 1), (2, 2, 2)]) == pytest.approx(1)
    assert fleiss_kappa([(0, 1, 2)] * 4) == pytest.approx(-0.5)


def test_kappa_is_not_defined_without_variety_or_company():
    assert fleiss_kappa([(2, 2, 2)] * 5) is None
    assert fleiss_kappa([(0,), (1,)]) is None


@settings(deadline=None)
@given(st.lists(three_scores, min_size=2), st.randoms())
def test_kappa_does_not_depend_on_who_gave_which_score(rows, random):
    shuffled = [random.sample(row, 3) for row in rows]
    assert fleiss_kappa(shuffled) == pytest.approx(fleiss_kappa(rows))


def test_sign_test_worked_out_by_hand():
    # Five wins, one loss, two ties: two-sided 2 * (C(6,0) + C(6,1)) / 2**6 = 14/64.
    votes = {"weak": [0, 0, 1, 1, 0, 2, 1, 2], "strong": [1, 2, 2, 2, 1, 1, 1, 2]}
    (test,) = sign_tests(votes)
    assert (test.system, test.other) == ("strong", "weak")
    assert (test.wins, test.losses, test.ties) == (5, 1, 2)
    assert test.p_value == test.holm == pytest.approx(14 / 64)


def test_sign_test_without_a_difference():
    (test,) = sign_tests({"one": [2, 1], "two": [2, 1]})
    assert (test.wins, test.losses, test.ties, test.p_value, test.holm) == (0, 0, 2, None, None)


def test_pairs_are_corrected_together():
    # p-values 2/2**8 and 2/2**8 and 1 of no use: of the two that count, the smaller times two, the other no smaller.
    tests = sign_tests({"a": [0] * 8, "b": [2] * 8, "c": [0] * 8})
    assert [test.p_value for test in tests] == [pytest.approx(2 / 256), None, pytest.approx(2 / 256)]
    assert [test.holm for test in tests] == [pytest.approx(4 / 256), None, pytest.approx(4 / 256)]
    assert [(test.system, test.other) for test in tests] == [("b", "a"), ("a", "c"), ("b", "c")]


def test_mean_and_interval():
    assert mean_and_interval([2, 2, 2]) == (2, 2, 2)
    mean, low, high = mean_and_interval([0, 2] * 50)
    # The standard error of a mean of 100 scores that lie 1 from it is 0.1.
    assert mean == 1
    assert low == pytest.approx(1 - 0.196, abs=0.03)
    assert high == pytest.approx(1 + 0.196, abs=0.03)
    assert mean_and_interval([0, 2] * 50) == (mean, low, high)


def judged(*answers: str) -> list[Judgement]:
    return [
        Judgement({"grammar": int(answer[0]), "logicality": int(answer[1])}, answer[2:].strip() or None)
        for answer in answers
    ]


def test_an_ending_is_bad_if_either_mean_is_one_or_less():
    assert is_bad(judged("21", "21", "21"))
    assert is_bad(judged("22", "21", "20"))
    assert is_bad(judged("12", "12", "12"))
    assert not is_bad(judged("22", "21", "21"))


def test_the_type_of_error_is_that_of_most_annotators_who_named_one():
    assert error_type(judged("10 grammar", "10 logicality", "10 grammar")) == "grammar"
    assert error_type(judged("10", "10 other", "10")) == "other"
    assert error_type(judged("10 grammar", "10 logicality", "10 other")) is None
    assert error_type(judged("10", "10", "10")) is None


def test_types_are_counted_among_bad_endings_only():
    table = error_table(
        [
            judged("22 grammar", "22 grammar", "22 grammar"),
            judged("02 grammar", "02", "02"),
            judged("20 logicality", "20 logicality", "20 other"),
            judged("20", "20", "20"),
        ]
    )
    assert table.num_bad == 3
    assert table.num_by_type == {"grammar": 1, "logicality": 1, "other": 0}
    assert table.num_undecided == 1
