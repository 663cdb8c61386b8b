"""Exact updates of a fitted model: samples are added and removed, and the solution is repaired.

The gradients of all samples are kept from update to update. A change of the samples changes a few
variables: those of removed support vectors become 0, others take over their part of the sums, and
new samples start at 0. The kernel rows of these variables update the gradient. If the optimality
conditions still hold, as after the removal of a sample that is not a support vector, that is all.

Otherwise the dual is solved for the free variables and those that violate the conditions most,
until all variables satisfy them. These are the working sets of a block solver, but nothing depends
on the number of samples except the kernel rows of the variables that change, and these are kept for
the next update. If that takes too long, the block solver continues from this point.

In all cases the certificate is that of a fit, from gradients that are compared with precise values.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
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
from .data import DATA_CHECKS, canonical, is_plain, needs_no_conversion
from .duals import continue_from
from .engine import (
    Dual,
    Duals,
    Kernel,
    Solution,
    Solutions,
    conclude,
    decide,
    examined,
    judge,
    largest_value,
    native,
    needs_differences,
    prepared_sums,
    rounding_of_multipliers,
    solve,
)
from .fitted_duals import fitted_duals, require_same
from .kernels import require_finite
from .model_plans import ClassificationPlan
from .parameters import validate_parameters
from .plan import MULTIPLICATIONS_PER_PAIR, FitPlan
from .samples import KernelRows, KernelValues, Samples
from .training_data import SolvedDual, TrainingData

# The gradient is recomputed when the rounding errors of earlier updates may have reached this
# fraction of the tolerance. A larger one would leave less of the tolerance to the solver; a smaller
# one would compute it more often than needed.
MAX_DRIFT = 1.0 / 16
# Rounding error of the sum of a few kernel rows in float32, in machine epsilons times the largest
# kernel value and the root of the sum of squared changes: half of one for storing a value, as much
# for the change of z, and the rest for sums of `ROWS_PER_SUM` terms.
ROUNDING_OF_ROWS = 4.0

# A dual with fewer variables is repaired by a solve of all of them, which takes about as long as
# the set-up of a solve for some.
MIN_VARIABLES_TO_RESTRICT = 1000
# Variables that a repair solves for at most. With more, the copy of their kernel values and the
# steps on them take longer than a solve of all variables.
MAX_RESTRICTED_VARIABLES = 2500
# Variables of each group that join the free ones in a round of a repair. Most of them are close to
# a violation, and remain so from update to update. With fewer, more rounds would be needed, because
# the steps of a round make others violate the conditions; more would take more kernel rows.
MAX_JOINING = 96
# Rounds of a repair. Most take two or three.
MAX_ROUNDS = 20
# Fractions of the tolerance to which a round solves, and at which the repair is complete. The rest
# is for the variables that a round leaves out, and for rounding errors.
TARGET_OF_ROUND = 0.7
TARGET_OF_REPAIR = 0.95
# Memory for kernel rows that a model keeps for updates: as a fraction of that of a fit, and in
# bytes. With 10,000 samples, this is room for the rows of 5000 of them. More would help models with
# more free variables, but would surprise users who keep many models.
CACHE_FRACTION = 0.5
MAX_CACHE_BYTES = 2**28


def updated(
    model: BaseSVM, X_new: Any, y_new: Any, sample_weight: ArrayLike | None, remove: Any
) -> BaseSVM:
    """Return the model after an update; see `BaseSVM.update`."""
    validate_parameters(model)
    check_is_fitted(model)
    model = as_now(model)
    training = _training_of(model)
    plan = FitPlan.of(model)
    before = training.X if training.samples is None else training.samples
    n = before.shape[0]
    kept = _kept(remove, n)
    X_new, new_targets, new_weights = _new_samples(model, plan, X_new, y_new, sample_weight)
    if len(kept) == n and X_new is None:
        return model
    if training.solved is None:
        training = _solved_fit(model, training)
    samples, solved = training.samples, training.solved
    assert samples is not None
    assert solved is not None
    if X_new is not None:
        X_new = X_new.astype(samples.dtype, copy=False)
    if model.support_vectors_.shape[0] == len(model.support_):
        samples.known = samples.slots[model.support_], model.support_vectors_
    changed = samples.changed(kept, X_new)
    _fill(plan, model, training, changed, kept, new_targets, new_weights)
    if plan.kernel != training.kernel:
        training = _with_kernel(training, plan)
        solved = training.solved
        assert solved is not None
    duals = plan.duals()
    square = training.square
    assert square is not None
    if X_new is not None:
        square = max(square, _largest_square(X_new, training.center))
    kernel = _Kernel(plan, changed, training.center, square)
    kernel.take_rows(training)
    repair = _Repair(model, kernel, training, kept, X_new)
    found = [repair.run(old, dual) for old, dual in zip(solved, duals, strict=True)]
    duals = Duals.of([one.dual for one in found])
    solutions = Solutions.of([one.solution for one in found])
    plan.conclude(duals, solutions)
    failed = plan.report(solutions)
    result: BaseSVM = plan.fitted()
    if result.support_vectors_ is model.support_vectors_:
        result.__dict__["_laid_out"] = model._laid_out
    if failed:
        warnings.warn(plan.warning(failed), ConvergenceWarning, stacklevel=3)
    result.__dict__["_training"] = replace(
        training, targets=plan.targets, weights=plan.weights, solved=found, square=square,
        samples=changed, kernel_rows=[] if kernel.cache is None else [kernel.cache],
    )  # fmt: skip
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
    if not training.is_known:
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
    X_new = to_host(X_new)
    has_names = hasattr(model, "feature_names_in_")
    if has_names or not needs_no_conversion(X_new) or X_new.shape[1] != model.n_features_in_:
        X_new = validate_data(model, X_new, reset=False, **DATA_CHECKS)
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
        labels = to_host(y_new)
        if not is_plain(labels) or labels.shape != X_new.shape[:1]:
            labels = column_or_1d(labels, warn=True)
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
    if targets.shape != X_new.shape[:1]:
        check_consistent_length(X_new, targets)
    return X_new, targets, weights


def _fill(
    plan: FitPlan, model: Any, training: TrainingData, X: Any, kept: Indices, new_targets: Array,
    new_weights: Array,
) -> None:  # fmt: skip
    """Set the data of the plan: X has the samples that stay, then the new ones."""
    assert training.targets is not None
    assert training.weights is not None
    plan.X = X
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


def _largest_square(X: Any, center: Array | None) -> float:
    """Return the largest squared distance of a row from the center, or from the origin."""
    if center is not None:
        X = X - center
    return float(_core.measure(native(X))[1])


def _solved_fit(model: BaseSVM, training: TrainingData) -> TrainingData:
    """Return the training data of a fit with its duals at their solutions."""
    plan = FitPlan.of(model)
    none = np.zeros(0)
    X = training.X
    _fill(plan, model, training, X, np.arange(X.shape[0]), none, none)
    require_same(model, plan)
    samples = Samples.of(X)
    center, square = _origin(plan, X)
    kernel = _Kernel(plan, samples, center, square)
    found = []
    for dual in fitted_duals(model, plan):
        dual.gradient = kernel.gradient(dual)
        found.append(SolvedDual(dual, *kernel.certified(dual, 0)))
    return replace(
        training,
        X=None,
        solved=found,
        square=square,
        center=center,
        samples=samples,
        kernel_rows=[],
    )


def _origin(plan: FitPlan, X: Any) -> tuple[Array | None, float]:
    """Return the center and the largest squared distance from it, as in `TrainingData`."""
    # Kernel values between rows close to the origin have smaller rounding errors.
    is_centered = plan.kernel.name == "rbf" and isinstance(X, np.ndarray)
    center = _core.rounded_mean(native(X)) if is_centered else None
    return center, _largest_square(X, center)


def _with_kernel(training: TrainingData, plan: FitPlan) -> TrainingData:
    """Return the training data with gradients for another kernel, which `set_params` has set."""
    samples = training.samples
    assert samples is not None
    center, square = _origin(plan, samples.matrix())
    kernel = _Kernel(plan, samples, center, square)
    solved = []
    for old in training.solved or []:
        dual = replace(old.dual)
        dual.gradient = kernel.gradient(dual)
        solved.append(replace(old, dual=dual, moved=0.0, verified=None))
    return replace(
        training, solved=solved, kernel=plan.kernel, square=square, center=center, kernel_rows=[]
    )


class _Kernel:
    """The kernel of the samples of a plan: sums over them in float64, and kernel rows."""

    def __init__(self, plan: FitPlan, samples: Samples, center: Array | None, square: float):
        self.plan, self.samples, self.tol = plan, samples, plan.model.tol
        self.center, self.square = center, square
        # Rounding error of a kernel value in the solver, and in the rows that are kept. They are
        # computed in float64, so that gradients stay precise for many updates.
        single = _core.float32_rounding(plan.kernel.native, square)
        is_single = single is not None and np.dtype(plan.model.dtype) == np.float32
        self.dtype: Any = np.dtype(np.float32 if is_single else np.float64)
        largest = largest_value(plan.kernel, square)
        self.rounding = ROUNDING_OF_ROWS * float(np.finfo(self.dtype).eps) * largest
        self.rounding_of_solver = self.rounding if single is None else max(single, self.rounding)
        self.cache: KernelRows | None = None

    def take_rows(self, training: TrainingData) -> None:
        """Take the kernel rows of earlier updates, which another update may not use then."""
        try:
            rows = training.kernel_rows.pop()
        except IndexError:
            return
        if rows.fits(self.samples, self.dtype):
            self.cache = rows

    def precise(self, dual: Dual) -> Kernel:
        """Return the kernel, with distances by differences if norms would be too imprecise."""
        kernel = self.plan.kernel
        differences = kernel.name == "rbf" and needs_differences(
            kernel, self.square, Duals.of([dual]), self.tol
        )
        return replace(kernel, differences=differences)

    def rows(self) -> KernelRows:
        """Return the kernel rows that are kept from update to update."""
        if self.cache is None:
            limit = min(int(CACHE_FRACTION * self.plan.cache_bytes()), MAX_CACHE_BYTES)
            self.cache = KernelRows(self.samples, limit, self.dtype)
        return self.cache

    def values(self, dual: Dual) -> KernelValues:
        """Return a function that computes the kernel of some slots with others."""
        samples, kernel = self.samples, self.precise(dual)
        center = None if kernel.differences else self.center

        def compute(some: Indices, columns: Indices) -> Array:
            count = len(some)
            values = np.zeros((count, len(columns)))
            work = float(values.size) * (samples.shape[1] + MULTIPLICATIONS_PER_PAIR)
            _core.add_kernel(
                kernel.native, native(samples.data[some]), center, np.arange(count),
                np.ones((count, 1)), native(samples.in_use()), columns, values,
                self.plan.threads(work), 0.0, np.arange(count + 1),
            )  # fmt: skip
            return values

        return compute

    def gradient(self, dual: Dual) -> Array:
        """Return the gradient of a dual at its z."""
        used = np.flatnonzero(dual.z)
        sums = self.sums(self.samples[dual.rows[used]], dual.z[used], dual)
        return np.asarray(dual.linear + sums[self.samples.slots[dual.rows]])

    def sums(self, queries: Any, weights: Array, dual: Dual) -> Array:
        """Return the kernel of each slot with the queries, times their weights."""
        samples = self.samples
        sums: Array = np.zeros((1, samples.used))
        if sums.size == 0 or len(weights) == 0:
            return np.asarray(sums[0])
        data, columns, center, kernel = prepared_sums(
            self.plan.kernel, queries, samples.in_use(), Duals.of([dual]), self.tol
        )
        pairs = float(len(weights)) * samples.used
        work = pairs * (samples.shape[1] + MULTIPLICATIONS_PER_PAIR)
        _core.add_kernel(
            kernel.native, data, center, np.arange(len(weights)),
            np.ascontiguousarray(weights[:, None]), columns, np.arange(sums.shape[1]), sums,
            self.plan.threads(work), 0.0,
        )  # fmt: skip
        return np.asarray(sums[0])

    def judged(self, dual: Dual, extra: float, error: float, n_iter: int) -> Solution:
        """Return the solution at the z of a dual, whose gradient has been compared."""
        gradient = dual.gradient
        assert gradient is not None
        outcome = judge(
            dual, gradient, _core.StopReason.optimal, n_iter, extra=extra, error=error, tol=self.tol
        )
        whole = Duals.of([dual])

        def rounding(*_: Any) -> list[float]:
            some = self._compared(dual)
            rows = self.samples[dual.rows[some]]
            data, _, center, kernel = prepared_sums(self.plan.kernel, rows, rows, whole, self.tol)
            return rounding_of_multipliers(
                data, center, kernel, _part(dual, some), gradient[some], outcome.multiplier
            )

        (solution,) = conclude(
            whole, gradient, outcome.numbers, tol=self.tol, timed_out=False, rounding=rounding
        )
        return solution

    def _compared(self, dual: Dual) -> Indices:
        """Return the support vectors and the rows whose gradients are compared."""
        assert dual.gradient is not None
        needed = dual.z != 0
        needed[_extremes(dual, dual.gradient)] = True
        return np.flatnonzero(needed)

    def certified(self, dual: Dual, n_iter: int) -> tuple[Solution, float, Indices | None]:
        """Return the solution at the z of a dual with the certificate of a fit, as `SolvedDual`."""
        gradient = dual.gradient
        assert gradient is not None
        some = self._compared(dual)
        known = gradient[some]
        data = native(self.samples[dual.rows[some]])
        error, extra = examined(
            data, None, self.plan.kernel, _part(dual, some), known, tol=self.tol, threads=1
        )
        gradient[some] = known  # with the corrections, if any
        verified = np.array(_extremes(dual, gradient)) if extra == 0 else None
        return self.judged(dual, extra, error, n_iter), 0.0, verified


def _part(dual: Dual, some: Indices) -> Dual:
    """Return a dual with some variables only, and their samples as its data."""
    return Dual(
        np.arange(len(some)), dual.linear[some], dual.lower[some], dual.upper[some],
        np.searchsorted(some, dual.starts), dual.totals, dual.z[some],
        None if dual.l1 is None else dual.l1[some],
    )  # fmt: skip


def _derivatives(dual: Dual, gradient: Array) -> tuple[Array, Array]:
    """Return the left and right derivatives, infinite where z cannot decrease or increase."""
    z = dual.z
    down, up = gradient, gradient
    if dual.l1 is not None:
        down, up = (
            gradient + np.where(z > 0, dual.l1, -dual.l1),
            gradient + np.where(z >= 0, dual.l1, -dual.l1),
        )
    return np.where(z > dual.lower, down, -np.inf), np.where(z < dual.upper, up, np.inf)


def _extremes(dual: Dual, gradient: Array) -> list[int]:
    """Return the variables of each group with the extreme derivatives."""
    left, right = _derivatives(dual, gradient)
    found = []
    for group in dual.groups:
        if group.start < group.stop:
            ends = left[group].argmax(), right[group].argmin()
            found += [group.start + int(end) for end in ends]
    return found


def _joining(
    dual: Dual, gradient: Array, members: Indices, multiplier: Sequence[float], allowed: float
) -> Indices | None:
    """Return variables that a repair solves for in addition to its members.

    These are the free variables, and in each group those with the largest violations, or closest to
    a violation, relative to the last multipliers. A new sample may violate the conditions so much
    that the middle of the extreme derivatives is far from the multiplier. The result is None if the
    violation is allowed.
    """
    left, right = _derivatives(dual, gradient)
    is_in = (dual.lower < dual.z) & (dual.z < dual.upper)
    if dual.l1 is not None:
        is_in &= dual.z != 0
    worst = 0.0
    for group, middle in zip(dual.groups, multiplier, strict=True):
        if group.start == group.stop:
            continue
        most, least = left[group].max(), right[group].min()
        if not (np.isfinite(most) and np.isfinite(least)):
            continue  # all variables of the group are at the same bound
        worst = max(worst, most - least)
        violation = np.maximum(left[group] - middle, middle - right[group])
        violation[is_in[group]] = -np.inf
        first, last = np.searchsorted(members, [group.start, group.stop])
        violation[members[first:last] - group.start] = -np.inf
        some: Any = slice(None)
        if len(violation) > MAX_JOINING:
            some = np.argpartition(violation, -MAX_JOINING)[-MAX_JOINING:]
        is_in[group][some] = True
    return None if worst <= allowed else np.flatnonzero(is_in)


class _Repair:
    """Repairs the duals of a model after a change of the samples."""

    def __init__(
        self, model: Any, kernel: _Kernel, training: TrainingData, kept: Indices, X_new: Any
    ):
        self.model, self.kernel, self.plan, self.before = model, kernel, kernel.plan, training
        assert training.samples is not None
        self.before_slots = training.samples.slots
        self.place = np.full(len(self.before_slots), -1)
        self.place[kept] = np.arange(len(kept))
        self.first_new, self.X_new = len(kept), X_new
        self.ends = time.perf_counter() + self.plan.time_limit()

    def run(self, old: SolvedDual, dual: Dual) -> SolvedDual:
        """Return a new dual at its solution, from the old one."""
        before = old.dual
        rows = self.place[before.rows]
        stays = rows >= 0
        kernel = self.kernel
        # Parameters may have changed since the last update: a smaller `tol` needs a more precise
        # gradient. Errors of kernel values are nearly independent, so their squares add up.
        is_precise = kernel.rounding * np.sqrt(old.moved) <= MAX_DRIFT * kernel.tol
        if (
            np.array_equal(rows, dual.rows)
            and np.array_equal(dual.upper, before.upper)
            and np.array_equal(dual.totals, before.totals)
            and is_precise
            and old.verified is not None
            and old.solution.kkt_violation <= kernel.tol
            and old.solution.error <= MAX_DRIFT * kernel.tol
        ):
            dual.z, dual.gradient = before.z, before.gradient
            return replace(old, dual=dual)
        verified = self._start(old, dual, rows, stays)
        assert dual.gradient is not None
        is_precise &= old.solution.error <= MAX_DRIFT * kernel.tol
        if is_precise and verified is not None:
            extremes = _extremes(dual, dual.gradient)
            # These were compared with precise values for the last certificate, and are the same.
            if {*extremes} <= {*verified.tolist()}:
                solution = kernel.judged(dual, 0.0, old.solution.error, 0)
                if solution.status == Status.OPTIMAL:
                    return SolvedDual(dual, solution, old.moved, verified)
        moved, n_iter = old.moved, 0
        if len(dual.z) >= MIN_VARIABLES_TO_RESTRICT:
            n_iter, change = self._repaired(dual, old.solution.multiplier)
            moved += change
        if kernel.rounding * np.sqrt(moved) > MAX_DRIFT * kernel.tol:
            dual.gradient, moved = kernel.gradient(dual), 0.0
        solution, _, verified = kernel.certified(dual, n_iter)
        if solution.status != Status.OPTIMAL:
            self.plan.matrix = kernel.samples.matrix()
            (solution,) = self.plan.solve(Duals.of([dual]), cold=False, keep_going=None)
            solution = solution._replace(n_iter=solution.n_iter + n_iter)
            ratio = kernel.rounding_of_solver / kernel.rounding
            moved += float(np.sum((ratio * (solution.z - dual.z)) ** 2))
            dual.z, dual.gradient, verified = solution.z, solution.gradient, None
        return SolvedDual(dual, solution, moved, verified)

    def _start(self, old: SolvedDual, dual: Dual, rows: Indices, stays: Any) -> Indices | None:
        """Set z and the gradient from the old solution, with z changed so that the sums hold.

        Returns the variables of `old.verified`, or None if z has changed or one of them is removed.
        """
        before = old.dual
        assert before.gradient is not None
        kernel = self.kernel
        is_new = dual.rows >= self.first_new
        # Slices are copied faster than indices. Most updates only add or only remove samples.
        at: Any = np.flatnonzero(~is_new) if is_new.any() else slice(None)
        was: Any = slice(None) if stays.all() else np.flatnonzero(stays)
        if not np.array_equal(dual.rows[at], rows[was]):
            # The dual of two classes without weight has variables, until a sample has weight.
            dual.gradient = kernel.gradient(dual)
            return None
        value = np.zeros(len(dual.z))
        value[at] = before.z[was]
        gradient = dual.linear.copy()
        gradient[at] = before.gradient[was]
        dual.gradient = gradient
        new = np.flatnonzero(is_new)
        if len(new):
            gradient[new] += self._new_sums(before)[dual.rows[new] - self.first_new]
        removed = np.flatnonzero(~stays)
        gone = removed[before.z[removed] != 0]
        fits = len(gone) == 0 and np.array_equal(dual.totals, before.totals)
        if fits and (dual.lower <= value).all() and (value <= dual.upper).all():
            dual.z = value
            if old.verified is None or not stays[old.verified].all():
                return None
            verified = old.verified
            if not isinstance(was, slice):
                verified = np.searchsorted(was, verified)
            return verified if isinstance(at, slice) else np.asarray(at[verified])
        dual.z = value.copy()
        continue_from(replace(dual, z=value), dual)
        changed = np.flatnonzero(dual.z != value)
        last = self.before.samples
        assert last is not None
        change = (dual.z - value)[changed]
        sums = kernel.sums(kernel.samples[dual.rows[changed]], change, dual)
        sums += kernel.sums(last[before.rows[gone]], -before.z[gone], dual)
        gradient += sums[kernel.samples.slots[dual.rows]]
        return None

    def _new_sums(self, before: Dual) -> Array:
        """Return the kernel of each new sample with the old support vectors, times their z."""
        model, kernel = self.model, self.kernel
        last = self.before.samples
        assert last is not None
        z = np.bincount(before.rows, before.z, minlength=len(last.slots))
        support, vectors = model.support_, model.support_vectors_
        if np.count_nonzero(z) != np.count_nonzero(z[support]):
            # In nu-regression, a sample whose two variables cancel is not a support vector.
            support = np.flatnonzero(z)
            vectors = last[support]
        work = float(len(support)) * self.X_new.shape[0] * self.X_new.shape[1]
        sums = decide(
            vectors, kernel.precise(before), z[support][:, None], self.X_new,
            threads=self.plan.threads(work), laid_out=model._laid_out,
        )  # fmt: skip
        return np.asarray(sums[:, 0])

    def _repaired(self, dual: Dual, multiplier: Sequence[float]) -> tuple[int, float]:
        """Solve a dual from its z for the variables that can change, as far as possible.

        `multiplier` has the multipliers of the last solution. Returns the number of iterations and
        the sum of the squared changes of z.
        """
        kernel, plan = self.kernel, self.plan
        gradient = dual.gradient
        assert gradient is not None
        limit, n_iter, moved = plan.max_iterations(), 0, 0.0
        members: Indices = np.zeros(0, np.int64)
        for _ in range(MAX_ROUNDS):
            joining = _joining(dual, gradient, members, multiplier, TARGET_OF_REPAIR * kernel.tol)
            seconds = self.ends - time.perf_counter()
            if joining is None or n_iter >= limit or seconds <= 0:
                break
            members = np.union1d(members, joining)
            bytes_of_block = len(members) ** 2 * kernel.dtype.itemsize
            if len(members) > MAX_RESTRICTED_VARIABLES or bytes_of_block > plan.cache_bytes():
                break
            slots = kernel.samples.slots[dual.rows[members]]
            some, at = np.unique(slots, return_inverse=True)
            if len(some) == len(slots):
                hessian = kernel.rows().block(slots, kernel.values(dual))
            else:  # in nu-regression, two variables can have the same slot
                hessian = kernel.rows().block(some, kernel.values(dual))[np.ix_(at, at)]
            z = dual.z[members]
            others = dual.z.copy()
            others[members] = 0.0
            restricted = Dual(
                np.arange(len(members)), gradient[members] - hessian @ z,
                dual.lower[members], dual.upper[members], np.searchsorted(members, dual.starts),
                dual.totals - [math.fsum(others[group].tolist()) for group in dual.groups], z,
                None if dual.l1 is None else dual.l1[members], gradient[members], False,
            )  # fmt: skip
            (solution,) = solve(
                hessian, Kernel("precomputed"), [restricted], tol=TARGET_OF_ROUND * kernel.tol,
                max_iter=limit - n_iter, time_limit=seconds, cache_bytes=plan.cache_bytes(),
                threads=1, dtype=kernel.dtype, rule=plan.model.rule, cold=False,
            )  # fmt: skip
            n_iter += max(solution.n_iter, 1)
            multiplier = solution.multiplier
            change = solution.z - z
            changed = np.flatnonzero(change)
            if len(changed) == 0:
                break
            moved += float(change @ change)
            dual.z[members] = solution.z
            some, at = np.unique(slots[changed], return_inverse=True)
            total: Array = np.bincount(at, change[changed]).astype(np.float64)
            sums = kernel.rows().combined(kernel.samples, some, total, kernel.values(dual))
            if sums is None:
                sums = kernel.sums(kernel.samples.data[some], total, dual)
            gradient += sums[kernel.samples.slots[dual.rows]]
        return n_iter, moved
