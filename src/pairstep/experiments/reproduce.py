"""One command: measure, write tables and claims, draw, report."""

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
    report,
    scaling,
    simplex,
    style,
    support_vectors,
    theorems,
    weights,
)
from .experiment import Experiment, Scale
from .parts import run
from .progress import progress
from .tables import read, write
from .workers import in_parallel

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
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
    )
}

THEMES = {"light": "", "dark": "-dark"}  # and how the names of files in them end
Drawn = dict[str, list[dict[str, str]]]  # panels by experiment, each as SVG by theme


def reproduce(
    out: str | os.PathLike[str],
    *,
    figures: Iterable[str] | None = None,
    scale: Scale | None = None,
    command: str = "pairstep.experiments.reproduce(...)",
) -> Path:
    """Run experiments and leave tables, figures, claims and a report in a folder.

    Finished measurements are kept in ``.parts`` in that folder; a rerun continues from them.

    Parameters
    ----------
    out : path
        The folder; made if need be.
    figures : iterable of str, optional
        Names in `EXPERIMENTS`; all by default.
    scale : Scale, optional
        How large the experiments are.
    command : str
        What the report says made it.

    Returns
    -------
    Path
        The report.
    """
    began = time.monotonic()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    scale = scale or Scale()
    chosen = [EXPERIMENTS[name] for name in figures or EXPERIMENTS]
    parts = list(dict.fromkeys(p for e in chosen for p in e.parts(scale)))
    with progress(len(parts) + len(chosen)) as done:
        results = run(parts, folder / ".parts", done)
        claims = []
        for experiment in chosen:
            for name, table in experiment.tables(results, scale).items():
                write(folder / f"{name}.csv", table)
            claims += [claim.record() for claim in experiment.claims(results, scale)]
        about: dict[str, Any] = {
            "command": command,
            "version": __version__,
            "seeds": list(scale.seeds),
            "scale": asdict(scale),
            "machine": machine(),
            "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "figures": [e.name for e in chosen],
        }
        drawn = draw(folder, [e.name for e in chosen], done)
    about["seconds"] = round(time.monotonic() - began, 1)
    content = {"about": about, "claims": claims}
    write_at_once(folder / "claims.json", json.dumps(content, indent=1) + "\n")
    return write_report(folder, content, drawn)


def redraw(out: str | os.PathLike[str]) -> Path:
    """Draw the figures and the report anew from the CSV files and claims.json of a folder."""
    folder = Path(out)
    path = folder / "claims.json"
    try:
        content = json.loads(path.read_text())
        unknown = set(content["about"]["figures"]) - set(EXPERIMENTS)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file that reproduce has written: {error!r}") from error
    if unknown:
        raise ValueError(f"{path} speaks of unknown figures: {', '.join(sorted(unknown))}")
    return write_report(folder, content, draw(folder, content["about"]["figures"]))


def write_report(folder: Path, content: dict[str, Any], drawn: Drawn) -> Path:
    """Write the page."""
    experiments = [EXPERIMENTS[name] for name in content["about"]["figures"]]
    path = folder / "report.html"
    write_at_once(path, report.page(content["about"], content["claims"], experiments, drawn))
    return path


def draw(
    folder: Path, names: Iterable[str], done: Callable[[str], None] = lambda label: None
) -> Drawn:
    """Draw figures from their CSV files; returns the panels of each, for the report."""
    drawn = {}

    def keep(answer: tuple[str, list[dict[str, str]]]) -> None:
        name, drawn[name] = answer
        done(f"drawing {name}")

    in_parallel(draw_one, [(folder, name) for name in names], keep)
    return drawn


def draw_one(folder: Path, name: str) -> tuple[str, list[dict[str, str]]]:
    """Draw one figure as PNG and SVG, and each of its panels as SVG, all in light and dark."""
    experiment = EXPERIMENTS[name]
    paths = {stem: folder / f"{stem}.csv" for stem in (name, f"{name}_timing")}
    tables = {stem: read(path) for stem, path in paths.items() if path.exists()}
    if name not in tables:
        return name, []
    panels = experiment.panels(tables)
    room, kinds = experiment.label_room, ("svg", "png")
    for theme, ending in THEMES.items():
        figures = style.draw(panels, experiment.columns, room, theme, kinds)
        for kind, figure in zip(kinds, figures, strict=True):
            write_at_once(folder / f"{name}{ending}.{kind}", figure)
    return name, [
        {theme: style.draw([panel], 1, room, theme, ["svg"])[0].decode() for theme in THEMES}
        for panel in panels
    ]


def machine() -> str:
    """Describe the machine in a line."""
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
