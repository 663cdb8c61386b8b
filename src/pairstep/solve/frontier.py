"""The efficient frontier: the least risk for every return.

Portfolios on the frontier minimize ``x'Qx / 2 - t net(x)`` for a trade-off t, where the net return
is ``mean'x`` less the costs of trading. As t grows they move along straight lines between corner
portfolios (Markowitz's critical line). The native parametric solver finds all corners in one pass;
a portfolio between two corners is found by interpolation, which is exact.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from .. import log
from .._validation import (
    LARGE,
    Array,
    finite_number,
    numbers_for_message,
    unexpected_keywords,
    vector,
)
from ..constraints import GroupLabels, GroupLimit, GroupTotal, Indices, SumBox, Total
from ..kept import kept
from ..labels import Axis, aligned, labeled
from ..objectives import FactorModel, L1Penalized, Quadratic, Slopes
from ..result import Result, Status
from ..show import plot_frontier, rows_of_frontier, rows_of_portfolio, table
from .constraint_keywords import constraint_from
from .minimize import minimize, not_negative
from .parametric import ARRIVED, Curvature, ParametricProblem
from .rows import AT_CENTER
from .task import NOT_CONVEX

# Difference of a return or risk from its target, relative to the size of its terms, that counts as
# rounding. It is 4500 machine epsilons, to cover sums over many assets.
ROUNDING = 1e-12
EPS = float(np.finfo(float).eps)
# Upper limit of the tolerance. A looser one would allow portfolios that are far from the frontier.
MAX_TOL = 1e-6
# If the native solver stalls at a trade-off, it is started again from a cold solve this fraction
# beyond it, up to this many times.
RESTART_FRACTION = 1e-7
MAX_RESTARTS = 20
# Trade-offs up to this fraction of that at which return and risk have equal weight may only be
# effects of the native solver's regularization, which is 1e-11.
REGULARIZED = 1e-5
# Difference of two risks, relative to the largest risk of a single asset, up to which they count as
# equal when the portfolio of least risk is not unique.
SAME_RISK = 1e-9
NOT_A_COVARIANCE = (
    "covariance is not positive semidefinite, so some portfolios have a negative variance: compute "
    "it from complete observations in float64, shrink it towards its diagonal, or set its negative "
    "eigenvalues to 0"
)


@dataclass(frozen=True, eq=False, repr=False)
class Portfolio:
    """One portfolio of the efficient frontier.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The portfolio.
    weights : ndarray or Series
        The portfolio with the labels of the assets, if an argument has labels.
    expected_return, risk, tradeoff, kkt_violation : float
        As in `Frontier`.
    """

    x: Array
    expected_return: float
    risk: float
    tradeoff: float
    kkt_violation: float
    variables: Axis

    def __repr__(self) -> str:
        return table(f"Portfolio of {len(self.x)} assets", rows_of_portfolio(self))

    @property
    def weights(self) -> Any:
        """The portfolio with its labels."""
        return labeled(self.x, self.variables)


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
        ``mean'x``, less the costs of trading if `l1` was given.
    risk : ndarray of shape (count,)
        The standard deviation ``sqrt(x'Qx)``.
    tradeoff : ndarray of shape (count,)
        The t for which the portfolio minimizes ``x'Qx / 2 - t mean'x``: the derivative of half the
        variance with respect to the return.
    kkt_violation : ndarray of shape (count,)
        KKT violation of that problem, recomputed from it.
    corners : Frontier
        All corner portfolios. Between two of them, portfolios lie on a straight line.
    min_variance : Portfolio
        The portfolio of least risk.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> frontier = pairstep.efficient_frontier(np.diag([0.04, 0.09]), [0.03, 0.05])
    >>> frontier.min_variance.x.round(4)
    array([0.6923, 0.3077])
    >>> frontier.max_sharpe(risk_free=0.01).x.round(4)
    array([0.5294, 0.4706])
    >>> round(frontier.at(target_risk=0.2).expected_return, 4)
    0.0423
    """

    x: Array
    expected_return: Array
    risk: Array
    tradeoff: Array
    kkt_violation: Array
    variables: Axis
    _path = None  # type: Any # not annotated, so that it is no field

    def __repr__(self) -> str:
        count, n = self.x.shape
        return table(f"Frontier: {count} portfolios of {n} assets", rows_of_frontier(self))

    @property
    def weights(self) -> Any:
        """The portfolios with their labels, one per row."""
        return labeled(self.x, self.variables)

    @kept
    def corners(self) -> Frontier:
        """All corner portfolios, from the least risk to the largest return."""
        path: CriticalLine = self._path
        return path.frontier(path.corner_points())

    @kept
    def min_variance(self) -> Portfolio:
        """The portfolio of least risk; if there are several, the one of largest return."""
        path: CriticalLine = self._path
        return path.portfolio(path.points(np.zeros(1, int), np.zeros(1)))

    def at(
        self, *, target_return: ArrayLike | None = None, target_risk: ArrayLike | None = None
    ) -> Any:
        """Return the portfolio of a given return or risk.

        Parameters
        ----------
        target_return, target_risk : float or array_like
            One of the two: the return, or the standard deviation.

        Returns
        -------
        Portfolio, or Frontier for an array of targets
            The portfolios.

        Raises
        ------
        ValueError
            If a target is outside the frontier.
        """
        if (target_return is None) == (target_risk is None):
            raise ValueError("give target_return or target_risk, and not both")
        name, target = "target_return", target_return
        if target is None:
            name, target = "target_risk", target_risk
        assert target is not None
        points = self._path.at(name, target)
        return self._path.portfolio(points) if np.ndim(target) == 0 else self._path.frontier(points)

    def max_sharpe(self, risk_free: float = 0.0) -> Portfolio:
        """Return the portfolio of largest Sharpe ratio ``(return - risk_free) / risk``.

        Parameters
        ----------
        risk_free : float
            The return of the riskless asset, for the same period as the expected returns.

        Returns
        -------
        Portfolio
            The portfolio.

        Raises
        ------
        ValueError
            If no portfolio returns more than `risk_free`, or if the ratio has no maximum.
        """
        path: CriticalLine = self._path
        return path.portfolio(path.max_sharpe(finite_number("risk_free", risk_free)))

    def plot(self) -> Any:
        """Plot expected return over risk, with the corner portfolios and the single assets.

        Returns
        -------
        matplotlib.axes.Axes
            The plot. This needs matplotlib: ``pip install 'pairstep[plots]'``.
        """
        return plot_frontier(self)


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
    rows: Any = None,
    rows_lower: ArrayLike | None = None,
    rows_upper: ArrayLike | None = None,
    l1: Slopes | None = None,
    center: ArrayLike = 0.0,
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
    grows. All corners of this path are computed at once; portfolios between them are exact.

    Parameters
    ----------
    covariance : array_like, DataFrame, scipy.sparse array, or a pair (F, D)
        The matrix Q, positive semidefinite; or its factors, for ``Q = F'F + diag(D)``.
    mean : array_like or Series of shape (n,)
        Expected returns. Labels are aligned; see `pairstep.labels`.
    constraint : SumBox, optional
        The sum, bounds, sectors and rows; the probability simplex by default.
    total, lower, upper, coefficients, groups, group_total, group_lower, group_upper, rows, \
rows_lower, rows_upper
        The same by keywords, as in `SumBox`, in place of `constraint`.
    l1, center
        Costs of trading away from the holdings `center`, as in `solve_qp`. They are subtracted from
        the expected return.
    target_return, target_risk : float or array_like, optional
        Returns or standard deviations of the portfolios to find. At most one of the two.
    n_points : int
        Number of portfolios if no target is given. Their returns are evenly spaced between that of
        the least risk and the largest.
    tol : float
        As in `minimize`; a value above 1e-6 counts as 1e-6.
    max_iter : int, optional
        Maximum number of iterations of the solve for the least risk, as in `minimize`.
    time_limit : float, optional
        Maximum number of seconds for the whole frontier.
    verbose : bool
        Whether to print how many corners were found; the logger "pairstep" always receives it.
    **unexpected
        Other keywords raise TypeError.

    Returns
    -------
    Frontier
        One portfolio per target, in the order of the targets. Its methods find others:
        ``frontier.at(target_risk=0.1)``, ``frontier.max_sharpe()``.

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
    if target_return is not None and target_risk is not None:
        raise ValueError("give target_return or target_risk, not both")
    if isinstance(n_points, bool) or not isinstance(n_points, (int, np.integer)) or n_points < 1:
        raise ValueError(f"n_points must be a whole number of at least 1, got {n_points!r}")
    given = {
        "total": total, "lower": lower, "upper": upper, "coefficients": coefficients,
        "groups": groups, "group_total": group_total, "group_lower": group_lower,
        "group_upper": group_upper, "rows": rows, "rows_lower": rows_lower,
        "rows_upper": rows_upper,
    }  # fmt: skip
    limits = _Limits(tol, max_iter, time_limit, verbose)
    path = CriticalLine(covariance, mean, constraint, given, l1, center, limits)
    if target_risk is not None:
        return path.frontier(path.at("target_risk", target_risk))
    if target_return is not None:
        return path.frontier(path.at("target_return", target_return))
    if path.ray.any():
        raise ValueError(
            "the largest return is unknown because a lower bound is missing: give target_return, "
            "target_risk, or finite lower bounds"
        )
    ends = path.returns[0], path.returns[-1]
    return path.frontier(path.at("target_return", np.linspace(*ends, n_points)))


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
                "raise time_limit"
            )
        return left


class _Points:
    """Portfolios on the critical line: x, trade-off and multipliers of the native rows."""

    def __init__(self, x: Array, tradeoff: Array, multipliers: Array):
        self.x, self.tradeoff, self.multipliers = x, tradeoff, multipliers


class CriticalLine:
    """The corner portfolios of a frontier, in the order of their trade-offs."""

    def __init__(
        self,
        covariance: Any,
        mean: ArrayLike,
        constraint: SumBox | None,
        given: dict[str, Any],
        l1: Slopes | None,
        center: ArrayLike,
        limits: _Limits,
    ):
        self.variance: Quadratic | FactorModel
        if isinstance(covariance, tuple):
            if len(covariance) != 2:
                raise ValueError(f"covariance as factors must be a pair (F, D), got {covariance!r}")
            self.variance = FactorModel(*covariance)
        else:
            self.variance = Quadratic(covariance)
        n = self.variance.n
        self.variables = Axis.of(self.variance)
        self.mean = vector("mean", aligned("mean", mean, self.variables), n, limit=LARGE)
        self.costs = None if l1 is None else L1Penalized(self.variance, l1, center)
        self.constraint = constraint_from(self.variables, constraint, **given)
        self.variables.adopt(self.constraint.variables)
        self.curvature, self.limits = Curvature.of(self.variance), limits
        # Costs with different slopes are L1 terms with equal slopes plus a linear term.
        tilt = 0.0 if self.costs is None else self.costs._tilt
        self.net_mean = np.ascontiguousarray(self.mean - tilt)
        self.layout = self.constraint.without_rows()._layout(n)
        self._find_corners()

    def _find_corners(self) -> None:
        tradeoff, n = 0.0, len(self.mean)
        parts: list[tuple[Array, Array, Array]] = []
        for _ in range(MAX_RESTARTS):
            problem, solver = self._solved(tradeoff)
            l1 = None if problem.l1_terms is None else self._l1
            status, t, x, multipliers, ray = solver.follow(
                -self.net_mean, l1, corners=True, seconds=self._seconds()
            )
            shape = len(t), len(problem.merged.matrix)
            parts.append((tradeoff + t, x.reshape(-1, n), multipliers.reshape(shape)))
            if status == ARRIVED:
                break
            self.limits.time_left()  # raises if the time is over
            last = parts[-1][0][-1]
            tradeoff = last + RESTART_FRACTION * (last or self._balance)
        else:
            raise ValueError(
                "the frontier could not be followed to its end: the covariance may have "
                "curvatures that differ only by rounding errors; add a small diagonal"
            )
        self.problem, self.ray = problem, ray
        self.t, self.x, self.multipliers = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        self._restore_corners()
        self._drop_dominated()
        self.returns = self.return_of(self.x)
        if log.is_enabled(self.limits.verbose):
            log.write(f"frontier: {len(self.t)} corner portfolios found", self.limits.verbose)

    def _seconds(self) -> float:
        left = self.limits.time_left()
        return math.inf if left is None else left

    def _solved(self, tradeoff: float) -> tuple[ParametricProblem, Any]:
        """Return the problem of a trade-off, and the native solver at its solution."""
        linear = -tradeoff * self.net_mean
        objective = self.variance.with_linear(linear)
        plain = self.constraint.without_rows()
        relaxed = minimize(
            objective, plain, tol=self.limits.tol, max_iter=self.limits.max_iter,
            time_limit=self.limits.time_left(),
        )  # fmt: skip
        self._check(relaxed)
        l1_terms = None
        if self.costs is not None:
            center = np.broadcast_to(self.costs._pivot, len(linear))
            l1_terms = tradeoff * self._l1, center
        problem = ParametricProblem(self.curvature, linear, l1_terms, self.constraint)
        found = problem.solve(relaxed.x, self._seconds())
        if found is None:
            self.limits.time_left()  # raises if the time is over
            hessian = self.curvature.hessian
            if hessian is not None and np.linalg.eigvalsh(hessian)[0] < 0:
                raise ValueError(NOT_A_COVARIANCE)
            raise ValueError(
                "no portfolio that satisfies the rows was found; relax them, or report this problem"
            )
        return problem, found.solver

    @kept
    def _l1(self) -> Array:
        """The weights of the costs."""
        assert self.costs is not None
        weight = self.costs.l1_terms[0]
        return np.ascontiguousarray(np.broadcast_to(weight, len(self.mean)), float)

    def _check(self, result: Result) -> None:
        if result.status == Status.TIME_LIMIT:
            self.limits.time_left()  # raises
        if result.status == Status.UNBOUNDED:
            raise ValueError(
                f"the return grows without bound at no risk: {result.message}; add bounds"
            )
        if result.remark.startswith(NOT_CONVEX):
            raise ValueError(NOT_A_COVARIANCE)

    def _restore_corners(self) -> None:
        """Make the sums of corners exact that are off, as they may be if Q is singular."""
        problem = self.problem
        sums, low, high = (
            part[: problem.n_sums] for part in (problem.matrix, problem.low, problem.high)
        )
        values, terms = self.x @ sums.T, np.abs(self.x) @ np.abs(sums).T
        off = np.maximum(low - values, values - high) > 10 * EPS * terms
        for k in np.flatnonzero(off.any(axis=1)).tolist():
            self.x[k] = self._restored(self.x[k])

    def _drop_dominated(self) -> None:
        """Start at the portfolio of largest return among those of least risk.

        If there are several, the native solver passes them at trade-offs that only its
        regularization separates from 0. The first real piece of the path, extended to the trade-off
        0, begins at the one of largest return.
        """
        least = self.curvature.square(self.x[:1])[0]
        if least < -self._variance_rounding(self.x[0]):
            raise ValueError(NOT_A_COVARIANCE)
        size = float(np.abs(self.x[0]).sum())
        apart = float(self.variance.lipschitz.max()) * (SAME_RISK * size) ** 2
        allowed = least + self._variance_rounding(self.x[0]) + apart
        lower, upper = (end[None] for end in (self.problem.lower, self.problem.upper))
        last = int(np.searchsorted(self.t, REGULARIZED * self._balance, side="right"))
        at = np.arange(1, last)
        end = np.minimum(at + 1, len(self.t) - 1)
        with np.errstate(all="ignore"):
            slopes = (self.x[end] - self.x[at]) / (self.t[end] - self.t[at])[:, None]
        first = self.x[at] - self.t[at][:, None] * np.where(np.isfinite(slopes), slopes, 0.0)
        slack = SAME_RISK * size
        inside = ((first >= lower - slack) & (first <= upper + slack)).all(axis=1)
        found = at[inside & (self.curvature.square(first) <= allowed)]
        if len(found):
            k = int(found[-1])
            self.t, self.x = self.t[k:].copy(), self.x[k:].copy()
            self.t[0], self.x[0] = 0.0, self._restored(first[k - 1])
            self.multipliers = self.multipliers[k:]

    @kept
    def _balance(self) -> float:
        """A trade-off at which return and risk have about the same weight."""
        weight = float(self.variance.lipschitz.max()) or 1.0
        spread = float(np.ptp(self.net_mean)) or 1.0
        return weight / spread

    def return_of(self, x: Array) -> Array:
        """Return the expected return of each row, less its costs."""
        earned = x @ self.mean
        if self.costs is None:
            return earned
        return np.asarray(earned - np.array([self.costs._l1_value(row) for row in x]))

    def _variance_rounding(self, x: Array) -> float:
        """Return a bound on the rounding error of ``x'Qx``."""
        root = math.sqrt(len(x)) * EPS
        if isinstance(self.variance, FactorModel):  # a sum of squares of rounded numbers
            size = float(np.sqrt(self.variance.lipschitz.max()) * np.abs(x).sum())
            off = 2 * root * size
            return off * (2 * math.sqrt(max(self.curvature.square(x[None])[0], 0.0)) + off)
        return 4 * root * float(self.variance.products(x) @ np.abs(x))

    @kept
    def variances(self) -> Array:
        """The variances of the corners."""
        return self.curvature.square(self.x)

    def corner_points(self) -> _Points:
        """Return the corners."""
        return _Points(self.x, self.t, self.multipliers)

    def points(self, before: Indices, fraction: Array) -> _Points:
        """Return points at fractions of the way from corners to the following ones.

        After the last corner, the fraction is the increase of the trade-off.
        """
        last = len(self.t) - 1
        after = np.minimum(before + 1, last)
        by = np.where(before == last, 0.0, fraction)[:, None]
        x = self.x[before] + by * (self.x[after] - self.x[before])
        x = np.where(by == 1, self.x[after], x)
        t = self.t[before] + by[:, 0] * (self.t[after] - self.t[before])
        v = self.multipliers[before] + by * (self.multipliers[after] - self.multipliers[before])
        beyond = np.where(before == last, fraction, 0.0)
        if beyond.any():
            x, t = x + beyond[:, None] * self.ray, t + beyond
        return _Points(x, t, v)

    def at(self, name: str, target: ArrayLike) -> _Points:
        """Return one portfolio per target return or risk."""
        if np.ndim(target) == 0:
            targets = np.array([finite_number(name, target)])
        else:
            targets = vector(name, aligned(name, target, Axis()), limit=LARGE)
        by_risk = name == "target_risk"
        reached = np.sqrt(np.maximum(self.variances, 0.0)) if by_risk else self.returns
        first, last = self.x[0], self.x[-1]
        size = float(np.sqrt(self.variance.lipschitz.max()) if by_risk else np.abs(self.mean).max())
        slack = ROUNDING * size * float(np.abs(first).sum())
        below = max(1e3 * slack, math.sqrt(self._variance_rounding(first)) if by_risk else 0.0)
        if len(targets) and targets.min() < reached[0] - below:
            wanted, begin = numbers_for_message(targets.min(), reached[0])
            raise ValueError(
                f"{name} = {wanted} is below {begin}, that of the portfolio of least risk, "
                "where the frontier begins"
            )
        above = ROUNDING * size * float(np.abs(last).sum())
        if len(targets) and targets.max() > reached[-1] + above and not self.ray.any():
            wanted, end = numbers_for_message(targets.max(), reached[-1])
            raise ValueError(
                f"{name} = {wanted} is above {end}, the largest that the constraint allows"
            )
        before = np.clip(np.searchsorted(reached, targets + slack) - 1, 0, len(self.t) - 1)
        fractions = self._fractions(before, targets, by_risk)
        at_corner = np.abs(targets - reached[before]) <= slack
        return self.points(before, np.where(at_corner, 0.0, fractions))

    def _fractions(self, before: Indices, targets: Array, by_risk: bool) -> Array:
        """Return where the targets are on the way from corners to the following ones."""
        last = len(self.t) - 1
        direction = np.where(
            (before == last)[:, None],
            self.ray,
            self.x[np.minimum(before + 1, last)] - self.x[before],
        )
        with np.errstate(all="ignore"):
            if by_risk:
                # (x + s d)'Q(x + s d) = target^2
                slope = np.einsum("ki,ki->k", self.curvature.times(self.x[before]), direction)
                curvature = self.curvature.square(direction)
                missing = targets**2 - self.variances[before]
                root = np.sqrt(np.maximum(slope**2 + curvature * missing, 0.0))
                found = np.where(missing > 0, missing / (np.maximum(slope, 0.0) + root), 0.0)
            else:
                change = self.return_of(self.x[before] + direction) - self.returns[before]
                found = (targets - self.returns[before]) / change
        found = np.where(np.isfinite(found), np.maximum(found, 0.0), 0.0)
        return np.where(before == last, found, np.minimum(found, 1.0))

    def max_sharpe(self, risk_free: float) -> _Points:
        """Return the portfolio of largest Sharpe ratio."""
        excess = self.returns - risk_free
        if excess.max() <= 0 and not self.ray.any():
            raise ValueError(
                f"no portfolio returns more than risk_free = {risk_free:g}: the largest expected "
                f"return is {self.returns.max():.9g}"
            )
        risk = np.sqrt(np.maximum(self.variances, 0.0))
        if (risk[excess > 0] <= math.sqrt(self._variance_rounding(self.x[0]))).any():
            raise ValueError(
                "the Sharpe ratio has no maximum: a riskless portfolio returns more than "
                f"risk_free = {risk_free:g}"
            )
        with np.errstate(all="ignore"):
            best = int(np.argmax(np.where(excess > 0, excess / risk, -np.inf)))
            # On the line x + s d, the ratio (p + s q) / sqrt(A + 2 B s + C s^2) is largest where
            # q (A + B s) = p (B + C s).
            around = np.array([max(best - 1, 0), best])
            last = len(self.t) - 1
            end = self.x[np.minimum(around + 1, last)]
            direction = np.where((around == last)[:, None], self.ray, end - self.x[around])
            p = excess[around]
            q = self.return_of(self.x[around] + direction) - self.returns[around]
            A = self.variances[around]
            B = np.einsum("ki,ki->k", self.curvature.times(self.x[around]), direction)
            C = self.curvature.square(direction)
            s = (q * A - p * B) / (p * C - q * B)
            s = np.where(np.isfinite(s), np.maximum(s, 0.0), 0.0)
            s = np.where(around == last, s, np.minimum(s, 1.0))
            ratio = (p + s * q) / np.sqrt(A + 2 * B * s + C * s**2)
        at = int(np.argmax(np.where(np.isfinite(ratio), ratio, -np.inf)))
        return self.points(around[[at]], s[[at]])

    def frontier(self, points: _Points) -> Frontier:
        """Return the portfolios of points."""
        x = np.array([self._restored(row) for row in points.x]).reshape(-1, len(self.mean))
        # Making a sum exact may move a variable from its bound by an ulp.
        violation = self._violations(points)
        variances = self.curvature.square(x)
        for k in np.flatnonzero(variances < 0):
            if variances[k] < -self._variance_rounding(x[k]):
                raise ValueError(NOT_A_COVARIANCE)
        found = Frontier(
            x=x,
            expected_return=self.return_of(x),
            risk=np.sqrt(np.maximum(variances, 0.0)),
            tradeoff=points.tradeoff.copy(),
            kkt_violation=violation,
            variables=self.variables,
        )
        object.__setattr__(found, "_path", self)
        return found

    def portfolio(self, points: _Points) -> Portfolio:
        """Return the only portfolio of points."""
        found = self.frontier(points)
        return Portfolio(
            found.x[0], float(found.expected_return[0]), float(found.risk[0]),
            float(found.tradeoff[0]), float(found.kkt_violation[0]), self.variables,
        )  # fmt: skip

    def _restored(self, x: Array) -> Array:
        """Return a point with exact sums, within its bounds."""
        z = self.layout.to_layout(x)
        breakpoint = None
        if self.costs is not None:
            breakpoint = self.layout.scatter(np.broadcast_to(self.costs._pivot, len(x)))
        self.layout.restore_sums(z, breakpoint)
        return self.layout.from_layout(z)

    def _violations(self, points: _Points) -> Array:
        """Return the KKT violation of each point, from its derivatives and multipliers."""
        x, t = points.x, points.tradeoff[:, None]
        slope = (
            self.curvature.times(x)
            - t * self.net_mean
            - points.multipliers @ self.problem.merged.matrix
        )
        left = right = slope
        if self.costs is not None:
            weight, center = t * self._l1, self.costs._pivot
            x = np.where(np.abs(x - center) <= AT_CENTER * np.abs(x).max(), center, x)
            right = slope + np.where(x < center, -weight, weight)
            left = slope + np.where(x > center, weight, -weight)
        most = np.where(x > self.problem.lower, left, -np.inf).max(axis=1, initial=-np.inf)
        least = np.where(x < self.problem.upper, right, np.inf).min(axis=1, initial=np.inf)
        return np.asarray(np.maximum(most - least, 0.0))
