"""Clusters of processes on this computer, and problems for them."""

import contextlib

import dask
import dask.array
import distributed
import numpy as np


@contextlib.contextmanager
def cluster_of(workers, **settings):
    """Yield a client of worker processes with one thread each.

    dask's memory manager would remove the copies of scattered arrays that a search needs when a
    worker is killed.
    """
    with (
        dask.config.set({"distributed.scheduler.active-memory-manager.start": False}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", death_timeout=20, **settings,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def problem(n, classes=2, seed=0):
    """Return random samples, their classes, and the scores that the classes are made from."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 6))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return X, y, score


def lazy(*arrays):
    """Return arrays as dask collections in uneven blocks."""
    n = len(arrays[0])
    return tuple(dask.array.from_array(a, chunks=(n // 3 + 7, *a.shape[1:])) for a in arrays)
