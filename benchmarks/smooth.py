"""Smooth objectives on the simplex, compared with other solvers.

    python -m benchmarks.smooth [--quick] [--only NAME] [--peers ...] [--budget 60]

Each solver runs at the loosest of several tolerances that reaches the best known objective within
1e-6, relative to the possible improvement over equal weights. A solver that never does is reported
as failed with its gap. The best known value is pairstep's; its Frank-Wolfe gap, which bounds how
much lower the optimum can be, is printed with it. The problems of the other solvers ("peers") are
prepared before the clock starts (cvxpy: compiled once; SciPy, EM and Frank-Wolfe: functions with
BLAS products and no subnormal numbers). pairstep is timed from raw arrays, input validation
included.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cvxpy
import numpy as np
import scipy.linalg
import scipy.optimize

import pairstep

from .child import in_child

GAP = 1e-6
OWN_GAP = 1e-9
Solve = Callable[[float], np.ndarray]
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
    return log_problem(f"mixture {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L))


def locations(m: int, n: int) -> Problem:
    """Draw the same with components on a grid of locations; most likelihoods are tiny."""
    rng = np.random.default_rng(m + 1)
    seen = np.r_[rng.normal(-2, 0.5, m // 2), rng.normal(1, 1, m - m // 2)]
    L = np.exp(-0.5 * ((seen[:, None] - np.linspace(-6, 6, n)) / 0.3) ** 2)
    return log_problem(f"places {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L))


def kelly() -> list[Problem]:
    folder = os.environ.get("PAIRSTEP_DATA", "")
    found = []
    for name in ("olps_nyse_o", "skfolio_sp500_dataset"):
        path = os.path.join(folder, "finance", f"{name}.csv.gz")
        if not os.path.isfile(path):
            print(f"{path} does not exist: skipping its Kelly problem")
            continue
        import pandas

        prices = pandas.read_csv(path).select_dtypes("number").to_numpy(float)
        returns = np.ascontiguousarray(prices[1:] / prices[:-1] - 1)
        problem = log_problem(
            f"kelly {name[:7]}", 1 + returns, partial(pairstep.LogGrowth, returns)
        )
        found.append(problem)
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
        f"stacking of odds {m} x {n}", n, lambda: pairstep.Logistic(Z, y), both, hessian,
        lambda x: cvxpy.sum(cvxpy.logistic(-(signed @ x))) / m, line,
    )  # fmt: skip
    probabilities = log_problem(
        f"stacking of probabilities {m} x {n}", L, lambda: pairstep.MixtureLikelihood(L)
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
        f"design {n} x {p}", n, lambda: pairstep.DOptimal(A), both, hessian,
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


def solvers(p: Problem) -> dict[str, Callable[[Problem], Solve]]:
    found = {f"cvxpy {name}": partial(through_cvxpy, name) for name in ("CLARABEL", "ECOS", "SCS")}
    found |= {"SLSQP": slsqp, "trust-constr": trust_constr, "Frank-Wolfe": frank_wolfe}
    return found | ({"EM": em} if p.em else {})


# ----------------------------------------------------------------------------------------- running


def climb(prepare: Callable[[Problem], Solve], p: Problem, best: float, gain: float, send) -> None:
    warnings.simplefilter("ignore")
    try:
        solve = prepare(p)
    except Exception as error:  # other solvers raise exceptions of many types
        send(f"{type(error).__name__}: {error}"[:50])
        return
    send("ready")
    for tol in LADDER:
        began = time.perf_counter()
        try:
            x = solve(tol)
        except Exception as error:
            send((tol, np.nan, np.nan, f"{type(error).__name__}: {error}"[:50]))
            continue
        seconds = time.perf_counter() - began
        gap = (p.value(x) - best) / gain if x is not None else np.nan
        if gap <= GAP:
            for _ in range(repetitions(seconds)):
                began = time.perf_counter()
                solve(tol)
                seconds = min(seconds, time.perf_counter() - began)
        send((tol, seconds, gap, ""))
        if gap <= GAP:
            return


def repetitions(seconds: float) -> int:
    """Return the number of repetitions: enough that the best time is reproducible."""
    return 0 if seconds >= 2 else int(np.clip(0.3 / seconds, 4, 200))


def measure(p: Problem, budget: float, wanted: list[str]) -> float | None:
    """Print a table and return how many times faster pairstep is than the best peer."""
    result = pairstep.minimize(p.make(), pairstep.Simplex(), tol=1e-10)
    gain = p.value(p.start) - result.fun
    own_gap = result.suboptimality_bound / abs(result.fun)
    verdict = "" if own_gap <= OWN_GAP else " (TOO LARGE)"
    print(
        f"\n{p.name}: {result.status} after {result.n_iter} iterations, "
        f"objective {result.fun:.9g}, relative Frank-Wolfe gap {own_gap:.0e}{verdict}, "
        f"{int((result.x > 0).sum())} of {p.n} in use"
    )
    times: dict[str, float] = {}
    for name, prepare in {"pairstep": own, **solvers(p)}.items():
        if wanted and name not in ("pairstep", *wanted):
            continue
        status = "failed"
        for message in in_child(partial(climb, prepare, p, result.fun, gain), budget):
            if isinstance(message, str):
                status = status if message == "ready" else message
                continue
            tol, seconds, gap, trouble = message
            if gap < -GAP:
                print(f"  NOTE: {name} is {-gap:.0e} lower")
            if gap <= GAP:
                times[name] = seconds
                status = f"{1e3 * seconds:10.2f} ms at tolerance {tol:.0e}, gap {gap:.0e}"
            elif not trouble:
                status = f"failed, gap {gap:.0e} at tolerance {tol:.0e}"
            elif status == "failed":
                status = trouble
        if name in times and name != "pairstep":
            status += f", {times[name] / times['pairstep']:.1f}x"
        print(f"  {name:16}{status}", flush=True)
    peers = {name: seconds for name, seconds in times.items() if name != "pairstep"}
    if not peers or "pairstep" not in times:
        return None
    best = min(peers, key=lambda name: peers[name])
    ratio = peers[best] / times["pairstep"]
    print(f"  best peer: {best}, {ratio:.1f}x pairstep's time")
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="skip the largest problem")
    parser.add_argument("--only", default="", help="problems with this in their name")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per solve of a peer")
    parser.add_argument("--peers", nargs="*", default=[], help="only these, for instance EM")
    options = parser.parse_args()
    made: list[Callable[[], list[Problem]]] = [
        lambda: [mixture(5000, 200)],
        lambda: [locations(5000, 200)],
        kelly,
        stacking,
        lambda: [design(2000, 30)],
    ]
    if not options.quick:
        made.append(lambda: [mixture(50_000, 500)])
    ratios = {}
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for make in made:
        for p in make():
            if options.only in p.name:
                ratios[p.name] = measure(p, options.budget, options.peers)
    known = {name: ratio for name, ratio in ratios.items() if ratio}
    print("\ntime of the best peer / time of pairstep:")
    for name, ratio in ratios.items():
        print(f"  {name:40}{'no peer reached it' if ratio is None else f'{ratio:8.1f}x'}")
    if known:
        print(f"  worst {min(known.values()):.1f}x at {min(known, key=lambda name: known[name])}")


if __name__ == "__main__":
    main()
