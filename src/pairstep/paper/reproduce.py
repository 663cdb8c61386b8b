"""Run experiments: measure, write tables and claims, draw the figures, write the report."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from .. import __version__
from ..files import write_at_once
from . import (
    figure1,
    figure2,
    figure3,
    figures_4_to_6,
    peers,
    report,
    scaling,
    simplex,
    style,
    support_vectors,
    theorems,
    weights,
)
from .claims import MIN_SEEDS, Claim
from .experiment import Experiment, Scale
from .parts import run
from .progress import progress
from .tables import read, write
from .workers import in_parallel

# In the order in which the report shows them; `Figure` has the same names in the same order.
EXPERIMENTS: dict[str, Experiment] = {
    str(experiment.name): experiment
    for experiment in (
        figure1.EXPERIMENT,
        figure2.EXPERIMENT,
        figure3.EXPERIMENT,
        *figures_4_to_6.EXPERIMENTS,
        theorems.EXPERIMENT,
        scaling.EXPERIMENT,
        support_vectors.EXPERIMENT,
        simplex.EXPERIMENT,
        weights.EXPERIMENT,
        peers.EXPERIMENT,
    )
}

THEMES = {"light": "", "dark": "-dark"}  # suffix of the file names of each theme
Drawn = dict[str, list[dict[str, str]]]  # for each experiment its panels, as SVG by theme


def reproduce(
    out: str | os.PathLike[str],
    *,
    figures: Iterable[str] | None = None,
    scale: Scale | None = None,
    command: str = "pairstep.paper.reproduce.reproduce(...)",
) -> Path:
    """Run experiments and write tables, figures, claims and a report to a folder.

    Finished measurements are kept in ``.parts`` in that folder, and a rerun continues from them.

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
    began = time.monotonic()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    scale = scale or Scale()
    chosen = [EXPERIMENTS[name] for name in figures or EXPERIMENTS]
    parts = list(dict.fromkeys(p for e in chosen for p in e.parts(scale)))
    with progress(len(parts) + len(chosen)) as done:
        results = run(parts, folder / ".parts", done)
        claims: list[Claim] = []
        for experiment in chosen:
            for name, table in experiment.tables(results, scale).items():
                write(folder / f"{name}.csv", table)
            claims += experiment.claims(results, scale)
        judged = len(scale.seeds) >= MIN_SEEDS
        records = [(c if judged else c.without_verdict()).record() for c in claims]
        about: dict[str, Any] = {
            "command": command,
            "version": __version__,
            "seeds": list(scale.seeds),
            "scale": asdict(scale),
            "machine": computer(),
            "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "figures": [e.name for e in chosen],
        }
        drawn = draw(folder, [e.name for e in chosen], done)
    about["seconds"] = round(time.monotonic() - began, 1)
    content = {"about": about, "claims": records}
    write_at_once(folder / "claims.json", json.dumps(content, indent=1) + "\n")
    return write_report(folder, content, drawn)


def redraw(out: str | os.PathLike[str]) -> Path:
    """Draw figures and report again, from the CSV files and claims.json of a folder."""
    folder = Path(out)
    path = folder / "claims.json"
    try:
        content = json.loads(path.read_text())
        unknown = set(content["about"]["figures"]) - set(EXPERIMENTS)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} was not written by reproduce: {error!r}") from error
    if unknown:
        raise ValueError(f"{path} has unknown figures: {', '.join(sorted(unknown))}")
    return write_report(folder, content, draw(folder, content["about"]["figures"]))


def write_report(folder: Path, content: dict[str, Any], drawn: Drawn) -> Path:
    """Write the report and return its path."""
    experiments = [EXPERIMENTS[name] for name in content["about"]["figures"]]
    path = folder / "report.html"
    write_at_once(path, report.page(content["about"], content["claims"], experiments, drawn))
    return path


def draw(
    folder: Path, names: Iterable[str], done: Callable[[str], None] = lambda label: None
) -> Drawn:
    """Draw figures from their CSV files, and return the panels of each for the report."""
    drawn = {}

    def keep(result: tuple[str, list[dict[str, str]]]) -> None:
        name, drawn[name] = result
        done(f"drawing {name}")

    in_parallel(draw_one, [(folder, name) for name in names], keep)
    return drawn


def draw_one(folder: Path, name: str) -> tuple[str, list[dict[str, str]]]:
    """Draw one figure as PNG and SVG, and each of its panels as SVG, in both themes."""
    experiment = EXPERIMENTS[name]
    paths = {stem: folder / f"{stem}.csv" for stem in (name, f"{name}_timing")}
    tables = {stem: read(path) for stem, path in paths.items() if path.exists()}
    if name not in tables:
        return name, []
    panels = experiment.panels(tables)
    width, kinds = experiment.label_width, ("svg", "png")
    for theme, ending in THEMES.items():
        figures = style.draw(panels, experiment.columns, width, theme, kinds)
        for kind, figure in zip(kinds, figures, strict=True):
            write_at_once(folder / f"{name}{ending}.{kind}", figure)
    return name, [
        {theme: style.draw([panel], 1, width, theme, ["svg"])[0].decode() for theme in THEMES}
        for panel in panels
    ]


def computer() -> str:
    """Describe the computer on one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}; Python "
        f"{platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    )
