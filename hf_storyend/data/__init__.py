"""Stories, vocabularies and what is made of them."""

from .collator import LengthBuckets, StoryCollator, padding_share, tokenise_stories
from .embeddings import WordVectors, load_word_vectors
from .splits import LeakReport, find_leaks, split_stories
from .stories import load_stories, load_story_cloze
from .vocabulary import Vocabulary, build_vocabulary

__all__ = [
    "LeakReport",
    "LengthBuckets",
    "StoryCollator",
    "Vocabulary",
    "WordVectors",
    "build_vocabulary",
    "find_leaks",
    "load_stories",
    "load_story_cloze",
    "load_word_vectors",
    "padding_share",
    "split_stories",
    "tokenise_stories",
]
