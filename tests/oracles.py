"""References that tests compare with: brute force and certificates, written from definitions.

Nothing here calls the package. Notation: g is the gradient, a and b are the distances to the lower
and upper bounds, and w_i is the weight of coordinate i in a 1-norm (1, or sqrt(L_i)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import scipy.optimize
import scipy.sparse

EPS = np.finfo(float).eps

# ------------------------------------------------------------------ cases for the rules


@dataclass(frozen=True)
class Case:
    """A point within bounds, with a gradient, a step size and Lipschitz constants."""

    gradient: np.ndarray
    x: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    alpha: float
    lipschitz: np.ndarray

    @property
    def n(self):
        return len(self.x)

    @cached_property
    def down(self):
        return self.x - self.lower

    @cached_property
    def up(self):
        return self.upper - self.x

    @cached_property
    def gap(self):
        """g_i - g_j for every pair, -inf if i cannot decrease or j cannot increase."""
        left_derivative = np.where(self.down > 0, self.gradient, -np.inf)
        right_derivative = np.where(self.up > 0, self.gradient, np.inf)
        return left_derivative[:, None] - right_derivative

    @cached_property
    def is_optimal(self):
        return self.n == 0 or not self.gap.max() > 0

    def arguments(self, *, weighted: bool):
        positional = self.gradient, self.x, self.lower, self.upper
        named = {"alpha": self.alpha} | ({"lipschitz": self.lipschitz} if weighted else {})
        return positional, named

    def __repr__(self):
        numbers = ", ".join(
            f"{name}=np.array({getattr(self, name).tolist()})"
            for name in ("gradient", "x", "lower", "upper", "lipschitz")
        )
        return f"Case({numbers}, alpha={self.alpha!r})".replace("inf", "np.inf")


SIZES = (1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 13, 19, 33)


@cache  # the tests of every rule use the same cases
def cases(seed: int, count: int, sizes=SIZES, ties=True) -> tuple[Case, ...]:
    """Small cases of every kind: ties, variables at bounds, l = u, no bounds, extreme scales."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        n = int(rng.choice(sizes))
        case = (tied_case if ties and rng.random() < 0.4 else generic_case)(rng, n)
        case = rescaled(case, *10.0 ** rng.choice([-8, 0, 0, 0, 8], 2))
        for array in (case.gradient, case.x, case.lower, case.upper, case.lipschitz):
            array.flags.writeable = False  # no test may change the cases of another
        made.append(case)
    return tuple(made)


def tied_case(rng: np.random.Generator, n: int) -> Case:
    """Few distinct numbers, so that derivatives, distances to bounds, constants and ratios tie."""
    x = rng.integers(-2, 3, n).astype(float)
    slack = np.array([0.0, 0.0, 1.0, 2.0, 0.5, np.inf])
    lower, upper = x - rng.choice(slack, n), x + rng.choice(slack, n)
    return Case(
        gradient=rng.integers(-2, 3, n).astype(float),
        x=x,
        lower=lower,
        upper=upper,
        alpha=float(rng.choice([0.125, 0.5, 1.0, 2.0, 8.0])),
        lipschitz=rng.choice([1.0, 4.0, 9.0], n),
    )


def generic_case(rng: np.random.Generator, n: int) -> Case:
    """Continuous numbers; distances to bounds of very different sizes, some 0 or infinite."""
    x = rng.normal(size=n) * rng.choice([0.0, 1.0])
    spread = rng.choice([0.3, 3.0])
    down, up = (10.0 ** rng.normal(scale=spread, size=n) for _ in range(2))
    kind = rng.choice(8, n, p=[0.45, 0.1, 0.1, 0.1, 0.1, 0.1, 0.04, 0.01])
    down[(kind == 1) | (kind == 7)] = 0  # at the lower bound
    up[(kind == 2) | (kind == 7)] = 0  # at the upper bound; 7: l = u
    down[(kind == 3) | (kind == 5)] = np.inf
    up[(kind == 4) | (kind == 5)] = np.inf
    down[kind == 6] = 1e-8
    everywhere = rng.choice(6, p=[0.6, 0.1, 0.1, 0.1, 0.05, 0.05])
    if everywhere in (1, 3):
        down[:] = np.inf
    if everywhere in (2, 3):
        up[:] = np.inf
    if everywhere == 4:
        down[:] = 0
    return Case(
        gradient=rng.normal(size=n) + rng.choice([0.0, 0.0, -100.0]),
        x=x,
        lower=x - down,
        upper=x + up,
        alpha=float(10 ** rng.uniform(-2, 4)),
        lipschitz=10.0 ** rng.normal(scale=rng.choice([0.1, 1.0, 3.0]), size=n),
    )


def rescaled(case: Case, gradient: float, x: float) -> Case:
    """The same case in other units of f and of x; alpha keeps the steps comparable."""
    return replace(
        case,
        gradient=case.gradient * gradient,
        x=case.x * x,
        lower=case.lower * x,
        upper=case.upper * x,
        alpha=float(case.alpha * x / gradient),
    )


# ------------------------------------------------------------------ models and optima of the rules


def model(case: Case, delta: np.ndarray, norm: str) -> tuple[float, float]:
    """The model g'd + |d|^2 / (2 alpha) of a step, and the size of its terms.

    `norm` is "2", "1", "L2" (sum L_i d_i^2) or "L1" ((sum sqrt(L_i) |d_i|)^2).
    """
    weight = case.lipschitz if norm.startswith("L") else np.ones(case.n)
    if norm.endswith("2"):
        square = math.fsum(weight * delta**2)
    else:
        square = math.fsum(np.sqrt(weight) * np.abs(delta)) ** 2
    # The changes sum to 0, so any constant may be subtracted from g: take one that cancels little.
    moved = delta != 0
    level = case.gradient[moved].mean() if moved.any() else 0.0
    linear = (case.gradient - level)[moved] * delta[moved]
    bend = square / (2 * case.alpha)
    return math.fsum(linear) + bend, float(np.abs(linear).sum()) + bend


def pair_gains(case: Case, curvature: np.ndarray | float) -> np.ndarray:
    """max_d d gap - curvature d^2 / 2 within the bounds of both, for every pair (i, j), or 0."""
    gap = np.maximum(case.gap, 0)
    slack = np.minimum(case.down[:, None], case.up)
    amount = np.minimum(gap / curvature, np.maximum(slack, 0))
    return amount * (gap - 0.5 * curvature * amount)


def pair_curvature(case: Case, *, weighted: bool) -> np.ndarray | float:
    """The curvature of the 2-norm models for a pair that exchanges one unit."""
    if not weighted:
        return 2 / case.alpha
    return (case.lipschitz[:, None] + case.lipschitz) / case.alpha


def one_norm_weights(case: Case, norm: str) -> np.ndarray:
    return np.sqrt(case.lipschitz) if norm == "L1" else np.ones(case.n)


def duality_gap(case: Case, delta: np.ndarray, norm: str) -> tuple[float, float]:
    """How far d is from min g'd + (sum w_i |d_i|)^2 / (2 alpha), and the rounding error of that.

    A proof, not a comparison. With N^2 / (2 alpha) = max_rho rho N - alpha rho^2 / 2, every lambda
    and rho >= 0 give the lower bound

        - alpha rho^2 / 2 - sum_i a_i (g_i - lambda - rho w_i)_+ + b_i (lambda - g_i - rho w_i)_+ .

    Take rho = N(d) / alpha, and the best lambda: the bound is concave and piecewise linear in
    lambda, so one of its breakpoints is best. No optimal d has N above
    alpha max (g_i - g_j)/(w_i + w_j), which makes all distances to bounds finite.
    """
    weight, g = one_norm_weights(case, norm), case.gradient
    steepest = max((case.gap / (weight[:, None] + weight)).max(), 0.0)
    down, up = (np.minimum(slack, case.alpha * steepest / weight) for slack in (case.down, case.up))
    rho = float(weight @ np.abs(delta)) / case.alpha
    decreasing, increasing = g - rho * weight, g + rho * weight
    level = np.concatenate([decreasing, increasing])[:, None]
    loss = np.maximum(decreasing - level, 0) @ down + np.maximum(level - increasing, 0) @ up
    bound = -0.5 * case.alpha * rho**2 - loss.min()
    value, _ = model(case, delta, norm)
    rounding = 8 * EPS * float((2 * np.abs(g) + rho * weight) @ (down + up))
    return value - bound, rounding


def first_minimum_of_walk(case: Case, ratio: np.ndarray) -> np.ndarray:
    """The first minimum of the model in the weighted 1-norm on the path of the ratios.

    The path decreases the variables with the largest ratios and increases those with the
    smallest, each to its bound. It ends where a variable would have to reverse its change.
    """
    weight = np.sqrt(case.lipschitz)
    down = [i for i in np.argsort(-ratio, kind="stable") if case.down[i] > 0]
    up = [j for j in np.argsort(ratio, kind="stable") if case.up[j] > 0]
    decreased, increased = np.cumsum(case.down[down]), np.cumsum(case.up[up])
    delta = np.zeros(case.n)
    begin = norm = 0.0
    for end in np.union1d(decreased, increased):
        s, b = np.searchsorted(decreased, end), np.searchsorted(increased, end)
        if s == len(down) or b == len(up):
            break
        i, j = down[s], up[b]
        if delta[i] > 0 or delta[j] < 0:
            break
        width = weight[i] + weight[j]
        slope = case.gradient[i] - case.gradient[j] - width * norm / case.alpha
        if slope <= 0:
            break
        amount = min(end - begin, case.alpha * slope / width**2)
        delta[i] -= amount
        delta[j] += amount
        if amount < end - begin:
            break
        norm += width * amount
        begin = end
    return delta


# ------------------------------------------------------------------ solutions of whole problems


@dataclass(frozen=True)
class Problem:
    """min f(x) with sums of w_i x_i per group in [low, high] and bounds; all arrays, no package."""

    value: object
    gradient: object
    lower: np.ndarray
    upper: np.ndarray
    low: np.ndarray
    high: np.ndarray
    coefficients: np.ndarray
    groups: np.ndarray  # 0, 1, ...: the position of each variable's total

    @property
    def n(self):
        return len(self.lower)

    def sums(self, x):
        return np.array(
            [math.fsum((self.coefficients * x)[self.groups == k]) for k in range(len(self.low))]
        )

    @property
    def matrix(self):
        """One row of coefficients per group."""
        return np.array([(self.groups == k) * self.coefficients for k in range(len(self.low))])


def problem(
    value, gradient, n, total=1.0, lower=0.0, upper=np.inf, coefficients=None, groups=None
) -> Problem:
    """A problem from the arguments a user gives to SumBox."""
    groups = np.zeros(n, int) if groups is None else np.unique(groups, return_inverse=True)[1]
    low, high = total if isinstance(total, tuple) else (total, total)
    count = groups.max() + 1
    return Problem(
        value=value,
        gradient=gradient,
        lower=np.broadcast_to(np.asarray(lower, float), n).copy(),
        upper=np.broadcast_to(np.asarray(upper, float), n).copy(),
        low=np.broadcast_to(np.asarray(low, float), count),
        high=np.broadcast_to(np.asarray(high, float), count),
        coefficients=np.ones(n) if coefficients is None else np.asarray(coefficients, float),
        groups=groups,
    )


def cancelling(problem, x):
    """The size of the terms that cancel in the derivatives at x; `tol` is relative to it."""
    derivative = problem.gradient(x) / problem.coefficients
    constant = problem.gradient(np.zeros(len(x))) / problem.coefficients
    return max(np.abs(term).max() for term in (derivative, constant, derivative - constant))


def kkt_violation(p: Problem, x: np.ndarray) -> float:
    """Return the KKT violation by its definition: the largest gain rate of a pair exchange.

    Changing the sum by one unit at variable i changes f by g_i / w_i.
    If the sum lies strictly within a range, it can also change, with a derivative of 0.
    """
    derivative = p.gradient(x) / p.coefficients
    can_fall = np.where(p.coefficients > 0, x > p.lower, x < p.upper)
    can_rise = np.where(p.coefficients > 0, x < p.upper, x > p.lower)
    worst, sums = 0.0, p.sums(x)
    for k in range(len(p.low)):
        inside = p.groups == k
        max_left = derivative[inside & can_fall].max(initial=-np.inf)
        min_right = derivative[inside & can_rise].min(initial=np.inf)
        size = EPS * (1 + np.abs((p.coefficients * x)[inside]).sum())
        if p.low[k] < p.high[k]:
            if sums[k] < p.high[k] - 4 * size:
                max_left = max(max_left, 0.0)
            if sums[k] > p.low[k] + 4 * size:
                min_right = min(min_right, 0.0)
        worst = max(worst, max_left - min_right)
    return worst


def frank_wolfe_gap(p: Problem, x: np.ndarray) -> float:
    """max g'(x - s) over the feasible s, by linear programming; inf if that is unbounded.

    The solver treats small costs as 0 and huge costs as infinite. So a constant is subtracted from
    the costs, which a fixed sum allows. They are then scaled by the violation, or by a small part
    of the largest one.
    """
    unit, g = kkt_violation(p, x), p.gradient(x)
    if unit == 0:
        return 0.0
    for k in np.flatnonzero(p.low == p.high):
        derivatives = (g / p.coefficients)[p.groups == k]
        g = g - 0.5 * (derivatives.min() + derivatives.max()) * p.matrix[k]
    unit = max(unit, 1e-10 * np.abs(g).max())
    least = least_over_feasible(p, g / unit)
    return float(g @ x - unit * least)


def is_bounded(p: Problem) -> bool:
    """Whether the feasible set is bounded."""
    ends = [least_over_feasible(p, sign * row) for sign in (1, -1) for row in np.eye(p.n)]
    return bool(np.isfinite(ends).all())


def least_over_feasible(p: Problem, derivatives: np.ndarray) -> float:
    """Return the minimum of derivatives @ s over the feasible s, or -inf if it is unbounded."""
    fixed, matrix = p.low == p.high, p.matrix
    if len(fixed) == 1 and fixed[0] and np.isfinite([p.lower, p.upper]).all():
        # The dual of the linear program is concave and piecewise linear in the multiplier of the
        # sum, so one of its breakpoints is best. HiGHS gives up on some of these programs.
        a = matrix[0]
        reduced = derivatives - np.outer(derivatives / a, a)
        duals = np.minimum(reduced * p.lower, reduced * p.upper).sum(axis=1)
        return float((derivatives / a * p.low[0] + duals).max())
    ends = np.concatenate([p.high[~fixed], -p.low[~fixed]])
    rows = np.concatenate([matrix[~fixed], -matrix[~fixed]])
    kept = np.isfinite(ends)
    found = scipy.optimize.linprog(
        derivatives,
        A_eq=matrix[fixed] if fixed.any() else None,
        b_eq=p.low[fixed] if fixed.any() else None,
        A_ub=rows[kept] if kept.any() else None,
        b_ub=ends[kept] if kept.any() else None,
        bounds=list(zip(p.lower, p.upper, strict=True)),
    )
    return float(found.fun) if found.status == 0 else -math.inf


def reference_solution(p: Problem, x0: np.ndarray) -> np.ndarray:
    """Return a minimizer by SciPy's SLSQP, restarted from its own result twice."""
    matrix = p.matrix
    fixed = p.low == p.high
    constraints = [
        {
            "type": "eq",
            "fun": lambda x, k=k: matrix[k] @ x - p.low[k],
            "jac": lambda x, k=k: matrix[k],
        }
        for k in np.flatnonzero(fixed)
    ]
    for k in np.flatnonzero(~fixed):
        for sign, end in ((1, p.low[k]), (-1, p.high[k])):
            if np.isfinite(end):
                constraints.append(
                    {
                        "type": "ineq",
                        "fun": lambda x, k=k, s=sign, e=end: s * (matrix[k] @ x - e),
                        "jac": lambda x, k=k, s=sign: s * matrix[k],
                    }
                )
    x = x0
    for _ in range(3):
        found = scipy.optimize.minimize(
            p.value,
            np.clip(x, p.lower, p.upper),
            jac=p.gradient,
            method="SLSQP",
            bounds=list(zip(p.lower, p.upper, strict=True)),
            constraints=constraints,
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        x = found.x
    return x


def sum_error_in_ulps(x: np.ndarray, total: float) -> float:
    """|fsum(x) - total| in ulps of the larger of |total| and max|x|."""
    ulp = math.ulp(max(abs(total), float(np.abs(x).max(initial=0.0))))
    return abs(math.fsum([*x, -total])) / ulp


def dense(matrix) -> np.ndarray:
    """A sparse or dense matrix as an array, such as the coefficients of an SVM."""
    return matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix, float)
