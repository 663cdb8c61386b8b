"""Fitted machines as scikit-learn's own estimators."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse

from .._validation import Array

# What both keep of a fit under the same name; some machines have only some of it.
SHARED = (
    "_sparse", "_gamma", "_n_support", "_probA", "_probB", "_effective_probability", "shape_fit_",
    "fit_status_", "support_", "dual_coef_", "intercept_", "n_iter_", "offset_", "classes_",
    "class_weight_", "n_features_in_", "feature_names_in_",
)  # fmt: skip


def as_sklearn(machine: Any, Estimator: Any) -> Any:
    """An instance of `Estimator` with the machine's parameters and fit."""
    parameters = machine.get_params(deep=False)
    theirs = Estimator(
        **{
            name: parameters[name]
            for name in Estimator._get_param_names()
            if parameters[name] != "deprecated"  # not every version has this default
        }
    )
    vars(theirs).update(_probA=np.empty(0), _probB=np.empty(0), _effective_probability=False)
    vars(theirs).update(
        (name, copy.deepcopy(vars(machine)[name])) for name in SHARED if name in vars(machine)
    )
    theirs._num_iter = np.array(machine.n_iter_, np.int32, ndmin=1)
    theirs.support_vectors_ = machine.support_vectors_.astype(np.float64)
    if machine._sparse:
        theirs.support_vectors_ = scipy.sparse.csr_matrix(theirs.support_vectors_)
        theirs.dual_coef_ = _all_stored(machine._dense_coefficients())
    # LIBSVM's own: with two classes the first one is positive.
    theirs._dual_coef_ = machine._sign * theirs.dual_coef_
    theirs._intercept_ = machine._sign * theirs.intercept_
    # A function is asked for its kernel with new samples; theirs is a name of the class's own.
    theirs._BaseLibSVM__Xfit = machine._X_fit
    return theirs


def _all_stored(coefficients: Array) -> Any:
    """A sparse matrix, with its zeros stored as LIBSVM reads it; of the kind that theirs are."""
    rows, columns = coefficients.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    starts = columns * np.arange(rows + 1, dtype=np.int32)
    return scipy.sparse.csr_matrix((coefficients.ravel(), indices, starts), (rows, columns))
