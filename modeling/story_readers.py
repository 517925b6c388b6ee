"""The ways of reading a story, by the name that the configuration gives them. A new one is a file and a line here."""

from __future__ import annotations

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .hierarchical_reader import HierarchicalStoryReader
from .sequence_reader import SequenceStoryReader
from .story_encoder import IncrementalStoryEncoder
from .story_reader import StoryReader

STORY_READERS: dict[str, type[StoryReader]] = {
    "incremental": IncrementalStoryEncoder,
    "hierarchical": HierarchicalStoryReader,
    "sequence": SequenceStoryReader,
}


def build_story_reader(config: IncrementalEncoderConfig) -> StoryReader:
    """The encoder of a model, which its decoder reads with too."""
    if config.story_encoder not in STORY_READERS:
        allowed = ", ".join(map(repr, STORY_READERS))
        raise ValueError(f"`story_encoder` must be one of {allowed}; got {config.story_encoder!r}.")
    return STORY_READERS[config.story_encoder](config)
