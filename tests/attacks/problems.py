"""Random problems for solve_qp and minimize, by family.

A `Problem` has the data as a user passes them, and what is known by construction. The functions
at the end define the families.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist

import pairstep

INF = math.inf
Rng = np.random.Generator


@dataclass(frozen=True)
class Sums:
    """The required sums: of all variables, and of each group."""

    low: float = -INF
    high: float = INF
    groups: np.ndarray | None = None  # 0, 1, ... for each variable
    group_low: np.ndarray | None = None
    group_high: np.ndarray | None = None

    def arguments(self) -> dict[str, Any]:
        """Return it as solve_qp and SumBox take it."""
        total: Any = self.low if self.low == self.high else (self.low, self.high)
        if self.groups is None:
            return {"total": total}
        free = self.low == -INF and self.high == INF
        ends = list(zip(self.group_low.tolist(), self.group_high.tolist(), strict=True))
        own = {k: a if a == b else (a, b) for k, (a, b) in enumerate(ends)}
        return {"total": None if free else total, "groups": self.groups, "group_total": own}


@dataclass(frozen=True)
class Problem:
    """``x'Qx/2 + |Ax - b|^2/2 + sum D x^2/2 + c'x`` plus L1 terms, or a smooth function."""

    sums: Sums
    lower: np.ndarray
    upper: np.ndarray
    Q: np.ndarray | None = None
    A: np.ndarray | None = None  # factors, or the matrix of least squares
    b: np.ndarray | None = None
    D: np.ndarray | None = None
    c: np.ndarray | None = None
    l1: tuple[np.ndarray, np.ndarray] | None = None
    center: np.ndarray | None = None
    smooth: tuple[str, tuple[Any, ...]] | None = None  # a name in SMOOTH, and its data
    x0: np.ndarray | None = None
    sparse: bool = False
    by_minimize: bool = False
    convex: bool = True
    bounded: bool | None = None  # below, on the feasible set; None where it is not known
    may_refuse: bool = False  # numbers at the ends of the range may be refused

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.lower)

    def constraint(self) -> pairstep.SumBox:
        """Return the constraint."""
        return pairstep.SumBox(lower=self.lower, upper=self.upper, **self.sums.arguments())

    def solve(self, **options: Any) -> pairstep.Result:
        """Solve it as a user would."""
        if self.x0 is not None:
            options["x0"] = self.x0
        if self.smooth or self.b is not None or self.by_minimize:
            return pairstep.minimize(self._objective(), self.constraint(), **options)
        if self.l1 is not None:
            options |= {"l1": self.l1, "center": self.center}
        bounds = {"lower": self.lower, "upper": self.upper}
        return pairstep.solve_qp(
            self._matrix(), self.c, **self.sums.arguments(), **bounds, **options
        )

    def _matrix(self) -> Any:
        if self.A is not None:
            return scipy.sparse.csr_array(self.A) if self.sparse else self.A, self.D
        return scipy.sparse.csr_array(self.Q) if self.sparse else self.Q

    def _objective(self) -> Any:
        if self.smooth:
            name, data = self.smooth
            return SMOOTH[name](*data)
        objective: Any
        if self.b is not None:
            matrix = scipy.sparse.csr_array(self.A) if self.sparse else self.A
            objective = pairstep.LeastSquares(matrix, self.b, float(self.D[0]))
        elif self.A is not None:
            objective = pairstep.FactorModel(*self._matrix(), self.c)
        else:
            objective = pairstep.Quadratic(self._matrix(), self.c)
        if self.l1 is not None:
            objective = pairstep.L1Penalized(objective, self.l1, self.center)
        return objective


@dataclass(frozen=True)
class Case:
    """A problem, and optionally an equivalent variant of it."""

    family: str
    problem: Problem
    variant: Problem | None = None
    # Maps the variables of the variant: x[i] is the sum of z[to == i], times `scale`.
    to: np.ndarray | None = None
    scale: float = 1.0
    same_bits: bool = False

    @property
    def title(self) -> str:
        """The form and size of the problem."""
        p = self.problem
        form = p.smooth[0] if p.smooth else "least squares" if p.b is not None else "matrix"
        form = "factors" if form == "matrix" and p.A is not None else form
        extras = [
            word for word, has in (("L1", p.l1), ("groups", p.sums.groups)) if has is not None
        ]
        return " ".join([form, f"n={p.n}", *extras])

    def original(self, z: np.ndarray) -> np.ndarray:
        """Map a point of the variant to a point of the problem."""
        x = np.zeros(self.problem.n)
        np.add.at(x, self.to, z)
        return x * self.scale


def _quartic(A: np.ndarray, t: np.ndarray) -> pairstep.Smooth:
    """sum (x - t)^4 / 4 + |Ax|^2 / 2."""
    return pairstep.Smooth(
        lambda x: ((x - t) ** 4).sum() / 4 + ((A @ x) ** 2).sum() / 2,
        lambda x: (x - t) ** 3 + A.T @ (A @ x),
        n=len(t),
    )


SMOOTH: dict[str, Callable[..., Any]] = {
    "growth": pairstep.LogGrowth,
    "mixture": pairstep.MixtureLikelihood,
    "logistic": pairstep.Logistic,
    "divergence": pairstep.KLDivergence,
    "parity": pairstep.RiskParity,
    "design": pairstep.DOptimal,
    "quartic": _quartic,
}


def draw(rng: Rng, family: str | None = None) -> Case:
    """Return a case of a family, or of a random one."""
    names = list(FAMILIES)
    shares = np.array([FAMILIES[name][0] for name in names])
    name = family or str(rng.choice(names, p=shares / shares.sum()))
    case = FAMILIES[name][1](rng)
    return replace(case, family=name) if isinstance(case, Case) else Case(name, case)


# ------------------------------------------------------------------ parts


def size(rng: Rng, most: int = 300) -> int:
    """The number of variables, usually 1 to 30."""
    if most > 30 and rng.random() < 0.04:
        return int(rng.integers(31, most + 1))
    return int(rng.integers(1, min(most, 30) + 1))


def decades(rng: Rng, shape: Any, low: float, high: float) -> np.ndarray:
    """Positive numbers, with exponents spread evenly."""
    return 10.0 ** rng.uniform(low, high, shape)


def symmetric(Q: np.ndarray) -> np.ndarray:
    """Return an exactly symmetric matrix."""
    return (Q + Q.T) / 2


def covariance(rng: Rng, n: int, m: int) -> np.ndarray:
    """A sample covariance of m observations of the size of daily returns."""
    X = rng.standard_normal((m, n)) * rng.choice([0.01, 1.0])
    X = X - X.mean(axis=0) if rng.random() < 0.5 and m > 1 else X
    return symmetric(X.T @ X / m)


def box(rng: Rng, n: int, *, finite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the usual kinds; 0 and 1 / n are always within them."""
    kind = rng.integers(0 if not finite else 1, 5)
    if kind == 0:
        return np.full(n, -INF), np.full(n, INF)
    if kind == 1:
        return np.zeros(n), np.full(n, INF if not finite else 1.0)
    if kind == 2:
        return np.full(n, -1.0), np.full(n, 1.0)
    if kind == 3:
        return np.zeros(n), rng.uniform(1.0, 3.0, n) / n
    lower, upper = -rng.exponential(1.0, n), 1 / n + rng.exponential(1.0, n)
    if not finite:
        lower[rng.random(n) < 0.2] = -INF
        upper[rng.random(n) < 0.2] = INF
    return lower, upper


def sums(rng: Rng, x: np.ndarray) -> Sums:
    """Random sums: a total, a range, totals of groups or limits under a total."""
    total, spread = math.fsum(x), float(np.abs(x).sum()) or 1.0
    kind = rng.choice(["total", "range", "own", "limits"], p=[0.6, 0.15, 0.1, 0.15])
    ends = [
        (total - spread * rng.random(), total + spread * rng.random()),
        (total, total + spread), (total - spread, total), (-INF, total), (total, INF),
    ]  # fmt: skip
    low, high = (total, total) if kind != "range" else ends[rng.integers(len(ends))]
    if kind in ("total", "range") or len(x) < 2:
        return Sums(float(low), float(high))
    count = int(rng.integers(1, min(len(x), 6) + 1))
    groups = np.concatenate([np.arange(count), rng.integers(0, count, len(x) - count)])
    rng.shuffle(groups)
    own = np.array([math.fsum(x[groups == k]) for k in range(count)])
    if kind == "own":
        return Sums(groups=groups, group_low=own, group_high=own)
    if rng.random() < 0.3:  # caps at the current sums, which add up to the total
        return Sums(total, total, groups, np.minimum(0.0, own), own)
    slack = np.abs(own).max() or 1.0
    return Sums(
        total, total, groups,
        own - slack * rng.random(count) * rng.integers(0, 2, count),
        own + slack * rng.random(count) * rng.integers(0, 2, count),
    )  # fmt: skip


def inside(rng: Rng, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """A point that sums to about 1, within bounds that contain 0 and 1 / n."""
    x = rng.dirichlet(np.ones(len(lower))) if rng.random() < 0.5 else np.full(len(lower), np.nan)
    x = np.where(np.isnan(x), 1 / len(lower), x)
    return np.clip(x, lower, upper)


def turnover(rng: Rng, n: int, x: np.ndarray, unit: float) -> dict[str, Any]:
    """L1 terms about a point, for a fifth of the problems."""
    if rng.random() > 0.2:
        return {}
    up = unit * rng.choice([0.01, 0.3, 3.0]) * rng.random(n) * rng.integers(0, 2, n)
    down = up if rng.random() < 0.5 else unit * 0.1 * rng.random(n)
    return {"l1": (down, up), "center": np.where(rng.random(n) < 0.5, x, 0.0)}


def plain(
    rng: Rng, Q: np.ndarray, *, finite: bool = False, c: np.ndarray | None = None, **known: Any
) -> Problem:
    """A problem with this matrix, and constraints of any kind."""
    n = len(Q)
    lower, upper = box(rng, n, finite=finite)
    x = inside(rng, lower, upper)
    unit = float(np.abs(Q).max()) or 1.0
    if c is None and rng.random() < 0.6:
        c = Q @ rng.standard_normal(n) if not finite else unit * rng.standard_normal(n) * 0.3
    known = {"bounded": True, "by_minimize": bool(rng.random() < 0.2)} | known
    l1 = turnover(rng, n, x, unit)
    constraint = sums(rng, x)
    if c is not None and not finite:  # a sum that is not fixed may make the problem unbounded
        known["bounded"] = known["bounded"] and (constraint.low == constraint.high or None)
    sparse = bool(rng.random() < 0.1)
    return Problem(constraint, lower, upper, Q=Q, c=c, sparse=sparse, **l1, **known)


# ------------------------------------------------------------------ families


def few_observations(rng: Rng) -> Problem:
    """Covariances of fewer observations than assets, as a matrix or as factors."""
    n = max(size(rng), 2)
    m = int(rng.integers(1, n))
    if rng.random() < 0.6:
        return plain(rng, covariance(rng, n, m), finite=bool(rng.random() < 0.7))
    lower, upper = box(rng, n, finite=True)
    x = inside(rng, lower, upper)
    F = rng.standard_normal((m, n)) * 0.1
    D = np.zeros(n) if rng.random() < 0.5 else rng.random(n) * 0.01
    c = None if rng.random() < 0.5 else 0.01 * rng.standard_normal(n)
    l1 = turnover(rng, n, x, 0.01)
    return Problem(sums(rng, x), lower, upper, A=F, D=D, c=c, bounded=True, **l1)


def least_squares(rng: Rng) -> Problem:
    """|Ax - b|^2 / 2, tall and wide."""
    n, m = size(rng), size(rng, 60)
    A = rng.standard_normal((m, n)) * rng.choice([1e-3, 1.0, 100.0])
    lower, upper = box(rng, n)
    x = inside(rng, lower, upper)
    b = A @ x if rng.random() < 0.3 else rng.standard_normal(m)
    ridge = np.full(n, float(rng.choice([0.0, 0.0, 1e-6, 1.0])))
    l1 = turnover(rng, n, x, 1.0)
    sparse = bool(rng.random() < 0.2)
    return Problem(sums(rng, x), lower, upper, A=A, b=b, D=ridge, bounded=True, sparse=sparse, **l1)


def integers(rng: Rng) -> Problem:
    """Small integers: positive semidefinite, often singular; the checks decide if it is bounded."""
    n = int(rng.integers(1, 6))
    B = rng.integers(-2, 3, (int(rng.integers(1, n + 1)), n)).astype(float)
    Q = B.T @ B
    c = rng.integers(-3, 4, n).astype(float)
    return _integer_constraints(rng, n, Q=Q, c=c if rng.random() < 0.8 else None)


def indefinite(rng: Rng) -> Problem:
    """Small integers of any signs."""
    n = int(rng.integers(1, 6))
    Q = rng.integers(-3, 4, (n, n)).astype(float)
    Q = Q + Q.T
    c = rng.integers(-3, 4, n).astype(float)
    convex = bool(np.linalg.eigvalsh(Q)[0] > 1e-9)
    return _integer_constraints(rng, n, Q=Q, c=c, convex=convex)


def _integer_constraints(rng: Rng, n: int, **objective: Any) -> Problem:
    x = rng.integers(-2, 3, n).astype(float)
    lower = x - rng.choice([0.0, 1.0, 2.0, INF], n, p=[0.2, 0.2, 0.2, 0.4])
    upper = x + rng.choice([0.0, 1.0, 2.0, INF], n, p=[0.2, 0.2, 0.2, 0.4])
    total = float(x.sum())
    ends = [(total, total), (total, total + 1), (total - 2, total), (-INF, total), (total, INF)]
    low, high = ends[rng.choice(len(ends), p=[0.5, 0.1, 0.1, 0.15, 0.15])]
    by_minimize = bool(rng.random() < 0.3)
    l1 = {}
    if rng.random() < 0.15:
        l1 = {"l1": (np.ones(n), np.ones(n)), "center": x}
    return Problem(Sums(low, high), lower, upper, by_minimize=by_minimize, **objective, **l1)


def infeasible(rng: Rng) -> Problem:
    """Sums that are infeasible, feasible at the limit, or infeasible by a rounding error."""
    n = size(rng, 30)
    x = np.round(rng.standard_normal(n), 1) if rng.random() < 0.5 else rng.standard_normal(n)
    lower = x - rng.choice([0.0, 0.0, 0.1, 1.0], n)
    upper = x + rng.choice([0.0, 0.0, 0.1, 1.0], n)
    off = float(rng.choice([0.0, 1e-15, 1e-12, 1e-6, 0.1, 1.0])) * rng.choice([-1, 1])
    Q = np.diag(rng.random(n))
    if rng.random() < 0.6 or n < 2:
        total = math.fsum(upper if rng.random() < 0.5 else lower) + off
        return Problem(Sums(total, total), lower, upper, Q=Q, bounded=True)
    groups = np.arange(n) % 2
    own = np.array([math.fsum(x[groups == k]) for k in range(2)])
    total = own.sum() + off
    constraint = Sums(total, total, groups, own - rng.choice([0.01, 1.0]), own)
    return Problem(constraint, x - 1, x + 1, Q=Q, bounded=True)


def split(rng: Rng) -> Case:
    """Several copies of a variable; their sum replaces the variable."""
    n = size(rng, 20)
    problem = plain(rng, covariance(rng, n, int(rng.integers(1, 2 * n + 2))), finite=True)
    problem = replace(problem, sparse=False, l1=None, center=None, by_minimize=False)
    copies = rng.integers(1, 4, n)
    to = np.repeat(np.arange(n), copies)
    share = 1.0 / 2 ** np.ceil(np.log2(copies))[to]  # a power of two, so that halves are exact
    first = np.concatenate([[True], to[1:] != to[:-1]])
    # The first copy gets the remainder of the bounds, so that they add up exactly.
    rest = share * (copies[to] - 1)
    own = np.where(first, 1 - rest, share)
    return Case(
        "", problem,
        replace(
            problem,
            Q=problem.Q[np.ix_(to, to)], c=None if problem.c is None else problem.c[to],
            lower=problem.lower[to] * own, upper=problem.upper[to] * own,
            sums=_regrouped(problem.sums, to),
        ),
        to,
    )  # fmt: skip


def permuted(rng: Rng) -> Case:
    """The same variables in another order."""
    problem = any_plain(rng)
    order = rng.permutation(problem.n)
    return Case("", problem, _taken(problem, order), order)


def _taken(problem: Problem, order: np.ndarray) -> Problem:
    def take(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[order]

    return replace(
        problem,
        Q=None if problem.Q is None else problem.Q[np.ix_(order, order)],
        A=None if problem.A is None else problem.A[:, order],
        D=take(problem.D), c=take(problem.c), lower=take(problem.lower), upper=take(problem.upper),
        l1=None if problem.l1 is None else (take(problem.l1[0]), take(problem.l1[1])),
        center=take(problem.center), x0=take(problem.x0), sums=_regrouped(problem.sums, order),
    )  # fmt: skip


def _regrouped(sums: Sums, to: np.ndarray) -> Sums:
    return sums if sums.groups is None else replace(sums, groups=sums.groups[to])


def powers_of_two(rng: Rng) -> Case:
    """Other units of the variables and of the objective: the same bits, shifted.

    The unit of the objective is a power of four, because solvers take square roots of curvatures.
    """
    problem = any_plain(rng)
    x, root = (2.0 ** int(k) for k in rng.integers(-30, 31, 2))
    f = root**2
    s = problem.sums

    def times(values: Any, factor: float) -> Any:
        return None if values is None else values * factor

    # z = x * factor: f(z) = f/x^2 z'Qz/2 + f/x c'z
    variant = replace(
        problem,
        Q=times(problem.Q, f / x**2), A=times(problem.A, root / x), b=times(problem.b, root),
        D=times(problem.D, f / x**2), c=times(problem.c, f / x),
        l1=None if problem.l1 is None else tuple(times(side, f / x) for side in problem.l1),
        center=times(problem.center, x), lower=problem.lower * x, upper=problem.upper * x,
        sums=replace(
            s, low=s.low * x, high=s.high * x,
            group_low=times(s.group_low, x), group_high=times(s.group_high, x),
        ),
    )  # fmt: skip
    return Case("", problem, variant, np.arange(problem.n), scale=1 / x, same_bits=True)


def any_plain(rng: Rng) -> Problem:
    """A problem of one of the families of ordinary size."""
    family = (few_observations, least_squares, ordinary, equal_bounds, integers)
    return family[rng.integers(len(family))](rng)


def ordinary(rng: Rng) -> Problem:
    """Well-conditioned covariances."""
    n = size(rng)
    return plain(rng, covariance(rng, n, 2 * n + 5))


def equal_bounds(rng: Rng) -> Problem:
    """Some variables with equal lower and upper bounds."""
    problem = ordinary(rng)
    fixed = rng.random(problem.n) < rng.choice([0.2, 0.8, 1.0])
    x = np.clip(1 / problem.n, problem.lower, problem.upper)
    lower, upper = np.where(fixed, x, problem.lower), np.where(fixed, x, problem.upper)
    return replace(problem, lower=lower, upper=upper, sums=sums(rng, x))


def many_decades(rng: Rng) -> Problem:
    """Entries over 12 decades."""
    n = size(rng, 60)
    spread = float(rng.choice([3.0, 6.0]))
    scale = np.sqrt(decades(rng, n, -spread, spread))
    if rng.random() < 0.5:
        Q = np.diag(scale**2)
    else:
        Q = symmetric(covariance(rng, n, 2 * n + 5) * scale * scale[:, None])
    c = decades(rng, n, -spread, spread) * rng.choice([-1, 0, 1], n)
    lower = -decades(rng, n, -6, 3) * rng.integers(0, 2, n)
    upper = decades(rng, n, -6, 3)
    lower[rng.random(n) < 0.1], upper[rng.random(n) < 0.3] = -INF, INF
    x = np.clip(decades(rng, n, -6, 3) * rng.choice([-1, 1], n), lower, upper)
    total = math.fsum(x)
    return Problem(Sums(total, total), lower, upper, Q=Q, c=c, bounded=True)


def outlying(rng: Rng) -> Problem:
    """One or a few numbers that are far larger than the others."""
    n = max(size(rng, 12), 2)
    Q, c = covariance(rng, n, 2 * n + 5), None
    big = rng.random(n) < 1.5 / n
    factor = 10.0 ** rng.choice([4, 8, 12, 20, 40])
    kind = rng.integers(3)
    if kind == 0:
        Q = np.diag(np.diag(Q) * np.where(big, factor, 1.0))
    elif kind == 1:
        scale = np.where(big, math.sqrt(factor), 1.0)
        Q = symmetric(Q * scale * scale[:, None])
    else:
        c = np.abs(rng.standard_normal(n)) * np.where(big, factor, 1.0) * np.abs(Q).max()
    lower = np.full(n, float(rng.choice([0.0, -1.0])))
    upper = np.full(n, float(rng.choice([1.0, INF])))
    return Problem(Sums(1.0, 1.0), lower, upper, Q=Q, c=c, bounded=True)


def offsets(rng: Rng) -> Problem:
    """A constant added to all of c, or large totals and bounds."""
    n = size(rng)
    Q = covariance(rng, n, 2 * n + 5)
    level = float(decades(rng, None, 2, 9))
    if rng.random() < 0.5:
        c = Q.max() * (level * rng.choice([-1, 1]) + rng.standard_normal(n))
        return replace(plain(rng, Q, finite=True), c=c)
    x = level * rng.dirichlet(np.ones(n)) + level * rng.integers(0, 2)
    lower, upper = x - rng.random(n), x + rng.random(n)
    return Problem(sums(rng, x), lower, upper, Q=Q, c=-Q @ x, bounded=True)


def riskless(rng: Rng) -> Problem:
    """Starting points and optima with zero risk."""
    n = max(size(rng, 60), 2)
    lower = np.full(n, float(rng.choice([0.0, -1.0, -INF])))
    kind = rng.integers(3)
    if kind == 0:
        F = rng.standard_normal((max(1, n // 4), n))
        F -= F.mean(axis=1, keepdims=True)  # exposures, centered over the assets
        if rng.random() < 0.3:
            return Problem(Sums(1.0, 1.0), lower, np.full(n, INF), A=F, D=np.zeros(n), bounded=True)
        Q, x0 = symmetric(F.T @ F), None
    elif kind == 1:
        Q, x0 = np.zeros((n, n)), None
        Q[1:, 1:] = covariance(rng, n - 1, 2 * n + 5)
    else:
        F = rng.standard_normal((max(1, n // 2), n))
        Q = symmetric(F.T @ F)
        found = Problem(Sums(1.0, 1.0), lower, np.full(n, INF), Q=Q).solve()
        x0 = found.x if np.isfinite(found.x).all() else None
    upper = np.full(n, INF if rng.random() < 0.5 else 1.0)
    if x0 is not None:
        upper = np.full(n, INF)
    return Problem(Sums(1.0, 1.0), lower, upper, Q=Q, x0=x0, bounded=True)


def sectors(rng: Rng) -> Problem:
    """Fully invested portfolios with sectors capped at their current weights."""
    n = size(rng)
    held = rng.dirichlet(np.ones(n)) * rng.choice([1, 1e6, 37.5])
    count = int(rng.integers(1, min(n, 12) + 1))
    groups = np.concatenate([np.arange(count), rng.integers(0, count, n - count)])
    own = np.array([float(held[groups == k].sum()) for k in range(count)])
    total = float(held.sum())
    Q = np.diag(rng.uniform(0.1, 1, n)) if rng.random() < 0.6 else covariance(rng, n, 2 * n + 5)
    low = np.zeros(count) if rng.random() < 0.7 else own / 2
    constraint = Sums(total, total, groups, low, own)
    return Problem(constraint, np.zeros(n), np.full(n, INF), Q=Q, bounded=True)


def distances(rng: Rng) -> Problem:
    """Negative squared distances: convex for a fixed sum, although Q is indefinite."""
    n = max(size(rng, 150), 2)
    points = rng.standard_normal((n, n + 2 if rng.random() < 0.5 else int(rng.integers(1, n + 1))))
    Q = -symmetric(cdist(points, points, "sqeuclidean"))
    c = None if rng.random() < 0.5 else -0.1 * Q @ rng.dirichlet(np.ones(n))
    full_rank = points.shape[1] > n
    lower = np.full(n, -INF if full_rank and rng.random() < 0.5 else float(rng.choice([0, -1])))
    return Problem(Sums(1.0, 1.0), lower, np.full(n, INF), Q=Q, c=c, bounded=True)


def ends_of_range(rng: Rng) -> Problem:
    """Numbers near the limits of float64, and totals so large that 1 is less than an ulp."""
    n = size(rng, 6)

    def any_size() -> float:
        return float(10.0 ** rng.choice([-320, -300, -200, -100, -50, 0, 17, 50, 90, 99]))

    A = rng.standard_normal((n + 1, n))
    Q = A.T @ A
    Q = symmetric(Q / np.abs(Q).max() * any_size())
    c = rng.standard_normal(n) * any_size()
    far = any_size() if rng.random() < 0.5 else 1e100
    lower = np.full(n, float(rng.choice([-far, 0.0, -INF])))
    upper = np.full(n, float(rng.choice([far, INF])))
    total = float(rng.choice([0.0, far / 2, min(1.0, far)]))
    # Bounds of 1e100 count as infinite, and the smallest matrices are rounded to singular ones.
    bounded = True if np.isfinite(lower).all() and far < 1e100 else None
    return Problem(Sums(total, total), lower, upper, Q=Q, c=c, bounded=bounded, may_refuse=True)


def smooth(rng: Rng) -> Problem:
    """Functions that are not quadratic, on sets where they are finite and bounded."""
    name = str(rng.choice(list(SMOOTH)))
    n, m = max(size(rng, 40), 2), size(rng, 60)
    lower, upper = np.zeros(n), np.full(n, float(rng.choice([1.0, INF])))
    constraint = Sums(1.0, 1.0)
    if name == "growth":
        data: tuple[Any, ...] = (0.02 * rng.standard_normal((m, n)),)
    elif name == "mixture":
        data = (rng.random((m, n)) ** 3 + 1e-9,)
    elif name == "logistic":
        y = np.concatenate([[0, 1], rng.integers(0, 2, m)])
        data = (rng.standard_normal((m + 2, n)) * 2, y)
        lower, upper = np.full(n, -1.0), np.full(n, 1.0)
    elif name == "divergence":
        data = (rng.random((m, n)), rng.random(m) + 0.01)
    elif name == "parity":
        data = (covariance(rng, n, 2 * n + 5), rng.random(n) + 0.1)
        constraint = Sums(0.5, 1.0) if rng.random() < 0.3 else constraint
    elif name == "design":
        data = (rng.standard_normal((n, int(rng.integers(1, min(n, 6) + 1)))),)
    else:
        data = (rng.standard_normal((m, n)), rng.standard_normal(n))
        lower, upper = box(rng, n)
    return Problem(constraint, lower, upper, smooth=(name, data), bounded=True)


# The relative frequency of each family, and the function that draws from it.
FAMILIES: dict[str, tuple[float, Callable[[Rng], Any]]] = {
    "few_observations": (10, few_observations),
    "least_squares": (6, least_squares),
    "ordinary": (6, ordinary),
    "integers": (14, integers),
    "indefinite": (5, indefinite),
    "infeasible": (6, infeasible),
    "split": (6, split),
    "permuted": (6, permuted),
    "powers_of_two": (6, powers_of_two),
    "equal_bounds": (4, equal_bounds),
    "many_decades": (8, many_decades),
    "outlying": (5, outlying),
    "offsets": (5, offsets),
    "riskless": (6, riskless),
    "sectors": (5, sectors),
    "distances": (3, distances),
    "ends_of_range": (3, ends_of_range),
    "smooth": (5, smooth),
}
