# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Keywords that generic code passes to tokenizers: honoured, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .loading import shortened

_NOTHING = (None, False)
_ANYTHING = (None, True, False)
_NO_TYPES = "a story has no token types"
_ONLY_IDS = "`encode` returns ids only"
_NO_PARTS = "long texts are not split"

# Why stories can't have them, and the values that change nothing.
STORY_KEYWORDS: dict[str, tuple[str, tuple]] = {
    "verbose": ("it is True or False", _ANYTHING),
    "padding_side": ("stories are padded on the right", (None, "right")),
    "truncation_side": ("sentences are cut on the right", (None, "right")),
    "pad_to_multiple_of": ("give `padding='max_length'` with `max_length`", (None,)),
    "is_split_into_words": ("give sentences as strings, words separated by blanks", _NOTHING),
    "text_pair": ("a story is one text, and its ending is `text_target`", (None,)),
    "text_pair_target": ("an ending is one text", (None,)),
    "stride": (_NO_PARTS, (None, 0)),
    "return_overflowing_tokens": (_NO_PARTS, _NOTHING),
    "return_length": ("`attention_mask.sum(-1)` has the length of each sentence", _NOTHING),
    "return_token_type_ids": (_NO_TYPES, _NOTHING),
    "return_special_tokens_mask": ("stories have no special tokens", _NOTHING),
    "return_offsets_mapping": ("words keep no offsets", _NOTHING),
    "split_special_tokens": ("stories have no special tokens", _NOTHING),
    # What `apply_chat_template` passes on since transformers 5.23.
    "sanitize_control_tokens": ("stories have no control tokens", _NOTHING),
    "tokenizer_kwargs": ("give its keywords one by one", (None, {})),
}
# Of `encode`, beside those that transformers honours for flat sequences.
ENCODE_KEYWORDS: dict[str, tuple[str, tuple]] = {
    "verbose": STORY_KEYWORDS["verbose"],
    "truncation_side": ("set `tokenizer.truncation_side`", (None,)),
    "stride": (_NO_PARTS, (None, 0)),
    "return_attention_mask": (_ONLY_IDS, _ANYTHING),
    **{
        f"return_{name}": (_ONLY_IDS, _NOTHING)
        for name in ("overflowing_tokens", "length", "token_type_ids", "special_tokens_mask", "offsets_mapping")
    },
}
ENCODE_HONOURED = frozenset(
    "add_special_tokens padding truncation max_length padding_side return_tensors pad_to_multiple_of "
    "is_split_into_words split_special_tokens".split()
)
DECODE_KEYWORDS: dict[str, tuple[str, tuple]] = {
    "spaces_between_special_tokens": ("special tokens are printed as words", (None, True)),
    "use_source_tokenizer": ("it is True or False", _ANYTHING),
}
_TRUNCATION = {
    True: ("longest_first", "only_first"),
    False: (None, "do_not_truncate"),
}


def check_keywords(given: Mapping[str, Any], known: Mapping[str, tuple[str, tuple]] = STORY_KEYWORDS) -> None:
    """Refuse keywords that other tokenizers honour, unless they ask for what is done anyway, and unknown ones."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"`{name}` is no keyword of tokenizers.")
        reason, allowed = known[name]
        if value not in allowed:
            raise ValueError(f"`{name}={shortened(value)}` is not supported: {reason}.")


def is_truncating(truncation: bool | str | None) -> bool:
    """Whether a value of `truncation` asks for texts to be cut: `True`, or a strategy by its name."""
    for answer, names in _TRUNCATION.items():
        if truncation is answer or truncation in names:
            return answer
    raise ValueError(f"`truncation={shortened(truncation)}` is not supported: give True or False.")
