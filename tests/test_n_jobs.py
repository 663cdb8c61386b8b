"""The number of threads follows n_jobs, then joblib, then threadpoolctl.

The number of CPUs is replaced, because no call can show what a computer with eight would do.
"""

import os

import joblib
import numpy as np
import pytest
import threadpoolctl

from pairstep import simplex_lstsq, threads

A, B = np.random.default_rng(0).normal(size=(2, 20, 40))
B = np.tile(B, 10)


@pytest.fixture
def many(monkeypatch):
    """Pretend that the computer has eight CPUs."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(threads.Path, "read_text", lambda self: "max 100000")
    threads._cgroup_limit.cache_clear()
    assert threads.available() == 8


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [(None, 8), (1, 1), (3, 3), (8, 8), (100, 8), (-1, 8), (-2, 7), (-8, 1), (-100, 1)],
)
def test_n_jobs_has_the_meaning_of_joblib(n_jobs, expected, many):
    assert threads.count(n_jobs) == expected


def test_small_problems_use_one_thread(many):
    two = 2 * threads.MULTIPLICATIONS_PER_START
    for work, expected in ((0, 1), (two - 1, 1), (two, 8)):
        assert threads.count(None, work) == expected
    assert threads.for_work(2 * threads.MULTIPLICATIONS_PER_START) == 2


def test_n_jobs_none_follows_the_configuration_of_joblib(many):
    with joblib.parallel_config(n_jobs=3):
        assert threads.count(None) == 3
        assert threads.count(5) == 5
        assert threads.for_work(1e12) == 3
    with joblib.parallel_config(n_jobs=-2):
        assert threads.count(None) == 7
    with joblib.parallel_config(backend="threading"):
        assert threads.count(None) == 8


def _counts():
    return threads.count(None), threads.count(2)


def test_one_thread_inside_a_joblib_worker_by_default(many):
    run = joblib.Parallel(n_jobs=2, backend="threading")
    assert run(joblib.delayed(_counts)() for _ in range(4)) == [(1, 2)] * 4
    assert threads.count(None) == 8


def _inside():
    return threads.count(None)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_one_thread_inside_a_process_of_joblib(backend):
    run = joblib.Parallel(n_jobs=2, backend=backend)
    assert run(joblib.delayed(_inside)() for _ in range(2)) == [1, 1]


def test_limits_of_threadpoolctl_hold(many):
    with threadpoolctl.threadpool_limits(2):
        assert threads.available() == 2
        assert threads.count(None) == threads.count(5) == 2
    assert threads.available() == 8
    with threadpoolctl.threadpool_limits(3, user_api="openmp"):
        assert threads.count(-1) == 3
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert threads.count(-1) == 8
    assert threads.available() == 8


def test_the_threadpoolctl_controller_is_registered_once():
    ours = [info for info in threadpoolctl.threadpool_info() if info["internal_api"] == "pairstep"]
    assert [info["num_threads"] for info in ours] == [threads.available()]
    assert "_core" in ours[0]["filepath"]


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, 1), (3, 3), (-2, 7), (None, 8)])
def test_a_batch_starts_at_most_n_jobs_threads(n_jobs, expected, many, monkeypatch):
    """The limit also applies to matrix products, which once used all CPUs."""
    counts = []

    def counted(*arguments):
        counts.append(count(*arguments))
        return counts[-1]

    count = threads.count
    monkeypatch.setattr(threads, "count", counted)
    columns = np.random.default_rng(1).normal(size=(200, 40))  # too many for lanes
    assert simplex_lstsq(columns, np.tile(columns, 80), n_jobs=n_jobs).success.all()
    assert max(counts) == expected
    assert len(counts) > 3
    with threads.at_most(n_jobs):
        assert threads.for_work(1e12) == expected
    assert threads.available() == 8
