"""The regularization path of an SVM: its solutions for one kernel and many C."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._validation import Array, vector
from ..extras import needed
from .base import BaseSVM
from .classification import SVC
from .duals import continue_from
from .engine import Dual, Duals, Solution, Solutions
from .parameters import validate_parameters
from .plan import FitPlan
from .shared_kernel import SharedKernels, start_scaled

MAX_LINES = 50  # coefficients that are plotted, one line each; more would be unreadable


@dataclass(frozen=True)
class RegularizationPath:
    """The solutions for several values of C or nu. Entry k belongs to the k-th value.

    Attributes
    ----------
    parameter : str
        The parameter that varies: "C" or "nu".
    values : ndarray of shape (count,)
        Its values.
    coefficients : ndarray of shape (count, n_models, n_samples)
        The coefficient of each sample in each binary model. A classifier has one binary model per
        pair of classes, whose coefficients are positive for samples of the first class. Regression
        and novelty detection have a single model.
    intercept : ndarray of shape (count, n_models)
        Constants of the decision functions, as in `intercept_`: with two classes, the decision
        function is the intercept minus the sum of coefficients times kernels.
    n_support : ndarray of shape (count,)
        The number of support vectors.
    objective : ndarray of shape (count,)
        The minimum of the dual, summed over all binary models.
    kkt_violation : ndarray of shape (count,)
        The largest KKT violation of these models.
    """

    parameter: str
    values: Array
    coefficients: Array
    intercept: Array
    n_support: Array
    objective: Array
    kkt_violation: Array

    def plot(self) -> list[Any]:
        """Plot coefficients and the number of support vectors along the path.

        Returns
        -------
        list of matplotlib.axes.Axes
            The two plots. matplotlib is in the extra ``pairstep[plots]``.
        """
        pyplot = needed("matplotlib.pyplot", by="plot")
        figure = pyplot.figure(layout="constrained")
        left, right = figure.subplots(1, 2)
        lines = self.coefficients.reshape(len(self.values), -1)
        largest = np.argsort(-np.abs(lines).max(axis=0), kind="stable")[:MAX_LINES]
        left.semilogx(self.values, lines[:, largest])
        left.set(xlabel=self.parameter, title=f"the {len(largest)} largest coefficients")
        right.semilogx(self.values, self.n_support, marker="o")
        right.set(xlabel=self.parameter, title="support vectors")
        return [left, right]


def path(
    X: Any,
    y: Any,
    Cs: ArrayLike,
    *,
    model: BaseSVM | None = None,
    sample_weight: ArrayLike | None = None,
) -> RegularizationPath:
    """Fit a model for several values of C, each starting from the solution for the one before.

    The kernel matrix is computed once if it fits into three quarters of the model's `cache_size`.

    Parameters
    ----------
    X : array_like or sparse array of shape (n_samples, n_features)
        Training samples, as in `fit`.
    y : array_like of shape (n_samples,), or None
        Class labels, numbers, or None for `OneClassSVM`.
    Cs : array_like of shape (count,)
        The values of C, or of nu for models without C. They are solved in this order, and ascending
        values are faster.
    model : estimator, optional
        The estimator whose parameters are used, `SVC()` by default. It is not changed.
    sample_weight : array_like of shape (n_samples,), optional
        Factors of C, one per sample.

    Returns
    -------
    RegularizationPath
        Coefficients, intercepts, numbers of support vectors and objectives.

    Examples
    --------
    >>> from pairstep import svm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> found = svm.path(X, y, [0.1, 1.0, 10.0], model=svm.SVC(kernel="linear"))
    >>> found.n_support.tolist()
    [4, 4, 4]
    >>> found.objective.round(3).tolist()
    [-0.38, -2.889, -26.889]
    """
    whole = clone(SVC() if model is None else model)
    parameter = "C" if "C" in whole.get_params() else "nu"
    values = vector("Cs", Cs)
    for value in values.tolist():  # all of them before the first fit
        validate_parameters(whole.set_params(**{parameter: value}))
    plan = FitPlan.of(whole)
    plan.read(X, y, sample_weight)
    plan.prepare_kernel()
    n, kernel, threads = plan.n, plan.kernel, plan.threads(plan.matrix_work())
    order = np.argsort(plan.targets, kind="stable")
    seconds = plan.time_limit()
    kernels = SharedKernels(plan.matrix, kernel.name, 1, order, plan.cache_bytes(), whole.dtype)
    shared = kernels.of(kernel, threads, seconds=seconds)
    coefficients, intercepts, counts, objectives, violations = [], [], [], [], []
    failed: list[Solution] = []
    last: tuple[Duals, Solutions] | None = None
    for k, value in enumerate(values.tolist()):
        plan = plan.with_parameters({parameter: value}, kernel.gamma)
        duals = plan.duals()
        if last is not None and parameter == "C":
            duals = start_scaled(last[1].z, last[1].gradient, duals, value / values[k - 1])
        elif last is not None:
            for earlier, dual in zip(replace(last[0], z=last[1].z), duals, strict=True):
                continue_from(earlier, dual)
        solutions = shared.solve(
            np.arange(n), duals,
            tol=whole.tol, max_iter=plan.max_iterations(), time_limit=seconds,
            cold=last is None and whole.max_iter == -1, threads=threads,
        )  # fmt: skip
        last = duals, solutions
        plan.conclude(duals, solutions)
        failed += plan.report(solutions)
        z = np.zeros((len(duals), n))
        for row, dual, solution in zip(z, duals, solutions, strict=True):
            np.add.at(row, dual.rows, solution.z)
        coefficients.append(z / plan.scale(solutions)[:, None])
        intercepts.append(plan.intercept)
        counts.append(len(plan.support))
        objectives.append(sum(map(_objective, duals, solutions)))
        violations.append(solutions.kkt_violation.max())
    if failed:
        warnings.warn(plan.warning(failed), ConvergenceWarning, stacklevel=2)
    return RegularizationPath(
        parameter, values, np.array(coefficients), np.array(intercepts), np.array(counts),
        np.array(objectives), np.array(violations),
    )  # fmt: skip


def _objective(dual: Dual, solution: Solution) -> float:
    z = solution.z
    l1_terms = 0.0 if dual.l1 is None else float(dual.l1 @ np.abs(z))
    return float(z @ (solution.gradient + dual.linear)) / 2 + l1_terms
