"""
What the paper says of Table 1's perplexity and BLEU, and what a comparison says of it.

`python -m hf_storyend.comparison.claims table_1/comparison.json docs/reproduction.md` fills the table of the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from ..files import atomic_write
from ..systems import SYSTEMS
from .row_run import read_json
from .table import COLUMNS, describe_difference

Verdict = Literal["holds", "does not hold", "can't be told", "pending"]

_BASELINES = ("seq2seq", "hlstm", "hlstm-copy", "hlstm-msa-ga", "hlstm-msa-ca")
_IE = ("ie", "ie-msa-ga", "ie-msa-ca")
_KNOWLEDGE = (
    ("hlstm-msa-ga", "hlstm"),
    ("hlstm-msa-ca", "hlstm"),
    ("ie-msa-ga", "ie"),
    ("ie-msa-ca", "ie"),
)
_BLEU = ("bleu_1", "bleu_2")
_LOWER_IS_BETTER = ("perplexity",)
# Between these marks a page has the table that `fill_page` writes.
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_SMALLEST_CHANGE = 1.0


@dataclass(frozen=True)
class Claim:
    """
    A statement of the paper: some systems are better than others.

    Args:
        text: What the paper says.
        where: Where it says so.
        metrics: By which metrics; perplexity is tested as the true one, whose losses belong to stories.
        pairs: Systems, the better one first.
        note: What the paper's own numbers say, where that is not the same.
    """

    text: str
    where: str
    metrics: Sequence[str]
    pairs: Sequence[tuple[str, str]]
    note: str = ""


@dataclass(frozen=True)
class CheckedClaim:
    """A claim with what was measured, in words, and the verdict."""

    claim: Claim
    measured: str
    verdict: Verdict


CLAIMS = (
    Claim(
        "Our models have (remarkably) lower perplexity than the baselines",
        "Automatic Evaluation, Results",
        ("perplexity",),
        tuple(product(_IE, _BASELINES)),
    ),
    Claim(
        "... and higher BLEU scores than the baselines",
        "Automatic Evaluation, Results",
        _BLEU,
        tuple(product(_IE, _BASELINES)),
        "In the paper's own Table 1 IE and IE+MSA(GA) are not above HLSTM+MSA(GA) in BLEU-1, nor IE above "
        "HLSTM+MSA(CA) in BLEU-2.",
    ),
    Claim(
        "IE+MSA(CA) obtained the highest BLEU-1 and BLEU-2 scores",
        "Automatic Evaluation, Results",
        _BLEU,
        tuple(("ie-msa-ca", other) for other in (*_BASELINES, "ie", "ie-msa-ga")),
    ),
    Claim(
        "Multi-source attention leads to endings that have more overlaps with the reference endings",
        "Automatic Evaluation, Results",
        _BLEU,
        _KNOWLEDGE,
    ),
    Claim(
        "Using commonsense knowledge helps: perplexity with multi-source attention is lower than without",
        "Table 1",
        ("perplexity",),
        _KNOWLEDGE,
    ),
    Claim(
        "Incremental encoding is effective: IE has lower perplexity than Seq2Seq and HLSTM, IE+MSA than HLSTM+MSA",
        "Table 1",
        ("perplexity",),
        (("ie", "seq2seq"), ("ie", "hlstm"), ("ie-msa-ga", "hlstm-msa-ga"), ("ie-msa-ca", "hlstm-msa-ca")),
    ),
    Claim(
        "Contextual attention has lower perplexity than graph attention",
        "Table 1",
        ("perplexity",),
        (("hlstm-msa-ca", "hlstm-msa-ga"), ("ie-msa-ca", "ie-msa-ga")),
    ),
    Claim(
        "HLSTM+Copy has higher perplexity than HLSTM",
        "Table 1",
        ("perplexity",),
        (("hlstm", "hlstm-copy"),),
    ),
)
_PROPAGATION = Claim(
    "There is no need to attend to all the context sentences because the context clues have been propagated",
    "Multi-Source Attention",
    ("perplexity",),
    (),
    "Measured by leaving a sentence out, for the rows with ablations.",
)


def check_claims(comparison: Mapping[str, Any]) -> list[CheckedClaim]:
    """
    Compare what the paper says with a comparison.

    A claim holds if all of its pairs differ as it says, and does not hold if any differs the other way round, each
    with a 95 % interval (bootstrap over stories) without zero. Where a row is missing, the claim is pending.

    Args:
        comparison: The content of `comparison.json`.
    """
    return [*(_check(claim, comparison) for claim in CLAIMS), _check_propagation(comparison)]


def render_claims(comparison: Mapping[str, Any]) -> str:
    """Return the claims, what was measured and the verdicts as a Markdown table."""
    lines = ["| the paper says | where | measured | |", "| --- | --- | --- | --- |"]
    for checked in check_claims(comparison):
        claim = checked.claim
        said = f"{claim.text}. {claim.note}" if claim.note else f"{claim.text}."
        lines.append(f"| {said} | {claim.where} | {checked.measured} | {checked.verdict} |")
    return "\n".join(lines) + "\n"


def fill_page(text: str, comparison: Mapping[str, Any]) -> str:
    """Return a page with the claims of a comparison between its marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"The page must have {BEGIN} and {END} once each.")
    block = f"{BEGIN}\n\n{render_claims(comparison)}\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: block, text, flags=re.DOTALL)


def _check(claim: Claim, comparison: Mapping[str, Any]) -> CheckedClaim:
    rows = comparison.get("systems", {})
    missing = [name for name in dict.fromkeys(sum(claim.pairs, ())) if name not in rows]
    if missing:
        return CheckedClaim(claim, f"pending: {', '.join(map(_title, missing))}", "pending")
    if not comparison.get("pairs"):
        return CheckedClaim(claim, "pending: tests", "pending")
    tests = list(_tests(claim, comparison))
    verdicts = [verdict for _, verdict in tests]
    as_said = verdicts.count("holds")
    parts = [f"{as_said} of {len(tests)} differences are as said"]
    for verdict, title in (("does not hold", "the other way round"), ("can't be told", "not significant")):
        found = [text for text, own in tests if own == verdict]
        parts += [f"{title}: {'; '.join(found)}"] if found else []
    if as_said == len(tests):
        parts += ["; ".join(text for text, _ in tests)] if len(tests) <= 4 else [_smallest(tests)]
    return CheckedClaim(claim, ". ".join(parts), _joint(verdicts))


def _tests(claim: Claim, comparison: Mapping[str, Any]) -> Iterator[tuple[str, Verdict]]:
    """Yield each difference in words, with what it says of the claim."""
    for metric, (better, worse) in product(claim.metrics, claim.pairs):
        difference = _difference(comparison["pairs"], better, worse, metric)
        sign = -1 if metric in _LOWER_IS_BETTER else 1
        text = f"{_title(better)} against {_title(worse)}, {COLUMNS[metric]} {describe_difference(difference)}"
        if difference["low"] * difference["high"] <= 0:
            yield text, "can't be told"
        else:
            yield text, "holds" if sign * difference["difference"] > 0 else "does not hold"


def _difference(pairs: Sequence[Mapping[str, Any]], own: str, other: str, metric: str) -> dict[str, float]:
    """Return the difference of a metric, own minus other."""
    for pair in pairs:
        if (pair["first"], pair["second"]) == (other, own):
            return dict(pair[metric])
        if (pair["first"], pair["second"]) == (own, other):
            found = pair[metric]
            return {**found, "difference": -found["difference"], "low": -found["high"], "high": -found["low"]}
    raise ValueError(f"The comparison has no test of {own} against {other}.")


def _smallest(tests: Sequence[tuple[str, Verdict]]) -> str:
    """Return the difference of the smallest amount, which the others exceed."""
    amount = re.compile(r"[+-]\d+\.\d+")
    return f"the smallest: {min((text for text, _ in tests), key=lambda text: abs(float(amount.search(text)[0])))}"  # type: ignore[index]


def _joint(verdicts: Sequence[Verdict]) -> Verdict:
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if set(verdicts) == {"holds"} else "can't be told"


def _check_propagation(comparison: Mapping[str, Any]) -> CheckedClaim:
    """Check that systems which attend to the last sentence only miss the sentences before it."""
    rows = comparison.get("systems", {})
    missing = [name for name in _IE if not rows.get(name, {}).get("ablations")]
    if missing:
        return CheckedClaim(_PROPAGATION, f"pending: {', '.join(map(_title, missing))}", "pending")
    changes = {
        name: {
            int(one["name"].rpartition(" ")[2]): one["change"]
            for one in rows[name]["ablations"]["subsets"][0]["rows"]
            if one["name"].startswith("without sentence")
        }
        for name in _IE
    }
    # The last sentence is attended to.
    early = [change for own in changes.values() for number, change in own.items() if number < max(own)]
    parts = [
        f"{_title(name)} {' / '.join(f'{change:+.1f} %' for change in own.values())}" for name, own in changes.items()
    ]
    verdicts: list[Verdict] = [
        "holds" if change >= _SMALLEST_CHANGE else "does not hold" if change <= 0 else "can't be told"
        for change in early
    ]
    return CheckedClaim(_PROPAGATION, f"perplexity without sentence 1 / 2 / ...: {'; '.join(parts)}", _joint(verdicts))


def _title(name: str) -> str:
    return SYSTEMS[name].paper_name or name


if __name__ == "__main__":
    _page = Path(sys.argv[2])
    atomic_write(_page, fill_page(_page.read_text(encoding="utf-8"), read_json(Path(sys.argv[1]))))
