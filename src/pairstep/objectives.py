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

from . import _core, threads
from ._validation import (
    LARGE,
    LARGE_FACTOR,
    Array,
    array,
    finite_number,
    frozen,
    full_vector,
    require_finite,
    vector,
)
from .constraints import Layout
from .rules import checked_constants

Indices = NDArray[np.int64]

# A Gram matrix of more than this many bytes is not formed.
GRAM_BYTES = 2**31
# The block gear reads its data about so often, which tells how many threads it is worth.
ROUNDS = 20
# A sparse matrix is made dense up to this many.
SMALL_BYTES = 2**25


class Objective(Protocol):
    """A smooth function of n variables. It must not change the points it is asked about."""

    @property
    def n(self) -> int | None:
        """The number of variables, if the objective knows it."""

    @property
    def lipschitz(self) -> Array | None:
        """Coordinate-wise Lipschitz constants of the gradient, if known."""

    @property
    def hessian(self) -> Array | None:
        """The Hessian as one dense array, if it is constant and fits."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the Hessian is constant, so that `curvature` and `block` answer."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self, x: Array) -> Array:
        """The gradient at x, a new array."""

    def curvature(self, indices: Indices, delta: Array) -> float | None:
        """``d'Hd`` for the move d, if the Hessian is constant."""

    def two_coordinate_constant(self) -> float | None:
        """L2, the largest ``(H_ii + H_jj - 2 H_ij) / 2``, or an upper bound, if known."""

    @property
    def linear(self) -> Array | None:
        """The gradient at 0, the part that no x changes, if the Hessian is constant."""

    @property
    def kinks(self) -> tuple[Array, Array] | None:
        """Weights k and places p of the kinks ``k_i |x_i - p_i|``, if there are any."""

    def block(self, indices: Indices) -> Array | None:
        """Rows and columns of the Hessian, if it is constant."""

    @property
    def prefers_blocks(self) -> bool:
        """Whether `block` is the cheaper way to the Hessian."""

    def in_accounts(self, layout: Layout) -> Objective:
        """The same function of the accounts of a constraint."""


def value_and_gradient(objective: Objective, x: Array) -> tuple[float, Array]:
    """f(x) and the gradient at x, at one cost where the objective can tell both together."""
    together = getattr(objective, "value_and_gradient", None)
    return (objective.value(x), objective.gradient(x)) if together is None else together(x)


class Quadratic:
    """The function ``x'Qx / 2 + c'x``.

    Numbers beyond 1e100 in size are refused, for products overflow there.

    Parameters
    ----------
    Q : array_like or scipy.sparse array of shape (n, n)
        Symmetric; positive semidefinite for the function to be convex. It is not copied: do not
        change it afterwards.
    c : array_like of shape (n,), optional
        The linear term, 0 by default.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, -1.0])
    >>> f.value([1.0, 1.0])
    3.0
    """

    kinks = None
    is_quadratic = True

    def __init__(self, Q: Any, c: ArrayLike | None = None):
        matrix: Any = sparse_matrix("Q", Q, LARGE) if scipy.sparse.issparse(Q) else array("Q", Q, 2)
        n = matrix.shape[0]
        if matrix.shape != (n, n):
            raise ValueError(f"Q must be square, got shape {matrix.shape}")
        if n == 0:
            raise ValueError("Q is empty: there is nothing to minimise over")
        self.Q: Any
        self.Q, self.least_pair_curvature = _symmetric(matrix)
        self.c: Array = frozen(np.zeros(n) if c is None else vector("c", c, n, limit=LARGE))

    def __repr__(self) -> str:
        return f"Quadratic(n={self.n})"

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.c)

    @cached_property
    def lipschitz(self) -> Array:
        """The diagonal of Q."""
        return np.array(self.Q.diagonal())

    @cached_property
    def hessian(self) -> Array | None:
        """Q, if it is dense or small enough to be made so."""
        if not scipy.sparse.issparse(self.Q):
            return np.asarray(self.Q)
        return np.asarray(self.Q.toarray()) if self.n**2 * 8 <= SMALL_BYTES else None

    @property
    def linear(self) -> Array:
        """The linear term c."""
        return self.c

    @property
    def prefers_blocks(self) -> bool:
        """Whether parts of the Hessian are cheaper to work with than the whole."""
        return self.hessian is None

    def oracle(self, point: Any) -> Any:
        """What the block gear asks, answered in native code."""
        entries = self.Q.nnz if scipy.sparse.issparse(self.Q) else self.Q.size
        workers = threads.worth(ROUNDS * entries)
        return _core.matrix_oracle(_native(self.Q), self.c, point, workers)

    def with_linear(self, c: ArrayLike) -> Quadratic:
        """The same Q, which is not checked again, with another linear term."""
        other = object.__new__(Quadratic)
        other.__dict__.update(self.__dict__)
        other.c = frozen(vector("c", c, self.n, limit=LARGE))
        return other

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """``Qx + c``."""
        return np.asarray(self._product(np.asarray(x, float)) + self.c)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Both from one product."""
        point = np.asarray(x, float)
        product = self._product(point)
        return float(point @ (0.5 * product + self.c)), product + self.c

    def _product(self, x: Array) -> Array:
        # By rows: the same bits whatever the number of BLAS threads, and only the rows that count.
        return self.Q @ x if scipy.sparse.issparse(self.Q) else _core.times(self.Q, x)

    def curvature(self, indices: Indices, delta: Array) -> float:
        """``d'Qd`` for the move d."""
        return float(delta @ self.block(indices) @ delta)

    def block(self, indices: Indices) -> Array:
        """Rows and columns of Q."""
        if scipy.sparse.issparse(self.Q):
            return np.asarray(self.Q[indices][:, indices].toarray())
        return np.asarray(self.Q[np.ix_(indices, indices)])

    def two_coordinate_constant(self) -> float:
        """L2, exactly; a block of rows at a time where Q is sparse and large."""
        if self.hessian is not None:
            return _core.two_coordinate_constant(self.hessian)
        return largest_pair(self.lipschitz, lambda rows: self.Q[rows].toarray())

    def in_accounts(self, layout: Layout) -> Quadratic:
        """The quadratic in ``z = weights * x``, with empty rows for cash."""
        if layout.source is None and layout.weights is None:
            return self
        scale = layout.prices(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        moved = object.__new__(Quadratic)
        moved.least_pair_curvature = self.least_pair_curvature if layout.weights is None else 0.0
        if scipy.sparse.issparse(self.Q):
            diagonal = scipy.sparse.diags_array(scale)
            moved.Q = scipy.sparse.csr_array(diagonal @ self.Q[at][:, at] @ diagonal)
        else:
            moved.Q = np.ascontiguousarray(self.Q[np.ix_(at, at)] * scale * scale[:, None])
        moved.c = self.c[at] * scale
        return moved


def _native(matrix: Any) -> Any:
    """A matrix as the native code takes it: dense, or the parts of a CSR array."""
    if not scipy.sparse.issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    return (
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1]
    )  # fmt: skip


def sparse_matrix(name: str, matrix: Any, limit: float) -> Any:
    """A sparse argument as a float64 CSR array of numbers up to the limit in size."""
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    result = scipy.sparse.csr_array(matrix, dtype=np.float64)
    require_finite(f"{name}.data", result.data, limit)
    return result


def _symmetric(matrix: Any) -> tuple[Any, float]:
    """The matrix, rid of rounding's asymmetry; an error if it is visibly asymmetric.

    Also the least curvature of a pair relative to the largest entry, which comes with the pass
    (0 where it is not known): below 0 the function is not convex.
    """
    least = 0.0
    if scipy.sparse.issparse(matrix):
        difference = abs(matrix - matrix.T).tocoo()
        largest = abs(matrix).max() if matrix.nnz else 0.0
        worst = int(np.argmax(difference.data)) if difference.nnz else 0
        amount = float(difference.data[worst]) if difference.nnz else 0.0
        i, j = (int(a[worst]) for a in difference.coords) if difference.nnz else (0, 0)
    else:
        amount, largest, i, j, least = _core.asymmetry(matrix)
        if not largest <= LARGE:
            require_finite("Q", matrix, LARGE)
    if amount > 1e-8 * largest:
        raise ValueError(
            f"Q must be symmetric, but Q[{i}, {j}] = {matrix[i, j]:g} "
            f"and Q[{j}, {i}] = {matrix[j, i]:g}"
        )
    relative = least / largest if largest > 0 else 0.0
    return matrix if amount == 0 else (matrix + matrix.T) / 2, relative


def largest_pair(diagonal: Array, rows_of: Callable[[slice], Array]) -> float:
    """``max_ij (H_ii + H_jj - 2 H_ij) / 2`` from blocks of rows."""
    largest = 0.0
    for begin in range(0, len(diagonal), 256):
        rows = slice(begin, begin + 256)
        pairs = diagonal[rows, None] + diagonal - 2 * rows_of(rows)
        pairs[np.arange(len(pairs)), begin + np.arange(len(pairs))] = 0.0
        largest = max(largest, float(pairs.max()) / 2)
    return largest


def inner(left: Any, right: Array) -> Array:
    """``left' right``, the same bits whatever the number of threads; `left` may be sparse."""
    if scipy.sparse.issparse(left):
        return np.asarray(left.T @ right)
    return _core.inner(left, right, threads.worth(left.size * right.shape[1]))


class LeastSquares:
    """The function ``|Ax - b|^2 / 2 + ridge |x|^2 / 2``.

    Numbers beyond 1e50 in size (1e100 for the ridge) are refused, for products overflow there.

    Parameters
    ----------
    A : array_like or scipy.sparse array of shape (m, n)
        One column per variable. It is not copied: do not change it afterwards.
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

    kinks = None
    is_quadratic = True

    def __init__(self, A: Any, b: ArrayLike, ridge: float = 0.0):
        if finite_number("ridge", ridge) < 0:
            raise ValueError(f"ridge must not be negative, got {ridge:g}")
        self._set(("A", A), b, ("ridge", ridge), 0.0)

    def _set(
        self,
        named_matrix: tuple[str, Any],
        b: ArrayLike,
        named_ridge: tuple[str, ArrayLike],
        c: ArrayLike,
    ) -> None:
        name, A = named_matrix
        if scipy.sparse.issparse(A):
            matrix: Any = sparse_matrix(name, A, LARGE_FACTOR).tocsc()
        else:
            matrix = array(name, A, 2)
            require_finite(name, matrix, LARGE_FACTOR)
        if matrix.shape[1] == 0:
            raise ValueError(f"{name} has no columns: there is nothing to minimise over")
        m, n = matrix.shape
        self.A: Any = matrix
        self.b: Array = frozen(vector("b", b, m, limit=LARGE_FACTOR))
        self.ridge: Array = frozen(full_vector(*named_ridge, n, limit=LARGE))
        self.c: Array = frozen(full_vector("c", c, n, limit=LARGE))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.A.shape[0]}, n={self.n})"

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
        return None if self.n**2 * 8 > GRAM_BYTES else self.block(np.arange(self.n))

    @cached_property
    def linear(self) -> Array:
        """``c - A'b``."""
        return np.asarray(self.c - self._back(self.b))

    @property
    def prefers_blocks(self) -> bool:
        """Whether parts of the Gram matrix are cheaper to work with than the whole."""
        return self.n > 1000

    def oracle(self, point: Any) -> Any:
        """What the block gear asks, answered in native code."""
        columns = self.A.T if scipy.sparse.issparse(self.A) else self.A
        entries = self.A.nnz if scipy.sparse.issparse(self.A) else self.A.size
        workers = threads.worth(ROUNDS * entries)
        return _core.gram_oracle(_native(columns), self.b, self.ridge, self.c, point, workers)

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        point = np.asarray(x, float)
        return self._value(point, self._forth(point) - self.b)

    def gradient(self, x: ArrayLike) -> Array:
        """``A'(Ax - b) + ridge x``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Both from one residual."""
        point = np.asarray(x, float)
        residual = self._forth(point) - self.b
        gradient = self._back(residual) + self.ridge * point + self.c
        return self._value(point, residual), np.asarray(gradient)

    def _forth(self, x: Array) -> Array:
        return self.A @ x if scipy.sparse.issparse(self.A) else _core.times_vector(self.A, x)

    def _back(self, residual: Array) -> Array:
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.T @ residual)
        return _core.transposed_times_vector(self.A, residual)

    def _value(self, x: Array, residual: Array) -> float:
        return float(0.5 * (residual @ residual) + (0.5 * self.ridge * x + self.c) @ x)

    def curvature(self, indices: Indices, delta: Array) -> float:
        """``|Ad|^2 + ridge |d|^2`` for the move d."""
        change = self.A[:, indices] @ delta
        return float(change @ change + self.ridge[indices] * delta @ delta)

    def block(self, indices: Indices) -> Array:
        """Rows and columns of the Gram matrix."""
        all_of_them = len(indices) == self.n
        if scipy.sparse.issparse(self.A):
            columns = self.A if all_of_them else self.A[:, indices]
            gram = np.ascontiguousarray((columns.T @ columns).toarray())
        else:
            workers = threads.worth(len(self.A) * len(indices) ** 2 / 2)
            gram = _core.gram(self.A, None if all_of_them else indices, workers)
        gram[np.diag_indices(len(indices))] += self.ridge[indices]
        return gram

    def two_coordinate_constant(self) -> float:
        """L2, exactly; a block of rows of the Gram matrix at a time where it does not fit."""
        if self.hessian is not None:
            return _core.two_coordinate_constant(self.hessian)

        def rows_of(rows: slice) -> Array:
            if scipy.sparse.issparse(self.A):
                return np.asarray((self.A[:, rows].T @ self.A).toarray())
            return inner(self.A[:, rows], self.A)

        return largest_pair(self.lipschitz, rows_of)

    def in_accounts(self, layout: Layout) -> LeastSquares:
        """The same in ``z = weights * x``: columns are divided by weights, 0 for cash."""
        if layout.source is None and layout.weights is None:
            return self
        scale = layout.prices(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        moved = object.__new__(type(self))
        columns = self.A[:, at]
        if scipy.sparse.issparse(columns):
            moved.A = scipy.sparse.csc_array(columns @ scipy.sparse.diags_array(scale))
        else:
            moved.A = np.ascontiguousarray(columns * scale)
        moved.b = self.b
        moved.ridge = self.ridge[at] * scale**2
        moved.c = self.c[at] * scale
        return moved


class FactorModel(LeastSquares):
    """The function ``x'(F'F + diag(D))x / 2 + c'x``; the n x n matrix is never formed.

    Numbers beyond 1e100 in size (1e50 for F) are refused, for products overflow there.

    Parameters
    ----------
    F : array_like or scipy.sparse array of shape (m, n)
        One row per factor, one column per variable. It is not copied: do not change it afterwards.
    D : float or array_like of shape (n,)
        The diagonal, not negative: what the factors do not explain.
    c : array_like of shape (n,), optional
        The linear term.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.FactorModel([[1.0, 1.0]], [1.0, 3.0])
    >>> f.value([1.0, 1.0])
    4.0
    """

    def __init__(self, F: Any, D: ArrayLike = 0.0, c: ArrayLike | None = None):
        if np.ndim(F) != 2:
            raise ValueError(f"F must have 2 dimensions, got {np.ndim(F)}")
        self._set(("F", F), np.zeros(np.shape(F)[0]), ("D", D), 0.0 if c is None else c)
        if self.ridge.min() < 0:
            i = int(np.argmin(self.ridge))
            raise ValueError(f"D must not be negative, but D[{i}] = {self.ridge[i]:g}")

    @property
    def prefers_blocks(self) -> bool:
        """Whether parts of the Hessian are cheaper to work with than the whole."""
        return self.n > 200


class Kinked:
    """An objective plus kinks ``sum_i l1_i |x_i - center_i|``.

    They carry trading costs, turnover and sparsity.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth or Kinked
        The smooth part. It may have kinks itself, but each variable at one place only: where both
        weights are positive the centers must be equal.
    l1 : float or array_like of shape (n,)
        Weights, not negative.
    center : float or array_like of shape (n,)
        Where the kinks are.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> held = np.array([0.6, 0.4])
    >>> risk = pairstep.Quadratic([[1.0, 0.0], [0.0, 1.0]])
    >>> costly = pairstep.Kinked(risk, l1=0.5, center=held)
    >>> pairstep.minimize(costly, pairstep.Simplex()).x
    array([0.6, 0.4])
    """

    def __init__(self, objective: Objective, l1: ArrayLike, center: ArrayLike = 0.0):
        self.objective = objective
        # Where nobody knows n yet, numbers stand for vectors of length 1, until `in_accounts`.
        sizes = [np.size(np.asarray(v)) for v in (l1, center) if np.ndim(v)]
        self.n: int | None = sizes[0] if objective.n is None and sizes else objective.n
        n = 1 if self.n is None else self.n
        weight = frozen(full_vector("l1", l1, n, limit=LARGE))
        pivot = frozen(full_vector("center", center, n, limit=LARGE))
        if weight.min() < 0:
            i = int(np.argmin(weight))
            raise ValueError(f"l1 must not be negative, but l1[{i}] = {weight[i]:g}")
        self._added: tuple[Array, Array] = weight, pivot
        inner: tuple[Array, Array] | None = getattr(objective, "kinks", None)
        self.kinks = self._added if inner is None else _together(inner, self._added)

    def __repr__(self) -> str:
        return f"Kinked({self.objective!r})"

    def __getattr__(self, name: str) -> Any:
        # The smooth part answers for gradient, curvature, constants and Hessian.
        if "objective" not in self.__dict__:  # while it is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.objective, name)

    def value(self, x: ArrayLike) -> float:
        """The objective with its kinks."""
        point = np.asarray(x, float)
        return self.objective.value(point) + self._at_kinks(point)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """The objective with its kinks, and the gradient of the smooth part."""
        point = np.asarray(x, float)
        value, gradient = value_and_gradient(self.objective, point)
        return value + self._at_kinks(point), gradient

    def _at_kinks(self, x: Array) -> float:
        weight, pivot = self._added
        return float((weight * np.abs(x - pivot)).sum())

    def in_accounts(self, layout: Layout) -> Kinked:
        """The same function of the accounts of a constraint."""
        smooth = self.objective.in_accounts(layout)
        if smooth is self.objective:
            return self
        n = len(layout.bounds[0])
        weight, pivot = (np.broadcast_to(v, n) for v in self._added)
        return Kinked(smooth, np.abs(layout.prices(weight)), layout.scatter(pivot))


def _together(inner: tuple[Array, Array], outer: tuple[Array, Array]) -> tuple[Array, Array]:
    """Kinks upon kinks: the weights of one place add up."""
    inner_weight, inner_pivot, weight, pivot = np.broadcast_arrays(*inner, *outer)
    apart = (inner_weight > 0) & (weight > 0) & (inner_pivot != pivot)
    if apart.any():
        i = int(np.argmax(apart))
        raise ValueError(
            f"a variable may have one kink: the objective's is at {inner_pivot[i]:g}, "
            f"but center[{i}] = {pivot[i]:g}"
        )
    return inner_weight + weight, np.where(weight > 0, pivot, inner_pivot)


class Smooth:
    """Any smooth function, from Python callables.

    They are given a copy of the point, and what they return is copied.

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

    kinks = None
    linear = None
    is_quadratic = False
    prefers_blocks = False

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
        return finite_number(
            "the objective's value", self._value(np.array(x, float)), infinite=True
        )

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""
        gradient = self._gradient(np.array(x, float))
        return vector("the objective's gradient", gradient, len(x)).copy()

    def curvature(self, indices: Indices, delta: Array) -> None:
        """Unknown."""
        return None

    def block(self, indices: Indices) -> None:
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
