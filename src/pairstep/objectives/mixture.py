"""Mixture proportions by maximum likelihood."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .. import _core
from ..labels import Axis
from .ready_made import matrix, require_not_negative, require_some_positive, row_weights
from .row_sum import RowSum


class MixtureLikelihood(RowSum):
    """The negative log-likelihood of mixture proportions, ``-sum_i weights_i log((Lx)_i)``.

    Entries of L below 1e-308 count as 0.

    Parameters
    ----------
    L : array_like of shape (m, n)
        ``L[i, j]`` is the likelihood of observation i under component j. Only the ratios within a
        row matter. L is not copied, so do not change it afterwards.
    weights : array_like of shape (m,), optional
        Weight of each observation, ``1 / m`` by default.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> seen = np.array([-1.1, -0.9, -1.0, 2.0])
    >>> means = np.array([-1.0, 0.0, 2.0])
    >>> L = np.exp(-((seen[:, None] - means) ** 2) / 0.02)
    >>> pairstep.minimize(pairstep.MixtureLikelihood(L), pairstep.Simplex()).x.round(6)
    array([0.75, 0. , 0.25])
    """

    _not_negative = True

    def __init__(self, L: ArrayLike, weights: ArrayLike | None = None):
        self.variables, rows = Axis(), Axis()
        likelihoods, largest = matrix("L", L, rows, self.variables)
        weight = row_weights(weights, len(likelihoods), rows)
        require_not_negative("L", likelihoods)
        require_some_positive("L", likelihoods, weight)
        super().__init__(_core.RowFunction.minus_log, likelihoods, weight, largest=largest)
