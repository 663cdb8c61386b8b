"""Exact updates of a fitted model: samples are added and removed, and the solution is repaired.

The gradients of all samples are kept from update to update. This file checks the new samples and
turns a fit into a plan with the samples after the update; `repair.py` repairs the solution of each
dual. The certificate is that of a fit, from gradients that are compared with precise values.
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
from .arrays import to_host
from .base import BaseSVM, as_now
from .compatibility import check_sample_weight
from .data import DATA_CHECKS, canonical, is_plain, needs_no_conversion
from .engine import (
    Duals,
    Solutions,
    native,
)
from .fitted_duals import fitted_duals, require_same
from .kernels import require_finite
from .model_plans import ClassificationPlan
from .parameters import validate_parameters
from .plan import FitPlan
from .repair import Repair
from .sample_kernel import SampleKernel
from .samples import Samples
from .training_data import SolvedDual, TrainingData


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
    kernel = SampleKernel(plan, changed, training.center, square)
    kernel.take_rows(training)
    repair = Repair(model, kernel, training, kept, X_new)
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
    kernel = SampleKernel(plan, samples, center, square)
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
    kernel = SampleKernel(plan, samples, center, square)
    solved = []
    for old in training.solved or []:
        dual = replace(old.dual)
        dual.gradient = kernel.gradient(dual)
        solved.append(replace(old, dual=dual, moved=0.0, verified=None))
    return replace(
        training, solved=solved, kernel=plan.kernel, square=square, center=center, kernel_rows=[]
    )
