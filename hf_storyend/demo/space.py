"""The demo as a Hugging Face Space: a directory that holds all it needs but what pip installs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .. import modeling
from ..files import atomic_directory
from .requests import SystemShelf

_PACKAGE = Path(__file__).resolve().parent.parent
_NOT_NEEDED = shutil.ignore_patterns("__pycache__", "cli", "modeling", "hub_cards")


def write_space(folder: str | Path, models: Sequence[str] = ()) -> None:
    """
    Write a Space to a directory. The package goes in as it is installed here, with the model that comes with it: a
    Space then needs no release of the package, and shows exactly what `storyend demo` shows.

    Args:
        folder: A directory that is not there yet, or an empty one.
        models: Directories of models, which go in, or names on the Hub, which the Space will fetch; they are in
            `models.txt`, a line each. The model that comes with the package if there are none.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"`{folder}` is there already: give a new or an empty directory.")
    if models:
        # Tells now, not on the Space, if one of them is no model.
        SystemShelf(models)
    # Not part of a Space, which imports this file, too.
    from .. import hub_cards

    with atomic_directory(folder) as aside:
        shutil.copytree(Path(str(hub_cards.__file__)).parent / "space", aside, dirs_exist_ok=True, ignore=_NOT_NEEDED)
        shutil.copytree(_PACKAGE, aside / "hf_storyend", ignore=_NOT_NEEDED)
        code = Path(str(modeling.__file__)).parent
        shutil.copytree(code, aside / "hf_storyend" / "modeling", ignore=_NOT_NEEDED)
        if models:
            lines = [_add_model(aside, model) for model in models]
            (aside / "models.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _add_model(space: Path, model: str) -> str:
    """Copy a model that is here; gives what the Space calls it."""
    # A Space imports this file, too, and lacks what pushing needs.
    from ..hub.push import model_files

    if not Path(model).is_dir():
        return model
    name = Path(model).resolve().name
    target = space / "models" / name
    if target.exists():
        raise ValueError(f"Two of the models are called `{name}`: rename the directory of one.")
    target.mkdir(parents=True)
    for name_there, path in model_files(Path(model)).items():
        (target / name_there).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target / name_there)
    return f"models/{name}"
