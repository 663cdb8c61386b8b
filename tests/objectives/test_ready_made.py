"""Built-in smooth objectives: derivatives, domains and optima."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise
from scipy.optimize import minimize as scipy_minimize

from pairstep import (
    DOptimal,
    KLDivergence,
    L1Penalized,
    LogGrowth,
    Logistic,
    MixtureLikelihood,
    RiskParity,
    Simplex,
    Smooth,
    Status,
    SumBox,
    _core,
    coordinate_descent,
    minimize,
)

N = 6


def covariance(rng, n):
    A = rng.normal(size=(2 * n, n)) * rng.uniform(0.5, 2, n)
    return A.T @ A / n


def mixture_value(L, weights):
    return lambda x: -np.sum(weights * np.log(L @ x))


def case(name, rng, n=N, m=40, size=1.0):
    """An objective, the same function in NumPy, and a constraint whose start is in its domain.

    `size`: the unit of the variables, to which the data and the total are adapted.
    """
    weights = rng.random(m) + 0.1
    positive = (rng.random((m, n)) ** 3 + 1e-3) / size
    box = SumBox(size, 0.0, np.full(n, size))
    if name == "mixture":
        return MixtureLikelihood(positive, weights), mixture_value(positive, weights), box
    if name == "growth":
        returns = 0.3 * rng.normal(size=(m, n)) / size
        return (
            LogGrowth(returns, weights),
            lambda x: -np.sum(weights * np.log(1 + returns @ x)),
            SumBox((0.0, size), 0.0, np.full(n, size)),
        )
    if name == "logistic":
        Z, y = 3 * rng.normal(size=(m, n)) / size, rng.random(m) < 0.4
        sign = np.where(y, 1, -1)
        return (
            Logistic(Z, y, weights),
            lambda x: np.sum(weights * np.logaddexp(0, -sign * (Z @ x))),
            box,
        )
    if name == "divergence":
        b = rng.poisson(3.0, m).astype(float)
        b[0] = 0.0

        def divergence(x):
            u = positive @ x
            logs = np.where(b > 0, b * np.log(np.where(b > 0, b, 1.0) / u), 0.0)
            return np.sum(logs - b + u)

        return KLDivergence(positive, b), divergence, box
    if name == "design":
        A = rng.normal(size=(n, 3))
        return DOptimal(A), lambda x: -np.linalg.slogdet((A.T * x) @ A)[1], box
    Q = covariance(rng, n) / size**2
    budgets = rng.random(n) + 0.1
    return RiskParity(Q, budgets), lambda x: x @ Q @ x / 2 - budgets @ np.log(x), box


NAMES = ("mixture", "growth", "logistic", "divergence", "design", "parity")
every = pytest.mark.parametrize("name", NAMES)


@every
@given(st.integers(0, 10**6))
def test_derivatives(name, seed):
    rng = np.random.default_rng(seed)
    f, value, _ = case(name, rng)
    x = rng.random(N) + 0.05
    x /= x.sum()
    assert abs(f.value(x) - value(x)) < 1e-11 * max(1, abs(value(x)))
    together = f.value_and_gradient(x)
    assert together[0] == f.value(x)
    gradient = f.gradient(x)
    assert (together[1] == gradient).all()
    step = 1e-6
    eye = step * np.eye(N)
    slopes = np.array([(value(x + e) - value(x - e)) / (2 * step) for e in eye])
    assert np.abs(slopes - gradient).max() < 1e-7 * max(1, np.abs(gradient).max())
    bends = np.array([(f.gradient(x + e) - f.gradient(x - e)) / (2 * step) for e in eye])
    hessian = f.second_order(x, np.arange(N)).hessian
    assert np.abs(bends - hessian).max() < 1e-6 * np.abs(hessian).max()
    some = np.array([1, 3, 4])
    part = f.second_order(x, some).hessian
    assert np.allclose(part[np.ix_(some, some)], hessian[np.ix_(some, some)], rtol=1e-12)


@every
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scipy(name, seed):
    f, value, box = case(name, np.random.default_rng(seed))
    result = minimize(f, box, tol=1e-10, x0=np.full(N, 1 / N))
    assert result.status == Status.OPTIMAL, result.message
    assert result.n_iter <= 15
    assert result.suboptimality_bound < 1e-8 * max(1, abs(result.fun))
    kind = "ineq" if isinstance(box.total, tuple) else "eq"
    peer = scipy_minimize(
        value, np.full(N, 1 / N), method="SLSQP", bounds=[(1e-12, 1)] * N,
        constraints={"type": kind, "fun": lambda x: 1 - x.sum()},
        options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert result.fun <= peer.fun + 1e-8
    assert result.fun >= peer.fun - 1e-5


@every
def test_groups_coefficients_and_l1_terms(name):
    f, _, _ = case(name, np.random.default_rng(8))
    boxes = [
        SumBox(np.array([0.5, 0.5]), 0.0, np.full(N, 0.4), groups=np.arange(N) % 2),
        SumBox(1.0, 0.01, 0.6, coefficients=1 + np.arange(N) / N),
        SumBox((0.3, 0.9), 0.0, np.ones(N)),
    ]
    for box in boxes:
        layout = box.layout(N)
        start = box.start(N)
        plain = Smooth(f.value, f.gradient)
        for objective in (f, L1Penalized(f, 0.05, start)):
            result = minimize(objective, box, tol=1e-10)
            assert result.status == Status.OPTIMAL, result.message
            slow = coordinate_descent(objective, box, rule="gs-1", tol=1e-7, x0=start)
            from_gradient = minimize(plain, box, x0=start) if objective is f else result
            assert from_gradient.status == Status.OPTIMAL, from_gradient.message
            assert from_gradient.fun == pytest.approx(result.fun, rel=1e-7, abs=1e-7)
            assert result.fun <= slow.fun + 1e-12 * max(1, abs(slow.fun))
            assert slow.fun - result.fun < 1e-6
            assert (result.x >= layout.bounds[0]).all()
            assert (result.x <= layout.bounds[1]).all()


@every
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_scaling_the_variables_and_data_changes_nothing(name, size):
    (f, _, box), (g, _, wide) = (case(name, np.random.default_rng(9), size=s) for s in (1.0, size))
    one, other = minimize(f, box), minimize(g, wide)
    assert one.status == other.status == Status.OPTIMAL
    assert np.abs(one.x - other.x / size).max() < 1e-6
    assert abs(one.n_iter - other.n_iter) <= 1


@pytest.mark.parametrize(
    ("m", "n", "instruction_set"),
    pairwise([1, 2, 127, 128, 300], [1, 2, 7, 8, 9, 17, 33], _core.instruction_sets()),
    indirect=["instruction_set"],
)
def test_small_and_odd_shapes(m, n, instruction_set):
    rng = np.random.default_rng(m + n)
    L = rng.random((m, n)) + 0.1
    f = MixtureLikelihood(L)
    x = rng.random(n)
    assert abs(f.value(x) - mixture_value(L, 1 / m)(x)) < 1e-13 * m
    assert np.allclose(f.gradient(x), -(L.T @ (1 / (L @ x))) / m, rtol=1e-13)
    result = minimize(f, Simplex())
    assert result.status == Status.OPTIMAL
    assert abs(math.fsum(result.x) - 1) <= 2.3e-16


@pytest.mark.parametrize("phi", ["minus_log", "logistic"])
def test_functions_of_one_number_are_exact_to_three_units_in_the_last_place(phi, instruction_set):
    rng = np.random.default_rng(5)
    if phi == "minus_log":
        u = np.r_[10.0 ** rng.uniform(-300, 300, 300), 1 + rng.uniform(-0.4, 0.6, 300), 1 - 1e-15]
        one = u.astype(np.longdouble)
        expected = -np.log(one), -1 / one, 1 / one
    else:
        u = np.r_[rng.uniform(-700, 700, 300), rng.uniform(-2, 2, 300), 0.0]
        small = np.exp(-np.abs(u.astype(np.longdouble)))
        value = np.log1p(small) + np.maximum(-u, 0)
        miss = np.where(u > 0, small, 1) / (1 + small)
        expected = value, -miss, np.sqrt(small) / (1 + small)
    function, one, none = getattr(_core.RowFunction, phi), np.ones(1), np.zeros(1)
    found = np.array([
        np.r_[_core.row_sum(function, np.ones((1, 1)), None, none, one, np.array([at]), 1)[:3]]
        for at in u
    ])  # fmt: skip
    for column, truth in zip(found.T, expected, strict=True):
        wrong = np.abs(column - truth) / np.spacing(np.abs(truth.astype(float)))
        assert wrong.max() < 3.0


def test_bits_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    A, x, ones = rng.random((3000, 70)), rng.random(70), np.ones(3000)
    answers = [
        _core.row_sum(_core.RowFunction.minus_log, A, None, 0 * ones, ones, x, threads)
        for threads in (1, 2, 5)
    ]
    for one, other in itertools.pairwise(answers):
        assert one[0] == other[0]
        assert (one[1] == other[1]).all()
        assert (one[2] == other[2]).all()
    grams = [_core.gram(A, None, threads, ones, ones) for threads in (1, 2, 5)]
    assert (grams[0] == grams[1]).all()
    assert (grams[0] == grams[2]).all()


@given(st.integers(0, 10**6))
def test_scaled_grams(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 400)), int(rng.integers(1, 60))
    A, left, right = rng.normal(size=(m, n)), rng.normal(size=m), rng.random(m)
    some = rng.permutation(n)[: max(1, n // 2)]
    close = {"rtol": 1e-11, "atol": 1e-11 * m}
    assert np.allclose(_core.gram(A, None, 1, left), A.T @ (left[:, None] * A), **close)
    assert np.allclose(
        _core.gram(A, some, 2, right, right), (A.T @ ((right**2)[:, None] * A))[some][:, some],
        **close,
    )  # fmt: skip
    product = _core.gram(A, None, 2, left, right)
    assert np.allclose(product, A.T @ ((left * right)[:, None] * A), **close)
    assert (product == product.T).all()


# ------------------------------------------------------------------- properties of each objective


def test_proportions_are_those_of_em():
    rng = np.random.default_rng(1)
    seen = np.r_[rng.normal(-1, 0.3, 300), rng.normal(2, 1, 100)]
    L = np.exp(-((seen[:, None] - np.linspace(-3, 3, 15)) ** 2) / 0.5)
    result = minimize(MixtureLikelihood(L), Simplex(), tol=1e-10)
    x = np.full(15, 1 / 15)
    for _ in range(20_000):
        x = x * (L.T @ (1 / (L @ x))) / len(L)
    best = mixture_value(L, 1 / len(L))
    assert result.fun <= best(x) + 1e-14
    assert best(x) - result.fun < 1e-5
    # At the optimum every component in use explains the data equally well.
    explained = (L / (L @ result.x)[:, None]).mean(axis=0)
    assert np.abs(explained[result.x > 0] - 1).max() < 1e-9
    assert explained.max() < 1 + 1e-9
    assert abs(result.sum_multiplier + 1) < 1e-9


def test_tiny_likelihoods():
    """Rows of any size; subnormal numbers count as 0."""
    rng = np.random.default_rng(2)
    L = rng.random((200, 8)) + 0.01
    plain = minimize(MixtureLikelihood(L), Simplex(), tol=1e-10)
    size = 10.0 ** rng.uniform(-300, 0, 200)
    scaled = minimize(MixtureLikelihood(L * size[:, None]), Simplex(), tol=1e-10)
    assert scaled.status == Status.OPTIMAL
    assert np.abs(plain.x - scaled.x).max() < 1e-9
    L[:, 3] = 5e-320
    dull = minimize(MixtureLikelihood(L), Simplex(), tol=1e-10)
    assert dull.status == Status.OPTIMAL
    assert dull.x[3] == 0


def test_weights_stand_for_repeated_rows():
    rng = np.random.default_rng(3)
    L, times = rng.random((30, 5)), rng.integers(0, 4, 30)
    repeated = minimize(MixtureLikelihood(np.repeat(L, times, axis=0)), Simplex(), tol=1e-10)
    weighted = minimize(MixtureLikelihood(L, times / times.sum()), Simplex(), tol=1e-10)
    assert np.abs(repeated.x - weighted.x).max() < 1e-9
    L[times == 0] = 0  # rows with weight 0 may have likelihood 0
    assert np.isfinite(MixtureLikelihood(L, times).value(np.full(5, 0.2)))


def test_outside_the_domain_is_infinite_and_steps_stay_inside():
    f = MixtureLikelihood(np.eye(2))
    assert f.value([1.0, 0.0]) == math.inf
    assert minimize(f, Simplex()).x.tolist() == [0.5, 0.5]
    ruin = LogGrowth([[3.0, 0.0], [-1.0, 0.0], [3.0, -1.0]])
    assert ruin.value([1.0, 0.0]) == math.inf
    result = minimize(ruin, SumBox((0.0, 1.0), 0.0, np.ones(2)), history=True)
    assert result.status == Status.OPTIMAL
    assert np.isfinite(result.history.value).all()
    assert 0 < result.x[0] < 1
    assert DOptimal(np.eye(3)).value([0.5, 0.5, 0.0]) == math.inf
    assert RiskParity(np.eye(2)).value([1.0, 0.0]) == math.inf


def test_starting_from_a_sample_does_not_change_the_optimum():
    """With more rows than the sample has, the optimum is that of all rows."""
    rng = np.random.default_rng(4)
    L = rng.random((12_000, 100)) ** 6
    L[5] = 0
    L[5, 7] = 1e-9  # a single row that keeps component 7
    f = MixtureLikelihood(L)
    assert f.sample(np.full(100, 0.01)) is not None
    whole = minimize(f, Simplex(), tol=1e-10)
    assert whole.status == Status.OPTIMAL
    assert whole.x[7] > 0
    other = minimize(f, Simplex(), x0=np.r_[0.5, np.full(99, 0.5 / 99)], tol=1e-10)
    assert abs(whole.fun - other.fun) < 1e-12
    l1_penalized = minimize(L1Penalized(f, 0.01, 0.0), Simplex(), tol=1e-10)
    assert abs(l1_penalized.fun - whole.fun - 0.01) < 1e-10


def test_no_growth_beats_the_kelly_portfolio():
    rng = np.random.default_rng(5)
    R = 0.001 + 0.02 * rng.normal(size=(1000, 10))
    x = minimize(LogGrowth(R), Simplex(), tol=1e-10).x
    # Kuhn-Tucker: no asset's wealth relative to the portfolio's grows on average.
    assert ((1 + R) / (1 + R @ x)[:, None]).mean(axis=0).max() < 1 + 1e-9


def test_the_variance_of_an_optimal_design_is_p():
    """Kiefer and Wolfowitz: D-optimal designs minimize the largest variance, which is p."""
    A = np.random.default_rng(6).normal(size=(300, 5))
    x = minimize(DOptimal(A), Simplex(), tol=1e-10).x
    M = (A.T * x) @ A
    variance = np.einsum("ij,ij->i", A, np.linalg.solve(M, A.T).T)
    assert abs(variance.max() - 5) < 1e-7
    assert np.abs(variance[x > 1e-6] - 5).max() < 1e-6


def exact_design(A, x):
    """Minus the log-determinant of the information, in fractions."""
    p = A.shape[1]
    weight, rows = [Fraction(float(v)) for v in x], [[Fraction(float(a)) for a in r] for r in A]
    pairs = list(zip(weight, rows, strict=True))
    M = [[sum(w * r[i] * r[j] for w, r in pairs) for j in range(p)] for i in range(p)]
    determinant = Fraction(1)
    for i in range(p):
        determinant *= M[i][i]
        for r in range(i + 1, p):
            factor = M[r][i] / M[i][i]
            M[r] = [a - factor * b for a, b in zip(M[r], M[i], strict=True)]
    return math.log(determinant.denominator) - math.log(determinant.numerator)


COLLINEAR = {
    "1e-9 apart": np.array([[1, 1.0], [1, 1 + 1e-9], [1, 1 - 1e-9]]),
    "1e-14 apart": np.array([[1, 1.0], [1, 1 + 1e-14], [1, 1 - 1e-14]]),
    "polynomials": np.vander(np.linspace(0, 1, 30), 9),
    "columns of any size": np.vander(np.linspace(0, 1, 12), 4) * [1e12, 1e-12, 1.0, 1e6],
    "rows of any size": np.random.default_rng(0).normal(size=(8, 3))
    * 10.0 ** np.array([[-12, 12, 0, 6, -6, 3, 9, -3]]).T,
}


@pytest.mark.parametrize("A", COLLINEAR.values(), ids=COLLINEAR)
def test_nearly_collinear_regressors_lose_no_digits(A):
    result = minimize(DOptimal(A), Simplex())
    assert result.status == Status.OPTIMAL, result.message
    exact = exact_design(A, result.x)
    assert abs(result.fun - exact) <= 1e-13 * abs(exact)
    assert abs(result.fun - exact) <= result.suboptimality_bound
    assert result.suboptimality_bound < 1e-6


def test_collinear_regressors_are_refused():
    for apart in (0.0, 2.0**-52):  # collinear up to rounding
        A = np.array([[1.0, 1.0], [1.0, 1.0 + apart], [1.0, 1.0 - apart]])
        with pytest.raises(ValueError, match="x0"):
            minimize(DOptimal(A), Simplex())


def exact_value_and_gradient(name, data, x):
    """The same in fractions, with 40 digits for logarithms."""
    A, b = data
    x = [Fraction(float(v)) for v in x]
    rows = [[Fraction(float(a)) for a in row] for row in A]
    b = [Fraction(float(v)) for v in b]
    if name == "parity":
        products = [sum(a * v for a, v in zip(row, x, strict=True)) for row in rows]
        risk = sum(a * v for a, v in zip(products, x, strict=True)) / 2
        logs = sum(w * logarithm(v) for w, v in zip(b, x, strict=True))
        return risk - logs, [p - w / v for p, w, v in zip(products, b, x, strict=True)]
    one = Fraction(name == "growth")
    u = [one + sum(a * v for a, v in zip(row, x, strict=True)) for row in rows]
    value = -sum(w * logarithm(v) for w, v in zip(b, u, strict=True))
    slopes = [-w / v for w, v in zip(b, u, strict=True)]
    if name == "divergence":
        value += sum(w * logarithm(w) - w + v for w, v in zip(b, u, strict=True))
        slopes = [1 + s for s in slopes]
    columns = range(len(x))
    return value, [sum(s * row[j] for s, row in zip(slopes, rows, strict=True)) for j in columns]


def logarithm(value):
    with localcontext() as context:
        context.prec = 40
        ratio = Decimal(value.numerator) / Decimal(value.denominator)
        return Fraction(ratio.ln())


def largest_gain(gradient, x):
    """The Frank-Wolfe gap over the simplex scaled to the sum of x."""
    x = [Fraction(float(v)) for v in x]
    return sum(g * v for g, v in zip(gradient, x, strict=True)) - min(gradient) * sum(x)


@pytest.mark.parametrize("name", ["mixture", "growth", "divergence", "parity"])
@pytest.mark.parametrize("decades", [1, 12])
def test_bounds_include_rounding_errors(name, decades):
    """Value and bound against exact arithmetic, with numbers over many decades."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 7)), int(rng.integers(2, 8))
        size = 10.0 ** rng.uniform(-decades, decades, ((m, 1), (1, n), (1, 1))[seed % 3])
        A, b = rng.random((m, n)) ** 4 * size, rng.random(m) + 0.1
        if name == "growth":
            A = rng.normal(size=(m, n)) * size
            A *= 0.5 / np.abs(A).max()
        elif name == "parity":
            A, b = A.T @ A, rng.random(n) + 0.1
        kinds = {
            "mixture": MixtureLikelihood, "growth": LogGrowth,
            "divergence": KLDivergence, "parity": RiskParity,
        }  # fmt: skip
        result = minimize(kinds[name](A, b), Simplex())
        value, gradient = exact_value_and_gradient(name, (A, b), result.x)
        assert abs(Fraction(result.fun) - value) <= Fraction(result.suboptimality_bound)
        # A divergence is not negative, which may bound it more tightly.
        gap = largest_gain(gradient, result.x)
        if name == "divergence":
            gap = min(gap, value)
        assert gap <= Fraction(result.suboptimality_bound), (seed, result.message)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-14])
def test_growth_of_small_returns_is_accurate(size):
    """log(1 + v) keeps the digits of v."""
    R = size * np.random.default_rng(1).normal(size=(20, 5))
    x = np.full(5, 0.2)
    exact = exact_value_and_gradient("growth", (R, np.full(20, 0.05)), x)[0]
    assert abs(LogGrowth(R).value(x) - float(exact)) <= 1e-13 * size
    result = minimize(LogGrowth(R), Simplex())
    assert result.status == Status.OPTIMAL, result.message
    assert result.suboptimality_bound <= 1e-6 * size


def test_noise_in_values_that_nearly_vanish_is_no_progress():
    R = np.array([[-3.2e-18, 1.8e-19], [1.0e-05, 1.1e-05], [1.7e-18, 7e-19]])
    growth = LogGrowth(R, [231563.7, 4.4e-13, 5.7e-4])
    result = minimize(growth, SumBox(1.0, -0.2, np.ones(2)), max_iter=500)
    assert result.status == Status.OPTIMAL, result.message


def test_a_result_in_doubt_is_not_called_optimal():
    """Scores that cancel leave rounding errors above the tolerance."""
    scores = Logistic([[-72.0, -5.6], [25.0, 30.0]], [1, 0])
    result = minimize(scores, SumBox(16796.536976628056, 0.0), tol=1e-12)
    assert result.status == Status.STALLED
    assert "rounding errors of the gradient" in result.message
    assert result.suboptimality_bound > 1e-12 * result.fun


def test_risk_contributions_are_the_budgets():
    rng = np.random.default_rng(7)
    Q, budgets = covariance(rng, 20), rng.random(20) + 0.1
    result = minimize(
        RiskParity(Q, budgets), SumBox((0.0, math.inf)), x0=np.full(20, 0.1), tol=1e-10
    )
    assert result.status == Status.OPTIMAL
    assert np.allclose(result.x * (Q @ result.x), budgets, rtol=1e-8)


def test_counts_of_a_known_mixture_recover_it():
    A = np.random.default_rng(8).random((50, 4))
    x = np.array([0.1, 0.0, 0.6, 0.3])
    result = minimize(KLDivergence(A, A @ x), Simplex(), tol=1e-12)
    assert np.abs(result.x - x).max() < 1e-6
    assert abs(result.fun) < 1e-12


@pytest.mark.parametrize("by", [1e-6, 1.0, 1e6])
def test_a_vanishing_gradient_is_compared_with_its_canceling_terms(by):
    """If all columns have the same sum, the multiplier of a divergence and its gradient are 0."""
    rng = np.random.default_rng(0)
    A = rng.random((300, 12)) ** 4
    A /= A.sum(axis=0)
    b = rng.poisson(2000 * A @ rng.dirichlet(np.ones(12))).astype(float)
    result = minimize(KLDivergence(by * A, by * b / b.sum()), Simplex(), tol=1e-9)
    assert result.success, result.message
    assert np.abs(result.gradient[result.x > 0]).max() <= 1e-8 * by


def test_labels_may_be_words():
    scores = np.arange(6.0).reshape(3, 2)
    words = Logistic(scores, np.array(["yes", "no", "yes"], object))
    assert words.value([0.5, 0.5]) == Logistic(scores, [1, 0, 1]).value([0.5, 0.5])
