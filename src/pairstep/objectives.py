"""Objectives: smooth functions, and what a solver may ask of them.

A solver asks for what it needs and is told `None` where an objective cannot give it: `hessian` for
the greedy gear, `lipschitz` for the weighted rules, `curvature` for exact steps. To add an
objective, write a class with the members of `Objective`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._validation import Array, array, finite_number, require_finite, vector
from .constraints import Layout
from .rules import checked_constants

Indices = NDArray[np.int64]

# A Gram matrix of more than this many bytes is not formed.
GRAM_BYTES = 2**31


class Objective(Protocol):
    """A smooth function of n variables."""

    @property
    def n(self) -> int | None:
        """The number of variables, if the objective knows it."""

    @property
    def lipschitz(self) -> Array | None:
        """Coordinate-wise Lipschitz constants of the gradient, if known."""

    @property
    def hessian(self) -> Array | None:
        """The Hessian as one dense array, if it is constant and fits."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self, x: Array) -> Array:
        """The gradient at x, a new array."""

    def curvature(self, indices: Indices, delta: Array) -> float | None:
        """``d'Hd`` for the move d, if the Hessian is constant."""

    def two_coordinate_constant(self) -> float | None:
        """L2, the largest ``(H_ii + H_jj - 2 H_ij) / 2``, or an upper bound, if known."""

    def in_accounts(self, layout: Layout) -> Objective:
        """The same function of the accounts of a constraint."""


class Quadratic:
    """The function ``x'Qx / 2 + c'x``.

    Parameters
    ----------
    Q : array_like of shape (n, n)
        Symmetric; positive semidefinite for the function to be convex.
    c : array_like of shape (n,), optional
        The linear term, 0 by default.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, -1.0])
    >>> f.value([1.0, 1.0])
    3.0
    """

    def __init__(self, Q: ArrayLike, c: ArrayLike | None = None):
        matrix = array("Q", Q, 2)
        n = len(matrix)
        if matrix.shape != (n, n):
            raise ValueError(f"Q must be square, got shape {matrix.shape}")
        if n == 0:
            raise ValueError("Q is empty: there is nothing to minimise over")
        difference, largest, i, j = _core.asymmetry(matrix)
        if not np.isfinite(largest):
            require_finite("Q", matrix)
        if difference > 1e-8 * largest:
            raise ValueError(
                f"Q must be symmetric, but Q[{i}, {j}] = {matrix[i, j]:g} "
                f"and Q[{j}, {i}] = {matrix[j, i]:g}"
            )
        self.Q: Array = matrix if difference == 0 else (matrix + matrix.T) / 2
        self.c: Array = np.zeros(n) if c is None else vector("c", c, n)

    def __repr__(self) -> str:
        return f"Quadratic(n={self.n})"

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.c)

    @cached_property
    def lipschitz(self) -> Array:
        """The diagonal of Q."""
        return self.Q.diagonal().copy()

    @property
    def hessian(self) -> Array:
        """Q."""
        return self.Q

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        point = np.asarray(x, float)
        return float(point @ (0.5 * (self.Q @ point) + self.c))

    def gradient(self, x: ArrayLike) -> Array:
        """``Qx + c``."""
        return np.asarray(self.Q @ np.asarray(x, float) + self.c)

    def curvature(self, indices: Indices, delta: Array) -> float:
        """``d'Qd`` for the move d."""
        return float(delta @ self.Q[np.ix_(indices, indices)] @ delta)

    def two_coordinate_constant(self) -> float:
        """L2, exactly."""
        return _core.two_coordinate_constant(self.Q)

    def in_accounts(self, layout: Layout) -> Quadratic:
        """The quadratic in ``z = weights * x``, with empty rows for cash."""
        if layout.source is None and layout.weights is None:
            return self
        scale = layout.prices(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        moved = object.__new__(Quadratic)
        moved.Q = np.ascontiguousarray(self.Q[np.ix_(at, at)] * scale * scale[:, None])
        moved.c = self.c[at] * scale
        return moved


class LeastSquares:
    """The function ``|Ax - b|^2 / 2 + ridge |x|^2 / 2``.

    Parameters
    ----------
    A : array_like or scipy.sparse array of shape (m, n)
        One column per variable.
    b : array_like of shape (m,)
        The right-hand side.
    ridge : float
        Weight of the squared norm of x.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.LeastSquares([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    >>> f.value([0.0, 0.0])
    2.5
    """

    def __init__(self, A: Any, b: ArrayLike, ridge: float = 0.0):
        if scipy.sparse.issparse(A):
            matrix = scipy.sparse.csc_array(A)
            if matrix.dtype.kind not in "fiub":
                raise ValueError(f"A must hold real numbers, got dtype {matrix.dtype}")
            matrix = matrix.astype(np.float64)
            require_finite("A.data", matrix.data)
        else:
            matrix = array("A", A, 2)
            require_finite("A", matrix)
        if matrix.shape[1] == 0:
            raise ValueError("A has no columns: there is nothing to minimise over")
        self.A: Any = matrix
        self.b: Array = vector("b", b, matrix.shape[0])
        if finite_number("ridge", ridge) < 0:
            raise ValueError(f"ridge must not be negative, got {ridge:g}")
        self.ridge: Array = np.full(matrix.shape[1], float(ridge))

    def __repr__(self) -> str:
        return f"LeastSquares(m={self.A.shape[0]}, n={self.n})"

    @property
    def n(self) -> int:
        """The number of variables."""
        return int(self.A.shape[1])

    @cached_property
    def lipschitz(self) -> Array:
        """The squared norms of the columns, plus the ridge."""
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.multiply(self.A).sum(axis=0)).ravel() + self.ridge
        return np.asarray(np.einsum("ij,ij->j", self.A, self.A) + self.ridge)

    @cached_property
    def hessian(self) -> Array | None:
        """The Gram matrix ``A'A + ridge I``, if it fits."""
        if self.n**2 * 8 > GRAM_BYTES:
            return None
        gram = self.A.T @ self.A
        gram = gram.toarray() if scipy.sparse.issparse(gram) else gram
        gram[np.diag_indices(self.n)] += self.ridge
        return np.ascontiguousarray(gram)

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        point = np.asarray(x, float)
        residual = self.A @ point - self.b
        return float(0.5 * (residual @ residual) + 0.5 * (self.ridge * point @ point))

    def gradient(self, x: ArrayLike) -> Array:
        """``A'(Ax - b) + ridge x``."""
        point = np.asarray(x, float)
        return np.asarray(self.A.T @ (self.A @ point - self.b) + self.ridge * point)

    def curvature(self, indices: Indices, delta: Array) -> float:
        """``|Ad|^2 + ridge |d|^2`` for the move d."""
        change = self.A[:, indices] @ delta
        return float(change @ change + self.ridge[indices] * delta @ delta)

    def two_coordinate_constant(self) -> float:
        """L2, exactly; a block of rows of the Gram matrix at a time where it does not fit."""
        if self.hessian is not None:
            return _core.two_coordinate_constant(self.hessian)
        largest, diagonal = 0.0, self.lipschitz
        for begin in range(0, self.n, 256):
            rows = slice(begin, begin + 256)
            block = self.A[:, rows].T @ self.A
            block = block.toarray() if scipy.sparse.issparse(block) else block
            pairs = diagonal[rows, None] + diagonal - 2 * block
            pairs[np.arange(len(block)), begin + np.arange(len(block))] = 0.0
            largest = max(largest, float(pairs.max()) / 2)
        return largest

    def in_accounts(self, layout: Layout) -> LeastSquares:
        """The same in ``z = weights * x``: columns are divided by weights, 0 for cash."""
        if layout.source is None and layout.weights is None:
            return self
        scale = layout.prices(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        moved = object.__new__(LeastSquares)
        columns = self.A[:, at]
        if scipy.sparse.issparse(columns):
            moved.A = scipy.sparse.csc_array(columns @ scipy.sparse.diags_array(scale))
        else:
            moved.A = np.ascontiguousarray(columns * scale)
        moved.b = self.b
        moved.ridge = self.ridge[at] * scale**2
        return moved


class Smooth:
    """Any smooth function, from Python callables.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``.
    gradient : callable
        ``gradient(x) -> ndarray`` of the length of x.
    lipschitz : float or array_like, optional
        Coordinate-wise Lipschitz constants of the gradient; needed by the weighted rules and by
        the steps "1/L2" and "lipschitz".

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> entropy = pairstep.Smooth(lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1)
    >>> budget = pairstep.SumBox(total=1.0, lower=1e-6, upper=[0.2, 1.0, 1.0])
    >>> pairstep.minimize(entropy, budget).x.round(6)
    array([0.2, 0.4, 0.4])
    """

    def __init__(
        self,
        value: Callable[[Array], float],
        gradient: Callable[[Array], ArrayLike],
        lipschitz: ArrayLike | None = None,
    ):
        for name, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise ValueError(f"{name} must be callable, got {function!r}")
        self._value = value
        self._gradient = gradient
        self._lipschitz = lipschitz
        self.n: int | None = None
        if lipschitz is not None:
            size = np.size(np.asarray(lipschitz))
            checked_constants(lipschitz, size)
            self.n = size if np.ndim(lipschitz) else None

    def __repr__(self) -> str:
        return "Smooth()"

    @property
    def lipschitz(self) -> Array | None:
        """The constants that were given."""
        if self._lipschitz is None or self.n is None:
            return None
        return checked_constants(self._lipschitz, self.n)

    @property
    def hessian(self) -> None:
        """Unknown."""
        return None

    def value(self, x: Array) -> float:
        """f(x)."""
        return finite_number("the objective's value", self._value(x), infinite=True)

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""
        return vector("the objective's gradient", self._gradient(x), len(x)).copy()

    def curvature(self, indices: Indices, delta: Array) -> None:
        """Unknown."""
        return None

    def two_coordinate_constant(self) -> float | None:
        """Bound L2 for convex f by ``max (sqrt(L_i) + sqrt(L_j))^2 / 2``."""
        if self.lipschitz is None:
            return None
        largest = np.sort(np.sqrt(self.lipschitz))[-2:]
        return float(largest.sum() ** 2 / 2)

    def in_accounts(self, layout: Layout) -> Smooth:
        """The same function of ``z = weights * x``."""
        constants = None
        if self._lipschitz is not None:
            n = len(layout.bounds[0])
            constants = layout.scatter_constants(checked_constants(self._lipschitz, n))
            # Cash has no curvature; any positive number is a Lipschitz constant of it.
            constants = np.where(constants > 0, constants, constants[constants > 0].min())
        moved = Smooth(
            lambda z: self.value(layout.to_coordinates(z)),
            lambda z: layout.prices(self.gradient(layout.to_coordinates(z))),
            constants,
        )
        moved.n = layout.n
        return moved
