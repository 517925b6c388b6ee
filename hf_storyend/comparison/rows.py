"""Rows of a comparison: a system, if need be in a variant and with a seed, by one name: `ie`, `ie.state.seed1`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..systems import SYSTEMS, System, find_system

if TYPE_CHECKING:
    from ..training.options import TrainingOptions

# Training options of each variant, and what the table says of it.
VARIANTS: dict[str, tuple[dict[str, Any], str]] = {
    "state": ({"prediction_vector": "state"}, "by the paper's equations"),
}
PAPER_SYSTEMS = tuple(name for name, system in SYSTEMS.items() if system.paper_name)
_GROUPS = {"all": tuple(SYSTEMS), "paper": PAPER_SYSTEMS}
_SEED = re.compile(r"seed(0|[1-9]\d*)")


@dataclass(frozen=True)
class Row:
    """
    A row of the table.

    Args:
        system: The system.
        variant: Name in `VARIANTS`; None for the system as the options describe it.
        seed: Seed in place of that of the options.
    """

    system: System
    variant: str | None = None
    seed: int | None = None

    @classmethod
    def parse(cls, name: str) -> Row:
        """Read `SYSTEM`, then `.VARIANT` and `.seedN` as far as they are there."""
        system, *parts = name.split(".")
        row = cls(find_system(system))
        for part in parts:
            seed = _SEED.fullmatch(part)
            if seed and row.seed is None:
                row = replace(row, seed=int(seed[1]))
            elif part in VARIANTS and row.variant is None and row.seed is None:
                row = replace(row, variant=part)
            else:
                raise ValueError(
                    f"`{name}` is no row of a comparison: write SYSTEM, SYSTEM.VARIANT, SYSTEM.seedN or "
                    f"SYSTEM.VARIANT.seedN; variants: {', '.join(VARIANTS)}."
                )
        return row

    @property
    def name(self) -> str:
        """Name in options, which is also that of the directory and, behind a prefix, on the Hub."""
        seed = None if self.seed is None else f"seed{self.seed}"
        return ".".join(part for part in (self.system.name, self.variant, seed) if part is not None)

    @property
    def title(self) -> str:
        """Name in tables."""
        parts = [self.system.paper_name or self.system.name]
        parts += [VARIANTS[self.variant][1]] if self.variant is not None else []
        parts += [f"seed {self.seed}"] if self.seed is not None else []
        return ", ".join(parts)

    def options(self, training: TrainingOptions, output_dir: str) -> TrainingOptions:
        """Return the options of this row's run."""
        changes = dict(VARIANTS[self.variant][0]) if self.variant is not None else {}
        if self.seed is not None:
            changes["seed"] = self.seed
        return replace(training, system=self.system.name, output_dir=output_dir, **changes)


def parse_rows(names: str) -> tuple[Row, ...]:
    """Read rows, comma-separated; `all` stands for all systems, `paper` for the paper's eight."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    rows = [Row.parse(name) for word in words for name in _GROUPS.get(word, (word,))]
    if not rows:
        raise ValueError("`systems` is empty: there is nothing to compare.")
    repeated = [row.name for place, row in enumerate(rows) if row in rows[:place]]
    if repeated:
        raise ValueError(f"`systems` has `{repeated[0]}` twice.")
    return tuple(rows)
