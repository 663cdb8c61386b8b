"""The Kullback-Leibler divergence: Poisson likelihoods and nonnegative factorizations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._validation import LARGE_FACTOR, vector
from ..labels import Axis, aligned
from .ready_made import matrix, require_not_negative, require_some_positive
from .row_sum import RowSum


class KLDivergence(RowSum):
    """The divergence of Ax from b, ``sum_i b_i log(b_i / (Ax)_i) - b_i + (Ax)_i``.

    Up to a constant it is the negative log-likelihood of Poisson counts b with mean Ax.

    Parameters
    ----------
    A : array_like of shape (m, n)
        Entries of at least 0. It is not copied, so do not change it afterwards.
    b : array_like of shape (m,)
        Entries of at least 0.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.KLDivergence([[4.0, 0.0], [0.0, 4.0]], [3.0, 1.0])
    >>> pairstep.minimize(f, pairstep.Simplex()).x.round(6)
    array([0.75, 0.25])
    """

    _not_negative = True

    def __init__(self, A: ArrayLike, b: ArrayLike):
        self.variables, rows = Axis(), Axis()
        rates, largest = matrix("A", A, rows, self.variables)
        counts = vector("b", aligned("b", b, rows), len(rates), limit=LARGE_FACTOR)
        require_not_negative("A", rates)
        require_not_negative("b", counts)
        require_some_positive("A", rates, counts)
        seen = counts[counts > 0]
        super().__init__(
            _core.RowFunction.minus_log, rates, counts, largest=largest, linear=rates.sum(axis=0),
            constant=float(np.sum(seen * np.log(seen) - seen)),
        )  # fmt: skip
        self._constant_size = float(np.sum(np.abs(seen * np.log(seen)) + seen))

    @property
    def lower_bound(self) -> float:
        """A lower bound on f: a divergence is not negative."""
        return 0.0
