"""Stories, vocabularies and what is made of them."""

from .batching import LengthBuckets, padding_share
from .embeddings import WordVectors, load_word_vectors
from .leaks import LeakReport, find_leaks
from .splits import split_stories
from .stories import load_stories, load_story_cloze
from .tokenised import StoryCollator, tokenise_stories
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
