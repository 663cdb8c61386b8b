"""Leave-one-out: `leave_one_out` compared with the time of a fit and with refits.

    PAIRSTEP_DATA=... python -m benchmarks.loo [--only phishing usps] [--rows 5000] [--refits 20]

Each model is fitted to a subset of the rows. Before the time counts, decisions are compared with
those of refits without one sample, for some support vectors. Fits and leave-one-out are repeated
and their medians count; all times are of one run. "All refits" is the time of n refits, from those
that were made.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_regressor

from pairstep import svm
from pairstep.svm import leave_one_out

from .svm_problems import PROBLEMS

NAMES = [
    "phishing", "cod-rna", "ijcnn1", "skin-30k", "a9a-C1", "covtype-20k", "usps", "svr-cpu_small",
]  # fmt: skip
TOL = 1e-3
# Largest difference of decisions: two solutions within the tolerance may differ by a few times
# that.
MAX_DIFFERENCE = 10 * TOL


def seconds_of(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compared(model, X, y, found, count: int) -> tuple[float, float]:
    """Return the largest difference from refits without a support vector, and seconds per refit."""
    some = np.random.default_rng(0).permutation(model.support_)[:count]
    differences, seconds = [], []
    decisions = found.decisions
    for i in some:
        other = clone(model)
        rest = np.arange(len(X)) != i
        seconds.append(seconds_of(partial(other.fit, X[rest], y[rest])))
        decide = other.predict if is_regressor(other) else other.decision_function
        differences.append(np.abs(decide(X[[i]])[0] - decisions[i]).max())
    return max(differences), float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--refits", type=int, default=20, help="support vectors to compare")
    parser.add_argument("--fits", type=int, default=5, help="repetitions whose median counts")
    options = parser.parse_args()
    folder = Path(os.environ["PAIRSTEP_DATA"])
    problems = {problem.name: problem for problem in PROBLEMS}
    columns = ["set", "rows", "support vectors", "fit, s", "leave-one-out, s", "in fits",
               "all refits, s", "score", "largest difference"]  # fmt: skip
    print("| " + " | ".join(columns) + " |")
    print("| " + "--- | " * len(columns))
    for name in options.only:
        problem = problems[name]
        data = problem.data(folder, options.rows)
        X, y = np.ascontiguousarray(data.X), data.y
        parameters = {"tol": TOL, "n_jobs": -1, **problem.params}
        if problem.estimator == "SVC":
            parameters["decision_function_shape"] = "ovo"
        model = getattr(svm, problem.estimator)(**parameters)
        times = [seconds_of(partial(model.fit, X, y)) for _ in range(options.fits)]
        fit = float(np.median(times))
        found = leave_one_out(model, X, y)
        difference, refit = compared(model, X, y, found, options.refits)
        assert difference <= MAX_DIFFERENCE, f"{name}: decisions differ by {difference:.1e}"
        work = partial(leave_one_out, model, X, y)
        seconds = float(np.median([seconds_of(work) for _ in range(options.fits)]))
        share = len(model.support_) / len(X)
        cells = [name, f"{len(X)}", f"{share:.0%}", f"{fit:.3f}", f"{seconds:.2f}",
                 f"{seconds / fit:.1f}", f"{refit * len(X):.0f}", f"{found.score:.4f}",
                 f"{difference:.0e}"]  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
