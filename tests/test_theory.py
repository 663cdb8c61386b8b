"""The paper's constants, lemmas and rates hold on small quadratics."""

import math
from itertools import combinations, permutations, product

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


def projected(y, lower, upper, total=1.0):
    """The nearest point to y under a sum and bounds, by bisection on the multiplier."""

    def excess(shift):
        return np.clip(y + shift, lower, upper).sum() - total

    shift = scipy.optimize.brentq(excess, lower - y.max() - 1, upper - y.min() + 1, xtol=1e-14)
    return np.clip(y + shift, lower, upper)


def constants(f):
    return {
        "l2": theory.two_coordinate_constant(f),
        "mu_1": theory.one_norm_strong_convexity(f),
        "mu_2": theory.strong_convexity(f),
        "n": f.n,
    }


def assert_obeys(values, best, factor):
    """Every iteration multiplies the distance to the optimum by at most the factor."""
    distance = np.asarray(values) - best
    assert distance[0] > 0
    assert (distance[1:] <= factor * distance[:-1] + 1e-11 * distance[0]).all()


def sum_one():
    return np.ones((1, N)), np.array([1.0])


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

    @pytest.mark.parametrize("seed", SEEDS)
    def test_mu_1_is_the_proximal_pl_constant_without_bounds(self, seed):
        """The inequality eq:proxL1 holds at random points and is attained at the worst gradient."""
        f = random_quadratic(seed)
        mu_1 = theory.one_norm_strong_convexity(f)
        Z = scipy.linalg.null_space(np.ones((1, N)))
        M = Z @ np.linalg.solve(Z.T @ f.Q @ Z, Z.T)
        signs = np.array(list(product([-1.0, 1.0], repeat=N))[1:-1])
        for gradients in (np.random.default_rng(seed).normal(size=(5000, N)), signs):
            half_d = (np.ptp(gradients, axis=1) / 2) ** 2 / 2
            distance = np.einsum("ki,ij,kj->k", gradients, M, gradients) / 2
            assert (half_d >= mu_1 * distance * (1 - 1e-9)).all()
        assert (half_d / distance).min() == pytest.approx(mu_1, rel=1e-9)

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

    def test_unknown_names_are_refused(self):
        smooth = pairstep.Smooth(lambda x: 0.0, lambda x: 0 * x)
        with pytest.raises(ValueError, match="Lipschitz constants of Smooth"):
            theory.lipschitz_constants(smooth)
        with pytest.raises(ValueError, match=r"L2 of Smooth\(.*\) is unknown"):
            theory.one_norm_constant(smooth)
        with pytest.raises(ValueError, match="constant Hessian"):
            theory.strong_convexity(smooth)
        with pytest.raises(ValueError, match=r"n <= 16; n is 17"):
            theory.one_norm_strong_convexity(pairstep.Quadratic(np.eye(17)))
        with pytest.raises(ValueError, match="none of the 1 variable"):
            theory.strong_convexity(pairstep.Quadratic([[1.0]]))

    def test_mu_1_at_the_largest_n(self):
        assert theory.one_norm_strong_convexity(pairstep.Quadratic(np.eye(16))) == pytest.approx(
            1 / 16
        )


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


class TestRates:
    @pytest.mark.parametrize("rule", ["greedy", "gs-q", "gs-1"])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_without_bounds(self, seed, rule):
        f = random_quadratic(seed)
        free = pairstep.SumBox(total=1.0, lower=-math.inf, upper=math.inf)
        result = pairstep.minimize(
            f, free, rule=rule, step="1/L2", history=True, tol=0, max_iter=200
        )
        assert_obeys(
            result.history.value, minimum(f, *sum_one()), theory.rate(rule, **constants(f))
        )

    @pytest.mark.parametrize("rule", ["gs-q", "gs-1"])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_with_bounds(self, seed, rule):
        f = random_quadratic(seed)
        box = pairstep.SumBox(total=1.0, lower=0.0, upper=0.5)
        best = minimum(f, *sum_one(), 0.0, 0.5)
        factor = theory.rate(rule, **constants(f))
        for x0 in (None, [0.5, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0.5]):
            result = pairstep.minimize(
                f, box, rule=rule, step="1/L2", x0=x0, history=True, tol=0, max_iter=200
            )
            assert_obeys(result.history.value, best, factor)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_strong_convexity_gives_proximal_pl_with_bounds(self, seed):
        """D(x, L) >= 2 mu (f - f*) in both norms, at random points and at corners of the box."""
        f = random_quadratic(seed)
        box = pairstep.SumBox(total=1.0, lower=0.0, upper=0.5)
        best = minimum(f, *sum_one(), 0.0, 0.5)
        known = constants(f)
        rng = np.random.default_rng(seed)
        corners = [np.isin(np.arange(N), pair) / 2 for pair in combinations(range(N), 2)]
        for x in [*corners, *(box.project(rng.normal(size=N)) for _ in range(50))]:
            g = f.gradient(x)
            l1, l2 = known["l2"] / 2, known["l2"]
            gs_1 = pairstep.propose("gs-1", g, x, 0.0, 0.5, alpha=1 / l1)
            d = projected(x - g / l2, 0.0, 0.5) - x
            for decrease, L, mu in (
                (gs_1.decrease, l1, known["mu_1"]),
                (-(g @ d + l2 / 2 * (d @ d)), l2, known["mu_2"]),
            ):
                assert L * decrease >= mu * (f.value(x) - best) * (1 - 1e-9) - 1e-12

    def test_greedy_rate_is_attained(self):
        g = np.repeat([1.0, -1.0], 3)
        f = pairstep.Quadratic(np.eye(N), g)
        free = pairstep.SumBox(total=0.0, lower=-math.inf, upper=math.inf)
        result = pairstep.minimize(
            f, free, rule="greedy", step="1/L2", history=True, tol=0, max_iter=1
        )
        first, second = result.history.value[:2] + 3.0
        assert second / first == pytest.approx(theory.rate("greedy", **constants(f)))


class TestRandom:
    def expected_decrease(self, f, x, lower, upper):
        """The mean over all pairs of the true decrease with the step 1/L2."""
        g, l2 = f.gradient(x), theory.two_coordinate_constant(f)
        decreases = []
        for i, j in permutations(range(f.n), 2):
            if g[i] >= g[j]:
                y = x.copy()
                amount = min((g[i] - g[j]) / (2 * l2), x[i] - lower, upper - x[j])
                y[[i, j]] += [-amount, amount]
                decreases.append(f.value(x) - f.value(y))
        return sum(decreases) / (f.n * (f.n - 1) / 2)

    @pytest.mark.parametrize("bounds", [(-math.inf, math.inf), (0.0, 0.5)])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_expected_decrease_obeys_both_rates(self, seed, bounds):
        f = random_quadratic(seed)
        best = minimum(f, *sum_one(), *bounds)
        known = constants(f)
        sharp = theory.sharp_random_rate(
            l2=known["l2"], mu_2=known["mu_2"], n=N, bounds=math.isfinite(bounds[1])
        )
        paper = theory.rate("random", **known)
        assert sharp < paper
        box = pairstep.SumBox(total=1.0, lower=bounds[0], upper=bounds[1])
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = box.project(rng.normal(size=N))
            distance = f.value(x) - best
            left = distance - self.expected_decrease(f, x, *bounds)
            assert left <= sharp * distance + 1e-12

    def test_sharp_rate_is_attained_without_bounds(self):
        rng = np.random.default_rng(0)
        f = pairstep.Quadratic(np.eye(N), rng.normal(size=N))
        x = rng.normal(size=N)
        distance = f.value(x) - minimum(f, np.ones((1, N)), np.array([x.sum()]))
        left = distance - self.expected_decrease(f, x, -math.inf, math.inf)
        assert left / distance == pytest.approx(theory.sharp_random_rate(l2=1.0, mu_2=1.0, n=N))

    def test_sharp_rate_is_attained_with_bounds(self):
        """At a corner of the simplex with a single improving pair, the factor n^2 is sharp."""
        f = pairstep.Quadratic(np.eye(N), [0.0, 0.0, 2.0, 2.0, 2.0, 2.0])
        x = np.eye(N)[0]
        distance = f.value(x) - minimum(f, *sum_one(), 0.0, math.inf)
        left = distance - self.expected_decrease(f, x, 0.0, math.inf)
        sharp = theory.sharp_random_rate(l2=1.0, mu_2=1.0, n=N, bounds=True)
        assert left / distance == pytest.approx(sharp)
        assert sharp < theory.rate("random", l2=1.0, mu_2=1.0, n=N)

    def test_runs_obey_both_rates(self):
        f = random_quadratic(1, spread=0.3)
        free = pairstep.SumBox(total=1.0, lower=-math.inf, upper=math.inf)
        best = minimum(f, *sum_one())
        runs = [
            pairstep.minimize(
                f, free, rule="random", step="1/L2", history=True, tol=0, max_iter=60, seed=seed
            ).history.value
            for seed in range(100)
        ]
        mean = np.mean(runs, axis=0) - best
        known = constants(f)
        paper = theory.rate("random", **known)
        sharp = theory.sharp_random_rate(l2=known["l2"], mu_2=known["mu_2"], n=N)
        for factor in (paper, sharp):
            assert (mean <= factor ** np.arange(len(mean)) * mean[0] * (1 + 1e-12)).all()


class TestRateArguments:
    def test_missing_constants_are_named(self):
        with pytest.raises(ValueError, match="rate of rule 'greedy' needs mu_1"):
            theory.rate("greedy", l2=1.0, mu_2=0.1, n=3)
        with pytest.raises(ValueError, match="rate of rule 'gs-q' needs n and mu_2"):
            theory.rate("gs-q", l2=1.0, mu_1=0.1)

    def test_unknown_rule(self):
        with pytest.raises(ValueError, match="did you mean 'greedy'"):
            theory.rate("gredy", l2=1.0, mu_1=0.1)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"l2": 0.0}, "l2 must be positive"),
            ({"mu_2": -1.0}, "mu_2 must be between 0 and 1"),
            ({"mu_2": 2.0}, "mu_2 must be between 0 and 1"),
            ({"mu_2": math.nan}, "mu_2 must be finite"),
            ({"n": 1}, "n must be at least 2"),
        ],
    )
    def test_invalid_constants_are_refused(self, wrong, message):
        given = {"l2": 1.0, "mu_2": 0.5, "n": 4} | wrong
        with pytest.raises(ValueError, match=message):
            theory.rate("gs-q", **given)
        with pytest.raises(ValueError, match=message):
            theory.sharp_random_rate(**given)


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
        result = pairstep.minimize(
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

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"tau": 2}, "tau must be above the rank 2 of A and at most n = 6, got 2"),
            ({"tau": 7}, "at most n = 6, got 7"),
            ({"c": [1.0, 2.0]}, "A x0 differs from c by 2"),
            ({"lower": 0.5}, r"x0 is infeasible: x0\[0\] = 0 is outside its bounds \[0.5, inf\]"),
            ({"A": np.ones((2, 5))}, "A must have 6 columns"),
            ({"l2": 0.0}, "l2 must be positive"),
        ],
    )
    def test_bad_input(self, change, message):
        given = {"A": self.A, "c": [0.0, 0.0], "x0": np.zeros(N), "tau": 3, "n_iter": 1} | change
        with pytest.raises(ValueError, match=message):
            theory.block_descent(random_quadratic(0), **given)

    def test_problems_too_large_to_enumerate_are_refused(self):
        f = pairstep.Quadratic(np.eye(40))
        with pytest.raises(ValueError, match="too much to enumerate"):
            theory.block_constant(f, np.ones((1, 40)), 20)
        with pytest.raises(ValueError, match="sets of active bounds"):
            theory.block_descent(
                random_quadratic(0, 12), np.ones((1, 12)), [0.0], np.zeros(12), 8, 1, lower=0.0
            )

    def test_bad_tau_in_the_rate(self):
        with pytest.raises(ValueError, match="tau must be between 2 and n = 6, got 7"):
            theory.block_rate(6, 7, 1.0, 0.5)
