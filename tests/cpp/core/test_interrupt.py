"""Pauses, callbacks, signals and concurrent solves do not change a solve."""

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import pairstep
from pairstep import FactorModel, L1Penalized, LeastSquares, Quadratic, Smooth, SumBox, _core
from pairstep.rules import RULES
from pairstep.svm import SVC, SVR

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
        name, newton_phase = [
            ("libsvm", True), ("libsvm", False), ("gs-s", False), ("gs-q", False), ("gs-1", True),
            ("random", False),
        ][option]  # fmt: skip
        self.rng = np.random.default_rng(seed)
        generator = self.rng.bit_generator.capsule if RULES[name].draws else None
        alpha = 1 / _core.two_coordinate_constant(self.H)
        choice = _core.Choice(RULES[name].code, alpha, None, generator)
        self.solver = _core.GreedySolve(
            self.H, self.point, self.gradient(), self.value(), choice, step=_core.StepLength.exact,
            one_norm_constant=0.0, patience=2000, newton_phase=newton_phase, record=True,
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


def portfolio(n, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n // 2, n)) * 10.0 ** rng.uniform(-2, 2, n)
    return Quadratic(F.T @ F, rng.normal(size=n))


def factors(n, seed=1):
    rng = np.random.default_rng(seed)
    return FactorModel(rng.normal(size=(40, n)), 0.01 + rng.random(n), rng.normal(size=n))


WIDE = SumBox(1.0, -1.0, 1.0)
SOLVES = {
    "greedy": (portfolio(150), WIDE, {}),
    "greedy with l1 terms": (L1Penalized(portfolio(80), 0.5, 0.01), WIDE, {}),
    "greedy to max_iter": (portfolio(150), WIDE, {"max_iter": 77}),
    "greedy to tol 0": (portfolio(60), WIDE, {"tol": 0.0}),
    "a rule by name": (portfolio(12), WIDE, {"rule": "gs-q", "max_iter": 5000}),
    "random": (portfolio(12), WIDE, {"rule": "random", "seed": 3, "max_iter": 5000}),
    "block": (factors(700), WIDE, {}),
    "block with l1 terms": (L1Penalized(factors(700), 0.2, 0.001), WIDE, {}),
    "block to max_iter": (factors(700), WIDE, {"max_iter": 300}),
    "block to tol 0": (factors(300), WIDE, {"tol": 0.0}),
    "loop": (portfolio(8), WIDE, {"step": "backtracking", "max_iter": 3000}),
}


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("name", SOLVES)
def test_a_callback_is_called_and_changes_nothing(name, history):
    objective, box, options = SOLVES[name]
    plain = pairstep.minimize(objective, box, **options)
    seen = []
    watched = pairstep.minimize(objective, box, callback=seen.append, history=history, **options)
    np.testing.assert_array_equal(watched.x, plain.x)
    for what in ("n_iter", "status", "fun", "kkt_violation", "message"):
        assert getattr(watched, what) == getattr(plain, what)
    assert len(seen) > 0
    assert seen[-1].n_iter <= plain.n_iter
    iterations = [progress.n_iter for progress in seen]
    assert iterations == sorted(iterations)
    if history:
        recorded = pairstep.minimize(objective, box, history=True, **options)
        np.testing.assert_array_equal(recorded.x, plain.x)
        for column in ("value", "violation", "moved", "interior"):
            np.testing.assert_array_equal(
                getattr(recorded.history, column), getattr(watched.history, column)
            )


def test_a_callback_does_not_disable_the_newton_phase():
    """The problem is rank-deficient and badly scaled, so only Newton's method solves it."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(100, 300)) * 10.0 ** rng.uniform(-2, 2, 300)
    plain = pairstep.solve_qp(F.T @ F, lower=-1.0)
    watched = pairstep.solve_qp(F.T @ F, lower=-1.0, callback=lambda progress: None)
    assert plain.status == watched.status == "optimal"
    assert plain.n_iter == watched.n_iter
    np.testing.assert_array_equal(plain.x, watched.x)


class Listener:
    """A callback of scikit-learn's protocol that only counts."""

    def __init__(self):
        self.calls = 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.calls += 1

    def on_fit_task_end(self, estimator, context):
        self.calls += 1


def svm_data(n=1500):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


callbacks_needed = pytest.mark.skipif(
    not hasattr(SVC, "set_callbacks"), reason="scikit-learn has them from 1.9 on"
)


@callbacks_needed
@pytest.mark.parametrize("model", [SVC(C=10.0), SVR(C=10.0)], ids=["SVC", "SVR"])
def test_a_model_is_the_same_with_a_callback(model):
    X, y = svm_data()
    plain = model.fit(X, y)
    expected = plain.dual_coef_.copy(), plain.support_.copy(), np.copy(plain.n_iter_)
    listener = Listener()
    watched = model.set_callbacks(listener).fit(X, y)
    assert listener.calls > 0
    for found, value in zip(
        (watched.dual_coef_, watched.support_, watched.n_iter_), expected, strict=True
    ):
        np.testing.assert_array_equal(found, value)


# ------------------------------------------------------------------ concurrent solves


def bits_of_everything():
    """One solve of each kind."""
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(120, 90)), rng.normal(size=(120, 40))
    X, y = svm_data(500)
    model = SVC(C=10.0).fit(X, y)
    return [
        pairstep.minimize(*SOLVES["greedy"][:2]).x.tobytes(),
        pairstep.minimize(*SOLVES["block with l1 terms"][:2]).x.tobytes(),
        pairstep.simplex_lstsq(A, b).x.tobytes(),
        pairstep.simplex_lstsq(A, b[:, 0]).x.tobytes(),
        model.dual_coef_.tobytes(),
        model.decision_function(X).tobytes(),
    ]


def test_concurrent_solves_change_no_bits():
    alone = bits_of_everything()
    found = [None] * 4

    def work(k):
        found[k] = bits_of_everything()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


# ------------------------------------------------------------------ interrupts


def interrupting(progress):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["greedy", "block", "loop"])
def test_an_interrupt_in_a_callback_leaves_a_valid_state(name):
    objective, box, options = SOLVES[name]
    before = pairstep.minimize(objective, box, **options)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            pairstep.minimize(objective, box, callback=interrupting, **options)
    after = pairstep.minimize(objective, box, **options)
    np.testing.assert_array_equal(before.x, after.x)


@callbacks_needed
def test_an_interrupt_in_the_callback_of_a_fit_leaves_a_valid_state():
    class Interrupting(Listener):
        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "percent":
                raise KeyboardInterrupt

    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    with pytest.raises(KeyboardInterrupt):
        SVC(C=1e5, gamma=0.02, tol=1e-10).set_callbacks(Interrupting()).fit(X, y)
    X, y = svm_data(300)
    assert SVC().fit(X, y).fit_status_ == 0


def test_an_interrupt_in_callables_leaves_a_valid_state():
    def interrupted(x):
        raise KeyboardInterrupt

    falling = Smooth(lambda x: float(x @ x), interrupted)
    with pytest.raises(KeyboardInterrupt):
        pairstep.minimize(falling, SumBox(1.0), x0=[0.5, 0.5])


# Each takes a minute or more, in one call into native code.
ENDLESS = {
    "solve_qp": """
        F = rng.normal(size=(3000, 3000))
        Q = F.T @ F
        work = lambda: pairstep.solve_qp(Q, rng.normal(size=3000), lower=-1, tol=0)
    """,
    "simplex_lstsq": """
        F = rng.normal(size=(1500, 1500))
        b = F @ rng.random((1500, 4096)) / 750
        work = lambda: pairstep.simplex_lstsq(F, b)
    """,
    "SVC.fit": """
        from pairstep import svm
        X, y = rng.normal(size=(6000, 20)), rng.integers(0, 2, 6000)
        work = lambda: svm.SVC(C=1e6, gamma=0.02, tol=1e-12, max_iter=-1).fit(X, y)
    """,
    "SVC.predict": """
        from pairstep import svm
        X, y = rng.normal(size=(3000, 200)), rng.integers(0, 2, 3000)
        model = svm.SVC(max_iter=300).fit(X, y)
        Z = np.broadcast_to(rng.normal(size=(100_000, 200)).astype("f4"), (100_000, 200))
        work = lambda: [model.predict(Z) for _ in range(100)]
    """,
    "propose": """
        n = 3_000_000
        g, x, L = rng.normal(size=n), np.full(n, 1 / n), rng.random(n) + 0.1
        def work():
            while True:
                pairstep.propose("gs-1-lipschitz", g, x, 0.0, 1.0, alpha=0.1, lipschitz=L)
    """,
}
FRAME = """
import warnings
import numpy as np
import pairstep
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
{work}
print("go", flush=True)
try:
    work()
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
    assert pairstep.solve_qp(np.eye(3)).status == "optimal"
"""


@pytest.mark.faults
@pytest.mark.parametrize("name", ENDLESS)
def test_a_signal_is_answered(name):
    """A solve that would take a minute or more ends within seconds."""
    script = FRAME.format(work=textwrap.dedent(ENDLESS[name]))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().strip() == "go"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.send_signal(signal.SIGINT)
        answer, _ = child.communicate(timeout=10)
        assert answer.strip() == "interrupted"
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()


# ------------------------------------------------------------------ time limits


@pytest.mark.unsanitized
def test_the_time_limit_of_a_batch_holds_within_a_column():
    """A batch of a few columns that each take long."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(1200, 1000))
    b = rng.normal(size=(1200, 64))
    batch = pairstep.simplex_lstsq(A, b, lower=-1.0, upper=1.0, time_limit=0.05)
    assert (batch.status == "time_limit").any()
    # A batch that is solved before the clock is first read may end optimal.
    assert set(batch.status) <= {"time_limit", "optimal"}
    assert batch.solve_time < 5
    np.testing.assert_allclose(batch.x.sum(axis=1), 1.0, rtol=1e-12)


def test_a_batch_without_time_is_feasible():
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(50, 40)), rng.normal(size=(50, 100))
    batch = pairstep.simplex_lstsq(A, b, time_limit=0)
    # A batch that is solved before the clock is first read may end optimal.
    assert set(batch.status) <= {"time_limit", "optimal"}
    assert (batch.x >= 0).all()
    np.testing.assert_allclose(batch.x.sum(axis=1), 1.0, rtol=1e-12)


def test_a_time_limit_that_is_not_reached_changes_nothing():
    for objective, box, options in (SOLVES["greedy"], SOLVES["block"]):
        plain = pairstep.minimize(objective, box, **options)
        limited = pairstep.minimize(objective, box, time_limit=600, **options)
        np.testing.assert_array_equal(plain.x, limited.x)
        assert plain.n_iter == limited.n_iter
    large = LeastSquares(np.random.default_rng(6).normal(size=(300, 1100)), np.ones(300))
    assert pairstep.minimize(large, SumBox(1.0), time_limit=0).status == "time_limit"
