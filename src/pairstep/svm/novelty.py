"""Novelty detection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn.svm
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._validation import Array
from .arrays import from_anywhere
from .base import KernelFunction, SingleMachine, Targets
from .documentation import documented
from .duals import one_class
from .machine import Dual, Solution


@documented
class OneClassSVM(OutlierMixin, SingleMachine):  # type: ignore[misc]
    """Unsupervised detection of outliers: the region in which most samples lie.

    scikit-learn's `sklearn.svm.OneClassSVM` on another engine.

    Parameters
    ----------
    <kernel parameters>
    <tolerance parameters>
    nu : float
        At most this share of the training samples lie outside, and at least this share are support
        vectors.
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
    There is no search for nu and gamma such as `SVCCV`: without labels no score tells which of them
    is best. `pairstep.svm.path` solves for many nu on one kernel matrix; where some samples are
    known to be outliers, scikit-learn's GridSearchCV with a scorer that knows them can choose.

    Examples
    --------
    >>> from pairstep.svm import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> OneClassSVM(gamma="auto").fit(X).predict([[0.45], [1.5]])
    array([ 1, -1])
    """

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
        self.nu = nu
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

    @from_anywhere
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the region.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples, or their kernel matrix with ``kernel="precomputed"``.
        y : object
            Ignored; here by convention.
        sample_weight : array_like of shape (n_samples,), optional
            How much each sample counts. Samples whose weight is not positive are left out.

        Returns
        -------
        OneClassSVM
            Itself.
        """
        super().fit(X, None, sample_weight)
        return self

    def _targets(self, X: Any, y: Any) -> Targets:
        return np.ones(_num_samples(X))

    def _dual(self, targets: Targets, weights: Array) -> Dual:
        return one_class(weights, self.nu)

    def _conclude(self, targets: Targets, duals: list[Dual], solutions: list[Solution]) -> Array:
        coefficients = super()._conclude(targets, duals, solutions)
        self.offset_ = -self.intercept_
        return coefficients

    @from_anywhere
    def decision_function(self, X: Any) -> Array:
        """Say how far inside or outside samples lie.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples; with ``kernel="precomputed"`` their kernel with the training samples, or with
            the support vectors if `support_columns`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive inside, negative outside.
        """
        check_is_fitted(self)
        return self._single_decision(X)

    @from_anywhere
    def score_samples(self, X: Any) -> Array:
        """Give the decision function without its constant.

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
    def predict(self, X: Any) -> NDArray[np.intp]:
        """Tell inliers from outliers.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            1 inside, -1 outside.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
