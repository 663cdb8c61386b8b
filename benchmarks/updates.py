"""Updates: the time to add or remove one sample, as a fraction of the time of a fit.

    PAIRSTEP_DATA=... python -m benchmarks.updates [--only phishing] [--rows 10000] [--updates 200]

A model is fitted to some rows. Then single samples are added and removed in turn, at random. The
model must end at the objective of a fit to the same samples. All times are of one run. "Repaired"
is the fraction of updates that changed the solution; the others leave it as it is.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_regressor

from pairstep import svm

from .svm_problems import PROBLEMS

NAMES = ["phishing", "cod-rna", "ijcnn1", "skin-30k", "a9a-C1", "covtype-20k", "svr-california"]
SPARE = 500  # rows to add that are not in the first fit


def objective(model, y: np.ndarray) -> float:
    """Return the dual objective of a fitted SVC or SVR, from its coefficients."""
    z = model.dual_coef_.ravel()
    outputs = model.predict if is_regressor(model) else model.decision_function
    quadratic = z @ (outputs(model.support_vectors_) - model.intercept_) / 2
    if hasattr(model, "classes_"):
        return quadratic - np.abs(z).sum()
    return quadratic - y[model.support_] @ z + model.epsilon * np.abs(z).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--fits", type=int, default=5, help="fits whose median counts")
    options = parser.parse_args()
    folder = Path(os.environ["PAIRSTEP_DATA"])
    problems = {problem.name: problem for problem in PROBLEMS}
    columns = [
        "set", "rows", "support vectors", "fit, s", "median, ms", "of a fit", "mean of a fit",
        "95% below", "repaired", "first update of a fit", "objective differs by",
    ]  # fmt: skip
    print("| " + " | ".join(columns) + " |")
    print("| " + "--- | " * len(columns))
    for name in options.only:
        problem = problems[name]
        data = problem.data(folder, options.rows + SPARE)
        order = np.random.default_rng(0).permutation(len(data.X))
        X, y = np.ascontiguousarray(data.X[order]), data.y[order]
        n = min(options.rows, len(X) - SPARE)
        model = getattr(svm, problem.estimator)(n_jobs=-1, **problem.params)
        times = []
        for _ in range(options.fits):
            began = time.perf_counter()
            model.fit(X[:n], y[:n])
            times.append(time.perf_counter() - began)
        fit = float(np.median(times))
        began = time.perf_counter()
        model.update(remove=[0])
        first = time.perf_counter() - began
        rows, rng, times, repaired = np.arange(1, n), np.random.default_rng(1), [], []
        for k in range(options.updates):
            began = time.perf_counter()
            if k % 2 == 0:
                new = n + k // 2 % (len(X) - n)
                model.update(X[[new]], y[[new]])
                rows = np.append(rows, new)
            else:
                gone = int(rng.integers(len(rows)))
                model.update(remove=[gone])
                rows = np.delete(rows, gone)
            times.append(time.perf_counter() - began)
            repaired.append(np.max(model.n_iter_) > 1)
        fresh = clone(model).fit(X[rows], y[rows])
        ours, theirs = objective(model, y[rows]), objective(fresh, y[rows])
        allowed = sum(float(one.optimality_.duality_gap.sum()) for one in (model, fresh))
        assert abs(ours - theirs) <= allowed + 1e-9 * abs(theirs), (
            f"{name}: the objectives {ours:.10g} and {theirs:.10g} differ by more than the gaps"
        )
        spent = np.array(times) / fit
        share = len(model.support_) / len(rows)
        cells = [
            name, f"{n}", f"{share:.0%}", f"{fit:.3f}", f"{1e3 * np.median(times):.1f}",
            f"{np.median(spent):.1%}", f"{spent.mean():.1%}",
            f"{np.quantile(spent, 0.95):.1%}", f"{np.mean(repaired):.0%}", f"{first / fit:.1%}",
            f"{abs(ours - theirs) / abs(theirs):.0e}",
        ]  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
