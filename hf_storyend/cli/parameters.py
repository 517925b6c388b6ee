"""Options dataclasses on the command line: every field becomes a parameter of a typer command."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from functools import wraps
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


_ConfigFile = Annotated[
    str | None, typer.Option("--config", help="YAML or JSON file of options by name; those given here precede.")
]


def from_options(command: Callable[..., None], read_file: Callable[..., Any] | None = None) -> Callable[..., None]:
    """
    Return a command with one parameter for each field of its options dataclass, for typer.

    Args:
        command: Function with one parameter that is annotated with an options dataclass; others stay as they are.
        read_file: Returns the options of a file, with overrides by name; the command then takes `--config`.
    """
    hints = get_type_hints(command, include_extras=True)
    (options_name,) = (name for name, hint in hints.items() if dataclasses.is_dataclass(hint))
    options_class: Any = hints[options_name]
    names = [field.name for field in _options_of(options_class)]
    parameters = list(_parameters(options_class))
    parameters += [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != options_name
    ]
    if read_file is not None:
        own = {"config": (_ConfigFile, None), "context": (typer.Context, inspect.Parameter.empty)}
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in own.items()
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: _to_python(given.pop(name)) for name in names}
        path, context = given.pop("config", None), given.pop("context", None)
        if read_file is not None and path is not None:
            typed = {name: value for name, value in values.items() if _is_typed(context, name)}
            command(**{options_name: read_file(path, **typed)}, **given)
            return
        # What was not given has the default of the dataclass.
        given_options = {name: value for name, value in values.items() if value not in (None, ())}
        try:
            options = options_class(**given_options)
        except ValueError as error:
            raise ValueError(_with_flags(str(error), options_class)) from error
        command(**{options_name: options}, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _with_flags(message: str, options_class: Any) -> str:
    """Return a message whose names of options are spelt as on the command line."""
    for field in _options_of(options_class):
        flag = field.metadata["flag"] or field.name
        shown = (field.metadata["metavar"] or flag.upper()) if field.metadata["positional"] else f"--{flag}"
        message = message.replace(f"`{field.name}`", f"`{shown}`").replace(f"`{flag}`", f"`{shown}`")
    return message


def _is_typed(context: Any, name: str) -> bool:
    """Whether an option stands on the command line; the class of the source depends on typer's version."""
    return context.get_parameter_source(name).name == "COMMANDLINE"


def _options_of(options_class: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that were declared with `option`; others are for Python only."""
    return [field for field in dataclasses.fields(options_class) if "help" in field.metadata]


def _parameters(options_class: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(options_class)
    for field in _options_of(options_class):
        annotation, default = _annotation(field, hints[field.name])
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[annotation, _info(field)], default=default
        )


def _annotation(field: dataclasses.Field[Any], hint: Any) -> tuple[Any, Any]:
    """Return type and default of a field as typer wants them."""
    (kind,) = (part for part in get_args(hint) if part is not NoneType) if NoneType in get_args(hint) else (hint,)
    if get_origin(kind) is tuple:
        return list[_choices(field.name, get_args(kind)[0])] | None, None  # type: ignore[misc]
    kind = _choices(field.name, kind)
    if field.default is dataclasses.MISSING:
        return kind, inspect.Parameter.empty
    if field.default is None:
        return kind | None, None
    return kind, kind(field.default) if issubclass(kind, Enum) else field.default


def _choices(name: str, kind: Any) -> Any:
    """Return an enumeration for a `Literal`, any other type as it is."""
    if get_origin(kind) is not Literal:
        return kind
    return StrEnum(name, {value: value for value in get_args(kind)})


def _info(field: dataclasses.Field[Any]) -> Any:
    help_text, group, metavar = (field.metadata[name] for name in ("help", "group", "metavar"))
    if field.metadata["positional"]:
        return typer.Argument(help=help_text, metavar=metavar, show_default=False)
    name = field.metadata["flag"] or field.name
    flags = f"--{name}/--no_{name}" if field.default is True else f"--{name}"
    return typer.Option(flags, help=help_text, rich_help_panel=group, metavar=metavar)


def _to_python(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_to_python, value))
    return value.value if isinstance(value, Enum) else value
