"""Quadratics with an explicit matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import LARGE, Array, array, as_given, frozen, vector
from ..constraints import Layout
from ..kept import kept
from ..labels import Axis, aligned, point_of
from ..show import described
from .matrices import (
    PASSES_OF_BLOCK_SOLVER,
    largest_pair,
    native,
    sparse_matrix,
    sums_of_squares,
    symmetric,
)
from .objective import Fixed, Indices

# Size, in bytes as a dense array, up to which a sparse matrix is converted to a dense one: 32 MiB,
# for 2048 variables. A larger limit needs more memory; a smaller one uses the block solver for
# problems that coordinate descent on a dense array could solve.
MAX_DENSE_BYTES = 2**25


class Quadratic(Fixed):
    """The function ``x'Qx / 2 + c'x``.

    Numbers beyond 1e100 in size are rejected, because products would overflow.

    Parameters
    ----------
    Q : array_like, DataFrame or scipy.sparse array of shape (n, n)
        A symmetric matrix; the function is convex if it is positive semidefinite. It is not copied,
        so do not change it afterwards.
    c : array_like or Series of shape (n,), optional
        The linear term, 0 by default. Labels are aligned with those of Q; see `pairstep.labels`.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, -1.0])
    >>> f.value([1.0, 1.0])
    3.0
    """

    l1_terms = None
    is_quadratic = True
    is_convex = False  # not known; see `around`

    def __init__(self, Q: Any, c: ArrayLike | None = None):
        self.variables = Axis()
        Q = aligned("Q", Q, self.variables, self.variables)
        c = aligned("c", c, self.variables)
        matrix: Any = sparse_matrix("Q", Q, LARGE) if scipy.sparse.issparse(Q) else array("Q", Q, 2)
        n = matrix.shape[0]
        if matrix.shape != (n, n):
            raise ValueError(f"Q must be square, got shape {matrix.shape}")
        if n == 0:
            raise ValueError("Q is empty: there is nothing to minimize over")
        self.Q: Any
        given = Q if hasattr(Q, "dtype") else as_given("Q", Q)
        self.Q, self.least_pair_curvature = symmetric(matrix, given.dtype)
        self.c: Array = frozen(np.zeros(n) if c is None else vector("c", c, n, limit=LARGE))

    def __repr__(self) -> str:
        return described("Quadratic", Q=self.Q, c=self.c)

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.c)

    @kept
    def lipschitz(self) -> Array:
        """The diagonal of Q."""
        return np.array(self.Q.diagonal())

    @kept
    def hessian(self) -> Array | None:
        """Q as a dense array, if it is dense or small."""
        if not scipy.sparse.issparse(self.Q):
            return np.asarray(self.Q)
        return np.asarray(self.Q.toarray()) if self.n**2 * 8 <= MAX_DENSE_BYTES else None

    @property
    def linear(self) -> Array:
        """The linear term c."""
        return self.c

    @property
    def prefers_blocks(self) -> bool:
        """Whether blocks of Q are cheaper than all of it."""
        return self.hessian is None

    def oracle(self, point: Any) -> Any:
        """Return a native oracle for the block solver."""
        entries = self.Q.nnz if scipy.sparse.issparse(self.Q) else self.Q.size
        workers = threads.for_work(PASSES_OF_BLOCK_SOLVER * entries)
        return _core.matrix_oracle(native(self.Q), self.c, point, workers)

    def argument_derivatives(self, x: Array, w: Array) -> dict[str, Callable[[], Any]]:
        """Return the derivatives of ``-w'gradient(x)`` with respect to Q and c."""
        return {"c": lambda: -w, "Q": lambda: -(np.outer(w, x) + np.outer(x, w)) / 2}

    def gradient_change(self, x: Array, name: str, change: Any) -> Array | None:
        """Return the change of the gradient at x if Q or c changes."""
        given = np.asarray(change, float)
        if name == "c":
            return given
        return np.asarray(given @ x) if name == "Q" else None

    def with_linear(self, c: ArrayLike) -> Quadratic:
        """Return the function with another linear term; Q is not checked again."""
        other = object.__new__(Quadratic)
        variables = Axis.of(self)
        linear = frozen(vector("c", aligned("c", c, variables), self.n, limit=LARGE))
        other.__dict__.update(self.__dict__, c=linear, variables=variables)
        return other

    @classmethod
    def around(cls, x: Array, Q: Any, *, is_convex: bool = False) -> Quadratic:
        """Return the function ``(y - x)'Q(y - x) / 2`` of y, up to a constant; Q is not checked."""
        model = object.__new__(cls)
        model.Q, model.least_pair_curvature, model.is_convex = Q, 0.0, is_convex
        model.c = -model._product(x)
        return model

    def plus(self, slope: ArrayLike, curvature: ArrayLike, center: Array) -> Quadratic:
        """Return the function plus ``slope'x + sum_i curvature_i (x_i - center_i)^2 / 2``."""
        other = object.__new__(Quadratic)
        other.is_convex = self.is_convex and bool(np.min(curvature) >= 0)
        if not np.any(curvature):
            other.Q, other.c = self.Q, self.c + np.asarray(slope)
            other.least_pair_curvature = 0.0
            return other
        diagonal = np.broadcast_to(np.asarray(curvature, float), self.n)
        if scipy.sparse.issparse(self.Q):
            Q = scipy.sparse.csr_array(self.Q + scipy.sparse.diags_array(diagonal))
        else:
            Q = self.Q.copy()
            Q[np.diag_indices(self.n)] += diagonal
        other.Q, other.least_pair_curvature = Q, 0.0
        other.c = self.c + (np.asarray(slope) - diagonal * center)
        return other

    def value(self, x: ArrayLike) -> float:
        """Return f(x)."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """Return the gradient ``Qx + c``."""
        return np.asarray(self._product(point_of(self, x)) + self.c)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f(x) and the gradient, from one product."""
        point = point_of(self, x)
        if not scipy.sparse.issparse(self.Q):
            return _core.quadratic(self.Q, self.c, point)
        product = self._product(point)
        return float(point @ (0.5 * product + self.c)), product + self.c

    def _product(self, x: Array) -> Array:
        # Computed by rows: the result does not depend on BLAS threads, and rows with x_j = 0 are
        # skipped.
        return self.Q @ x if scipy.sparse.issparse(self.Q) else _core.times(self.Q, x)

    def products(self, x: Array) -> Array:
        """Return the 2-norm of the products ``Q_ij x_j`` in each row i, for its rounding error."""
        largest = float(np.abs(x).max()) or 1.0
        return largest * np.sqrt(sums_of_squares(self.Q, x / largest))

    def curvature(self, indices: Indices, delta: Array) -> float:
        """Return ``d'Qd`` for the step d."""
        return float(delta @ self.block(indices) @ delta)

    def block(self, indices: Indices) -> Array:
        """Return these rows and columns of Q."""
        if scipy.sparse.issparse(self.Q):
            return np.asarray(self.Q[indices][:, indices].toarray())
        return np.asarray(self.Q[np.ix_(indices, indices)])

    def two_coordinate_constant(self) -> float:
        """Return L2 exactly, computed by blocks of rows if Q is sparse and large."""
        if self.hessian is not None:
            return _core.two_coordinate_constant(self.hessian)
        return largest_pair(self.lipschitz, lambda rows: self.Q[rows].toarray())

    def in_layout(self, layout: Layout) -> Quadratic:
        """Return the function of ``z = coefficients * x``; rows of slack variables are 0."""
        if layout.source is None and layout.coefficients is None:
            return self
        scale = layout.derivatives(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        converted = object.__new__(Quadratic)
        converted.is_convex = self.is_convex
        converted.least_pair_curvature = (
            self.least_pair_curvature if layout.coefficients is None else 0.0
        )
        if scipy.sparse.issparse(self.Q):
            diagonal = scipy.sparse.diags_array(scale)
            converted.Q = scipy.sparse.csr_array(diagonal @ self.Q[at][:, at] @ diagonal)
        else:
            Q = self.Q.take(at, axis=0).take(at, axis=1)
            if (scale != 1).any():
                Q *= scale
                Q *= scale[:, None]
            converted.Q = Q
        converted.c = self.c[at] * scale
        return converted
