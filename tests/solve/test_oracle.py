"""The oracle protocol: the block solver calls its methods and nothing else."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairstep
from pairstep import SumBox, _core, solve_qp

STOP = _core.StopReason

QUESTIONS = ("select_candidates", "block", "update_gradient", "recompute_gradient")


class InNumPy:
    """An oracle for x'Qx/2 + c'x and L1 terms that records accesses to other attributes."""

    def __init__(self, Q, c, x, lower, upper, starts, l1_terms=None, frugal=False):
        self.Q, self.c, self.x, self.lower, self.upper = Q, c, x, lower, upper
        self.starts, self.l1_terms, self.frugal = starts, l1_terms, frugal
        self.known = x.copy()  # from calls of `update_gradient`
        self.asked = []
        self.recompute_gradient()

    def __getattr__(self, name):
        self.__dict__["asked"].append(name)
        raise AttributeError(name)

    def select_candidates(self, count, with_free):
        low, high, x = self.lower, self.upper, self.x
        down, up = self.gradient, self.gradient
        if self.l1_terms is not None:
            weight, breakpoint = self.l1_terms
            down = down + np.where(x > breakpoint, weight, -weight)
            up = up + np.where(x >= breakpoint, weight, -weight)
        chosen = np.ones(len(x), bool)
        if self.frugal:
            chosen = (x > low) & (x < high) & (down == up) & with_free
            for k in range(len(self.starts) - 1):
                here = np.arange(self.starts[k], self.starts[k + 1])
                chosen[here[np.argsort(np.where(x > low, -down, np.inf)[here])[:count]]] = True
                chosen[here[np.argsort(np.where(x < high, up, np.inf)[here])[:count]]] = True
        coordinates = np.flatnonzero(chosen)
        terms = [
            self.gradient - self.c,
            self.c,
            *([] if self.l1_terms is None else [self.l1_terms[0]]),
        ]
        return coordinates, self.gradient[coordinates], max(float(np.abs(t).max()) for t in terms)

    def block(self, members):
        assert (np.diff(members) > 0).all()
        return self.Q[np.ix_(members, members)]

    def update_gradient(self, moved, delta):
        self.known[moved] += delta
        np.testing.assert_allclose(self.known, self.x, rtol=1e-12, atol=1e-12)
        self.gradient = self.gradient + self.Q[:, moved] @ delta

    def recompute_gradient(self):
        self.gradient = self.Q @ self.x + self.c


def solve(oracle, totals, l1_terms=None, *, tol=1e-9, rounds=1000, eager=True):
    """Run the block solver, which also gets the L1 terms because it owns the point."""
    x = oracle.x
    point = _core.Point(x, oracle.lower, oracle.upper, *(l1_terms or (None, None)), oracle.starts)
    solver = _core.BlockSolve(oracle, point, np.asarray(totals, float), eager)
    return solver.run(tol, 10**6, rounds, 60.0)


@functools.cache
def example(n=40, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n + 3, n))
    return F.T @ F / n, rng.normal(size=n)


def fresh(answer=InNumPy, n=40, **options):
    """The example on the simplex, from the even spread."""
    Q, c = example(n)
    starts = np.array([0, n])
    return answer(Q, c, np.full(n, 1 / n), np.zeros(n), np.full(n, np.inf), starts, **options)


# ------------------------------------------------------------------ the same optimum


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 150),
    groups=st.integers(1, 3),
    l1_penalized=st.booleans(),
    frugal=st.booleans(),
    eager=st.booleans(),
)
def test_the_optimum_is_that_of_solve_qp(seed, n, groups, l1_penalized, frugal, eager):
    rng = np.random.default_rng(seed)
    n = max(n, 2 * groups)
    F = rng.normal(size=(n + 2, n)) * 10.0 ** rng.uniform(-1, 1, n)
    Q, c = F.T @ F / n, rng.normal(size=n)
    lower = rng.uniform(-1, 0, n)
    upper = np.where(rng.random(n) < 0.3, np.inf, lower + rng.uniform(0.2, 2, n))
    label = np.sort(np.r_[np.arange(groups), rng.integers(0, groups, n - groups)])
    starts = np.r_[np.searchsorted(label, np.arange(groups)), n]
    most = np.where(np.isinf(upper), lower + 2, upper)
    totals = np.add.reduceat(lower + rng.random() * (most - lower), starts[:-1])
    l1_terms = (rng.uniform(0, 0.5, n), rng.uniform(-0.5, 1, n)) if l1_penalized else None

    box = SumBox(totals, lower, upper, groups=label)
    oracle = InNumPy(Q, c, box.start(n), lower, upper, starts, l1_terms, frugal)
    stop = solve(oracle, totals, l1_terms, eager=eager)
    options = {} if l1_terms is None else {"l1": l1_terms[0], "center": l1_terms[1]}
    expected = solve_qp(Q, c, total=totals, lower=lower, upper=upper, groups=label, **options)

    x = oracle.x
    assert stop == STOP.optimal
    assert expected.status == "optimal"
    assert (x >= lower).all()
    assert (x <= upper).all()
    np.testing.assert_allclose(np.add.reduceat(x, starts[:-1]), totals, rtol=1e-12, atol=1e-12)
    value = (
        0.5 * x @ Q @ x + c @ x + (0 if l1_terms is None else l1_terms[0] @ np.abs(x - l1_terms[1]))
    )
    size = 0.5 * x @ Q @ x + np.abs(c) @ np.abs(x)
    assert abs(value - expected.fun) <= 1e-6 * size
    assert set(oracle.asked) <= {"fill_block"}  # an optional method


def test_rounds_one_at_a_time_are_rounds_at_once():
    paths = []
    for rounds in (1000, 1):
        oracle = fresh(n=400, frugal=True)
        point = _core.Point(oracle.x, oracle.lower, oracle.upper, None, None, oracle.starts)
        solver = _core.BlockSolve(oracle, point, np.ones(1), False)
        while (stop := solver.run(1e-9, 10**6, rounds, 60.0)) == STOP.paused:
            assert rounds == 1
        assert stop == STOP.optimal
        paths.append((oracle.x.tobytes(), solver.iterations, solver.violation))
    assert paths[0] == paths[1]


# ------------------------------------------------------------------ invalid answers


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("question", QUESTIONS)
def test_exceptions_of_an_oracle_reach_the_caller(question, error):
    def fail(*_):
        raise error(question)

    oracle = fresh()
    setattr(oracle, question, fail)
    with pytest.raises(error, match=question):
        solve(oracle, [1.0])
    assert solve(fresh(), [1.0]) == STOP.optimal


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_missing_method_is_named(question):
    class Mute:
        pass

    whole, oracle = fresh(), Mute()
    for name in ("x", "lower", "upper", "starts", *(q for q in QUESTIONS if q != question)):
        setattr(oracle, name, getattr(whole, name))
    with pytest.raises(AttributeError, match=question):
        solve(oracle, [1.0])


BAD = {
    "select_candidates": {
        "a gradient too few": lambda who, g, s: (who, g[1:], s),
        "an index too large": lambda who, g, s: (np.r_[who[:-1], 40], g, s),
        "a huge index": lambda who, g, s: (np.r_[who[:-1], 2**62], g, s),
        "a negative index": lambda who, g, s: (np.r_[-1, who[1:]], g, s),
        "nothing": lambda who, g, s: None,
        "two of three": lambda who, g, s: (who, g),
        "five": lambda who, g, s: (who, g, s, s, s),
        "a word for the noise": lambda who, g, s: (who, g, s, "s"),
        "a number": lambda who, g, s: 1.0,
        "words": lambda who, g, s: ("who", g, s),
        "a column": lambda who, g, s: (who[:, None], g, s),
        "no scale": lambda who, g, s: (who, g, None),
    },
    "block": {
        "a row too few": lambda *H: np.array(H)[1:],
        "a column too few": lambda *H: np.array(H)[:, 1:],
        "flat": lambda *H: np.ravel(H),
        "nothing": lambda *H: None,
        "words": lambda *H: "H",
    },
}


@pytest.mark.parametrize(
    ("question", "case"), [(question, case) for question, cases in BAD.items() for case in cases]
)
def test_bad_answers_are_refused(question, case):
    oracle = fresh()
    right = getattr(oracle, question)
    setattr(oracle, question, lambda *asked: BAD[question][case](*right(*asked)))
    with pytest.raises((ValueError, TypeError), match=question):
        solve(oracle, [1.0])


def test_any_memory_layout_is_accepted():
    oracle, plain = fresh(), fresh()
    select_candidates, block = oracle.select_candidates, oracle.block

    def as_lists(count, with_free):
        coordinates, gradient, scale = select_candidates(count, with_free)
        return coordinates.astype(np.int32), np.repeat(gradient, 2)[::2], np.float64(scale)

    oracle.select_candidates, oracle.block = (
        as_lists,
        lambda members: np.asfortranarray(block(members)),
    )
    assert solve(oracle, [1.0]) == solve(plain, [1.0]) == STOP.optimal
    np.testing.assert_array_equal(oracle.x, plain.x)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_numbers_are_refused(bad):
    oracle = fresh()
    right = oracle.select_candidates

    def spoilt(count, with_free):
        coordinates, gradient, scale = right(count, with_free)
        return coordinates, np.r_[bad, gradient[1:]], scale

    oracle.select_candidates = spoilt
    with pytest.raises(ValueError, match="returned a gradient that is not finite"):
        solve(oracle, [1.0])
    oracle = fresh()
    oracle.block = lambda members: np.full((len(members), len(members)), bad)
    assert solve(oracle, [1.0]) != STOP.optimal
    assert np.isfinite(oracle.x).all()


# ------------------------------------------------------------------ a custom objective


class Circulant:
    """x'Qx/2 + c'x for a circulant Q, by Fourier transforms; Q itself is never formed."""

    l1_terms = hessian = None
    is_quadratic = prefers_blocks = True

    def __init__(self, first, c):
        self.first, self.linear, self.n = first, c, len(c)
        self.lipschitz = np.full(self.n, first[0])
        self.blocks = 0

    def times(self, x):
        return np.fft.irfft(np.fft.rfft(self.first) * np.fft.rfft(x), self.n)

    def value(self, x):
        return float(0.5 * x @ self.times(x) + self.linear @ x)

    def gradient(self, x):
        return self.times(x) + self.linear

    def block(self, indices):
        self.blocks += 1
        return self.first[(indices[:, None] - indices) % self.n]

    def curvature(self, indices, delta):
        return float(delta @ self.block(indices) @ delta)

    def two_coordinate_constant(self):
        return float((self.first[0] - self.first).max())

    def in_layout(self, layout):
        assert layout.source is None
        assert layout.coefficients is None
        return self


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-0.01, 0.02), (-np.inf, np.inf)])
def test_a_custom_objective_uses_the_oracle_protocol(bounds):
    rng = np.random.default_rng(5)
    n = 301
    distance = np.minimum(np.arange(n), n - np.arange(n))
    objective = Circulant(
        np.exp(-0.5 * (distance / 3) ** 2) + 0.1 * (distance == 0), rng.normal(size=n)
    )
    result = pairstep.minimize(objective, SumBox(1.0, *bounds))
    Q = objective.block(np.arange(n))
    expected = solve_qp((Q + Q.T) / 2, objective.linear, lower=bounds[0], upper=bounds[1])
    assert objective.blocks > 1
    assert result.status == expected.status == "optimal"
    assert result.fun == pytest.approx(expected.fun, rel=1e-8)
    l1_penalized = pairstep.minimize(
        pairstep.L1Penalized(objective, 0.5, 1 / n), SumBox(1.0, *bounds)
    )
    expected = solve_qp(
        (Q + Q.T) / 2, objective.linear, lower=bounds[0], upper=bounds[1], l1=0.5, center=1 / n
    )
    assert l1_penalized.status == expected.status == "optimal"
    assert l1_penalized.fun == pytest.approx(expected.fun, rel=1e-8)
