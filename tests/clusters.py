"""Clusters of processes on this computer, and problems for them."""

import contextlib
import time

import dask
import dask.array
import distributed
import numpy as np
from distributed.utils import get_mp_context

# Worker processes are forked from a server that has imported these already, so that a worker starts
# in a fraction of a second. The workers of dask's default method import them again each time.
PRELOADED = ["distributed", "pandas", "dask.array", "sklearn.model_selection", "pairstep.dask"]
SETTINGS = {
    # dask's memory manager would remove the copies of scattered arrays that a search needs when a
    # worker is killed.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.multiprocessing-method": "forkserver",
}


@contextlib.contextmanager
def cluster_of(workers, **settings):
    """Yield a client of worker processes with one thread each."""
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(PRELOADED)
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", death_timeout=20, **settings,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):  # fmt: skip
            yield client


def is_complete(client, workers, seconds=20):
    """Wait until all workers of a cluster run again, and return whether they do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        nannies = client.cluster.workers.values()
        running = {nanny.worker_address for nanny in nannies if nanny.status.name == "running"}
        if len(running) == workers and running == set(client.ncores()):
            return True
        time.sleep(0.05)
    return False


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
