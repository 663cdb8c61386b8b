"""Pauses, callbacks, signals and concurrent solves do not change a solve.

Native solves are paused directly, because public calls do not say when they pause.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import pairstep
from pairstep import _core
from pairstep.paper.rules import RULES

# ------------------------------------------------------------------ state machines

LIMIT = 3000  # maximum number of iterations of a run


class Pauses(RuleBasedStateMachine):
    """Run in parts with other calls in between; the result equals that of one run.

    Changes to a run (`disturb`) are recorded and applied to the other run at the same iteration.
    """

    @initialize(
        seed=st.integers(0, 2**32 - 1), l1_penalized=st.booleans(), groups=st.integers(1, 2),
        option=st.integers(0, 5),
    )  # fmt: skip
    def start(self, seed, l1_penalized, groups, option):
        self.arguments = seed, l1_penalized, groups, option
        self.solve = self.begin(*self.arguments)
        self.disturbed = []

    @rule(count=st.integers(0, 40))
    def run_a_little(self, count):
        before = self.solve.progress()
        self.solve.run(count // self.solve.iterations_in_one, np.inf)
        assert self.solve.progress() <= before + count

    @rule()
    def run_without_time(self):
        self.solve.run(LIMIT, 0.0)

    @rule()
    def run_with_little_time(self):
        if not self.clock_matters:
            self.solve.run(LIMIT, 1e-4)

    @rule()
    def disturb(self):
        self.disturbed.append(self.solve.progress())
        self.solve.disturb()

    @rule()
    def solve_something_else(self):
        self.begin(*self.arguments).run(50, np.inf)

    @invariant()
    def feasible(self):
        x = self.solve.x
        assert (x >= self.solve.lower).all()
        assert (x <= self.solve.upper).all()
        assert abs(x.sum() - self.solve.totals.sum()) < 1e-12

    def teardown(self):
        if not hasattr(self, "solve"):
            return
        whole = self.begin(*self.arguments)
        for when in self.disturbed:
            whole.run(when - whole.progress(), np.inf)
            assert whole.progress() == when
            whole.disturb()
        for solve in (self.solve, whole):
            solve.run(LIMIT, np.inf)
        assert self.solve.seen() == whole.seen()


class Example:
    """A random problem in the coordinates of the solver."""

    def __init__(self, seed, l1_penalized, groups, n):
        rng = np.random.default_rng(seed)
        F = rng.normal(size=(n + 1, n)) * 10.0 ** rng.uniform(-1, 1, n)
        self.F, self.c = F, rng.normal(size=n)
        self.lower, self.upper = np.full(n, -0.1), rng.uniform(0.2, 1.0, n)
        self.starts = np.array([0, n // 3, n] if groups == 2 else [0, n])
        self.totals = np.full(groups, 0.7)
        self.l1_terms = (
            (rng.uniform(0, 2, n), rng.uniform(0, 0.1, n)) if l1_penalized else (None, None)
        )
        self.x = _core.project(np.zeros(n), self.lower, self.upper, self.starts, self.totals)
        self.point = _core.Point(self.x, self.lower, self.upper, *self.l1_terms, self.starts)


class GreedyExample(Example):
    iterations_in_one = 1

    def __init__(self, seed, l1_penalized, groups, option):
        super().__init__(seed, l1_penalized, groups, 40)
        self.H = self.F.T @ self.F
        name = [None, "libsvm", "gs-s", "gs-q", "gs-1", "random"][option]
        given = self.H, self.point, self.gradient(), self.value()
        if name is None:  # the solver of `minimize`, with Newton phases
            self.solver = _core.GreedySolve(*given, record=True)
        else:
            self.rng = np.random.default_rng(seed)
            generator = self.rng.bit_generator.capsule if RULES[name].draws else None
            alpha = 1 / _core.two_coordinate_constant(self.H)
            self.solver = _core.coordinate_descent(
                *given, _core.Choice(RULES[name].code, alpha, None, generator),
                step=_core.StepLength.exact, one_norm_constant=0.0, patience=2000, record=True,
            )  # fmt: skip
        self.rows = []

    def gradient(self):
        return self.H @ self.x + self.c

    def value(self):
        return float(0.5 * self.x @ self.H @ self.x + self.c @ self.x)

    def progress(self):
        return self.solver.iterations

    def run(self, count, seconds):
        self.solver.run(1e-6, min(self.progress() + count, LIMIT), seconds)
        self.rows.append(self.solver.take_history()[:, :4])  # all but the time

    def disturb(self):
        self.run(0, np.inf)  # so that the point is in both histories
        self.solver.renew(self.gradient(), self.value())

    def seen(self):
        solver = self.solver
        history = np.concatenate(self.rows).tobytes()
        return self.x.tobytes(), solver.iterations, solver.value, solver.violation, history


class BlockExample(Example):
    iterations_in_one = 15  # a round is many iterations

    def __init__(self, seed, l1_penalized, groups, option):
        super().__init__(seed, l1_penalized, groups, 300)
        zeros = np.zeros(301)
        self.oracle = _core.gram_oracle(
            self.F, zeros, np.full(300, 0.1), self.c, self.point, 1 + option % 2
        )
        self.solver = _core.BlockSolve(self.oracle, self.point, self.totals, option >= 4)
        self.rounds = 0

    def progress(self):
        return self.rounds

    def run(self, count, seconds):
        """Run rounds one at a time, and count them."""
        for _ in range(count):
            stop = self.solver.run(1e-8, 10**6, 1, seconds)
            if stop != _core.StopReason.paused:
                break
            self.rounds += 1

    def disturb(self):
        self.solver.conclude()

    def seen(self):
        return self.x.tobytes(), self.solver.iterations, self.solver.violation, self.solver.scale


class GreedyPauses(Pauses):
    begin = GreedyExample
    clock_matters = False


class BlockPauses(Pauses):
    begin = BlockExample
    clock_matters = True  # a half-solved block changes the path


TestGreedyPauses = GreedyPauses.TestCase
TestGreedyPauses.settings = settings(max_examples=60, stateful_step_count=15)
TestBlockPauses = BlockPauses.TestCase
TestBlockPauses.settings = settings(max_examples=15, stateful_step_count=10)


# ------------------------------------------------------------------ callbacks


def test_a_callback_does_not_disable_the_newton_phase():
    """The problem is rank-deficient and badly scaled, so only Newton's method solves it."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(100, 300)) * 10.0 ** rng.uniform(-2, 2, 300)
    plain = pairstep.solve_qp(F.T @ F, lower=-1.0)
    watched = pairstep.solve_qp(F.T @ F, lower=-1.0, callback=lambda progress: None)
    assert plain.status == watched.status == "optimal"
    assert plain.n_iter == watched.n_iter
    np.testing.assert_array_equal(plain.x, watched.x)


# ------------------------------------------------------------------ time limits
