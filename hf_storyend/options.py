"""Options of commands: dataclass fields that carry their own help, shared by Python and the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, Literal

# Names of `PRESETS` in `modeling/decoding.py`, which commands can't import before torch is needed.
DecodingPreset = Literal["readers", "paper", "sampling"]
# Help of the options that all commands that write endings have.
DECODING_HELP = (
    "Preset: `readers`, 8 beams and no length penalty; `paper`, greedy; or `sampling`; default: the model's own "
    "setting if it has beams or samples, else `readers`."
)
SAMPLE_HELP = "Sample words instead of searching for the likeliest ending: the preset `sampling`."
TEMPERATURE_HELP = "Temperature of sampling: below 1 likelier words, above 1 more varied ones; default: 0.7."
TOP_P_HELP = "Sample from the likeliest words that have this probability together; default: 1, all words."
TOP_K_HELP = "Sample from so many likeliest words; default: 0, all words."
SEED_HELP = "Random seed of sampling."
# As the default of an option: it must be given.
REQUIRED: Any = MISSING
# Longest story of commands and demo, unless their options say otherwise: far beyond any of the corpus.
MAX_SENTENCES, MAX_SENTENCE_LENGTH = 50, 500
# Far beyond what any number of stories needs.
MAX_BOOTSTRAP_SAMPLES, MAX_PROCESSES = 100_000, 1_000


def option(
    default: Any,
    help: str,
    *,
    positional: bool = False,
    factory: Callable[[], Any] | None = None,
    group: str | None = None,
    flag: str | None = None,
    metavar: str | None = None,
) -> Any:
    """
    Declare a field of an options dataclass.

    Args:
        default: Default value, or `REQUIRED`; ignored if there is a `factory`.
        help: One line for `--help`; it says what the option does and what the default means.
        positional: Whether the command line takes it as an argument instead of `--name`.
        factory: Makes the default where it is mutable.
        group: Title under which `--help` lists the option.
        flag: Spelling on the command line, without hyphens, where it is not that of the field.
        metavar: Placeholder of the value in `--help`.
    """
    metadata = {"help": help, "positional": positional, "group": group, "flag": flag, "metavar": metavar}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_at_least(options: Any, smallest: float, *names: str, optional: bool = False) -> None:
    """Refuse options that are not whole numbers of at least `smallest`; with `optional`, None is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ValueError(f"`{name}` must be a whole number of at least {smallest}; got {value!r}.")


def check_at_most(options: Any, **largest: int) -> None:
    """Refuse options above these numbers, which only a slip of the keys can be: they would fill the memory."""
    for name, limit in largest.items():
        value = getattr(options, name)
        if value is not None and value > limit:
            raise ValueError(f"`{name}` must be at most {limit:,}; got {value:,}.")


def samples(options: Any) -> bool:
    """Whether options of a command that writes endings ask for sampling."""
    return bool(options.do_sample or options.decoding == "sampling")


def check_sampling(options: Any) -> None:
    """Refuse `temperature`, `top_p` and `top_k` out of their range, and any of them where nothing is sampled."""
    if options.do_sample and options.decoding not in (None, "sampling"):
        raise ValueError(f"`decoding` {options.decoding} does not sample: leave it or `do_sample` out.")
    given = [name for name in ("temperature", "top_p", "top_k") if getattr(options, name) is not None]
    if given and not samples(options):
        raise ValueError(f"`{given[0]}` is a setting of sampling: give `do_sample`, too.")
    if options.temperature is not None and not options.temperature > 0:
        raise ValueError(f"`temperature` must be above 0; got {options.temperature}.")
    if options.top_p is not None and not 0 < options.top_p <= 1:
        raise ValueError(f"`top_p` must be above 0 and at most 1; got {options.top_p}.")
    check_at_least(options, 0, "top_k", optional=True)


def decoding_arguments(options: Any) -> dict[str, Any]:
    """Return preset, beams and settings of sampling, as far as they were given, for `write_endings` and its kin."""
    given = {name: getattr(options, name) for name in ("num_beams", "temperature", "top_p", "top_k")}
    given["decoding"] = "sampling" if samples(options) else options.decoding
    return {name: value for name, value in given.items() if value is not None}


def check_finite_numbers(options: Any) -> None:
    """Refuse NaN and infinity in every option that is a fraction."""
    for entry in fields(options):
        value = getattr(options, entry.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"`{entry.name}` must be a finite number; got {value}.")
