"""Smooth objectives on the simplex, compared with other solvers.

    python -m benchmarks.smooth [--quick] [--only PART...] [--peers NAME...] [--budget 60]

Table "smooth". Each solver runs at the loosest of several tolerances that reaches the best known
objective within 1e-6, relative to the possible improvement over equal weights. A solver that never
does is reported as failed with its gap. The best known value is pairstep's; its Frank-Wolfe gap,
which bounds how much lower the optimum can be, is printed with it. The problems of the other
solvers ("peers") are prepared before the clock starts (cvxpy: compiled once; SciPy, EM and
Frank-Wolfe: functions with BLAS products and no subnormal numbers). pairstep is timed from raw
arrays, input validation included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cvxpy
import numpy as np
import pandas as pd
import scipy.linalg
import scipy.optimize
import threadpoolctl

import pairstep

from .harness import Contest, Entry, Solve, Table, compete, data_folder, log, parser

GAP = 1e-6
OWN_GAP = 1e-9
LADDER = (1e-4, 1e-6, 1e-8, 1e-10)


@dataclass
class Problem:
    name: str
    n: int
    make: Callable[[], pairstep.Smooth]  # pairstep's objective, from raw arrays
    both: Callable[[np.ndarray], tuple[float, np.ndarray]]  # value and gradient, in NumPy
    hessian: Callable[[np.ndarray], np.ndarray]
    convex: Callable[[cvxpy.Variable], cvxpy.Expression]
    line: Callable[[np.ndarray, np.ndarray], Callable[[float], float]]  # slopes along a line
    em: Callable[[np.ndarray], np.ndarray] | None = None  # one iteration

    @property
    def start(self) -> np.ndarray:
        return np.full(self.n, 1 / self.n)

    def value(self, x: np.ndarray) -> float:
        """Return the value at the nearest feasible point, so that infeasibility is no advantage."""
        return self.both(pairstep.Simplex().project(x))[0]


# ---------------------------------------------------------------------------------------- problems


def log_problem(name: str, A: np.ndarray, make: Callable[[], pairstep.Smooth]) -> Problem:
    """Return minus the mean of ``log(Ax)``."""
    A = np.where(A < 1e-300, 0.0, A)
    m = len(A)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        u = A @ x
        if u.min() <= 0:
            return np.inf, np.zeros(len(x))
        return -float(np.log(u).mean()), -(A.T @ (1 / u)) / m

    def hessian(x: np.ndarray) -> np.ndarray:
        J = A / (A @ x)[:, None]
        return J.T @ J / m

    def line(x: np.ndarray, d: np.ndarray) -> Callable[[float], float]:
        u, v = A @ x, A @ d

        def slope(t: float) -> float:
            at = u + t * v
            return -float((v / at).mean()) if at.min() > 0 else np.inf

        return slope

    return Problem(
        name, A.shape[1], make, both, hessian, lambda x: -cvxpy.sum(cvxpy.log(A @ x)) / m, line,
        em=lambda x: x * (A.T @ (1 / (A @ x))) / m,
    )  # fmt: skip


def mixture(m: int, n: int) -> Problem:
    """Normal means: a mixture of three normals, components on a grid of scales, as in ashr."""
    rng = np.random.default_rng(m)
    seen = rng.normal(size=m) * rng.choice([1.0, 2.0, 6.0], p=[0.6, 0.3, 0.1], size=m)
    scale = np.sqrt(1 + np.r_[0.0, np.geomspace(0.05, 20.0, n - 1)] ** 2)
    L = np.exp(-0.5 * (seen[:, None] / scale) ** 2) / scale
    return log_problem(f"mixture proportions, {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L))


def locations(m: int, n: int) -> Problem:
    """Draw the same with components on a grid of locations; most likelihoods are tiny."""
    rng = np.random.default_rng(m + 1)
    seen = np.r_[rng.normal(-2, 0.5, m // 2), rng.normal(1, 1, m - m // 2)]
    L = np.exp(-0.5 * ((seen[:, None] - np.linspace(-6, 6, n)) / 0.3) ** 2)
    return log_problem(
        f"mixture proportions on a grid, {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L)
    )


def kelly() -> list[Problem]:
    folder = data_folder(required=False)
    found = []
    for name in ("olps_nyse_o", "skfolio_sp500_dataset") if folder else ():
        table = pd.read_csv(folder / "finance" / f"{name}.csv.gz")
        prices = table.select_dtypes("number").to_numpy(float)
        returns = np.ascontiguousarray(prices[1:] / prices[:-1] - 1)
        days, stocks = returns.shape
        title = f"Kelly, {stocks} stocks, {days} days"
        found.append(log_problem(title, 1 + returns, partial(pairstep.LogGrowth, returns)))
    return found


def stacking(m: int = 20_000, n: int = 30) -> list[Problem]:
    """Combine models of different quality, by their probabilities or by their log odds."""
    rng = np.random.default_rng(2)
    truth = rng.normal(size=m)
    y = rng.random(m) < 1 / (1 + np.exp(-2 * truth))
    noise = np.geomspace(0.3, 4.0, n)
    Z = rng.uniform(0.5, 2.5, n) * (truth[:, None] + noise * rng.normal(size=(m, n)))
    P = 1 / (1 + np.exp(-Z))
    L = np.where(y[:, None], P, 1 - P)
    signed = Z * np.where(y, 1.0, -1.0)[:, None]

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        u = signed @ x
        return float(np.logaddexp(0, -u).mean()), -(signed.T @ (1 / (1 + np.exp(u)))) / m

    def hessian(x: np.ndarray) -> np.ndarray:
        J = signed / (2 * np.cosh(signed @ x / 2))[:, None]
        return J.T @ J / m

    def line(x: np.ndarray, d: np.ndarray) -> Callable[[float], float]:
        u, v = signed @ x, signed @ d
        return lambda t: -float((v / (1 + np.exp(u + t * v))).mean())

    odds = Problem(
        f"stacking of log odds, {m} x {n}", n, lambda: pairstep.Logistic(Z, y), both, hessian,
        lambda x: cvxpy.sum(cvxpy.logistic(-(signed @ x))) / m, line,
    )  # fmt: skip
    probabilities = log_problem(
        f"stacking of probabilities, {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L)
    )
    return [probabilities, odds]


def design(n: int, p: int) -> Problem:
    A = np.random.default_rng(n).normal(size=(n, p))

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        M = A.T @ (x[:, None] * A)
        sign, size = np.linalg.slogdet(M)
        if sign <= 0:
            return np.inf, np.zeros(n)
        return -size, -np.einsum("ij,ij->i", A, np.linalg.solve(M, A.T).T)

    def hessian(x: np.ndarray) -> np.ndarray:
        M = A.T @ (x[:, None] * A)
        return (A @ np.linalg.solve(M, A.T)) ** 2

    def line(x: np.ndarray, d: np.ndarray) -> Callable[[float], float]:
        M, change = A.T @ (x[:, None] * A), A.T @ (d[:, None] * A)
        rates = scipy.linalg.eigh(change, M, eigvals_only=True)
        return lambda t: (
            -float(np.sum(rates / (1 + t * rates))) if 1 + t * rates.min() > 0 else np.inf
        )

    return Problem(
        f"D-optimal design, {n} x {p}", n, lambda: pairstep.DOptimal(A), both, hessian,
        lambda x: -cvxpy.log_det(A.T @ cvxpy.diag(x) @ A), line,
        em=lambda x: x * -both(x)[1] / p,  # Titterington's multiplicative algorithm
    )  # fmt: skip


# ----------------------------------------------------------------------------------------- solvers


def own(p: Problem) -> Solve:
    return lambda tol: pairstep.minimize(p.make(), pairstep.Simplex(), tol=tol).x


def through_cvxpy(solver: str, p: Problem) -> Solve:
    x = cvxpy.Variable(p.n)
    program = cvxpy.Problem(cvxpy.Minimize(p.convex(x)), [cvxpy.sum(x) == 1, x >= 0])
    program.get_problem_data(solver)  # compiles

    def solve(tol: float) -> np.ndarray:
        options = {
            "CLARABEL": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
            "ECOS": {"abstol": tol, "reltol": tol, "feastol": tol},
            "SCS": {"eps": tol, "max_iters": 100_000},
        }[solver]
        program.solve(solver=solver, **options)
        return x.value

    return solve


def slsqp(p: Problem) -> Solve:
    budget = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(p.n)}
    return lambda tol: scipy.optimize.minimize(
        p.both, p.start, jac=True, method="SLSQP", bounds=[(0, 1)] * p.n, constraints=budget,
        options={"ftol": 1e-3 * tol, "maxiter": 1000},
    ).x  # fmt: skip


def trust_constr(p: Problem) -> Solve:
    budget = scipy.optimize.LinearConstraint(np.ones((1, p.n)), 1, 1)
    return lambda tol: scipy.optimize.minimize(
        p.both, p.start, jac=True, hess=p.hessian, method="trust-constr",
        bounds=scipy.optimize.Bounds(np.zeros(p.n), np.ones(p.n), keep_feasible=True),
        constraints=budget, options={"gtol": tol, "xtol": 1e-3 * tol, "maxiter": 3000},
    ).x  # fmt: skip


def em(p: Problem) -> Solve:
    """Run EM until the Frank-Wolfe gap, which it computes anyway, is within the tolerance."""

    def solve(tol: float) -> np.ndarray:
        x = p.start
        for k in range(1_000_000):
            x = p.em(x)
            if k % 20 == 0:
                value, gradient = p.both(x)
                if gradient @ x - gradient.min() <= tol * max(abs(value), 1e-3):
                    break
        return x

    return solve


def frank_wolfe(p: Problem) -> Solve:
    """Run Frank-Wolfe with away steps (Guelat and Marcotte; Lacoste-Julien and Jaggi)."""

    def solve(tol: float) -> np.ndarray:
        x = p.start
        while True:
            value, gradient = p.both(x)
            average = float(gradient @ x)
            towards = int(np.argmin(gradient))
            held = np.flatnonzero(x > 0)
            away = held[np.argmax(gradient[held])]
            gap = average - gradient[towards]
            if gap <= tol * max(abs(value), 1e-3):
                return x
            if gap >= gradient[away] - average:
                direction, most = -x.copy(), 1.0
                direction[towards] += 1
            else:
                direction, most = x.copy(), x[away] / max(1 - x[away], 1e-300)
                direction[away] -= 1
            slope = p.line(x, direction)
            length = most
            if slope(most) > 0:
                low, high = 0.0, most
                while high - low > 1e-12 * high:
                    length = (low + high) / 2
                    low, high = (low, length) if slope(length) > 0 else (length, high)
            x = np.maximum(x + length * direction, 0)
            if length == most and away != towards:
                x[away] = 0
            x /= x.sum()

    return solve


def on_one_thread(method: Callable[[Problem], Solve], p: Problem) -> Solve:
    threadpoolctl.threadpool_limits(1)
    return method(p)


def entries(p: Problem) -> list[Entry]:
    """Return pairstep and all peers: those in NumPy with all BLAS threads, and with one."""
    numpy = {"SLSQP": slsqp, "trust-constr": trust_constr, "Frank-Wolfe": frank_wolfe}
    numpy |= {"EM": em} if p.em else {}
    methods: list[tuple[str, str, Callable[[Problem], Solve]]] = [
        ("pairstep", "", own),
        *((f"cvxpy {name}", "", partial(through_cvxpy, name))
          for name in ("CLARABEL", "ECOS", "SCS")),
        *((name, "", method) for name, method in numpy.items()),
        *((name, "1 thread", partial(on_one_thread, method)) for name, method in numpy.items()),
    ]  # fmt: skip
    return [Entry(name, form, partial(method, p), LADDER) for name, form, method in methods]


def contest(p: Problem) -> Contest:
    """Return the entries, and the judge: relative to the improvement over equal weights."""
    result = pairstep.minimize(p.make(), pairstep.Simplex(), tol=1e-10)
    bound = result.suboptimality_bound / abs(result.fun)
    assert bound <= OWN_GAP, f"the optimum is known to {bound:.0e} only"
    log(f"  {result.status} after {result.n_iter} iterations, relative Frank-Wolfe gap "
        f"{bound:.0e}, {int((result.x > 0).sum())} of {p.n} in use")  # fmt: skip
    gain = p.value(p.start) - result.fun
    return entries(p), lambda x: ((p.value(x) - result.fun) / gain, 0.0)


def main() -> None:
    options = parser(__doc__, budget=60.0).parse_args()
    table = Table(
        options.out, "smooth", "Smooth objectives",
        ["problem", "`minimize`, ms", "best peer, ms", "faster by"],
        ["cvxpy", "clarabel", "ecos", "scs", "scipy", "numpy"],
        ("faster by", "times faster than the best peer"),
    )  # fmt: skip
    made: list[Callable[[], list[Problem]]] = [
        lambda: [mixture(5000, 200)],
        lambda: [locations(5000, 200)],
        kelly,
        stacking,
        lambda: [design(2000, 30)],
    ]
    if not options.quick:
        made.append(lambda: [mixture(50_000, 500)])
    for make in made:
        for p in make():
            compete(options, table, p.name, partial(contest, p), (GAP, 0.0))
    table.summarize("faster by")


if __name__ == "__main__":
    main()
