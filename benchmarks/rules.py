"""Time of one `propose` for each rule, and of one iteration of the coordinate-descent solver.

    python -m benchmarks.rules [--largest 1000000]

Each time is compared with a lower bound in the same run. For a rule, it is one pass over gradient,
x, lower and upper with the same instruction set. For an iteration, it is the time to read two rows
of the Hessian and update the gradient. Each native rule is first checked against its NumPy
specification on the data of the smallest size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import pairstep
from pairstep import _core
from pairstep.paper.rules import RULES, specification

# Kinds of points, each with the step size alpha of its proposals.
AT_BOUNDS, LIMITED, MIDSOLVE = "a third at each bound", "bounds limit most steps", "mid-solve"
KINDS = {AT_BOUNDS: 0.1, LIMITED: 1.0, MIDSOLVE: 1.0}


def best_time(function: Callable[[], object], seconds: float = 0.4) -> float:
    """Return the fastest of the calls that fit into the time."""
    function()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def problem(n: int, kind: str) -> dict[str, np.ndarray]:
    """Draw a point like those of an SVM solve: a third of the variables at each bound."""
    rng = np.random.default_rng(n)
    upper = np.full(n, 1.0)
    x = np.clip(rng.uniform(-1, 2, n), 0, 1)
    if kind == LIMITED:  # close to the upper bounds
        x = rng.uniform(0, 1, n)
        upper = x + rng.exponential(0.01, n)
    lipschitz, gradient = rng.lognormal(0, 1, n), rng.standard_normal(n)
    if kind == MIDSOLVE:  # most derivatives have the sign of an optimum; constants span six decades
        optimal = np.where(x == 0, np.abs(gradient), np.where(x == 1, -np.abs(gradient), 0.0))
        gradient = optimal + 0.1 * rng.standard_normal(n)
        lipschitz = 10.0 ** rng.uniform(-3, 3, n)
    return {
        "gradient": gradient, "x": x, "lower": np.zeros(n), "upper": upper, "lipschitz": lipschitz,
    }  # fmt: skip


def time_rules(sizes: list[int], kind: str) -> None:
    alpha = KINDS[kind]
    table: dict[str, list[float]] = {}
    for n in sizes:
        data = problem(n, kind)
        inputs = [data[k] for k in ("gradient", "x", "lower", "upper")]
        rng = np.random.default_rng(0)
        table.setdefault("bare pass", []).append(best_time(lambda a=inputs: _core.bare_pass(a)))
        for name, rule in RULES.items():
            if n == sizes[0]:
                check(name, data, alpha)
            lipschitz = data["lipschitz"] if rule.weighted or name == "libsvm" else None
            task = {**data, "lipschitz": lipschitz, "rng": rng, "alpha": alpha}
            table.setdefault(name, []).append(
                best_time(lambda r=name, t=task: pairstep.propose(r, **t))
            )
    print(f"\nMicroseconds per selection ({kind}; {_core.instruction_set()}, 1 thread)\n")
    names = "".join(f"{f'n = {n:.0e}':>12}" for n in sizes)
    print(f"{'':18}{names}{'x gs-s':>10}{'growth':>9}")
    decade = np.log10(sizes[-1] / sizes[-2])
    for name, seconds in table.items():
        growth = np.log10(seconds[-1] / seconds[-2]) / decade
        ratio = seconds[-1] / table["gs-s"][-1]
        row = "".join(f"{1e6 * s:12.1f}" for s in seconds)
        print(f"{name:18}{row}{ratio:10.2f}{growth:9.2f}")


def check(name: str, data: dict[str, np.ndarray], alpha: float) -> None:
    weights = RULES[name].weighted or name == "libsvm"
    task = {**data, "lipschitz": data["lipschitz"] if weights else None, "alpha": alpha, "rng": 7}
    native, specified = pairstep.propose(name, **task), specification(name, **task)
    assert np.isclose(native.decrease, specified.decrease, rtol=1e-9), (name, native, specified)


def time_iterations(sizes: list[int]) -> None:
    print("\nMicroseconds per iteration (coordinate descent, explicit float64 Hessian, 1 thread)\n")
    print(f"{'n':>8}{'rule':>10}{'iteration':>12}{'lower bound':>13}{'ratio':>8}")
    for n in sizes:
        rng = np.random.default_rng(n)
        factor = rng.standard_normal((n, 64))
        hessian = factor @ factor.T + np.diag(rng.uniform(0.5, 1.5, n))
        objective = pairstep.Quadratic(hessian, rng.standard_normal(n))
        constraint = pairstep.SumBox(0.0, -1.0, 1.0)
        pairs = rng.integers(0, n, 4000)
        gradient = np.zeros(n)
        for rule in ("libsvm", "gs-s", "gs-1"):
            problem = objective, constraint

            def solve(count: int, problem=problem, rule: str = rule) -> float:
                result = pairstep.coordinate_descent(*problem, rule=rule, tol=0.0, max_iter=count)
                return result.solve_time

            # Alternate, so that both see the same load. The difference of two iteration counts
            # excludes the fixed cost of a solve.
            rounds = 7
            bare, short, long = [], [], []
            for _ in range(rounds):
                began = time.perf_counter()
                _core.bare_updates(hessian, gradient, pairs)
                bare.append((time.perf_counter() - began) / 2000)
                short.append(solve(1000))
                long.append(solve(5000))
            each = (min(long) - min(short)) / 4000
            ratio = each / min(bare)
            print(f"{n:8}{rule:>10}{1e6 * each:12.2f}{1e6 * min(bare):13.2f}{ratio:8.2f}")


def time_overhead() -> None:
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((60, 30))
    objective = pairstep.Quadratic(factor.T @ factor, rng.standard_normal(30))
    constraint = pairstep.Simplex()
    whole = best_time(lambda: pairstep.minimize(objective, constraint))
    result = pairstep.minimize(objective, constraint)
    each = best_time(lambda: pairstep.minimize(objective, constraint, max_iter=0))
    print(f"\nminimize, n = 30: {1e6 * whole:.0f} us for {result.n_iter} iterations; "
          f"{1e6 * each:.0f} us with none")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    largest = parser.parse_args().largest
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if n <= largest]
    for kind in KINDS:
        time_rules(sizes, kind)
    time_iterations([2_000, 10_000])
    time_overhead()


if __name__ == "__main__":
    main()
