"""What an experiment is: parts to measure, tables and claims to derive, panels to draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .claims import Claim
from .parts import Part, Results
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Scale:
    """How large the experiments are.

    Attributes
    ----------
    n : int
        Variables of the synthetic problems; 1000 in the paper.
    seeds : tuple of int
        Problems are drawn with these.
    sizes : tuple of int
        Numbers of variables for which the time of one choice is measured.
    rows : int
        At most so many rows of each real data set.
    """

    n: int = 1000
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    rows: int = 5000


QUICK = Scale(n=100, seeds=(0, 1), sizes=(300, 1_000, 3_000), rows=300)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a title and how to draw it."""

    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Experiment:
    """A figure, from its measurements to its drawing.

    Attributes
    ----------
    name : str
        Its CSV is ``name.csv``, its figures are ``name.png`` and ``name.svg``.
    title, caption : str
        For the report.
    parts : callable
        ``parts(scale)``: what to measure.
    tables : callable
        ``tables(results, scale)``: CSV files by name. Those with times have names that end in
        ``_timing``; all others are the same in every run.
    claims : callable
        ``claims(results, scale)``, from all that was measured, not only from what the tables keep.
    panels : callable
        ``panels(tables)``: what to draw, from the CSV files only.
    columns : int
        Panels side by side.
    label_room : float
        Inches for the labels on the right of each panel.
    """

    name: str
    title: str
    caption: str
    parts: Callable[[Scale], list[Part]]
    tables: Callable[[Results, Scale], dict[str, Table]]
    claims: Callable[[Results, Scale], list[Claim]]
    panels: Callable[[dict[str, Table]], list[Panel]]
    columns: int = 2
    label_room: float = 0.75
