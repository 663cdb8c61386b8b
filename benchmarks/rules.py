"""Time of one `propose` for each rule, and of one iteration of the coordinate-descent solver.

    python -m benchmarks.rules [--largest 1000000]

Tables "rules-bounds", "rules-cut", "rules-midsolve" and "iteration". Each time is compared with a
lower bound in the same run. For a rule, it is one pass over gradient, x, lower and upper with the
same instruction set. For an iteration, it is the time to read two rows of the Hessian and update
the gradient. Each native rule is first checked against its NumPy specification on the data of the
smallest size.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

import pairstep
from pairstep import _core
from pairstep.paper.rules import RULES, specification

from .harness import Table, digits, log, named, parser, times_of

# Kinds of points: the title of their table, and the step size alpha of their proposals.
AT_BOUNDS, LIMITED, MIDSOLVE = "rules-bounds", "rules-cut", "rules-midsolve"
KINDS = {
    AT_BOUNDS: ("a third of the variables at each bound", 0.1),
    LIMITED: ("bounds limit most steps", 1.0),
    MIDSOLVE: ("in the middle of a solve", 1.0),
}
REPEATED = {"seconds": 0.4, "least": 4, "most": 10**6}  # the first call of the four is slower


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


def time_rules(sizes: list[int], kind: str, out: Path) -> None:
    title, alpha = KINDS[kind]
    seconds: dict[str, list[float]] = {}
    for n in sizes:
        data = problem(n, kind)
        inputs = [data[k] for k in ("gradient", "x", "lower", "upper")]
        rng = np.random.default_rng(0)
        times, _ = times_of(lambda a=inputs: _core.bare_pass(a), **REPEATED)
        seconds.setdefault("bare memory pass", []).append(min(times))
        for name, rule in RULES.items():
            if n == sizes[0]:
                check(name, data, alpha)
            lipschitz = data["lipschitz"] if rule.weighted or name == "libsvm" else None
            task = {**data, "lipschitz": lipschitz, "rng": rng, "alpha": alpha}
            times, _ = times_of(lambda r=name, t=task: pairstep.propose(r, **t), **REPEATED)
            seconds.setdefault(f"`{name}`", []).append(min(times))
    names = [f"n = {n:.0e}".replace("e+0", "e") for n in sizes]
    columns = ["rule", *names, f"times `gs-s` at {names[-1].removeprefix('n = ')}"]
    table = Table(out, kind, f"Microseconds per selection, {title}", columns)
    for name, each in seconds.items():
        ratio = each[-1] / seconds["`gs-s`"][-1]
        table.add(name, *(digits(1e6 * s) for s in each), digits(ratio))


def check(name: str, data: dict[str, np.ndarray], alpha: float) -> None:
    weights = RULES[name].weighted or name == "libsvm"
    task = {**data, "lipschitz": data["lipschitz"] if weights else None, "alpha": alpha, "rng": 7}
    native, specified = pairstep.propose(name, **task), specification(name, **task)
    assert np.isclose(native.decrease, specified.decrease, rtol=1e-9), (name, native, specified)


def time_iterations(sizes: list[int], out: Path) -> None:
    """Time iterations with an explicit float64 Hessian on one thread."""
    table = Table(out, "iteration", "One iteration of the coordinate-descent solver", [
        "n", "rule", "iteration, us", "lower bound, us", "ratio"])  # fmt: skip
    for n in sizes:
        rng = np.random.default_rng(n)
        factor = rng.standard_normal((n, 64))
        hessian = factor @ factor.T + np.diag(rng.uniform(0.5, 1.5, n))
        objective = pairstep.Quadratic(hessian, rng.standard_normal(n))
        constraint = pairstep.SumBox(0.0, -1.0, 1.0)
        pairs = rng.integers(0, n, 4000)
        gradient = np.zeros(n)
        for rule in ("libsvm", "gs-s", "gs-1"):
            solve = partial(pairstep.coordinate_descent, objective, constraint, rule=rule, tol=0.0)
            # Alternate, so that both see the same load. The difference of two iteration counts
            # excludes the fixed cost of a solve.
            bare, short, long = [], [], []
            for _ in range(7):
                update = partial(_core.bare_updates, hessian, gradient, pairs)
                (seconds,), _ = times_of(update, most=1)
                bare.append(seconds / 2000)
                short.append(solve(max_iter=1000).solve_time)
                long.append(solve(max_iter=5000).solve_time)
            each = (min(long) - min(short)) / 4000
            table.add(n, f"`{rule}`", digits(1e6 * each), digits(1e6 * min(bare)),
                      digits(each / min(bare)))  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--largest", type=int, default=1_000_000)
    options = arguments.parse_args()
    log(f"{_core.instruction_set()}, 1 thread")
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if n <= options.largest]
    for kind in KINDS:
        if named(kind, options.only):
            time_rules(sizes, kind, options.out)
    if named("iteration", options.only):
        time_iterations([2_000, 10_000], options.out)


if __name__ == "__main__":
    main()
