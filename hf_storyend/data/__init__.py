"""
Stories: loading, splitting, tokenising and batching them.

`prepare` does it all in one step and writes a directory that training starts from.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .batching import LengthGroupedBatchSampler, StoryCollator, padding_ratio, tokenise_stories
    from .embedded import embedded_stories, embedded_tokenizer, embedded_triples
    from .embeddings import WordVectors, load_word_vectors
    from .options import PrepareOptions
    from .prepare import prepare
    from .splits import LeakReport, find_leaks, split_stories
    from .stories import load_stories, load_story_cloze
    from .vocabulary import Vocabulary, build_vocabulary

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "LeakReport": ".splits",
        "LengthGroupedBatchSampler": ".batching",
        "PrepareOptions": ".options",
        "StoryCollator": ".batching",
        "Vocabulary": ".vocabulary",
        "WordVectors": ".embeddings",
        "build_vocabulary": ".vocabulary",
        "embedded_stories": ".embedded",
        "embedded_tokenizer": ".embedded",
        "embedded_triples": ".embedded",
        "find_leaks": ".splits",
        "load_stories": ".stories",
        "load_story_cloze": ".stories",
        "load_word_vectors": ".embeddings",
        "padding_ratio": ".batching",
        "prepare": ".prepare",
        "split_stories": ".splits",
        "tokenise_stories": ".batching",
    },
)
