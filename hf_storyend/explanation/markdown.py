"""Explanations and counterfactuals as Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .result import Effect, EndingWord, Explanation, SourceTriple, SourceWord, WeightedTriple, WeightedWord
from .wording import effect_text, percent, source_name

if TYPE_CHECKING:
    from .counterfactuals import Counterfactual

# Lower weights would be printed as 0.00.
MIN_WEIGHT = 0.005
EMPTY_ENDING = "(an ending without words)"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$]|^[-+])")


def explanation_markdown(explanation: Explanation, top_k: int) -> str:
    """Return an explanation as a page that shows the `top_k` highest shares and weights of each word."""
    story = [f"{number}. {_escape(sentence)}" for number, sentence in enumerate(explanation.story, start=1)]
    parts = [
        f"# {_escape(explanation.ending) or EMPTY_ENDING}",
        "\n".join(story),
        f"Log probability of the ending: {explanation.log_probability:.2f}.",
        *_source_part(explanation, top_k),
        *_effect_part(explanation),
        "## Attention of each word",
        "Where the model looked, which is not where a word came from.",
        _attention_table(explanation, top_k),
        "## Clues",
        _clue_introduction(explanation),
        "\n".join(f"- sentence {clues.sentence}: {_words(clues.words[:top_k])}" for clues in explanation.clues),
    ]
    if explanation.notes:
        parts += ["## Notes", "\n".join(f"- {_escape(note)}" for note in explanation.notes)]
    return "\n\n".join(parts) + "\n"


def _source_part(explanation: Explanation, top_k: int) -> list[str]:
    """Return the table of sources; nothing if all words come from the vocabulary anyway."""
    if not explanation.has_sources:
        return []
    header = ["word", "probability", "vocabulary", "story", "triples"]
    rows = (
        [
            _escape(word.word),
            f"{word.probability:.3f}",
            percent(word.sources.vocabulary),
            _sources(word.sources.story[:top_k]),
            _sources(word.sources.triples[:top_k]),
        ]
        for word in explanation.words
    )
    return ["## What each word came from", "Shares of its probability.", _table(header, rows)]


def _sources(items: Sequence[SourceWord] | Sequence[SourceTriple]) -> str:
    shown = [f"{percent(item.share)} {_escape(source_name(item))}" for item in items if item.share >= MIN_WEIGHT]
    return ", ".join(shown) or "-"


def _effect_part(explanation: Explanation) -> list[str]:
    """Return the table of effects; nothing for a single sentence without triples."""
    effects = explanation.effects
    named: list[tuple[str, Effect]] = [(" ".join((one.head, one.relation, one.tail)), one) for one in effects.triples]
    named += [("all triples", effects.knowledge)] if effects.knowledge else []
    named += [(f"sentence {one.sentence}", one) for one in effects.sentences]
    if not named:
        return []
    rows = ([_escape(name), effect_text(effect), _number(effect.effect, "+.2f")] for name, effect in named)
    return ["## How likely the ending is without a part", _table(["without", "the ending is", "nats"], rows)]


def _attention_table(explanation: Explanation, top_k: int) -> str:
    header = ["word", "probability", "attention to words"]
    header += ["attention to triples", "without triples"] if explanation.has_knowledge_attention else []
    return _table(header, (_attention_row(word, top_k) for word in explanation.words))


def _attention_row(word: EndingWord, top_k: int) -> list[str]:
    row = [_escape(word.word), f"{word.probability:.3f}", _words(word.state_attention[:top_k])]
    if word.triple_attention is not None:
        row += [_triples(word.triple_attention[:top_k]), f"{word.empty_graph_attention or 0:.2f}"]
    return row


def _words(words: Sequence[WeightedWord]) -> str:
    shown = [f"{_escape(word.word)} {word.weight:.2f}" for word in words if word.weight >= MIN_WEIGHT]
    return ", ".join(shown) or "-"


def _triples(triples: Sequence[WeightedTriple]) -> str:
    shown = [
        f"{_escape(f'({triple.head}, {triple.relation}, {triple.tail})')} {triple.weight:.2f}"
        for triple in triples
        if triple.weight >= MIN_WEIGHT
    ]
    return ", ".join(shown) or "-"


def _clue_introduction(explanation: Explanation) -> str:
    if explanation.system["story_encoder"] == "incremental":
        return "Words of each sentence by relevance, propagated from the ending back through the attentions:"
    return "Words of each sentence by relevance, the attention of the ending:"


def counterfactual_markdown(compared: Counterfactual) -> str:
    """Return the changes, both endings, and the words of the original ending in both stories as a page."""
    parts = ["# What if", "\n".join(f"- {_escape(change)}" for change in compared.changes), _ending_table(compared)]
    if compared.original_ending_after is None:
        parts.append("The original ending can't be generated any more: a word that it copies is gone.")
    else:
        rows = zip(compared.original.words, compared.original_ending_after, strict=True)
        table = _table(
            ["word", "log probability, as given", "as changed", "difference"],
            ([_escape(word.word), *_before_and_after(word.log_probability, after)] for word, after in rows),
        )
        parts += ["## The original ending, word by word", table]
    return "\n\n".join(parts) + "\n"


def _ending_table(compared: Counterfactual) -> str:
    header = ["ending of", "ending", "log probability in the story as given", "as changed", "difference"]
    explanations = {"original": compared.original, "changed": compared.changed}
    titles = {"original": "the story as given", "changed": "the story as changed"}
    rows = (
        [titles[name], _escape(explanations[name].ending), *_before_and_after(values["given"], values["changed"])]
        for name, values in compared.log_probabilities().items()
    )
    return _table(header, rows)


def _before_and_after(before: float | None, after: float | None) -> list[str]:
    difference = None if before is None or after is None else after - before
    return [_number(before, ".2f"), _number(after, ".2f"), _number(difference, "+.2f")]


def _number(value: float | None, digits: str) -> str:
    # Adding 0 takes the sign from a zero.
    return "-" if value is None else format(round(value, 2) + 0.0, digits)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells must be escaped."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def _escape(text: str) -> str:
    """Escape text, such that Markdown prints it literally."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")
