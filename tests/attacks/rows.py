"""Attack problems with rows: `python -m tests.attacks.rows --count 5000 --seed 0`.

Checks of each answer, against Clarabel and cvxopt:

- bounds exactly, sums within one ulp, rows to 1e-12 of their terms;
- `optimal`: neither solver finds a point that is better by more than 1e-7 of the terms;
- `suboptimality_bound` is not below the gap to their points;
- the multipliers of rows and bounds satisfy the KKT conditions, with the right signs;
- ValueError only if Clarabel finds no feasible point either, and its reason is proven in fractions
  (by the package, which raises it only then);
- `stalled` counts as a defect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cvxopt
import numpy as np

import pairstep

from . import runner
from .optima import by_clarabel, general_form
from .runner import Defect

KINDS = ("dense", "factors", "least squares")
SUMS = ("total", "coefficients", "range", "groups", "group limits")
WORSE = 1e-7  # of the terms of the objective


@dataclass
class Case:
    """A problem: how to solve it, and its matrices in general form."""

    family: str
    title: str
    solve: Any
    Q: np.ndarray
    c: np.ndarray
    constant: float
    lower: np.ndarray
    upper: np.ndarray
    matrix: np.ndarray  # sums first, then rows
    low: np.ndarray
    high: np.ndarray
    n_sums: int
    l1: np.ndarray | None
    center: np.ndarray | None

    def value(self, x: np.ndarray) -> float:
        """Return the objective."""
        cost = 0.0 if self.l1 is None else float(self.l1 @ np.abs(x - self.center))
        return float(0.5 * x @ self.Q @ x + self.c @ x) + cost + self.constant

    def size(self, x: np.ndarray) -> float:
        """Return the size of the terms of the objective."""
        return abs(self.value(x)) + abs(0.5 * x @ self.Q @ x) + abs(self.c @ x)

    def general_form(self) -> tuple[Any, ...]:
        """Return P, q, G, h, A, b; with L1 terms, their costs are further variables."""
        scale = np.abs(self.matrix).max(axis=1)
        scale[scale == 0] = 1.0
        rows, low, high = self.matrix / scale[:, None], self.low / scale, self.high / scale
        l1 = None if self.l1 is None else (self.l1, self.l1)
        return general_form(
            self.Q, self.c, self.lower, self.upper, rows, low, high, l1, self.center
        )


def by_cvxopt(case: Case) -> np.ndarray | None:
    """Return cvxopt's point, or None if it fails."""
    P, q, G, h, A, b = case.general_form()
    cvxopt.solvers.options.update(show_progress=False, abstol=1e-10, reltol=1e-10, feastol=1e-10)
    keep = np.linalg.matrix_rank(A) == len(A)  # cvxopt needs independent equations
    if not keep:
        return None
    try:
        found = cvxopt.solvers.qp(*(cvxopt.matrix(part) for part in (P, q, G, h, A, b)))
    except (ValueError, ArithmeticError):
        return None
    return np.array(found["x"]).ravel()[: len(case.c)] if found["status"] == "optimal" else None


def draw(rng: np.random.Generator) -> Case:
    """Return a random case."""
    n, k = int(rng.integers(1, 50)), int(rng.integers(1, 15))
    kind, mode = str(rng.choice(KINDS)), str(rng.choice(SUMS))
    A = rng.normal(size=(int(rng.integers(max(2, n // 2), 2 * n + 2)), n))
    c = rng.normal(size=n) * rng.choice([0.05, 0.5, 5])
    constant = 0.0
    if kind == "dense":
        Q = A.T @ A / len(A)
        call, first = pairstep.solve_qp, (Q, c)
    elif kind == "factors":
        F, D = rng.normal(size=(int(rng.integers(1, 6)), n)), rng.uniform(0.05, 1, n)
        Q = F.T @ F + np.diag(D)
        call, first = pairstep.solve_qp, ((F, D), c)
    else:
        b = rng.normal(size=len(A))
        Q, c, constant = A.T @ A, -A.T @ b, float(0.5 * b @ b)
        call, first = pairstep.simplex_lstsq, (A, b)
    lower = np.zeros(n) if rng.random() < 0.6 else -rng.random(n)
    upper = np.full(n, np.inf) if rng.random() < 0.4 else lower + rng.uniform(0.1, 2, n) + 2 / n
    inside = np.clip(lower + rng.dirichlet(np.ones(n)), lower, upper)
    given, sums, low, high = _sums(rng, mode, inside)
    rows, rows_low, rows_high = _rows(rng, k, inside)
    given |= {"lower": lower, "upper": upper, "rows": rows, "rows_lower": rows_low,
              "rows_upper": rows_high}  # fmt: skip
    l1 = center = None
    if rng.random() < 0.25:
        l1 = 0.5 * rng.random(n)
        center = inside + 0.1 * rng.normal(size=n) * (rng.random(n) < 0.5)
        given |= {"l1": l1, "center": center}
    return Case(
        kind, f"{kind}, {mode}, n = {n}, {k} rows", lambda: call(*first, **given), Q, c, constant,
        lower, upper, np.vstack([sums, rows]), np.r_[low, rows_low], np.r_[high, rows_high],
        len(sums), l1, center,
    )  # fmt: skip


def _sums(
    rng: np.random.Generator, mode: str, inside: np.ndarray
) -> tuple[dict[str, Any], np.ndarray, list[float], list[float]]:
    """Return the keywords of the sums, and the same as rows with limits."""
    n, total = len(inside), float(inside.sum())
    ones = np.ones((1, n))
    if mode == "coefficients":
        a = rng.uniform(0.5, 2, n)
        total = float(a @ inside)
        return {"coefficients": a, "total": total}, a[None], [total], [total]
    if mode == "range":
        return {"total": (total - 0.1, total + 0.2)}, ones, [total - 0.1], [total + 0.2]
    if mode == "total" or n <= 3:
        return {"total": total}, ones, [total], [total]
    codes = np.sort(rng.integers(0, 3, n))
    parts = np.array([(codes == g).astype(float) for g in np.unique(codes)])
    values = (parts @ inside).tolist()
    if mode == "groups":
        return {"groups": codes, "total": np.array(values)}, parts, values, values
    limits = {int(g): (v - 0.05, v + 0.05) for g, v in zip(np.unique(codes), values, strict=True)}
    low, high = zip(*limits.values(), strict=True)
    given = {"total": total, "groups": codes, "group_total": limits}
    return given, np.vstack([ones, parts]), [total, *low], [total, *high]


def _rows(
    rng: np.random.Generator, k: int, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows that a point satisfies, sometimes repeated, zero, badly scaled or infeasible."""
    n = len(inside)
    rows = rng.normal(size=(k, n))
    if rng.random() < 0.5:
        rows = (rng.random((k, n)) < 0.4).astype(float)
    value = rows @ inside
    width = rng.random(k) * rng.choice([0.01, 0.1, 1])
    low, high = value - width, value + width
    for r in range(k):
        side = rng.random()
        if side < 0.25:
            low[r] = -np.inf
        elif side < 0.5:
            high[r] = np.inf
        elif side < 0.6 and r < n // 3:
            low[r] = high[r] = value[r]
    special = rng.random()
    if special < 0.1 and k > 1:
        rows[1], low[1], high[1] = 2 * rows[0], 2 * low[0], 2 * high[0]
    elif special < 0.2:
        rows[0], low[0], high[0] = 0.0, -1.0, 1.0
    elif special < 0.3:
        scale = 10.0 ** rng.integers(-8, 9, k)
        rows, low, high = rows * scale[:, None], low * scale, high * scale
    elif special < 0.45:
        r = rng.integers(k)
        low[r], high[r] = value[r] + 5 * rng.random(), np.inf
    return rows, low, high


class Rows:
    """The attack."""

    def __init__(self, limit: float = 20.0, family: str | None = None):
        self.limit, self.family = limit, family

    def open(self) -> None:
        """Prepare a worker process: nothing to do."""

    def draw(self, rng: np.random.Generator) -> Case:
        """Return a random case."""
        while True:
            case = draw(rng)
            if self.family in (None, case.family):
                return case

    def solve(self, case: Case) -> Any:
        """Return the result, or the error if no point is feasible."""
        try:
            return case.solve()
        except ValueError as error:
            return str(error)

    def check(self, case: Case, answer: Any) -> tuple[str, list[Defect]]:
        """Compare with the other solvers."""
        status, x = by_clarabel(*case.general_form(), tol=1e-10)
        x = x[: len(case.c)]
        if isinstance(answer, str):
            if "no x satisfies" not in answer and "infeasible" not in answer:
                return "refused", [Defect("refused", answer[:200])]
            wrong = "Infeasible" not in status
            return "infeasible", [Defect("wrongly infeasible", answer[:200])] if wrong else []
        if "Infeasible" in status:
            return str(answer.status), [Defect("missed infeasible", status)]
        if not answer.success:
            return str(answer.status), [Defect("not solved", answer.message)]
        others = [x] if status == "Solved" else []
        second = by_cvxopt(case)
        if second is not None:
            others.append(second)
        return "optimal", [
            *feasibility(case, answer.x), *optimality(case, answer, others), *kkt(case, answer),
        ]  # fmt: skip


def feasibility(case: Case, x: np.ndarray) -> list[Defect]:
    """Bounds exactly, sums within a few ulps of their terms, rows to 1e-12."""
    found = []
    if (x < case.lower).any() or (x > case.upper).any():
        found.append(Defect("bounds", ""))
    for r, (row, low, high) in enumerate(zip(case.matrix, case.low, case.high, strict=True)):
        value, terms = math.fsum(row * x), float(np.abs(row) @ np.abs(x))
        ulps = (4 if set(np.unique(row)) <= {0.0, 1.0} else 8) * np.finfo(float).eps
        allowed = (ulps if r < case.n_sums else 1e-12) * max(terms, 1e-300)
        if value < low - allowed or value > high + allowed:
            name = "sum" if r < case.n_sums else "row"
            found.append(Defect(name, f"{value!r} not in [{low!r}, {high!r}], terms {terms:g}"))
    return found


def optimality(case: Case, result: Any, others: list[np.ndarray]) -> list[Defect]:
    """No other point is better, and the bound holds."""
    found = []
    value = case.value(result.x)
    for other in others:
        worse, size = value - case.value(other), case.size(other)
        if worse > WORSE * size + 1e-12:
            found.append(Defect("worse", f"by {worse:.3g} of {size:.3g}"))
        if worse > result.suboptimality_bound + WORSE * size:
            found.append(Defect("bound", f"{result.suboptimality_bound:.3g} < {worse:.3g}"))
    return found


def kkt(case: Case, result: Any) -> list[Defect]:
    """The multipliers have the right signs, and explain the gradient."""
    found = []
    multipliers = np.array(list(result.row_multipliers.values()))
    rows, low, high = (part[case.n_sums :] for part in (case.matrix, case.low, case.high))
    x, activity = result.x, rows @ result.x
    terms = np.abs(rows) @ np.abs(x) + np.where(np.isfinite(low), np.abs(low), 0.0)
    for r, v in enumerate(multipliers):
        limit = low[r] if v > 0 else high[r]
        if v != 0 and not abs(activity[r] - limit) <= 1e-9 * max(terms[r], 1e-300):
            found.append(Defect("complementarity", f"row {r}: {activity[r]!r}, {limit!r}, {v:g}"))
    slope = case.Q @ x + case.c - result.pull
    weight, center = (0.0, 0.0) if case.l1 is None else (case.l1, case.center)
    # Making a sum exact may move a variable from its center by an ulp.
    x = np.where(np.abs(x - center) <= 1e-14 * np.abs(x).max(), center, x)
    right = slope + np.where(x < center, -weight, weight)
    left = slope + np.where(x > center, weight, -weight)
    scale = float(np.abs(case.Q @ x).max() + np.abs(case.c).max() + np.abs(result.pull).max())
    off = max(
        float(np.where(x > case.lower, left, -np.inf).max()),
        float(-np.where(x < case.upper, right, np.inf).min()),
    )
    if off > 1e-6 * scale:
        found.append(Defect("KKT conditions", f"{off:.3g} of {scale:.3g}"))
    return found


def main() -> None:
    """Read the command line and run."""
    options = runner.arguments(__doc__.splitlines()[0], 5000, KINDS).parse_args()
    runner.main(Rows(options.limit, options.family), options)


if __name__ == "__main__":
    main()
