"""The regularisation path of a machine: its solutions for one kernel and many C."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from .._validation import Array, vector
from ..extras import needed
from .base import SupportVectorMachine, entries_of
from .classification import SVC
from .duals import continue_from
from .machine import Dual, Solution
from .shared_kernel import SharedKernels, continued

LINES = 50  # samples whose coefficients are drawn


@dataclass(frozen=True)
class RegularisationPath:
    """The solutions for several C, or nu; entry k belongs to the k-th of them.

    Attributes
    ----------
    parameter : str
        What is varied: "C" or "nu".
    values : ndarray of shape (count,)
        Its values.
    coefficients : ndarray of shape (count, n_machines, n_samples)
        The coefficient of each sample in each binary machine: of the pairs of classes in their
        order, positive for samples of the first class; of regression and novelty detection there is
        one.
    intercept : ndarray of shape (count, n_machines)
        Constants of the decision functions, as `intercept_` of the machine has them.
    n_support : ndarray of shape (count,)
        The number of support vectors.
    objective : ndarray of shape (count,)
        The least value of the dual, of all binary machines together.
    kkt_violation : ndarray of shape (count,)
        The largest of these machines.
    """

    parameter: str
    values: Array
    coefficients: Array
    intercept: Array
    n_support: Array
    objective: Array
    kkt_violation: Array

    def plot(self) -> list[Any]:
        """Draw coefficients and the number of support vectors along the path.

        Returns
        -------
        list of matplotlib.axes.Axes
            matplotlib is in the extra ``pairstep[plots]``.
        """
        pyplot = needed("matplotlib.pyplot", by="plot")
        figure = pyplot.figure(layout="constrained")
        left, right = figure.subplots(1, 2)
        lines = self.coefficients.reshape(len(self.values), -1)
        largest = np.argsort(-np.abs(lines).max(axis=0), kind="stable")[:LINES]
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
    machine: SupportVectorMachine | None = None,
    sample_weight: ArrayLike | None = None,
) -> RegularisationPath:
    """Solve a machine for several C, each from the solution for the one before.

    The kernel matrix is computed once if it fits into three quarters of the machine's `cache_size`.

    Parameters
    ----------
    X : array_like or sparse array of shape (n_samples, n_features)
        Training samples, as the machine takes them.
    y : array_like of shape (n_samples,), or None
        Class labels, numbers, or nothing for `OneClassSVM`.
    Cs : array_like of shape (count,)
        The C to solve for, in the order in which they are solved; it pays to let them rise. The nu
        of machines without C.
    machine : SupportVectorMachine, optional
        Says what is solved, and how: `SVC()` by default. It is not changed.
    sample_weight : array_like of shape (n_samples,), optional
        Factors of C, one per sample.

    Returns
    -------
    RegularisationPath
        Coefficients, intercepts, numbers of support vectors and objectives.

    Examples
    --------
    >>> from pairstep import svm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> found = svm.path(X, y, [0.1, 1.0, 10.0], machine=svm.SVC(kernel="linear"))
    >>> found.n_support.tolist()
    [4, 4, 4]
    >>> found.objective.round(3).tolist()
    [-0.38, -2.889, -26.889]
    """
    whole = clone(SVC() if machine is None else machine)
    parameter = "C" if "C" in whole.get_params() else "nu"
    values = vector("Cs", Cs)
    X, y = whole._training_data(X, y)
    n = _num_samples(X)
    targets = whole._targets(X, y)
    weights = whole._weights(X, sample_weight)
    matrix = whole._matrix(X)
    kernel = whole._kernel()
    threads = whole._threads(n * (entries_of(matrix) + 16.0 * n))
    order = np.argsort(targets, kind="stable")
    shared = SharedKernels(matrix, kernel.name, 1, order, whole._cache_bytes(), whole.dtype).of(
        kernel, threads
    )
    coefficients, intercepts, counts, objectives, violations = [], [], [], [], []
    failed: list[Solution] = []
    last: list[tuple[Dual, Solution]] = []
    for k, value in enumerate(values.tolist()):
        setattr(whole, parameter, value)
        whole._validate_params()
        duals = whole._duals(targets, weights)
        for (earlier, solution), dual in zip(last, duals, strict=False):
            if parameter == "C":
                continued(solution, dual, value / values[k - 1])
            else:
                continue_from(replace(earlier, z=solution.z), dual)
        solutions = shared.solve(
            [(np.arange(n), dual) for dual in duals],
            tol=whole.tol, max_iter=whole._most_iterations(n),
            time_limit=math.inf if whole.time_limit is None else whole.time_limit,
            rule=whole.rule, cold=not last and whole.max_iter == -1, threads=threads,
        )  # fmt: skip
        last = list(zip(duals, solutions, strict=True))
        whole._conclude(targets, duals, solutions)
        failed += whole._report(solutions)
        z = np.zeros((len(duals), n))
        for row, (dual, solution) in zip(z, last, strict=True):
            np.add.at(row, dual.rows, solution.z)
        coefficients.append(z)
        intercepts.append(whole.intercept_)
        counts.append(len(whole.support_))
        objectives.append(sum(_objective(dual, solution) for dual, solution in last))
        violations.append(max(solution.kkt_violation for solution in solutions))
    if failed:
        warnings.warn(whole._warning(failed), ConvergenceWarning, stacklevel=2)
    return RegularisationPath(
        parameter, values, np.array(coefficients), np.array(intercepts), np.array(counts),
        np.array(objectives), np.array(violations),
    )  # fmt: skip


def _objective(dual: Dual, solution: Solution) -> float:
    z = solution.z
    kinks = 0.0 if dual.kink is None else float(dual.kink @ np.abs(z))
    return float(z @ (solution.gradient + dual.linear)) / 2 + kinks
