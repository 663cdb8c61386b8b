"""Regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import DTypeLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from .arrays import from_anywhere
from .base import KernelFunction, SingleMachine, Targets
from .documentation import documented
from .duals import epsilon_regression, limits, nu_regression
from .machine import Dual


class Regressor(RegressorMixin, SingleMachine):  # type: ignore[misc]
    """A machine whose decision function is its prediction."""

    @from_anywhere
    def predict(self, X: Any) -> Array:
        """Predict numbers.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples; with ``kernel="precomputed"`` their kernel with the training samples, or with
            the support vectors if `support_columns`.

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

    scikit-learn's `sklearn.svm.SVR` on another engine.

    Parameters
    ----------
    <kernel parameters>
    <tolerance parameters>
    C : float
        How much errors cost: the bound of the dual variables, times the weight of the sample.
    epsilon : float
        Errors up to this size cost nothing.
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
    >>> machine = SVR(kernel="linear", C=10.0, epsilon=0.25).fit(X, y)
    >>> machine.predict([[1.0]]).round(3), machine.coef_.round(3)
    (array([1.]), array([[0.75]]))
    """

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
        cache_size: float = 200,
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

    def _dual(self, targets: Targets, weights: Array) -> Dual:
        return epsilon_regression(targets, limits(self.C, weights), self.epsilon)


@documented
class NuSVR(Regressor):
    """Nu-support vector regression.

    scikit-learn's `sklearn.svm.NuSVR` on another engine: like `SVR`, with nu in the place of
    epsilon.

    Parameters
    ----------
    nu : float
        At most this share of the samples are errors, and at least this share are support vectors.
    C : float
        How much errors cost: the bound of the dual variables, times the weight of the sample.
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
    >>> machine = NuSVR(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> machine.predict([[1.0]]).round(3)
    array([1.])
    """

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
        cache_size: float = 200,
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

    def _dual(self, targets: Targets, weights: Array) -> Dual:
        if math.isinf(self.C):
            raise ValueError("C must be finite: nu is a share of it; got C=inf")
        return nu_regression(targets, limits(self.C, weights), self.nu)
