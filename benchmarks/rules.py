"""Time of one `propose` per rule beside one bare memory pass, and of one greedy iteration.

    python -m benchmarks.rules [--largest 1000000]

Every figure is a ratio within one run: a rule against a bare pass over gradient, x, lower and
upper by the same instruction set; an iteration of the greedy gear against reading two rows of the
Hessian and updating the gradient. Before timing, each native rule is checked against its NumPy
specification on the very data it is timed on (at the smallest size).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import pairstep
from pairstep import _core
from pairstep.rules import RULES, specification

TARGETS = {"gs-s": ("bare pass", 2.0), "gs-1": ("gs-s", 1.5), "gs-q": ("gs-s", 4.0),
           "gs-q-lipschitz": ("gs-s", 10.0), "gs-1-lipschitz": ("gs-s", 10.0),
           "gs-1-ratio": ("gs-s", 10.0)}  # fmt: skip
KINDS = {"a third at each bound": 0.1, "rooms cut most moves": 1.0, "mid-solve": 1.0}  # and alpha


def best_time(function: Callable[[], object], seconds: float = 0.4) -> float:
    """The best of as many calls as fit the time: the least disturbed one."""
    function()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def problem(n: int, kind: str) -> dict[str, np.ndarray]:
    """A point in the middle of an SVM-like solve: a third at each bound, the rest between."""
    rng = np.random.default_rng(n)
    upper = np.full(n, 1.0)
    x = np.clip(rng.uniform(-1, 2, n), 0, 1)
    if kind == "rooms cut most moves":  # rooms of all sizes
        x = rng.uniform(0, 1, n)
        upper = x + rng.exponential(0.01, n)
    lipschitz, gradient = rng.lognormal(0, 1, n), rng.standard_normal(n)
    if kind == "mid-solve":  # prices mostly on the right side of 0, constants over six decades
        right = np.where(x == 0, np.abs(gradient), np.where(x == 1, -np.abs(gradient), 0.0))
        gradient = right + 0.1 * rng.standard_normal(n)
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
    print(f"\nMicroseconds per move ({kind}; {_core.instruction_set()}, 1 thread)\n")
    names = "".join(f"{f'n = {n:.0e}':>12}" for n in sizes)
    print(f"{'':18}{names}{'x gs-s':>10}{'growth':>9}{'target':>20}")
    decade = np.log10(sizes[-1] / sizes[-2])
    bare_growth = np.log10(table["bare pass"][-1] / table["bare pass"][-2]) / decade
    for name, seconds in table.items():
        growth = np.log10(seconds[-1] / seconds[-2]) / decade
        ratio = seconds[-1] / table["gs-s"][-1]
        verdict = ""
        if name in TARGETS:
            base, limit = TARGETS[name]
            reached = seconds[-1] / table[base][-1]
            verdict = f"{reached:.2f} <= {limit:g} {'ok' if reached <= limit else 'MISSED'}"
        if growth > bare_growth + 0.15:
            verdict += " GROWTH"
        row = "".join(f"{1e6 * s:12.1f}" for s in seconds)
        print(f"{name:18}{row}{ratio:10.2f}{growth:9.2f}{verdict:>20}")


def check(name: str, data: dict[str, np.ndarray], alpha: float) -> None:
    weights = RULES[name].weighted or name == "libsvm"
    task = {**data, "lipschitz": data["lipschitz"] if weights else None, "alpha": alpha, "rng": 7}
    native, readable = pairstep.propose(name, **task), specification(name, **task)
    assert np.isclose(native.decrease, readable.decrease, rtol=1e-9), (name, native, readable)


def time_greedy(sizes: list[int]) -> None:
    print("\nGreedy gear: microseconds per iteration (explicit float64 Hessian, 1 thread)\n")
    print(f"{'n':>8}{'rule':>10}{'iteration':>12}{'bare update':>13}{'ratio':>8}  target 2")
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
                result = pairstep.minimize(*problem, rule=rule, tol=0.0, max_iter=count)
                return result.solve_time

            # Interleaved, so that both see the same machine; the difference of two counts leaves
            # out what a solve costs once.
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
          f"{1e6 * each:.0f} us with none (target: overhead below 100 us)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    largest = parser.parse_args().largest
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if n <= largest]
    for kind in KINDS:
        time_rules(sizes, kind)
    time_greedy([2_000, 10_000])
    time_overhead()


if __name__ == "__main__":
    main()
