"""Kernel mean matching: sample weights under covariate shift, for scikit-learn."""
# ruff: noqa: E402 - the check for scikit-learn comes before the imports that need it

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy

from .extras import needed

needed("sklearn", by="KernelMeanMatching")

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches
from sklearn.utils.validation import validate_data

from ._validation import Array, finite_number
from .result import Result, Status
from .solve.qp import solve_qp
from .solve.task import NOT_CONVEX
from .svm.kernels import center_of, gamma_of

# Target samples whose kernels with the training sample are in memory at a time. A larger number
# needs more memory; a smaller one makes the matrix products less efficient.
TARGETS_PER_BATCH = 1024


class KernelMeanMatching(BaseEstimator):  # type: ignore[misc]
    """Weights of a training sample that match its kernel mean with that of a target sample.

    For learning under covariate shift: fit any model with ``sample_weight=weights_``. The weights w
    minimize the distance between the weighted training mean and the target mean in the feature
    space of the kernel,

        w'Kw / 2 - kappa'w,    kappa_i = n / n_target * sum_j k(x_i, target_j),

    subject to ``0 <= w <= upper_bound`` and ``n (1 - eps) <= sum(w) <= n (1 + eps)``, which hold
    exactly. K is the full kernel matrix of the training sample, so memory grows with its square.

    Parameters
    ----------
    kernel : str or callable
        A kernel of ``sklearn.metrics.pairwise.pairwise_kernels``, a function of two samples, or
        "precomputed": then X is the kernel matrix of the training sample, and X_target that of
        the target samples (rows) with the training samples (columns).
    gamma : "scale", "auto" or float
        Parameter of the rbf, polynomial, sigmoid, laplacian and chi2 kernels: "scale" is
        ``1 / (n_features * X.var())`` and "auto" is ``1 / n_features``.
    degree, coef0 : float
        Parameters of the polynomial and sigmoid kernels.
    upper_bound : float
        The largest weight, often called B in the literature.
    eps : float, optional
        Largest distance of the mean weight from 1; ``(sqrt(n) - 1) / sqrt(n)`` by default.
    tol : float
        Tolerance of the solver, as in `minimize`.
    max_iter : int, optional
        Maximum number of iterations, as in `minimize`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        One weight per training sample.
    result_ : Result
        The solver's result.
    n_iter_ : int
        Number of iterations of the solver, at least 1 as scikit-learn requires.
    gamma_ : float
        The gamma that was used.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X has names.

    References
    ----------
    Huang, Smola, Gretton, Borgwardt and Schölkopf, *Correcting Sample Selection Bias by Unlabeled
    Data* (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep import KernelMeanMatching
    >>> train, target = np.linspace(0, 4, 41)[:, None], np.linspace(2, 3, 11)[:, None]
    >>> matching = KernelMeanMatching(eps=0.1).fit(train, X_target=target)
    >>> float(np.average(train[:, 0], weights=matching.weights_).round(2))
    2.5
    """

    weights_: Array
    result_: Result
    n_iter_: int
    gamma_: float

    def __init__(
        self,
        *,
        kernel: str | Callable[[Array, Array], float] = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        upper_bound: float = 1000.0,
        eps: float | None = None,
        tol: float = 1e-8,
        max_iter: int | None = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.upper_bound = upper_bound
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None, *, X_target: Any = None) -> Self:
        """Compute the weights.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            The training sample.
        y : object
            Ignored; present by convention.
        X_target : array_like or sparse array of shape (n_target, n_features), optional
            The target sample. By default X, for which the weights are 1.

        Returns
        -------
        KernelMeanMatching
            The fitted estimator.
        """
        if X_target is None and np.ndim(y) == 2:
            raise ValueError("y is ignored: give the target sample as fit(X, X_target=...)")
        checks = {"accept_sparse": self._sparse_formats, "dtype": np.float64}
        # Results are written to a copy, which replaces this object in one step. So a fit that fails
        # or is interrupted leaves the estimator unchanged.
        fitted = copy.copy(self)
        X = validate_data(fitted, X, **checks)
        X_target = X if X_target is None else validate_data(fitted, X_target, reset=False, **checks)
        n, n_target = X.shape[0], X_target.shape[0]
        gamma = self.gamma
        if gamma not in ("scale", "auto"):
            gamma = finite_number("gamma", gamma)
        fitted.gamma_ = gamma_of(gamma, X)
        eps = 1 - 1 / np.sqrt(n) if self.eps is None else finite_number("eps", self.eps)
        if eps < 0:
            raise ValueError(f"eps must not be negative, got {eps:g}")

        if self.kernel == "rbf":
            # Distances do not depend on the origin, and rounding errors are smallest near 0.
            origin = center_of(X)
            X, X_target = _moved(X, origin), _moved(X_target, origin)
        sums = (
            fitted._kernel(X_target[part], X).sum(axis=0)
            for part in gen_batches(n_target, TARGETS_PER_BATCH)
        )
        kappa = n / n_target * np.sum(list(sums), axis=0)
        result: Result = solve_qp(
            fitted._kernel(X, X), -kappa, total=(n * (1 - eps), n * (1 + eps)),
            upper=self.upper_bound, tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        # A precomputed or sigmoid kernel may be indefinite. Then only a stationary point can be
        # expected, so do not warn.
        if result.status != Status.OPTIMAL and NOT_CONVEX not in result.message:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=2)
        fitted.result_ = result
        fitted.weights_ = result.x
        fitted.n_iter_ = max(result.n_iter, 1)
        self.__dict__ = fitted.__dict__
        return self

    def _kernel(self, X: Any, Y: Any) -> Array:
        settings = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        if callable(self.kernel):
            settings = {}
        return np.asarray(pairwise_kernels(X, Y, self.kernel, filter_params=True, **settings))

    @property
    def _sparse_formats(self) -> str | bool:
        return False if self.kernel == "precomputed" else "csr"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse_formats)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _moved(X: Any, origin: Array) -> Any:
    """Return X minus `origin` in every row; a sparse X stays sparse if the origin is 0."""
    if not scipy.sparse.issparse(X):
        return X - origin
    return X - type(X)(np.ones((X.shape[0], 1))) @ type(X)(origin[None])
