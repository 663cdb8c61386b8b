"""Independent facts about a problem: exact values, feasibility, optima, directions.

Nothing here uses the package. Answers are compared only with points that are feasible in exact
arithmetic. So a poor optimum of another solver can hide a defect, but cannot report a false one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from .exact import Exact, exact_sum
from .problems import INF, Problem

EPS = 2.0**-52
LONG = np.longdouble


class Quadratic:
    """The objective of a quadratic problem, in exact arithmetic."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @cached_property
    def _parts(self) -> dict[str, Exact]:
        names = ("Q", "A", "b", "D", "c", "center")
        given = ((name, getattr(self.problem, name)) for name in names)
        parts = {name: Exact.of(value) for name, value in given if value is not None}
        if self.problem.l1 is not None:
            parts["down"], parts["up"] = (Exact.of(side) for side in self.problem.l1)
        return parts

    def value(self, x: Exact) -> Fraction:
        """The objective at x."""
        p, half = self._parts, Exact(1, -1)
        total = Exact(0, 0)
        if "Q" in p:
            total += (x @ (p["Q"] @ x)) * half
        if "A" in p:
            residual = p["A"] @ x - p["b"] if "b" in p else p["A"] @ x
            total += (residual @ residual) * half
        if "D" in p:
            total += (p["D"] @ (x * x)) * half
        if "c" in p:
            total += p["c"] @ x
        if "up" in p:
            away = x - p["center"]
            total += p["up"] @ away.positive() + p["down"] @ (p["center"] - x).positive()
        return total.numbers()

    def derivatives(self, x: Exact) -> tuple[Any, Any]:
        """The left and the right derivatives at x."""
        p = self._parts
        g = Exact.of(np.zeros(self.problem.n))
        if "Q" in p:
            g += p["Q"] @ x
        if "A" in p:
            g += p["A"].T @ (p["A"] @ x - p["b"] if "b" in p else p["A"] @ x)
        if "D" in p:
            g += p["D"] * x
        if "c" in p:
            g += p["c"]
        slope = g.numbers()
        if "up" not in p:
            return slope, slope
        down, up = p["down"].numbers(), p["up"].numbers()
        away = (x - p["center"]).ints
        return slope + np.where(away > 0, up, -down), slope + np.where(away < 0, -down, up)

    def sizes(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The size of the terms that are summed in the value and in each derivative at x."""
        p, size = self.problem, np.abs(x)
        value, slope = 0.0, np.zeros(p.n)
        with np.errstate(over="ignore"):
            if p.Q is not None:
                slope += np.abs(p.Q) @ size
                value += size @ slope / 2
            if p.A is not None:
                inner = np.abs(p.A) @ size + (0 if p.b is None else np.abs(p.b))
                slope += np.abs(p.A).T @ inner
                value += inner @ inner / 2
            if p.D is not None:
                slope += p.D * size
                value += p.D @ size**2 / 2
            if p.c is not None:
                slope += np.abs(p.c)
                value += np.abs(p.c) @ size
            if p.l1 is not None:
                larger = np.maximum(*p.l1)
                slope += larger
                value += larger @ (size + np.abs(p.center))
        return float(value), slope


class Smooth:
    """A function that is not quadratic, in long double, from its formula."""

    def __init__(self, problem: Problem) -> None:
        name, data = problem.smooth
        self.data = [np.asarray(part, LONG) for part in data]
        self._formula = getattr(self, f"_{name}")

    def value(self, x: Exact) -> Any:
        """The objective at x."""
        return self._at(x.floats())[0]

    def derivatives(self, x: Exact) -> tuple[Any, Any]:
        """The gradient at x, twice."""
        g = self._at(x.floats())[1]
        return g, g

    def sizes(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The size of the terms that are summed in the value and in each derivative at x."""
        _, _, value, slope = self._at(x)
        return float(value), slope.astype(float)

    def _at(self, x: np.ndarray) -> tuple[Any, Any, Any, Any]:
        """The value, the gradient, and the sizes of the terms of both; inf or nan outside."""
        with np.errstate(all="ignore"):
            return self._formula(x.astype(LONG), *self.data)

    @staticmethod
    def _sums(terms: Any, slopes: Any, A: Any) -> tuple[Any, Any, Any, Any]:
        return terms.sum(), A.T @ slopes, np.abs(terms).sum() + 1, np.abs(A).T @ np.abs(slopes)

    def _growth(self, x: Any, R: Any) -> Any:
        inner = 1 + R @ x
        return self._sums(-np.log(inner) / len(R), -1 / inner / len(R), R)

    def _mixture(self, x: Any, L: Any) -> Any:
        inner = L @ x
        return self._sums(-np.log(inner) / len(L), -1 / inner / len(L), L)

    def _logistic(self, x: Any, Z: Any, y: Any) -> Any:
        sign = np.where(y == y.max(), LONG(1), LONG(-1))
        inner = sign * (Z @ x)
        slopes = -sign / (1 + np.exp(inner)) / len(Z)
        return self._sums(np.logaddexp(LONG(0), -inner) / len(Z), slopes, Z)

    def _divergence(self, x: Any, A: Any, b: Any) -> Any:
        inner = A @ x
        value, slope, size, slopes = self._sums(b * np.log(b / inner) - b + inner, 1 - b / inner, A)
        return value, slope, size + b.sum() + inner.sum(), slopes + A.T @ (b / inner)

    def _parity(self, x: Any, Q: Any, budgets: Any) -> Any:
        logs, slope = budgets * np.log(x), Q @ x
        value = x @ slope / 2 - logs.sum()
        sizes = np.abs(Q) @ x + budgets / x
        return value, slope - budgets / x, x @ np.abs(Q) @ x + np.abs(logs).sum(), sizes

    def _design(self, x: Any, A: Any) -> Any:
        rows = self._triangle(np.hstack([(A.T * x) @ A, A.T]))
        p = A.shape[1]
        pivots = np.array([rows[i, i] for i in range(p)])
        value = -np.log(pivots).sum()
        slope = -(rows[:, p:] ** 2 / pivots[:, None]).sum(axis=0)
        return value, slope, np.abs(np.log(pivots)).sum() + 1, np.abs(slope)

    @staticmethod
    def _triangle(rows: Any) -> Any:
        """Gauss's elimination of [M, A'], so that a' M^-1 a is a sum of squares over pivots."""
        rows = rows.copy()
        for i in range(len(rows)):
            for k in range(i + 1, len(rows)):
                rows[k] -= rows[k, i] / rows[i, i] * rows[i]
        return rows

    def _quartic(self, x: Any, A: Any, t: Any) -> Any:
        inner = A @ x
        value = ((x - t) ** 4).sum() / 4 + (inner**2).sum() / 2
        sizes = np.abs(x - t) ** 3 + np.abs(A).T @ (np.abs(A) @ np.abs(x))
        return value, (x - t) ** 3 + A.T @ inner, value + 1, sizes


def objective_of(problem: Problem) -> Quadratic | Smooth:
    """Return the objective as the checks see it."""
    return Smooth(problem) if problem.smooth else Quadratic(problem)


# ------------------------------------------------------------------ sums


@dataclass(frozen=True)
class Group:
    """The sum of some variables, and where it has to lie."""

    members: np.ndarray
    low: float
    high: float

    @property
    def fixed(self) -> bool:
        """Whether the sum has a single allowed value."""
        return self.low == self.high


def groups_of(problem: Problem) -> list[Group]:
    """The groups: all variables, and each group of the problem."""
    s = problem.sums
    everything = Group(np.arange(problem.n), s.low, s.high)
    if s.groups is None:
        return [everything]
    ends = zip(s.group_low.tolist(), s.group_high.tolist(), strict=True)
    return [everything] + [
        Group(np.flatnonzero(s.groups == k), low, high) for k, (low, high) in enumerate(ends)
    ]


def fraction(value: float) -> Any:
    """A Fraction, or the infinity itself."""
    return Fraction(value) if math.isfinite(value) else value


def infeasibility(problem: Problem) -> Any:
    """How far the sums are outside what the bounds allow, exactly; at most 0 if feasible."""
    if (problem.lower > problem.upper).any():
        return INF
    everything, *parts = groups_of(problem)
    if not parts:
        parts = [Group(everything.members, -INF, INF)]
    miss: Any = -INF
    least: Any = Fraction(0)
    most: Any = Fraction(0)
    for part in parts:
        lower, upper = problem.lower[part.members], problem.upper[part.members]
        own_least: Any = exact_sum(lower) if np.isfinite(lower).all() else -INF
        own_most: Any = exact_sum(upper) if np.isfinite(upper).all() else INF
        low, high = max(own_least, fraction(part.low)), min(own_most, fraction(part.high))
        miss = max(miss, low - high)
        least, most = least + low, most + high
    return max(miss, fraction(everything.low) - most, least - fraction(everything.high))


def numbers_in(problem: Problem, x: np.ndarray | None = None) -> np.ndarray:
    """The finite numbers of bounds, sums and x."""
    parts = [problem.lower, problem.upper] + ([] if x is None else [x])
    ends = [end for group in groups_of(problem) for end in (group.low, group.high)]
    numbers = np.concatenate([*parts, ends])
    return numbers[np.isfinite(numbers)]


def rounding_of_sums(problem: Problem, x: np.ndarray | None = None) -> float:
    """The possible rounding error of a sum of this many numbers of this size."""
    largest = float(np.abs(numbers_in(problem, x)).max(initial=0))
    return 4 * EPS * (problem.n + 1) * largest


def sums_as_found(problem: Problem, x: np.ndarray) -> list[tuple[np.ndarray, Any, Any]]:
    """The sums under which points are compared with x: those of x where they are fixed.

    The sum of x may be off by an ulp. Points that are compared with it have the same sum.
    """
    found = []
    for group in groups_of(problem):
        own = exact_sum(x[group.members])
        if group.fixed:
            found.append((group.members, own, own))
        else:
            low, high = fraction(group.low), fraction(group.high)
            found.append((group.members, min(low, own), max(high, own)))
    return found


def repaired(problem: Problem, x: np.ndarray, y: np.ndarray) -> Exact | None:
    """The point y, made feasible exactly for the bounds and sums of x; None if that fails."""
    if not np.isfinite(y).all():
        return None
    point = [Fraction(float(v)) for v in np.clip(y, problem.lower, problem.upper)]
    lower, upper = ([fraction(float(v)) for v in side] for side in (problem.lower, problem.upper))
    everything, *parts = sums_as_found(problem, x)
    for members, low, high in [*parts, everything]:
        total = sum(point[i] for i in members)
        change = max(low - total, Fraction(0)) or min(high - total, Fraction(0))
        for i, slack in _slacks(point, lower, upper, members, change, parts):
            step = min(max(change, -slack), slack)
            point[i] += step
            change -= step
            if change == 0:
                break
        if change != 0:
            return None
    return _exact(point)


def _slacks(
    point: list[Any], lower: Any, upper: Any, members: Any, change: Any, parts: Any
) -> Iterator[tuple[int, Any]]:
    """How far each variable can change in the direction of the change, largest first."""
    rising = change > 0
    part_of = {int(i): part for part in parts if part[0] is not members for i in part[0]}
    slack = {int(i): (upper[i] - point[i] if rising else point[i] - lower[i]) for i in members}
    for i in sorted(slack, key=lambda i: -float(slack[i])):
        limit = slack[i]
        if i in part_of and len(members) == len(point):
            own, low, high = part_of[i]
            total = sum(point[k] for k in own)
            limit = min(limit, high - total if rising else total - low)
        if limit > 0:
            yield i, limit


def _exact(point: list[Fraction]) -> Exact:
    least = max(value.denominator for value in point)
    return Exact(
        [value.numerator * (least // value.denominator) for value in point],
        -(least.bit_length() - 1),
    )


# ------------------------------------------------------------------ optimality


def violation(problem: Problem, left: Any, right: Any, x: np.ndarray) -> float:
    """The KKT violation: the largest left derivative minus the smallest right derivative.

    Only variables that can change count. Pairs are within a group, or between groups whose sums
    can change; a sum that can change also has a partner with derivative 0. A sum that is off its
    limit by rounding counts as at the limit.
    """
    falls, rises = x > problem.lower, x < problem.upper
    everything, *parts = groups_of(problem)
    rounding = rounding_of_sums(problem, x)
    can = [_can_change(group, x, rounding) for group in (everything, *parts)]
    worst: Any = 0
    outer_left, outer_right = [], []
    for part, (down, up) in zip(parts or [everything], can[1:] or [(True, True)], strict=True):
        at = part.members
        lefts, rights = left[at][falls[at]], right[at][rises[at]]
        if len(lefts) and len(rights):
            worst = max(worst, max(lefts) - min(rights))
        if down:
            outer_left.extend(lefts)
        if up:
            outer_right.extend(rights)
    down, up = can[0]
    outer_left += [0] if up else []  # the sum can increase without a partner
    outer_right += [0] if down else []
    if outer_left and outer_right:
        worst = max(worst, max(outer_left) - min(outer_right))
    return float(worst)


def _can_change(group: Group, x: np.ndarray, rounding: float) -> tuple[bool, bool]:
    if group.fixed:
        return False, False
    total = exact_sum(x[group.members])
    return abs(total - fraction(group.low)) > rounding, abs(fraction(group.high) - total) > rounding


# ------------------------------------------------------------------ optima of others


def candidates(problem: Problem) -> Iterator[np.ndarray]:
    """Points that other solvers call optimal."""
    if problem.smooth:
        yield from _slsqp(problem)
    else:
        yield from _clarabel(problem)


def _clarabel(problem: Problem) -> Iterator[np.ndarray]:
    n = problem.n
    P, q = matrix_of(problem), np.zeros(n) if problem.c is None else problem.c.copy()
    if problem.b is not None:
        q = q - problem.A.T @ problem.b
    if problem.sums.low == problem.sums.high:  # a constant changes nothing, and may make P convex
        P = P + 100 * max(-float(P.min()), 0.0) * (np.linalg.eigvalsh(P)[0] < 0)
    groups = groups_of(problem)
    matrix = np.array([np.isin(np.arange(n), group.members).astype(float) for group in groups])
    low, high = (np.array([getattr(group, end) for group in groups]) for end in ("low", "high"))
    try:
        parts = general_form(
            P, q, problem.lower, problem.upper, matrix, low, high, problem.l1, problem.center
        )
        yield by_clarabel(*parts, tol=1e-12)[1][:n]
    except BaseException as error:  # a panic in Rust code is not an Exception
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise


def general_form(
    P: Any, q: Any, lower: Any, upper: Any, matrix: Any, low: Any, high: Any, l1: Any, center: Any
) -> tuple[Any, ...]:
    """Return P, q, G, h, A, b of min x'Px/2 + q'x with Gx <= h and Ax = b.

    The cost of each L1 term is a further variable, which is at least both of its sides.
    """
    n, equal = len(q), low == high
    eye, none = np.eye(n), np.zeros((n, n))
    G = np.vstack([matrix[~equal], -matrix[~equal], eye, -eye])
    h = np.concatenate([high[~equal], -low[~equal], upper, -lower])
    G, h, A = G[np.isfinite(h)], h[np.isfinite(h)], matrix[equal]
    if l1 is not None:
        unit = max(float(np.max(l1)), 1e-300)
        down, up = (side / unit for side in l1)
        P, q = scipy.linalg.block_diag(P, none), np.concatenate([q, np.full(n, unit)])
        A = np.hstack([A, np.zeros_like(A)])
        G = np.block([[G, np.zeros_like(G)], [np.diag(up), -eye], [np.diag(-down), -eye]])
        h = np.concatenate([h, up * center, -down * center])
    return P, q, G, h, A, low[equal]


def by_clarabel(
    P: Any, q: Any, G: Any, h: Any, A: Any, b: Any, tol: float
) -> tuple[str, np.ndarray]:
    """Return Clarabel's status and point."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.max_iter = 200
    settings.time_limit = 20.0
    unit = max(float(np.abs(P).max()), float(np.abs(q).max()), 1e-300)
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(P / unit)), q / unit,
        scipy.sparse.csc_matrix(np.vstack([A, G])), np.concatenate([b, h]),
        [clarabel.ZeroConeT(len(b)), clarabel.NonnegativeConeT(len(h))], settings,
    )  # fmt: skip
    found = solver.solve()
    return str(found.status), np.array(found.x)


def matrix_of(problem: Problem) -> np.ndarray:
    """The Hessian, in float64."""
    P = np.zeros((problem.n, problem.n)) if problem.Q is None else problem.Q.copy()
    if problem.A is not None:
        P += problem.A.T @ problem.A
    return P if problem.D is None else P + np.diag(problem.D)


def _slsqp(problem: Problem) -> Iterator[np.ndarray]:
    formula = Smooth(problem)

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope, *_ = formula._at(x)
        return (float(value), slope.astype(float)) if np.isfinite(value) else (1e30, 0 * x)

    start = problem.constraint().start(problem.n)
    bounds = scipy.optimize.Bounds(problem.lower, problem.upper)
    sums = [
        {"type": "eq", "fun": lambda x, g=g: x[g.members].sum() - g.low}
        for g in groups_of(problem)
        if g.fixed
    ]
    found = scipy.optimize.minimize(
        value_and_gradient, start, jac=True, method="SLSQP", bounds=bounds, constraints=sums,
        options={"ftol": 1e-14, "maxiter": 300},
    )  # fmt: skip
    yield found.x


def polished(problem: Problem, x: np.ndarray) -> np.ndarray:
    """The point after exact steps of the most violating pair from x, in long double.

    For dense quadratics without L1 terms. A lower value shows that x is not optimal.
    """
    x = x.astype(LONG)
    H = matrix_of(problem).astype(LONG)
    linear = np.zeros(problem.n, LONG) if problem.c is None else problem.c.astype(LONG)
    if problem.b is not None:
        linear = linear - problem.A.T.astype(LONG) @ problem.b.astype(LONG)
    lower, upper = problem.lower.astype(LONG), problem.upper.astype(LONG)
    _, *parts = groups_of(problem)
    groups = [part.members for part in parts] or [np.arange(problem.n)]
    g = H @ x + linear
    diagonal = np.diag(H)
    for _ in range(50 + 10 * problem.n):
        best = (LONG(0), -1, -1, LONG(0))
        for at in groups:
            left = np.where(x[at] > lower[at], g[at], -np.inf)
            right = np.where(x[at] < upper[at], g[at], np.inf)
            i = at[int(np.argmax(left))]
            if not np.isfinite(left.max()):
                continue
            gaps = left.max() - right
            curvature = np.maximum(diagonal[i] + diagonal[at] - 2 * H[i, at], 1e-300)
            with np.errstate(all="ignore"):
                step = np.minimum(np.minimum(gaps / curvature, x[i] - lower[i]), upper[at] - x[at])
                gain = np.where(gaps > 0, step * (gaps - curvature * step / 2), 0)
            gain = np.where(np.isfinite(gain), gain, 0)
            k = int(np.argmax(gain))
            if gain[k] > best[0]:
                best = (gain[k], int(i), int(at[k]), step[k])
        gain, i, j, step = best
        if i < 0:
            break
        x[i] -= step
        x[j] += step
        g += step * (H[:, j] - H[:, i])
    return x.astype(float)


# ------------------------------------------------------------------ directions


def falls_forever(problem: Problem) -> np.ndarray | None:
    """A direction along which a convex quadratic in small integers is unbounded, or None.

    A linear program finds d with Qd = 0, no bound in its way, and the smallest slope. Its vertices
    are small fractions, which are then checked exactly.
    """
    n = problem.n
    H = matrix_of(problem)
    slope = np.zeros(n) if problem.c is None else problem.c
    low = np.where(np.isfinite(problem.lower), 0.0, -1.0)
    high = np.where(np.isfinite(problem.upper), 0.0, 1.0)
    rows, ends, equal = [], [], [*H]
    for group in groups_of(problem):
        row = np.zeros(n)
        row[group.members] = 1.0
        if group.fixed:
            equal.append(row)
        else:
            rows += [row] * math.isfinite(group.high) + [-row] * math.isfinite(group.low)
    ends = [0.0] * len(rows)
    cost = slope
    if problem.l1 is not None:  # d = rise - fall, which cost l1 on both sides
        down, up = problem.l1
        cost = np.concatenate([slope + up, -slope + down])
        equal = [np.concatenate([row, -row]) for row in equal]
        rows = [np.concatenate([row, -row]) for row in rows]
        box = [(0.0, float(h)) for h in high] + [(0.0, float(-v)) for v in low]
    else:
        box = list(zip(low.tolist(), high.tolist(), strict=True))
    found = scipy.optimize.linprog(
        cost, A_eq=np.array(equal), b_eq=np.zeros(len(equal)),
        A_ub=np.array(rows) if rows else None, b_ub=ends if rows else None, bounds=box,
    )  # fmt: skip
    if found.status != 0 or found.fun > -1e-7:
        return None
    d = found.x if problem.l1 is None else found.x[:n] - found.x[n:]
    corner = [Fraction(float(v)).limit_denominator(1000) for v in d]
    scale = math.lcm(*(v.denominator for v in corner))
    return np.array([float(v * scale) for v in corner])


def leads_down(problem: Problem, d: np.ndarray, x: np.ndarray) -> bool:
    """Whether a quadratic decreases without bound from x along d, in exact arithmetic."""
    if ((d < 0) & np.isfinite(problem.lower)).any() or ((d > 0) & np.isfinite(problem.upper)).any():
        return False
    for group in groups_of(problem):
        change = exact_sum(d[group.members])
        if (change > 0 and math.isfinite(group.high)) or (change < 0 and math.isfinite(group.low)):
            return False
    f, direction, start = Quadratic(problem), Exact.of(d), Exact.of(x)
    far = (
        f.value(start + direction * Exact.of(2.0**200)),
        f.value(start + direction * Exact.of(2.0**201)),
    )
    return far[1] < far[0] and far[1] < f.value(start) - 1
