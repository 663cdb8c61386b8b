"""Exact updates of a fitted model: samples are added and removed, and the solution is repaired.

The gradients of all samples are kept from update to update. A change of the samples changes a few
variables: those of removed support vectors become 0, others take over their part of the sums, and
new samples start at 0. The kernel rows of these variables update the gradient. If the optimality
conditions still hold, as after the removal of a sample that is not a support vector, that is all.
Otherwise the block solver continues from this point. In both cases the certificate is that of a
fit, from gradients that are compared with precise values.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from .arrays import to_host
from .base import BaseSVM, as_now
from .compatibility import check_sample_weight
from .data import DATA_CHECKS, canonical
from .duals import continue_from
from .engine import (
    Dual,
    Duals,
    Solution,
    Solutions,
    conclude,
    examined,
    judge,
    native,
    prepared_sums,
    rounding_of_multipliers,
)
from .fitted_duals import fitted_duals, require_same
from .kernels import require_finite
from .model_plans import ClassificationPlan
from .parameters import validate_parameters
from .plan import MULTIPLICATIONS_PER_PAIR, FitPlan
from .training_data import SolvedDual, TrainingData

# The gradient is recomputed when the rounding errors of earlier updates may have reached this
# fraction of the tolerance. A larger one would leave less of the tolerance to the solver; a smaller
# one would compute it more often than needed.
MAX_DRIFT = 1.0 / 16


def updated(
    model: BaseSVM, X_new: Any, y_new: Any, sample_weight: ArrayLike | None, remove: Any
) -> BaseSVM:
    """Return the model after an update; see `BaseSVM.update`."""
    validate_parameters(model)
    check_is_fitted(model)
    model = as_now(model)
    training = _training_of(model)
    plan = FitPlan.of(model)
    n = training.X.shape[0]
    kept = _kept(remove, n)
    X_new, new_targets, new_weights = _new_samples(model, plan, X_new, y_new, sample_weight)
    if len(kept) == n and X_new is None:
        return model
    solved = training.solved
    if solved is None:
        solved = _solved_fit(model, training)
    _fill(plan, model, training, kept, X_new, new_targets, new_weights)

    duals = plan.duals()
    place = np.full(n, -1)
    place[kept] = np.arange(len(kept))
    square = training.square
    if square is None:
        square = float(_core.measure(native(plan.X))[1])
    elif X_new is not None:
        square = max(square, float(_core.measure(native(X_new))[1]))
    repair = _Repair(plan, training, place, len(kept), square)
    found = [repair.run(old, dual) for old, dual in zip(solved, duals, strict=True)]
    duals = Duals.of([one.dual for one in found])
    solutions = Solutions.of([one.solution for one in found])
    plan.conclude(duals, solutions)
    failed = plan.report(solutions)
    result: BaseSVM = plan.fitted()
    if failed:
        warnings.warn(plan.warning(failed), ConvergenceWarning, stacklevel=3)
    result.__dict__["_training"] = TrainingData(plan.X, plan.targets, plan.weights, found, square)
    if model.warm_start:
        result.__dict__["_last_duals"] = replace(duals, z=duals.z.copy())
    return result


def _training_of(model: BaseSVM) -> TrainingData:
    """Return the training data of a model, or raise if it cannot be updated."""
    name = type(model).__name__
    if callable(model.kernel) or model.kernel == "precomputed":
        raise ValueError(
            f"update needs a kernel that pairstep computes, got kernel={model.kernel!r}: fit the "
            "model to all samples instead"
        )
    probability = model.__dict__.get("probability", "deprecated")
    if probability != "deprecated" and probability:
        raise ValueError(
            "update does not support probability=True: use CalibratedClassifierCV instead"
        )
    training: TrainingData = model.__dict__.get("_training", TrainingData())
    if training.X is None:
        raise ValueError(
            f"this {name} does not have its training data, which are not kept in files, pickles "
            "and copies of a model, nor by searches and fits on a cluster: call fit before update"
        )
    return training


def _kept(remove: Any, n: int) -> Indices:
    """Return the training samples that stay."""
    if remove is None:
        return np.arange(n)
    removed = np.atleast_1d(np.asarray(remove))
    if removed.size == 0:
        return np.arange(n)
    if removed.ndim != 1 or removed.dtype.kind not in "iu":
        raise ValueError(
            f"remove must be a list of integers, got an array of type {removed.dtype} and shape "
            f"{removed.shape}"
        )
    if removed.min() < 0 or removed.max() >= n:
        worst = removed.min() if removed.min() < 0 else removed.max()
        raise ValueError(f"remove has the index {worst}, but there are {n} training samples")
    stays = np.ones(n, bool)
    stays[removed] = False
    if np.count_nonzero(~stays) != len(removed):
        raise ValueError("remove has an index twice")
    return np.flatnonzero(stays)


def _new_samples(
    model: Any, plan: FitPlan, X_new: Any, y_new: Any, sample_weight: ArrayLike | None
) -> tuple[Any, Array, Array]:
    """Check new samples; return them with what the duals need from y, and their weights."""
    if X_new is None:
        if y_new is not None or sample_weight is not None:
            raise ValueError("y_new and sample_weight need X_new")
        return None, np.zeros(0), np.zeros(0)
    X_new = validate_data(model, to_host(X_new), reset=False, **DATA_CHECKS)
    if scipy.sparse.issparse(X_new) != model._sparse:
        wanted = "sparse" if model._sparse else "dense"
        raise ValueError(f"X_new must be {wanted}, as the data that the model was fitted to")
    if model._sparse:
        X_new = canonical(X_new)
    require_finite(model._kernel(), X_new)
    count = X_new.shape[0]
    weights = np.ones(count)
    if sample_weight is not None:
        weights = np.maximum(check_sample_weight(sample_weight, X_new, dtype=np.float64), 0.0)
    plan.n = count
    if isinstance(plan, ClassificationPlan):
        classes: Any = model.classes_
        labels = column_or_1d(to_host(y_new), warn=True)
        check_consistent_length(X_new, labels)
        known = np.isin(labels, classes)
        if not known.all():
            label = np.asarray(labels)[~known][0]
            raise ValueError(
                f"y_new has the label {label!s}, which is not one of the classes of the model: "
                "call fit to add a class"
            )
        return X_new, np.searchsorted(classes, labels).astype(np.int64), weights
    targets = plan.check_targets(to_host(y_new))
    check_consistent_length(X_new, targets)
    return X_new, targets, weights


def _fill(
    plan: FitPlan, model: Any, training: TrainingData, kept: Indices, X_new: Any,
    new_targets: Array, new_weights: Array,
) -> None:  # fmt: skip
    """Set the data of the plan: the samples that stay, then the new ones."""
    assert training.targets is not None
    assert training.weights is not None
    plan.X = _stacked(training.X, kept, X_new)
    plan.y = None
    plan.n = plan.X.shape[0]
    targets = training.targets[kept]
    plan.targets = np.concatenate([targets, new_targets.astype(targets.dtype)])
    plan.weights = np.concatenate([training.weights[kept], new_weights])
    state: dict[str, Any] = {
        "shape_fit_": plan.X.shape, "_sparse": model._sparse, "_X_fit": None,
    }  # fmt: skip
    if plan.n == 0 or not (plan.weights > 0).any():
        raise ValueError("remove would leave no training sample with a positive weight")
    if isinstance(plan, ClassificationPlan):
        classes = model.classes_
        counts = np.bincount(plan.targets, minlength=len(classes))
        if counts.min() == 0:
            label = classes[np.argmin(counts)].item()
            raise ValueError(f"remove would leave no sample of class {label!r}: call fit instead")
        state["classes_"] = classes
        state["class_weight_"] = model.class_weight_
    plan.state.update(state)
    plan.gamma, plan.matrix = model._gamma, plan.X


def _stacked(X: Any, kept: Indices, X_new: Any) -> Any:
    """Return the rows of X that stay, followed by new ones, with a single copy."""
    new_rows = 0 if X_new is None else X_new.shape[0]
    if scipy.sparse.issparse(X):
        parts = [X if len(kept) == X.shape[0] else X[kept]] + ([X_new] if new_rows else [])
        return scipy.sparse.vstack(parts, format="csr") if new_rows else parts[0]
    whole = np.empty((len(kept) + new_rows, X.shape[1]), X.dtype)
    if len(kept) == X.shape[0]:
        whole[: len(kept)] = X
    else:
        np.take(X, kept, axis=0, out=whole[: len(kept)], mode="clip")
    if new_rows:
        whole[len(kept) :] = X_new
    return whole


def _solved_fit(model: BaseSVM, training: TrainingData) -> list[SolvedDual]:
    """Return the duals of the fit at their solutions, before the first update."""
    plan = FitPlan.of(model)
    none = np.zeros(0)
    _fill(plan, model, training, np.arange(training.X.shape[0]), None, none, none)
    require_same(model, plan)
    kernel = _Kernel(plan)
    found = []
    for dual in fitted_duals(model, plan):
        dual.gradient = kernel.gradient(dual)
        found.append(SolvedDual(dual, kernel.certified(dual)))
    return found


class _Kernel:
    """Sums of the kernel over samples of a plan, in float64.

    Native code reads all rows of a matrix that it gets, so it only gets the rows that a sum needs.
    """

    def __init__(self, plan: FitPlan):
        self.plan, self.tol, self.X = plan, plan.model.tol, plan.X

    def gradient(self, dual: Dual) -> Array:
        """Return the gradient of a dual at its z."""
        used = np.flatnonzero(dual.z)
        sums = self.sums(self.X[dual.rows[used]], dual.z[used], self.X, dual)
        return np.asarray(dual.linear + sums[dual.rows])

    def sums(self, queries: Any, weights: Array, samples: Any, dual: Dual) -> Array:
        """Return the kernel of each sample with the queries, times their weights."""
        sums: Array = np.zeros((1, samples.shape[0]))
        if sums.size == 0 or len(weights) == 0:
            return np.asarray(sums[0])
        data, columns, center, kernel = prepared_sums(
            self.plan.kernel, queries, samples, Duals.of([dual]), self.tol
        )
        pairs = float(len(weights)) * samples.shape[0]
        work = pairs * (self.X.shape[1] + MULTIPLICATIONS_PER_PAIR)
        _core.add_kernel(
            kernel.native, data, center, np.arange(len(weights)),
            np.ascontiguousarray(weights[:, None]), columns, np.arange(sums.shape[1]), sums,
            self.plan.threads(work), 0.0,
        )  # fmt: skip
        return np.asarray(sums[0])

    def certified(self, dual: Dual) -> Solution:
        """Return the solution at the z of a dual, with the certificate of a fit."""
        gradient = dual.gradient
        assert gradient is not None
        # Precise gradients need the support vectors, and the rows that they are computed for.
        needed = dual.z != 0
        needed[_extremes(dual, gradient)] = True
        some = np.flatnonzero(needed)
        part = Dual(
            np.arange(len(some)), dual.linear[some], dual.lower[some], dual.upper[some],
            np.searchsorted(some, dual.starts), dual.totals, dual.z[some],
            None if dual.l1 is None else dual.l1[some],
        )  # fmt: skip
        rows = self.X[dual.rows[some]]
        whole = Duals.of([dual])
        data, _, center, kernel = prepared_sums(self.plan.kernel, rows, rows, whole, self.tol)
        known = gradient[some]
        error, extra = examined(data, center, kernel, part, known, tol=self.tol, threads=1)
        gradient[some] = known  # with the corrections, if any
        outcome = judge(
            dual, gradient, _core.StopReason.optimal, 0, extra=extra, error=error, tol=self.tol
        )
        (solution,) = conclude(
            whole, gradient, outcome.numbers, tol=self.tol, timed_out=False,
            rounding=lambda *_: rounding_of_multipliers(
                data, center, kernel, part, known, outcome.multiplier
            ),
        )  # fmt: skip
        return solution


def _extremes(dual: Dual, gradient: Array) -> Indices:
    """Return the variables of each group with the extreme derivatives."""
    z = dual.z
    l1 = np.zeros(len(z)) if dual.l1 is None else dual.l1
    left = np.where(z > dual.lower, gradient + np.where(z > 0, l1, -l1), -np.inf)
    right = np.where(z < dual.upper, gradient + np.where(z >= 0, l1, -l1), np.inf)
    found = []
    for group in dual.groups:
        if group.start < group.stop:
            found += [group.start + np.argmax(left[group]), group.start + np.argmin(right[group])]
    return np.array(found)


class _Repair:
    """Repairs the duals of a model after a change of the samples."""

    def __init__(
        self, plan: FitPlan, training: TrainingData, place: Indices, first_new: int, square: float
    ):
        self.plan, self.before, self.place, self.first_new = plan, training, place, first_new
        self.kernel = _Kernel(plan)
        # Rounding error of a kernel value in float32.
        single = _core.float32_rounding(plan.kernel.native, square)
        self.rounding = float(np.finfo(np.float64).eps) if single is None else single

    def run(self, old: SolvedDual, dual: Dual) -> SolvedDual:
        """Return a new dual at its solution, from the old one."""
        before = old.dual
        rows = self.place[before.rows]
        stays = rows >= 0
        if (
            np.array_equal(rows, dual.rows)
            and np.array_equal(dual.upper, before.upper)
            and np.array_equal(dual.totals, before.totals)
        ):
            dual.z, dual.gradient = before.z, before.gradient
            return SolvedDual(dual, old.solution, old.moved)
        moved = old.moved + self._start(before, dual, rows, stays)
        # Errors of kernel values are nearly independent, so their squares add up.
        if self.rounding * np.sqrt(moved) > MAX_DRIFT * self.kernel.tol:
            dual.gradient, moved = self.kernel.gradient(dual), 0.0
        solution = self.kernel.certified(dual)
        if solution.status != Status.OPTIMAL:
            (solution,) = self.plan.solve(Duals.of([dual]), cold=False, keep_going=None)
            moved += float(np.sum((solution.z - dual.z) ** 2))
            dual.z, dual.gradient = solution.z, solution.gradient
        return SolvedDual(dual, solution, moved)

    def _start(self, before: Dual, dual: Dual, rows: Indices, stays: Any) -> float:
        """Set z and the gradient from the old solution, with z changed so that the sums hold.

        Returns the sum of the squared changes of z.
        """
        assert before.gradient is not None
        X, kernel = self.plan.X, self.kernel
        is_new = dual.rows >= self.first_new
        at, was = np.flatnonzero(~is_new), np.flatnonzero(stays)
        if not np.array_equal(dual.rows[at], rows[was]):
            # The dual of two classes without weight has variables, until a sample has weight.
            dual.gradient = kernel.gradient(dual)
            return 0.0
        value = np.zeros(len(dual.z))
        value[at] = before.z[was]
        gradient = dual.linear.copy()
        gradient[at] = before.gradient[was]
        gone = np.flatnonzero(~stays & (before.z != 0))
        is_feasible = len(gone) == 0 and np.array_equal(dual.totals, before.totals)
        if is_feasible and ((dual.lower <= value) & (value <= dual.upper)).all():
            dual.z = value
        else:
            dual.z = value.copy()
            continue_from(replace(dual, z=value), dual)
        # New samples need all support vectors; the others only what has changed.
        new, support = np.flatnonzero(is_new), np.flatnonzero(dual.z)
        gradient[new] += kernel.sums(
            X[dual.rows[support]], dual.z[support], X[dual.rows[new]], dual
        )
        change = dual.z - value
        changed = np.flatnonzero(change)
        if len(changed) or len(gone):
            sums = kernel.sums(X[dual.rows[changed]], change[changed], X, dual)
            sums += kernel.sums(self.before.X[before.rows[gone]], -before.z[gone], X, dual)
            gradient[at] += sums[dual.rows[at]]
        dual.gradient = gradient
        return float(np.sum(change[changed] ** 2) + np.sum(before.z[gone] ** 2))
