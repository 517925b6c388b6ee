"""Story endings, and why: what the Space runs. Everything is in the package that lies beside this file."""

from pathlib import Path

from hf_storyend.demo import launch_demo

HERE = Path(__file__).resolve().parent
# A model a line: a directory of this repository, or a name on the Hub. Without the file, the package's own model.
LISTED = HERE / "models.txt"


def models() -> list[str]:
    """The models to choose among."""
    names = LISTED.read_text(encoding="utf-8").split() if LISTED.is_file() else []
    return [str(HERE / name) if (HERE / name).is_dir() else name for name in names]


if __name__ == "__main__":
    page, _ = launch_demo(models())
    page.block_thread()
