"""SVMs compared with scikit-learn (LIBSVM) and scikit-learn-intelex (oneDAL), equally exact.

    PAIRSTEP_DATA=... python -m benchmarks.svm [--only PART...] [--peers libsvm onedal]
                                               [--budget 60] [--quick] [--small]

Tables "svm" (RBF classifiers), "svm-other" (the other fits) and "svm-classes" (those with more than
two classes, against LIBSVM). Every solver starts with tol = 1e-3. The KKT violation of its model is
recomputed from the data in float64. While it is above 1.5e-3, the solver runs again with a third of
its tol. The first run below it counts, and its tol is shown. Then all solvers must agree on the
dual objective within 1e-4, or are tightened further; a solver that never agrees has failed.

Each fit runs in a separate process with 2 GB of cache and all threads. Seconds are the best of up
to five fits within five seconds, and the first fit is shown beside it. Memory is the peak of the
first fit minus the memory before it. oneDAL fits float32 and float64 rows, and the faster valid fit
counts; its iterations are not limited, because its default stops silently after 10,000. Ratios are
the seconds of the other solver over those of the row. The reference cost is one float32 product of
pairstep's support vectors with all rows and one exp of each entry (RBF kernel only).

All fits of a solver to a data set share a time budget. A fit that exceeds it is stopped and shown
with ">", and the ratio to it is a lower bound. With the default of 60 seconds, everything takes
about 35 minutes on two cores. `--small` compares small fits instead: see `benchmarks.svm_small`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from statistics import geometric_mean
from typing import Any

import numpy as np

from .harness import Table, data_folder, digits, log, named, parser
from .svm_problems import PROBLEMS, Data, Problem
from .svm_worker import in_process

TOL = 1e-3  # first tolerance of every solver
VIOLATION = 1.5e-3  # largest valid float64 violation
AGREEMENT = 1e-4  # largest relative difference of valid dual objectives
TIGHTEST = 1e-7  # smallest tolerance to try
QUICK_ROWS = 1500  # of each data set with --quick
COLUMNS = (
    "set", "seconds", "LIBSVM, s", "oneDAL, s", "faster than LIBSVM by", "faster than oneDAL by",
    "times the reference cost", "prediction, faster than LIBSVM by",
)  # fmt: skip
RATIOS = "vs_libsvm", "vs_onedal", "over_reference", "predict_vs_libsvm"
PACKAGES = "scikit-learn", "scikit-learn-intelex"


@dataclass
class Row:
    problem: str
    solver: str
    dtype: str
    status: str = ""
    tol: float = TOL
    seconds: float = np.nan
    first: float = np.nan
    violation: float = np.nan
    objective: float = np.nan
    infeasibility: float = np.nan
    support: int = 0
    iterations: int = 0
    vs_libsvm: float = np.nan
    vs_onedal: float = np.nan
    reference: float = np.nan  # reference cost, seconds
    over_reference: float = np.nan
    memory: float = np.nan
    predict: float = np.nan
    predict_first: float = np.nan
    predicted: int = 0
    predict_vs_libsvm: float = np.nan
    spent: float = 0.0  # seconds of the first fits at all tolerances
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def exceeded(self) -> bool:
        return self.status.startswith("over budget (>")

    def take(self, report: dict[str, Any]) -> None:
        for name in {f.name for f in fields(self)} & report.keys():
            setattr(self, name, report[name])


# ----------------------------------------------------------------------------------------- running


def climb(row: Row, task: dict[str, Any], data: Data, tol: float = TOL) -> None:
    """Tighten the tolerance until the float64 violation is valid or the budget is spent."""
    best, stalls = np.inf, 0
    while tol >= TIGHTEST and stalls < 2:
        left = max(task["budget"] - row.spent, 1.0)
        report = in_process({**task, "tol": tol, "budget": left}, data)
        row.tol = tol
        row.spent += report.get("first", left)
        if report["exceeded"]:  # a tighter tolerance would take at least as long
            row.seconds = max(left, 0.0 if np.isnan(row.first) else row.first)
            row.status = f"over budget (> {row.seconds:.3g} s)"
            return
        row.take(report)
        if not row.ok or row.violation <= VIOLATION:
            break
        stalls = 0 if row.violation < 0.9 * best else stalls + 1
        best, tol = min(best, row.violation), tol / 3
    if row.ok and row.violation > VIOLATION:
        row.status = f"failed (violation {row.violation:.1e})"
    if row.ok and row.infeasibility > AGREEMENT:
        row.status = f"failed (infeasible by {row.infeasibility:.0e})"


def measure(problem: Problem, data: Data, options: argparse.Namespace) -> list[Row]:
    """Return one row per solver and dtype."""
    wanted = [("pairstep", "float64")]
    wanted += [("libsvm", "float64")] if named("libsvm", options.peers) else []
    wanted += [
        ("onedal", kind) for kind in ("float32", "float64") if named("onedal", options.peers)
    ]
    rows = [Row(problem.name, solver, dtype) for solver, dtype in wanted]

    def task(row: Row) -> dict[str, Any]:
        return {
            "solver": row.solver, "estimator": problem.estimator,
            "params": problem.params, "dtype": row.dtype, "budget": options.budget,
            "reference": not any(r.reference > 0 for r in rows if r is not row), "predict": True,
        }  # fmt: skip

    for row in rows:
        climb(row, task(row), data)
    while behind := [r for r in rows if gap(r, rows) > AGREEMENT and r.tol / 3 >= TIGHTEST]:
        row = max(behind, key=lambda r: gap(r, rows))
        climb(row, task(row), data, row.tol / 3)
    for row in rows:
        if gap(row, rows) > AGREEMENT:
            row.status = f"failed (objective {gap(row, rows):.0e} above the best)"
    compare(rows)
    return rows


def gap(row: Row, rows: list[Row]) -> float:
    """Return how far the objective of a valid row is above the best one, relative to it."""
    best = min((r.objective for r in rows if r.ok), default=np.nan)
    return (row.objective - best) / max(abs(best), 1e-300) if row.ok else 0.0


def chosen(rows: list[Row], solver: str) -> Row | None:
    """Return the fastest valid row of a solver, or else one that was stopped at the budget."""
    mine = [r for r in rows if r.solver == solver]
    done = [r for r in mine if r.ok]
    if done:
        return min(done, key=lambda r: r.seconds)
    return next((r for r in mine if r.exceeded), None)


def compare(rows: list[Row]) -> None:
    libsvm, onedal = chosen(rows, "libsvm"), chosen(rows, "onedal")
    reference = next((r.reference for r in rows if r.reference > 0), np.nan)
    for r in rows:
        if not r.ok:
            continue
        r.over_reference = r.seconds / reference
        if libsvm:
            r.vs_libsvm = libsvm.seconds / r.seconds
            r.predict_vs_libsvm = libsvm.predict / r.predict
        if onedal:
            r.vs_onedal = onedal.seconds / r.seconds


# ----------------------------------------------------------------------------------------- showing


def line(r: Row) -> str:
    """Return all that is known about the fits of a solver."""
    values = {f.name: getattr(r, f.name) for f in fields(Row)[3:]}
    texts = [f"{name} {value:.8g}" if isinstance(value, float) else f"{name} {value}"
             for name, value in values.items() if value and value == value]  # fmt: skip
    return f"  {r.solver} {r.dtype}: {', '.join(texts)}"


def cells(name: str, rows: list[Row]) -> list[Any]:
    """Return the cells of a problem. Ratios to a fit that was stopped are lower bounds."""

    def seconds(solver: str) -> Any:
        r = chosen(rows, solver)
        if r is None:
            return None
        return f">{digits(r.seconds):g}" if r.exceeded else digits(r.seconds)

    ours = chosen(rows, "pairstep")
    ratios = [digits(getattr(ours, ratio)) if ours and ours.ok else None for ratio in RATIOS]
    own = seconds("pairstep") if ours else "failed"
    return [name, own, seconds("libsvm"), seconds("onedal"), *ratios]


def main() -> None:
    arguments = parser(__doc__, budget=60.0)
    arguments.add_argument("--small", action="store_true", help="time small fits instead")
    arguments.add_argument("--list", action="store_true", help="list the problems")
    options = arguments.parse_args()
    if options.list:
        print("\n".join(f"{p.name:24}{p.estimator:13}{p.params}" for p in PROBLEMS))
        return
    if options.small:
        from .svm_small import study

        study(options.out)
        return
    folder = data_folder()
    plot = "faster than LIBSVM by", "times faster than LIBSVM"
    tables = {
        "rbf": Table(options.out, "svm", "Support vector machines", COLUMNS, PACKAGES, plot),
        "other": Table(options.out, "svm-other", "Other SVMs", COLUMNS, PACKAGES, plot),
    }
    classes = Table(options.out, "svm-classes", "Many classes", [
        "set", "classes", "seconds", "LIBSVM, s", "faster than LIBSVM by"], PACKAGES)  # fmt: skip
    for p in PROBLEMS:
        if not named(p.name, options.only):
            continue
        data = p.data(folder, QUICK_ROWS if options.quick else None)
        count = len(np.unique(data.y)) if p.family == "rbf" else 0
        log(f"\n{p.name}: {p.estimator}, {data.X.shape[0]} x {data.X.shape[1]}, {p.params}")
        rows = measure(p, data, options)
        log("\n".join(map(line, rows)))
        shown = cells(p.name, rows)
        tables[p.family].add(*shown)
        if count > 2:
            classes.add(p.name, count, *shown[1:3], shown[4])
    for table in tables.values():
        for column in COLUMNS[4:]:
            table.summarize(column)
        average(table)
    classes.summarize("faster than LIBSVM by")


def average(table: Table) -> None:
    """Add a line with geometric means."""
    columns = list(zip(*table.content["rows"], strict=True))[4:]
    means = [digits(geometric_mean(known)) if (known := [x for x in column if x]) else None
             for column in columns]  # fmt: skip
    if any(means):
        table.add("geometric mean", None, None, None, *means)


if __name__ == "__main__":
    main()
