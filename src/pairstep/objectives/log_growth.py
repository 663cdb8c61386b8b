"""Growth-optimal portfolios (the Kelly criterion)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .. import _core
from ..labels import Axis
from .ready_made import matrix, row_weights
from .row_sum import RowSum


class LogGrowth(RowSum):
    """The negative growth rate of a portfolio, ``-sum_i weights_i log(1 + (returns x)_i)``.

    Uninvested money earns nothing. The value is infinite for a portfolio that loses everything in
    some period.

    Parameters
    ----------
    returns : array_like of shape (m, n)
        Net returns, such as 0.01 for one percent: a row for each period and a column for each
        asset. It is not copied, so do not change it afterwards.
    weights : array_like of shape (m,), optional
        Weight of each period, ``1 / m`` by default.

    Examples
    --------
    A bet that doubles the stake with probability 0.6 and loses it otherwise: bet a fifth.

    >>> import pairstep
    >>> coin = pairstep.LogGrowth([[1.0], [-1.0]], weights=[0.6, 0.4])
    >>> pairstep.minimize(coin, pairstep.SumBox(total=(0.0, 1.0))).x.round(6)
    array([0.2])
    """

    def __init__(self, returns: ArrayLike, weights: ArrayLike | None = None):
        self.variables, rows = Axis(), Axis()
        net, largest = matrix("returns", returns, rows, self.variables)
        weight = row_weights(weights, len(net), rows)
        super().__init__(_core.RowFunction.minus_log, net, weight, largest=largest, offset=1.0)
