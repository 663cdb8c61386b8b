"""Leave-one-out: `leave_one_out` compared with the time of a fit and with refits.

    PAIRSTEP_DATA=... python -m benchmarks.loo [--only phishing usps] [--rows 5000] [--refits 20]

Table "loo". Each model is fitted to a subset of the rows. Before the time counts, decisions are
compared with those of refits without one sample, for some support vectors. Fits and leave-one-out
are repeated and their medians count; all times are of one run. "All refits" is the time of n
refits, from those that were made.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import clone, is_regressor

from pairstep import svm
from pairstep.svm import leave_one_out

from .harness import Table, data_folder, digits, named, parser, times_of
from .svm_problems import PROBLEMS

NAMES = [
    "phishing", "cod-rna", "ijcnn1", "skin-30k", "a9a-C1", "covtype-20k", "usps", "svr-cpu_small",
]  # fmt: skip
TOL = 1e-3
# Largest difference of decisions: two solutions within the tolerance may differ by a few times
# that.
MAX_DIFFERENCE = 10 * TOL


def compared(model, X, y, found, count: int) -> tuple[float, float]:
    """Return the largest difference from refits without a support vector, and seconds per refit."""
    some = np.random.default_rng(0).permutation(model.support_)[:count]
    differences, seconds = [], []
    decisions = found.decisions
    for i in some:
        other = clone(model)
        rest = np.arange(len(X)) != i
        seconds += times_of(partial(other.fit, X[rest], y[rest]), most=1)[0]
        decide = other.predict if is_regressor(other) else other.decision_function
        differences.append(np.abs(decide(X[[i]])[0] - decisions[i]).max())
    return max(differences), float(np.median(seconds))


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=5000)
    arguments.add_argument("--refits", type=int, default=20, help="support vectors to compare")
    arguments.add_argument("--fits", type=int, default=5, help="repetitions whose median counts")
    options = arguments.parse_args()
    table = Table(options.out, "loo", "Leave-one-out", [
        f"data, {options.rows} rows", "support vectors", "fit, s", "`leave_one_out`, s", "in fits",
        "all refits, s", "score", "largest difference"])  # fmt: skip
    for problem in PROBLEMS:
        if problem.name not in NAMES or not named(problem.name, options.only):
            continue
        data = problem.data(data_folder(), options.rows)
        X, y = np.ascontiguousarray(data.X), data.y
        parameters = {"tol": TOL, "n_jobs": -1, **problem.params}
        if problem.estimator == "SVC":
            parameters["decision_function_shape"] = "ovo"
        model = getattr(svm, problem.estimator)(**parameters)
        repeated = {"seconds": 0.0, "least": options.fits}
        fit = float(np.median(times_of(partial(model.fit, X, y), **repeated)[0]))
        found = leave_one_out(model, X, y)
        difference, refit = compared(model, X, y, found, options.refits)
        assert difference <= MAX_DIFFERENCE, f"{problem.name}: decisions differ by {difference:.1e}"
        seconds = float(np.median(times_of(partial(leave_one_out, model, X, y), **repeated)[0]))
        share = len(model.support_) / len(X)
        table.add(problem.name, f"{share:.0%}", digits(fit), digits(seconds),
                  digits(seconds / fit), digits(refit * len(X)), digits(found.score, 4),
                  digits(difference, 1))  # fmt: skip


if __name__ == "__main__":
    main()
