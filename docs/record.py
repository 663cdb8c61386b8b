"""Update published benchmark results.

    python docs/record.py                        update the table in README.md from docs/benchmarks/
    python docs/record.py results/svm/svm.json   first update docs/benchmarks/svm.json from this run

The second form takes the output of a full run of `python -m benchmarks.svm`. The site reads
docs/benchmarks/ when it is built.
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

# Task as named in the README: the benchmark, its row, and a function that formats it.
Format = Callable[[dict[str, Any]], tuple[str, str]]
FIGURES: dict[str, tuple[str, str, Format]] = {
    "portfolio of 85 stocks (OR-Library)": (
        "qp",
        "OR-Library, port2",
        lambda row: (
            f"{row['`solve_qp`, ms']} ms",
            f"{row['best peer, ms'].replace(' (', ' ms (')[:-1]}, the fastest of eight solvers)",
        ),
    ),
    "RBF SVC, cod-rna, 30,000 rows": (
        "svm",
        "cod-rna",
        lambda row: (
            f"{row['seconds']} s",
            f"{row['LIBSVM, s']} s (LIBSVM), {row['oneDAL, s']} s (oneDAL)",
        ),
    ),
    "grid search, 35 candidates in 5 folds, usps": (
        "tuning",
        "usps",
        lambda row: (
            f"{row['`SVCCV`, `SVRCV`, s']} s",
            f"{row['GridSearchCV(scikit-learn), s']} s (GridSearchCV with scikit-learn)",
        ),
    ),
    "unmixing of 9025 pixels, per pixel": (
        "batch",
        "Samson, 3 materials",
        lambda row: (
            row["`simplex_lstsq`, each"],
            f"{row['faster than cvxopt by']} times as long (one cvxopt QP per pixel)",
        ),
    ),
}


def figures() -> str:
    """Return the README's table."""
    lines = ["| task | pairstep | others |", "| --- | ---: | --- |"]
    for task, (name, label, formatted) in FIGURES.items():
        benchmark = json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))
        (cells,) = (row for row in benchmark["rows"] if row[0] == label)
        ours, peers = formatted(dict(zip(benchmark["columns"], cells, strict=True)))
        lines.append(f"| {task} | {ours} | {peers} |")
    return "\n".join(lines) + "\n"


def svm_table(run: dict[str, Any]) -> dict[str, Any]:
    """Return the site's table of SVMs, from a run of `benchmarks.svm`."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.svm import Row, chosen
    from benchmarks.svm_problems import PROBLEMS

    def digits(number: float | None) -> float | None:
        return None if number is None or np.isnan(number) else float(f"{number:.3g}")

    def seconds(row: Row | None) -> float | str | None:
        if row is None:
            return None
        return f">{digits(row.seconds):g}" if row.exceeded else digits(row.seconds)

    def parsed(raw: dict[str, Any]) -> Row:
        return Row(**{key: np.nan if value is None else value for key, value in raw.items()})

    rows, ratios = [], []
    for problem in (p.name for p in PROBLEMS if p.family == "rbf"):
        fits = [parsed(raw) for raw in run["rows"] if raw["problem"] == problem]
        ours = chosen(fits, "pairstep")
        if ours is None or not ours.ok:
            continue
        ratios.append([ours.vs_libsvm, ours.vs_onedal, ours.over_reference, ours.predict_vs_libsvm])
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
    """Update the table of a run, if one is given, and the README."""
    for run in runs:
        table = svm_table(json.loads(Path(run).read_text(encoding="utf-8")))
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
