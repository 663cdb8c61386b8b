"""Changing the units of the objective or the variables changes neither path nor status.

Multiplication by a power of 4 is exact, and so is that of square roots. Every number of a solve is
then scaled exactly, and the paths must agree bit for bit.
"""

import numpy as np
import pytest
import scipy.sparse
from oracles import problem, reference_solution
from small_problem import solve_by

import pairstep
from pairstep import L1Penalized, Quadratic, Smooth, SumBox
from pairstep.paper.rules import RULES

EXACT = [4.0**-20, 4.0**-7, 4.0**9, 4.0**20]  # 1e-12 to 1e12
TENS = [1e-12, 1e-5, 1e4, 1e12]


def assert_multiplied(result, plain, f, a):
    """Check bits: x is scaled by a, the objective by f a^2, its derivatives by f a."""
    np.testing.assert_array_equal(result.status, plain.status)
    np.testing.assert_array_equal(result.n_iter, plain.n_iter)
    np.testing.assert_array_equal(result.x, a * plain.x)
    np.testing.assert_array_equal(result.fun, f * a**2 * plain.fun)
    np.testing.assert_array_equal(result.kkt_violation, f * a * plain.kkt_violation)


def assert_close(result, plain, f, a):
    np.testing.assert_array_equal(result.status, plain.status)
    np.testing.assert_allclose(result.x, a * plain.x, rtol=0, atol=1e-6 * a)


# ------------------------------------------------------------------ problems in units f and a

RNG = np.random.default_rng(0)
N = 24
ROOT = RNG.normal(size=(N + 5, N))
Q, C = ROOT.T @ ROOT / N, RNG.normal(size=N)
UPPER = np.where(np.arange(N) % 3, np.inf, 0.1)
CENTER = RNG.dirichlet(np.ones(N))
GROUPS = np.arange(N) % 2


def box(a, **options):
    return SumBox(**{"total": a, "lower": -0.05 * a, "upper": a * UPPER} | options)


def quadratic(f, a):
    return Quadratic(f * Q, f * a * C)


def l1_penalized(f, a):
    return L1Penalized(quadratic(f, a), f * a * 0.3, a * CENTER)


def callables(f, a, lipschitz=True):
    """A function that is not quadratic, of x / a."""
    return Smooth(
        lambda x: float(f * a**2 * np.logaddexp(0, ROOT @ (x / a)).sum() + f * a * (C @ x)),
        lambda x: f * a * (ROOT.T @ (1 / (1 + np.exp(-(ROOT @ (x / a))))) + C),
        lipschitz=0.25 * f * (ROOT**2).sum(axis=0) if lipschitz else None,
    )


def second_derivatives(f, y):
    s = 1 / (1 + np.exp(-(ROOT @ y)))
    return f * ROOT.T @ ((s * (1 - s))[:, None] * ROOT)


WIDE = RNG.normal(size=(12, 300))
SPREAD = 0.05 + RNG.random(300)
TILT = 0.1 * RNG.normal(size=300)
BANDED = scipy.sparse.diags_array(
    [0.4 * RNG.random(2099), 1 + RNG.random(2100)], offsets=[1, 0]
).tocsr()
BANDED = BANDED + scipy.sparse.triu(BANDED, 1).T
TALL = RNG.normal(size=(40, N))
B = RNG.normal(size=(40, 30))
LARGE = RNG.normal(size=(30, 1100))


def minimized(objective):
    return lambda f, a: pairstep.minimize(objective(f, a), box(a))


def frontier(f, a):
    *_, last = pairstep.path(
        lambda aversion: Quadratic(aversion * f * Q, f * a * C), box(a), over=[4.0, 2.0, 1.0]
    )
    return last


def totals(f, a):
    *_, last = pairstep.path(quadratic(f, a), lambda b: box(a * b), over=[0.5, 0.75, 1.0])
    return last


# Least squares are scaled by their data: f must have a square root.
SOLVES = {
    "quadratic": minimized(quadratic),
    "l1_terms": minimized(l1_penalized),
    "callables": minimized(callables),
    "callables without constants": minimized(lambda f, a: callables(f, a, lipschitz=False)),
    "callables with a Hessian": minimized(
        lambda f, a: Smooth(
            (plain := callables(f, a)).value, plain.gradient, lambda x: second_derivatives(f, x / a)
        )
    ),
    "l1 terms upon callables": minimized(
        lambda f, a: L1Penalized(callables(f, a), f * a * 0.3, a * CENTER)
    ),
    "groups": lambda f, a: pairstep.minimize(
        l1_penalized(f, a), box(a, total=[a, a / 2], groups=GROUPS)
    ),
    "limits of groups": lambda f, a: pairstep.minimize(
        quadratic(f, a), box(a, groups=GROUPS, group_total={0: (0.1 * a, 0.3 * a)})
    ),
    "two slopes": minimized(
        lambda f, a: L1Penalized(quadratic(f, a), (f * a * 0.3, f * a * 0.1), a * CENTER)
    ),
    "range": lambda f, a: pairstep.minimize(quadratic(f, a), box(a, total=(a, 2 * a))),
    "no bounds": lambda f, a: pairstep.minimize(
        quadratic(f, a), box(a, lower=-np.inf, upper=np.inf)
    ),
    "solve_qp": lambda f, a: pairstep.solve_qp(f * Q, f * a * C, total=a),
    "solve_qp sparse": lambda f, a: pairstep.solve_qp(
        f * BANDED, f * a * np.resize(C, 2100) / 100, total=a
    ),
    "solve_qp factors": lambda f, a: pairstep.solve_qp(
        (f**0.5 * WIDE, f * SPREAD), f * a * TILT, total=a
    ),
    "factors between wide bounds": lambda f, a: pairstep.minimize(
        pairstep.FactorModel(f**0.5 * WIDE, f * SPREAD, f * a * TILT), SumBox(a, -a, a)
    ),
    "solve_qp factors and l1 terms": lambda f, a: pairstep.solve_qp(
        (f**0.5 * WIDE, f * SPREAD), f * a * TILT, total=a, l1=f * a * 0.02, center=a / 300
    ),
    "simplex_lstsq": lambda f, a: pairstep.simplex_lstsq(
        f**0.5 * TALL, f**0.5 * a * B[:, 0], total=a
    ),
    "simplex_lstsq in blocks": lambda f, a: pairstep.simplex_lstsq(
        f**0.5 * LARGE, f**0.5 * a * B[:30, 0], total=a, ridge=f * 0.1
    ),
    "simplex_lstsq batch": lambda f, a: pairstep.simplex_lstsq(
        f**0.5 * TALL, f**0.5 * a * B, total=a
    ),
    "path of objectives": frontier,
    "path of totals": totals,
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVES)
def test_units_change_neither_path_nor_status(name):
    plain = SOLVES[name](1.0, 1.0)
    assert np.all(plain.status == "optimal")
    for unit in EXACT:
        assert_multiplied(SOLVES[name](unit, 1.0), plain, unit, 1.0)
        assert_multiplied(SOLVES[name](1.0, unit), plain, 1.0, unit)
    for unit in TENS:
        assert_close(SOLVES[name](unit, 1.0), plain, unit, 1.0)
        assert_close(SOLVES[name](1.0, unit), plain, 1.0, unit)


@pytest.mark.parametrize("step", ["auto", "1/L2", "lipschitz", "backtracking"])
@pytest.mark.parametrize("rule", RULES)
def test_units_do_not_change_the_path_of_any_rule(rule, step):
    def solve(f, a):
        objective = Quadratic(f * Q[:9, :9], f * a * C[:9])
        bounds = SumBox(a, -0.05 * a, 0.4 * a)
        return pairstep.coordinate_descent(
            objective, bounds, rule=rule, step=step, seed=1, max_iter=3000, tol=1e-6
        )

    plain = solve(1.0, 1.0)
    for unit in (EXACT[0], EXACT[-1]):
        assert_multiplied(solve(unit, 1.0), plain, unit, 1.0)
        assert_multiplied(solve(1.0, unit), plain, 1.0, unit)
    if plain.status == "optimal" and not RULES[rule].draws:
        for unit in (TENS[0], TENS[-1]):
            assert solve(unit, 1.0).status == "optimal"
            assert solve(1.0, unit).status == "optimal"


# ------------------------------------------------------------------ statuses, by another solver


def least(value, gradient, n, unit, **options):
    """The minimum by SLSQP, which gets the problem in units of order 1."""
    p = problem(lambda x: value(x) / unit, lambda x: gradient(x) / unit, n, **options)
    return value(reference_solution(p, np.full(n, p.low[0] / p.coefficients.sum())))


@pytest.mark.parametrize("rule", ["auto", "gs-s", "gs-q", "gs-1", "libsvm", "gs-q-lipschitz"])
@pytest.mark.parametrize("volatility", [1e-2, 1e-4])
def test_covariances_of_daily_returns(volatility, rule):
    """The objective at the optimum is far below the one at the start, and both far below 1."""
    rng = np.random.default_rng(1)
    for days in (30, 200):
        returns = volatility * rng.normal(size=(days, 25)) * rng.uniform(0.5, 3, 25)
        covariance = np.cov(returns.T)
        result = solve_by(rule, Quadratic(covariance), SumBox(1.0))
        best = least(
            lambda x, Q=covariance: 0.5 * x @ Q @ x,
            lambda x, Q=covariance: Q @ x,
            25,
            volatility**2,
        )
        assert result.status == "optimal", result.message
        assert abs(result.fun - best) <= 1e-6 * best


@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("lower", [0.0, -1.0])
def test_an_outlier_hides_nothing(lower, outlier):
    """A column far larger than the others, which makes the start far worse than the optimum.

    Large terms of this column, or at the start, must not loosen the tolerance elsewhere. The other
    solver gets the column in different units.
    """
    m, n = 30, 8
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ordinary, b = rng.normal(size=(m, n)), rng.normal(size=m)
        own = np.where(np.arange(n) % 8 == 3, outlier, 1.0)
        best = least(
            lambda y, A=ordinary, b=b: 0.5 * np.sum((A @ y - b) ** 2),
            lambda y, A=ordinary, b=b: A.T @ (A @ y - b),
            n,
            1.0,
            coefficients=1 / own,
            lower=lower * own,
        )
        size, A = 0.5 * b @ b, ordinary * own
        alone = pairstep.simplex_lstsq(A, b, lower=lower)
        batch = pairstep.simplex_lstsq(A, b[:, None], lower=lower)
        whole = pairstep.solve_qp(A.T @ A, -A.T @ b, lower=lower)
        for status, fun in (
            (alone.status, alone.fun),
            (batch.status[0], batch.fun[0]),
            (whole.status, whole.fun + size),
        ):
            assert status == "optimal" or (outlier > 1e4 and status == "stalled")
            if status == "optimal" or outlier <= 1e6:
                assert abs(fun - best) <= 1e-6 * size, (seed, status)


def test_mixtures_without_noise_are_all_optimal():
    """At the optimum the residuals vanish, and so do all terms that scale the tolerance."""
    rng = np.random.default_rng(2)
    spectra = 1e4 * rng.random((80, 6))
    fractions = rng.dirichlet(np.ones(6), 500).T
    batch = pairstep.simplex_lstsq(spectra, spectra @ fractions)
    assert (batch.status == "optimal").all()
    np.testing.assert_allclose(batch.x, fractions.T, atol=1e-6)
    for k in range(0, 500, 100):
        alone = pairstep.simplex_lstsq(spectra, spectra @ fractions[:, k])
        assert alone.status == "optimal"
        np.testing.assert_allclose(alone.x, fractions[:, k], atol=1e-6)


def spread_model(kind, rng):
    """A model whose variables differ by six decades and its entries by twelve."""
    n, rows = 60, 12
    scale = 10.0 ** rng.uniform(-3, 3, n)
    root, diagonal = rng.normal(size=(rows, n)) * scale, scale**2 * rng.uniform(0.1, 1, n)
    c = rng.normal(size=n) * scale
    if kind == "factors":
        return pairstep.FactorModel(root, diagonal, c), root.T @ root + np.diag(diagonal), c
    if kind == "least squares":
        A = np.vstack([root, np.diag(np.sqrt(diagonal))])
        b = rng.normal(size=len(A))
        return pairstep.LeastSquares(A, b), A.T @ A, -A.T @ b
    Q = root.T @ root + np.diag(diagonal)
    return Quadratic(scipy.sparse.csr_array(Q) if kind == "sparse" else Q, c), Q, c


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lower", [-np.inf, 0.0])
@pytest.mark.parametrize("kind", ["dense", "sparse", "factors", "least squares"])
def test_variables_that_differ_by_decades(kind, lower, seed):
    """The derivatives of free variables agree to more digits than the solver computes."""
    f, Q, c = spread_model(kind, np.random.default_rng(seed))
    result = pairstep.minimize(f, SumBox(1.0, lower))
    assert result.status == "optimal", result.message
    x = result.x.astype(np.longdouble)
    terms = Q.astype(np.longdouble) * x
    gradient = terms.sum(1) + c
    free = result.x > lower
    violation = gradient[free].max() - gradient.min()
    assert violation <= result.tolerance + 1e-14 * np.abs(terms).sum(1).max()


def test_rounding_of_the_sum_goes_where_it_changes_derivatives_least():
    Q = np.diag([1e12, 1.0, 1e6])
    result = pairstep.solve_qp(Q, total=3.0, lower=-np.inf)
    exact = 3.0 / np.diag(Q) / (1 / np.diag(Q)).sum()
    np.testing.assert_allclose(result.x, exact, rtol=1e-15)
