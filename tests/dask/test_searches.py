"""Searches on a cluster through joblib, also when workers are killed."""

import contextlib
import os
import signal
import threading
from itertools import chain

import dask
import distributed
import joblib
import numpy as np
import pytest
from clusters import kill, problem, processes_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from pairstep import svm
from pairstep.svm.checkpoint import Checkpoint

pytestmark = pytest.mark.xdist_group("dask")

X, Y, SCORE = problem(600)
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.05, 0.3, 2.0, 8.0]}
FOLDS = list(StratifiedKFold(4).split(X, Y))


def own_search(**parameters):
    return svm.SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=FOLDS, **parameters)


@pytest.fixture(scope="module")
def expected():
    return own_search().fit(X, Y)


def check(found, expected):
    mean = expected.cv_results_["mean_test_score"]
    assert np.allclose(found.cv_results_["mean_test_score"], mean, atol=0.002)


class Tasks(distributed.SchedulerPlugin):
    """The tasks of a search, and what is done when some of them change their state.

    `moments` has actions by (kind, state, count): what is done as soon as tasks of a kind, "data"
    or "scores", have reached a state this many times.
    """

    def __init__(self, moments):
        self.moments, self.counts = dict(moments), {}

    def transition(self, key, start, finish, *_, **__):
        if str(key).startswith("pairstep-search"):
            kind = "data" if "-data-" in key else "scores"
            count = self.counts[kind, finish] = self.counts.get((kind, finish), 0) + 1
            self.moments.pop((kind, finish, count), lambda: None)()


@contextlib.contextmanager
def searching(client, moments=()):
    """Make joblib use the cluster, and yield the `Tasks` of the search."""
    tasks = Tasks(moments)
    client.cluster.scheduler.add_plugin(tasks, name="tasks")
    try:
        with joblib.parallel_config(backend="dask", client=client):
            yield tasks
    finally:
        client.cluster.scheduler.remove_plugin("tasks")


def workers_of(client, numbers=(0, 1)):
    """Return the processes of some workers."""
    workers = sorted(client.ncores())
    return [process for number in numbers for process in processes_of(client, workers[number])]


def test_one_task_per_kernel_on_data_that_are_sent_once(client, expected):
    with searching(client) as tasks:
        check(own_search().fit(X, Y), expected)
    assert tasks.counts["data", "memory"] == 1
    assert tasks.counts["scores", "memory"] == len(GRID["gamma"])


MOMENTS = {
    "the first worker has the data": ("data", "memory", 1),
    "the search begins": ("scores", "processing", 1),
    "half of the scores are known": ("scores", "memory", 2),
    "the last scores are on a worker": ("scores", "memory", 4),
}


@pytest.mark.faults
@pytest.mark.parametrize("numbers", [[0], [1], [0, 1]], ids=str)
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_killed_workers(restarting_client, expected, moment, numbers, tmp_path):
    client, checkpoint = restarting_client, tmp_path / "checkpoint"
    processes = workers_of(client, numbers)
    with searching(client, {moment: lambda: kill(*processes)}) as tasks:
        found = own_search(checkpoint=checkpoint).fit(X, Y)
    assert not tasks.moments
    check(found, expected)
    lines = checkpoint.read_text().splitlines()
    assert len(lines) == len(set(lines)) == len(GRID["C"]) * len(GRID["gamma"]) * len(FOLDS)


@pytest.mark.faults
def test_all_workers_are_killed_after_each_task(restarting_client, expected, monkeypatch, tmp_path):
    """dask gives up their tasks, which are submitted again; known scores are not computed again."""
    client, killed, known = restarting_client, [], []
    scheduler, add = client.cluster.scheduler, Checkpoint.add

    def add_and_kill(self, name, split, score):
        """Kill all workers between two tasks, when the last score of a gamma is written."""
        add(self, name, split, score)
        known.append((name, split))
        if len(known) % (len(GRID["C"]) * len(FOLDS)) == 0:
            # A nanny does not replace a process that is killed before it has seen it run.
            processes = [
                nanny.pid
                for nanny in client.cluster.workers.values()
                if nanny.process is not None and nanny.process.status.name == "running"
            ]
            kill(*processes)
            killed.extend(processes)

    monkeypatch.setattr(Checkpoint, "add", add_and_kill)
    allowed, scheduler.allowed_failures = scheduler.allowed_failures, 1
    try:
        with searching(client):
            check(own_search(checkpoint=tmp_path / "checkpoint").fit(X, Y), expected)
    finally:
        scheduler.allowed_failures = allowed
    assert len(killed) >= len(GRID["gamma"])
    assert len(known) == len(set(known)) == len(GRID["C"]) * len(GRID["gamma"]) * len(FOLDS)


@pytest.mark.faults
def test_tasks_that_kill_their_workers_are_given_up(restarting_client):
    test_process = os.getpid()

    def deadly(model, X, y):
        if os.getpid() != test_process:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    with searching(restarting_client), pytest.raises(distributed.KilledWorker):
        own_search(scoring=deadly).fit(X, Y)


@pytest.mark.faults
def test_no_worker_comes_back(fresh_client):
    for nanny in fresh_client.cluster.workers.values():
        nanny.close_gracefully()  # does not restart its worker
    processes = workers_of(fresh_client)
    with (
        searching(fresh_client, {("scores", "processing", 1): lambda: kill(*processes)}),
        dask.config.set({"pairstep.timeout": "2s"}),
        pytest.raises(RuntimeError, match="the cluster has no workers left"),
    ):
        own_search().fit(X, Y)


@pytest.mark.faults
@pytest.mark.slow
def test_a_worker_that_hangs(fresh_client, expected):
    (process,) = workers_of(fresh_client, [0])
    stop = {("scores", "memory", 1): lambda: os.kill(process, signal.SIGSTOP)}
    try:
        with (
            searching(fresh_client, stop),
            dask.config.set({"pairstep.timeout": "5s"}),
        ):
            check(own_search().fit(X, Y), expected)
    finally:
        os.kill(process, signal.SIGCONT)


def test_errors_on_workers_are_raised(client):
    def fail():
        raise OSError("the license server does not answer")

    class Scorer:
        def __call__(self, model, X, y):
            return 0.0

        def __reduce__(self):
            return fail, ()

    with searching(client) as tasks, pytest.raises(OSError, match="license server"):
        own_search(scoring=Scorer()).fit(X, Y)
    assert tasks.counts["data", "processing"] == 1


def test_data_that_dask_considers_large(client):
    big = np.tile(X, (1, 400))
    search = svm.SVCCV(Cs=[1.0], gammas=[1e-3, 1e-2], cv=2, refit=False)
    with searching(client):
        found = search.fit(big, Y).cv_results_["mean_test_score"]
    assert np.allclose(found, search.fit(big, Y).cv_results_["mean_test_score"], atol=0.002)


def test_a_search_inside_a_task(client, expected):
    """The outer task waits for tasks of its own, which may need its thread."""

    def outer(Cs, gammas, folds, X, y):
        with joblib.parallel_config(backend="dask"):
            return svm.SVCCV(Cs=Cs, gammas=gammas, cv=folds).fit(X, y)

    given = GRID["C"], GRID["gamma"], FOLDS, X, Y
    futures = [client.submit(outer, *given, pure=False) for _ in range(2)]
    for found in client.gather(futures):
        check(found, expected)


def test_regression_with_checkpoint_and_weights(client, tmp_path):
    weight = np.linspace(0.5, 2.0, len(X))
    path = tmp_path / "checkpoint"

    def fitted(checkpoint=None):
        search = svm.SVRCV(
            Cs=[1.0, 10.0], gammas=[0.1, 1.0], epsilons=[0.1], cv=3, checkpoint=checkpoint
        )
        return search.fit(X, SCORE, sample_weight=weight)

    with searching(client) as tasks:
        found = fitted(path)
        submitted, written = tasks.counts.copy(), path.read_bytes()
        assert len(written.splitlines()) == 12
        fitted(path)  # the checkpoint is complete, so nothing is evaluated
        assert tasks.counts["scores", "memory"] == submitted["scores", "memory"] == 2
    assert path.read_bytes() == written
    local = fitted()
    mean = local.cv_results_["mean_test_score"]
    assert np.allclose(found.cv_results_["mean_test_score"], mean, rtol=1e-3)
    assert np.allclose(found.predict(X), local.predict(X), atol=0.01)


def test_a_time_limit_holds_on_workers(client):
    with searching(client), pytest.warns(ConvergenceWarning, match="time_limit"):
        found = own_search(time_limit=1e-6, refit=False).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"]).all()


def grid_search():
    return GridSearchCV(svm.SVC(), {**GRID, "gamma": [0.3]}, cv=FOLDS)


@pytest.fixture(scope="module")
def expected_of_grid():
    return grid_search().fit(X, Y)


# All arrays that fits share. joblib keeps other arrays on one worker and loses them with it.
SCATTER = [X, Y, *chain(*FOLDS)]


def test_a_search_of_scikit_learn(client, expected_of_grid):
    with joblib.parallel_config(backend="dask", client=client, scatter=SCATTER):
        check(grid_search().fit(X, Y), expected_of_grid)


@contextlib.contextmanager
def without_memory_manager(client):
    """Keep dask from removing the copies of scattered arrays."""
    client.amm.stop()
    try:
        yield
    finally:
        client.amm.start()


@pytest.mark.faults
def test_a_search_of_scikit_learn_survives_a_killed_worker(restarting_client, expected_of_grid):
    client = restarting_client
    with (
        without_memory_manager(client),
        joblib.parallel_config(backend="dask", client=client, scatter=SCATTER),
        one_worker_killed_at_work(client),
    ):
        check(grid_search().fit(X, Y), expected_of_grid)


@contextlib.contextmanager
def one_worker_killed_at_work(client):
    """Kill a worker while it computes a task."""
    processes = client.run(os.getpid)
    over, killed = threading.Event(), []

    def act():
        while not over.wait(0.01) and not killed:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy:
                kill(processes[busy[0]])
                killed.append(busy[0])

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert killed
