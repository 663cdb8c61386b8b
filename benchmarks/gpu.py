"""SVMs on an NVIDIA GPU, compared with the same fits on the CPU cores of its host.

    PAIRSTEP_DATA=... python -m benchmarks.gpu [--only PART...] [--cpu] [--subset ROWS]
    PAIRSTEP_DATA=... python -m benchmarks.gpu --search ROWS [--budget 120]

Tables "gpu" and "gpu-search". Data are float32. Seconds of a fit run from NumPy arrays to a fitted
model, transfers included. Each model is fitted twice, because the first fit may compile kernels,
which CuPy then caches on disk. The violation is the one that the model reports, recomputed in
float64 on the GPU. With `--cpu` the same fit runs on all CPU cores within the time budget; a ratio
with ">" is a lower bound. If both fits finish and the problem is small enough, violation and dual
objective of both are recomputed in float64 on the CPU. With `--subset` both scikit-learn and
pairstep fit that many rows. Predictions are for training rows, in float64 where float32 is off by
more than an eighth of tol. For d features and s support vectors, a row counts as 2 s d operations.

With `--search`, `SVCCV` searches 7 C and 5 gamma on that many rows of covtype, with 5 folds. Its
time is compared with that of one fit on the GPU at the best parameters.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

import pairstep.svm

from .harness import Table, data_folder, digits, log, named, parser, shown, times_of
from .svm_problems import Data, Problem, a9a, covtype, mnist, one_class, other, rbf, regression
from .svm_truth import Truth, examine

DEVICE = "cuda"
MAX_PREDICTED = 200_000  # rows
QUICK_ROWS = 2000  # of each data set with --quick
MAX_CHECKED = 10**10  # kernel values that are recomputed on the CPU


def synthetic(folder: Path, count: int) -> Data:
    """Draw points on a sphere in 50 dimensions, like epsilon; a noisy hyperplane separates them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 50), dtype=np.float32)
    X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    return Data(X, np.where(X[:, :10].sum(axis=1) + 0.2 * rng.standard_normal(count) > 0, 1, -1))


def odd_digits(folder: Path) -> Data:
    data = mnist(folder, 60_000)
    data.y = data.y % 2
    return data


COVTYPE_ROWS = 581_012
PROBLEMS = [
    rbf("covtype-100k", partial(covtype, count=100_000), 10, 1),
    rbf("covtype-200k", partial(covtype, count=200_000), 10, 1),
    rbf("covtype-581k", partial(covtype, count=COVTYPE_ROWS), 10, 1),
    rbf("mnist-odd", odd_digits, 10, 0.02),
    rbf("mnist-ten", partial(mnist, count=60_000), 10, 0.02),
    rbf("a9a-C1", a9a, 1, 1 / 123),
    rbf("a9a-C100", a9a, 100, 0.05),
    other("svr-california", "SVR", partial(regression, name="california"),
          C=10.0, epsilon=0.1, gamma=1 / 8),
    rbf("synthetic-1M", partial(synthetic, count=1_000_000), 1, 1),
    one_class("oneclass-581k", partial(covtype, count=COVTYPE_ROWS), 0.01),
]  # fmt: skip


def fit(problem: Problem, data: Data, library: Any, **options: Any) -> tuple[Any, float]:
    model = getattr(library, problem.estimator)(cache_size=4000, **problem.params, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (seconds,), _ = times_of(lambda: model.fit(data.X, data.y), most=1)
    return model, seconds


def decisions(model: Any, X: np.ndarray) -> np.ndarray:
    return getattr(model, "decision_function", model.predict)(X)


def truth(problem: Problem, data: Data, model: Any) -> Truth:
    params = {"kernel": "rbf", **problem.params}
    X, threads = data.X.astype(float), os.cpu_count() or 1
    return examine(problem.estimator, params, X, data.y, None, model, threads)


def measure(problem: Problem, data: Data, arguments: argparse.Namespace) -> dict[str, Any]:
    options = {"device": DEVICE, "time_limit": arguments.budget}
    _, first = fit(problem, data, pairstep.svm, **options)
    model, seconds = fit(problem, data, pairstep.svm, **options)
    some = data.X[:MAX_PREDICTED]
    (deciding,), found = times_of(lambda: decisions(model, some), most=1)
    operations = 2.0 * len(some) * len(model.support_) * data.X.shape[1]
    row = {
        "problem": problem.name, "rows": data.X.shape[0], "features": data.X.shape[1],
        "fit": seconds, "first": first, "status": "/".join(sorted(set(model.optimality_.status))),
        "violation": model.optimality_.kkt_violation.max(), "support": len(model.support_),
        "predict": deciding, "tflops": operations / deciding / 1e12,
    }  # fmt: skip
    if arguments.cpu:
        here, seconds = fit(problem, data, pairstep.svm, time_limit=arguments.budget)
        exceeded = ">" if here.fit_status_ else ""
        row |= {
            "cpu": seconds, "ratio": f"{exceeded}{seconds / row['fit']:.3g}",
            "differ": np.abs(decisions(here, some[:2000]) - found[:2000]).max(),
        }  # fmt: skip
        if not exceeded and data.X.shape[0] * len(model.support_) <= MAX_CHECKED:
            there, here = (truth(problem, data, fitted) for fitted in (model, here))
            apart = abs(there.objective - here.objective) / abs(here.objective)
            row |= {"true violation": there.violation, "objectives differ": apart}
    if arguments.subset:
        part = data.thinned(arguments.subset)
        _, theirs = fit(problem, part, sklearn.svm)
        _, ours = fit(problem, part, pairstep.svm, device=DEVICE)
        row |= {"scikit-learn": theirs, "ours": ours, "times": theirs / ours}
    return row


def measure_search(rows: int, budget: float) -> dict[str, Any]:
    data = covtype(data_folder(), rows)
    X, y = np.ascontiguousarray(data.X, np.float32), data.y
    options = {"device": DEVICE, "cache_size": 4000}
    pairstep.svm.SVC(**options).fit(X[:10_000], y[:10_000])  # compiles kernels
    search = pairstep.svm.SVCCV(
        Cs=np.geomspace(0.1, 100, 7), gammas=np.geomspace(0.1, 10, 5), random_state=0, refit=False,
        time_limit=budget, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (seconds,), _ = times_of(lambda: search.fit(X, y), most=1)
    best = pairstep.svm.SVC(**options, **search.best_params_)
    fits, _ = times_of(lambda: best.fit(X, y), 0.0, least=2)
    scores = search.cv_results_["mean_test_score"]
    return {
        "rows": rows, "search, s": seconds, "fit, s": fits[-1], "search / fit": seconds / fits[-1],
        "left out": int(np.isnan(scores).sum()), "best": str(search.best_params_),
        "score": search.best_score_,
    }  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, budget=120.0)
    arguments.add_argument("--cpu", action="store_true")
    arguments.add_argument("--subset", type=int, default=0)
    arguments.add_argument("--search", type=int, default=0)
    options = arguments.parse_args()
    if options.search:
        found = measure_search(options.search, options.budget)
        table = Table(options.out, "gpu-search", "A search on a GPU", list(found), ["cupy"])
        table.add(*(digits(x, 4) if isinstance(x, float) else x for x in found.values()))
        return
    cores = f"{os.cpu_count()} CPU cores"
    table = Table(options.out, "gpu", "SVMs on a GPU", [
        "data", "rows x features", "seconds", "violation", f"{cores}, s", f"faster than {cores} by",
        "faster than scikit-learn by"], ["cupy", "scikit-learn"])  # fmt: skip
    for problem in PROBLEMS:
        if not named(problem.name, options.only):
            continue
        data = problem.data(data_folder(), QUICK_ROWS if options.quick else None)
        data.X = np.ascontiguousarray(data.X, np.float32)
        row = measure(problem, data, options)
        log("  ".join(f"{name} {shown(value)}" for name, value in row.items()))
        table.add(
            problem.name, f"{row['rows']:,} x {row['features']}", digits(row["fit"]),
            digits(row["violation"]), digits(row.get("cpu")), row.get("ratio"),
            digits(row.get("times")),
        )  # fmt: skip


if __name__ == "__main__":
    main()
