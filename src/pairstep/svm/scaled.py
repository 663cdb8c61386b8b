"""Pipelines of a StandardScaler and an SVM, the one kind of pipeline that `save` can write."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .._validation import Array

PREFIX = "scaling."  # of the arrays in a file


def split(model: Any) -> tuple[Any, dict[str, Array]]:
    """Return the SVM of a pipeline and the arrays of its scaler.

    Any other model is returned unchanged, without arrays: an SVM alone, or a model for which `save`
    raises an error with advice.
    """
    if not isinstance(model, Pipeline):
        return model, {}
    steps = [step for _, step in model.steps]
    if len(steps) != 2 or type(steps[0]) is not StandardScaler:
        return model, {}
    scaler, svm = steps
    check_is_fitted(scaler)
    width = scaler.n_features_in_
    arrays = {
        f"{PREFIX}mean": scaler.mean_ if scaler.with_mean else np.zeros(width),
        f"{PREFIX}scale": scaler.scale_ if scaler.with_std else np.ones(width),
    }
    if hasattr(scaler, "feature_names_in_"):  # `save` takes the names from the SVM
        svm = copy.copy(svm)
        svm.feature_names_in_ = scaler.feature_names_in_
    return svm, {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def join(model: Any, arrays: dict[str, Any]) -> Any:
    """Return a pipeline of a scaler, from the arrays of `split`, and an SVM; undoes `split`."""
    if not arrays:
        return model
    width = model.n_features_in_
    scaler = StandardScaler(with_mean=bool(arrays[f"{PREFIX}mean"].any()))
    for name in ("mean", "scale"):
        array = arrays.pop(f"{PREFIX}{name}")
        if array.shape != (width,) or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{PREFIX}{name} must have {width} finite numbers, one per feature")
        setattr(scaler, f"{name}_", array)
    if arrays or not (scaler.scale_ > 0).all():
        raise ValueError(
            f"{PREFIX}scale must be positive, and no arrays other than {PREFIX}scale and "
            f"{PREFIX}mean may begin with {PREFIX}"
        )
    scaler.var_, scaler.n_features_in_ = scaler.scale_**2, width
    scaler.n_samples_seen_ = model.shape_fit_[0]
    if hasattr(model, "feature_names_in_"):  # the scaler gets named columns, the SVM an array
        scaler.feature_names_in_ = vars(model).pop("feature_names_in_")
    return Pipeline([("scale", scaler), ("svm", model)])
