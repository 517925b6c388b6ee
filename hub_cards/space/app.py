"""Story endings, and why: the app of the Space. All code is in the package beside this file."""

from pathlib import Path

from hf_storyend.demo import StoryLimits, launch_demo

HERE = Path(__file__).resolve().parent
# A model a line: a directory of this repository, or a Hub name. Without the file, the package's own model.
MODEL_LIST = HERE / "models.txt"
# Far beyond any story of the corpus. Visitors wait for each other: the longest story takes seconds, not minutes.
LIMITS = StoryLimits(max_sentences=12, max_sentence_length=50)


def listed_models() -> list[str]:
    """Return the models to choose among."""
    names = MODEL_LIST.read_text(encoding="utf-8").split() if MODEL_LIST.is_file() else []
    return [str(HERE / name) if (HERE / name).is_dir() else name for name in names]


if __name__ == "__main__":
    page, _ = launch_demo(listed_models(), limits=LIMITS)
    page.block_thread()
