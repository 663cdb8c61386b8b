"""SVM regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import DTypeLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from .arrays import from_anywhere
from .base import KernelFunction, SingleDualSVM, of_one_fit
from .documentation import documented
from .model_plans import NuSVRPlan, SVRPlan


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
        rule: str = "auto",
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
        self.rule = rule
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device


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
        rule: str = "auto",
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
        self.rule = rule
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device
