"""The functions of `pairstep.theory` against brute force and other independent computations."""

import math
import re
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import pairstep
from pairstep import theory

SEEDS = range(6)
N = 6


def random_quadratic(seed, n=N, spread=1.0):
    """A strongly convex quadratic with correlated variables of different scales."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, n)) * np.exp(spread * rng.normal(size=n))
    return pairstep.Quadratic(factor.T @ factor + 0.1 * np.eye(n), rng.normal(size=n) * 5)


def minimum(f, A, c, lower=-math.inf, upper=math.inf):
    """f* under A x = c and bounds: solve the KKT system for every set of active bounds."""
    n, m = f.n, len(A)
    best = math.inf
    ends = [[math.nan, *filter(math.isfinite, (lower, upper))]] * n
    for choices in product(*ends):
        x = np.array(choices)
        free, fixed = np.isnan(x), ~np.isnan(x)
        k = free.sum()
        system = np.zeros((k + m, k + m))
        system[:k, :k] = f.Q[np.ix_(free, free)]
        system[k:, :k] = A[:, free]
        system[:k, k:] = A[:, free].T
        right = np.append(
            -f.c[free] - f.Q[np.ix_(free, fixed)] @ x[fixed], c - A[:, fixed] @ x[fixed]
        )
        x[free] = np.linalg.lstsq(system, right)[0][:k]
        if np.abs(A @ x - c).max() < 1e-9 and (lower <= x).all() and (x <= upper).all():
            best = min(best, f.value(x))
    return best


def assert_obeys(values, best, factor):
    """Every iteration multiplies the distance to the optimum by at most the factor."""
    distance = np.asarray(values) - best
    assert distance[0] > 0
    assert (distance[1:] <= factor * distance[:-1] + 1e-11 * distance[0]).all()


class TestConstants:
    def test_lipschitz_constants_are_the_diagonal(self):
        f = random_quadratic(0)
        np.testing.assert_array_equal(theory.lipschitz_constants(f), np.diag(f.Q))

    @pytest.mark.parametrize("seed", SEEDS)
    def test_l2_is_the_largest_curvature_along_a_pair(self, seed):
        f = random_quadratic(seed)
        pairs = [f.Q[i, i] / 2 + f.Q[j, j] / 2 - f.Q[i, j] for i, j in combinations(range(N), 2)]
        assert theory.two_coordinate_constant(f) == pytest.approx(max(pairs), rel=1e-14)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_l1_is_half_of_l2(self, seed):
        """prop:L12: extreme points of the 1-norm ball attain L1, and no sum-zero d exceeds it."""
        f = random_quadratic(seed)
        l1 = theory.one_norm_constant(f)
        pairs = (np.eye(N)[:, None] - np.eye(N)).reshape(-1, N) / 2
        d = np.random.default_rng(seed).normal(size=(20_000, N))
        d *= np.random.default_rng(seed + 1).random(d.shape) < 0.6
        d -= (d != 0) * (d.sum(1) / np.maximum((d != 0).sum(1), 1))[:, None]
        d /= np.maximum(np.abs(d).sum(1), 1e-9)[:, None]
        assert np.einsum("ki,ij,kj->k", pairs, f.Q, pairs).max() == pytest.approx(l1, rel=1e-12)
        assert np.einsum("ki,ij,kj->k", d, f.Q, d).max() <= l1 * (1 + 1e-12)

    def test_l1_needs_convexity(self):
        """Not in the paper: with negative curvature, four coordinates can exceed every pair."""
        H = np.kron(np.eye(2), [[0.0, 2.0], [2.0, 0.0]])
        f = pairstep.Quadratic(H)
        d = np.array([1.0, 1.0, -1.0, -1.0]) / 4
        assert theory.one_norm_constant(f) == 0.0
        assert d @ H @ d > 0.0

    def test_eq_l2_smooth_read_literally_is_larger(self):
        H = np.diag([1.0, 0.0])
        d = np.array([1.0, -1.0])
        assert theory.two_coordinate_constant(pairstep.Quadratic(H)) == 0.5
        assert np.linalg.norm(H @ d) / np.linalg.norm(d) == pytest.approx(math.sqrt(0.5))

    @pytest.mark.parametrize("seed", SEEDS)
    def test_mu_2_is_the_smallest_curvature(self, seed):
        f = random_quadratic(seed)
        mu_2 = theory.strong_convexity(f)
        P = np.eye(N) - 1 / N
        # P H P has the eigenvalue 0 for the ones vector and those of the restricted H.
        assert np.linalg.eigvalsh(P @ f.Q @ P)[1] == pytest.approx(mu_2, rel=1e-9)

    def test_mu_2_on_the_null_space_of_a_matrix(self):
        f = random_quadratic(0)
        A = np.random.default_rng(0).normal(size=(2, N))
        d = scipy.linalg.null_space(A) @ np.random.default_rng(1).normal(size=(N - 2, 5000))
        ratios = np.einsum("ik,ij,jk->k", d, f.Q, d) / (d**2).sum(0)
        assert theory.strong_convexity(f, A) <= ratios.min()
        assert theory.strong_convexity(f, np.ones((1, N))) == theory.strong_convexity(f)

    @pytest.mark.parametrize("n", [2, 3, 5, 9])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_mu_1_is_exact(self, seed, n):
        """No sum-zero d has a smaller ratio than mu_1, and minimization attains it."""
        f = random_quadratic(seed, n)
        mu_1 = theory.one_norm_strong_convexity(f)

        def ratio(d):
            d = d - d.mean(axis=0)
            return np.einsum("i...,ij,j...->...", d, f.Q, d) / np.abs(d).sum(axis=0) ** 2

        d = np.random.default_rng(seed).normal(size=(n, 5000))
        assert ratio(d).min() >= mu_1 * (1 - 1e-9)
        # Iterate d -> M sign(d), which never increases the ratio, from many starts.
        Z = scipy.linalg.null_space(np.ones((1, n)))
        for _ in range(20):
            d = Z @ np.linalg.solve(Z.T @ f.Q @ Z, Z.T @ np.sign(d - d.mean(axis=0)))
        assert ratio(d).min() == pytest.approx(mu_1, rel=1e-9)

    @pytest.mark.parametrize("seed", range(40))
    def test_mu_1_lies_between_its_bounds(self, seed):
        f = random_quadratic(seed, 2 + seed % 7)
        low, high = theory.one_norm_strong_convexity_bounds(f)
        assert (low, high) == (high / f.n, theory.strong_convexity(f))
        mu_1 = theory.one_norm_strong_convexity(f)
        assert low * (1 - 1e-9) <= mu_1 <= high
        assert mu_1 <= high / 2 * (1 + 1e-9)  # sharper than the paper

    def test_both_ends_of_the_bounds_are_attained(self):
        """mu_2/n by H = I; mu_2/2, half of the paper's bound, by one soft pair."""
        assert theory.one_norm_strong_convexity(pairstep.Quadratic(np.eye(8))) == pytest.approx(
            1 / 8
        )
        pair = np.array([1.0, -1.0, 0, 0, 0, 0]) / math.sqrt(2)
        f = pairstep.Quadratic(np.eye(6) * 100 - 99 * np.outer(pair, pair))
        assert theory.strong_convexity(f) == pytest.approx(1.0)
        assert theory.one_norm_strong_convexity(f) == pytest.approx(0.5, rel=0.05)

    def test_singular_and_indefinite_hessians_are_not_strongly_convex(self):
        rng = np.random.default_rng(0)
        A = rng.normal(size=(3, N))
        for f in (pairstep.LeastSquares(A, rng.normal(size=3)), pairstep.Quadratic(-np.eye(N))):
            assert theory.strong_convexity(f) == 0.0
            assert theory.one_norm_strong_convexity(f) == 0.0

    def test_flat_only_along_the_ones_is_strongly_convex(self):
        f = pairstep.Quadratic(np.eye(4) - 0.25)
        assert theory.strong_convexity(f) == pytest.approx(1.0)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_l_l_is_attained_by_a_pair_and_at_most_one(self, seed):
        """Appendix E.3: no sum-zero d exceeds the pairs, and L_L <= 1 for L_i = H_ii."""
        f = random_quadratic(seed)
        l_l, root = theory.weighted_norm_constant(f), np.sqrt(np.diag(f.Q))
        d = np.random.default_rng(seed).normal(size=(20_000, N))
        d -= d.mean(axis=1, keepdims=True)
        ratios = np.einsum("ki,ij,kj->k", d, f.Q, d) / (np.abs(d) @ root) ** 2
        assert ratios.max() <= l_l <= 1
        pairs = (np.eye(N)[:, None] - np.eye(N)).reshape(-1, N)
        pairs = pairs[np.abs(pairs).sum(axis=1) > 0]
        ratios = np.einsum("ki,ij,kj->k", pairs, f.Q, pairs) / (np.abs(pairs) @ root) ** 2
        assert ratios.max() == pytest.approx(l_l, rel=1e-12)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_mu_l_is_exact(self, seed):
        """No sum-zero d has a smaller ratio, and an iteration over signs attains it."""
        f = random_quadratic(seed)
        mu_l, root = theory.weighted_norm_strong_convexity(f), np.sqrt(np.diag(f.Q))

        def ratio(d):
            return np.einsum("i...,ij,j...->...", d, f.Q, d) / (root @ np.abs(d)) ** 2

        d = np.random.default_rng(seed).normal(size=(N, 5000))
        d -= d.mean(axis=0)
        assert ratio(d).min() >= mu_l * (1 - 1e-9)
        Z = scipy.linalg.null_space(np.ones((1, N)))
        for _ in range(20):
            d = Z @ np.linalg.solve(Z.T @ f.Q @ Z, Z.T @ (root[:, None] * np.sign(d)))
        assert ratio(d).min() == pytest.approx(mu_l, rel=1e-9)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_equal_constants_give_the_plain_one_norm(self, seed):
        f = random_quadratic(seed)
        l_l = theory.weighted_norm_constant(f, np.full(N, 4.0))
        mu_l = theory.weighted_norm_strong_convexity(f, np.full(N, 4.0))
        assert l_l == pytest.approx(theory.one_norm_constant(f) / 4)
        assert mu_l == pytest.approx(theory.one_norm_strong_convexity(f) / 4)

    def test_mu_1_at_the_largest_n(self):
        assert theory.one_norm_strong_convexity(pairstep.Quadratic(np.eye(16))) == pytest.approx(
            1 / 16
        )


class TestProximalPL:
    def test_measure_without_bounds(self):
        g, x = np.array([3.0, 1.0, 0.0]), np.zeros(3)
        L = np.array([4.0, 1.0, 9.0])
        ratio = max((g[i] - g[j]) / (L[i] ** 0.5 + L[j] ** 0.5) for i in range(3) for j in range(3))
        assert theory.proximal_pl_measure(g, x, 2.0) == pytest.approx(1.5**2)
        assert theory.proximal_pl_measure(g, x, 2.0, norm="2") == pytest.approx(g.var() * 3)
        assert theory.proximal_pl_measure(g, x, 2.0, norm="L", lipschitz=L) == pytest.approx(
            ratio**2
        )
        with pytest.raises(ValueError, match="unknown norm"):
            theory.proximal_pl_measure(g, x, 2.0, norm="3")

    @pytest.mark.parametrize("seed", SEEDS)
    def test_constants_of_a_singular_hessian(self, seed):
        """The g(Ax) case: the inequality holds, and without bounds the constants are attained."""
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(3, N))
        f = pairstep.LeastSquares(A, rng.normal(size=3))
        assert theory.strong_convexity(f) == 0.0
        mu_1, mu_2 = theory.proximal_pl_constants(f)
        assert mu_2 / N <= mu_1 <= mu_2 / 2
        P = np.eye(N) - 1 / N
        pinv = np.linalg.pinv(P @ A.T @ A @ P)
        g = P @ A.T @ rng.normal(size=(3, 50_000))
        distance = np.einsum("ik,ij,jk->k", g, pinv, g) / 2  # f - f* where the gradient is g
        one, two = (np.ptp(g, axis=0) / 2) ** 2 / 2 / distance, (g**2).sum(axis=0) / 2 / distance
        assert mu_1 * (1 - 1e-9) <= one.min() <= mu_1 * 1.02
        assert mu_2 * (1 - 1e-9) <= two.min() <= mu_2 * 1.02

    @pytest.mark.parametrize("bounds", [False, True])
    def test_constants_of_a_regular_hessian_are_those_of_strong_convexity(self, bounds):
        f = random_quadratic(0)
        mu_1, mu_2 = theory.proximal_pl_constants(f, bounds=bounds)
        assert mu_2 == pytest.approx(theory.strong_convexity(f))
        exact = theory.one_norm_strong_convexity(f)
        assert mu_1 == pytest.approx(mu_2 / N if bounds else exact)

    def test_an_svm_dual_need_not_be_of_the_form_g_of_ax(self):
        """Along (1, 1, 2) f is linear but not constant, which no g(Ax) is for strongly convex g."""
        points, y = np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, -1.0])
        dual = pairstep.Quadratic(np.outer(y * points, y * points), -np.ones(3))
        d = np.array([1.0, 1.0, 2.0])
        assert y @ d == 0
        values = [dual.value(t * d) for t in (0.0, 1.0, 2.0)]
        assert values == [0.0, -4.0, -8.0]
        plain = pairstep.Quadratic(np.outer(points, points), -y)  # in z = y alpha
        with pytest.raises(ValueError, match=r"not of the form g\(Ax\)"):
            theory.proximal_pl_constants(plain)


class TestSteepestDescent:
    @pytest.mark.parametrize("seed", range(20))
    def test_a_pair_is_a_steepest_descent_direction(self, seed):
        """lemma:sd. The best d of 1-norm t gains t v, with v from a linear program over
        d = p - q; so the best of all gains alpha v^2 / 2."""
        rng = np.random.default_rng(seed)
        n, alpha = int(rng.integers(2, 9)), float(rng.uniform(0.1, 3.0))
        g = rng.integers(-3, 4, size=n).astype(float)  # with ties
        g[0] = 4.0
        signs = np.repeat([1.0, -1.0], n)
        v = -scipy.optimize.linprog(
            np.tile(g, 2) * signs, A_ub=np.ones((1, 2 * n)), b_ub=[1], A_eq=[signs], b_eq=[0]
        ).fun
        step = pairstep.propose("gs-1", g, np.zeros(n), -math.inf, math.inf, alpha=alpha)
        assert step.decrease == pytest.approx(alpha * v**2 / 2, rel=1e-9)
        assert np.count_nonzero(step.delta) == 2
        model = g[step.indices] @ step.delta + np.abs(step.delta).sum() ** 2 / (2 * alpha)
        assert model == pytest.approx(-step.decrease)


class TestRateArguments:
    def test_backtracking_arguments(self):
        assert theory.backtracking_rate(0.5, sufficient_decrease=0.5, shrink=0.5) == 0.75
        with pytest.raises(ValueError, match="shrink must be between 0 and 1, got 1"):
            theory.backtracking_rate(0.5, shrink=1.0)
        with pytest.raises(ValueError, match="factor must be between 0 and 1, got 2"):
            theory.backtracking_rate(2.0)


def random_point(rng, n):
    """A gradient, a point and bounds, with ties, infinite bounds and variables that cannot move."""
    g = rng.integers(-3, 4, n).astype(float) if rng.random() < 0.5 else rng.normal(size=n)
    low, high = rng.random((2, n)).round(1) * rng.choice([0.0, 0.1, 0.5], (2, n))
    infinite = rng.random((2, n)) < 0.2
    low, high = np.where(infinite, math.inf, [low, high])
    return g, np.zeros(n), -low, high


class TestProgress:
    def test_libsvm_itself_on_the_reflected_example(self):
        """LIBSVM first chooses the variable to increase; then by second order, without bounds."""
        epsilon = 1e-6
        f, _, x0 = theory.small_progress_example(5, epsilon)
        x, g = 1 - x0, -f.gradient(x0)  # of f(1 - x)
        i = int(np.argmin(np.where(x < 1, g, math.inf)))
        gap = np.where(x > 0, g, -math.inf) - g[i]
        j = int(np.argmax(np.where(gap > 0, gap, 0.0) ** 2 / 2))
        amount = min(gap[j] / 2, 1 - x[i], x[j])
        assert amount == pytest.approx(epsilon)
        y = x.copy()
        y[[i, j]] += [amount, -amount]
        decrease = f.value(1 - x) - f.value(1 - y)
        assert 0 < decrease <= 3 * epsilon


CHOICES = {
    "lower bounds": lambda g, x, low, _, **alpha: theory.gs_q_one_sided(g, x, lower=low, **alpha),
    "upper bounds": lambda g, x, _, high, **alpha: theory.gs_q_one_sided(g, x, upper=high, **alpha),
    "selection": theory.gs_1_by_selection,
}


class TestRules:
    @pytest.mark.parametrize("name", CHOICES)
    def test_the_decrease_is_that_of_the_rule(self, name):
        """On 1000 cases with ties, infinite bounds and n to 60."""
        rng, rule = np.random.default_rng(1), "gs-1" if name == "selection" else "gs-q"
        for case in range(1000):
            n = int(rng.integers(1, 9 if case % 10 else 60))
            alpha = float(rng.choice([0.01, 0.3, 1.0, 20.0]))
            g, x, low, high = random_point(rng, n)
            low = np.full(n, -math.inf) if name == "upper bounds" else low
            high = np.full(n, math.inf) if name == "lower bounds" else high
            step = CHOICES[name](g, x, low, high, alpha=alpha)
            expected = pairstep.propose(rule, g, x, low, high, alpha=alpha)
            assert step.decrease == pytest.approx(expected.decrease, rel=1e-9, abs=1e-14)
            if rule == "gs-1":
                moved, delta = expected.indices, expected.delta
                inside = (low[moved] < delta) & (delta < high[moved])
                assert inside.sum() <= 2  # the others are moved to a bound (section 3.3)
            d = np.zeros(n)
            d[step.indices] = step.delta
            assert ((low <= d) & (d <= high)).all()
            assert abs(d.sum()) <= 1e-12 * np.abs(d).sum()
            square = np.abs(d).sum() ** 2 if rule == "gs-1" else d @ d
            model = g @ d + square / (2 * alpha)
            assert -model == pytest.approx(step.decrease, rel=1e-9, abs=1e-13)

    def test_gs_q_one_sided_arguments(self):
        for bounds in ({}, {"lower": 0.0, "upper": 1.0}):
            with pytest.raises(ValueError, match="either lower or upper"):
                theory.gs_q_one_sided([1.0, 0.0], [0.0, 0.0], alpha=1.0, **bounds)
        with pytest.raises(ValueError, match=r"x\[1\] = -1 is outside"):
            theory.gs_q_one_sided([1.0, 0.0], [0.0, -1.0], lower=0.0, alpha=1.0)
        assert not len(theory.gs_q_one_sided([1.0, 1.0], [0.0, 0.0], lower=0.0, alpha=1.0).indices)


def exact_gs_1(g, low, high, alpha):
    """GS-1 in rational arithmetic: the walk of Algorithm 1, with None for no bound."""
    n = len(g)
    d = [Fraction(0)] * n
    down = sorted((i for i in range(n) if low[i] != 0), key=lambda i: -g[i])
    up = sorted((i for i in range(n) if high[i] != 0), key=lambda i: g[i])
    moved = Fraction(0)
    while down and up:
        i, j = down[0], up[0]
        full = alpha * (g[i] - g[j]) / 4 - moved
        if full <= 0:
            break
        limits = [full]
        limits += [] if low[i] is None else [d[i] - low[i]]
        limits += [] if high[j] is None else [high[j] - d[j]]
        amount = min(limits)
        d[i], d[j], moved = d[i] - amount, d[j] + amount, moved + amount
        if amount == full:
            break
        if d[i] == low[i]:
            down.pop(0)
        if d[j] == high[j]:
            up.pop(0)
    return d


class TestNumberOfUpdates:
    def test_at_a_degenerate_limit_three_can_change_for_ever(self):
        """In rational arithmetic; the steps and the scale of x repeat up to signs and order."""
        e = Fraction(1, 10)
        H = [[4, 0, -2, -2], [0, 4, -2, -2], [-2, -2, 4, 4], [-2, -2, 4, 4]]
        H = [[h + e * (i == j) for j, h in enumerate(row)] for i, row in enumerate(H)]
        x = [Fraction(-1), Fraction(1, 4), Fraction(3, 4), Fraction(0)]
        for k in range(24):
            g = [sum(h * v for h, v in zip(row, x, strict=True)) for row in H]
            low = [None if i in (0, 3) else -x[i] for i in range(4)]
            high = [-x[i] if i in (0, 3) else None for i in range(4)]
            d = exact_gs_1(g, low, high, 2 / (6 + e))
            assert sum(v != 0 for v in d) == (3 if k % 2 == 0 else 2)
            x = [v + change for v, change in zip(x, d, strict=True)]

    def test_identification_can_take_for_ever_at_a_degenerate_limit(self):
        """x_1 is 0 at the optimum, and positive at every iteration."""
        H, x = np.diag([1.0, 1.0, 3.0]), np.array([1.0, -1.0, 0.0])
        assert theory.two_coordinate_constant(pairstep.Quadratic(H)) == 2.0
        low = np.array([0.0, -math.inf, -math.inf])
        for k in range(60):
            assert x[0] == 0.5**k
            step = pairstep.propose("gs-1", H @ x, x, low, math.inf, alpha=1.0)
            x[step.indices] += step.delta


class TestConformalPairs:
    def random_tree(self, rng, n):
        """Nested and disjoint groups, from splitting the variables at random."""
        groups, stack = [], [list(map(int, rng.permutation(n)))]
        while stack:
            node = stack.pop()
            if len(node) > 1:
                cut = int(rng.integers(1, len(node)))
                stack += [node[:cut], node[cut:]]
                groups += [part for part in (node[:cut], node[cut:]) if rng.random() < 0.7]
        return groups

    @pytest.mark.parametrize("seed", range(20))
    def test_pairs_of_a_tree(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        groups = self.random_tree(rng, n)
        d = rng.integers(-4, 5, n).astype(float)
        d[0] -= d.sum()
        pairs = theory.conformal_pairs(d, groups)
        assert len(pairs) <= n - 1
        steps = np.zeros((len(pairs), n))
        for step, (i, j, amount) in zip(steps, pairs, strict=True):
            assert amount > 0
            step[[i, j]] = -amount, amount
        np.testing.assert_array_equal(steps.sum(axis=0), d)
        for group in [*([i] for i in range(n)), *groups]:
            assert (steps[:, group].sum(axis=1) * d[group].sum() >= 0).all()

    @pytest.mark.parametrize("seed", range(20))
    def test_pairs_decide_optimality_on_a_tree(self, seed):
        """A linear program over all directions finds a descent direction if and only if a pair is
        one."""
        rng = np.random.default_rng(seed)
        n = 7
        groups = [*([i] for i in range(n)), *self.random_tree(rng, n)]
        member = np.array([[i in group for i in range(n)] for group in groups], float)
        state = rng.choice([-1, 0, 1], len(groups), p=[0.3, 0.4, 0.3])  # at low, between, at high
        rows = np.vstack([np.zeros((1, n)), -member[state == -1], member[state == 1]])
        for _ in range(10):
            g = rng.integers(-2, 3, n).astype(float)
            best = scipy.optimize.linprog(
                g, rows, np.zeros(len(rows)), np.ones((1, n)), [0], bounds=(-1, 1)
            ).fun
            pairs = [
                g[j] - g[i]
                for i, j in permutations(range(n), 2)
                if (rows @ (np.eye(n)[j] - np.eye(n)[i]) <= 0).all()
            ]
            assert (best < -1e-9) == (min(pairs, default=0.0) < 0)


class TestBlocks:
    A = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -2.0, 0.5, 0.0, 3.0, -1.0]])

    @pytest.mark.parametrize("tau", [3, 4, 6])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_rate_without_bounds(self, seed, tau):
        f = random_quadratic(seed)
        x0 = np.random.default_rng(seed).normal(size=N)
        c = self.A @ x0
        x, values = theory.block_descent(f, self.A, c, x0, tau, 30)
        factor = theory.block_rate(
            N, tau, theory.block_constant(f, self.A, tau), theory.strong_convexity(f, self.A)
        )
        assert_obeys(values, minimum(f, self.A, c), factor)
        np.testing.assert_allclose(self.A @ x, c, atol=1e-9)
        assert values[-1] == f.value(x)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_rate_with_bounds(self, seed):
        f, tau = random_quadratic(seed), 3
        x0 = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], size=N)
        c = self.A @ x0
        x, values = theory.block_descent(f, self.A, c, x0, tau, 12, lower=0.0, upper=1.0)
        factor = theory.block_rate(
            N, tau, theory.block_constant(f, self.A, tau), theory.strong_convexity(f, self.A)
        )
        assert_obeys(values, minimum(f, self.A, c, 0.0, 1.0), factor)
        assert ((x >= 0) & (x <= 1)).all()
        np.testing.assert_allclose(self.A @ x, c, atol=1e-9)

    def test_pairs_under_one_sum_are_gs_q(self):
        f = random_quadratic(2)
        x0 = np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
        _, values = theory.block_descent(f, [[1.0] * N], [1.0], x0, 2, 25, lower=0, upper=0.5)
        box = pairstep.SumBox(total=1.0, lower=0.0, upper=0.5)
        result = pairstep.coordinate_descent(
            f, box, rule="gs-q", step="1/L2", x0=x0, history=True, tol=0, max_iter=25
        )
        np.testing.assert_allclose(result.history.value, values, rtol=1e-9)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_constant_of_pairs_is_l2_and_grows_to_that_of_all(self, seed):
        f = random_quadratic(seed)
        ones = np.ones((1, N))
        sizes = [theory.block_constant(f, ones, tau) for tau in range(2, N + 1)]
        assert sizes[0] == pytest.approx(theory.two_coordinate_constant(f))
        assert (np.diff(sizes) >= -1e-9 * sizes[-1]).all()
        Z = scipy.linalg.null_space(ones)
        assert sizes[-1] == pytest.approx(np.linalg.eigvalsh(Z.T @ f.Q @ Z)[-1])

    def test_larger_blocks_may_have_a_worse_rate(self):
        """Contradicts remark (iii) before prop:gs-q-general-rate in the paper."""
        v = np.repeat([1.0, -1.0], 3)
        f = pairstep.Quadratic(np.outer(v, v) + 0.1 * np.eye(N))
        mu_2 = theory.strong_convexity(f)
        pairs, fours = (
            theory.block_rate(N, tau, theory.block_constant(f, np.ones((1, N)), tau), mu_2)
            for tau in (2, 4)
        )
        assert pairs < fours

    def test_gs_q_of_a_weighted_sum_divides_by_the_norm_of_its_coefficients(self):
        """GS-q under sum a_i x_i = c, which is not the rule of the paper's last appendix."""
        a, g = np.array([1.0, 1.0, 4.0]), np.array([0.0, 4.0, 11.0])
        f = pairstep.Quadratic(np.eye(3), g)
        x, _ = theory.block_descent(f, [a], [0.0], np.zeros(3), 2, 1, l2=1.0)

        def best_pair(scale):
            return max(
                combinations(range(3), 2),
                key=lambda p: abs(a[p[1]] * g[p[0]] - a[p[0]] * g[p[1]]) / scale(a[list(p)]),
            )

        assert tuple(np.flatnonzero(x)) == best_pair(np.linalg.norm)
        assert best_pair(np.linalg.norm) != best_pair(np.sum)


class TestCoverage:
    """docs/theory/coverage.md names every function of the module, and only checks that exist."""

    def rows(self):
        page = Path(__file__).parents[2] / "docs/theory/coverage.md"
        if not page.exists():
            pytest.skip("no documentation here")
        lines = page.read_text(encoding="utf-8").splitlines()
        return [line.strip("|").split("|") for line in lines if line.startswith("|")]

    def test_every_function_is_listed(self):
        cells = " ".join(row[-3] for row in self.rows())
        assert set(theory.__all__) <= set(re.findall(r"`(\w+)", cells))

    def test_every_check_exists(self):
        folder = Path(pairstep.__file__).parent / "paper"
        code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
        checks = re.findall(r"`([^`]+)`", " ".join(row[-1] for row in self.rows()))
        assert len(checks) > 60
        for name in checks:
            if name.startswith("Test"):
                test_class, _, method = name.partition(".")
                assert hasattr(globals()[test_class], method or "__init__"), name
            elif name.startswith("tests/"):
                assert (Path(__file__).parents[2] / name).exists(), name
            else:  # a claim of the report, some of which are named after a rule or a step
                part = name.removeprefix("theorem-").removesuffix("-step")
                assert name in code or f'"{part}"' in code, name
