"""Conversion of fitted models to scikit-learn's own estimators."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy
from sklearn.pipeline import Pipeline

from .._validation import Array
from .compatibility import parameter_defaults
from .data import dense

# Fitted attributes that have the same name and meaning in scikit-learn. Some estimators have only
# some of them.
SHARED = (
    "_sparse", "_gamma", "_n_support", "_probA", "_probB", "_effective_probability", "shape_fit_",
    "fit_status_", "support_", "dual_coef_", "intercept_", "n_iter_", "offset_", "classes_",
    "class_weight_", "n_features_in_", "feature_names_in_",
)  # fmt: skip


def to_sklearn(model: Any) -> Any:
    """Return a fitted model that consists of scikit-learn's own estimators.

    Use it for tools that require scikit-learn's estimators, such as skl2onnx.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted estimator of `pairstep.svm`, a pipeline that contains some, or a fitted search
        such as `SVCCV` or GridSearchCV, whose `best_estimator_` is converted.

    Returns
    -------
    object
        The instance of the class with the same name in `sklearn.svm`, or a pipeline of the same
        steps in which the estimators of `pairstep.svm` are replaced.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairstep import svm
    >>> model = make_pipeline(StandardScaler(), svm.SVC()).fit([[0.0], [1.0]], ["low", "high"])
    >>> svm.to_sklearn(model)
    Pipeline(steps=[('standardscaler', StandardScaler()), ('svc', SVC())])
    """
    if isinstance(model, Pipeline):
        pipeline = copy.copy(model)
        pipeline.steps = [
            (name, to_sklearn(step) if _is_convertible(step) else step)
            for name, step in model.steps
        ]
        return pipeline
    if hasattr(model, "best_estimator_"):
        return to_sklearn(model.best_estimator_)
    if not hasattr(model, "to_sklearn"):
        raise TypeError(
            "model must be a fitted estimator of pairstep.svm, a Pipeline or a fitted search with "
            f"refit=True, got {type(model).__name__}"
        )
    return model.to_sklearn()


def _is_convertible(step: Any) -> bool:
    """Return whether a step of a pipeline has to be converted."""
    return isinstance(step, Pipeline) or any(
        hasattr(step, name) for name in ("best_estimator_", "to_sklearn")
    )


def hint_for(model: Any) -> str:
    """Return what to pass instead of a pipeline or search, as the end of an error message."""
    if isinstance(model, Pipeline):
        return "; pass pipeline[-1], and save the other steps separately (for example with skops)"
    if hasattr(model, "best_estimator_"):
        return "; pass search.best_estimator_"
    if hasattr(model, "cv_results_"):
        return "; fit the search with refit=True and pass search.best_estimator_"
    return ""


def as_sklearn(model: Any, Estimator: Any) -> Any:
    """Return an instance of `Estimator` with the parameters and the fit of a model."""
    parameters = model.get_params(deep=False)
    if parameters["cache_size"] == "auto":
        parameters["cache_size"] = parameter_defaults(Estimator)["cache_size"]
    theirs = Estimator(
        **{
            name: parameters[name]
            for name in parameter_defaults(Estimator)
            if parameters[name] != "deprecated"  # not every release has this default
        }
    )
    vars(theirs).update(_probA=np.empty(0), _probB=np.empty(0), _effective_probability=False)
    vars(theirs).update(
        (name, copy.deepcopy(vars(model)[name])) for name in SHARED if name in vars(model)
    )
    theirs._num_iter = np.array(model.n_iter_, np.int32, ndmin=1)
    theirs.support_vectors_ = model.support_vectors_.astype(np.float64)
    if model._sparse:
        theirs.support_vectors_ = scipy.sparse.csr_matrix(theirs.support_vectors_)
        theirs.dual_coef_ = _all_stored(dense(model.dual_coef_))
    # LIBSVM's own coefficients: with two classes the first one is positive.
    theirs._dual_coef_ = model._sign * theirs.dual_coef_
    theirs._intercept_ = model._sign * theirs.intercept_
    # Predictions pass the training samples to a kernel that is a function.
    theirs._BaseLibSVM__Xfit = model._X_fit
    return theirs


def _all_stored(coefficients: Array) -> Any:
    """Return a sparse matrix that stores its zeros, which is how LIBSVM reads coefficients."""
    rows, columns = coefficients.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    starts = columns * np.arange(rows + 1, dtype=np.int32)
    return scipy.sparse.csr_matrix((coefficients.ravel(), indices, starts), (rows, columns))
