"""`unbounded` is said where it is true and nowhere else."""

import numpy as np
import pytest
import scipy.optimize
from oracles import problem

import pairstep
from pairstep import FactorModel, LeastSquares, Quadratic, SumBox, simplex_lstsq, solve_qp


def falls_for_ever(Q, c, lower, upper, groups=None):
    """Whether some direction has no curvature and falls, by linear programming; for convex Q."""
    n = len(c)
    p = problem(None, None, n, lower=lower, upper=upper, groups=groups)
    ways = zip(
        np.where(np.isinf(p.lower), -1.0, 0.0), np.where(np.isinf(p.upper), 1.0, 0.0), strict=True
    )
    values, vectors = np.linalg.eigh(Q)
    flat = vectors[:, values > 1e-9 * max(values.max(), 1e-300)].T
    rows = np.vstack([p.matrix, flat])
    found = scipy.optimize.linprog(c, A_eq=rows, b_eq=np.zeros(len(rows)), bounds=list(ways))
    assert found.status == 0
    return found.fun < -1e-7


# ------------------------------------------------------------------ never where it is not


def test_columns_that_occur_more_than_once():
    """Copies make directions without curvature, but none of them falls."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(60, 50))
        copies, b = np.hstack([A, A, A]), rng.normal(size=(60, 2))
        covariance, mean = np.cov(copies.T), -0.1 * copies.mean(axis=0)
        once = simplex_lstsq(A, b, lower=-np.inf)
        assert solve_qp(covariance, mean, lower=-np.inf).status == "optimal"
        alone = simplex_lstsq(copies, b[:, 0], lower=-np.inf)
        batch = simplex_lstsq(copies, b, lower=-np.inf)
        assert alone.status == "optimal"
        assert (batch.status == "optimal").all()
        assert alone.fun == pytest.approx(once.fun[0], rel=1e-8)
        np.testing.assert_allclose(batch.fun, once.fun, rtol=1e-8)


def test_some_columns_twice():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A, b = rng.normal(size=(60, 10)), rng.normal(size=60)
        twice = simplex_lstsq(np.hstack([A, A[:, :5]]), b, lower=-np.inf)
        assert twice.status == "optimal", seed
        assert twice.fun == pytest.approx(simplex_lstsq(A, b, lower=-np.inf).fun, rel=1e-9)


def test_copies_in_blocks():
    rng = np.random.default_rng(0)
    F, b = rng.normal(size=(20, 150)), rng.normal(size=20)
    result = pairstep.minimize(LeastSquares(np.tile(F, 8), b), SumBox(1.0, -np.inf))
    assert result.status == "optimal"
    assert result.fun == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("huge", [1e100, 1e160, 1e300, np.finfo(float).max])
def test_huge_bounds_are_none(huge):
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(30, 12)), rng.normal(size=(30, 4))
    Q, c = A.T @ A, rng.normal(size=12)
    for bounds, none in (
        ({"lower": -huge, "upper": huge}, {"lower": -np.inf}),
        ({"lower": 0.0, "upper": huge}, {}),
        ({"lower": -huge, "upper": 0.2}, {"lower": -np.inf, "upper": 0.2}),
    ):
        for solve in (
            lambda options: solve_qp(Q, c, **options),
            lambda options: simplex_lstsq(A, b[:, 0], **options),
            lambda options: simplex_lstsq(A, b, **options),
        ):
            given, without = solve(bounds), solve(none)
            np.testing.assert_array_equal(given.x, without.x)
            np.testing.assert_array_equal(given.status, without.status)
            assert np.all(given.status == "optimal")


# ------------------------------------------------------------------ always where it is


def rank_deficient(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 20)), rng.normal(size=20)


@pytest.mark.parametrize("lower", [-np.inf, -1e160, -np.finfo(float).max])
def test_a_linear_term_beyond_the_range_of_the_matrix(lower):
    for seed in range(100 if lower == -np.inf else 10):
        F, c = rank_deficient(seed)
        for form in ((F, 0.0), F.T @ F):
            result = solve_qp(form, c, lower=lower)
            assert result.status == "unbounded", seed
            assert result.n_iter < 100_000
            assert np.isfinite(result.x).all()


def test_unbounded_at_every_scale():
    for unit in (1e-12, 1e-6, 1e6, 1e12):
        for seed in range(5):
            F, c = rank_deficient(seed)
            assert solve_qp(unit * F.T @ F, unit * c, lower=-np.inf).status == "unbounded"
            assert solve_qp(F.T @ F, unit * c, total=unit, lower=-np.inf).status == "unbounded"


def test_unbounded_in_blocks_of_factors():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        objective = FactorModel(rng.normal(size=(5, 400)), 0.0, rng.normal(size=400))
        assert objective.prefers_blocks
        assert pairstep.minimize(objective, SumBox(1.0, -np.inf)).status == "unbounded"


@pytest.mark.parametrize("kind", ["some bounds", "groups", "range of the matrix", "whole numbers"])
def test_as_linear_programming_says(kind):
    """Random rank-deficient problems, about as many with a minimum as without."""
    said = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 15))
        whole = kind == "whole numbers"
        F = rng.normal(size=(int(rng.integers(1, n)), n))
        F = np.round(2 * F) if whole else F
        Q, c = F.T @ F, rng.normal(size=n)
        c = np.round(c) if whole else c
        if kind == "range of the matrix":  # then nothing falls, but by rounding
            c = Q @ c
        lower = np.where(rng.random(n) < 0.5, -np.inf, 0.0)
        upper = np.where(rng.random(n) < 0.7, np.inf, 1.0)
        groups = rng.integers(0, 2, n) if kind == "groups" else None
        if groups is not None:
            groups[:2] = [0, 1]
        totals = [0.5, 0.5] if groups is not None else 0.5
        expected = falls_for_ever(Q, c, lower, upper, groups)
        result = pairstep.minimize(Quadratic(Q, c), SumBox(totals, lower, upper, groups=groups))
        assert result.status == ("unbounded" if expected else "optimal"), (seed, result.message)
        said.append(expected)
    if kind == "range of the matrix":
        assert not any(said)
    else:
        assert 10 < sum(said) < 70


@pytest.mark.parametrize("n", [8, 64, 250])
@pytest.mark.parametrize("share", [1e-17, 1e-19, 1e-25])
def test_a_diagonal_that_drowns_is_there_nevertheless(n, share):
    """A factor model with a positive diagonal has a minimum, seen or not."""
    rng = np.random.default_rng(n)
    F = rng.normal(size=(3, n))
    result = pairstep.solve_qp((F, share), rng.normal(size=n), lower=-np.inf)
    assert result.status != "unbounded"
    if result.status == "stalled":
        assert "rounding" in result.message
    least_squares = pairstep.simplex_lstsq(F, rng.normal(size=3), lower=-np.inf)
    assert least_squares.status != "unbounded"


def test_without_a_diagonal_a_factor_model_may_fall_for_ever():
    result = pairstep.solve_qp((np.ones((1, 3)), 0.0), [1.0, 2.0, 3.0], lower=-np.inf)
    assert result.status == "unbounded"
