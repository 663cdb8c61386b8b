"""Derivatives of a validation loss with respect to C, gamma and one scale per feature.

The decisions of a fitted model depend on its hyperparameters through the coefficients of its
support vectors. Those at a bound are proportional to C. Those in between, and the intercept, solve
a linear system, because their margins are fixed. Its derivative gives the derivative of any smooth
loss of the decisions (Chapelle, Vapnik, Bousquet and Mukherjee, "Choosing multiple parameters for
support vector machines", 2002), with one more solve of the same size for all hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.special
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .. import log
from .._validation import Array
from ..solve.derivatives import DenseHessians
from .classification import SVC
from .regression import SVR
from .span import Spans

# A coefficient of at least this fraction of C is at its bound.
AT_BOUND = 1.0 - 1e-9
# Hyperparameters of `tune_by_gradient` stay within these factors of their starting values. Beyond
# them a loss is usually flat, and its minimum is at infinity.
MAX_FACTOR = {"C": 1e4, "gamma": 1e3, "scales": 1e2}


@dataclass(frozen=True)
class ValidationGradient:
    """A validation loss and its derivatives.

    Attributes
    ----------
    loss : float
        The mean loss over the validation samples.
    C, gamma : float
        Derivatives with respect to the hyperparameters.
    scales : ndarray of shape (n_features,)
        Derivatives with respect to factors by which the features of all samples are multiplied, at
        1. For the RBF kernel, a factor is the inverse of a length scale.
    decisions : ndarray of shape (n_samples,)
        The decisions for the validation samples; with ``loss="span"``, those that a model fitted
        without the sample would have.
    degenerate : bool
        Whether no support vector is between its bounds, or the linear system is singular, so that
        the derivatives are not reliable.
    """

    loss: float
    C: float
    gamma: float
    scales: Array
    decisions: Array
    degenerate: bool


def _squared(decisions: Array, targets: Array) -> tuple[float, Array]:
    error = decisions - targets
    return float(np.mean(error**2)), 2 * error / len(error)


def _logistic(decisions: Array, targets: Array) -> tuple[float, Array]:
    margins = targets * decisions
    loss = np.logaddexp(0.0, -margins)
    return float(loss.mean()), -targets * scipy.special.expit(-margins) / len(margins)


LOSSES: dict[str, Callable[[Array, Array], tuple[float, Array]]] = {
    "squared": _squared, "logistic": _logistic,
}  # fmt: skip

SPAN = "span"  # the default loss of the model, for leave-one-out decisions


def validation_gradient(
    model: SVC | SVR, X: ArrayLike, y: ArrayLike, loss: str | None = None
) -> ValidationGradient:
    """Return a smooth loss of a fitted model on validation data, and its derivatives.

    Parameters
    ----------
    model : SVC or SVR
        A fitted model with the kernel "rbf", "linear" or "poly", fitted without weights. An SVC
        must have two classes.
    X : array_like of shape (n_samples, n_features)
        Validation samples, dense.
    y : array_like of shape (n_samples,)
        Their classes or targets.
    loss : {"logistic", "squared", "span"}, optional
        "logistic" is ``log(1 + exp(-margin))``, the default for SVC. "squared" is the squared
        difference of the decisions from the targets, or from -1 and 1 for SVC. "span" is the
        default loss of the leave-one-out decisions, which are predicted from the span of the
        support vectors (Vapnik and Chapelle 2000); X and y must then be the training samples. The
        prediction is exact for samples whose removal does not change which support vectors are
        free.

    Returns
    -------
    ValidationGradient
        The loss and its derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep import svm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] > 0  # the second feature is irrelevant
    >>> found = svm.validation_gradient(svm.SVC().fit(X[:100], y[:100]), X[100:], y[100:])
    >>> bool(found.scales[0] < 0 < found.scales[1])  # scale the first one up, the second one down
    True
    """
    targets, smooth = _targets(model, y, loss)
    vectors = np.asarray(model.support_vectors_, float)
    samples = np.asarray(X, float)
    coefficients = np.asarray(model.dual_coef_, float)[0]
    kernel = _Kernel(model)
    to_samples = kernel.values(samples, vectors)
    decisions = to_samples @ coefficients + float(model.intercept_[0])
    free = np.abs(coefficients) < AT_BOUND * model.C
    count = int(free.sum())
    # What the loss depends on besides the decisions: the coefficients and, with spans, the kernel
    # values of support vectors.
    by_coefficients = np.zeros(len(vectors))
    by_spans = np.zeros(samples.shape[1])
    if loss == SPAN and count:
        rows = _training_rows(model, samples)
        spans = Spans(kernel.values(vectors, vectors), free)
        decisions[rows] -= coefficients * spans.squared
        value, slopes = smooth(decisions, targets)
        by_coefficients = -slopes[rows] * spans.squared
        weights, own = spans.kernel_weights(-slopes[rows] * coefficients)
        values = to_samples[rows][free]
        by_spans = kernel.derivative(vectors[free], vectors, weights, values)
        by_spans += kernel.own_derivative(vectors[~free], own)
    else:
        value, slopes = smooth(decisions, targets)
    bounded = np.where(free, 0.0, coefficients)
    between = kernel.values(vectors[free], vectors)
    adjoint, multiplier, singular = DenseHessians(between[:, free][None]).solve(
        np.ones((1, 1, count)), np.zeros((1, count)), np.ones((1, count), bool),
        (slopes @ to_samples[:, free] + by_coefficients[free])[None], np.array([[slopes.sum()]]),
    )  # fmt: skip
    p, q = adjoint[0], float(multiplier[0, 0])
    by_C = slopes @ (to_samples @ bounded) - p @ (between @ bounded) - q * bounded.sum()
    by_C += by_coefficients @ bounded
    by_scales = kernel.derivative(samples, vectors, np.outer(slopes, coefficients), to_samples)
    by_scales -= kernel.derivative(vectors[free], vectors, np.outer(p, coefficients), between)
    by_scales += by_spans
    by_gamma = 0.0 if kernel.name == "linear" else float(by_scales.sum()) / (2 * kernel.gamma)
    degenerate = count == 0 or bool(singular[0])
    return ValidationGradient(
        value, float(by_C) / model.C, by_gamma, by_scales, decisions, degenerate
    )


def _training_rows(model: Any, samples: Array) -> Any:
    """Return the rows of the support vectors in the training samples."""
    rows = np.asarray(model.support_)
    if len(samples) != model.shape_fit_[0] or not np.array_equal(
        samples[rows], model.support_vectors_
    ):
        raise ValueError(
            'loss="span" needs the samples that the model was fitted to, in the same order'
        )
    return rows


def _targets(model: Any, y: Any, loss: str | None) -> tuple[Array, Callable[..., Any]]:
    """Check the model, and return the targets as numbers and the loss function."""
    if type(model) not in (SVC, SVR):
        raise TypeError(f"model must be an SVC or an SVR, got {type(model).__name__}")
    check_is_fitted(model)
    if model.kernel not in ("rbf", "linear", "poly"):
        raise ValueError(f'kernel must be "rbf", "linear" or "poly", got {model.kernel!r}')
    if not hasattr(model.support_vectors_, "dtype") or scipy.sparse.issparse(
        model.support_vectors_
    ):
        raise ValueError("the samples must be dense: use X.toarray()")
    if getattr(model, "class_weight", None) is not None:
        raise ValueError("class_weight must be None: bounds that differ are not supported")
    default = "squared" if type(model) is SVR else "logistic"
    name = default if loss is None or loss == SPAN else loss
    if name not in LOSSES or (name == "logistic" and type(model) is SVR):
        raise ValueError(f'loss must be "logistic" (SVC only), "squared" or "span", got {loss!r}')
    if type(model) is SVR:
        return np.asarray(y, float), LOSSES[name]
    if len(model.classes_) != 2:
        raise ValueError(f"the model must have two classes, got {len(model.classes_)}")
    given = np.asarray(y)
    if not np.isin(given, model.classes_).all():
        raise ValueError("y has classes that the model was not fitted to")
    return np.where(given == model.classes_[1], 1.0, -1.0), LOSSES[name]


class _Kernel:
    """A kernel function and its derivatives with respect to scales of the features."""

    def __init__(self, model: Any):
        self.name, self.gamma = str(model.kernel), float(model._gamma)
        self.degree, self.coef0 = model.degree, model.coef0

    def values(self, a: Array, b: Array) -> Array:
        """Return k(a_i, b_j)."""
        if self.name == "rbf":
            distances = scipy.spatial.distance.cdist(a, b, "sqeuclidean")
            return np.asarray(np.exp(-self.gamma * distances))
        products = a @ b.T
        if self.name == "linear":
            return np.asarray(products)
        return np.asarray((self.gamma * products + self.coef0) ** self.degree)

    def derivative(self, a: Array, b: Array, weights: Array, values: Array) -> Array:
        """Return the derivative of ``sum_ij weights_ij k(s a_i, s b_j)`` at s = 1, by feature."""
        if self.name == "rbf":
            # sum_ij w_ij k_ij (a_i - b_j)^2, by expanding the square
            w = weights * values
            squares = w.sum(axis=1) @ a**2 + w.sum(axis=0) @ b**2
            return np.asarray(-2 * self.gamma * (squares - 2 * np.einsum("id,id->d", a, w @ b)))
        w = 2 * weights
        if self.name == "poly":
            base = self.gamma * (a @ b.T) + self.coef0
            w = w * self.gamma * self.degree * base ** (self.degree - 1)
        return np.asarray(np.einsum("id,id->d", a, w @ b))

    def own_derivative(self, a: Array, weights: Array) -> Array:
        """Return the derivative of ``sum_i weights_i k(s a_i, s a_i)`` at s = 1, by feature."""
        if self.name == "rbf":
            return np.zeros(a.shape[1])
        w = 2 * weights
        if self.name == "poly":
            base = self.gamma * (a**2).sum(axis=1) + self.coef0
            w = w * self.gamma * self.degree * base ** (self.degree - 1)
        return np.asarray(w @ a**2)


@dataclass(frozen=True)
class Tuned:
    """What `tune_by_gradient` found.

    Attributes
    ----------
    model : Pipeline
        Scales and an SVM, fitted to all samples.
    C, gamma : float
        The hyperparameters.
    scales : ndarray of shape (n_features,)
        The factor of each feature.
    loss : float
        The mean validation loss over the folds.
    history : list of float
        The loss after each evaluation.
    """

    model: Pipeline
    C: float
    gamma: float
    scales: Array
    loss: float
    history: list[float]


def tune_by_gradient(
    model: SVC | SVR,
    X: ArrayLike,
    y: ArrayLike,
    *,
    cv: Any = 5,
    scales: bool = True,
    loss: str | None = None,
    penalty: float = 1e-3,
    max_iter: int = 30,
    verbose: bool = False,
) -> Tuned:
    """Choose C, gamma and a scale for each feature by descent on a cross-validation loss.

    The loss is minimized with L-BFGS over the logarithms of the hyperparameters, from those of the
    model. It is not convex, so the result depends on the start; features should be standardized, or
    have scales that make sense.

    Parameters
    ----------
    model : SVC or SVR
        The model with its starting hyperparameters; see `validation_gradient`.
    X : array_like of shape (n_samples, n_features)
        The samples, dense.
    y : array_like of shape (n_samples,)
        Their classes or targets.
    cv : int or splitter
        The folds, as in scikit-learn. They are not used with ``loss="span"``, which needs one fit
        instead of one for each fold.
    scales : bool
        Whether to choose a scale for each feature. Otherwise only C and gamma.
    loss : {"logistic", "squared", "span"}, optional
        As in `validation_gradient`.
    penalty : float
        Weight of the mean squared logarithm of the scales, relative to the loss at the start. It
        keeps features that do not matter from being scaled at random.
    max_iter : int
        Maximum number of iterations of L-BFGS.
    verbose : bool
        Whether to print the loss after each evaluation.

    Returns
    -------
    Tuned
        The hyperparameters and a fitted pipeline.
    """
    samples, labels = np.asarray(X, float), np.asarray(y)
    start = clone(model).fit(samples, labels)
    _targets(start, labels, loss)
    width = samples.shape[1]
    if loss == SPAN:
        everything = np.arange(len(samples))
        folds = [(everything, everything)]
    else:
        folds = list(check_cv(cv, labels, classifier=isinstance(model, SVC)).split(samples, labels))
    sizes = {"C": 1, "gamma": 0 if model.kernel == "linear" else 1, "scales": width * bool(scales)}
    history: list[float] = []
    first: list[float] = []

    def unpacked(theta: Array) -> tuple[float, float, Array]:
        C = float(model.C * np.exp(theta[0]))
        gamma = float(start._gamma * np.exp(theta[1])) if sizes["gamma"] else float(start._gamma)
        own = theta[sizes["C"] + sizes["gamma"] :]
        return C, gamma, np.exp(own) if sizes["scales"] else np.ones(width)

    def evaluate(theta: Array) -> tuple[float, Array]:
        C, gamma, factors = unpacked(theta)
        total, slope = 0.0, np.zeros_like(theta)
        scaled = samples * factors
        for train, test in folds:
            fitted = clone(model).set_params(C=C, gamma=gamma).fit(scaled[train], labels[train])
            found = validation_gradient(fitted, scaled[test], labels[test], loss)
            total += found.loss
            slope[0] += found.C * C
            if sizes["gamma"]:
                slope[1] += found.gamma * gamma
            if sizes["scales"]:
                slope[sizes["C"] + sizes["gamma"] :] += found.scales
        total, slope = total / len(folds), slope / len(folds)
        history.append(total)
        if not first:
            first.append(total)
        if log.is_enabled(verbose):
            log.write(f"loss {total:.6g} with C={C:.4g}, gamma={gamma:.4g}", verbose)
        if sizes["scales"]:
            own = theta[-width:]
            total += penalty * first[0] * float(own @ own) / width
            slope[-width:] += 2 * penalty * first[0] * own / width
        return total, slope

    limits = np.concatenate(
        [np.full(size, np.log(MAX_FACTOR[name])) for name, size in sizes.items()]
    )
    found = scipy.optimize.minimize(
        evaluate, np.zeros(len(limits)), jac=True, method="L-BFGS-B",
        bounds=list(zip(-limits, limits, strict=True)), options={"maxiter": max_iter},
    )  # fmt: skip
    C, gamma, factors = unpacked(found.x)
    scaler = StandardScaler(with_mean=False).fit(samples)
    scaler.scale_, scaler.var_ = 1 / factors, 1 / factors**2
    best = clone(model).set_params(C=C, gamma=gamma).fit(samples * factors, labels)
    pipeline = Pipeline([("scale", scaler), ("svm", best)])
    return Tuned(pipeline, C, gamma, factors, min(history), history)
