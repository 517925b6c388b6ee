"""Options of `storyend card`, `storyend push` and `storyend check-code`."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import REQUIRED, option


@dataclass(frozen=True)
class CardOptions:
    """Options of `storyend card`: of which model, and where to."""

    model: str | None = option(
        None,
        "Model directory, with what its training and evaluation left there; default: the card of the model that comes "
        "with the package.",
        positional=True,
    )
    output_file: str | None = option(None, "File to write, such as MODEL/README.md; default: print it.")


@dataclass(frozen=True)
class PushOptions:
    """Options of `storyend push`: which model or comparison, to which repository or collection, and how."""

    model: str = option(
        REQUIRED,
        "Model directory that training or `save_pretrained` wrote; with `collection`, that of a comparison.",
        positional=True,
    )
    repo_id: str | None = option(None, "Repository on the Hub: `owner/name`, or `name` for one of your own.")
    collection: str | None = option(
        None,
        "Push all models of a comparison to this user or organisation, as OWNER/story-ending-ROW, and collect them.",
        metavar="OWNER",
    )
    private: bool = option(False, "Make new repositories and a new collection private.")
    revision: str = option("main", "Branch; created from `main` if it does not exist.")
    allow_changed_code: bool = option(False, "Push code that differs from that of the installed package.")
    dry_run: bool = option(False, "Show what would be pushed, and push nothing.")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        if (self.repo_id is None) == (self.collection is None):
            raise ValueError("Give either `repo_id`, for a model, or `collection`, for a comparison.")
        if self.collection is not None and self.revision != "main":
            raise ValueError("`revision` is for one model: a collection shows main branches.")


@dataclass(frozen=True)
class CheckCodeOptions:
    """Options of `storyend check-code`: the code of which model."""

    model: str | None = option(
        None, "Model directory or Hub name; default: the model that comes with the package.", positional=True
    )
    revision: str | None = option(None, "Branch, tag or commit of the repository; default: its main branch.")
    json: bool = option(False, "Print JSON.")
