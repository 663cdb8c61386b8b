"""Searches over a cluster by joblib, also when a worker is killed."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from clusters import problem
from sklearn.model_selection import GridSearchCV

from pairstep import svm

X, Y, _ = problem(1200)
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.05, 0.3, 2.0]}


def search():
    return GridSearchCV(svm.SVC(), GRID, cv=4)


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
    with joblib.parallel_config(backend="dask", client=client, scatter=[X, Y]):
        found = search().fit(X, Y)
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)


def test_a_search_survives_a_killed_worker(fresh_client, expected):
    with joblib.parallel_config(backend="dask", client=fresh_client, scatter=[X, Y]):
        thread = kill_a_worker_at_work(fresh_client)
        found = search().fit(X, Y)
    thread.join()
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)
