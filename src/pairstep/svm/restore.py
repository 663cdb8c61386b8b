"""Machines put together from what a file says of a fit, which is checked as a whole first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier

from .base import SupportVectorMachine
from .classification import SVC, NuSVC
from .export import SHARED
from .novelty import OneClassSVM
from .regression import SVR, NuSVR

MACHINES: dict[str, type[SupportVectorMachine]] = {
    machine.__name__: machine for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
}
KEPT = (*SHARED, "support_vectors_", "optimality_", "_label_order")
WIDEST = 2**31 - 1  # columns that the engine can number


def state_of(machine: Any) -> dict[str, Any]:
    """What a fit has found out, by the names of the attributes."""
    return {name: vars(machine)[name] for name in KEPT if name in vars(machine)}


def restored(
    Machine: type[SupportVectorMachine], parameters: dict[str, Any], state: dict[str, Any]
) -> Any:
    """A machine with these parameters and this fit.

    Raises
    ------
    ValueError
        If a parameter or a part of the fit is not possible, or does not go with the others.
    """
    unknown = sorted({*parameters} - {*Machine._get_param_names()} | {*state} - {*KEPT})
    if unknown:
        raise ValueError(f"{Machine.__name__} knows no {unknown[0]}: is it of a later version?")
    machine: Any = Machine(**parameters)
    machine._validate_params()
    machine.__dict__.update(state, _X_fit=None)
    for name, holds in _checks(machine):
        if not holds:
            raise ValueError(f"{name} does not go with the rest of the machine")
    return machine


def _checks(machine: Any) -> Iterator[tuple[str, bool]]:
    """Whether each part of a fit can be what it is, given those before it."""
    own = vars(machine)
    (rows, width), precomputed = own["shape_fit_"], machine.kernel == "precomputed"
    yield "shape_fit_", all(type(size) is int and size > 0 for size in (rows, width))
    yield "n_features_in_", own["n_features_in_"] == width <= WIDEST and rows < 2**62
    yield "n_features_in_", not precomputed or rows == width

    k = 2
    if is_classifier(machine):
        classes = own["classes_"]
        k = len(classes)
        yield "classes_", _is_vector(classes, "biufU", k) and k >= 2
        yield "classes_", len(np.unique(classes)) == k
        order = own.get("_label_order", np.arange(k))
        yield "_label_order", _is_vector(order, "i", k) and sorted(order) == list(range(k))
        yield "class_weight_", _is_vector(own["class_weight_"], "f", k)
    pairs = k * (k - 1) // 2

    support, n = own["support_"], len(own["support_"])
    yield "support_", _is_vector(support, "i", n)
    yield "support_", support.min(initial=0) >= 0 and support.max(initial=0) < rows
    sizes = own["_n_support"]
    yield "_n_support", _is_vector(sizes, "i", k) and sizes.min() >= 0
    yield "_n_support", sizes.sum() == n if is_classifier(machine) else set(sizes) == {n}
    vectors, coefficients = own["support_vectors_"], own["dual_coef_"]
    yield "support_vectors_", vectors.shape == ((0, 0) if precomputed else (n, width))
    yield "dual_coef_", coefficients.shape == (k - 1, n)
    for name, matrix in (("support_vectors_", vectors), ("dual_coef_", coefficients)):
        yield name, scipy.sparse.issparse(matrix) is own["_sparse"] and _is_matrix(matrix)
    yield "intercept_", _is_vector(own["intercept_"], "f", pairs)
    yield "offset_", np.array_equal(own.get("offset_", -machine.intercept_), -machine.intercept_)
    yield "_gamma", type(own["_gamma"]) is float and 0 <= own["_gamma"] < math.inf

    steps = own["n_iter_"]
    yield "n_iter_", _is_vector(steps, "i", pairs) if is_classifier(machine) else type(steps) is int
    if is_classifier(machine):
        known = own["_effective_probability"]
        yield "probability", known is (machine.probability is True)
        for name in ("_probA", "_probB"):
            yield name, _is_vector(own[name], "f", pairs if known else 0)
    if "optimality_" in own:
        for name, kind in (("kkt_violation", "f"), ("duality_gap", "f"), ("status", "U")):
            yield name, getattr(own["optimality_"], name).shape == (pairs,)
            yield name, getattr(own["optimality_"], name).dtype.kind == kind
    yield "fit_status_", own.get("fit_status_", 0) in (0, 1)
    names = own.get("feature_names_in_")
    yield "feature_names_in_", names is None or names.shape == (width,)
    yield "feature_names_in_", names is None or all(type(name) is str for name in names)


def _is_vector(value: Any, kinds: str, size: int) -> bool:
    right = isinstance(value, np.ndarray) and value.shape == (size,) and value.dtype.kind in kinds
    return right and _is_finite(value)


def _is_matrix(value: Any) -> bool:
    """Whether it has finite floats; if sparse, each once and in its place."""
    if scipy.sparse.issparse(value):
        value.check_format(full_check=True)
        if not value.has_canonical_format:
            return False
        value = value.data
    return value.dtype in (np.float32, np.float64) and _is_finite(value)


def _is_finite(value: Any) -> bool:
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())
