"""All corner portfolios of the efficient frontier, against cvxcla.

    PAIRSTEP_DATA=... python -m benchmarks.frontier [--only NAME]

Problems: random covariances of 2n observations and factor models with 20 factors, for n = 85, 225
and 640, long only with and without a cap of 10%; and the OR-Library portfolios port1 to port3. The
peer gets its fastest operator: dense, dense with an updated inverse, or factors. Both must find the
same frontier: at the return of each corner of the peer, our variance is compared with the peer's.
The best of several calls counts.

The last line of each problem compares twenty points of the frontier with their corners: the time of
the points alone, and of a cold solve of one point.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pairstep

from .qp_batches import best_time
from .qp_problems import data_folder

SAME = 1e-8  # relative difference of two variances that count as equal


@dataclass
class Problem:
    name: str
    mean: np.ndarray
    upper: float
    Q: np.ndarray
    factors: tuple[np.ndarray, np.ndarray] | None = None


def problems() -> Iterator[Problem]:
    for n in (85, 225, 640):
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
    folder = data_folder()
    if folder is not None:
        for index in (1, 2, 3):
            mean, Q = or_library(folder / "finance" / f"port{index}.txt")
            yield Problem(f"port{index}, n = {len(mean)}", mean, 1.0, Q)


def or_library(path) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariance of a portfolio problem of the OR-Library."""
    numbers = iter(path.read_text().split())
    n = int(next(numbers))
    mean, deviation = np.array([(float(next(numbers)), float(next(numbers))) for _ in range(n)]).T
    correlation = np.eye(n)
    for line in zip(numbers, numbers, numbers, strict=True):
        i, j = int(line[0]) - 1, int(line[1]) - 1
        correlation[i, j] = correlation[j, i] = float(line[2])
    return mean, correlation * np.outer(deviation, deviation)


def peer(p: Problem, operator) -> list:
    import cvxcla

    n = len(p.mean)
    return cvxcla.CLA(
        mean=p.mean, covariance=operator(), lower_bounds=np.zeros(n),
        upper_bounds=np.full(n, p.upper), a=np.ones((1, n)), b=np.ones(1),
    ).turning_points  # fmt: skip


def compare(p: Problem) -> float | None:
    covariance = p.Q if p.factors is None else p.factors
    first, seconds, frontier = best_time(
        lambda: pairstep.efficient_frontier(covariance, p.mean, upper=p.upper, n_points=1)
    )
    corners = frontier.corners
    print(f"\n{p.name}: {len(corners.x)} corners in {1e3 * seconds:.2f} ms (first "
          f"{1e3 * first:.1f} ms), violation {corners.kkt_violation.max():.0e}")  # fmt: skip
    _, points, _ = best_time(lambda: frontier.at(target_return=np.linspace(
        corners.expected_return[0], corners.expected_return[-1], 20)))  # fmt: skip
    middle = frontier.at(target_return=float(corners.expected_return[[0, -1]].mean()))
    _, cold, _ = best_time(
        lambda: pairstep.solve_qp(covariance, -middle.tradeoff * p.mean, upper=p.upper)
    )
    print(f"  twenty points take {1e3 * points:.3f} ms more, {points / cold:.1f} cold solves")
    try:
        import cvxcla
    except ImportError:
        print("  cvxcla is not installed")
        return None
    operators = {"updated": lambda: cvxcla.IncrementalDenseCovariance(p.Q)}
    if len(p.mean) <= 100:  # slower than the updated inverse from there on
        operators["dense"] = lambda: p.Q
    if p.factors is not None:
        F, D = p.factors
        operators["factors"] = lambda: cvxcla.FactorCovariance(D, F.T, np.eye(len(F)))
    best = np.inf
    for name, operator in operators.items():
        try:
            first, took, turning = best_time(lambda operator=operator: peer(p, operator))
        except Exception as error:
            print(f"  cvxcla, {name}: {type(error).__name__}: {str(error)[:80]}")
            continue
        X = np.array([point.weights for point in turning])
        inside = X @ p.mean >= corners.expected_return[0]
        ours = frontier.at(target_return=np.minimum(X[inside] @ p.mean, p.mean.max()))
        theirs = np.einsum("ki,ij,kj->k", X[inside], p.Q, X[inside])
        worse = float((ours.risk**2 / theirs - 1).max())
        assert worse <= SAME, f"a portfolio of cvxcla has less risk, by {worse:.1e}"
        best = min(best, took)
        print(f"  cvxcla, {name}: {len(X)} corners in {1e3 * took:.1f} ms (first {1e3 * first:.1f} "
              f"ms), {took / seconds:.1f}x; its variance is at most "
              f"{float((theirs / ours.risk**2 - 1).max()):.0e} higher", flush=True)  # fmt: skip
    return best / seconds if np.isfinite(best) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    ratios = {p.name: compare(p) for p in problems() if options.only in p.name}
    print("\nSummary: time of cvxcla / time of pairstep, all corners\n")
    for name, ratio in ratios.items():
        print(f"  {name:28} {'-' if ratio is None else f'{ratio:8.1f}'}")


if __name__ == "__main__":
    main()
