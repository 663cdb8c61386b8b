"""All corner portfolios of the efficient frontier, against cvxcla.

    PAIRSTEP_DATA=... python -m benchmarks.frontier [--quick] [--only PART...] [--budget 60]

Table "frontier". Problems: random covariances of 2n observations and factor models with 20 factors,
for n = 85, 225 and 640, long only with and without a cap of 10%; and the OR-Library portfolios
port1 to port3. The peer gets its fastest operator: dense, dense with an updated inverse, or
factors. Both must find the same frontier: at the return of each corner of a solver, its variance is
compared with that of our frontier.

The last columns have the time of twenty points of a frontier whose corners are known, and how many
cold solves of one point take as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pairstep

from .harness import (
    Entry,
    Solve,
    Table,
    data_folder,
    digits,
    log,
    named,
    parser,
    race,
    times_of,
    versus,
)  # fmt: skip
from .qp_problems import or_portfolio

SAME = 1e-8  # relative difference of two variances that count as equal
INFEASIBLE = 1e-7


@dataclass
class Problem:
    name: str
    mean: np.ndarray
    upper: float
    Q: np.ndarray
    factors: tuple[np.ndarray, np.ndarray] | None = None


def problems(quick: bool) -> Iterator[Problem]:
    for n in (85, 225) if quick else (85, 225, 640):
        rng = np.random.default_rng(n)
        returns = rng.normal(size=(2 * n, n)) / 10 + rng.normal(size=(2 * n, 1)) / 20
        mean = 0.05 + 0.03 * rng.normal(size=n)
        Q = returns.T @ returns / (2 * n)
        F, D = rng.normal(size=(20, n)) / 40, rng.uniform(0.002, 0.01, n)
        for upper in (1.0, 0.1):
            yield Problem(f"dense {n}, upper {upper:g}", mean, upper, Q)
            yield Problem(
                f"factors {n}, upper {upper:g}", mean, upper, F.T @ F + np.diag(D), (F, D)
            )
    folder = data_folder(required=False)
    for index in (1, 2, 3) if folder else ():
        p = or_portfolio(folder, index)
        yield Problem(p.name, -p.c / 0.2, 1.0, p.Q)


def frontier(p: Problem) -> pairstep.Frontier:
    covariance = p.Q if p.factors is None else p.factors
    return pairstep.efficient_frontier(covariance, p.mean, upper=p.upper, n_points=1)


def entries(p: Problem) -> list[Entry]:
    """Return pairstep, and cvxcla with each operator; a point is the corners of a frontier."""

    def ours() -> Solve:
        return lambda _: frontier(p).corners.x

    def peer(name: str) -> Solve:
        import cvxcla

        n = len(p.mean)
        operators = {"updated": lambda: cvxcla.IncrementalDenseCovariance(p.Q),
                     "dense": lambda: p.Q}  # fmt: skip
        if p.factors is not None:
            F, D = p.factors
            operators["factors"] = lambda: cvxcla.FactorCovariance(D, F.T, np.eye(len(F)))

        def solve(_: float) -> np.ndarray:
            corners = cvxcla.CLA(
                mean=p.mean, covariance=operators[name](), lower_bounds=np.zeros(n),
                upper_bounds=np.full(n, p.upper), a=np.ones((1, n)), b=np.ones(1),
            ).turning_points  # fmt: skip
            return np.array([corner.weights for corner in corners])

        return solve

    # From 100 assets on, a dense matrix is slower than the updated inverse.
    names = ["updated", *(["dense"] if len(p.mean) <= 100 else []),
             *(["factors"] if p.factors else [])]  # fmt: skip
    own = Entry("pairstep", "factors" if p.factors else "dense", ours, (0.0,))
    return [own, *(Entry("cvxcla", name, lambda name=name: peer(name), (0.0,)) for name in names)]


def main() -> None:
    options = parser(__doc__, budget=60.0).parse_args()
    table = Table(
        options.out, "frontier", "Corners of the efficient frontier",
        ["problem", "corners", "`efficient_frontier`, ms", "cvxcla, ms", "faster by",
         "twenty points, ms", "in cold solves"], ["cvxcla"],
        ("faster by", "times faster than cvxcla"),
    )  # fmt: skip
    for p in problems(options.quick):
        if not named(p.name, options.only):
            continue
        log(f"\n{p.name}")
        found = frontier(p)
        least, most = found.corners.expected_return[[0, -1]]

        def judge(X: np.ndarray, p: Problem = p, found: pairstep.Frontier = found,
                  least: float = least) -> tuple[float, float]:  # fmt: skip
            beyond = max(-X.min(), (X - p.upper).max(), np.abs(X.sum(axis=1) - 1).max())
            X = X[X @ p.mean >= least]
            ours = found.at(target_return=np.minimum(X @ p.mean, p.mean.max())).risk ** 2
            gaps = np.einsum("ki,ij,kj->k", X, p.Q, X) / ours - 1
            return float(gaps[np.argmax(np.abs(gaps))]), float(beyond)

        runs = race(entries(p), judge, (SAME, INFEASIBLE), options.budget, options.peers)
        points, _ = times_of(
            lambda found=found, ends=(least, most): found.at(target_return=np.linspace(*ends, 20))
        )
        tradeoff = found.at(target_return=float(least + most) / 2).tradeoff
        covariance = p.Q if p.factors is None else p.factors
        cold, _ = times_of(lambda p=p, Q=covariance, tradeoff=tradeoff: pairstep.solve_qp(
            Q, -tradeoff * p.mean, upper=p.upper))  # fmt: skip
        table.add(p.name, len(found.corners.x), *versus(runs, options.budget),
                  digits(1e3 * min(points)), digits(min(points) / min(cold)))  # fmt: skip
    table.summarize("faster by")


if __name__ == "__main__":
    main()
