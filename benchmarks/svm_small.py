"""Small fits and predictions: SVC here against scikit-learn's, in one process, in microseconds.

`python -m benchmarks.svm --small` runs it. Each figure is the median of calls over a tenth of a
second, ours and theirs in turn; ratios are theirs over ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.svm

import pairstep.svm

SIZES = (2, 5, 10, 30, 60, 100, 300, 1000)
FEATURES = (4, 400)
SECONDS = 0.1


def samples(n: int, features: int, sparse: bool) -> tuple[Any, np.ndarray]:
    """Two classes that overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, features))
    X[:, 0] += y
    if sparse:
        X[rng.random(X.shape) < 0.5] = 0.0
    return (scipy.sparse.csr_array(X) if sparse else X), y


def microseconds(*calls: Callable[[], Any]) -> list[float]:
    """The median of each call, all of them in turn so that they share what disturbs them."""
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


def study() -> None:
    work: dict[str, Callable[[Any, Any, np.ndarray], Any]] = {
        "fit": lambda machine, X, y: machine.fit(X, y),
        "predict 1": lambda machine, X, y: machine.predict(X[[0]]),
        "predict n": lambda machine, X, y: machine.predict(X),
    }
    print(
        f"\n{'n':>6}{'features':>10} {'rows':7}"
        + "".join(f"{w:>11}{'theirs':>9}{'ratio':>7}" for w in work)
    )
    slower = []
    for n in SIZES:
        for features, kind in product(FEATURES, ("dense", "sparse")):
            X, y = samples(n, features, kind == "sparse")
            machines = pairstep.svm.SVC().fit(X, y), sklearn.svm.SVC().fit(X, y)
            line = f"{n:6}{features:10} {kind:7}"
            for name, do in work.items():
                ours, theirs = microseconds(*(partial(do, m, X, y) for m in machines))
                line += f"{ours:11.0f}{theirs:9.0f}{theirs / ours:7.2f}"
                if ours > theirs:
                    slower.append(f"{name} of {n} x {features} {kind}")
            print(line, flush=True)
    print("\nnever slower than scikit-learn: " + (", ".join(slower) or "met"))
