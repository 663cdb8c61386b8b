"""Small fits and predictions of SVC, compared with scikit-learn's in one process.

Table "svm-small"; run it with `python -m benchmarks.svm --small`. Times are medians in
microseconds; calls of both libraries alternate. Ratios are scikit-learn's time over ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.svm
from sklearn.metrics.pairwise import rbf_kernel

import pairstep.svm

from .harness import Table, digits, log

FITTED, FEATURES = (2, 5, 10, 30, 60, 100, 300, 1000), (4, 400)
CLASSES, OF_CLASSES = 10, (20, 60, 150, 300, 1000)
PREDICTED_BY, PREDICTED_FEATURES = (2, 10, 60, 300, 1000, 5000), (2, 20, 400)
ROWS = (1, 2, 10, 100)
SECONDS = 0.06  # per call and library


def samples(n: int, features: int, kind: str) -> tuple[Any, np.ndarray]:
    """Draw two or ten overlapping classes, as the kind of input of this name."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % (CLASSES if kind.startswith("ten") else 2)
    X = rng.standard_normal((n, features))
    X[:, 0] += y
    if kind.endswith("matrix"):
        return rbf_kernel(X), y
    if kind == "sparse":
        X[rng.random(X.shape) < 0.5] = 0.0
        return scipy.sparse.csr_array(X), y
    return X.tolist() if kind == "lists" else X, y


def microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Return the median of each call. The calls alternate, so that they see the same load."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS * len(calls) or len(times[0]) < 3:
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [1e6 * float(np.median(own)) for own in times]


Work = Callable[[Any, np.ndarray], Callable[[Any], Any]]  # takes the data, then a model


def fit(X: Any, y: np.ndarray) -> Callable[[Any], Any]:
    return lambda model: model.fit(X, y)


def predict(count: int, X: Any, y: np.ndarray) -> Callable[[Any], Any]:
    rows = X[np.arange(count) % X.shape[0]]
    return lambda model: model.predict(rows)


def compare(table: Table, sizes: tuple[int, ...], widths: tuple[int, ...],
            kinds: tuple[str, ...], work: dict[str, Work]) -> None:  # fmt: skip
    """Add a line for each case."""
    for n, features, kind in product(sizes, widths, kinds):
        X, y = samples(n, features, kind)
        kernel = "precomputed" if kind.endswith("matrix") else "rbf"
        models = [module.SVC(kernel=kernel).fit(X, y) for module in (pairstep.svm, sklearn.svm)]
        for name, do in work.items():
            ours, theirs = microseconds(*(partial(do(X, y), model) for model in models))
            table.add(f"{name} of {n} x {features} {kind}", digits(ours), digits(theirs),
                      digits(theirs / ours))  # fmt: skip


def study(out: Path) -> None:
    table = Table(out, "svm-small", "Small fits and predictions", [
        "call", "us", "scikit-learn, us", "faster by"], ["scikit-learn"])  # fmt: skip
    compare(table, FITTED, FEATURES, ("dense", "sparse", "lists", "matrix"), {"fit": fit})
    compare(table, OF_CLASSES, FEATURES, ("ten dense", "ten matrix"),
            {"fit": fit, "predict 100": partial(predict, 100)})  # fmt: skip
    compare(table, PREDICTED_BY, PREDICTED_FEATURES, ("dense", "sparse"),
            {f"predict {count}": partial(predict, count) for count in ROWS})  # fmt: skip
    table.summarize("faster by")
    slower = [f"{row[0]} ({row[3]:g})" for row in table.content["rows"] if row[3] < 1]
    log("slower than scikit-learn: " + (", ".join(slower) or "nowhere"))
