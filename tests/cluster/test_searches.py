"""Searches over a cluster by joblib, also when a worker is killed."""

import os
import signal
import threading
import time
from itertools import chain

import joblib
import numpy as np
import pytest
from clusters import problem
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from pairstep import svm

X, Y, _ = problem(1200)
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.05, 0.3, 2.0]}
FOLDS = list(StratifiedKFold(4).split(X, Y))
# All arrays that fits share: joblib puts others on one worker, and they die with it.
SCATTER = [X, Y, *chain(*FOLDS)]


def search():
    return GridSearchCV(svm.SVC(), GRID, cv=FOLDS)


@pytest.fixture(scope="module")
def expected():
    return search().fit(X, Y).cv_results_["mean_test_score"]


def kill_a_worker_at_work(client):
    """Kill one of the workers as soon as some fits have ended."""
    processes = client.run(os.getpid)

    def act():
        while not any(client.processing().values()):
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(next(iter(processes.values())), signal.SIGKILL)

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_search(client, expected):
    with joblib.parallel_config(backend="dask", client=client, scatter=SCATTER):
        found = search().fit(X, Y)
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)


def test_a_search_survives_a_killed_worker(fresh_client, expected):
    with joblib.parallel_config(backend="dask", client=fresh_client, scatter=SCATTER):
        thread = kill_a_worker_at_work(fresh_client)
        found = search().fit(X, Y)
    thread.join()
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)
