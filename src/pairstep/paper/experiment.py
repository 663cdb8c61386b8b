"""What an experiment is, and how its parts are measured in parallel and kept.

A part is a function with its parameters. `joblib.Memory` keeps its measurements by parameters and
by `fingerprint`, so an interrupted run continues, and no code sees what other code has measured.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..extras import needed
from .claims import Claim

if TYPE_CHECKING:
    import joblib
    import pandas as pd
    from matplotlib.axes import Axes
    from threadpoolctl import threadpool_limits
else:
    joblib, pd = needed("joblib", by="reproduce"), needed("pandas", by="reproduce")
    threadpool_limits = needed("threadpoolctl", by="reproduce").threadpool_limits

Array = NDArray[np.float64]
Measured = dict[str, NDArray[Any]]
Parameter = str | int | float | bool
MAX_DRAWN = 4  # seeds that the figures show, as in the paper
POINTS = 200  # rows of a table, evenly and logarithmically spaced, per curve


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


QUICK = Scale(n=100, seeds=(0, 1), sizes=(300, 1_000, 3_000), rows=300)


@dataclass(frozen=True)
class Part:
    """A function at the top level of its module with its keyword arguments.

    Nothing else runs at the same time if it runs `alone`, because its times matter.
    """

    measure: Callable[..., Measured]
    parameters: tuple[tuple[str, Parameter], ...]
    alone: bool = False


def part(measure: Callable[..., Measured], alone: bool = False, **parameters: Parameter) -> Part:
    """Return a measurement of a function with these parameters."""
    return Part(measure, tuple(sorted(parameters.items())), alone)


Results = Mapping[Part, Measured]


@dataclass(frozen=True)
class Experiment:
    """A figure, from its measurements to its drawing.

    Attributes
    ----------
    name : str
        One of `Figure`; also the name of its files.
    title, caption : str
        For the report.
    parts : callable
        ``parts(scale)``: what to measure.
    columns : tuple of str
        What is drawn of the measurements of the first function. Columns of times have "seconds" in
        their name; all others are the same in every run.
    claims : callable
        ``claims(results, scale)``, from all measurements, not only from what the table keeps.
    panels : callable
        ``panels(table)``: a function for each title, which draws on axes.
    per_row : int
        Number of panels in a row.
    also : callable
        ``also(measured)``: iterations that the table keeps in addition to those at which all curves
        are drawn.
    """

    name: str
    title: str
    caption: str
    parts: Callable[[Scale], list[Part]]
    columns: tuple[str, ...]
    claims: Callable[[Results, Scale], list[Claim]]
    panels: Callable[[pd.DataFrame], dict[str, Callable[[Axes], None]]]
    per_row: int = 2
    also: Callable[[Measured], NDArray[Any]] = lambda measured: np.zeros(0, int)

    def table(self, results: Results, scale: Scale) -> pd.DataFrame:
        """Return what is drawn: parameters and columns.

        There is a row for each single measurement. Of measurements by iteration, only some seeds
        and evenly and logarithmically spaced iterations are drawn.
        """
        parts, tables = self.parts(scale), []
        for p in (p for p in parts if p.measure is parts[0].measure):
            measured, given = results[p], dict(p.parameters)
            rows = pd.DataFrame({c: np.atleast_1d(measured[c]) for c in self.columns})
            if measured[self.columns[0]].ndim:
                if given.get("seed") in scale.seeds[MAX_DRAWN:]:
                    continue
                last = len(rows) - 1
                spaced = np.linspace(0, last, POINTS), np.geomspace(1, max(last, 1), POINTS)
                shown = np.concatenate([*spaced, self.also(measured)]).round().clip(0, last)
                rows = rows.iloc[np.unique(shown.astype(int))]
                rows = rows.rename_axis("iteration").reset_index()
            tables.append(pd.DataFrame(given, index=rows.index).join(rows))
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def fingerprint(package: Path = Path(__file__).parents[1], core: str = _core.__file__) -> str:
    """Return a hash of the package's Python sources and of the compiled module."""
    digest = hashlib.sha256()
    for path in [*sorted(package.rglob("*.py")), Path(core)]:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def run(parts: Iterable[Part], folder: Path) -> Results:
    """Measure the parts that are not finished yet; finished ones are kept in a folder."""
    kept = joblib.Memory(folder, verbose=0).cache(measured)
    code = fingerprint()
    unique = list(dict.fromkeys(parts))
    found: dict[Part, Measured] = {}
    for alone in (False, True):
        here = [p for p in unique if p.alone is alone]
        calls = [joblib.delayed(keep)(kept, code, p) for p in here]
        # The backend and its number of jobs are the caller's; the default is all CPUs.
        _, n_jobs = joblib.parallel.get_active_backend()
        parallel = joblib.Parallel(
            n_jobs=1 if alone else n_jobs or -1,
            verbose=10 if sys.stderr.isatty() else 0,
            initializer=leave_interrupts_to_parent,
        )
        with warnings.catch_warnings():
            # Workers that hold matrices grow, and joblib replaces those that have grown a lot.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
            found |= dict(zip(here, parallel(calls), strict=True))
    return found


def keep(kept: Callable[..., Measured], code: str, part: Part) -> Measured:
    """Measure a part unless its measurements are kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Unable to cache to disk")
        warnings.filterwarnings("ignore", message="Persisting input arguments took")  # a slow disk
        return kept(code, part.measure, part.parameters)


def measured(
    code: str, measure: Callable[..., Measured], parameters: tuple[tuple[str, Parameter], ...]
) -> Measured:
    """Measure on one thread, so that the results do not depend on the backend."""
    with threadpool_limits(1):
        return measure(**dict(parameters))


def leave_interrupts_to_parent() -> None:
    """Ignore Ctrl-C in a worker: a terminal sends it to all processes, and the parent ends them."""
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
