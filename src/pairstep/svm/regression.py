"""SVM regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from .arrays import from_anywhere
from .base import KernelFunction, SingleDualSVM, of_one_fit
from .documentation import documented
from .model_plans import NuSVRPlan, QuantileSVRPlan, SVRPlan
from .parameters import quantiles_of


class Regressor(RegressorMixin, SingleDualSVM):  # type: ignore[misc]
    """An estimator whose prediction is its decision function."""

    @from_anywhere
    @of_one_fit
    def predict(self, X: Any) -> Array:
        """Predict numbers.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples. With ``kernel="precomputed"`` their kernel matrix with the training samples, or
            with the support vectors if `support_columns` is True.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predictions.
        """
        check_is_fitted(self)
        return self._single_decision(X)


@documented
class SVR(Regressor):
    """Epsilon-support vector regression.

    A drop-in replacement for `sklearn.svm.SVR` with a different solver.

    Parameters
    ----------
    <kernel parameters>
    <tolerance parameters>
    C : float, default=1.0
        Cost of errors. The bound of a dual variable is C times the weight of its sample.
    epsilon : float, default=0.1
        Half the width of the tube: errors up to this size have no cost.
    <memory parameters>
    <iterations parameters>
    <added parameters>

    Attributes
    ----------
    <single attributes>
    <fit attributes>

    Examples
    --------
    >>> from pairstep.svm import SVR
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    >>> model = SVR(kernel="linear", C=10.0, epsilon=0.25).fit(X, y)
    >>> model.predict([[1.0]]).round(3), model.coef_.round(3)
    (array([1.]), array([[0.75]]))
    """

    plan_type = SVRPlan
    _scikit_learn = sklearn.svm.SVR

    def __init__(
        self,
        *,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float | str = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        dtype: DTypeLike = np.float32,
        support_columns: bool = False,
        device: str = "cpu",
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device


@documented
class QuantileSVR(Regressor):
    """Quantile regression with kernels.

    Predicts a quantile of y given x, such as the value that y exceeds in one of ten cases. It
    minimizes ``|w|^2 / 2 + C * (sum of pinball losses)``, where the pinball loss of an error
    e = y - f(x) is ``max(quantile * e, (quantile - 1) * e)`` (Takeuchi, Le, Sears and Smola,
    "Nonparametric quantile estimation", 2006). At most a fraction `quantile` of the training
    samples lies below the predictions, and at most a fraction ``1 - quantile`` above them, up to
    `tol`, if all weights are equal.

    Parameters
    ----------
    quantile : float or array_like of shape (n_quantiles,), default=0.5
        The quantile, between 0 and 1, or several distinct ones. Several quantiles are fitted
        together and share the kernel matrix.
    <kernel parameters>
    <tolerance parameters>
    C : float, default=1.0
        Cost of errors. The dual variable of a sample is between ``-(1 - quantile) * C`` and
        ``quantile * C``, times the weight of the sample.
    non_crossing : bool, default=True
        Whether to sort the predictions of several quantiles for each sample, so that the prediction
        of a larger quantile is never below that of a smaller one (Chernozhukov, Fernandez-Val and
        Galichon, "Quantile and probability curves without crossing", 2010). Whatever y is, sorting
        does not increase the sum of the pinball losses of a sample over the quantiles, and
        decreases it where predictions cross; the loss of one of the quantiles may increase. The fit
        does not depend on it, and it may be changed after `fit`.
    <memory parameters>
    <iterations parameters>
    <added parameters>

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors of all quantiles.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        The support vectors. Empty if the kernel is precomputed or a function.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray or sparse array of shape (n_quantiles, n_SV)
        Coefficients of the support vectors in the prediction of each quantile.
    intercept_ : ndarray of shape (n_quantiles,)
        Constant of the prediction of each quantile.
    coef_ : ndarray or sparse array of shape (n_quantiles, n_features)
        Weights of the features. Only available with a linear kernel.
    n_iter_ : int or ndarray of shape (n_quantiles,)
        Number of iterations, at least 1; an array if `quantile` is a list.
    <fit attributes>

    See Also
    --------
    SVRCV : Search over C and gamma, with `quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep.svm import QuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (500, 1))
    >>> y = np.sin(X.ravel()) + (0.1 + 0.05 * X.ravel()) * rng.normal(size=500)
    >>> model = QuantileSVR(quantile=[0.05, 0.95], C=10.0, gamma=0.1).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> np.mean((low <= y) & (y <= high)).round(1)
    np.float64(0.9)
    """

    plan_type = QuantileSVRPlan

    quantile: float | ArrayLike
    non_crossing: bool

    def __init__(
        self,
        *,
        quantile: float | ArrayLike = 0.5,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        non_crossing: bool = True,
        shrinking: bool = True,
        cache_size: float | str = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        dtype: DTypeLike = np.float32,
        support_columns: bool = False,
        device: str = "cpu",
    ):
        self.quantile = quantile
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.non_crossing = non_crossing
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device

    @from_anywhere
    @of_one_fit
    def predict(self, X: Any) -> Array:
        """Predict quantiles.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples. With ``kernel="precomputed"`` their kernel matrix with the training samples, or
            with the support vectors if `support_columns` is True.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_quantiles)
            The predictions. If `quantile` is a list, a column for each quantile, in its order.
        """
        check_is_fitted(self)
        predicted = self._single_decision(X)
        if np.ndim(self.quantile) == 0:
            return predicted
        predicted = predicted.reshape(len(predicted), -1)
        if self.non_crossing:
            order = np.argsort(quantiles_of(self.quantile))
            predicted[:, order] = np.sort(predicted, axis=1)
        return predicted

    @from_anywhere
    @of_one_fit
    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the fraction of the pinball loss that the predictions explain.

        It is `sklearn.metrics.d2_pinball_score`: 1 minus the pinball loss divided by that of the
        best constant, which is a quantile of y. The best score is 1. R2, which other regressors
        return, measures the distance to the mean and would prefer a model of the mean.
        `sklearn.metrics.mean_pinball_loss` is the loss itself.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `predict`.
        y : array_like of shape (n_samples,)
            Their values.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            The score; the mean over all quantiles if there are several.
        """
        predicted = self.predict(X)
        columns = predicted.reshape(len(predicted), -1).T
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=quantile)
            for column, quantile in zip(columns, quantiles_of(self.quantile), strict=True)
        ]
        return float(np.mean(scores))

    def to_sklearn(self) -> Any:
        """Raise an error: scikit-learn has no quantile regression with kernels.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "scikit-learn has no quantile regression with kernels, so QuantileSVR cannot be "
            "converted; use pairstep.svm.save for a file without pickles"
        )


@documented
class NuSVR(Regressor):
    """Nu-support vector regression.

    A drop-in replacement for `sklearn.svm.NuSVR` with a different solver. It is like `SVR` with nu
    in place of epsilon.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the fraction of samples outside the tube, and lower bound on the fraction of
        support vectors.
    C : float, default=1.0
        Cost of errors. The bound of a dual variable is C times the weight of its sample.
    <kernel parameters>
    <tolerance parameters>
    <memory parameters>
    <iterations parameters>
    <added parameters>

    Attributes
    ----------
    <single attributes>
    <fit attributes>

    Examples
    --------
    >>> from pairstep.svm import NuSVR
    >>> model = NuSVR(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.predict([[1.0]]).round(3)
    array([1.])
    """

    plan_type = NuSVRPlan
    _scikit_learn = sklearn.svm.NuSVR

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        dtype: DTypeLike = np.float32,
        support_columns: bool = False,
        device: str = "cpu",
    ):
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device
