"""SVMs compared with scikit-learn (LIBSVM) and scikit-learn-intelex (oneDAL), equally exact.

    python -m benchmarks.svm [--only NAME...] [--skip NAME...] [--peers libsvm onedal]
                             [--budget 60] [--quick] [--small] [--out results/svm]

Every solver starts with tol = 1e-3. The KKT violation of its model is recomputed from the data in
float64. While it is above 1.5e-3, the solver runs again with a third of its tol. The first run
below it counts, and its tol is shown. Then all solvers must agree on the dual objective within
1e-4, or are tightened further; a solver that never agrees has failed.

Each fit runs in a separate process with 2 GB of cache and all threads. Seconds are the best of up
to five fits within five seconds, and the first fit is shown beside it. Memory is the peak of the
first fit minus the memory before it. oneDAL fits float32 and float64 rows, and the faster valid fit
counts; its iterations are not limited, because its default stops silently after 10,000. Ratios are
the seconds of the other solver over those of the row. The reference cost is one float32 product of
pairstep's support vectors with all rows and one exp of each entry (RBF kernel only).

All fits of a solver to a data set share a time budget. A fit that exceeds it is stopped and shown
with ">", and the ratio to it is a lower bound. With the default of 60 seconds, everything takes
about 35 minutes on two cores. `--out` is a folder for tables, a figure, and svm.json with the
command, the commit, the computer and all rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from .qp_problems import data_folder
from .svm_problems import PROBLEMS, Problem
from .svm_worker import in_process

TOL = 1e-3  # first tolerance of every solver
VIOLATION = 1.5e-3  # largest valid float64 violation
AGREEMENT = 1e-4  # largest relative difference of valid dual objectives
TIGHTEST = 1e-7  # smallest tolerance to try
QUICK_ROWS = 1500  # of each data set with --quick


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


def climb(row: Row, task: dict[str, Any], scratch: Path, tol: float = TOL) -> None:
    """Tighten the tolerance until the float64 violation is valid or the budget is spent."""
    best, stalls = np.inf, 0
    while tol >= TIGHTEST and stalls < 2:
        left = max(task["budget"] - row.spent, 1.0)
        report = in_process({**task, "tol": tol, "budget": left}, scratch)
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


def measure(problem: Problem, options: argparse.Namespace, scratch: Path) -> list[Row]:
    """Return one row per solver and dtype."""
    wanted = [("pairstep", "float64")]
    wanted += [("libsvm", "float64")] if "libsvm" in options.peers else []
    wanted += [("onedal", kind) for kind in ("float32", "float64") if "onedal" in options.peers]
    rows = [Row(problem.name, solver, dtype) for solver, dtype in wanted]

    def task(row: Row) -> dict[str, Any]:
        return {
            "data": str(scratch / "data"), "solver": row.solver, "estimator": problem.estimator,
            "params": problem.params, "dtype": row.dtype, "budget": options.budget,
            "reference": not any(r.reference > 0 for r in rows if r is not row), "predict": True,
        }  # fmt: skip

    for row in rows:
        climb(row, task(row), scratch)
    while behind := [r for r in rows if gap(r, rows) > AGREEMENT and r.tol / 3 >= TIGHTEST]:
        row = max(behind, key=lambda r: gap(r, rows))
        climb(row, task(row), scratch, row.tol / 3)
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

HEADINGS = ("solver", "seconds", "first", "tol", "violation", "objective", "SVs", "vs LIBSVM",
            "vs oneDAL", "x ref.", "MB", "predict s", "vs LIBSVM", "status")  # fmt: skip
WIDTHS = (17, 9, 9, 8, 10, 16, 7, 10, 10, 8, 7, 10, 10, 0)


def number(value: float, form: str) -> str:
    return "" if value is None or np.isnan(value) else format(value, form)


def cells(r: Row, rows: list[Row]) -> list[str]:
    """Return the cells of a table row; ratios to a fit that was stopped are lower bounds."""

    def ratio(value: float, solver: str) -> str:
        peer = chosen(rows, solver)
        sign = ">" if peer and peer.exceeded and not np.isnan(value) else ""
        return sign + number(value, ".2f" if value < 10 else ".0f")

    name = r.solver + (" " + r.dtype if r.solver == "onedal" else "")
    differs = r.first > 1.1 * r.seconds
    seconds = number(r.seconds, ".4g")
    return [
        name, ">" + seconds if r.exceeded else seconds, number(r.first, ".4g") if differs else "",
        number(r.tol, ".0e"), number(r.violation, ".1e"), number(r.objective, ".8g"),
        str(r.support or ""), ratio(r.vs_libsvm, "libsvm"), ratio(r.vs_onedal, "onedal"),
        number(r.over_reference, ".1f"), number(r.memory, ".0f"), number(r.predict, ".4g"),
        number(r.predict_vs_libsvm, ".1f"), r.status + (f" ({r.note})" if r.note else ""),
    ]  # fmt: skip


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title}\n")
    for line in [HEADINGS, *(cells(r, rows) for r in rows)]:
        first, *middle = zip(line[:-1], WIDTHS[:-1], strict=True)
        text = f"{first[0]:{first[1]}}" + "".join(f"{c:>{w}}" for c, w in middle)
        print(f"  {text}  {line[-1]}".rstrip(), flush=True)


def run_by() -> dict[str, str]:
    """Return the command, the commit and the computer of this run."""
    home = Path(__file__).parents[1]
    git = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    described = subprocess.run(git, cwd=home, capture_output=True, text=True, check=False)
    cpu = Path("/proc/cpuinfo")
    models = [k for k in cpu.read_text().splitlines() if "model name" in k] if cpu.exists() else []
    model = models[0].partition(": ")[2] if models else platform.processor()
    return {
        "command": " ".join(["python -m benchmarks.svm", *sys.argv[1:]]),
        "commit": described.stdout.strip() or "unknown",
        "machine": f"{model}, {os.cpu_count()} cores, {platform.system()}",
    }


def save(out: Path, table: dict[str, list[Row]]) -> None:
    rows = [asdict(r) for rows in table.values() for r in rows]
    known = [{k: None if v != v else v for k, v in row.items()} for row in rows]
    (out / "svm.json").write_text(json.dumps({**run_by(), "rows": known}, indent=1))
    with open(out / "svm.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)])
        writer.writeheader()
        writer.writerows(rows)
    lines = []
    for title, rows in table.items():
        lines += ["", f"**{title}**", "", "| " + " | ".join(HEADINGS) + " |",
                  "| " + " | ".join(["---"] * len(HEADINGS)) + " |"]  # fmt: skip
        lines += ["| " + " | ".join(cells(r, rows)) + " |" for r in rows]
    (out / "svm.md").write_text("\n".join(lines[1:]) + "\n")


def plot(out: Path, table: dict[str, list[Row]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    solvers = {"libsvm": "C0", "onedal": "C1", "pairstep": "black"}
    figure, panels = plt.subplots(
        2, 1, figsize=(0.55 * len(table) + 4, 8), sharex=True, layout="constrained"
    )
    groups = list(table.values())
    places = np.arange(len(groups))
    for axes, field in zip(panels, ("seconds", "predict"), strict=True):
        for k, (solver, color) in enumerate(solvers.items()):
            best = [chosen(rows, solver) for rows in groups]
            heights = [np.nan if r is None else getattr(r, field) for r in best]
            bars = axes.bar(places + 0.27 * (k - 1), heights, 0.25, color=color, label=solver)
            for bar, r in zip(bars, best, strict=True):
                if r is not None and r.exceeded:
                    bar.set(hatch="//", alpha=0.5)
        axes.set_yscale("log")
    costs = [next((r.reference for r in rows if r.reference > 0), np.nan) for rows in groups]
    panels[0].plot(places, costs, "_", color="red", markersize=14, label="reference cost")
    panels[0].set(ylabel="fit, seconds (hatched: stopped at the budget)",
                  title="fits with a float64 violation of at most 1.5e-3")  # fmt: skip
    panels[1].set(ylabel="predict, seconds")
    panels[1].set_xticks(places, [rows[0].problem for rows in groups], rotation=60, ha="right")
    panels[0].legend()
    for kind in ("png", "svg"):
        figure.savefig(out / f"svm.{kind}", dpi=150)
    plt.close(figure)


# ----------------------------------------------------------------------------------------- summary


def line(what: str, values: list[tuple[float, str]], larger_is_better: bool = True) -> None:
    values = [v for v in values if not np.isnan(v[0])]
    if not values:
        print(f"  {what}: nothing to compare")
        return
    mean = float(np.exp(np.mean([np.log(v) for v, _ in values])))
    worst = ", ".join(
        f"{v:.2f} {name}" for v, name in sorted(values, reverse=not larger_is_better)[:3]
    )
    print(f"  {what}: {mean:.2f} in geometric mean of {len(values)}, worst: {worst}")


def summarize(table: dict[str, list[Row]], families: dict[str, str]) -> None:
    ended = sum(r.exceeded for rows in table.values() for r in rows)
    print(f"\nSummary ({ended} fits were stopped at the budget; ratios to them are lower bounds)\n")
    mine = {rows[0].problem: chosen(rows, "pairstep") for rows in table.values()}
    valid = [r for r in mine.values() if r is not None and r.ok]
    for name in ("rbf", "other"):
        part = [r for r in valid if families[r.problem] == name]
        if not part:
            continue
        print(f"  {name} fits")
        line("  faster than LIBSVM", [(r.vs_libsvm, r.problem) for r in part])
        line("  faster than oneDAL", [(r.vs_onedal, r.problem) for r in part])
        line("  times the reference cost", [(r.over_reference, r.problem) for r in part], False)
        line("  predicts faster than LIBSVM", [(r.predict_vs_libsvm, r.problem) for r in part])
        slower = [r.problem for r in part if r.vs_libsvm < 1 or r.vs_onedal < 1]
        print(f"    slower than either: {', '.join(slower) or 'nowhere'}")
    lost = [name for name, r in mine.items() if r is None or not r.ok]
    print("  pairstep was not valid: " + (", ".join(lost) or "nowhere"))
    invalid = [f"{r.solver} {r.dtype} on {r.problem}: {r.status}" for rows in table.values()
              for r in rows if r.solver != "pairstep" and not r.ok]  # fmt: skip
    print(
        "  other solvers that were not valid:" + "".join(f"\n    {a}" for a in invalid or ["none"])
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="part of a name")
    parser.add_argument("--skip", nargs="+", default=[], metavar="NAME", help="part of a name")
    parser.add_argument("--peers", nargs="*", default=["libsvm", "onedal"],
                        choices=["libsvm", "onedal"])  # fmt: skip
    parser.add_argument("--budget", type=float, default=60.0,
                        help="seconds for all fits of a solver to one data set")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows of each data set")
    parser.add_argument("--small", action="store_true", help="time small fits instead")
    parser.add_argument("--list", action="store_true", help="list the problems")
    parser.add_argument("--out", type=Path, default=Path("results/svm"))
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.list:
        print("\n".join(f"{p.name:24}{p.estimator:13}{p.params}" for p in PROBLEMS))
        return
    if options.small:
        from .svm_small import study as study_small

        study_small()
        return
    folder = data_folder()
    if folder is None:
        print("set PAIRSTEP_DATA to the folder with the data sets")
        return
    options.out.mkdir(parents=True, exist_ok=True)
    largest = QUICK_ROWS if options.quick else None
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, threads: {threads}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        table: dict[str, list[Row]] = {}
        for p in PROBLEMS:
            if options.only and not any(part in p.name for part in options.only):
                continue
            if any(part in p.name for part in options.skip):
                continue
            data = p.data(folder, largest)
            joblib.dump(data, scratch / "data")
            n, d = data.X.shape
            del data
            settings = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                                 for k, v in p.params.items())  # fmt: skip
            title = f"{p.name}: {p.estimator}, {n} x {d}, {settings}"
            table[title] = measure(p, options, scratch)
            show(title, table[title])
            save(options.out, table)
    if table:
        plot(options.out, table)
        summarize(table, {p.name: p.family for p in PROBLEMS})


if __name__ == "__main__":
    main()
