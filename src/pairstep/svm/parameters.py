"""The parameters that all estimators share: their valid values, and the check before a fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Array, vector
from .compatibility import (
    Hidden,
    Interval,
    Options,
    StrOptions,
    parameter_defaults,
    validate_parameter_constraints,
)
from .engine import KERNELS

MAX_GPUS = 16  # of one computer; no server has more

CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "degree": [Interval(Integral, 0, 2**31 - 1, closed="both")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="right")],
    "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    "epsilon": [Interval(Real, 0.0, None, closed="left")],
    "quantile": [Interval(Real, 0.0, 1.0, closed="neither"), "array-like"],
    "non_crossing": ["boolean"],
    "shrinking": ["boolean"],
    "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "random_state": ["random_state"],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    "n_jobs": [Integral, None],
    "warm_start": ["boolean"],
    "time_limit": [Interval(Real, 0.0, None, closed="left"), None],
    "dtype": [
        Options(type, {np.float32, np.float64}),
        StrOptions({"float32", "float64"}),
        Hidden(Options(np.dtype, {np.dtype(np.float32), np.dtype(np.float64)})),
    ],
    "support_columns": ["boolean"],
    "device": [StrOptions({"cpu", "auto", "cuda", *(f"cuda:{k}" for k in range(MAX_GPUS))})],
}


def quantiles_of(quantile: float | ArrayLike) -> Array:
    """Return the quantiles that the parameter `quantile` stands for, as a vector.

    Raises
    ------
    ValueError
        If there is none, or one is repeated or not between 0 and 1.
    """
    quantiles = vector("quantile", np.atleast_1d(quantile))
    if not len(quantiles) or not ((quantiles > 0) & (quantiles < 1)).all():
        raise ValueError(
            "quantile must be a number between 0 and 1, or a list of such numbers; got "
            f"{np.asarray(quantile).tolist()}"
        )
    if len(np.unique(quantiles)) < len(quantiles):
        raise ValueError(f"quantile must not repeat a number, got {quantiles.tolist()}")
    return quantiles


def validate_parameters(estimator: Any) -> None:
    """Raise if a parameter of an estimator has an invalid value.

    Default values are valid, so only the others are checked: checking all parameters would take
    longer than a small fit.
    """
    Estimator: Any = type(estimator)
    changed = {
        name: value
        for name, default in parameter_defaults(Estimator).items()
        if (value := getattr(estimator, name)) is not default and name in CONSTRAINTS
    }
    validate_parameter_constraints(CONSTRAINTS, changed, caller_name=Estimator.__name__)
