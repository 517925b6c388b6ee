# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer: stories to the tensors the model reads, and ids back to a printed sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import BatchEncoding, PreTrainedTokenizer
from transformers.utils import logging

from .knowledge_table import KnowledgeTable, Triple, TripleLookup, relation_name, unique_tails
from .loading import check_vocabulary, error_context, read_forms, read_json, shortened, write_json
from .oov_ids import MAX_SLOTS, OOVNames, are_foreign
from .story_padding import (
    SizeLimits,
    as_text_rows,
    dict_of_lists,
    fit_triples,
    holds_one_story,
    holds_stories,
    pad_labels,
    pad_like,
    pad_stories,
    pad_triples,
    unpad_features,
    unpad_words,
)
from .text_processing import (
    OOVWords,
    join_words,
    normalize_text,
    printed_words,
    split_sentences,
    split_words,
    truecase_forms,
)
from .tokenizer_keywords import (
    DECODE_KEYWORDS,
    ENCODE_HONOURED,
    ENCODE_KEYWORDS,
    check_keywords,
    is_truncating,
)

logger = logging.get_logger(__name__)

_TRIPLE_NAMES = ("triple_ids", "triple_mask")

Story = str | Sequence[str]


class _DerivedTables:
    """What can be made anew at any time. Pickled empty: `datasets` fingerprints all that a tokenizer holds."""

    triple_lookup: TripleLookup | None = None
    rows: Mapping[str, int] | None = None

    def __reduce__(self) -> tuple:
        return _DerivedTables, ()


class IncrementalEncoderTokenizer(PreTrainedTokenizer):
    r"""
    Word-level tokenizer that looks up the triples of every word of a story.

    ```python
    >>> batch = tokenizer(["Ann baked a cake. She burnt it.", "It rained."], return_tensors="pt")
    >>> {name: tuple(tensor.shape) for name, tensor in batch.items()}
    {'input_ids': (2, 2, 5), 'attention_mask': (2, 2, 5), 'triple_ids': (2, 2, 5, 7, 3), 'triple_mask': (2, 2, 5, 7)}
    ```

    Calling it reads stories; `tokenize`, `encode` and `convert_*` treat text as one flat sequence, as everywhere in
    transformers.

    Args:
        vocab_file (`str`): JSON, word to id.
        knowledge_file (`str`, *optional*): The [`KnowledgeTable`], JSON. None means no knowledge.
        word_forms_file (`str`, *optional*): JSON, the usual case of words that are not lower case: `{"tom": "Tom"}`.
        vocab (`dict[str, int]`, *optional*): The words, instead of `vocab_file`.
        do_lower_case (`bool`, *optional*, defaults to `True`): Whether the vocabulary is in lower case.
        split_contractions (`bool`, *optional*, defaults to `True`): Whether `didn't` is two words, `did` and `n't`.
        num_copy_slots (`int`, *optional*, defaults to 0):
            For a model that copies: so many of the words that a story has and the vocabulary lacks get ids of their
            own, from `len(tokenizer)` on (more of them stay unknown). `labels` have the columns of the logits; ids in
            `copy_ids`, and in what `generate()` returns, also spell the word, so that `decode` prints it: see
            `oov_ids.py`. `input_ids` have the unknown word there. 0 for no `copy_ids` at all.
        tail_pointer (`bool`, *optional*, defaults to `False`):
            For a model that points to tails: also return `triple_weights` and `tail_form_ids`.
    """

    vocab_files_names = {
        "vocab_file": "vocab.json",
        "knowledge_file": "knowledge.json",
        "word_forms_file": "word_forms.json",
    }
    model_input_names = ["input_ids", "attention_mask", "triple_ids", "triple_mask"]
    padding_side = "right"

    def __init__(
        self,
        vocab_file: str | None = None,
        knowledge_file: str | None = None,
        word_forms_file: str | None = None,
        vocab: Mapping[str, int] | None = None,
        do_lower_case: bool = True,
        split_contractions: bool = True,
        num_copy_slots: int = 0,
        tail_pointer: bool = False,
        unk_token: str = "<unk>",
        pad_token: str = "<pad>",
        bos_token: str = "<s>",
        eos_token: str = "</s>",
        **kwargs: Any,
    ):
        if vocab is not None:
            self._ids = check_vocabulary(dict(vocab), "`vocab`")
        elif vocab_file is not None:
            self._ids = check_vocabulary(read_json(vocab_file), vocab_file)
        else:
            raise ValueError("A tokenizer needs words: give `vocab_file` or `vocab`.")
        self._words = {index: word for word, index in self._ids.items()}
        self.do_lower_case = do_lower_case
        self.split_contractions = split_contractions
        self.num_copy_slots = _check_num_slots(num_copy_slots)
        self.word_forms: dict[str, str] = {} if word_forms_file is None else read_forms(word_forms_file)
        self._knowledge = KnowledgeTable() if knowledge_file is None else KnowledgeTable.load(knowledge_file)
        self.tail_pointer = bool(tail_pointer)
        self._oov_names = OOVNames()
        self._forget_lookup()
        kwargs.setdefault("special_tokens_pattern", "eos")
        super().__init__(
            do_lower_case=do_lower_case,
            split_contractions=split_contractions,
            num_copy_slots=num_copy_slots,
            tail_pointer=tail_pointer,
            knowledge_file=knowledge_file,
            word_forms_file=word_forms_file,
            unk_token=unk_token,
            pad_token=pad_token,
            bos_token=bos_token,
            eos_token=eos_token,
            **kwargs,
        )
        self._check_added_words()
        self._check_knowledge(self._knowledge, knowledge_file)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args: Any, **kwargs: Any):
        """[`~transformers.PreTrainedTokenizer.from_pretrained`], whose errors name the model."""
        for name in kwargs:
            # Not the model's fault: refused as every tokenizer does.
            if any(callable(vars(base).get(name)) for base in cls.__mro__):
                raise AttributeError(f"{name} conflicts with the method {name} in {cls.__name__}")
        with error_context(pretrained_model_name_or_path):
            return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    @property
    def knowledge(self) -> KnowledgeTable:
        """The table that triples are looked up in; `add_triples` extends it."""
        return self._knowledge

    @knowledge.setter
    def knowledge(self, table: KnowledgeTable) -> None:
        self._check_knowledge(table, "the table")
        self._knowledge = table
        self._forget_lookup()

    def add_triples(self, triples: Iterable[Triple], skip_unknown: bool = False) -> int:
        """
        Add knowledge that no training has seen: `add_triples([("oven", "UsedFor", "burn")])`. It is looked up for the
        head and its inflected forms, and saved with the tokenizer.

        Args:
            triples (`list[tuple[str, str, str]]`):
                Head (any word), relation and tail (a word of the vocabulary); relations are those of the model.
            skip_unknown (`bool`, *optional*, defaults to `False`):
                Leave out triples with unknown tails or relations, with a warning, instead of raising.

        Returns:
            `int`: How many were added.
        """
        usable = self._usable_triples(triples, skip_unknown)
        self._knowledge.add(usable)
        self._forget_lookup()
        return len(usable)

    def _usable_triples(self, triples: Iterable[Triple], skip_unknown: bool = False) -> list[Triple]:
        """Triples in the spelling of the table; those that can't be used are refused, or left out with a warning."""
        triples = [self._normalize_triple(triple) for triple in triples]
        problems = self._knowledge.problems_with(triples, self.get_vocab())
        if not problems:
            return triples
        listed = "; ".join(list(problems.values())[:10]) + ("; ..." if len(problems) > 10 else "")
        message = f"{len(problems)} of {len(triples)} triples can't be used: {listed}."
        if not skip_unknown:
            raise ValueError(f"{message} Mend or remove them.")
        logger.warning(message)
        return [triple for position, triple in enumerate(triples) if position not in problems]

    def _normalize_triple(self, triple: Any) -> Any:
        """Words in the case of the vocabulary, the relation without `/r/`; what is no triple is refused later."""
        is_sequence = isinstance(triple, (tuple, list))
        if not is_sequence or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
            return triple
        head, relation, tail = triple
        if self.do_lower_case:
            head, tail = head.lower(), tail.lower()
        return head, relation_name(relation), tail

    def _check_added_words(self) -> None:
        """Ids behind the last word are slots of copied words, and tensors have a row for every id."""
        strange = [(word, index) for word, index in self.get_vocab().items() if not 0 <= index < len(self)]
        if strange:
            word, index = strange[0]
            raise ValueError(f"The added word {word!r} has the id {index}; there are {len(self)} words in all.")

    def _check_knowledge(self, table: KnowledgeTable, origin: str | None) -> None:
        vocabulary = self.get_vocab()
        graphs = (*table.triples.values(), *table.phrases.values())
        tails = {tail for rows in graphs for _, _, tail in rows}
        offered_words = tails.union(*map(table.forms_of, tails), *(words.split(" ") for words in table.phrases))
        if vocabulary.keys() >= offered_words:
            return
        for words, rows in (*table.triples.items(), *table.phrases.items()):
            offered = [form for _, _, tail in rows for form in (tail, *table.forms_of(tail))]
            parts = words.split(" ") if " " in words else []
            unknown = [word for word in (*parts, *offered) if word not in vocabulary]
            if unknown:
                raise ValueError(f"{origin}: {unknown[0]!r}, in the triples of {words!r}, is not in the vocabulary.")

    def _forget_lookup(self) -> None:
        self._derived = _DerivedTables()

    def _lookup_tensors(self) -> TripleLookup:
        if self._derived.triple_lookup is None:
            tensors = self._knowledge.lookup(self.get_vocab(), self.unk_token_id, self.pad_token_id)
            self._derived.triple_lookup = tensors
        return self._derived.triple_lookup

    def _phrase_graphs(self) -> dict[int, list[tuple[list[int], list[Triple]]]]:
        """Phrases by their last word: the ids of their words, and their triples, the longest phrase first."""
        ids = self._all_ids()
        phrases: dict[int, list[tuple[list[int], list[Triple]]]] = {}
        for words, rows in self._knowledge.phrases.items():
            word_ids = [ids[word] for word in words.split(" ")]
            phrases.setdefault(word_ids[-1], []).append((word_ids, rows))
        for same_end in phrases.values():
            same_end.sort(key=lambda phrase: -len(phrase[0]))
        return phrases

    def __call__(
        self,
        text: Story | Sequence[Story] | None = None,
        text_pair: None = None,
        text_target: str | Sequence[str] | None = None,
        text_pair_target: None = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str | None = None,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        max_sentences: int | None = None,
        triples: Sequence[Triple] | Sequence[Sequence[Triple]] | None = None,
        triple_weight: float | None = None,
        return_triples: bool = True,
        num_copy_slots: int | None = None,
        return_tensors: str | None = None,
        return_attention_mask: bool | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """
        Read stories, and endings if given.

        Args:
            text (`str`, `list[str]` or `list[list[str]]`):
                A story as one string, several such stories, or several stories as lists of sentences. (A list of
                strings is always several stories: give one story's sentences as `[sentences]`.)
            text_target (`str` or `list[str]`, *optional*): The endings, which become `labels` with the end symbol.
            add_special_tokens (`bool`, *optional*, defaults to `True`): `False` leaves the end symbol out.
            padding (`bool` or `str`, *optional*):
                `True` or `"longest"`, `"max_length"` (to `max_length` words and, if given, `max_sentences` sentences),
                or `False`. By default stories are padded if tensors are asked for.
            truncation (`bool` or `str`, *optional*):
                Keep the first `max_length` words of a sentence and the last `max_sentences` sentences of a story.
                The strategies `"longest_first"` and `"only_first"` are the same. By default stories are cut if one of
                these is given and nothing is said of padding, as in every tokenizer.
            max_length (`int`, *optional*): Most words a sentence, end symbol of an ending included.
            max_sentences (`int`, *optional*): Most sentences a story.
            triples (`list`, *optional*): Knowledge for this call only: triples for all stories, or a list a story.
            triple_weight (`float`, *optional*):
                Weight of these `triples`, in nats: how strongly they suggest their tails to a tail pointer. As strong
                as the table's strongest unless given.
            return_triples (`bool`, *optional*, defaults to `True`):
                Whether to look triples up now. Without them the result is small and `pad` looks them up later.
            num_copy_slots (`int`, *optional*): Another number than the tokenizer's, for this call.
            return_tensors (`str`, *optional*): `"pt"` or `"np"`; lists otherwise.
            return_attention_mask (`bool`, *optional*): `False` leaves the mask out.
            text_pair, text_pair_target, kwargs:
                Other arguments of tokenizers are refused by name unless they ask for what is done anyway.

        Returns:
            [`~transformers.BatchEncoding`]: `input_ids` and `attention_mask` `[B, K, L]`, `triple_ids`
            `[B, K, L, N, 3]`, `triple_mask` `[B, K, L, N]`, and `labels` `[B, T]` if endings were given; with copy
            slots also `copy_ids` `[B, K, L]`, with a tail pointer `triple_weights` `[B, K, L, N]` and
            `tail_form_ids` `[B, K, L, N, F]`.
        """
        check_keywords({"text_pair": text_pair, "text_pair_target": text_pair_target, **kwargs})
        if text is None and text_target is None:
            raise ValueError("Give a story as `text`, an ending as `text_target`, or both.")
        if triples and not return_triples:
            raise ValueError("`triples` were given, but `return_triples=False` would drop them.")
        _check_triple_weight(triple_weight, triples)
        if truncation is None and padding in (None, False):
            truncation = (max_length, max_sentences) != (None, None)
        limits = self._limits(truncation, max_length, max_sentences)
        num_slots = _check_num_slots(self.num_copy_slots if num_copy_slots is None else num_copy_slots)
        self._warn_of_sides(limits)
        if padding in (True, "longest") and max_length is not None and not limits.truncates:
            logger.warning_once("`max_length` changes nothing without `truncation=True` or `padding='max_length'`.")
        features = self._read(text, text_target, limits, num_slots, add_special_tokens)
        if padding is None:
            padding = return_tensors is not None
        if padding not in (False, "do_not_pad") or return_tensors is not None:
            batch = self._make_batch(features, padding, limits, triples, return_triples, triple_weight)
            encoded = self._finish(batch, return_tensors)
        else:
            if text is not None:
                features |= self._unpadded(features, triples, return_triples, triple_weight)
                del features["words"]
            encoded = BatchEncoding(features)
        if return_tensors is None and isinstance(text_target if text is None else text, str):
            encoded = BatchEncoding({name: rows[0] for name, rows in encoded.items()})
        return _without_mask(encoded, return_attention_mask)

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str = True,
        max_length: int | None = None,
        return_tensors: str | None = None,
        max_sentences: int | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """
        Make one batch of stories that were read before: what collators call. They come as a list of dicts or a dict
        of lists with `input_ids` and, if there are endings, `labels`; triples that are not among them are looked up.
        Flat sequences, which `encode` and its kin make, are padded as in every tokenizer.
        """
        features = dict_of_lists(encoded_inputs)
        if holds_one_story(features):
            raise ValueError("`pad` was given one story: give a list of them, `pad([story])`.")
        if not holds_stories(features):
            return super().pad(
                encoded_inputs, padding=padding, max_length=max_length, return_tensors=return_tensors, **kwargs
            )
        return_attention_mask = kwargs.pop("return_attention_mask", None)
        check_keywords(kwargs)
        limits = self._limits(False, max_length, max_sentences)
        batch = self._make_batch(unpad_features(features), padding, limits, None, True)
        return _without_mask(self._finish(batch, return_tensors), return_attention_mask)

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """[`~transformers.PreTrainedTokenizer.encode`], one flat sequence; keywords it would ignore are refused."""
        check_keywords({name: kwargs[name] for name in kwargs.keys() - ENCODE_HONOURED}, ENCODE_KEYWORDS)
        honoured = {name: value for name, value in kwargs.items() if name in ENCODE_HONOURED}
        return super().encode(text, text_pair, **honoured)

    def _limits(self, truncation: bool | str | None, max_length: int | None, max_sentences: int | None) -> SizeLimits:
        truncates = is_truncating(truncation)
        # The base class gives tokenizers without a limit a number with thirty zeros.
        if max_length is None and self.model_max_length < 10**9:
            max_length = self.model_max_length
        return SizeLimits(truncates, max_length, max_sentences)

    def _warn_of_sides(self, limits: SizeLimits) -> None:
        """Generic code sets these attributes for other models; masks make either side of padding the same."""
        if self.padding_side != "right":
            logger.warning_once("`tokenizer.padding_side` is for flat sequences; stories are padded on the right.")
        if self.truncation_side != "right" and limits.truncates:
            logger.warning_once("`tokenizer.truncation_side` is for flat sequences; sentences are cut on the right.")

    @staticmethod
    def _as_batch(name: str, value: Any) -> Sequence[Any]:
        if isinstance(value, str):
            return [value]
        if not isinstance(value, Sequence):
            raise ValueError(f"`{name}` must be a string or a list; got {type(value).__name__}.")
        if not value:
            raise ValueError(f"`{name}` is an empty list.")
        return value

    def _read(
        self, text: Any, text_target: Any, limits: SizeLimits, num_slots: int, add_special_tokens: bool
    ) -> dict[str, list]:
        """Ids of stories, of their words to copy, and of endings, as far as there are any."""
        features: dict[str, list] = {}
        slots: list[OOVWords] | None = None
        if text is not None:
            stories = [self._story_words(story, row) for row, story in enumerate(self._as_batch("text", text))]
            kept = [limits.cut_story(story) for story in stories]
            _check_sentences(kept)
            features["words"] = kept
            features["input_ids"] = [[self._word_ids(words) for words in story] for story in kept]
            if num_slots:
                # Numbered before anything is cut off, so that `decode` finds the words again in the whole story.
                slots = [self._oov_words(words, num_slots) for words in stories]
                rows = zip(self._as_batch("text", text), slots, kept, strict=True)
                features["copy_ids"] = [
                    self._named_copy_ids(story, own, words, num_slots) for story, own, words in rows
                ]
        if text_target is not None:
            endings = self._ending_words(text_target)
            if text is not None and len(endings) != len(features["input_ids"]):
                raise ValueError(f"Got {len(endings)} endings for {len(features['input_ids'])} stories.")
            ids = map(self._word_ids, endings) if slots is None else map(OOVWords.ids, slots, endings)
            # However short an ending is cut, it ends.
            end = [self.eos_token_id] if add_special_tokens else []
            features["labels"] = [[*limits.cut_words([*end, *row])[len(end) :], *end] for row in ids]
        return features

    def _story_words(self, story: Any, row: int) -> list[list[str]]:
        return [self._split(sentence) for sentence in self._sentences(story, row)]

    def oov_words(self, story: Story) -> list[str]:
        """The words of a story that are out of the vocabulary, in the order of their ids in `copy_ids`."""
        return self._oov_words(self._story_words(story, 0)).words

    def _oov_words(self, sentences: list[list[str]], num_slots: int | None = None) -> OOVWords:
        return OOVWords(sentences, self._all_ids(), self.unk_token_id, num_slots)

    def _named_copy_ids(
        self, story: Story, oov: OOVWords, sentences: list[list[str]], num_slots: int
    ) -> list[list[int]]:
        """Ids of a story's words that spell those out of the vocabulary, if the slots are those of the model."""
        ids = [oov.ids(words) for words in sentences]
        if not oov.words or num_slots != self.num_copy_slots:
            return ids
        printed = self._printed_words(self._split_as_written(story), oov.words)
        named = self._oov_names.ids(printed, len(self), num_slots)
        return [[named[index - len(self)] if index >= len(self) else index for index in row] for row in ids]

    def _split_as_written(self, story: Story) -> list[list[str]]:
        return [split_words(sentence, self.split_contractions) for sentence in self._sentences(story, 0)]

    def _printed_words(self, sentences: list[list[str]], words: list[str]) -> list[str]:
        """Words as the story, split as it is written, writes them."""
        return printed_words(sentences, words) if self.do_lower_case else words

    @staticmethod
    def _sentences(story: Any, row: int) -> list[str]:
        if isinstance(story, str):
            sentences = split_sentences(normalize_text(story))
        elif isinstance(story, Sequence) and all(isinstance(sentence, str) for sentence in story):
            sentences = [normalize_text(sentence) for sentence in story]
        else:
            raise ValueError(f"Story {row + 1} must be a string or a list of sentences; got {shortened(story)}.")
        if not sentences:
            raise ValueError(f"Story {row + 1} is empty: {shortened(story)}.")
        return sentences

    def _ending_words(self, endings: Any) -> list[list[str]]:
        rows = []
        for row, ending in enumerate(self._as_batch("text_target", endings)):
            if not isinstance(ending, str):
                raise ValueError(f"Ending {row + 1} must be a string; got {shortened(ending)}.")
            words = self._split(normalize_text(ending))
            if not words:
                raise ValueError(f"Ending {row + 1} has no word: {ending!r}.")
            rows.append(words)
        return rows

    def _split(self, sentence: str) -> list[str]:
        return split_words(sentence.lower() if self.do_lower_case else sentence, self.split_contractions)

    def _word_ids(self, words: Iterable[str]) -> list[int]:
        ids = self._all_ids()
        unknown = ids[str(self.unk_token)]
        return [ids.get(word, unknown) for word in words]

    def _all_ids(self) -> Mapping[str, int]:
        """Ids of all words; a copy is made only where words were added to the vocabulary."""
        return self._ids if len(self) == len(self._ids) else self.get_vocab()

    def _make_batch(
        self,
        features: dict[str, list],
        padding: bool | str,
        limits: SizeLimits,
        triples: Any,
        return_triples: bool,
        triple_weight: float | None = None,
    ) -> dict[str, torch.Tensor]:
        batch: dict[str, torch.Tensor] = {}
        if "input_ids" in features:
            word_ids, mask = pad_stories(features["input_ids"], self.pad_token_id, padding, limits)
            batch |= {"input_ids": word_ids, "attention_mask": mask}
            if "copy_ids" in features:
                copy_ids = pad_like("copy_ids", features["copy_ids"], word_ids, mask)
                batch["copy_ids"] = self._without_foreign_oov_ids(copy_ids)
            if return_triples:
                given = "triple_ids" in features
                graphs = pad_triples(features, mask, self.pad_token_id) if given else None
                graphs = graphs or self._lookup(features, word_ids, mask, triples, triple_weight)
                width = self._knowledge.max_triples if padding == "max_length" else None
                batch |= fit_triples(graphs, width, self.pad_token_id)
        if "labels" in features:
            batch["labels"] = self._without_foreign_oov_ids(pad_labels(features["labels"]))
        return batch

    def _without_foreign_oov_ids(self, ids: torch.Tensor) -> torch.Tensor:
        """OOV ids beyond this tokenizer's number become unknown words."""
        if not self.num_copy_slots:
            return ids.masked_fill(ids >= len(self), self.unk_token_id)
        return ids.masked_fill(are_foreign(ids, len(self), self.num_copy_slots), self.unk_token_id)

    def lookup_ids(self, copy_ids: Sequence[Sequence[int]], oov_words: Sequence[str]) -> list[list[int]]:
        """
        Ids under which `pad` looks triples up, for a story whose words are known by ids only: `copy_ids`, in which
        out-of-vocabulary words are numbered from `len(tokenizer)` on, and those words in that order.
        """
        rows, first = self._table_rows(), len(self)
        known = [rows.get(word, self.unk_token_id) for word in oov_words]
        return [[known[self._slot(index)] if index >= first else index for index in sentence] for sentence in copy_ids]

    def _lookup(
        self,
        features: dict[str, list],
        word_ids: torch.Tensor,
        mask: torch.Tensor,
        triples: Any,
        triple_weight: float | None,
    ) -> dict[str, torch.Tensor]:
        """The triples of every word by one gather a tensor; what only some places have is then written over them."""
        own = self._own_graphs(triples, word_ids.shape[0], triple_weight)
        rows = self._table_rows()
        new_heads = sorted({word for graphs in own for word in graphs if word not in rows})
        rows = {**rows, **{word: -1 - place for place, word in enumerate(new_heads)}} if new_heads else rows
        places = self._places(features, word_ids, mask, rows)
        table = self._lookup_tensors()
        if any(own) or self._knowledge.phrases:
            # Graphs of the story itself may be larger than any in the table.
            table = TripleLookup(**fit_triples(table._asdict(), self._knowledge.max_triples, self.pad_token_id))
        # Words that only this call knows anything of have no row.
        index = places.where(places >= 0, self.unk_token_id).flatten()
        found = TripleLookup(*(tensor.index_select(0, index).unflatten(0, places.shape) for tensor in table))
        found.triple_mask.mul_(mask.unsqueeze(-1))
        for story, graphs in enumerate(own):
            for word, graph in graphs.items():
                here = (places[story] == rows[word]) & (mask[story] == 1)
                self._write_graph(found, (story, *here.nonzero().T), graph)
        for place, graph in self._phrase_places(word_ids, mask):
            self._write_graph(found, place, self._with_known(found, place, graph))
        self._apply_held_out(features, found, places)
        return found._asdict() if self.tail_pointer else {name: found._asdict()[name] for name in _TRIPLE_NAMES}

    def _table_rows(self) -> Mapping[str, int]:
        if self._derived.rows is None:
            self._derived.rows = self._knowledge.rows(self.get_vocab())
        return self._derived.rows

    def _places(
        self, features: dict[str, list], word_ids: torch.Tensor, mask: torch.Tensor, rows: Mapping[str, int]
    ) -> torch.Tensor:
        """The row of every word in the look-up tensors, [B, K, L]."""
        if "lookup_ids" in features:
            return pad_like("lookup_ids", features["lookup_ids"], word_ids, mask)
        if "words" not in features or len(rows) == len(self):
            return word_ids
        unknown = self.unk_token_id
        found = [[[rows.get(word, unknown) for word in words] for words in story] for story in features["words"]]
        return pad_like("words", found, word_ids, mask)

    @staticmethod
    def _write_graph(found: TripleLookup, place: tuple, graph: TripleLookup) -> None:
        for tensor, values in zip(found, graph, strict=True):
            tensor[place] = values

    def _graph(self, triples: list[Triple], weights: Mapping[Triple, float]) -> TripleLookup:
        """Tensors of one word's triples, with room for as many as a word can have."""
        ids, table = self._all_ids(), self._knowledge
        num_forms = self._lookup_tensors().tail_form_ids.shape[-1]
        forms = [table.form_ids(tail, ids) for _, _, tail in triples]
        form_ids = [row + [self.pad_token_id] * (num_forms - len(row)) for row in forms]
        graph = {
            "triple_ids": torch.tensor(table.ids(triples, ids, self.unk_token_id), dtype=torch.long).view(-1, 3),
            "triple_mask": torch.ones(len(triples), dtype=torch.long),
            "triple_weights": torch.tensor([weights.get(row, table.weight_of(row)) for row in triples]).float(),
            "tail_form_ids": torch.tensor(form_ids, dtype=torch.long).view(-1, num_forms),
        }
        return TripleLookup(**fit_triples(graph, table.max_triples, self.pad_token_id))

    def _with_known(self, found: TripleLookup, place: tuple[int, int, int], graph: TripleLookup) -> TripleLookup:
        """A phrase's triples, then those that its last word has anyway, one a tail."""
        rows = [torch.cat((new, known[place])) for new, known in zip(graph, found, strict=True)]
        real = rows[1].nonzero().squeeze(1).tolist()
        tails = {place: int(rows[0][place, 2]) for place in real}
        kept = unique_tails([(place, None, tail) for place, tail in tails.items()], self._knowledge.max_triples)
        index = torch.tensor([place for place, _, _ in kept])
        kept_rows = {name: row[index] for name, row in zip(TripleLookup._fields, rows, strict=True)}
        return TripleLookup(**fit_triples(kept_rows, self._knowledge.max_triples, self.pad_token_id))

    @staticmethod
    def _apply_held_out(features: dict[str, list], found: TripleLookup, places: torch.Tensor) -> None:
        """Weights counted without the story itself, for training stories: `held_out_weights`, NaN for no triple."""
        if "held_out_weights" not in features:
            return
        columns = [features[name] for name in ("held_out_rows", "held_out_tails", "held_out_weights")]
        for story, entries in enumerate(zip(*columns, strict=True)):
            for row, tail, weight in zip(*entries, strict=True):
                here = (places[story] == row).unsqueeze(-1) & (found.triple_ids[story, ..., 2] == tail)
                if weight == weight:
                    found.triple_weights[story][here] = weight
                else:
                    found.triple_mask[story][here] = 0

    def _phrase_places(
        self, word_ids: torch.Tensor, mask: torch.Tensor
    ) -> Iterator[tuple[tuple[int, int, int], TripleLookup]]:
        """Where a phrase ends, as (story, sentence, word), and its triples."""
        phrases = self._phrase_graphs()
        if not phrases:
            return
        for story, sentences in enumerate(unpad_words(word_ids, mask)):
            for number, ids in enumerate(sentences):
                for end, word_id in enumerate(ids):
                    for phrase, rows in phrases.get(word_id, ()):
                        if ids[end + 1 - len(phrase) : end + 1] == phrase:
                            yield (story, number, end), self._graph(rows, {})
                            break

    def _own_graphs(self, triples: Any, num_stories: int, weight: float | None) -> list[dict[str, TripleLookup]]:
        """For each story, the graphs (by word) that per-call triples change."""
        if not triples:
            return [{}] * num_stories
        if all(len(triple) > 0 and isinstance(triple[0], str) for triple in triples):
            return [self._own_graph(triples, weight)] * num_stories
        if len(triples) != num_stories:
            raise ValueError(f"`triples` has {len(triples)} lists for {num_stories} stories.")
        return [self._own_graph(own, weight) for own in triples]

    def _own_graph(self, triples: Iterable[Triple], weight: float | None) -> dict[str, TripleLookup]:
        usable = self._usable_triples(triples)
        weights = dict.fromkeys(usable, self._knowledge.user_weight if weight is None else weight)
        return {word: self._graph(rows, weights) for word, rows in self._knowledge.graphs_with(usable).items()}

    def _unpadded(
        self, features: dict[str, list], triples: Any, return_triples: bool, triple_weight: float | None
    ) -> dict[str, list]:
        """Masks and triples of stories that stay lists, all of them real."""
        stories = {"input_ids": features["input_ids"], "words": features["words"]}
        ones = {"attention_mask": [[[1] * len(ids) for ids in story] for story in features["input_ids"]]}
        if not return_triples:
            return ones
        batch = self._make_batch(stories, True, SizeLimits(False, None, None), triples, True, triple_weight)
        graphs = {name: rows for name, rows in unpad_features(batch).items() if name != "input_ids"}
        masks = [[[[1] * len(graph) for graph in sentence] for sentence in story] for story in graphs["triple_ids"]]
        return {**ones, **graphs, "triple_mask": masks}

    @staticmethod
    def _finish(batch: dict[str, torch.Tensor], return_tensors: str | None) -> BatchEncoding:
        if return_tensors in ("pt", "np"):
            return BatchEncoding(
                batch if return_tensors == "pt" else {name: tensor.numpy() for name, tensor in batch.items()}
            )
        if return_tensors is None:
            return BatchEncoding({name: tensor.tolist() for name, tensor in batch.items()})
        raise ValueError(f"`return_tensors` must be 'pt', 'np' or None; got {return_tensors!r}.")

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        context: Story | Sequence[Story] | None = None,
        **kwargs: Any,
    ) -> str | list[str]:
        """
        Sentences as a person would print them. With a lower-case vocabulary, names get the case they have in
        `context` (the story, or a story for each row), else the case they usually have in the training stories.
        Words out of the vocabulary whose ids do not spell them are those of `context`; without it they are printed as
        unknown. The sentences of a story are printed as one text. `clean_up_tokenization_spaces` changes nothing:
        words are joined as a person would.
        """
        kwargs.pop("clean_up_tokenization_spaces", None)
        check_keywords(kwargs, DECODE_KEYWORDS)
        rows = as_text_rows(token_ids)
        if not isinstance(rows, int) and len(rows) > 0 and not isinstance(rows[0], int):
            contexts = self._contexts(context, len(rows))
            return [
                self._decode(row, skip_special_tokens, context=own) for row, own in zip(rows, contexts, strict=True)
            ]
        one: Any = context
        return self._decode(rows, skip_special_tokens, context=one)

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        context: Story | Sequence[Story] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """`decode` for several rows; with several endings a story, `context` may still have one entry a story."""
        rows = as_text_rows(sequences)
        decoded = self.decode(rows, skip_special_tokens, context, **kwargs) if rows else []
        return [decoded] if isinstance(decoded, str) else decoded

    @staticmethod
    def _contexts(context: Any, num_rows: int) -> list[Any]:
        if context is None or isinstance(context, str):
            return [context] * num_rows
        if num_rows % len(context):
            raise ValueError(f"`context` has {len(context)} stories for {num_rows} endings.")
        repeats = num_rows // len(context)
        return [story for story in context for _ in range(repeats)]

    def _decode(
        self,
        token_ids: int | list[int],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        context: Story | None = None,
        **kwargs: Any,
    ) -> str:
        token_ids = [token_ids] if isinstance(token_ids, int) else token_ids
        # Trainer pads what it gathers with -100.
        token_ids = [self.pad_token_id if token_id < 0 else token_id for token_id in token_ids]
        if context is None:
            return join_words(self.convert_ids_to_tokens(token_ids, skip_special_tokens), self.word_forms)
        sentences = self._split_as_written(context)
        has_oov = max(token_ids, default=0) >= len(self)
        copied = self._printed_words(sentences, self.oov_words(context)) if has_oov else []
        tokens: list[str] = []
        for token_id in token_ids:
            if self._oov_word(token_id) is None and len(self) <= token_id and self._slot(token_id) < len(copied):
                tokens.append(copied[self._slot(token_id)])
            else:
                tokens += self.convert_ids_to_tokens([token_id], skip_special_tokens)
        forms = {**self.word_forms, **truecase_forms(sentences)} if self.do_lower_case else self.word_forms
        return join_words(tokens, forms)

    def _oov_word(self, token_id: int) -> str | None:
        """The word out of the vocabulary that an id spells or, in this instance, stands for."""
        return None if token_id < len(self) else self._oov_names.word(token_id, len(self), self.num_copy_slots)

    def _slot(self, token_id: int) -> int:
        """Which of the story's words out of the vocabulary an id stands for, if that is all it says."""
        number = token_id - len(self)
        is_named = self.num_copy_slots and number >= self.num_copy_slots
        return number % self.num_copy_slots if is_named else number

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return join_words(tokens, self.word_forms)

    @property
    def vocab_size(self) -> int:
        return len(self._ids)

    def get_vocab(self) -> dict[str, int]:
        return {**self._ids, **self._added_tokens_encoder}

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        text = normalize_text(text)
        return split_words(text.lower() if self.do_lower_case else text, self.split_contractions)

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token, self._ids.get(str(self.unk_token)))

    def _convert_id_to_token(self, index: int) -> str:
        return self._words.get(index) or self._oov_word(index) or str(self.unk_token)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        folder, prefix = Path(save_directory), f"{filename_prefix}-" if filename_prefix else ""
        paths = {key: folder / f"{prefix}{name}" for key, name in self.vocab_files_names.items()}
        write_json(paths["vocab_file"], self._ids)
        write_json(paths["word_forms_file"], self.word_forms)
        self._knowledge.save(paths["knowledge_file"])
        return tuple(str(path) for path in paths.values())


def _without_mask(encoded: BatchEncoding, return_attention_mask: bool | None) -> BatchEncoding:
    if return_attention_mask is False:
        encoded.pop("attention_mask", None)
    return encoded


def _check_num_slots(num_slots: Any) -> int:
    if isinstance(num_slots, bool) or not isinstance(num_slots, int) or not 0 <= num_slots <= MAX_SLOTS:
        raise ValueError(f"`num_copy_slots` must be a whole number from 0 to {MAX_SLOTS}; got {num_slots!r}.")
    return num_slots


def _check_triple_weight(weight: Any, triples: Any) -> None:
    if weight is None:
        return
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not is_number or not math.isfinite(weight):
        raise ValueError(f"`triple_weight` must be a finite number; got {weight!r}.")
    if not triples:
        raise ValueError("`triple_weight` is the weight of `triples`, and there are none.")


def _check_sentences(stories: list[list[list[str]]]) -> None:
    for row, story in enumerate(stories):
        for number, words in enumerate(story):
            if not words:
                raise ValueError(f"Sentence {number + 1} of story {row + 1} has no word.")


IncrementalEncoderTokenizer.register_for_auto_class()
