"""Figure 3 (appendix): the scaled problem of Figure 1 for every seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import figure1
from .claims import ALIKE_FACTOR, APPENDIX, Claim, alike, except_where, iterations_to
from .experiment import Experiment, Panel, Scale
from .figure1 import SCALED
from .parts import Results
from .tables import Table, distinct


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 3; `figure1` compares the rules."""
    counts: dict[str, list[int]] = {rule: [] for rule in figure1.RULES}
    for p in figure1.parts(scale, (SCALED,)):
        curve = results[p]["suboptimality"]
        level = np.array([0.1 * curve[0]])
        counts[str(dict(p.parameters)["rule"])].append(int(iterations_to(level, curve)[0]))
    variation = {rule: max(c) / min(c) for rule, c in counts.items()}
    return [
        Claim(
            "seeds-are-similar",
            "The performance across different random seeds is similar.",
            "We see that the performance across different random seeds is similar.",
            APPENDIX,
            "figure3",
            except_where(alike, {rule: [w] for rule, w in variation.items()}, ["most over least"]),
            f"The iterations of some rule differ by more than a factor of {ALIKE_FACTOR} between "
            "the seeds",
            "Iterations until the suboptimality is a tenth of the start: for every rule, the most "
            f"over all seeds is below {ALIKE_FACTOR} times the least.",
            f"Most over least: {', '.join(f'{rule} {w:.2f}' for rule, w in variation.items())}.",
            {"iterations to a tenth": counts},
        )
    ]


def panels(tables: dict[str, Table]) -> list[Panel]:
    """Return one panel per seed."""
    table = tables["figure3"]
    return [
        Panel(
            f"Seed {seed}",
            partial(figure1.draw, table=table, axis="iteration", kind=SCALED, seed=seed),
        )
        for seed in distinct(table, "seed")
    ]


EXPERIMENT = Experiment(
    "figure3",
    "Figure 3. Very different L_i, for every seed",
    "The right panel of Figure 1 for every seed (of the data and of the random rules).",
    partial(figure1.parts, columns=(SCALED,)),
    partial(figure1.tables, columns=(SCALED,), name="figure3"),
    claims,
    panels,
    label_width=1.4,
)
