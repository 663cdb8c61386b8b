"""Write the table of README.md from docs/benchmarks/: python docs/record.py.

A benchmark publishes its tables with `--out docs/benchmarks`. The site reads them when it is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def main() -> None:
    """Update the README."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    readme.write_text(
        before + MARKS[0] + figures() + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8"
    )


if __name__ == "__main__":
    main()
