"""The definition of an experiment: parts to measure, tables, claims, and panels to draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .claims import Claim
from .parts import Part, Results
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DRAWN = 4  # seeds that the figures show


@dataclass(frozen=True)
class Scale:
    """How large the experiments are.

    Attributes
    ----------
    n : int
        Variables of the synthetic problems; 1000 in the paper.
    seeds : tuple of int
        Seeds of the random problems. The verdicts need `claims.MIN_SEEDS` of them.
    sizes : tuple of int
        Numbers of variables for which the time of one choice is measured.
    rows : int
        Maximum number of rows of each real data set.
    """

    n: int = 1000
    seeds: tuple[int, ...] = tuple(range(10))
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    rows: int = 5000

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds that the figures show; four, as in the paper."""
        return self.seeds[:MAX_DRAWN]


QUICK = Scale(n=100, seeds=(0, 1), sizes=(300, 1_000, 3_000), rows=300)


@dataclass(frozen=True)
class Panel:
    """One plot of a figure: its title and a function that draws it."""

    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Experiment:
    """A figure, from its measurements to its drawing.

    Attributes
    ----------
    name : str
        One of `Figure`. The table is ``name.csv``, the figures are ``name.png`` and ``name.svg``.
    title, caption : str
        For the report.
    parts : callable
        ``parts(scale)``: what to measure.
    tables : callable
        ``tables(results, scale)``: tables by name. The names of tables with times end in
        ``_timing``; all others are the same in every run.
    claims : callable
        ``claims(results, scale)``, from all measurements, not only from what the tables keep.
    panels : callable
        ``panels(tables)``: what to draw, from the CSV files only.
    columns : int
        Number of panels in a row.
    label_width : float
        Width in inches of the labels on the right of each panel.
    """

    name: str
    title: str
    caption: str
    parts: Callable[[Scale], list[Part]]
    tables: Callable[[Results, Scale], dict[str, Table]]
    claims: Callable[[Results, Scale], list[Claim]]
    panels: Callable[[dict[str, Table]], list[Panel]]
    columns: int = 2
    label_width: float = 0.75
