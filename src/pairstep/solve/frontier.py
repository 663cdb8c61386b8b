"""The efficient frontier: the least risk for every return.

Portfolios on the frontier minimize ``x'Qx / 2 - t mean'x`` for a trade-off t. As t grows they move
along straight lines between corners (Markowitz's critical line), so that a portfolio between two
solutions on the same piece is found by interpolation.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Never

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, log
from .._validation import (
    LARGE,
    Array,
    finite_number,
    numbers_for_message,
    unexpected_keywords,
    vector,
)
from ..constraints import GroupLabels, GroupLimit, GroupTotal, SumBox, Total
from ..kept import kept
from ..labels import Axis, aligned, labeled
from ..objectives import FactorModel, Quadratic
from ..result import Result, Status
from ..show import plot_frontier, rows_of_frontier, table
from .constraint_keywords import constraint_from
from .minimize import minimize, not_negative
from .task import NOT_CONVEX

# Factor between the trade-offs that are tried until one reaches the target. A larger factor needs
# fewer solves, but each starts farther from its solution.
TRADEOFF_GROWTH = 4.0
# Difference of a return or risk from its target, relative to the size of its terms, that counts as
# rounding. It is 4500 machine epsilons, to cover sums over many assets.
ROUNDING = 1e-12
EPS = float(np.finfo(float).eps)
# Upper limit of the tolerance of each solve. Interpolation needs returns that increase with the
# trade-off, which is not guaranteed for solutions with a looser tolerance.
MAX_TOL = 1e-6
# Trade-offs at which to look for the portfolio of largest return among those of least risk, as
# fractions of the trade-off at which return and risk have equal weight. The first one that lies on
# the frontier's first straight piece is used. Below the last one, the return is close to the
# rounding error of the risk.
FIRST_FRACTIONS = (1e-3, 1e-5, 1e-7, 1e-9)
# Curvature, relative to the largest, that counts as zero in the test for several portfolios of
# least risk. A larger value may send a unique portfolio to that search, which costs a few solves; a
# smaller one may mistake rounding errors for curvature.
ZERO_CURVATURE = 1e-10
# Number of free variables at the least risk above which their Hessian is not factorized, because
# that would take longer than the rest of the frontier.
MAX_FREE_FACTORIZED = 2000
MIN_TOL = 1e-13  # smallest tolerance that a solve can reach despite rounding errors
# Every second solve halves the interval of trade-offs, so 200 solves halve it more often than the
# 53 bits of a float64 allow.
MAX_SOLVES_PER_TARGET = 200
NOT_A_COVARIANCE = (
    "covariance is not positive semidefinite, so some portfolios have a negative variance: compute "
    "it from complete observations in float64, shrink it towards its diagonal, or set its negative "
    "eigenvalues to 0"
)


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Portfolios of the efficient frontier; entry k belongs to the k-th target.

    Attributes
    ----------
    x : ndarray of shape (count, n)
        One portfolio per row. The bounds hold exactly, and the sums within one ulp.
    weights : ndarray or DataFrame
        The portfolios with the labels of the assets, if an argument has labels.
    expected_return : ndarray of shape (count,)
        ``mean'x``.
    risk : ndarray of shape (count,)
        The standard deviation ``sqrt(x'Qx)``.
    tradeoff : ndarray of shape (count,)
        The t for which the portfolio minimizes ``x'Qx / 2 - t mean'x``: the derivative of half the
        variance with respect to the return.
    kkt_violation : ndarray of shape (count,)
        KKT violation of that problem, recomputed from it.
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
        return labeled(self.x, self.variables)

    def plot(self) -> Any:
        """Plot expected return over risk.

        Returns
        -------
        matplotlib.axes.Axes
            The plot. This needs matplotlib: ``pip install 'pairstep[plots]'``.
        """
        return plot_frontier(self)


class Corner(NamedTuple):
    """A solution on the frontier, with its trade-off."""

    tradeoff: float
    x: Array
    violation: float


def efficient_frontier(
    covariance: Any,
    mean: ArrayLike,
    constraint: SumBox | None = None,
    *,
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    group_lower: GroupLimit | None = None,
    group_upper: GroupLimit | None = None,
    target_return: ArrayLike | None = None,
    target_risk: ArrayLike | None = None,
    n_points: int = 20,
    tol: float = 1e-9,
    max_iter: int | None = None,
    time_limit: float | None = None,
    verbose: bool = False,
    **unexpected: Never,
) -> Frontier:
    """Find the portfolios of least risk for given returns, or of largest return for given risks.

    The frontier starts at the portfolio of least risk. If several portfolios have the least risk,
    as with a sample covariance of fewer observations than assets, it starts at the one of largest
    return.

    The portfolios minimize ``x'Qx / 2 - t mean'x`` for some t, and move along straight lines as t
    grows. Given two solutions, the portfolio between them that meets the target is optimal exactly
    if both have the same variables at bounds and the same sums at limits. The solver's optimality
    test decides; if the test fails, the portfolio is the start of the next solve.

    Parameters
    ----------
    covariance : array_like, DataFrame, scipy.sparse array, or a pair (F, D)
        The matrix Q, positive semidefinite; or its factors, for ``Q = F'F + diag(D)``.
    mean : array_like or Series of shape (n,)
        Expected returns. Labels are aligned; see `pairstep.labels`.
    constraint : SumBox, optional
        The sum, bounds and sectors; the probability simplex by default.
    total, lower, upper, coefficients, groups, group_total, group_lower, group_upper
        The same by keywords, as in `SumBox`, in place of `constraint`.
    target_return, target_risk : float or array_like, optional
        Returns or standard deviations of the portfolios to find. At most one of the two.
    n_points : int
        Number of portfolios if no target is given. Their returns are evenly spaced between that of
        the least risk and the largest.
    tol : float
        As in `minimize`; a value above 1e-6 counts as 1e-6.
    max_iter : int, optional
        Maximum number of iterations of each solve, as in `minimize`.
    time_limit : float, optional
        Maximum number of seconds for the whole frontier.
    verbose : bool
        Whether to print a line for each portfolio; the logger "pairstep" always receives it.
    **unexpected
        Other keywords raise TypeError.

    Returns
    -------
    Frontier
        One portfolio per target, in the order of the targets.

    Raises
    ------
    ValueError
        If a target is outside the frontier, or if the covariance is found not to be positive
        semidefinite: a matrix estimated pair by pair may have portfolios of negative variance, and
        then there is no frontier.
    TimeoutError
        If `time_limit` is reached before all portfolios are found.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk, mean = np.diag([0.04, 0.09]), [0.03, 0.05]
    >>> frontier = pairstep.efficient_frontier(risk, mean, target_return=[0.04, 0.05])
    >>> frontier.weights.round(6)
    array([[0.5, 0.5],
           [0. , 1. ]])

    With at most half in a sector:

    >>> half = {"groups": ["a", "b"], "group_upper": {"b": 0.5}}
    >>> pairstep.efficient_frontier(risk, mean, n_points=3, **half).expected_return.round(6)
    array([0.036154, 0.038077, 0.04    ])
    """
    if unexpected:
        raise unexpected_keywords("efficient_frontier", unexpected)
    given = {
        "total": total, "lower": lower, "upper": upper, "coefficients": coefficients,
        "groups": groups, "group_total": group_total, "group_lower": group_lower,
        "group_upper": group_upper,
    }  # fmt: skip
    path = _Path(covariance, mean, constraint, given, _Limits(tol, max_iter, time_limit, verbose))
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
            "the largest return is unknown because a lower bound is missing: give target_return, "
            "target_risk, or finite lower bounds"
        )
    least = by_return.of(path.corners[0].x)
    return path.portfolios(
        ("target_return", np.linspace(least, path.largest_return, n_points)), by_return
    )


def _targets(name: str, value: ArrayLike) -> tuple[str, Array]:
    if np.ndim(value) == 0:
        return name, np.array([finite_number(name, value)])
    return name, vector(name, value, limit=LARGE)


class _Limits:
    """Tolerance and limits of the solves."""

    def __init__(
        self, tol: float, max_iter: int | None, time_limit: float | None, verbose: bool
    ) -> None:
        self.tol = min(not_negative("tol", tol), MAX_TOL)
        self.max_iter, self.verbose = max_iter, verbose
        self.time_limit = None if time_limit is None else not_negative("time_limit", time_limit)
        self.began = time.perf_counter()

    def time_left(self) -> float | None:
        """Return the seconds left, or None without a limit; raise TimeoutError if they are over."""
        if self.time_limit is None:
            return None
        left = self.time_limit - (time.perf_counter() - self.began)
        if left <= 0:
            raise TimeoutError(
                f"the frontier was not complete after time_limit = {self.time_limit:g} seconds: "
                "raise time_limit, or ask for fewer portfolios"
            )
        return left


class _Path:
    """The solutions found so far, in the order of their trade-offs."""

    def __init__(
        self,
        covariance: Any,
        mean: ArrayLike,
        constraint: SumBox | None,
        given: dict[str, Any],
        limits: _Limits,
    ):
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
        self.constraint = constraint_from(self.variables, constraint, **given)
        self.variables.adopt(self.constraint.variables)
        self.limits, self.tol = limits, limits.tol
        self.corners = [self._first_corner()]

    def _first_corner(self) -> Corner:
        """Return the portfolio of least risk; if there are several, the one of largest return."""
        result = self._minimized(0.0, None, self.tol)
        least = Corner(0.0, result.x, result.kkt_violation)
        return least if self._is_unique(result) else self._largest_return_among(least)

    def _is_unique(self, result: Result) -> bool:
        """Return whether this portfolio of least risk is the only one."""
        if self.spread == 0:
            return True  # all portfolios have the same return
        if isinstance(self.variance, FactorModel):
            diagonal = self.variance.ridge
            if diagonal.min() > ZERO_CURVATURE * self.variance.lipschitz.max():
                return True
        # A variable with a nonzero multiplier is at its bound in every portfolio of least risk.
        threshold = (self.tol + math.sqrt(ROUNDING)) * self.variance.products(result.x)
        free = np.flatnonzero(np.abs(result.bound_multipliers) <= threshold)
        if len(free) > MAX_FREE_FACTORIZED:
            return False
        block = self.variance.block(free)
        block[np.diag_indices(len(free))] -= ZERO_CURVATURE * block.diagonal().max(initial=0.0)
        return _core.cholesky(block)  # True if it is still positive definite

    def _largest_return_among(self, least: Corner) -> Corner:
        """Return the portfolio of largest return among those with the risk of this one.

        It is where the frontier's first straight piece begins, at trade-off 0, so it is found by
        extrapolating from two portfolios on that piece. If the piece is too short to be found, the
        portfolio at the smallest trade-off tried is returned; its return is at least as large.
        """
        variance, x = self._plain, least.x
        allowed = 2 * variance.value(x) + self.variance_rounding(x)
        largest_slope = float(np.abs(variance.gradient(x)).max())
        last = least
        for fraction in FIRST_FRACTIONS:
            tradeoff = fraction * self.balance
            linear = tradeoff * float(np.abs(self.mean).max())
            # The tolerance is relative to the return's part of the gradient, which is smaller than
            # the risk's part.
            wanted = self.tol * tradeoff * self.spread / max(largest_slope, linear)
            tol = min(self.tol, max(wanted, MIN_TOL))
            near, far = (self._minimized(times * tradeoff, last.x, tol) for times in (1.0, 2.0))
            last = Corner(tradeoff, near.x, near.kkt_violation)
            first = self.evaluated(0.0, self.constraint.project(2 * near.x - far.x))
            if 2 * variance.value(first.x) <= allowed:
                return first
        return last

    def variance_rounding(self, x: Array) -> float:
        """Return a bound on the rounding error of ``x'Qx``."""
        root = math.sqrt(len(x)) * EPS
        if isinstance(self.variance, FactorModel):  # a sum of squares of rounded numbers
            off = 2 * root * _Risk(self).size(x)
            return off * (2 * _Risk(self).of(x) + off)
        return 4 * root * float(self.variance.products(x) @ np.abs(x))

    def solved(self, tradeoff: float, x0: Array | None) -> Corner:
        """Return the portfolio of a trade-off."""
        return self._corner(tradeoff, x0)[0]

    def evaluated(self, tradeoff: float, x: Array) -> Corner:
        """Return a portfolio unchanged, with its KKT violation for a trade-off."""
        result = self._minimized(tradeoff, x, self.tol, max_iter=0)
        return Corner(tradeoff, result.x, result.kkt_violation)

    def _corner(self, tradeoff: float, x0: Array | None) -> tuple[Corner, bool]:
        """Return the portfolio of a trade-off, and whether it is x0 unchanged."""
        result = self._minimized(tradeoff, x0, self.tol)
        at_once = result.n_iter == 0 and result.status == Status.OPTIMAL
        return Corner(tradeoff, result.x, result.kkt_violation), at_once

    def _minimized(
        self, tradeoff: float, x0: Array | None, tol: float, max_iter: int | None = None
    ) -> Result:
        objective = self.variance.with_linear(-tradeoff * self.mean)
        limits = self.limits
        result = minimize(
            objective, self.constraint, x0=x0, tol=tol,
            max_iter=limits.max_iter if max_iter is None else max_iter,
            time_limit=limits.time_left(),
        )  # fmt: skip
        if result.status == Status.TIME_LIMIT:
            limits.time_left()  # raises
        if result.status == Status.UNBOUNDED:
            raise ValueError(
                f"the return grows without bound at no risk: {result.message}; add bounds"
            )
        if result.remark.startswith(NOT_CONVEX):
            raise ValueError(NOT_A_COVARIANCE)
        return result

    @kept
    def largest(self) -> Array | None:
        """A portfolio of the largest return; None if a lower bound is missing."""
        layout = self.constraint._layout(len(self.mean))
        if not np.isfinite(layout.lower).all():
            return None
        z = layout.fill(layout.derivatives(-self.mean), np.zeros(layout.n))
        return layout.from_layout(z)

    @property
    def largest_return(self) -> float:
        """The largest feasible return; inf if a lower bound is missing."""
        return math.inf if self.largest is None else float(self.mean @ self.largest)

    @kept
    def spread(self) -> float:
        """The largest change of the return when two variables exchange one unit of their sum.

        If the sum may lie in a range, one of them may be the slack variable, which earns nothing.
        """
        layout = self.constraint._layout(len(self.mean))
        returns = np.split(layout.derivatives(self.mean), layout.sharing[1:-1])
        return max(float(np.ptp(of_sum)) for of_sum in returns)

    @kept
    def balance(self) -> float:
        """A trade-off at which return and risk have about the same weight.

        The size of the risk's gradient is estimated from the products in it, because they may
        cancel: the gradient of a riskless portfolio is 0.
        """
        x = self.constraint.start(len(self.mean))
        weight = (
            float(self.variance.products(x).max()) or float(self.variance.lipschitz.max()) or 1.0
        )
        spread = self.spread or float(np.abs(self.mean).max())
        return weight / spread if spread > 0 else LARGE

    @kept
    def _plain(self) -> Any:
        """Half the variance, without a linear term."""
        none: Callable[[Any], Any] = self.variance.with_linear
        return none(np.zeros(len(self.mean)))

    def portfolios(self, named: tuple[str, Array], measure: _Return | _Risk) -> Frontier:
        """Find one portfolio per target."""
        name, targets = named
        found: list[Any] = [None] * len(targets)
        for k in np.argsort(targets):
            found[k] = self._at(name, float(targets[k]), measure)
            if log.is_enabled(self.limits.verbose):
                log.write(f"frontier: {name} {targets[k]:.6g} found", self.limits.verbose)
        x = np.array([corner.x for corner in found]).reshape(-1, len(self.mean))
        if any(2 * self._plain.value(row) < -self.variance_rounding(row) for row in x):
            raise ValueError(NOT_A_COVARIANCE)
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
        # The least risk is known up to about 1e-9, the default of `tol`.
        if target < least - max(1e3 * slack, measure.rounding(self.corners[0].x)):
            wanted, begin = numbers_for_message(target, least)
            raise ValueError(
                f"{name} = {wanted} is below {begin}, that of the portfolio of least risk, "
                "where the frontier begins"
            )
        while measure.of(self.corners[-1].x) < target - slack:
            self._extend(name, target, measure)
        reached = [measure.of(corner.x) for corner in self.corners]
        at = bisect.bisect_left(reached, target - slack)
        if at == 0 or abs(reached[at] - target) <= slack:
            return self.corners[at]
        before, after = self.corners[at - 1], self.corners[at]
        for attempt in range(MAX_SOLVES_PER_TARGET):
            # If there is a corner in between, interpolation may miss, but bisection always finds
            # the piece that contains the target. So alternate.
            fraction = measure.fraction(before.x, after.x, target) if attempt % 2 == 0 else 0.5
            tradeoff = (1 - fraction) * before.tradeoff + fraction * after.tradeoff
            between = before.x + fraction * (after.x - before.x)
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
        # The return jumps: every point between two solutions of one trade-off is a solution.
        fraction = measure.fraction(before.x, after.x, target)
        return self.evaluated(tradeoff, before.x + fraction * (after.x - before.x))

    def _extend(self, name: str, target: float, measure: _Return | _Risk) -> None:
        """Append the portfolio of a larger trade-off; raise if there is none beyond the last."""
        last = self.corners[-1]
        tradeoff = max(TRADEOFF_GROWTH * last.tradeoff, self.balance)
        most = self.largest_return
        slack = ROUNDING * _Return(self).size(last.x)
        at_end = self.mean @ last.x >= most - slack
        if at_end or tradeoff > LARGE or not tradeoff > last.tradeoff:
            wanted, reached = numbers_for_message(target, measure.of(last.x))
            raise ValueError(
                f"{name} = {wanted} is above {reached}, the largest that the constraint allows"
            )
        if self.largest is not None and self.tol * tradeoff > self.balance:
            # The risk's part of the gradient is within the tolerance, so the portfolio of largest
            # return is a solution.
            self.corners.append(self.evaluated(tradeoff, self.largest))
        else:
            self.corners.append(self.solved(tradeoff, last.x))


class _Return:
    """The expected return of a portfolio, which is linear between two portfolios."""

    def __init__(self, path: _Path):
        self.mean = path.mean

    def of(self, x: Array) -> float:
        return float(self.mean @ x)

    def size(self, x: Array) -> float:
        return float(np.abs(self.mean).max() * np.abs(x).sum())

    def rounding(self, x: Array) -> float:
        return 0.0

    def fraction(self, before: Array, after: Array, target: float) -> float:
        low, high = self.of(before), self.of(after)
        return min(max((target - low) / (high - low), 0.0), 1.0) if high > low else 0.5


class _Risk:
    """The standard deviation of a portfolio: between two, the root of a parabola."""

    def __init__(self, path: _Path):
        self.path, self.variance = path, path._plain

    def of(self, x: Array) -> float:
        return math.sqrt(max(2 * self.variance.value(x), 0.0))

    def size(self, x: Array) -> float:
        return float(np.sqrt(self.variance.lipschitz.max()) * np.abs(x).sum())

    def rounding(self, x: Array) -> float:
        return math.sqrt(self.path.variance_rounding(x))

    def fraction(self, before: Array, after: Array, target: float) -> float:
        direction = after - before
        slope = float(self.variance.gradient(before) @ direction)
        curvature = float(self.variance.gradient(direction) @ direction)
        missing = target**2 - 2 * self.variance.value(before)
        root = slope + math.sqrt(max(slope**2 + curvature * missing, 0.0))
        return min(max(missing / root, 0.0), 1.0) if root > 0 else 0.5
