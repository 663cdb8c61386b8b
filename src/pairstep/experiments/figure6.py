"""Figure 6. Variables that gs-1 moves, seed by seed (appendix)."""

from __future__ import annotations

from functools import partial

from . import bounded
from .bounded import BOX
from .claims import Claim
from .experiment import Experiment, Panel, Scale
from .parts import Results
from .tables import Table


def panels(tables: dict[str, Table]) -> list[Panel]:
    """One panel per seed."""
    table = tables["figure6"]
    return [
        Panel(f"Seed {seed}", partial(bounded.draw_moved, table=table, seed=seed))
        for seed in bounded.seeds_in(table)
    ]


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Its claims are those of Figure 2, which are measured for every seed."""
    return []


EXPERIMENT = Experiment(
    "figure6",
    "Figure 6. Variables that gs-1 moves, seed by seed",
    "The right panel of Figure 2 for every seed.",
    partial(bounded.parts, bounds=BOX),
    partial(bounded.tables, bounds=BOX, name="figure6", columns=("moved",)),
    claims,
    panels,
)
