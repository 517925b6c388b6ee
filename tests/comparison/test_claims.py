"""What the paper says, checked against a comparison."""

import json
from pathlib import Path

import pytest

from hf_storyend.comparison import check_claims, render_claims
from hf_storyend.comparison.claims import BEGIN, END, fill_page
from hf_storyend.comparison.rows import PAPER_SYSTEMS
from hf_storyend.comparison.table import PAPER_TABLE

ROOT = Path(__file__).parents[2]


def comparison_of(values: dict[str, tuple[float, float, float]], width: float) -> dict:
    """A comparison with these numbers, whose differences have intervals of one width."""
    names = list(values)
    metrics = dict(enumerate(("perplexity", "bleu_1", "bleu_2")))

    def test(second: str, first: str, place: int) -> dict:
        difference = values[second][place] - values[first][place]
        return {"difference": difference, "low": difference - width, "high": difference + width, "p_value": 0.001}

    pairs = [
        {"first": one, "second": two, **{metric: test(two, one, place) for place, metric in metrics.items()}}
        for number, one in enumerate(names)
        for two in names[number + 1 :]
    ]
    return {"systems": {name: {} for name in names}, "pairs": pairs}


def verdicts(comparison: dict) -> dict[str, str]:
    return {checked.claim.text: checked.verdict for checked in check_claims(comparison)}


def test_all_claims_are_pending_before_anything_was_measured():
    assert set(verdicts({}).values()) == {"pending"}


def test_the_papers_own_numbers_support_its_claims_but_one():
    found = verdicts(comparison_of(PAPER_TABLE, 0.0001))
    wrong = [text for text, verdict in found.items() if verdict == "does not hold"]
    assert wrong == ["... and higher BLEU scores than the baselines"]
    assert list(found.values()).count("holds") == 7
    # No sentence is left out there.
    assert list(found.values()).count("pending") == 1


def test_wide_intervals_tell_nothing_and_other_orders_refute():
    assert "holds" not in verdicts(comparison_of(PAPER_TABLE, 100.0)).values()
    assert set(verdicts(comparison_of(PAPER_TABLE, 100.0)).values()) == {"can't be told", "pending"}
    turned = {name: (1 / ppl, -b1, -b2) for name, (ppl, b1, b2) in PAPER_TABLE.items()}
    assert "holds" not in verdicts(comparison_of(turned, 1e-6)).values()


def test_a_missing_row_is_named():
    values = {name: PAPER_TABLE[name] for name in PAPER_SYSTEMS if name != "hlstm"}
    page = render_claims(comparison_of(values, 0.001))
    assert "pending: HLSTM |" in page and "holds" in page


def ablated(changes: list[float]) -> dict:
    rows = [{"name": f"without sentence {number}", "change": change} for number, change in enumerate(changes, 1)]
    return {"ablations": {"subsets": [{"rows": [{"name": "as it is", "change": None}, *rows]}]}}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [([5.0, 3.0, -1.0], "holds"), ([0.5, 3.0, 9.0], "can't be told"), ([-0.1, 3.0, 9.0], "does not hold")],
)
def test_sentences_before_the_last_are_missed_if_clues_are_propagated(changes, verdict):
    rows = {name: ablated(changes) for name in ("ie", "ie-msa-ga", "ie-msa-ca")}
    (*_, checked) = check_claims({"systems": rows})
    assert checked.verdict == verdict and f"IE {changes[0]:+.1f} %" in checked.measured


def test_the_page_is_filled_between_its_marks():
    page = fill_page(f"Before.\n{BEGIN}\nold\n{END}\nBehind.\n", {})
    assert page.startswith(f"Before.\n{BEGIN}\n\n| the paper says |") and page.endswith(f"{END}\nBehind.\n")
    assert "old" not in page and fill_page(page, {}) == page
    with pytest.raises(ValueError, match="once each"):
        fill_page("no marks", {})


def test_the_page_of_the_project_says_what_its_published_comparison_says():
    published = ROOT / "results" / "table1" / "comparison.json"
    comparison = json.loads(published.read_text()) if published.is_file() else {}
    page = (ROOT / "docs" / "reproduction.md").read_text()
    assert fill_page(page, comparison) == page
