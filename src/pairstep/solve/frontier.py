"""The efficient frontier: least risk for every return, interpolated where it is linear."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._validation import LARGE, Array, finite_number, vector
from ..constraints import Simplex, SumBox
from ..labels import Axis, aligned, labelled
from ..objectives import FactorModel, Quadratic
from ..result import Status
from ..show import rows_of_frontier, table
from .minimize import minimize

GROWTH = 4.0  # of the trade-off, on the way to a target
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Portfolios of the efficient frontier; entry k belongs to the k-th target.

    Attributes
    ----------
    x : ndarray of shape (count, n)
        A portfolio per row: within its bounds exactly, with its sums within one ulp.
    weights : ndarray or DataFrame
        The same with the labels of the assets, where covariance, mean or constraint have some.
    expected_return : ndarray of shape (count,)
        ``mean'x``.
    risk : ndarray of shape (count,)
        The standard deviation ``sqrt(x'Qx)``.
    tradeoff : ndarray of shape (count,)
        The t for which the portfolio minimises ``x'Qx / 2 - t mean'x``: by how much half the
        variance grows with the return there.
    kkt_violation : ndarray of shape (count,)
        Of that problem, recomputed from it.
    """

    x: Array
    expected_return: Array
    risk: Array
    tradeoff: Array
    kkt_violation: Array
    variables: Axis

    def __repr__(self) -> str:
        count, n = self.x.shape
        return table(f"Frontier: {count} portfolios of {n} assets", rows_of_frontier(self))

    @property
    def weights(self) -> Any:
        """The portfolios with their labels, one per row."""
        columns = labelled(self.x.T, self.variables, Axis())
        return columns if isinstance(self.variables.labels, list) else columns.T


class Corner(NamedTuple):
    """A solution on the way."""

    tradeoff: float
    x: Array
    violation: float


def efficient_frontier(
    covariance: Any,
    mean: ArrayLike,
    constraint: SumBox | None = None,
    *,
    target_return: ArrayLike | None = None,
    target_risk: ArrayLike | None = None,
    n_points: int = 20,
    tol: float = 1e-9,
) -> Frontier:
    """Find the portfolios of least risk for given returns, or of largest return for given risks.

    They minimise ``x'Qx / 2 - t mean'x`` for some t, along which they move on straight lines from
    corner to corner. Two solutions are found by the engine; the portfolio between them that meets
    the target is right if it passes the engine's own test of optimality, which it does exactly
    where both ends have the same variables at bounds and the same sums at limits. Otherwise it is
    the start of the next solve.

    Parameters
    ----------
    covariance : array_like, DataFrame, scipy.sparse array, or a pair (F, D)
        The matrix Q; or its factors, for ``Q = F'F + diag(D)``.
    mean : array_like or Series of shape (n,)
        Expected returns. Labels are aligned; see `pairstep.labels`.
    constraint : SumBox, optional
        The budget, bounds and sectors; `Simplex` by default.
    target_return, target_risk : float or array_like, optional
        Returns or standard deviations that are wanted. At most one of the two.
    n_points : int
        Where no target is given: so many portfolios, with returns spaced evenly from the least
        risk to the largest return.
    tol : float
        As in `minimize`.

    Returns
    -------
    Frontier
        A portfolio per target, in the order of the targets.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk, mean = np.diag([0.04, 0.09]), [0.03, 0.05]
    >>> frontier = pairstep.efficient_frontier(risk, mean, target_return=[0.04, 0.05])
    >>> frontier.weights.round(6)
    array([[0.5, 0.5],
           [0. , 1. ]])

    With at most half in a sector:

    >>> half = pairstep.SumBox(1.0, groups=["a", "b"], group_total={"b": (0.0, 0.5)})
    >>> pairstep.efficient_frontier(risk, mean, half, n_points=3).expected_return.round(6)
    array([0.036154, 0.038077, 0.04    ])
    """
    path = _Path(covariance, mean, Simplex() if constraint is None else constraint, tol)
    if target_return is not None and target_risk is not None:
        raise ValueError("give target_return or target_risk, not both")
    if target_risk is not None:
        return path.portfolios(_targets("target_risk", target_risk), _Risk(path))
    by_return = _Return(path)
    if target_return is not None:
        return path.portfolios(_targets("target_return", target_return), by_return)
    if isinstance(n_points, bool) or not isinstance(n_points, (int, np.integer)) or n_points < 1:
        raise ValueError(f"n_points must be a whole number of at least 1, got {n_points!r}")
    if not math.isfinite(path.largest_return):
        raise ValueError(
            "without lower bounds there may be no largest return: give target_return or target_risk"
        )
    least = by_return.of(path.corners[0].x)
    return path.portfolios(
        ("target_return", np.linspace(least, path.largest_return, n_points)), by_return
    )


def _targets(name: str, value: ArrayLike) -> tuple[str, Array]:
    if np.ndim(value) == 0:
        return name, np.array([finite_number(name, value)])
    return name, vector(name, value, limit=LARGE)


class _Path:
    """Solutions by their trade-off, as far as they were asked for."""

    def __init__(self, covariance: Any, mean: ArrayLike, constraint: SumBox, tol: float):
        self.variance: Quadratic | FactorModel
        if isinstance(covariance, tuple):
            if len(covariance) != 2:
                raise ValueError(f"covariance as factors must be a pair (F, D), got {covariance!r}")
            self.variance = FactorModel(*covariance)
        else:
            self.variance = Quadratic(covariance)
        self.variables = Axis.of(self.variance)
        self.mean = vector(
            "mean", aligned("mean", mean, self.variables), self.variance.n, limit=LARGE
        )
        self.constraint, self.tol = constraint.along(self.variables), tol
        self.variables.adopt(constraint.variables)
        self.corners = [self.solved(0.0, None)]

    def solved(self, tradeoff: float, x0: Array | None) -> Corner:
        """The portfolio of a trade-off."""
        return self._corner(tradeoff, x0)[0]

    def _corner(self, tradeoff: float, x0: Array | None) -> tuple[Corner, bool]:
        objective = self.variance.with_linear(-tradeoff * self.mean)
        result = minimize(objective, self.constraint, x0=x0, tol=self.tol)
        if result.status == Status.UNBOUNDED:
            raise ValueError(f"the return grows without bound at no risk: {result.message}")
        at_once = result.n_iter == 0 and result.status == Status.OPTIMAL
        return Corner(tradeoff, result.x, result.kkt_violation), at_once

    @property
    def largest_return(self) -> float:
        """The largest return that the constraint allows; inf where lower bounds are missing."""
        layout = self.constraint.layout(len(self.mean))
        if not np.isfinite(layout.lower).all():
            return math.inf
        z = layout.fill(layout.prices(-self.mean), np.zeros(layout.n))
        return float(self.mean @ layout.to_coordinates(z))

    def portfolios(self, named: tuple[str, Array], measure: _Return | _Risk) -> Frontier:
        """A portfolio per target."""
        name, targets = named
        found: list[Any] = [None] * len(targets)
        for k in np.argsort(targets):
            found[k] = self._at(name, float(targets[k]), measure)
        x = np.array([corner.x for corner in found]).reshape(-1, len(self.mean))
        return Frontier(
            x=x,
            expected_return=x @ self.mean,
            risk=np.array([_Risk(self).of(row) for row in x]),
            tradeoff=np.array([corner.tradeoff for corner in found]),
            kkt_violation=np.array([corner.violation for corner in found]),
            variables=self.variables,
        )

    def _at(self, name: str, target: float, measure: _Return | _Risk) -> Corner:
        least = measure.of(self.corners[0].x)
        slack = ROUNDING * measure.size(self.corners[0].x)
        if target < least - 1e3 * slack:
            raise ValueError(
                f"{name} = {target:g} is below {least:g}, that of the portfolio of least risk, "
                "where the frontier begins"
            )
        while measure.of(self.corners[-1].x) < target - slack:
            self._extend(name, target, measure)
        reached = [measure.of(corner.x) for corner in self.corners]
        at = bisect.bisect_left(reached, target - slack)
        if at == 0 or abs(reached[at] - target) <= slack:
            return self.corners[at]
        before, after = self.corners[at - 1], self.corners[at]
        for attempt in range(200):
            # Where the frontier bends in between, halves find the piece of the target for sure.
            share = measure.share(before.x, after.x, target) if attempt % 2 == 0 else 0.5
            tradeoff = (1 - share) * before.tradeoff + share * after.tradeoff
            between = before.x + share * (after.x - before.x)
            corner, is_linear = self._corner(tradeoff, between)
            if attempt % 2 == 0 and is_linear:
                return corner
            if abs(measure.of(corner.x) - target) <= slack:
                return corner
            if not before.tradeoff < tradeoff < after.tradeoff:
                break
            bisect.insort(self.corners, corner, key=lambda c: c.tradeoff)
            if measure.of(corner.x) < target:
                before = corner
            else:
                after = corner
        # The return jumps: all that is between two solutions of one trade-off is a solution.
        share = measure.share(before.x, after.x, target)
        return Corner(tradeoff, before.x + share * (after.x - before.x), before.violation)

    def _extend(self, name: str, target: float, measure: _Return | _Risk) -> None:
        last = self.corners[-1]
        tradeoff = GROWTH * last.tradeoff or self._first_tradeoff()
        most = self.largest_return
        slack = ROUNDING * _Return(self).size(last.x)
        at_end = self.mean @ last.x >= most - slack
        if at_end or tradeoff > LARGE or not tradeoff > last.tradeoff:
            reached = measure.of(last.x)
            raise ValueError(
                f"{name} = {target:g} is above {reached:g}, the largest that the constraint allows"
            )
        self.corners.append(self.solved(tradeoff, last.x))

    def _first_tradeoff(self) -> float:
        """One at which return and risk weigh about the same."""
        spread = float(self.mean.max() - self.mean.min()) or float(np.abs(self.mean).max())
        weight = float(np.abs(self.variance.gradient(self.corners[0].x)).max())
        if spread == 0:
            return LARGE
        return weight / spread if weight > 0 else float(self.variance.lipschitz.max()) or 1.0


class _Return:
    """What a portfolio is expected to earn: linear between two of them."""

    def __init__(self, path: _Path):
        self.mean = path.mean

    def of(self, x: Array) -> float:
        return float(self.mean @ x)

    def size(self, x: Array) -> float:
        return float(np.abs(self.mean).max() * np.abs(x).sum())

    def share(self, before: Array, after: Array, target: float) -> float:
        low, high = self.of(before), self.of(after)
        return min(max((target - low) / (high - low), 0.0), 1.0) if high > low else 0.5


class _Risk:
    """The standard deviation of a portfolio: the root of a parabola between two of them."""

    def __init__(self, path: _Path):
        none: Callable[[Any], Any] = path.variance.with_linear
        self.variance = none(np.zeros(len(path.mean)))

    def of(self, x: Array) -> float:
        return math.sqrt(max(2 * self.variance.value(x), 0.0))

    def size(self, x: Array) -> float:
        return float(np.sqrt(self.variance.lipschitz.max()) * np.abs(x).sum())

    def share(self, before: Array, after: Array, target: float) -> float:
        way = after - before
        slope = float(self.variance.gradient(before) @ way)
        bend = float(self.variance.gradient(way) @ way)
        missing = target**2 - 2 * self.variance.value(before)
        root = slope + math.sqrt(max(slope**2 + bend * missing, 0.0))
        return min(max(missing / root, 0.0), 1.0) if root > 0 else 0.5
