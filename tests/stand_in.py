"""A stand-in for a GPU that computes with NumPy."""

from contextlib import nullcontext

import numpy as np
import scipy.linalg

from pairstep.gpu.device import PAD, SLAB, Packed


class StandIn:
    """The device interface that the oracle uses, in NumPy."""

    xp = np

    def __init__(self, free=2**34):
        self.free = free
        self.packed = 0

    def at_work(self):
        return nullcontext()

    def compile(self, kernel, dtypes):
        pass

    def free_bytes(self):
        return self.free

    def is_full(self, error):
        return False

    def fetch(self, array):
        return array

    def pack(self, X, rows, center, dtype):
        self.packed += 1
        some = (X if rows is None else X[rows]).astype(np.float64) - center
        values = np.zeros(
            (-(-X.shape[1] // SLAB) * SLAB, max(-(-len(some) // PAD), 1) * PAD), dtype
        )
        values[: X.shape[1], : len(some)] = some.T
        squares = np.zeros(values.shape[1], dtype)
        squares[: len(some)] = (some**2).sum(axis=1)
        return Packed(values, squares, len(some))

    def sent(self, array):
        return array.copy()

    def send(self, values, target):
        assert target.flags.c_contiguous
        target[...] = values

    def kernel_matrix(self, kernel, points, queries, out=None):
        values = self.values(kernel, points, queries).astype(np.float64)
        if out is None:
            return values
        out[...] = values
        return out

    def values(self, kernel, points, queries):
        p, q = points.count, queries.count
        products = points.values[:, :p].T @ queries.values[:, :q]
        if kernel.differences:
            apart = points.values[:, :p, None] - queries.values[:, None, :q]
            return np.exp(-kernel.gamma * (apart**2).sum(axis=0))
        if kernel.name == "rbf":
            distances = points.squares[:p, None] + queries.squares[:q] - 2 * products
            return np.exp(-kernel.gamma * np.maximum(distances, 0)).astype(np.float64)
        if kernel.name == "linear":
            return products.astype(np.float64)
        inner = kernel.gamma * products + kernel.coef0
        return inner**kernel.degree if kernel.name == "poly" else np.tanh(inner)

    def add_sums(self, kernel, points, queries, weights, sums):
        assert sums.shape == (len(weights), points.count)
        assert weights.shape[1] == queries.count
        sums += weights @ self.values(kernel, points, queries).T

    def add_rows(self, matrix, rows, weights, columns, sums):
        sums += (weights @ matrix[rows])[:, columns]

    def submatrix(self, matrix, rows, ridge=0.0):
        return matrix[np.ix_(rows, rows)] + ridge * np.eye(len(rows))

    def diagonal(self, matrix):
        return matrix.diagonal()

    def scatter(self, target, indices, values):
        target[indices] = values

    def product(self, matrix, vector):
        return matrix @ vector

    def solve(self, matrix, right):
        try:
            return scipy.linalg.solve(matrix, right, assume_a="pos")
        except np.linalg.LinAlgError:
            return None

    def outliers(self, derivatives, count, with_free):
        return None
