"""Exact leave-one-out decisions: the decision on each sample of the model without it.

Samples that are not support vectors leave the solution of their dual unchanged, unless its totals
depend on the number of samples (nu). For the others, `cpp/engine/leave_out.cpp` repairs the
solution, for all samples from one inverse matrix of the free variables. Where it cannot, for
example because no variable is free, the block solver continues from the solution.
"""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .. import _core, log
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from .base import BaseSVM, as_now, with_known_decisions
from .duals import bias, continue_from, hold_out
from .engine import Dual, Duals, Solution, Solutions, solve
from .fitted_duals import fitted_duals, plan_of_fitted
from .model_plans import ClassificationPlan, NuSVCPlan
from .plan import FitPlan
from .shared_kernel import SharedKernel, SharedKernels

# Free variables whose kernel rows are linear combinations of others', up to this relative error,
# stay where they are. If it were smaller, the inverse would have large rounding errors; if larger,
# more repairs would have to free such variables again.
RELATIVE_RANK = 1e-9
# Duals that the block solver gets in one call: enough for its threads, and few enough that their
# arrays take little memory.
DUALS_PER_CALL = 32
# The transform may take this many times `cache_size`: it only exists while one dual is repaired,
# and without it, repairs take many times longer.
MAX_CACHES = 4
# Seconds between two lines of progress.
SECONDS_BETWEEN_LINES = log.SECONDS_BETWEEN_LINES


@dataclass(frozen=True)
class LeaveOneOutResult:
    """Leave-one-out results of a model.

    Attributes
    ----------
    decisions : ndarray
        The decision on each sample of the model that is fitted without it, in the form of the
        model's `decision_function` (of `predict` in regression).
    predictions : ndarray of shape (n_samples,)
        What these models predict.
    score : float
        The accuracy of the predictions, their R² in regression, or the fraction of inliers in
        novelty detection.
    kkt_violation : ndarray of shape (n_samples,)
        The largest violation of the optimality conditions by the model without the sample. It is at
        most `tol`, unless there is a ConvergenceWarning.
    """

    decisions: Array
    predictions: NDArray[Any]
    score: float
    kkt_violation: Array


def leave_one_out(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    verbose: bool = False,
) -> LeaveOneOutResult:
    """Return the decisions of a model on its training samples, each without that sample.

    The results are those of fits to all samples but one, up to the tolerance. They are repaired
    from the fitted model, which takes as long as several to several dozen fits.

    Parameters
    ----------
    model : estimator
        A fitted `SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM`. It is not changed.
    X : array_like or sparse array of shape (n_samples, n_features)
        The samples that the model was fitted to, or their kernel matrix.
    y : array_like of shape (n_samples,), optional
        Their labels or numbers; not used by a OneClassSVM.
    sample_weight : array_like of shape (n_samples,), optional
        The weights of the fit, if it had any. They also weight the score.
    verbose : bool, default=False
        Whether to print progress.

    Returns
    -------
    LeaveOneOutResult
        Decisions, predictions and their score.

    Raises
    ------
    ValueError
        If the model was fitted to other data, or if a fit without one of the samples is impossible,
        for example because it is the only one of its class.

    Warns
    -----
    ConvergenceWarning
        If some solutions miss the tolerance.

    Notes
    -----
    All fits use the gamma and the class weights of the model, also with ``gamma="scale"`` and
    ``class_weight="balanced"``, which would depend slightly on the samples. The kernel matrix is
    kept in memory if `cache_size` permits; otherwise repairs take longer.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairstep.svm import SVC, leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> found = leave_one_out(SVC().fit(X, y), X, y)
    >>> round(found.score, 3), found.predictions.shape, found.decisions.shape
    (0.967, (150,), (150, 3))
    """
    if not isinstance(model, BaseSVM):
        raise TypeError(f"model must be an SVM of pairstep.svm, got {type(model).__name__}")
    check_is_fitted(model)
    model = as_now(model)
    found = left_out(model, X, y, sample_weight, verbose)
    if found.missed:
        warnings.warn(
            f"{found.missed} of {found.plan.n} leave-one-out solutions miss the tolerance: the "
            f"largest KKT violation is {found.violation.max():.2e} (tol={model.tol:g}). Consider "
            "pre-processing your data with StandardScaler or MinMaxScaler, or lower C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    known = with_known_decisions(model, found.decisions)
    predictions = known.predict(X)
    decisions = predictions if is_regressor(model) else known.decision_function(X)
    if is_classifier(model) or is_regressor(model):
        score = known.score(X, y, sample_weight)
    else:
        score = float(np.average(predictions == 1, weights=found.plan.weights))
    return LeaveOneOutResult(decisions, predictions, float(score), found.violation)


def left_out(model: Any, X: Any, y: Any, sample_weight: Any, verbose: bool) -> LeftOut:
    """Return the decisions of a fitted model on all samples, each without the sample."""
    plan = plan_of_fitted(model, X, y, sample_weight)
    _require_feasible(plan)
    found = LeftOut(model, plan, verbose)
    found.solve()
    return found


def _require_feasible(plan: FitPlan) -> None:
    """Raise if a fit without one of the samples is impossible."""
    positive = plan.weights > 0
    if not isinstance(plan, ClassificationPlan):
        if np.count_nonzero(positive) < 2:
            raise ValueError("leave-one-out needs at least two samples with positive weights")
        return
    for k, members in enumerate(plan.members()):
        if np.count_nonzero(positive[members]) < 2:
            raise ValueError(
                f"class {plan.state['classes_'][k].item()!r} has a single sample: leave-one-out "
                "needs at least two samples per class; remove the class"
            )
    if isinstance(plan, NuSVCPlan):
        sizes = [float(plan.weights[rows].sum()) for rows in plan.members()]
        for k, rows in enumerate(plan.members()):
            without = list(sizes)
            without[k] -= float(plan.weights[rows].max())
            plan._require_feasible(without)


class LeftOut:
    """Decisions on all samples, dual by dual.

    Attributes
    ----------
    decisions : ndarray
        The decisions of `KnownDecisions`.
    violation : ndarray of shape (n_samples,)
        The largest violation of the optimality conditions without each sample.
    missed : int
        The number of samples whose solutions miss the tolerance.
    """

    def __init__(self, model: BaseSVM, plan: FitPlan, verbose: bool):
        self.plan, self.verbose = plan, verbose
        self.threads = plan.threads(plan.matrix_work())
        self.duals = fitted_duals(model, plan)
        self.options: dict[str, Any] = {
            "tol": model.tol, "max_iter": plan.max_iterations(), "time_limit": np.inf,
            "cold": False, "threads": self.threads,
        }  # fmt: skip
        order = np.argsort(plan.targets, kind="stable") if is_classifier(model) else None
        self.shared = SharedKernels(
            plan.matrix, plan.kernel.name, 1, np.arange(plan.n) if order is None else order,
            plan.cache_bytes(), model.dtype,
        ).of(plan.kernel, self.threads)  # fmt: skip
        self.solutions = self._solved(self.duals)
        plan.conclude(self.duals, self.solutions)
        self.violation = np.full(plan.n, self.solutions.kkt_violation.max())
        self.decisions = self._own_decisions(model)
        self.missed = 0
        self.done, self.count = 0, 0
        self.said = time.perf_counter()

    def _solved(self, duals: Duals) -> Solutions:
        """Solve duals with the block solver."""
        shared = self.shared
        placed = replace(duals, rows=shared.place[duals.rows])
        return solve(
            shared.X, shared.kernel, placed, cache_bytes=shared.cache_bytes, dtype=shared.dtype,
            arenas=shared.arenas, **self.options,
        )  # fmt: skip

    def _own_decisions(self, model: Any) -> Array:
        """Return the decisions of the fitted model on its training samples."""
        plan = self.plan
        if len(self.duals) == 1 and len(np.unique(self.duals[0].rows)) == plan.n:
            (dual,), (solution,) = self.duals, self.solutions
            decisions = np.empty(plan.n)
            decisions[dual.rows] = self._decision(solution.gradient - dual.linear, solution)
            return decisions
        X = plan.X
        model = copy.copy(model)
        vars(model).pop("feature_names_in_", None)  # X is an array by now
        if model.kernel == "precomputed" and model.support_columns:
            X = X[:, model.support_]
        if len(self.duals) == 1:
            return np.asarray(model._single_decision(X))
        return np.asarray(model._from_pairs(X, lambda pairs: pairs))

    def _decision(self, sums: Any, solution: Solution) -> Any:
        """Return the decision from sums of the kernel, as `FitPlan.conclude` defines it."""
        return self.plan.sign * (sums + bias(solution)) / self.plan.scale(solution)

    def solve(self) -> None:
        """Leave out every sample that may change a solution."""
        parts = [_Part(dual, solution) for dual, solution in zip(
            self.duals, self.solutions, strict=True)]  # fmt: skip
        self.count = sum(len(part.samples) for part in parts)
        missed = np.zeros(self.plan.n, bool)
        for column, (dual, solution, part) in enumerate(
            zip(self.duals, self.solutions, parts, strict=True)
        ):
            decided = self.decisions if len(self.duals) == 1 else self.decisions[:, column]
            left = self._repair(dual, solution, part, decided)
            for first in range(0, len(left), DUALS_PER_CALL):
                some = left[first : first + DUALS_PER_CALL]
                held = Duals.of([self._held(dual, solution, part.variables[k]) for k in some])
                for k, found in zip(some, self._solved(held), strict=True):
                    i = part.variables[k][0]
                    decided[part.samples[k]] = self._decision(
                        found.gradient[i] - dual.linear[i], found
                    )
                    self._record(part.samples[[k]], np.array([found.kkt_violation]))
                    missed[part.samples[k]] |= found.status != Status.OPTIMAL
                self._advance(len(some))
        self.missed = int(missed.sum())
        if self.missed == 0 and any(status != Status.OPTIMAL for status in self.solutions.status):
            self.missed = self.plan.n

    def _held(self, dual: Dual, solution: Solution, held: Indices) -> Dual:
        """Return the dual without a sample, started from the solution with it."""
        base = replace(dual, z=solution.z)
        without = hold_out(base, held)
        continue_from(base, without)
        return without

    def _repair(
        self, dual: Dual, solution: Solution, part: _Part, decided: Array
    ) -> NDArray[np.intp]:
        """Repair the solution for the samples of a dual; return those for which that failed."""
        count = len(part.samples)
        transform = None
        if count > 0 and self.shared.matrix is not None and self.plan.kernel.name != "sigmoid":
            # OpenBLAS threads wait for each other in a loop, which is slow on a busy computer.
            with threadpool_limits(1, "blas"):
                transform = _transform(self.shared, dual, solution, self.plan.cache_bytes())
        if transform is None:
            return np.arange(count)
        at = Duals.of([replace(dual, rows=self.shared.place[dual.rows])])
        before = self.done
        violation, sums, multipliers = _core.leave_out(
            self.shared.matrix, at.native(solution.z, solution.gradient, known=True),
            np.array(solution.multiplier), transform.free, transform.inverse, transform.matrix,
            np.ascontiguousarray(transform.matrix.T), transform.known, transform.columns,
            tol=self.options["tol"],
            cache_bytes=self.plan.cache_bytes(), left_out=part.variables,
            total_changes=part.total_changes, threads=self.threads,
            keep_going=lambda done: self._advance(before + done - self.done),
        )  # fmt: skip
        good = np.flatnonzero(np.isfinite(violation))
        for k in good:
            found = solution._replace(
                multiplier=multipliers[k].tolist(), rounding=[0.0] * len(dual.totals)
            )
            decided[part.samples[k]] = self._decision(sums[k], found)
        self._record(part.samples[good], violation[good])
        self.done = before
        self._advance(len(good))
        return np.flatnonzero(~np.isfinite(violation))

    def _record(self, samples: Indices, violation: Array) -> None:
        self.violation[samples] = np.maximum(self.violation[samples], violation)

    def _advance(self, more: int) -> bool:
        """Count repairs, and show progress about once a second."""
        self.done += more
        now = time.perf_counter()
        if now - self.said >= SECONDS_BETWEEN_LINES and log.is_enabled(self.verbose):
            self.said = now
            log.write(f"{self.done} of {self.count} samples left out", self.verbose)
        return True


class _Part:
    """The samples of a dual whose removal may change its solution.

    Attributes
    ----------
    samples : ndarray of shape (n,)
        Rows of the data.
    variables : ndarray of shape (n, 1) or (n, 2)
        Their variables.
    total_changes : ndarray of shape (n, groups)
        How the totals change without each of them.
    """

    def __init__(self, dual: Dual, solution: Solution):
        rows, count = np.unique(dual.rows, return_counts=True)
        width = int(count.max())
        variables = np.argsort(dual.rows, kind="stable").reshape(-1, width)
        self.samples, self.variables = rows, np.ascontiguousarray(variables, dtype=np.int64)
        changes = np.zeros((len(rows), len(dual.totals)))
        if dual.totals.any():
            limit = dual.upper - dual.lower
            fraction = limit[variables].sum(axis=1) / limit.sum()
            changes = -fraction[:, None] * dual.totals
        else:
            nonzero = (solution.z[variables] != 0).any(axis=1)
            self.samples, self.variables = rows[nonzero], self.variables[nonzero]
            changes = changes[nonzero]
        self.total_changes = changes


class _Transform(NamedTuple):
    """The principal pivot transform of a dual; see `cpp/engine/leave_out.hpp`."""

    free: Indices
    inverse: Array  # of B = [K_FF A'; A 0]
    matrix: Array  # inverse @ [K_F; A]
    known: Indices  # variables whose state is likely to change
    columns: Array  # of the transformed kernel matrix, one per row


def _transform(
    shared: SharedKernel, dual: Dual, solution: Solution, max_bytes: int
) -> _Transform | None:
    """Return the transform of a dual with respect to its free variables.

    None if a group has no free variable, or if it takes too much memory.
    """
    z = solution.z
    is_free = (z > dual.lower) & (z < dual.upper)
    if dual.l1 is not None:
        is_free &= (z != 0) | (dual.l1 == 0)
    free = np.flatnonzero(is_free)
    n, groups = len(z), len(dual.totals)
    if len(free) == 0 or 8 * len(free) * (3 * n + 2 * len(free)) > MAX_CACHES * max_bytes:
        return None
    place = shared.place[dual.rows]
    K = shared.matrix[place[free]][:, place].astype(np.float64)
    members = np.zeros((groups, n))
    for k, group in enumerate(dual.groups):
        members[k, group] = 1.0
    own = K[:, free]
    # The sums are fixed, so adding a constant to all kernel values of a group changes nothing. With
    # it, the matrix is invertible if the system is.
    shift = max(float(np.abs(np.diagonal(own)).max()), 1e-300)
    shifted = own + shift * members[:, free].T @ members[:, free]
    _, pivots, rank, info = scipy.linalg.lapack.dpstrf(shifted, tol=RELATIVE_RANK * shift, lower=1)
    if info < 0:
        return None
    kept = np.sort(pivots[:rank] - 1)
    free, K = free[kept], K[kept]
    if not members[:, free].any(axis=1).all():
        return None
    m = len(free)
    system = np.zeros((m + groups, m + groups))
    system[:m, :m] = K[:, free]
    system[m:, :m] = members[:, free]
    system[:m, m:] = members[:, free].T
    try:
        inverse = scipy.linalg.inv(system, check_finite=False, overwrite_a=True)
    except (scipy.linalg.LinAlgError, ValueError):
        return None
    inverse = np.ascontiguousarray((inverse + inverse.T) / 2)
    right = np.vstack([K, members])
    matrix = inverse @ right

    def columns(some: Indices) -> Array:
        found: Array = shared.matrix[place[some]][:, place].astype(np.float64)
        found -= matrix[:, some].T @ right
        return found

    # Support vectors at bounds, and variables whose derivative gets the wrong sign when one support
    # vector is left out and the others at bounds stay there.
    bounded = np.flatnonzero((z != 0) & ~is_free)
    at_bounds = columns(bounded)
    lower, upper = _ranges(dual, solution)
    pivot = np.diagonal(inverse)[:m]
    changes = matrix[:m] * (-z[free] / np.where(pivot > 0, pivot, np.inf))[:, None]
    likely = _any_outside(changes, lower, upper)
    likely |= _any_outside(at_bounds * -z[bounded, None], lower, upper)
    likely[is_free] = likely[bounded] = False
    others = np.flatnonzero(likely)[: max(max_bytes // (8 * n) - len(bounded), 0)]
    known = np.concatenate([bounded, others])
    return _Transform(free, inverse, matrix, known, np.vstack([at_bounds, columns(others)]))


def _ranges(dual: Dual, solution: Solution) -> tuple[Array, Array]:
    """Return by how much each derivative may fall and rise before z would have to change."""
    z = solution.z
    l1 = np.zeros(len(z)) if dual.l1 is None else dual.l1
    reduced = solution.gradient - np.repeat(solution.multiplier, np.diff(dual.starts))
    down = np.where(z < dual.upper, -(reduced + np.where(z >= 0, l1, -l1)), -np.inf)
    up = np.where(z > dual.lower, -(reduced + np.where(z > 0, l1, -l1)), np.inf)
    return down, up


def _any_outside(changes: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Return which columns have an entry outside their range."""
    if len(changes) == 0:
        return np.zeros(len(lower), bool)
    return np.asarray((changes.min(axis=0) < lower) | (changes.max(axis=0) > upper))
