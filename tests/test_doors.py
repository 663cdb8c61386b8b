"""What every public call promises besides its result, as one table of doors by contracts.

A row of `DOORS` is a door: a public call that solves something. Its columns are the contracts. A
door that does not offer one says why (`No`), and then it must refuse the argument. A new door is a
new row.
"""

import copy
import functools
import logging
import math
import pickle
import re
import signal
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from oracles import sum_error_in_ulps
from sklearn.exceptions import ConvergenceWarning

import pairstep
from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    SimplexRegressor,
    Smooth,
    SumBox,
    coordinate_descent,
    efficient_frontier,
    from_qp,
    minimize,
    path,
    propose,
    simplex_lstsq,
    solve_qp,
    solve_qps,
    svm,
)
from pairstep.solve import oracle

RNG = np.random.default_rng(0)
N = 30
ROOT = RNG.normal(size=(N + 10, N))
Q = ROOT.T @ ROOT
C, MEAN, HELD = RNG.normal(size=N), RNG.uniform(0.0, 0.1, N), np.full(N, 1 / N)
UPPER, ROWS = np.full(N, 0.5), RNG.normal(size=(2, N))
WIDE = RNG.normal(size=(60, 700))
FEW, MANY = RNG.normal(size=(20, 6)), RNG.normal(size=(20, 300))
MATRICES, RIGHT = RNG.normal(size=(4, 20, 6)), RNG.normal(size=(4, 20))
RISKS = np.array([ROOT.T @ (w[:, None] * ROOT) for w in RNG.uniform(0.5, 1.5, (4, N + 10))])
LABELED = pd.DataFrame(Q, map(str, range(N)), map(str, range(N)))
COSTS = pd.Series(C, LABELED.index[::-1])
X, LABELS = RNG.normal(size=(300, 5)), RNG.integers(0, 3, 300)
Y = X[:, 0] + 0.3 * RNG.normal(size=300)
INPUTS = [value for value in globals().values() if isinstance(value, np.ndarray)]
SMOOTH = Smooth(lambda x: float(x @ Q @ x / 2 + C @ x), lambda x: Q @ x + C, lambda x: Q, n=N)
FIRST_ORDER = Smooth(lambda x: float(x @ Q @ x / 2 + C @ x), lambda x: Q @ x + C, n=N)
BOX = SumBox(1.0, -1.0, 1.0)


class No(str):
    """Why a door does not offer a contract."""


class Oracle:
    """The least that the block solver needs to know of ``x'Qx / 2 + C'x``."""

    def __init__(self, x, Q=Q, C=C):
        self.x, self.Q, self.C = x, Q, C
        self.recompute_gradient()

    def select_candidates(self, count, with_free):
        size = max(np.abs(self.gradient - self.C).max(), np.abs(self.C).max())
        return np.arange(len(self.x)), self.gradient, size

    def block(self, members):
        return self.Q[np.ix_(members, members)]

    def update_gradient(self, moved, delta):
        self.gradient = self.gradient + self.Q[:, moved] @ delta

    def recompute_gradient(self):
        self.gradient = self.Q @ self.x + self.C


def solve_oracle(**options):
    x = HELD.copy()
    outcome = oracle.solve_oracle(Oracle(x), x, SumBox(), **options)
    return x, outcome


def fit(model, data, callback=None):
    """Fit an SVM; its options are parameters, and callbacks are given to a method."""
    return (model if callback is None else model.set_callbacks(callback)).fit(*data)


def fitted(name, y, **given):
    def solve(callback=None, **options):
        return fit(getattr(svm, name)(**given, **options), (X, y), callback)

    return solve


def updated(**options):
    return (
        svm.SVC(**options).fit(X[:250], LABELS[:250]).update(X[250:], LABELS[250:], remove=[0, 7])
    )


@contextmanager
def quiet():
    """Ignore that a fit did not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# ------------------------------------------------------------------ calls that take seconds


@functools.cache
def long_data(kind):
    rng = np.random.default_rng(1)
    if kind == "matrix":
        F = rng.normal(size=(3000, 3000))
        return F.T @ F
    if kind == "columns":
        return rng.normal(size=(2500, 6000)), rng.normal(size=2500)
    if kind == "batch":
        return rng.normal(size=(600, 500)), 10 * rng.normal(size=(600, 4000))
    if kind == "assets":
        F = rng.normal(size=(180, 150)) + 0.5 * rng.normal(size=(180, 1))
        return F.T @ F / 150
    return rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)  # labels that no kernel explains


def slow(x):
    time.sleep(0.005)
    return float(np.log(np.exp(np.arange(100) / 20 * x).sum()) + x @ x)


def long_fit(name, callback=None, **options):
    given = {"gamma": 0.02, "tol": 1e-10, **options}
    return fit(getattr(svm, name)(**given), long_data("labels"), callback)


def long_path(**options):
    model = svm.SVC(gamma=0.02, tol=1e-10, **options)
    return svm.path(*long_data("labels"), [1e5], model=model)


@functools.cache
def long_model():
    with quiet():
        return svm.SVC(max_iter=100).fit(*long_data("labels"))


def predict_often(**_):
    samples = np.broadcast_to(long_data("labels")[0][0], (200_000, 20))
    return [long_model().predict(samples) for _ in range(1000)]


def propose_often(**_):
    n = 3_000_000
    g, x, L = np.cos(np.arange(n)), np.full(n, 1 / n), 1.5 + np.sin(np.arange(n))
    while True:
        propose("gs-1-lipschitz", g, x, 0.0, 1.0, alpha=0.1, lipschitz=L)


BY_WORK = No("a single problem is solved by as many threads as are worth starting")
ONLY_MINIMIZE = No("minimize records the convergence")


@dataclass(frozen=True)
class Door:
    """A public call, and what it offers."""

    solve: Callable[..., Any]  # a small problem; options are keywords
    bits: Callable[[Any], bytes]  # of the result
    long: Callable[..., Any] | No  # a call that takes seconds
    time_limit: str | type[Exception] | No = "time_limit"  # the status, or what is raised
    max_iter: str | No = "max_iter"  # the status
    callback: str | No = "progress"  # what it receives
    # A part of the last line that it prints; "" if it prints only every second.
    verbose: str | No = "optimal after "
    n_jobs: No | None = BY_WORK
    history: No | None = ONLY_MINIMIZE
    pickles: bool | No = True


def of_x(result):
    return result.x.tobytes()


def of_model(model):
    return model.dual_coef_.tobytes() + model.intercept_.tobytes()


ONE_AT_A_TIME = No("a batch has no point in between that belongs to all its problems")
AT_ONCE = No("it takes microseconds to milliseconds for arguments of ordinary size")
NO_OPTIONS = {"time_limit": AT_ONCE, "max_iter": AT_ONCE, "callback": AT_ONCE, "verbose": AT_ONCE}
SMALL = No("rows, caps and frontiers are for hundreds of variables, and take less than a second")
WARNS = No("a fit warns, and tests of scikit-learn's interface see that")
MINIMIZE = {"bits": of_x, "history": None}
FIT = {
    "bits": of_model, "time_limit": ConvergenceWarning, "max_iter": WARNS,
    "callback": "scikit-learn", "verbose": " solved, ", "n_jobs": None,
}  # fmt: skip
SEARCH = FIT | {"bits": lambda search: search.cv_results_["mean_test_score"].tobytes(),
                "verbose": ""}  # fmt: skip
DOORS = {
    "solve_qp, small": Door(
        lambda **options: solve_qp(Q, C, upper=UPPER, **options), of_x,
        lambda **options: solve_qp(long_data("matrix"), lower=-1.0, tol=0.0, **options),
    ),
    "solve_qp, labels": Door(
        lambda **options: solve_qp(LABELED, COSTS, **options),
        lambda result: pickle.dumps((result.weights.index.tolist(), result.weights.tolist())),
        No("as solve_qp"),
    ),
    "solve_qp, factors": Door(
        lambda **options: solve_qp((WIDE, 0.1), **options), of_x,
        No("as minimize, block"),
    ),
    "solve_qp, rows": Door(
        lambda **options: solve_qp(Q, C, rows=ROWS, rows_lower=0.01, **options), of_x, SMALL,
        callback=No("it is called only for the solution without rows"),
    ),
    "solve_qp, caps": Door(
        lambda **options: solve_qp(Q, C, upper=UPPER, turnover=(HELD, 0.2), **options), of_x, SMALL,
        time_limit=TimeoutError, verbose=No("caps print nothing"),
        max_iter=No("without the solution without caps the status is stalled"),
        callback=No("it is called only for the solution without caps"),
    ),
    "solve_qp, names": Door(
        lambda **options: solve_qp(Q, C, max_names=5, **options), of_x,
        lambda **options: solve_qp(long_data("assets"), max_names=12, **options),
    ),
    "from_qp": Door(
        lambda **options: minimize(*from_qp(Q, C, A=np.ones(N), b=1.0, lb=np.zeros(N)), **options),
        of_x, No("as solve_qp"), history=None,
    ),
    "simplex_lstsq": Door(
        lambda **options: simplex_lstsq(FEW, MANY[:, 0], **options), of_x, No("as minimize, block"),
        n_jobs=None,
    ),
    "simplex_lstsq, batch": Door(
        lambda **options: simplex_lstsq(FEW, MANY, **options), of_x,
        lambda **options: simplex_lstsq(*long_data("batch"), lower=-1.0, upper=1.0, **options),
        callback=ONE_AT_A_TIME, verbose="300 of 300 right-hand sides optimal", n_jobs=None,
    ),
    "simplex_lstsq, matrices": Door(
        lambda **options: simplex_lstsq(MATRICES, RIGHT, **options), of_x, No("as solve_qps"),
        callback=ONE_AT_A_TIME, verbose="4 of 4 problems optimal", n_jobs=None,
    ),
    "simplex_lstsq, wide batch": Door(
        lambda **options: simplex_lstsq(WIDE[:, :100], WIDE[:, 100:400], **options), of_x,
        No("as simplex_lstsq, batch"), callback=ONE_AT_A_TIME,
        verbose="300 of 300 right-hand sides optimal", n_jobs=None,
    ),
    "solve_qps": Door(
        lambda **options: solve_qps(RISKS, C, **options), of_x,
        lambda **options: solve_qps(np.array([Q] * 4), np.broadcast_to(C, (4, N)),
                                    l1=0.1, **options)
        if "time_limit" not in options else solve_qps(Q, np.zeros((200_000, N)) + C, **options),
        callback=ONE_AT_A_TIME, verbose="4 of 4 problems optimal", n_jobs=None,
    ),
    "minimize, dense": Door(
        lambda **options: minimize(Quadratic(Q, C), BOX, **options), **MINIMIZE,
        long=No("as solve_qp"),
    ),
    "minimize, l1": Door(
        lambda **options: minimize(L1Penalized(Quadratic(Q, C), 0.5, 0.01), BOX, **options),
        **MINIMIZE, long=No("as solve_qp"),
    ),
    "minimize, block": Door(
        lambda **options: minimize(FactorModel(WIDE, 0.1), BOX, **options), **MINIMIZE,
        long=lambda **options: minimize(
            LeastSquares(*long_data("columns")), BOX, tol=0.0, **options
        ),
    ),
    "minimize, smooth": Door(
        lambda **options: minimize(SMOOTH, BOX, **options), **MINIMIZE,
        long=No("as minimize, first order"),
    ),
    "minimize, first order": Door(
        lambda **options: minimize(FIRST_ORDER, BOX, **options), **MINIMIZE,
        long=lambda **options: minimize(Smooth(slow, n=100), SumBox(), tol=0.0, **options),
    ),
    "coordinate_descent, native": Door(
        lambda **options: coordinate_descent(Quadratic(Q, C), BOX, rule="gs-q", **options),
        **MINIMIZE,
        long=lambda **options: coordinate_descent(
            Quadratic(long_data("matrix")), SumBox(lower=-1.0), tol=0.0, **options
        ),
    ),
    "coordinate_descent, loop": Door(
        lambda **options: coordinate_descent(FIRST_ORDER, BOX, **options), **MINIMIZE,
        long=lambda **options: coordinate_descent(
            Smooth(slow, n=100), SumBox(), tol=0.0, **options
        ),
    ),
    "path": Door(
        lambda **options: list(path(lambda t: Quadratic(Q, t * C), over=[0.0, 1.0], **options))[-1],
        of_x, No("the iterator may be left at any time"), history=None,
    ),
    "efficient_frontier": Door(
        lambda **options: efficient_frontier(Q, MEAN, n_points=4, **options), of_x, SMALL,
        time_limit=TimeoutError, callback=No("the corners are computed at once"),
        max_iter=No("it limits only the first corner, and is refused where that is not found"),
        verbose=" corner portfolios",
    ),
    "solve_oracle": Door(
        solve_oracle, lambda found: found[0].tobytes(), No("as minimize, block"),
        callback=No("an oracle is called in every round"), verbose=No("an oracle may print"),
        max_iter=No("it has a reason, not a status"),
        pickles=No("its outcome is a named tuple of numbers"),
    ),
    "SimplexRegressor": Door(
        lambda **options: SimplexRegressor(**options).fit(FEW, MANY[:, 0]),
        lambda model: model.coef_.tobytes(), No("as simplex_lstsq"), time_limit=ConvergenceWarning,
        callback=No("a fit takes milliseconds"), max_iter=WARNS,
    ),
    "SVC": Door(fitted("SVC", LABELS), **FIT, long=functools.partial(long_fit, "SVC", C=1e5)),
    "NuSVC": Door(fitted("NuSVC", LABELS), **FIT,
                  long=functools.partial(long_fit, "NuSVC", nu=0.6)),
    "SVR": Door(fitted("SVR", Y), **FIT, long=functools.partial(long_fit, "SVR", C=1e5)),
    "NuSVR": Door(fitted("NuSVR", Y), **FIT, long=No("as SVR")),
    "OneClassSVM": Door(fitted("OneClassSVM", Y), **FIT, long=No("as SVC")),
    "QuantileSVR": Door(fitted("QuantileSVR", Y), **FIT,
                        long=No("as SVR")),
    "SVCCV": Door(
        fitted("SVCCV", LABELS, Cs=[1.0, 10.0], gammas=[0.2], cv=2), **SEARCH,
        long=lambda **options: fit(
            svm.SVCCV(Cs=[1e5, 1e6], gammas=np.linspace(0.02, 0.03, 10), cv=2, refit=False,
                      tol=1e-10, time_limit=options.get("time_limit")),
            long_data("labels"), options.get("callback"),
        ),
    ),
    "SVRCV": Door(fitted("SVRCV", Y, Cs=[1.0, 10.0], gammas=[0.2], cv=2), **SEARCH,
                  long=No("as SVCCV")),
    "update": Door(updated, **FIT | {"callback": No("the repair of a fit is not a fit")},
                   long=No("as SVC")),
    "svm.path": Door(
        lambda **options: svm.path(X, LABELS, [1.0, 10.0], model=svm.SVC(**options)),
        **FIT | {"bits": lambda found: found.coefficients.tobytes(),
                 "callback": No("it has no estimator of its own"),
                 "verbose": No("one fit is not worth a line")},
        long=long_path,
    ),
    "predict": Door(
        lambda **options: long_model().predict(long_data("labels")[0], **options),
        lambda labels: labels.tobytes(), predict_often, **NO_OPTIONS, pickles=No("it is an array"),
    ),
    "propose": Door(
        lambda **options: propose("gs-1", C, HELD, 0.0, 1.0, alpha=0.1, **options),
        lambda step: step.delta.tobytes(), propose_often, **NO_OPTIONS,
    ),
    "leave_one_out": Door(
        lambda **options: svm.leave_one_out(svm.SVC().fit(X, LABELS), X, LABELS, **options),
        lambda found: found.decisions.tobytes(), No("as SVC: it repairs a fit"),
        time_limit=No("it has no result without all samples"), max_iter=WARNS,
        callback=No("its lines show the progress"), verbose="",
    ),
}  # fmt: skip


def doors(*contracts):
    """Run a test with every door that offers these contracts."""
    return pytest.mark.parametrize(
        "door",
        [pytest.param(door, id=name) for name, door in DOORS.items()
         if not any(isinstance(getattr(door, contract), No) for contract in contracts)],
    )  # fmt: skip


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("door", "argument"),
    [pytest.param(door, argument, id=f"{name}-{argument}") for name, door in DOORS.items()
     for argument in ("time_limit", "n_jobs", "history")
     if isinstance(getattr(door, argument), No)],
)  # fmt: skip
def test_an_argument_that_is_not_offered_is_refused_by_name(door, argument):
    with pytest.raises((TypeError, ValueError), match=argument):
        door.solve(**{argument: 2})


@doors()
def test_arguments_are_neither_changed_nor_kept_as_results(door):
    """Every array that the caller can reach may be overwritten after a call."""
    before = [given.copy() for given in INPUTS]
    result = door.solve()
    bits = door.bits(result)
    for given, copied in zip(INPUTS, before, strict=True):
        assert given.flags.writeable
        np.testing.assert_array_equal(given, copied)
    for array in vars(result).values() if hasattr(result, "__dict__") else ():
        if isinstance(array, np.ndarray) and array.flags.writeable and array.dtype.kind == "f":
            array[...] = 7.0
    for given, copied in zip(INPUTS, before, strict=True):
        np.testing.assert_array_equal(given, copied)
    assert door.bits(door.solve()) == bits


@doors("pickles")
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_results_are_copied_and_pickled(door, again):
    result = door.solve()
    assert door.bits(again(result)) == door.bits(result)


# ------------------------------------------------------------------ threads


@doors()
def test_bits_depend_neither_on_threads_nor_on_other_calls(door):
    with threadpoolctl.threadpool_limits(1):
        alone = door.bits(door.solve())
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(door.solve) for _ in range(4)]
        neighbor = pool.submit(DOORS["simplex_lstsq, batch"].solve)
    assert [door.bits(other.result()) for other in others] == [alone] * 4
    assert neighbor.result().success.all()


@doors("n_jobs")
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_bits_do_not_depend_on_n_jobs(door, n_jobs):
    assert door.bits(door.solve(n_jobs=n_jobs)) == door.bits(door.solve())


def test_settings_of_other_libraries_are_not_changed():
    def setting():
        return [(p["filepath"], p["num_threads"]) for p in threadpoolctl.threadpool_info()]

    before, seen = setting(), []
    solve_qp(Q, C, callback=lambda _: seen.append(setting()))
    assert all(found == before for found in [*seen, setting()])
    assert seen


# ------------------------------------------------------------------ time limits


@doors("time_limit")
def test_no_time(door):
    """A call without time ends at once. What a door solves before it reads the clock is optimal."""
    if door.time_limit is TimeoutError:
        with pytest.raises(TimeoutError, match="time_limit = 0"):
            door.solve(time_limit=0.0)
    elif door.time_limit is ConvergenceWarning:
        with quiet():
            door.solve(time_limit=0.0)
    else:
        result = door.solve(time_limit=0.0)
        statuses = set(np.atleast_1d(getattr(result, "status", "time_limit")).tolist())
        assert statuses <= {"time_limit", "optimal"}


@doors("max_iter")
def test_no_iterations(door):
    statuses = set(np.atleast_1d(door.solve(max_iter=0).status).tolist())
    assert statuses <= {"max_iter", "optimal"}


@doors("time_limit")
def test_a_time_limit_that_is_not_reached_changes_nothing(door):
    assert door.bits(door.solve(time_limit=600.0)) == door.bits(door.solve())


@pytest.mark.unsanitized
@doors("time_limit", "long")
def test_a_time_limit_is_kept(door):
    began = time.process_time()  # the time of other processes does not count
    if door.time_limit is ConvergenceWarning:
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            door.long(time_limit=0.3)
    else:
        result = door.long(time_limit=0.3)
        assert "time_limit" in np.atleast_1d(result.status).tolist()
        x = np.atleast_2d(result.x)
        begun = x[np.isfinite(x).all(axis=1)][:50]
        assert all(sum_error_in_ulps(point, 1.0) <= 1 for point in begun)
    assert time.process_time() - began < 6.0  # of all threads, with the preparation of the data


# ------------------------------------------------------------------ interrupts


@pytest.mark.faults
@pytest.mark.unsanitized
@doors("long")
def test_an_interrupt_is_answered_within_a_second(door):
    """As Ctrl-C; later calls are not affected."""
    sent, bits = 0.0, door.bits(door.solve())

    def interrupt(*_):
        nonlocal sent
        sent = time.process_time()
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            door.long(time_limit=30.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)
    assert time.process_time() - sent < 1.0
    assert door.bits(door.solve()) == bits


# ------------------------------------------------------------------ callbacks


def progress_doors(test):
    return pytest.mark.parametrize(
        "door",
        [
            pytest.param(door, id=name)
            for name, door in DOORS.items()
            if door.callback == "progress"
        ],
    )(test)


@progress_doors
def test_a_callback_sees_progress_and_changes_nothing(door):
    plain, seen, several = door.solve(), [], door is DOORS["path"]

    def look(progress):
        seen.append((progress.n_iter, progress.time, progress.x.copy()))
        assert np.isfinite([progress.value, progress.violation]).all() or progress.n_iter <= 1
        assert progress.value >= plain.fun - 1e-9 * (1 + abs(plain.fun)) or several
        progress.x[:] = np.nan  # a copy

    watched = door.solve(callback=look)
    assert door.bits(watched) == door.bits(plain)
    assert (watched.n_iter, watched.status, watched.fun) == (plain.n_iter, plain.status, plain.fun)
    assert seen
    counts, times, points = zip(*seen, strict=True)
    if not several:  # a path has several solves
        assert list(counts) == sorted(counts)
        assert list(times) == sorted(times)
        assert counts[-1] <= plain.n_iter
    for x in points:
        assert abs(math.fsum(x) - 1.0) <= 1e-9


@progress_doors
def test_a_callback_may_stop(door):
    result = door.solve(callback=lambda progress: True)
    assert result.status in ("stopped", "optimal")  # a point within the tolerance is optimal
    assert result.n_iter <= door.solve().n_iter


@progress_doors
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_in_a_callback_reaches_the_caller(door, error):
    bits = door.bits(door.solve())

    def fail(progress):
        raise error

    for _ in range(2):
        with pytest.raises(error):
            door.solve(callback=fail)
    assert door.bits(door.solve()) == bits


class Recorder:
    """A callback of scikit-learn's protocol, which may stop a fit or fail."""

    def __init__(self, at_end=lambda: False):
        self.events, self.at_end = [], at_end

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        return context.task_name in ("percent", "candidate-split-evaluation") and self.at_end()


def scikit_learn_doors(*contracts):
    named = [
        pytest.param(door, id=name) for name, door in DOORS.items()
        if door.callback == "scikit-learn"
        and not any(isinstance(getattr(door, contract), No) for contract in contracts)
    ]  # fmt: skip
    return lambda test: pytest.mark.skipif(
        not hasattr(svm.SVC, "set_callbacks"), reason="scikit-learn has them from 1.9 on"
    )(pytest.mark.parametrize("door", named)(test))


@scikit_learn_doors()
def test_a_fit_with_a_callback_of_scikit_learn(door):
    recorder = Recorder()
    assert door.bits(door.solve(callback=recorder)) == door.bits(door.solve())
    parts = ("percent", "candidate-split-evaluation", "refit-with-best-params")
    events = [event for event in recorder.events if not event.endswith(parts)]
    assert events == ["setup", "begin fit", "end fit", "teardown"]


@scikit_learn_doors("long")
def test_a_callback_of_scikit_learn_may_stop_a_fit(door):
    """Without a warning: it was asked for."""
    recorder = Recorder(at_end=lambda: True)
    model = door.long(callback=recorder, time_limit=60)
    assert recorder.events[-1] == "teardown"
    assert sum(event.startswith("end") for event in recorder.events) <= 4
    if hasattr(model, "optimality_"):
        assert model.optimality_.status.tolist() == ["stopped"]
        assert np.isfinite(model.dual_coef_).all()


@scikit_learn_doors("long")
def test_an_error_in_a_callback_of_scikit_learn_reaches_the_caller(door):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        door.long(callback=Recorder(at_end=fail))


# ------------------------------------------------------------------ messages


@doors()
def test_nothing_is_printed_by_default(door, capfd):
    door.solve()
    assert capfd.readouterr() == ("", "")


@doors("verbose")
def test_verbose_prints_lines_of_which_the_last_is_a_summary(door, capsys, caplog):
    with caplog.at_level(logging.INFO, logger="pairstep"):
        bits = door.bits(door.solve(verbose=True))
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[pairstep] ") for line in lines)
    if door.verbose:
        assert door.verbose in lines[-1]
        assert caplog.messages
    assert door.bits(door.solve()) == bits
    assert {record.name for record in caplog.records} == {"pairstep"}


@pytest.mark.parametrize("name", ["solve_qp, small", "solve_qp, names", "minimize, block"])
def test_lines_show_the_progress_every_second(name, capsys):
    DOORS[name].long(verbose=True, time_limit=1.3)
    *progress, end = capsys.readouterr().out.splitlines()
    seconds = re.search(r"time_limit after (\S+) s", end)
    assert seconds, end
    assert 1 <= len(progress) <= float(seconds[1]) + 1


@doors("history")
def test_a_history_ends_at_the_result(door):
    plain = door.solve()
    for callback in (None, lambda progress: False):
        result = door.solve(history=True, callback=callback)
        assert result.x == pytest.approx(plain.x, abs=1e-6)  # a small problem has no direct solve
        h = result.history
        assert len({len(c) for c in (h.value, h.violation, h.moved, h.interior, h.time)}) == 1
        assert h.value[-1] == pytest.approx(result.fun, rel=1e-9, abs=1e-12)
        assert h.moved[0] == 0
        assert (np.diff(h.time) >= 0).all()


def test_every_public_call_that_solves_is_a_door():
    """A new one needs a row."""
    named = " ".join(DOORS)
    public = [
        *(
            name
            for name in pairstep.__all__
            if name.islower() and name.startswith(("solve", "min", "coordinate"))
        ),
        *(name for name in svm.__all__ if hasattr(getattr(svm, name), "fit")),
    ]
    assert not {name for name in public if name not in named}
