"""The demo as a Hugging Face Space: a directory with everything but what pip installs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .. import modeling
from ..files import exclusive_directory
from .generator import ModelCache

_PACKAGE = Path(__file__).resolve().parent.parent
_IGNORED = shutil.ignore_patterns("__pycache__", "cli", "modeling", "hub_cards")


def write_space(directory: str | Path, models: Sequence[str] = ()) -> None:
    """
    Write a Space that shows what `storyend demo` shows.

    The installed package is copied with its model, so that the Space needs no release of the package.

    Args:
        directory: A new or an empty directory.
        models: Model directories, which are copied, or Hub names, which the Space downloads; `models.txt` lists them,
            a line each. Default: the model that comes with the package.
    """
    directory = Path(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ValueError(f"`{directory}` exists already: give a new or an empty directory.")
    if models:
        # A name that is no model fails here, not on the Space.
        ModelCache(models)
    # Not part of a Space, which imports this file, too.
    from .. import hub_cards

    with exclusive_directory(directory) as space:
        shutil.copytree(Path(str(hub_cards.__file__)).parent / "space", space, dirs_exist_ok=True, ignore=_IGNORED)
        shutil.copytree(_PACKAGE, space / "hf_storyend", ignore=_IGNORED)
        shutil.copytree(Path(str(modeling.__file__)).parent, space / "hf_storyend" / "modeling", ignore=_IGNORED)
        if models:
            names = [_add_model(space, model) for model in models]
            (space / "models.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _add_model(space: Path, model: str) -> str:
    """Copy a model directory into the Space; return the model's name there."""
    # A Space imports this file, too, without the dependencies of pushing.
    from ..hub.push import model_files

    if not Path(model).is_dir():
        return model
    name = Path(model).resolve().name
    target = space / "models" / name
    if target.exists():
        raise ValueError(f"Two of the models are called `{name}`: rename one of their directories.")
    target.mkdir(parents=True)
    for relative, path in model_files(Path(model)).items():
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target / relative)
    return f"models/{name}"
