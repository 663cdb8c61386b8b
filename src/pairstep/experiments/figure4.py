"""Figure 4. Objective under bounds, seed by seed (appendix)."""

from __future__ import annotations

from functools import partial

from . import bounded
from .bounded import BOX
from .claims import SPEED, Claim, rounded, spread
from .experiment import Experiment, Panel, Scale
from .figure2 import SMALL, speeds_against
from .parts import Results
from .tables import Table


def panels(tables: dict[str, Table]) -> list[Panel]:
    """One panel per seed."""
    table = tables["figure4"]
    return [
        Panel(f"Seed {seed}", partial(bounded.draw_objective, table=table, seed=seed))
        for seed in bounded.seeds_in(table)
    ]


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says of Figure 4."""
    found = speeds_against(results, scale, BOX, "gs-s")
    return [
        Claim(
            "small-advantage-in-objective",
            "gs-q and gs-1 have a small but consistent advantage in the objective.",
            "Appendix, Additional Experiments",
            "figure4",
            all(1 < x < SMALL for xs in found.values() for x in xs),
            f"{SPEED}. Against gs-s: above 1 (consistent) and below {SMALL} (small), for every "
            "seed.",
            f"Speed against gs-s: gs-q {spread(found['gs-q'])}, gs-1 {spread(found['gs-1'])}.",
            {"speed": rounded(found)},
        )
    ]


EXPERIMENT = Experiment(
    "figure4",
    "Figure 4. Objective under bounds, seed by seed",
    "The left panel of Figure 2 for every seed.",
    partial(bounded.parts, bounds=BOX),
    partial(bounded.tables, bounds=BOX, name="figure4", columns=("suboptimality",)),
    claims,
    panels,
)
