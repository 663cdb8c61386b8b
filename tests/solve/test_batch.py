"""Least squares with many right-hand sides equals solving each column alone."""

import math
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse
from oracles import cancelling, kkt_violation, problem, sum_error_in_ulps

from pairstep import simplex_lstsq, threads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(15, 7))
B = np.concatenate([A @ RNG.dirichlet(np.ones(7), 40).T, RNG.normal(size=(15, 30))], axis=1)
B += 0.05 * RNG.normal(size=B.shape)
OPTIONS = {
    "simplex": {},
    "bounded": {"upper": 0.3, "lower": [-0.1] * 3 + [0.0] * 4},
    "ridge": {"ridge": 0.7},
    "total": {"total": -2.5, "lower": -1.0, "upper": 1.0},
    "range": {"total": (0.3, 0.8)},
    "open range": {"total": (0.3, np.inf), "lower": -1.0},
    "no lower bounds": {"lower": -np.inf},
    "no bounds, no sum": {"total": (-np.inf, np.inf), "lower": -np.inf},
    "fixed": {"lower": 1 / 7, "upper": 1 / 7},
    "tight": {"tol": 1e-11},
}


def value(A, b, x, ridge=0.0):
    return 0.5 * np.sum((A @ x - b) ** 2) + 0.5 * ridge * np.sum(x**2)


def assert_columns(A, B, batch, total=1.0, lower=0.0, upper=np.inf, ridge=0.0, tol=1e-8):
    """Recompute and check everything, column by column."""
    n = A.shape[1]
    assert batch.x.shape == (B.shape[1], n)
    for field in (batch.fun, batch.status, batch.n_iter, batch.kkt_violation):
        assert field.shape == (B.shape[1],)
    for k, b in enumerate(B.T):
        x = batch.x[k]
        gradient = lambda x, b=b: A.T @ (A @ x - b) + ridge * x  # noqa: E731
        p = problem(None, gradient, n, total, lower, upper)
        assert batch.status[k] == "optimal"
        assert (x >= p.lower).all()
        assert (x <= p.upper).all()
        assert isinstance(total, tuple) or sum_error_in_ulps(x, total) <= 1
        assert p.low[0] - 1e-14 <= math.fsum(x) <= p.high[0] + 1e-14
        size = cancelling(p, x)
        assert kkt_violation(p, x) <= tol * size * 1.001 + 1e-13 * size
        assert batch.kkt_violation[k] == pytest.approx(kkt_violation(p, x), abs=1e-12 * size)
        assert batch.fun[k] == pytest.approx(value(A, b, x, ridge), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_each_column_as_if_alone(name, sparse):
    options = OPTIONS[name]
    given = scipy.sparse.csr_array(A) if sparse else A
    batch = simplex_lstsq(given, B, **options)
    assert_columns(A, B, batch, **options)
    for k in range(0, B.shape[1], 7):
        one = simplex_lstsq(given, B[:, k], **options)
        assert batch.fun[k] == pytest.approx(one.fun, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 100])
def test_chunks_of_every_size(count):
    right = np.resize(B, (15, count))
    batch = simplex_lstsq(A, right)
    assert_columns(A, right, batch)


def test_more_columns_than_a_slab():
    right = np.tile(B, (1, 60))[:, :4100]
    batch = simplex_lstsq(A, right)
    assert (batch.status == "optimal").all()
    np.testing.assert_allclose(batch.fun, np.tile(batch.fun[:70], 60)[:4100], atol=1e-9)


def test_no_columns():
    batch = simplex_lstsq(A, np.empty((15, 0)))
    assert batch.x.shape == (0, 7)
    assert len(batch.status) == len(batch.fun) == len(batch.kkt_violation) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_column_fails_alone(bad):
    right = B.copy()
    right[3, 5] = right[0, 0] = right[14, 69] = bad
    batch = simplex_lstsq(A, right)
    wrong = np.isin(np.arange(70), [0, 5, 69])
    assert (batch.status[wrong] == "invalid").all()
    assert np.isnan(batch.x[wrong]).all()
    assert np.isnan(batch.fun[wrong]).all()
    good = simplex_lstsq(A, B)
    assert (batch.status[~wrong] == "optimal").all()
    np.testing.assert_allclose(batch.fun[~wrong], good.fun[~wrong], rtol=1e-9)
    everything = simplex_lstsq(A, np.full((15, 3), bad))
    assert (everything.status == "invalid").all()


def test_rank_deficient():
    rng = np.random.default_rng(1)
    few = rng.normal(size=(4, 30))
    twins = np.repeat(rng.normal(size=(20, 10)), 2, axis=1)
    nearly = np.concatenate([few, few + 1e-9 * rng.normal(size=few.shape)], axis=1)
    for matrix in (few, twins, nearly, np.zeros((5, 6)), np.ones((5, 6))):
        right = rng.normal(size=(len(matrix), 40))
        for options in ({}, {"upper": 0.25}, {"tol": 1e-10}):
            assert_columns(matrix, right, simplex_lstsq(matrix, right, **options), **options)


def test_ill_scaled_columns():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(40, 20)) * np.geomspace(1e-4, 1e4, 20)
    right = rng.normal(size=(40, 50))
    assert_columns(matrix, right, simplex_lstsq(matrix, right))


def test_order_of_b_does_not_matter():
    batch, other = simplex_lstsq(A, B), simplex_lstsq(A, np.asfortranarray(B))
    np.testing.assert_array_equal(batch.x, other.x)
    turned = simplex_lstsq(A, B[:, ::-1])
    np.testing.assert_allclose(turned.fun[::-1], batch.fun, rtol=1e-9, atol=1e-12)
    whole = simplex_lstsq(A, np.rint(B).astype(int))
    np.testing.assert_array_equal(whole.x, simplex_lstsq(A, np.rint(B)).x)


@pytest.mark.unsanitized
def test_time_limit_holds_for_all_second_solves_together():
    """Columns that cannot reach a tolerance of 0 are solved again, one by one."""
    rng = np.random.default_rng(5)
    matrix, right = rng.normal(size=(50, 40)), rng.normal(size=(50, 2000))
    began = time.process_time()
    simplex_lstsq(matrix, right, tol=0.0, time_limit=0.2, n_jobs=2)
    assert time.process_time() - began < 1.2


# ------------------------------------------------------------------ processes and threads


def test_threads_respect_the_environment(monkeypatch):
    cores = len(os.sched_getaffinity(0))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= threads.available() <= cores
    free = threads.available()
    for given, expected in (("1", 1), ("1,4", 1), ("1000", free), ("", free), ("no", free),
                            ("0", free), ("-3", free)):  # fmt: skip
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        assert threads.available() == expected, given


def test_threads_respect_affinity():
    script = """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import numpy as np
        from pairstep import simplex_lstsq, threads
        assert (simplex_lstsq(np.eye(3), np.ones((3, 100))).status == "optimal").all()
        assert threads.available() == 1
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=True)


def test_max_iter_includes_the_iterations_of_a_second_solve():
    """A right-hand side whose point fails the recomputed test is solved again."""
    rng = np.random.default_rng(3)
    matrix, right = rng.normal(size=(60, 50)), rng.normal(size=(60, 5))
    for limit in (1, 3, 10):
        batch = simplex_lstsq(matrix, right, max_iter=limit)
        assert limit > 1 or (batch.status == "max_iter").all()
        assert batch.n_iter.max() <= limit
        assert max(sum_error_in_ulps(x, 1.0) for x in batch.x) <= 1
