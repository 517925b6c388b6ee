"""Training options from a command line, or from a YAML or JSON file."""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml
from transformers import HfArgumentParser

from ..terminal import printable
from .options import RENAMED_OPTIONS, TrainingOptions

# PyYAML converts numbers and dates without checking that it can.
_UNREADABLE = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


def parse_options(arguments: Sequence[str] | None = None, description: str | None = None) -> TrainingOptions:
    """
    Parse a command line; mistakes end the program with a message and exit code 2.

    Args:
        arguments: Words of the command line; default: those of the program. The first may be a YAML or JSON file of
            options, which the options after it override.
        description: What the program does, for `--help`.
    """
    parser = _OptionsParser(description)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words and words[0].endswith((".yaml", ".yml", ".json")):
            words = [*_to_words(_read_file(Path(words[0]))), *words[1:]]
        return parser.parse(words)
    except (ValueError, OSError) as error:
        sys.stderr.write(printable(f"{parser.format_usage()}{parser.prog}: error: {error}\n"))
        sys.exit(2)


def read_options(path: str | Path | None = None, **overrides: Any) -> TrainingOptions:
    """
    Read options from a YAML or JSON file.

    Args:
        path: File with options by name; None: defaults only.
        overrides: Options that take precedence over those of the file.

    Raises:
        ValueError: If the file can't be read, or an option is unknown or has an invalid value.
    """
    values = {} if path is None else _read_file(Path(path))
    return _OptionsParser().parse(_to_words({**values, **overrides}))


class _OptionsParser(HfArgumentParser):
    """Parser of training options that raises ValueError instead of ending the program."""

    def __init__(self, description: str | None = None):
        types = typing.get_type_hints(TrainingOptions)
        # HfArgumentParser passes all metadata on to argparse, which knows only the help.
        fields = [
            (
                item.name,
                types[item.name],
                dataclasses.field(default=item.default, metadata={"help": item.metadata["help"]}),
            )
            for item in dataclasses.fields(TrainingOptions)
        ]
        super().__init__(
            dataclasses.make_dataclass("TrainingOptions", fields),  # type: ignore[arg-type]
            description=description,
            usage="%(prog)s [options.yaml] [--option value ...]",
        )

    def parse(self, words: list[str]) -> TrainingOptions:
        for word in words:
            if word.startswith("--"):
                _refuse_renamed(word.partition("=")[0])
        (parsed,) = self.parse_args_into_dataclasses(words, look_for_args_file=False)
        return TrainingOptions(**vars(parsed))

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _refuse_renamed(name: str, where: str = "") -> None:
    new = RENAMED_OPTIONS.get(name.removeprefix("--").replace("-", "_"))
    if new is not None:
        raise ValueError(f"{where}`{name}` is now called `{new}`.")


def _read_file(path: Path) -> dict[str, Any]:
    """Read options by name and check the names."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            values = json.loads(text, object_pairs_hook=_unique_names)
        else:
            values = yaml.load(text, _UniqueNamesLoader)
    except OSError as error:
        raise ValueError(f"{path} can't be opened: {error.strerror}.") from error
    except _UNREADABLE as error:
        raise ValueError(f"{path} can't be read: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold options by name, such as `max_steps: 1000`.")
    known = {item.name for item in dataclasses.fields(TrainingOptions)}
    unknown = [str(name) for name in values if name not in known]
    for name in unknown:
        _refuse_renamed(name, f"{path}: ")
    if unknown:
        raise ValueError(f"{path} has options that do not exist: {', '.join(unknown)}. `--help` lists those that do.")
    for name, value in values.items():
        if isinstance(value, (list, dict)):
            # The value is left out: a few lines of YAML can expand to gigabytes.
            raise ValueError(f"{path}: `{name}` must be one value; got a {type(value).__name__}.")
    return values


def _to_words(values: dict[str, Any]) -> list[str]:
    # One word per option: a separate value that starts with a dash would be taken for an option.
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _unique_names(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"`{repeated[0]}` is given twice.")
    return dict(pairs)


class _UniqueNamesLoader(yaml.SafeLoader):
    """YAML's safe loader that refuses repeated names."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _unique_names([(self.construct_object(key, deep=True), None) for key, _ in node.value])
        return super().construct_mapping(node, deep)
