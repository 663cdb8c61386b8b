"""Writes figures down where they are shown.

    python docs/record.py                        the README's, from docs/benchmarks/
    python docs/record.py results/svm/svm.json   first docs/benchmarks/svm.json, from a whole run

of `python -m benchmarks.svm`. The site draws its tables and plots from docs/benchmarks/ by itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "docs" / "benchmarks"
MARKS = "<!-- figures -->\n", "<!-- end figures -->"

# Work as the README calls it: the benchmark, the row there, and what to show of it.
Shown = Callable[[dict[str, Any]], tuple[str, str]]
FIGURES: dict[str, tuple[str, str, Shown]] = {
    "portfolio of 85 stocks (OR-Library)": (
        "qp",
        "OR-Library, port2",
        lambda row: (
            f"{row['`solve_qp`, ms']} ms",
            f"{row['best peer, ms'].replace(' (', ' ms (')}, the best of eight",
        ),
    ),
    "rbf machine, cod-rna, 30 000 rows": (
        "svm",
        "cod-rna",
        lambda row: (
            f"{row['seconds']} s",
            f"{row['LIBSVM, s']} s (LIBSVM), {row['oneDAL, s']} s (oneDAL)",
        ),
    ),
    "a grid of 35 candidates in 5 folds, usps": (
        "tuning",
        "usps",
        lambda row: (
            f"{row['`SVCCV`, `SVRCV`, s']} s",
            f"{row['GridSearchCV(scikit-learn), s']} s (GridSearchCV over scikit-learn)",
        ),
    ),
    "9025 pixels unmixed, each": (
        "batch",
        "Samson, 3 materials",
        lambda row: (
            row["`simplex_lstsq`, each"],
            f"{row['times cvxopt, one by one']} times that (a programme of cvxopt for each)",
        ),
    ),
}


def figures() -> str:
    """The README's table."""
    lines = ["| work | pairstep | peers |", "| --- | ---: | --- |"]
    for work, (name, first, shown) in FIGURES.items():
        benchmark = json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))
        (cells,) = (row for row in benchmark["rows"] if row[0] == first)
        ours, peers = shown(dict(zip(benchmark["columns"], cells, strict=True)))
        lines.append(f"| {work} | {ours} | {peers} |")
    return "\n".join(lines) + "\n"


def machines(run: dict[str, Any]) -> dict[str, Any]:
    """The site's table of support vector machines, from a run of `benchmarks.svm`."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.svm import Row, chosen
    from benchmarks.svm_problems import PROBLEMS

    def digits(number: float | None) -> float | None:
        return None if number is None or np.isnan(number) else float(f"{number:.3g}")

    def seconds(row: Row | None) -> float | str | None:
        if row is None:
            return None
        return f">{digits(row.seconds):g}" if row.exceeded else digits(row.seconds)

    def known(raw: dict[str, Any]) -> Row:
        return Row(**{key: np.nan if value is None else value for key, value in raw.items()})

    rows, ratios = [], []
    for problem in (p.name for p in PROBLEMS if p.family == "rbf"):
        fits = [known(raw) for raw in run["rows"] if raw["problem"] == problem]
        ours = chosen(fits, "pairstep")
        if ours is None or not ours.ok:
            continue
        ratios.append([ours.vs_libsvm, ours.vs_onedal, ours.over_floor, ours.predict_vs_libsvm])
        peers = [seconds(chosen(fits, solver)) for solver in ("libsvm", "onedal")]
        rows.append([problem, digits(ours.seconds), *peers, *map(digits, ratios[-1])])
    columns = [[x for x in column if not np.isnan(x)] for column in zip(*ratios, strict=True)]
    means = [digits(geometric_mean(column)) if column else None for column in columns]
    rows.append(["geometric mean", None, None, None, *means])
    shown = json.loads((BENCHMARKS / "svm.json").read_text(encoding="utf-8"))
    return {
        **{key: shown[key] for key in ("title", "plot", "columns")},
        **{key: run[key] for key in ("command", "machine")},
        "commit": run["commit"].removesuffix("-dirty")[:7],
        "date": date.today().isoformat(),
        "rows": rows,
    }


def main(runs: list[str]) -> None:
    """Write down a run, if there is one, and the README's figures."""
    for run in runs:
        table = machines(json.loads(Path(run).read_text(encoding="utf-8")))
        (BENCHMARKS / "svm.json").write_text(
            json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    readme.write_text(
        before + MARKS[0] + figures() + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
