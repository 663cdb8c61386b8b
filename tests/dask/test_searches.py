"""Searches on a cluster through joblib, also when a worker is killed."""

import contextlib
import os
import signal
import threading
from itertools import chain

import distributed
import joblib
import numpy as np
import pytest
from clusters import problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from pairstep import svm

pytestmark = pytest.mark.xdist_group("dask")

X, Y, SCORE = problem(1200)
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.05, 0.3, 2.0]}
FOLDS = list(StratifiedKFold(4).split(X, Y))
# All arrays that fits share. joblib keeps other arrays on one worker and loses them with it.
SCATTER = [X, Y, *chain(*FOLDS)]


def search():
    return GridSearchCV(svm.SVC(), GRID, cv=FOLDS)


@pytest.fixture(scope="module")
def expected():
    return search().fit(X, Y).cv_results_["mean_test_score"]


def own_search():
    return svm.SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=FOLDS)


@pytest.fixture(scope="module")
def expected_of_own():
    return own_search().fit(X, Y)


@contextlib.contextmanager
def one_worker_killed_at_work(client):
    """Kill a worker while it computes a task."""
    processes = client.run(os.getpid)
    over, killed = threading.Event(), []

    def act():
        while not over.wait(0.01) and not killed:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy:
                os.kill(processes[busy[0]], signal.SIGKILL)
                killed.append(busy[0])

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert killed


def test_a_search(client, expected):
    with joblib.parallel_config(backend="dask", client=client, scatter=SCATTER):
        found = search().fit(X, Y)
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)


def test_a_search_survives_a_killed_worker(restarting_client, expected):
    with (
        joblib.parallel_config(backend="dask", client=restarting_client, scatter=SCATTER),
        one_worker_killed_at_work(restarting_client),
    ):
        found = search().fit(X, Y)
    assert np.allclose(found.cv_results_["mean_test_score"], expected, atol=0.005)


def test_our_own_search(client, expected_of_own):
    """One task per kernel, on data that were sent to the workers once."""
    keys = []

    class Listener(distributed.SchedulerPlugin):
        def transition(self, key, start, finish, *_, **__):
            if finish == "processing":
                keys.append(key)

    with joblib.parallel_config(backend="dask", client=client, scatter=[X, Y]):
        client.cluster.scheduler.add_plugin(Listener(), name="listener")
        found = own_search().fit(X, Y)
        client.cluster.scheduler.remove_plugin("listener")
    assert sum("_evaluate" in key for key in keys) == len(GRID["gamma"])
    assert found.best_params_ == expected_of_own.best_params_
    mean = expected_of_own.cv_results_["mean_test_score"]
    assert np.allclose(found.cv_results_["mean_test_score"], mean, atol=0.002)


@pytest.mark.slow
def test_our_own_search_survives_a_killed_worker(restarting_client, expected_of_own):
    with (
        joblib.parallel_config(backend="dask", client=restarting_client, scatter=[X, Y]),
        one_worker_killed_at_work(restarting_client),
    ):
        found = own_search().fit(X, Y)
    mean = expected_of_own.cv_results_["mean_test_score"]
    assert np.allclose(found.cv_results_["mean_test_score"], mean, atol=0.002)


def test_regression_with_checkpoint_and_weights(client):
    weight = np.linspace(0.5, 2.0, len(X))
    checkpoint, again = {}, {}

    def fitted(checkpoint):
        search = svm.SVRCV(
            Cs=[1.0, 10.0], gammas=[0.1, 1.0], epsilons=[0.1], cv=3, checkpoint=checkpoint
        )
        return search.fit(X, SCORE, sample_weight=weight)

    with joblib.parallel_config(backend="dask", client=client, scatter=[X, SCORE]):
        found = fitted(checkpoint)
        fitted(checkpoint)  # the checkpoint is complete, so nothing is evaluated
    local = fitted(again)
    assert checkpoint == pytest.approx(again, rel=1e-3)
    assert np.allclose(found.predict(X), local.predict(X), atol=0.01)


def test_a_time_limit_holds_on_workers(client):
    with (
        joblib.parallel_config(backend="dask", client=client, scatter=[X, Y]),
        pytest.warns(ConvergenceWarning, match="time_limit"),
    ):
        found = own_search().set_params(time_limit=1e-6, refit=False).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"]).all()
