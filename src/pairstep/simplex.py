"""Linear regression whose coefficients sum to a total, for scikit-learn."""
# ruff: noqa: E402 - the check for scikit-learn comes before the imports that need it

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .extras import needed

needed("sklearn", by="SimplexRegressor")

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._validation import Array
from .constraints import GroupLabels, GroupLimit, GroupTotal, SumBox
from .labels import Axis, aligned
from .objectives import Slopes
from .result import BatchResult, Result, Status
from .solve.qp import simplex_lstsq

# Parameters with one entry per feature, which are aligned with the columns of X.
PER_FEATURE = ("lower", "upper", "coefficients", "groups", "center")


class SimplexRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least squares with weights that sum to a total within bounds.

    Minimizes ``sum_s sample_weight_s (y_s - intercept - X_s coef)^2 / 2 + ridge |coef|^2 / 2``.
    With the default settings predictions are weighted averages of the columns of X: the weights of
    a synthetic control, the abundances of an unmixed spectrum, or, as ``final_estimator`` of
    scikit-learn's ``StackingRegressor``, the weights of the stacked models.

    Parameters
    ----------
    total : float or pair (low, high)
        Required sum of the weights, or the range of their sum.
    lower : float, array_like or Series of shape (n_features,)
        Lower bounds of the weights. A Series is aligned with the columns of X by its labels.
    upper : float, array_like or Series of shape (n_features,), optional
        Upper bounds; none by default.
    coefficients, groups, group_total, group_lower, group_upper
        Coefficients of the sum, and limits of groups of weights, as in `SumBox`.
    constraint : SumBox, optional
        The constraint as an object, in place of the arguments above.
    ridge : float
        Weight of the squared norm of the weights.
    l1, center
        Weights and centers of L1 terms, as in `solve_qp`; for one output only.
    fit_intercept : bool
        Whether to add a free constant, which is not penalized. X must then be dense.
    tol : float
        Tolerance of the solver, as in `minimize`.
    max_iter : int, optional
        Maximum number of iterations per output, as in `minimize`.
    time_limit : float, optional
        Maximum number of seconds for all outputs.
    verbose : bool
        Whether to print progress, as in `minimize`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        The weights. The bounds hold exactly, and the sum equals the total within one ulp.
    intercept_ : float or ndarray of shape (n_outputs,)
        The constant; 0 without `fit_intercept`.
    result_ : Result or BatchResult
        The solver's result; its `weights` have the names of the columns of X.
    n_iter_ : int or ndarray of shape (n_outputs,)
        Number of iterations of the solver, at least 1 as scikit-learn requires.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep import SimplexRegressor
    >>> forecasts = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 7.0], [4.0, 4.0]])
    >>> model = SimplexRegressor().fit(forecasts, [1.5, 2.0, 4.0, 4.0])
    >>> model.coef_, model.predict([[0.0, 4.0]])
    (array([0.75, 0.25]), array([1.]))
    """

    def __init__(
        self,
        *,
        total: float | tuple[float, float] = 1.0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike | None = None,
        coefficients: ArrayLike | None = None,
        groups: GroupLabels | None = None,
        group_total: GroupTotal | None = None,
        group_lower: GroupLimit | None = None,
        group_upper: GroupLimit | None = None,
        constraint: SumBox | None = None,
        ridge: float = 0.0,
        l1: Slopes | None = None,
        center: ArrayLike = 0.0,
        fit_intercept: bool = False,
        tol: float = 1e-8,
        max_iter: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
    ):
        self.total = total
        self.lower = lower
        self.upper = upper
        self.coefficients = coefficients
        self.groups = groups
        self.group_total = group_total
        self.group_lower = group_lower
        self.group_upper = group_upper
        self.constraint = constraint
        self.ridge = ridge
        self.l1 = l1
        self.center = center
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the weights.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            One column per weight.
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
            The target; each output has its own weights. Rows are matched with those of X by
            position, as everywhere in scikit-learn, not by label.
        sample_weight : array_like of shape (n_samples,), optional
            Weight of each sample.

        Returns
        -------
        SimplexRegressor
            The fitted estimator.
        """
        features = Axis()
        aligned("X", X, Axis(), features)
        given = {name: getattr(self, name) for name in PER_FEATURE}
        given = {name: aligned(name, value, features) for name, value in given.items()}
        l1 = self.l1
        if isinstance(l1, tuple):
            l1 = tuple(aligned("l1", part, features) for part in l1)
        constraint = None if self.constraint is None else self.constraint.along(features)
        X, y = validate_data(
            self, X, y, accept_sparse=self._sparse_formats, dtype=np.float64,
            multi_output=True, y_numeric=True,
        )  # fmt: skip
        y = np.asarray(y, np.float64)
        importance: Array | None = None
        if sample_weight is not None:
            importance = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        X_mean, y_mean = np.zeros(X.shape[1]), np.zeros(y.shape[1:])
        if self.fit_intercept:
            # For any weights, the best constant makes the means of y and of the prediction equal.
            X_mean, y_mean = (np.average(v, axis=0, weights=importance) for v in (X, y))
            X, y = X - X_mean, y - y_mean
        if importance is not None:
            X, y = (_scaled_rows(v, np.sqrt(importance)) for v in (X, y))

        result = simplex_lstsq(
            X, y, total=self.total, constraint=constraint, group_total=self.group_total,
            group_lower=self.group_lower, group_upper=self.group_upper, ridge=self.ridge,
            l1=aligned("l1", l1, features), tol=self.tol, max_iter=self.max_iter,
            time_limit=self.time_limit, verbose=self.verbose, **given,
        )  # fmt: skip
        self.result_: Result | BatchResult = replace(result, variables=features)
        _warn_unless_optimal(self.result_, self.tol)
        self.coef_: Array = np.ascontiguousarray(self.result_.x)
        self.intercept_ = y_mean - self.coef_ @ X_mean
        self.n_iter_ = np.maximum(self.result_.n_iter, 1)
        return self

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            ``X coef + intercept``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csc", "csr"], dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @property
    def _sparse_formats(self) -> list[str] | bool:
        # Centering a sparse X would make it dense.
        return False if self.fit_intercept else ["csc", "csr"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse_formats)
        # Weighted averages of the columns of X may be far from y.
        tags.regressor_tags.poor_score = True
        return tags


def _scaled_rows(values: Any, scale: Array) -> Any:
    if scipy.sparse.issparse(values):
        return scipy.sparse.diags_array(scale) @ values
    return values * (scale if values.ndim == 1 else scale[:, None])


def _warn_unless_optimal(result: Result | BatchResult, tol: float) -> None:
    failed = np.atleast_1d(result.status != Status.OPTIMAL)
    if not failed.any():
        return
    message = (
        result.message
        if isinstance(result, Result)
        else f"{failed.sum()} of {failed.size} outputs did not converge: their largest KKT "
        f"violation is {result.kkt_violation[failed].max():.2e}, with tol={tol:g} relative to the "
        "gradient; raise max_iter or tol"
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
