"""Verdicts follow the measurements, three are computed again, and sentences are the paper's."""

import functools
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

pytest.importorskip("joblib")

from pairstep.paper import bounded, peers, support_vectors, theorems, unbounded
from pairstep.paper.claims import Verdict
from pairstep.paper.experiment import Scale, run
from pairstep.paper.reproduce import EXPERIMENTS

SEEDS = tuple(range(10))
SCALE = Scale(n=100, seeds=SEEDS, sizes=(100, 1000, 10_000), rows=100)

RATES = {
    "random": 1.0, "random-lipschitz": 1.0, "greedy": 1.0, "gs-q-lipschitz": 1.0, "ratio": 1.0,
    "gs-1-lipschitz": 1.0, "gs-s": 1.0, "gs-q": 1.0, "gs-1": 1.0, unbounded.DIRECT: 1.0,
}  # fmt: skip
WEIGHTED = dict.fromkeys(unbounded.WEIGHTED, 3.0)
GREEDY = WEIGHTED | {"greedy": 3.0}


class World:
    """Measurements made up for a test, in place of `Results`.

    Suboptimality decays at a rate for each rule, and the other numbers are as given.
    """

    def __init__(
        self, rates=None, by_seed=1.0, counts=None, moved=2, exact=1.0, slope=1.0, margin=1.0,
        found=None, iterations=None, difference=0.0,
    ):  # fmt: skip
        self.rates = RATES | (rates or {})
        self.by_seed, self.moved, self.exact, self.slope = by_seed, moved, exact, slope
        self.counts, self.found = counts or {}, found or {}
        self.iterations, self.margin, self.difference = iterations or {}, margin, difference

    def __getitem__(self, part):
        given, name = dict(part.parameters), part.measure.__name__
        module = part.measure.__module__.rsplit(".", 1)[-1]
        if module == "theorems":
            return {"margin": np.array(self.margin)}
        return getattr(self, f"{module}_{name}")(**given)

    def curve(self, rule, seed, length, slowest):
        rate = slowest * self.rates[rule] * self.by_seed ** (seed % 2) * (1 + 1e-3 * seed)
        return np.exp(-rate * np.arange(length + 1))

    def unbounded_measure(self, seed, n, kind, rule, repeat):
        return {"suboptimality": self.curve(rule, seed, 20 * n, 0.02)}

    def unbounded_against_brute_force(self, seed, n, tries):
        return {"fast": np.full(tries, self.exact), "brute": np.ones(tries)}

    def bounded_measure(self, seed, n, bounds, rule):
        length = 20 * n
        early = np.arange(length + 1) < 8 * n  # then all rules have their final active set
        count = self.counts.get(rule, 50)
        return {
            "suboptimality": self.curve(rule, seed, length, 0.02),
            "interior": np.where(early, count, 10),
            "not_final": np.where(np.arange(length + 1) < 8 * n * count / 50, count, 0),
            "moved": np.full(length + 1, self.moved),
        }

    def scaling_measure(self, seed, n, rule):
        return {
            "decrease": np.array(self.exact), "brute_decrease": np.array(1.0),
            "seconds": np.array(1e-9 * n**self.slope), "brute_seconds": np.array(1e-9 * n**2),
        }  # fmt: skip

    def support_vectors_measure(self, data, rows, rule, step):
        found = np.array(self.found.get(rule, 100))
        return {
            "found": found, "nearly": found, "seconds": np.array(1.0), "support": np.array(3),
            "state": np.zeros(5),
        }  # fmt: skip

    def peers_measure(self, problem, n, seed, method):
        return {"iterations": np.array(self.iterations.get(method, 100) + seed)}

    def peers_same_steps(self, n, seed):
        return {"difference": np.array(self.difference)}


SAME = World()
LAST_IS_GS_Q = World(counts={"gs-q": 80})
FIRST_IS_GS_1 = World(counts={"gs-1": 20})
FIRST_IS_SLOW = World(found={"gs-1": 200})

# For every claim, measurements for which it holds, and for which it fails, at every horizon.
WORLDS = {
    "greedy-beats-random": (World(GREEDY), SAME),
    "li-changes-little": (SAME, World(WEIGHTED)),
    "li-helps-gs-q-lipschitz": (World(WEIGHTED), SAME),
    "li-helps-gs-1-lipschitz": (World(WEIGHTED), SAME),
    "li-helps-ratio": (World(WEIGHTED), SAME),
    "li-random": (SAME, World({"random-lipschitz": 3.0})),
    "ratio-is-close": (SAME, World({"ratio": 3.0})),
    "seeds-are-similar": (SAME, World(by_seed=5.0)),
    "gs-s-is-slowest": (World({"gs-q": 2.0, "gs-1": 2.0}), SAME),
    "gs-q-identifies-active-set-last": (LAST_IS_GS_Q, SAME),
    "gs-1-identifies-active-set-first": (FIRST_IS_GS_1, SAME),
    "gs-1-updates-two": (SAME, World(moved=3)),
    "gs-1-updates-three-or-fewer": (SAME, World(moved=4)),
    "gs-1-rarely-updates-four-or-five": (SAME, World(moved=4)),
    "most-gs-1-updates-are-of-two-or-three": (SAME, World(moved=4)),
    "small-advantage-in-objective": (World({"gs-q": 1.2, "gs-1": 1.2}), SAME),
    "gs-s-and-gs-1-reach-bounds-sooner": (LAST_IS_GS_Q, SAME),
    "exact-rules-are-exact": (SAME, World(exact=0.9)),
    "exact-rules-are-linear": (SAME, World(slope=2.0)),
    "gs-1-identifies-support-vectors-theory": (World(found={"gs-1": 50}), FIRST_IS_SLOW),
    "gs-1-identifies-support-vectors-exact": (World(found={"gs-1": 50}), FIRST_IS_SLOW),
    "simplex-gs-s-is-slowest": (World({"gs-q": 2.0, "gs-1": 2.0}), SAME),
    "simplex-gs-1-identifies-active-set-first": (FIRST_IS_GS_1, SAME),
    "simplex-gs-1-updates-two": (SAME, World(moved=3)),
    "weights-fast-rule-is-exact": (SAME, World(exact=0.9)),
    "weights-greedy-beats-random": (World({"greedy": 3.0}), SAME),
    "weights-norm-matters": (World({unbounded.DIRECT: 3.0}), SAME),
    "pairwise-frank-wolfe-is-gs-s": (SAME, World(difference=0.1)),
    "conjugate-smo-is-faster": (World(iterations={peers.CONJUGATE: 50}), SAME),
    "quadratic-corrections-need-fewest-iterations": (
        World(iterations={peers.CORRECTED: 50}), SAME,
    ),
}  # fmt: skip
WORLDS |= {theorem.name: (SAME, World(margin=0.999)) for theorem in theorems.THEOREMS}


@pytest.fixture(autouse=True)
def data_are_there(monkeypatch):
    monkeypatch.setattr(support_vectors, "data_file", Path)


@functools.cache
def claims_of(world, figure):
    return {c.name: c for c in EXPERIMENTS[figure].claims(world, SCALE)}


@pytest.mark.parametrize("name", WORLDS)
def test_a_verdict_follows_its_measurements(name):
    """A verdict that was written down instead of computed would be the same in both worlds."""
    true, false = WORLDS[name]
    (figure,) = [figure for figure in EXPERIMENTS if name in claims_of(SAME, figure)]
    held, failed = claims_of(true, figure)[name], claims_of(false, figure)[name]
    assert held.verdict == Verdict.HOLDS, held.readings
    assert failed.verdict == Verdict.FAILS, failed.readings


def test_every_claim_is_tested():
    names = [c.name for e in EXPERIMENTS.values() for c in e.claims(SAME, SCALE)]
    assert len(set(names)) == len(names)
    assert set(names) == set(WORLDS)


def test_every_claim_has_a_reading_and_horizons():
    for experiment in EXPERIMENTS.values():
        for claim in experiment.claims(SAME, SCALE):
            assert (
                bool(claim.sentence) == bool(claim.source) == (claim.record()["kind"] != "beyond")
            )
            for reading in claim.readings:
                assert reading.reading
                assert reading.value
                assert reading.horizons
            horizons = claim.readings[0].horizons
            with_horizon = horizons[0].iterations is not None
            assert all((h.interval is not None) == with_horizon for h in horizons)


def paper():
    """Return the path of the paper's source, which is not part of the repository."""
    checkout = Path(__file__).parents[2]
    return Path(os.environ.get("PAIRSTEP_PAPER", checkout.parent / "shared" / "paper.tex"))


@pytest.mark.skipif(not paper().exists(), reason="set PAIRSTEP_PAPER to the paper's LaTeX source")
def test_every_sentence_is_the_papers():
    source = " ".join(paper().read_text().split())
    claims = [c for e in EXPERIMENTS.values() for c in e.claims(SAME, SCALE) if c.sentence]
    assert len(claims) > 10
    for claim in claims:
        assert " ".join(claim.sentence.split()) in source, claim.name


# ---- Three verdicts from a separate implementation: data, rules, loop and statistics ----

N = 40  # brute force over all pairs is fast enough


def draw_problem(seed, scaled):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, N))
    if scaled:
        A *= rng.standard_normal(N)
    b = A @ rng.standard_normal(N) + rng.standard_normal(N)
    return A.T @ A, -A.T @ b


def free_pair(kind, g, L):
    """Return the step of a rule without bounds, of the paper's length."""
    if kind == "greedy":
        i, j = np.argmax(g), np.argmin(g)
    else:
        gains = np.subtract.outer(g, g) / np.sqrt(np.add.outer(L, L))
        i, j = np.unravel_index(np.argmax(gains), gains.shape)
    d = np.zeros(N)
    d[j] = (g[i] - g[j]) / (L[i] + L[j])
    d[i] = -d[j]
    return d


def boxed_step(kind, g, x, L2):
    """Return the step of a rule with the bounds -1 and 1."""
    if kind == "gs-1":
        return algorithm_1(x, g, 2 / L2)
    down, up = x + 1, 1 - x
    if kind == "gs-s":
        i, j = np.argmax(np.where(down > 0, g, -np.inf)), np.argmin(np.where(up > 0, g, np.inf))
    else:
        gap = np.maximum(np.subtract.outer(g, g), 0)
        amount = np.minimum(gap / (2 * L2), np.minimum.outer(down, up))
        i, j = np.unravel_index(np.argmax(amount * gap - L2 * amount**2), (N, N))
    d = np.zeros(N)
    d[j] = min((g[i] - g[j]) / (2 * L2), down[i], up[j])
    d[i] = -d[j]
    return d


def algorithm_1(x, g, alpha):
    """Return the step of GS-1 by the paper's Algorithm 1, with the bounds -1 and 1."""
    order = np.argsort(-g, kind="stable")
    x, g = (np.concatenate([[0.0], v[order], [0.0]]) for v in (x, g))
    l, u = (np.concatenate([[0.0], np.full(N, bound), [0.0]]) for bound in (-1.0, 1.0))
    i, j, d = 1, N, np.zeros(N + 2)
    omega = kappa = 0.0
    while True:
        delta = alpha / 4 * (g[i] - g[j])
        if delta < omega and delta < kappa:
            d[i if omega < kappa else j] = omega - kappa
            break
        if delta < omega or delta < kappa:
            d[j if delta < omega else i] = omega - kappa
            break
        short, over = l[i] - (x[i] + omega - delta), x[j] - kappa + delta - u[j]
        if short <= 0 and over <= 0:
            d[i], d[j] = omega - delta, delta - kappa
            break
        if short > 0 and (over <= 0 or short > over):
            d[i] = l[i] - x[i]
            omega += x[i] - l[i]
            i += 1
        else:
            d[j] = u[j] - x[j]
            kappa += u[j] - x[j]
            j -= 1
    result = np.zeros(N)
    result[order] = d[1:-1]
    return result


def descend(H, c, step, iterations):
    """Return the objective and the number of changed variables of every iteration."""
    x, values, changed = np.zeros(N), [0.0], []
    g = c.copy()
    for _ in range(iterations):
        d = step(g, x)
        x = x + d
        x = np.where(np.abs(np.abs(x) - 1) < 1e-13, np.sign(x), x)  # exactly at a bound
        g = H @ x + c
        values.append(float(x @ (g + c)) / 2)
        changed.append(int(np.count_nonzero(d)))
    return np.array(values), np.array(changed)


def speed_at(of, over, iterations):
    """Return the ratio of the iterations to the level of the slower one."""
    if iterations is None:
        level = 1e-9 * of[0]
    else:
        level = max(of[: iterations + 1].min(), over[: iterations + 1].min(), 1e-12 * of[0])
    return np.argmax(over <= level) / np.argmax(of <= level)


def interval_of(values):
    return scipy.stats.t.interval(0.95, len(values) - 1, np.mean(values), scipy.stats.sem(values))


def verdict_of(low, high, threshold):
    return True if low > threshold else False if high <= threshold else None


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return the claims of figures 1 and 2 at n = N, by name."""
    scale = Scale(n=N, seeds=SEEDS)
    parts = [
        *unbounded.parts(scale, (unbounded.AS_IS, unbounded.SCALED)),
        *bounded.parts(scale, bounded.BOX),
    ]
    results = run(parts, tmp_path_factory.mktemp("kept"))
    found = [
        *unbounded.claims_of_figure_3(results, scale),
        *bounded.claims_of_figure_2(results, scale),
        *bounded.claims_of_figure_6(results, scale),
    ]
    return {c.name: c for c in found}


def test_li_helps_gs_q_computed_again(measured):
    logs = {K: [] for K in (N, 2 * N, 20 * N)}
    for seed in SEEDS:
        H, c = draw_problem(seed, scaled=True)
        system = np.block([[H, np.ones((N, 1))], [np.ones(N), np.zeros(1)]])
        best = np.linalg.solve(system, np.append(-c, 0.0))[:N]
        optimum = float(best @ (H @ best / 2 + c))
        L = H.diagonal()
        curves = [
            descend(H, c, lambda g, x, kind=kind, L=L: free_pair(kind, g, L), 20 * N)[0] - optimum
            for kind in ("gs-q-lipschitz", "greedy")
        ]
        for K, found in logs.items():
            found.append(np.log(speed_at(*curves, K)))
    for horizon, (K, found) in zip(
        measured["li-helps-gs-q-lipschitz"].readings[0].horizons, logs.items(), strict=True
    ):
        low, high = np.exp(interval_of(found))
        assert horizon.iterations == K
        assert horizon.value == pytest.approx(np.exp(np.mean(found)), rel=1e-3)
        assert horizon.interval == pytest.approx((low, high), rel=1e-3)
        assert horizon.holds is verdict_of(low, high, 1.01)


@pytest.fixture(scope="module")
def in_the_box():
    """Return, for each seed, the curves of the three rules and the variables that gs-1 changes."""
    runs = []
    for seed in SEEDS:
        H, c = draw_problem(seed, scaled=False)
        curvature = H.diagonal()[:, None] + H.diagonal() - 2 * H
        L2 = curvature.max() / 2
        found = {
            kind: descend(H, c, lambda g, x, kind=kind, L2=L2: boxed_step(kind, g, x, L2), 100 * N)
            for kind in ("gs-s", "gs-q", "gs-1")
        }
        optimum = min(values.min() for values, _ in found.values())
        runs.append({kind: (values - optimum, moved) for kind, (values, moved) in found.items()})
    return runs


HORIZONS = (N, 2 * N, 20 * N, None)


def test_gs_s_is_slowest_computed_again(measured, in_the_box):
    for horizon, K in zip(measured["gs-s-is-slowest"].readings[0].horizons, HORIZONS, strict=True):
        intervals = {}
        for rule in ("gs-q", "gs-1"):
            logs = [np.log(speed_at(run[rule][0], run["gs-s"][0], K)) for run in in_the_box]
            intervals[rule] = np.exp(np.mean(logs)), *np.exp(interval_of(logs))
        value, low, high = min(intervals.values(), key=lambda each: each[1])
        verdicts = {verdict_of(*each[1:], 1.01) for each in intervals.values()}
        assert horizon.value == pytest.approx(value, rel=2e-3)
        assert horizon.interval == pytest.approx((low, high), rel=5e-3)
        assert horizon.holds is (False if False in verdicts else None if None in verdicts else True)


def test_gs_1_updates_two_computed_again(measured, in_the_box):
    for horizon, K in zip(measured["gs-1-updates-two"].readings[0].horizons, HORIZONS, strict=True):
        shares = []
        for run_of_seed in in_the_box:
            curve, moved = run_of_seed["gs-1"]
            last = K or int(np.argmax(curve <= 1e-9 * curve[0]))
            shares.append(np.mean(moved[:last] == 2))
        low, high = interval_of(shares)
        assert horizon.value == pytest.approx(np.mean(shares), abs=2e-3)
        assert horizon.interval == pytest.approx((low, high), abs=5e-3)
        assert horizon.holds is verdict_of(low, high, 0.85)
