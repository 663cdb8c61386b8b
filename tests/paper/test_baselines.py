"""The peers in NumPy reach the optimum, stay feasible, and report their objective."""

import itertools

import numpy as np
import pytest

import pairstep
from pairstep.paper import baselines, peers
from pairstep.paper.baselines import Problem
from pairstep.paper.rules.pairs import box_coordinates

PAIRS = list(peers.PAIR_METHODS.values())
FRANK_WOLFE = [m for m in peers.FRANK_WOLFE.values() if m is not baselines.simplex_frank_wolfe]


def problem(seed, total=0.0, lower=-0.3, upper=0.4, n=15):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((2 * n, n))
    Q, c = B.T @ B / n + 0.1 * np.eye(n), rng.standard_normal(n)
    return Problem(Q, c, total, np.full(n, lower), np.full(n, upper))


def start(p):
    return np.full(len(p.c), p.total / len(p.c))


def optimum(p):
    box = pairstep.SumBox(p.total, p.lower, p.upper)
    return pairstep.minimize(pairstep.Quadratic(p.Q, p.c), box, tol=1e-11).fun


def converge(iterates, p, most=5000):
    """Run a method; check every objective and point, and return the last objective."""
    last = np.inf
    for x, value in itertools.islice(iterates, most):
        assert value == pytest.approx(p.value(x), abs=1e-9)
        assert x.sum() == pytest.approx(p.total, abs=1e-9)
        assert (x >= p.lower - 1e-9).all()
        assert (x <= p.upper + 1e-9).all()
        assert value <= last + 1e-9
        last = value
    return last


BOX, UNBOUNDED = {}, {"lower": -np.inf, "upper": np.inf}
SIMPLEX = {"total": 1.0, "lower": 0.0, "upper": 1.0}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("method", "bounds"),
    [(method, bounds) for method in PAIRS + FRANK_WOLFE for bounds in (BOX, SIMPLEX)]
    + [(method, UNBOUNDED) for method in PAIRS]
    + [(baselines.simplex_frank_wolfe, SIMPLEX)],
)
def test_every_peer_reaches_the_optimum(method, bounds, seed):
    p = problem(seed, **bounds)
    run = method(p, start(p)) if method in PAIRS else method(p)
    assert converge(run, p) == pytest.approx(optimum(p), abs=1e-6)


def test_a_vertex_minimizes_a_linear_function():
    rng = np.random.default_rng(0)
    for seed in range(20):
        p = problem(seed, lower=-0.3, upper=0.4, n=6)
        g = rng.standard_normal(6)
        v = p.vertex(g)
        assert v.sum() == pytest.approx(0.0, abs=1e-12)
        assert ((v > p.lower + 1e-12) & (v < p.upper - 1e-12)).sum() <= 1
        raised, lowered = v > p.lower + 1e-12, v < p.upper - 1e-12
        assert g[raised].max() <= g[lowered].min() + 1e-12


@pytest.mark.parametrize("seed", range(50))
def test_becks_pair_has_the_longest_step_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n, alpha = int(rng.integers(2, 9)), float(rng.choice([0.1, 1.0, 10.0]))
    g = rng.integers(-3, 4, n).astype(float) if seed % 2 else rng.standard_normal(n)
    lower, upper = -rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2
    x = np.zeros(n)
    step = baselines.beck_pair(box_coordinates(g, x, lower, upper), alpha)
    gap = np.subtract.outer(g, g)
    length = np.minimum(alpha * gap / 2, np.minimum.outer(x - lower, upper - x))
    longest = max(float(length.max()), 0.0)
    assert (np.abs(step.delta).max() if len(step.delta) else 0.0) == pytest.approx(longest)


@pytest.mark.parametrize(
    ("rule", "step"), [(baselines.beck_pair, "exact"), peers.RULES[peers.RANDOM]]
)
def test_rules_of_peers_reach_the_optimum(rule, step):
    p = problem(1)
    box, f = pairstep.SumBox(p.total, p.lower, p.upper), pairstep.Quadratic(p.Q, p.c)
    result = pairstep.coordinate_descent(f, box, rule=rule, step=step, max_iter=100_000)
    assert result.fun == pytest.approx(optimum(p), abs=1e-6)


def test_conjugate_directions_need_fewer_iterations():
    p = problem(3, n=60)
    goal = optimum(p) + 1e-8
    run = itertools.takewhile(lambda it: it[1] > goal, baselines.conjugate_smo(p, start(p)))
    box = pairstep.SumBox(p.total, p.lower, p.upper)
    plain = pairstep.coordinate_descent(
        pairstep.Quadratic(p.Q, p.c), box, rule=baselines.beck_pair, step="exact", tol=0.0,
        max_iter=5000, history=True,
    )  # fmt: skip
    assert sum(1 for _ in run) < np.argmax(plain.history.value <= goal)
