"""Results are the same when native threads and Python threads run at once.

`make test-threads` runs these under the thread sanitizer, which also detects
races that are harmless in practice.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from small_problem import solve_by

import pairstep
from pairstep import (
    LeastSquares,
    Quadratic,
    SumBox,
    _core,
    simplex_lstsq,
)
from pairstep.svm import SVC, SVR, NuSVC, OneClassSVM
from pairstep.svm.duals import c_classification
from pairstep.svm.engine import Kernel, solve

RNG = np.random.default_rng(9)
X = RNG.normal(size=(1200, 8))  # too many to be solved in float64 only
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
CLASSES = RNG.integers(0, 4, 300)
SPARSE = scipy.sparse.csr_array(RNG.random((400, 60)) * (RNG.random((400, 60)) < 0.05))
SPARSE_LABELS = (SPARSE.sum(axis=1) > SPARSE.sum(axis=1).mean()).astype(int)


@pytest.fixture(autouse=True)
def available(monkeypatch):
    """Use several native threads on any computer."""
    limit = {"threads": 4}
    monkeypatch.setattr(pairstep.threads, "available", lambda: limit["threads"])
    return limit


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def alone_and_together(available, jobs):
    """Check that each job gives the same bits alone on one thread and concurrently on several."""
    available["threads"] = 1
    alone = [job() for job in jobs]
    available["threads"] = 4
    with ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(lambda job: job(), jobs))
    for found, expected in zip(together, alone, strict=True):
        same(found, expected)


def fitted(model, *data):
    model.fit(*data)
    dual = model.dual_coef_
    return dual.toarray() if scipy.sparse.issparse(dual) else dual, model.intercept_


def test_steps_of_a_large_block(available):
    rows = RNG.normal(size=(2600, 8))
    noisy = rows[:, 0] * rows[:, 1] + 0.7 * RNG.normal(size=2600) > 0
    alone_and_together(available, [
        lambda: fitted(SVC(C=300.0, gamma=0.3), rows, noisy),
        lambda: fitted(SVC(C=200.0, gamma=0.3), rows, noisy),
    ])  # fmt: skip


def test_fits(available):
    K = X[:300] @ X[:300].T
    alone_and_together(available, [
        lambda: fitted(SVC(C=10.0), X, LABELS),
        lambda: fitted(SVC(), X[:300], CLASSES),  # more duals than threads
        lambda: fitted(SVC(kernel="precomputed"), K, LABELS[:300]),
        lambda: fitted(NuSVC(kernel="poly", nu=0.3), X[:300], LABELS[:300]),
        lambda: fitted(SVC(), SPARSE, SPARSE_LABELS),
        lambda: fitted(SVR(kernel="linear"), SPARSE, SPARSE.sum(axis=1)),
        lambda: fitted(OneClassSVM(nu=0.2), X),
    ])  # fmt: skip


def test_fits_that_shrink_and_evict_cached_rows(available):
    """Cached rows are reused between the whole problem and the shrunk one."""
    Z = RNG.normal(size=(4500, 8))
    y = Z[:, 0] * Z[:, 1] + 0.5 * RNG.normal(size=4500) > 0
    alone_and_together(available, 2 * [lambda: fitted(SVC(C=10.0, gamma=0.1, cache_size=8), Z, y)])


def test_predictions_of_one_model(available):
    models = [
        (SVC(decision_function_shape="ovo").fit(X[:300], CLASSES), X),
        (SVC().fit(SPARSE, SPARSE_LABELS), SPARSE),
        (SVC().fit(X.astype(np.float32), LABELS), X.astype(np.float32)),
    ]
    alone_and_together(
        available,
        2 * [lambda m=m, Z=Z: (m.predict(Z), m.decision_function(Z)) for m, Z in models],
    )


def test_batches(available):
    A, B = RNG.normal(size=(30, 12)), RNG.normal(size=(30, 400))
    wide = RNG.normal(size=(80, 70)), RNG.normal(size=(80, 150))

    def solved(*problem):
        batch = simplex_lstsq(*problem)
        return batch.x, batch.n_iter

    alone_and_together(available, [lambda: solved(A, B), lambda: solved(*wide)] * 2)


@pytest.mark.parametrize("rule", ["auto", "gs-1", "gs-q"])
def test_solves_that_share_their_problem(available, rule):
    A = RNG.normal(size=(60, 90))
    Q = A.T @ A + np.eye(90)
    shared = [Quadratic(Q, Q[0]), Quadratic(scipy.sparse.csr_array(Q)), LeastSquares(A, A[:, 0])]
    box = SumBox(1.0, -1.0, 1.0)

    def solved(objective):
        result = solve_by(rule, objective, box, max_iter=2000)
        return result.x, result.n_iter

    alone_and_together(available, 2 * [lambda f=f: solved(f) for f in shared])


def test_matrix_products(available):
    A, B = RNG.normal(size=(300, 150)), RNG.normal(size=(300, 140))
    alone_and_together(available, [
        lambda: _core.gram(A, None, pairstep.threads.available()),
        lambda: _core.inner(A, B, pairstep.threads.available()),
    ])  # fmt: skip


class Failure(Exception):
    pass


@pytest.mark.parametrize("count", [1, 4], ids=["within", "across"])
@pytest.mark.parametrize("how", ["stops", "fails"])
def test_canceled_work(count, how):
    """Work is canceled while other threads are running it."""

    def keep_going(*_):
        if how == "fails":
            raise Failure
        return False

    # Random labels make a fit that takes far longer than the first interrupt check.
    rng = np.random.default_rng(1)
    Z, labels = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    problem = c_classification(
        np.flatnonzero(labels), np.flatnonzero(labels == 0), np.full(len(Z), 1e5)
    )
    fit = {"tol": 1e-12, "max_iter": 10**9, "time_limit": 60.0, "cache_bytes": 2**24}

    def solved():
        return solve(
            Z, Kernel("rbf", 0.02), count * [problem], threads=4, keep_going=keep_going, **fit
        )

    if how == "fails":
        with pytest.raises(Failure):
            solved()
    else:
        assert [solution.status for solution in solved()] == count * ["stopped"]


def test_the_instruction_set_changes_during_solves():
    """One thread changes the instruction set while others read it."""
    before = _core.instruction_set()
    A, B = RNG.normal(size=(30, 12)), RNG.normal(size=(30, 400))
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(lambda: [simplex_lstsq(A, B).x for _ in range(5)])
        while not work.done():
            for name in _core.instruction_sets():
                assert _core.use_instruction_set(name)
    assert _core.use_instruction_set(before)
    for x in work.result():  # the factorization uses fused multiply-adds if available
        np.testing.assert_allclose(x, simplex_lstsq(A, B).x, rtol=0, atol=1e-12)
