"""Updates: the time to add or remove one sample, as a fraction of the time of a fit.

    PAIRSTEP_DATA=... python -m benchmarks.updates [--only phishing] [--rows 10000] [--updates 200]

Table "updates". A model is fitted to some rows. Then single samples are added and removed in turn,
at random. The model must end at the objective of a fit to the same samples. All times are of one
run. The last column but two is the fraction of updates that changed the solution.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import clone, is_regressor

from pairstep import svm

from .harness import Table, data_folder, digits, named, parser, times_of
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
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--updates", type=int, default=200)
    arguments.add_argument("--fits", type=int, default=5, help="fits whose median counts")
    options = arguments.parse_args()
    table = Table(options.out, "updates", "Updates by one sample", [
        f"data, {options.rows} rows", "support vectors", "fit, s", "median, ms", "of a fit",
        "mean of a fit", "95% below", "changed the solution", "first update of a fit",
        "objective differs by",
    ])  # fmt: skip
    for problem in PROBLEMS:
        if problem.name not in NAMES or not named(problem.name, options.only):
            continue
        data = problem.data(data_folder(), options.rows + SPARE)
        order = np.random.default_rng(0).permutation(len(data.X))
        X, y = np.ascontiguousarray(data.X[order]), data.y[order]
        n = min(options.rows, len(X) - SPARE)
        model = getattr(svm, problem.estimator)(n_jobs=-1, **problem.params)
        fits, _ = times_of(partial(model.fit, X[:n], y[:n]), 0.0, least=options.fits)
        fit = float(np.median(fits))
        (first,), _ = times_of(partial(model.update, remove=[0]), most=1)
        rows, rng, times, repaired = np.arange(1, n), np.random.default_rng(1), [], []
        for k in range(options.updates):
            if k % 2 == 0:
                new = n + k // 2 % (len(X) - n)
                update = partial(model.update, X[[new]], y[[new]])
                rows = np.append(rows, new)
            else:
                gone = int(rng.integers(len(rows)))
                update = partial(model.update, remove=[gone])
                rows = np.delete(rows, gone)
            times += times_of(update, most=1)[0]
            repaired.append(np.max(model.n_iter_) > 1)
        fresh = clone(model).fit(X[rows], y[rows])
        ours, theirs = objective(model, y[rows]), objective(fresh, y[rows])
        allowed = sum(float(one.optimality_.duality_gap.sum()) for one in (model, fresh))
        assert abs(ours - theirs) <= allowed + 1e-9 * abs(theirs), (
            f"{problem.name}: the objectives {ours:.10g} and {theirs:.10g} differ by more than the "
            "gaps"
        )
        spent = np.array(times) / fit
        share = len(model.support_) / len(rows)
        table.add(
            problem.name, f"{share:.0%}", digits(fit), digits(1e3 * float(np.median(times))),
            f"{np.median(spent):.1%}", f"{spent.mean():.1%}", f"{np.quantile(spent, 0.95):.1%}",
            f"{np.mean(repaired):.0%}", f"{first / fit:.1%}",
            digits(abs(ours - theirs) / abs(theirs), 1),
        )  # fmt: skip


if __name__ == "__main__":
    main()
