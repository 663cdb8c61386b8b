"""Check parameters and fitted attributes that were read from a file, and make a model of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from sklearn.base import is_classifier

from .base import BaseSVM
from .classification import SVC, NuSVC
from .compatibility import parameter_defaults
from .engine import MAX_SPARSE_COLUMNS
from .export import SHARED
from .novelty import OneClassSVM
from .parameters import quantiles_of, validate_parameters
from .regression import SVR, NuSVR, QuantileSVR

ESTIMATORS: dict[str, type[BaseSVM]] = {
    model.__name__: model for model in (SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM)
}
KEPT = (*SHARED, "support_vectors_", "optimality_", "_label_order")
# Parameters and attributes of earlier versions, which are dropped from their files.
REMOVED = frozenset({"rule", "compression_"})
MAX_INTEGER = 2**63  # limit of integer parameters, which native code stores with 64 bits


def state_of(model: Any) -> dict[str, Any]:
    """Return the fitted attributes to save, by name."""
    return {name: vars(model)[name] for name in KEPT if name in vars(model)}


def restored(Estimator: type[BaseSVM], parameters: dict[str, Any], state: dict[str, Any]) -> Any:
    """Return a model with these parameters and fitted attributes.

    Raises
    ------
    ValueError
        If a parameter or an attribute is invalid, or inconsistent with the others.
    """
    parameters = {name: value for name, value in parameters.items() if name not in REMOVED}
    state = {name: value for name, value in state.items() if name not in REMOVED}
    unknown = sorted({*parameters} - {*parameter_defaults(Estimator)} | {*state} - {*KEPT})
    if unknown:
        raise ValueError(
            f"{Estimator.__name__} has no {unknown[0]}; the file may be from a later version"
        )
    for name, value in parameters.items():
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise ValueError(
                f"{name} must be below 2**63, got a number of {len(str(value))} digits"
            )
    model: Any = Estimator(**parameters)
    validate_parameters(model)
    model.__dict__.update(state, _X_fit=None)
    for name, holds in _checks(model):
        if not holds:
            raise ValueError(
                f"{name} is inconsistent with the rest of the model, or invalid; the file may be "
                "damaged"
            )
    return model


def _checks(model: Any) -> Iterator[tuple[str, bool]]:
    """Yield each attribute, and whether it is valid and consistent with those before it."""
    fit = vars(model)
    (rows, width), precomputed = fit["shape_fit_"], model.kernel == "precomputed"
    yield "shape_fit_", all(type(size) is int and size > 0 for size in (rows, width))
    yield "n_features_in_", fit["n_features_in_"] == width <= MAX_SPARSE_COLUMNS and rows < 2**62
    yield "n_features_in_", not precomputed or rows == width

    k = 2
    if is_classifier(model):
        classes = fit["classes_"]
        k = len(classes)
        yield "classes_", _is_vector(classes, "biufU", k) and k >= 2
        yield "classes_", len(np.unique(classes)) == k
        order = fit.get("_label_order", np.arange(k))
        yield "_label_order", _is_vector(order, "i", k) and sorted(order) == list(range(k))
        yield "class_weight_", _is_vector(fit["class_weight_"], "f", k)
    # Coefficients of each support vector, and decision functions.
    outputs, pairs = k - 1, k * (k - 1) // 2
    if isinstance(model, QuantileSVR):
        outputs = pairs = len(quantiles_of(model.quantile))

    support, n = fit["support_"], len(fit["support_"])
    yield "support_", _is_vector(support, "i", n)
    yield "support_", support.min(initial=0) >= 0 and support.max(initial=0) < rows
    sizes = fit["_n_support"]
    yield "_n_support", _is_vector(sizes, "i", k) and sizes.min() >= 0
    yield "_n_support", sizes.sum() == n if is_classifier(model) else set(sizes) == {n}
    vectors, coefficients = fit["support_vectors_"], fit["dual_coef_"]
    yield "support_vectors_", vectors.shape == ((0, 0) if precomputed else (n, width))
    yield "dual_coef_", coefficients.shape == (outputs, n)
    for name, matrix in (("support_vectors_", vectors), ("dual_coef_", coefficients)):
        yield name, scipy.sparse.issparse(matrix) is fit["_sparse"] and _is_matrix(matrix)
    yield "intercept_", _is_vector(fit["intercept_"], "f", pairs)
    yield "offset_", np.array_equal(fit.get("offset_", -model.intercept_), -model.intercept_)
    yield "_gamma", type(fit["_gamma"]) is float and 0 <= fit["_gamma"] < math.inf

    steps = fit["n_iter_"]
    several = is_classifier(model) or np.ndim(getattr(model, "quantile", 0)) > 0
    yield "n_iter_", _is_vector(steps, "i", pairs) if several else type(steps) is int
    if is_classifier(model):
        known = fit["_effective_probability"]
        yield "probability", known is (model.probability is True)
        for name in ("_probA", "_probB"):
            yield name, _is_vector(fit[name], "f", pairs if known else 0)
    if "optimality_" in fit:
        for name, kind in (("kkt_violation", "f"), ("duality_gap", "f"), ("status", "U")):
            yield name, getattr(fit["optimality_"], name).shape == (pairs,)
            yield name, getattr(fit["optimality_"], name).dtype.kind == kind
    yield "fit_status_", fit.get("fit_status_", 0) in (0, 1)
    names = fit.get("feature_names_in_")
    yield "feature_names_in_", names is None or names.shape == (width,)
    yield "feature_names_in_", names is None or all(type(name) is str for name in names)


def _is_vector(value: Any, kinds: str, size: int) -> bool:
    right = isinstance(value, np.ndarray) and value.shape == (size,) and value.dtype.kind in kinds
    return right and _is_finite(value)


def _is_matrix(value: Any) -> bool:
    """Return whether a matrix has finite floats and, if sparse, is in canonical format."""
    if scipy.sparse.issparse(value):
        value.check_format(full_check=True)
        if not value.has_canonical_format:
            return False
        value = value.data
    return value.dtype in (np.float32, np.float64) and _is_finite(value)


def _is_finite(value: Any) -> bool:
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())
