"""Clusters of processes on this computer, and problems for them."""

import contextlib
import os
import signal
import time

import dask
import dask.array
import distributed
import numpy as np
import psutil
from distributed.utils import get_mp_context

# Worker processes are forked from a server that has imported these already, so that a worker starts
# in a fraction of a second. The workers of dask's default method import them again each time.
PRELOADED = ["distributed", "pandas", "dask.array", "sklearn.model_selection", "pairstep.dask"]
SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    # LocalCluster checks this long after the loss of a worker whether it has come back, and
    # otherwise removes it for good. By default (15 s) it would also remove a worker that has come
    # back and that another test has killed just before the check.
    "distributed.deploy.lost-worker-timeout": "1h",
}


@contextlib.contextmanager
def cluster_of(workers, **settings):
    """Yield a client of worker processes with one thread each."""
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(PRELOADED)
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", death_timeout=60, **settings,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):  # fmt: skip
            yield client


def is_complete(client, workers, seconds=20):
    """Wait until all workers of a cluster run again, and return whether they do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # A nanny may not know yet that its worker is dead.
        nannies = [nanny for nanny in client.cluster.workers.values() if runs(nanny.pid)]
        running = {nanny.worker_address for nanny in nannies if nanny.status.name == "running"}
        if len(running) == workers and running == set(client.ncores()):
            return True
        time.sleep(0.05)
    return False


def runs(process):
    """Return whether a process is alive."""
    try:
        return process and psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(*processes):
    """Kill processes, and wait until they are dead."""
    for process in processes:
        os.kill(process, signal.SIGKILL)
    while any(map(runs, processes)):
        time.sleep(0.001)


def processes_of(client, worker):
    """Return the living process of a worker, or nothing. A dying worker does not answer itself."""
    nannies = [each for each in client.cluster.workers.values() if each.worker_address == worker]
    return [nanny.pid for nanny in nannies if nanny.pid]


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
