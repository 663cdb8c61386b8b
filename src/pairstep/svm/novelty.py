"""Novelty detection with a one-class SVM."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn.svm
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from .arrays import from_anywhere
from .base import KernelFunction, SingleDualSVM, of_one_fit
from .documentation import documented
from .model_plans import OneClassPlan


@documented
class OneClassSVM(OutlierMixin, SingleDualSVM):  # type: ignore[misc]
    """Unsupervised outlier detection: estimate the region that contains most samples.

    A drop-in replacement for `sklearn.svm.OneClassSVM` with a different solver.

    Parameters
    ----------
    <kernel parameters>
    <tolerance parameters>
    nu : float, default=0.5
        Upper bound on the fraction of training samples outside the region, and lower bound on the
        fraction of support vectors.
    <memory parameters>
    <iterations parameters>
    <added parameters>

    Attributes
    ----------
    <single attributes>
    offset_ : ndarray of shape (1,)
        Minus `intercept_`: ``decision_function = score_samples - offset_``.
    <fit attributes>

    Notes
    -----
    There is no search over nu and gamma like `SVCCV`, because there is no score without labels.
    `pairstep.svm.path` solves for many nu with one kernel matrix. If some outliers are known, use
    scikit-learn's GridSearchCV with a scorer that depends on them.

    Examples
    --------
    >>> from pairstep.svm import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> OneClassSVM(gamma="auto").fit(X).predict([[0.45], [1.5]])
    array([ 1, -1])
    """

    offset_: Array

    plan_type = OneClassPlan
    _scikit_learn = sklearn.svm.OneClassSVM

    def __init__(
        self,
        *,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
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
        self.nu = nu
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
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the region.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples, or their kernel matrix if ``kernel="precomputed"``.
        y : object
            Ignored. Present for API consistency.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the samples. Samples whose weight is not positive are left out.

        Returns
        -------
        OneClassSVM
            The fitted estimator itself.
        """
        super().fit(X, None, sample_weight)
        return self

    @from_anywhere
    @of_one_fit
    def decision_function(self, X: Any) -> Array:
        """Return the signed distance of samples to the boundary of the region.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples. With ``kernel="precomputed"`` their kernel matrix with the training samples, or
            with the support vectors if `support_columns` is True.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive inside the region, negative outside.
        """
        check_is_fitted(self)
        return self._single_decision(X)

    @from_anywhere
    @of_one_fit
    def score_samples(self, X: Any) -> Array:
        """Return the decision function without its constant.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores: ``decision_function + offset_``.
        """
        return self.decision_function(X) + self.offset_

    @from_anywhere
    @of_one_fit
    def predict(self, X: Any) -> NDArray[np.intp]:
        """Classify samples as inliers or outliers.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
