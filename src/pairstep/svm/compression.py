"""Fewer support vectors with a bound on the change of decisions: `compress` of the estimators.

The vectors kept are some of the support vectors. Rounds add those where the decisions of the
compressed model are furthest off, greedily (the f/P-greedy rule of kernel interpolation, Wirtz and
Haasdonk 2013), and fit new coefficients and intercepts by least squares to the decisions of the
model. When a round reaches the error that the user allows, bisection over the vectors in the order
in which they were added finds how many of them suffice. Whatever the fit, the error is computed
from the compressed model itself, in float64. So its rounding errors, for example those of the
normal equations, can only cost additional vectors.
"""

from __future__ import annotations

import math
import time
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics.pairwise import pairwise_kernels

from .. import log
from .._validation import Array
from ..constraints import Indices
from .decisions import class_pairs
from .engine import LaidOut
from .plan import shallow_copy

# Vectors of the first round: at least this many, and this fraction of all support vectors.
MIN_FIRST_VECTORS, FIRST_FRACTION = 8, 1 / 64
# Each round increases the number of vectors by this fraction. A larger one would take fewer rounds,
# but the choice of a round does not see the errors that its own vectors leave.
GROWTH = 0.5
# Most vectors that one round adds. It limits the kernel matrix of the candidates to 128 MB.
MAX_ADDED = 1024
# Candidates for each vector that a round adds.
CANDIDATES = 4
# A candidate whose kernel function is this close to a combination of others (squared distance,
# relative to its squared norm) is not added.
MIN_INDEPENDENCE = 1e-6
# Term that keeps the normal equations positive definite, relative to their mean diagonal, and the
# factor by which it grows if rounding errors make them indefinite. A larger one costs accuracy.
RELATIVE_RIDGE, RIDGE_FACTOR = 1e-11, 100.0
# Bisection ends when the number of vectors is known up to this fraction.
BISECTION_PRECISION = 0.01
# The attributes of a model that compression changes.
CHANGED = (
    "support_", "support_vectors_", "dual_coef_", "intercept_", "_n_support", "offset_",
)  # fmt: skip
# Kernel values that are computed at a time: 64 MB.
VALUES_AT_A_TIME = 2**23


class Compression(NamedTuple):
    """What `compress` has done, recomputed from the compressed model.

    Attributes
    ----------
    max_error : float
        The largest change of a decision at the given points, in float64.
    n_points : int
        The number of these points.
    n_support_before : int
        The number of support vectors before.
    n_support : int
        The number of support vectors after.
    """

    max_error: float
    n_points: int
    n_support_before: int
    n_support: int


def compressed(model: Any, X: Any, max_error: float) -> Any:
    """Return a copy of a fitted model with fewer support vectors; see `BaseSVM.compress`."""
    is_number = isinstance(max_error, Real) and not isinstance(max_error, bool)
    if not is_number or not 0 < max_error < math.inf:
        raise ValueError(f"max_error must be a positive number, got {max_error!r}")
    if callable(model.kernel) or model.kernel == "precomputed":
        raise ValueError(
            "compress needs the kernel between the support vectors, so the kernel must be given by "
            f"name; got kernel={model.kernel!r}"
        )
    points = model._new_data(X).astype(np.float64)
    # Decisions are compared on the CPU, in float64, and at arrays, which have no names.
    compared = shallow_copy(model)
    compared.device = "cpu"
    compared.__dict__.pop("feature_names_in_", None)
    small, error = _Compressor(compared, points).smallest(float(max_error))
    result = shallow_copy(model)
    for name in ("optimality_", "_last_duals", "_training"):  # of the solution before
        result.__dict__.pop(name, None)
    result.__dict__.update((name, vars(small)[name]) for name in CHANGED if name in vars(small))
    sizes = len(model.support_), len(small.support_)
    result.__dict__.update(
        compression_=Compression(error, points.shape[0], *sizes), _laid_out=LaidOut()
    )
    return result


class _Compressor:
    """The state of one compression: vectors chosen so far, and sums for least squares."""

    def __init__(self, model: Any, X: Any):
        self.model, self.X = model, X
        self.vectors = model.support_vectors_.astype(np.float64)
        self.n = self.vectors.shape[0]
        self.decisions = _decisions(model, X)
        # Coefficients are fitted at the support vectors too, so that few points do not leave them
        # undetermined.
        both = [X, self.vectors]
        self.all_points: Any = (
            scipy.sparse.vstack(both, format="csr") if model._sparse else np.vstack(both)
        )
        self.at_vectors = (
            _decisions(model, self.vectors) if self.n else np.zeros((0, len(model.intercept_)))
        )
        self.targets = np.vstack([self.decisions, self.at_vectors])
        self.members, self.uses = _classes(model)
        # Decisions that use the same vectors share the factors of their normal equations.
        self.patterns = np.unique(self.uses, axis=1, return_inverse=True)[1].ravel()
        self.chosen: Indices = np.zeros(0, np.int64)
        # Normal equations of the intercept (first) and of the coefficients of the chosen vectors.
        self.gram = np.array([[float(len(self.targets))]])
        self.right = self.targets.sum(axis=0, keepdims=True)
        self._factorize()

    def smallest(self, max_error: float) -> tuple[Any, float]:
        """Return the smallest model found that is within `max_error`, and its error."""
        began = time.perf_counter()
        first = max(MIN_FIRST_VECTORS, math.ceil(FIRST_FRACTION * self.n))
        too_few, size = -1, 0
        best, error = self.model, 0.0
        while size < self.n:
            candidate, change = self.fitted(size)
            self._log(size, change, began)
            if change <= max_error:
                best, error = candidate, change
                break
            too_few = size
            size += self.add(min(max(first - size, math.ceil(GROWTH * size)), MAX_ADDED))
            if size == too_few:  # the others are combinations of those chosen
                break
        # `size` vectors suffice, or if not even all those chosen do, the model itself.
        while size - too_few > max(1, BISECTION_PRECISION * size):
            middle = (size + too_few) // 2
            candidate, change = self.fitted(middle)
            self._log(middle, change, began)
            if change <= max_error:
                best, error, size = candidate, change, middle
            else:
                too_few = middle
        return best, error

    def add(self, count: int) -> int:
        """Choose up to `count` more vectors, and return how many."""
        left = np.setdiff1d(np.arange(self.n), self.chosen)
        residual = self.uses[left] * (self.at_vectors[left] - self._at_vectors()[left])
        worst = np.argsort(-np.abs(residual).max(axis=1), kind="stable")[: CANDIDATES * count]
        some, residual = left[worst], residual[worst]
        picked = _greedy(self._kernel(self.vectors[some], some), residual, self.uses[some], count)
        new = some[picked]
        self.chosen = np.concatenate([self.chosen, new])
        self._extend(len(new))
        return len(new)

    def _at_vectors(self) -> Array:
        """Return the decisions at the support vectors with all vectors chosen so far."""
        return _decisions(self._model(len(self.chosen)), self.vectors)

    def _extend(self, count: int) -> None:
        """Add the last `count` vectors to the normal equations, in passes over the points."""
        size = len(self.chosen)
        products = np.zeros((count, size + 1))
        right = np.zeros((count, self.right.shape[1]))
        step = max(VALUES_AT_A_TIME // size, 1)
        for begin in range(0, len(self.targets), step):
            K = self._kernel(self.all_points[begin : begin + step], self.chosen)
            new = K[:, size - count :]
            with np.errstate(over="ignore", invalid="ignore"):  # checked below
                products[:, 0] += new.sum(axis=0)
                products[:, 1:] += new.T @ K
                right += new.T @ self.targets[begin : begin + step]
        old = size + 1 - count
        gram = np.empty((size + 1, size + 1))
        gram[:old, :old] = self.gram
        gram[old:] = products
        gram[:old, old:] = products[:, :old].T
        if not np.isfinite(gram).all():
            raise ValueError(
                "the squares of kernel values overflow, so the model cannot be compressed; scale X "
                "before the fit"
            )
        self.gram, self.right = gram, np.vstack([self.right, right])
        self._factorize()

    def _factorize(self) -> None:
        """Factor the normal equations of each decision, with the vectors in their order.

        The factor of the equations of the first few vectors is a leading part of it.
        """
        self.solvers: list[tuple[Indices, Array, Array]] = []
        factors: dict[int, tuple[Indices, Array]] = {}
        for output, pattern in enumerate(self.patterns.tolist()):
            if pattern not in factors:
                own = np.concatenate([[0], 1 + np.flatnonzero(self.uses[self.chosen, output])])
                factors[pattern] = own, _cholesky(self.gram[np.ix_(own, own)])
            own, factor = factors[pattern]
            reduced = scipy.linalg.solve_triangular(factor, self.right[own, output], lower=True)
            self.solvers.append((own, factor, reduced))

    def fitted(self, size: int) -> tuple[Any, float]:
        """Return the model with the first `size` vectors, and its largest change of a decision."""
        model = self._model(size)
        return model, float(np.abs(_decisions(model, self.X) - self.decisions).max())

    def _model(self, size: int) -> Any:
        """Return the model with the first `size` vectors."""
        order = np.argsort(self.chosen[:size])
        kept = self.chosen[:size][order]
        outputs = self.targets.shape[1]
        coefficients = np.zeros((size, outputs))
        intercept = np.zeros(outputs)
        for output, (own, factor, reduced) in enumerate(self.solvers):
            count = int(np.searchsorted(own, size, side="right"))
            solution = scipy.linalg.solve_triangular(
                factor[:count, :count], reduced[:count], lower=True, trans="T"
            )
            intercept[output], coefficients[own[1:count] - 1, output] = solution[0], solution[1:]
        model = shallow_copy(self.model)
        dual_coef = _in_layout(coefficients[order], self.members[kept], self.model)
        vectors = self.model.support_vectors_[kept]
        counts = np.full(2, size, np.int32)
        if is_classifier(model):
            counts = np.bincount(self.members[kept], minlength=len(model.classes_)).astype(np.int32)
        model.__dict__.update(
            support_=self.model.support_[kept], support_vectors_=vectors, intercept_=intercept,
            dual_coef_=type(vectors)(dual_coef) if model._sparse else dual_coef,
            _n_support=counts, _laid_out=LaidOut(),
        )  # fmt: skip
        if hasattr(model, "offset_"):
            model.offset_ = -intercept
        return model

    def _kernel(self, points: Any, chosen: Indices) -> Array:
        """Return the kernel of points with some of the support vectors."""
        kernel = self.model._kernel()
        return np.asarray(
            pairwise_kernels(
                points, self.vectors[chosen], metric=kernel.name, filter_params=True,
                gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0,
            )
        )  # fmt: skip

    def _log(self, size: int, error: float, began: float) -> None:
        verbose = bool(self.model.verbose)
        if log.is_enabled(verbose):
            seconds = time.perf_counter() - began
            log.write(f"{size} of {self.n} vectors: error {error:.3g}, {seconds:.2g} s", verbose)


def _decisions(model: Any, X: Any) -> Array:
    """Return all decisions, with a column per pair of classes or output."""
    if is_classifier(model) and len(model.classes_) > 2:
        return np.asarray(model._from_pairs(X, lambda pairs: pairs))
    return np.asarray(model._single_decision(X).reshape(X.shape[0], -1))


def _classes(model: Any) -> tuple[Indices, NDArray[np.bool_]]:
    """Return the class of each support vector, and the decisions that may use it.

    A support vector has coefficients in the pairs of its own class only.
    """
    if not is_classifier(model) or len(model.classes_) == 2:
        n = len(model.support_)
        members = np.zeros(n, np.int64)
        if is_classifier(model):
            members = np.repeat([0, 1], model.n_support_)
        return members, np.ones((n, len(model.intercept_)), bool)
    members = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    pairs = np.array(class_pairs(len(model.classes_)))
    return members, (members[:, None, None] == pairs).any(axis=2)


def _in_layout(coefficients: Array, members: Indices, model: Any) -> Array:
    """Return `dual_coef_` from coefficients with a column per decision."""
    if not is_classifier(model) or len(model.classes_) == 2:
        return np.ascontiguousarray(coefficients.T)
    k = len(model.classes_)
    dual_coef = np.zeros((k - 1, len(members)))
    for column, (i, j) in enumerate(class_pairs(k)):
        for own, row in ((i, j - 1), (j, i)):
            of_class = members == own
            dual_coef[row, of_class] = coefficients[of_class, column]
    return dual_coef


def _cholesky(gram: Array) -> Array:
    """Return the lower factor of normal equations, with as small a ridge as rounding permits."""
    mean, ridge = float(np.trace(gram)) / len(gram), RELATIVE_RIDGE
    while True:
        try:
            ridged = gram + ridge * mean * np.eye(len(gram))
            return np.asarray(scipy.linalg.cholesky(ridged, lower=True, overwrite_a=True))
        except scipy.linalg.LinAlgError:
            ridge *= RIDGE_FACTOR


def _greedy(K: Array, residual: Array, uses: NDArray[np.bool_], count: int) -> list[int]:
    """Choose up to `count` rows of a kernel matrix, each of which reduces the residual the most.

    The reduction is measured by the norm of the kernel's function space, in which a vector with
    the residual r and the squared distance d to those chosen before contributes r^2 / d.
    """
    count = min(count, len(K))
    factor = np.zeros((len(K), count))  # columns of a Cholesky factor of K
    distance = K.diagonal().copy()
    smallest = MIN_INDEPENDENCE * np.abs(distance)  # sigmoid kernels have negative ones
    residual = residual.copy()
    picked: list[int] = []
    for k in range(count):
        gain = np.full(len(K), -1.0)
        squares = (uses * residual**2).sum(axis=1)
        np.divide(squares, distance, out=gain, where=distance > smallest)
        j = int(np.argmax(gain))
        if gain[j] < 0:
            break
        picked.append(j)
        column = (K[:, j] - factor[:, :k] @ factor[j, :k]) / math.sqrt(distance[j])
        factor[:, k] = column
        residual -= np.outer(column, uses[j] * residual[j] / column[j])
        distance -= column**2
        distance[j] = 0.0
    return picked
