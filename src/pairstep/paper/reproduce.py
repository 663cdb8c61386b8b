"""Run experiments: measure, write tables and claims, draw the figures, write the report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy

from .. import __version__
from ..files import write_at_once
from . import bounded, peers, report, scaling, support_vectors, theorems, unbounded
from .claims import MIN_SEEDS
from .drawing import draw
from .experiment import Experiment, Scale, run

# In the order in which the report shows them; `Figure` has the same names in the same order.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        unbounded.FIGURE_1,
        bounded.FIGURE_2,
        unbounded.FIGURE_3,
        *bounded.FIGURES_4_TO_6,
        theorems.EXPERIMENT,
        scaling.EXPERIMENT,
        support_vectors.EXPERIMENT,
        bounded.SIMPLEX,
        unbounded.WEIGHTS,
        peers.EXPERIMENT,
    )
}


def reproduce(
    out: str | os.PathLike[str],
    *,
    figures: Iterable[str] | None = None,
    scale: Scale | None = None,
    command: str = "pairstep.paper.reproduce.reproduce(...)",
) -> Path:
    """Run experiments and write tables, figures, claims and a report to a folder.

    Finished measurements are kept in ``.cache`` in that folder, and a rerun continues from them.

    Parameters
    ----------
    out : path
        The folder. It is created if it does not exist.
    figures : iterable of str, optional
        Names in `EXPERIMENTS`; all by default.
    scale : Scale, optional
        How large the experiments are.
    command : str
        The command that the report names as its origin.

    Returns
    -------
    Path
        The path of the report.
    """
    folder = Path(out)
    scale = scale or Scale()
    chosen = [EXPERIMENTS[name] for name in figures or EXPERIMENTS]
    results = run((p for e in chosen for p in e.parts(scale)), folder / ".cache")
    records = []
    for experiment in chosen:
        table = experiment.table(results, scale)
        if len(table):
            same = table[[column for column in table if "seconds" not in column]]
            same.to_csv(folder / f"{experiment.name}.csv", index=False, float_format="%.9g")
            if len(same.columns) < len(table.columns):
                timing = folder / f"{experiment.name}_timing.csv"
                table.to_csv(timing, index=False, float_format="%.9g")
            draw(experiment.panels(table), experiment.per_row, folder / experiment.name)
        records += [
            {"figure": experiment.name} | claim.record(judged=len(scale.seeds) >= MIN_SEEDS)
            for claim in experiment.claims(results, scale)
        ]
    about = {
        "command": command,
        "version": __version__,
        "seeds": list(scale.seeds),
        "scale": asdict(scale),
        "machine": f"{os.cpu_count()} CPUs, {platform.platform()}, {platform.processor()}; Python "
        f"{platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}",
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    content = json.dumps({"about": about, "claims": records}, indent=1)
    write_at_once(folder / "claims.json", content + "\n")
    path = folder / "report.html"
    write_at_once(path, report.page(about, records, chosen, folder))
    return path
