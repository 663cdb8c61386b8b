"""The duals of a fitted model at its solution, from its coefficients.

A fitted model keeps neither its duals nor their gradients. Leave-one-out and updates need them, and
recover them from the training data and the coefficients.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import Array
from .base import BaseSVM
from .compatibility import num_samples
from .data import dense
from .duals import continue_from
from .engine import Dual, Duals
from .model_plans import ClassificationPlan
from .plan import FitPlan


def plan_of_fitted(model: Any, X: Any, y: Any, sample_weight: Any = None) -> FitPlan:
    """Return the plan of the fit of a model, after the kernel has been prepared.

    Gamma and the weights of the classes are those of the fit.

    Raises
    ------
    ValueError
        If the model was fitted to other data.
    """
    plan = FitPlan.of(model)
    plan.model.__dict__.update(probability="deprecated")  # its folds are not repeated
    plan.read(X, y, sample_weight)
    n, fitted = plan.n, model.shape_fit_[0]
    if n != fitted:
        raise ValueError(
            f"X has {n} rows, but the model was fitted to {fitted}: pass the training data"
        )
    require_same(model, plan)
    plan.prepare_kernel()
    plan.gamma = model._gamma
    if isinstance(plan, ClassificationPlan):
        plan.state["class_weight_"] = model.class_weight_
    return plan


def require_same(model: Any, plan: FitPlan) -> None:
    """Raise unless the support vectors of the model are rows of the data."""
    support = model.support_
    if isinstance(plan, ClassificationPlan):
        classes: Any = model.classes_
        own = np.repeat(np.arange(plan.n_classes), model._n_support)  # sorted by class
        same = np.array_equal(classes, plan.state["classes_"])
        if not same or not np.array_equal(plan.targets[support], own):
            raise ValueError("y has other labels than those that the model was fitted to")
    if model.support_vectors_.shape[0] == 0 or num_samples(plan.X) == 0:
        return  # a kernel matrix: the model does not keep the support vectors
    difference = dense(abs(plan.X[support] - model.support_vectors_))
    if difference.shape[0] and difference.max(initial=0.0) > 0:
        raise ValueError("X is not the data that the model was fitted to, or was changed since")


def fitted_duals(model: BaseSVM, plan: FitPlan) -> Duals:
    """Return the duals of a fitted model at its solution, up to rounding."""
    duals = plan.duals()
    coefficients = model._dense_coefficients()
    values = np.zeros((len(coefficients), plan.n))
    values[:, model.support_] = coefficients
    if not isinstance(plan, ClassificationPlan):
        if len(duals) > 1:
            raise ValueError(
                f"{type(model).__name__} has {len(duals)} quantiles, but leave-one-out and updates "
                "need a model with one: fit one model for each"
            )
        for dual in duals:
            _move(dual, values[0][dual.rows])
        return duals
    sign = -1.0 if plan.n_classes == 2 else 1.0
    for (i, j), dual in zip(plan.pairs, duals, strict=True):
        value = sign * np.where(
            plan.targets[dual.rows] == i, values[j - 1][dual.rows], values[i][dual.rows]
        )
        if dual.totals.any():  # nu-classification divides the coefficients by the margin
            value *= np.abs(dual.totals).sum() / max(float(np.abs(value).sum()), 1e-300)
        _move(dual, value)
    return duals


def _move(dual: Dual, value: Array) -> None:
    """Start a dual at the feasible point next to `value`, in place."""
    continue_from(replace(dual, z=value), dual)
