"""Models fitted on a cluster equal those fitted in one process."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dask
import dask.array
import dask.dataframe
import distributed
import numpy as np
import pandas
import pytest
import scipy.sparse
from clusters import cluster_of, lazy, problem
from oracles import dense
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import pairstep.dask
from pairstep import svm

pytestmark = [pytest.mark.usefixtures("client"), pytest.mark.xdist_group("dask")]


def dual_objective(model):
    z = dense(model.dual_coef_)[0]
    vectors = model.support_vectors_
    K = rbf_kernel(vectors, gamma=model._gamma)
    return z @ K @ z / 2 - np.abs(z).sum()


def test_a_start_from_samples_over_partitions(monkeypatch):
    tuning = replace(pairstep.dask.svm.TUNING, local_size=1000)
    monkeypatch.setattr("pairstep.dask.svm.TUNING", tuning)
    X, y, _ = problem(9000)
    ours = pairstep.dask.SVC(C=10.0, gamma=0.2).fit(*lazy(X, y))
    local = svm.SVC(C=10.0, gamma=0.2).fit(X, y)
    assert ours.optimality_.kkt_violation <= 1e-3
    assert dual_objective(ours) == pytest.approx(dual_objective(local), rel=1e-7)


@pytest.mark.usefixtures("over_partitions")
def test_classes_weights_and_names_of_a_dataframe():
    X, y, _ = problem(900, classes=3)
    names = np.array(["north", "south", "west"])[y]
    weight = np.linspace(0.5, 2.0, len(X))
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    dX = dask.dataframe.from_pandas(frame, npartitions=4)
    dy = dask.dataframe.from_pandas(pandas.Series(names), npartitions=4)
    ours = pairstep.dask.SVC(tol=1e-5).fit(dX, dy, sample_weight=lazy(weight)[0])
    local = svm.SVC(tol=1e-5).fit(frame, names, sample_weight=weight)
    assert list(ours.feature_names_in_) == list(frame.columns)
    assert (ours.classes_ == local.classes_).all()
    decisions = ours.decision_function(dX).compute()
    assert np.allclose(decisions, local.decision_function(frame), atol=1e-3)
    assert (ours.predict(dX).compute() == local.predict(frame)).mean() > 0.995
    assert np.array_equal(ours.to_local().predict(frame), ours.predict(frame))


def some_sparse(X, blocks):
    """X in blocks of 200 rows; the given blocks are sparse."""
    rows = dask.array.from_array(X, chunks=(200, X.shape[1]))

    def turned(block, block_info=None):
        at = block_info[0]["chunk-location"][0]
        return scipy.sparse.csr_matrix(block) if at in blocks else block

    return rows.map_blocks(turned, dtype=X.dtype, meta=np.empty((0, 0)))


@pytest.mark.usefixtures("over_partitions")
@pytest.mark.parametrize("blocks", [{0}, {1, 2}, {3}], ids=str)
def test_sparse_and_dense_blocks_do_not_mix(blocks):
    X, y, _ = problem(800)
    with pytest.raises(ValueError, match="some blocks of X are sparse and others dense"):
        pairstep.dask.SVC().fit(some_sparse(X, blocks), y)


@pytest.mark.usefixtures("over_partitions")
def test_blocks_of_two_types_get_the_wider_one():
    X, y, _ = problem(800)
    X = X.astype(np.float32).astype(np.float64)

    def turned(block, block_info=None):
        at = block_info[0]["chunk-location"][0]
        return block.astype(np.float32) if at < 2 else block

    dX = dask.array.from_array(X, chunks=(200, 6)).map_blocks(turned, dtype=float)
    ours = pairstep.dask.SVC(tol=1e-6).fit(dX, y)
    local = svm.SVC(tol=1e-6).fit(X, y)
    assert ours.support_vectors_.dtype == np.float64
    assert np.allclose(ours.decision_function(X), local.decision_function(X), atol=1e-4)


@pytest.mark.usefixtures("over_partitions")
def test_blocks_that_contradict_their_dask_metadata_are_refused():
    X, y, _ = problem(800)
    for change, message in (
        (lambda block: block[:-1], "rows 0 to 400 of X must be 400 rows, but .* have 398"),
        (lambda block: block[:, :5] if block[0, 0] == X[400, 0] or block[0, 0] == X[600, 0]
         else block, "rows 400 to 800 of X have 5 columns, but the first rows have 6"),
    ):  # fmt: skip
        dX = dask.array.from_array(X, chunks=(200, 6)).map_blocks(change, dtype=float)
        with pytest.raises(ValueError, match=message):
            pairstep.dask.SVC().fit(dX, y)


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
def test_blocks_without_rows():
    X, y, _ = problem(600, classes=3)
    rows = dask.array.from_array(X, chunks=(200, 6))
    some = rows[dask.array.from_array(np.arange(600) < 250, chunks=200)]
    model = pairstep.dask.SVC(probability=True, random_state=0).fit(some, y[:250])
    local = model.to_local()
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        found = getattr(model, method)(some)
        assert isinstance(found, dask.array.Array)
        np.testing.assert_array_equal(found.compute(), getattr(local, method)(X[:250]))
    novelty = pairstep.dask.OneClassSVM().fit(rows)
    expected = novelty.to_local().score_samples(X[:250])
    np.testing.assert_array_equal(novelty.score_samples(some).compute(), expected)
    assert not hasattr(pairstep.dask.SVC(), "predict_proba")
    assert not hasattr(pairstep.dask.SVR(), "predict_proba")
    assert not hasattr(pairstep.dask.SVC(), "score_samples")


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_predictions_without_support_vectors(container):
    rows = dask.array.from_array(problem(300)[0], chunks=(100, 6)).map_blocks(container)
    flat = pairstep.dask.SVR().fit(rows, np.full(300, 7.0))
    assert len(flat.support_) == 0
    np.testing.assert_array_equal(flat.predict(rows).compute(), np.full(300, 7.0))


def test_no_rows_and_no_columns_are_refused():
    rows = dask.array.from_array(problem(300)[0], chunks=(100, 6))
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 6\)\)"):
        pairstep.dask.SVC().fit(rows[:0], np.zeros(0))
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
        pairstep.dask.OneClassSVM().fit(rows[:, :0])


def test_rows_are_balanced(client):
    X = problem(1001)[0]
    partitions = pairstep.dask.cluster.Partitions(
        client, dask.array.from_array(X, chunks=(1001, 6))
    )
    assert [line.end - line.begin for line in partitions.connections] == [500, 501]


def test_clone_and_pickle(client):
    X, y, _ = problem(200)
    model = clone(pairstep.dask.SVC(client=client, C=2.0))
    assert model.client is client
    assert model.C == 2.0
    model.fit(*lazy(X, y))
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert np.array_equal(again.predict(X), model.predict(X))
    local = pickle.loads(pickle.dumps(model.to_local()))
    assert type(local) is svm.SVC
    assert "client" not in local.get_params()


@pytest.mark.usefixtures("over_partitions")
def test_a_symmetric_problem_has_no_intercept():
    X = np.concatenate([problem(200)[0], -problem(200)[0]])
    model = pairstep.dask.SVC(kernel="linear").fit(*lazy(X, X[:, 0] > 0))
    assert model.traffic_.rounds > 0
    assert model.intercept_[0] == 0


@pytest.mark.usefixtures("over_partitions")
def test_progress_is_reported(caplog):
    X, y, _ = problem(1000)
    with caplog.at_level("INFO", "pairstep"):
        pairstep.dask.SVC(C=10.0).fit(*lazy(X, y))
    lines = [record.message for record in caplog.records if record.name == "pairstep"]
    assert any("0 of 1 solved" in line for line in lines[:-1])
    assert "1 of 1 solved" in lines[-1]
    assert "support vectors" in lines[-1]


@pytest.mark.usefixtures("over_partitions")
def test_a_warm_start_continues_from_the_last_fit():
    X, y, _ = problem(1500)
    model = pairstep.dask.SVC(C=10.0, tol=1e-2, warm_start=True).fit(*lazy(X, y))
    loose = model.n_iter_[0]
    model.fit(*lazy(X, y))
    assert model.n_iter_[0] < loose / 10
    model.set_params(tol=1e-4).fit(*lazy(X, y))
    local = svm.SVC(C=10.0, tol=1e-4).fit(X, y)
    assert np.allclose(model.decision_function(X), local.decision_function(X), atol=1e-3)


@pytest.mark.usefixtures("over_partitions")
def test_limits_hold():
    X, y, _ = problem(1500)
    dX, dy = lazy(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        pairstep.dask.SVC(C=100.0, tol=1e-9, max_iter=20).fit(dX, dy)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        pairstep.dask.SVC(C=1e5, tol=1e-12, time_limit=0.01).fit(dX, dy)


def test_bad_input(client):
    X, y, _ = problem(100)
    dX, dy = lazy(X, y)
    with pytest.raises(TypeError, match="X must be a dask array"):
        pairstep.dask.SVC().fit(X, y)
    with pytest.raises(ValueError, match="kernel must be the name"):
        pairstep.dask.SVC(kernel="precomputed").fit(dX, dy)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        pairstep.dask.SVC().fit(dX, dy[:50])
    with pytest.raises(ValueError, match="two dimensions"):
        pairstep.dask.SVC().fit(dX[:, 0], dy)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        pairstep.dask.SVC().fit(lazy(X)[0], dy)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        pairstep.dask.SVC(clients=client)


@pytest.mark.usefixtures("over_partitions")
def test_an_encrypted_cluster():
    pytest.importorskip("cryptography")
    X, y, _ = problem(600)
    with cluster_of(1, security=True) as client:
        assert client.scheduler.address.startswith("tls://")
        ours = pairstep.dask.SVC(client=client).fit(*lazy(X, y))
    assert np.allclose(
        ours.decision_function(X), svm.SVC().fit(X, y).decision_function(X), atol=0.01
    )


IN_ONE_PROCESS = """
from dataclasses import replace

import distributed
import pairstep.dask
from clusters import lazy, problem
from pairstep import svm

pairstep.dask.svm.TUNING = replace(pairstep.dask.svm.TUNING, local_size=0)
X, y, _ = problem(600)
with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
    model = pairstep.dask.SVC(tol=1e-6).fit(*lazy(X, y))
    assert model.traffic_.rounds > 5
    local = svm.SVC(tol=1e-6).fit(X, y)
    print(abs(model.to_local().decision_function(X) - local.decision_function(X)).max())
"""


def test_workers_in_the_clients_own_process():
    """As in notebooks: in-process communication passes objects without serialization."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 1e-4


@pytest.mark.usefixtures("over_partitions")
def test_a_callback_of_scikit_learn_stops_the_fit():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on")
    tasks = []

    class Enough:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **kwargs):
            pass

        def on_fit_task_end(self, estimator, context, **kwargs):
            tasks.append(context)
            return True

        def teardown(self, estimator, context):
            pass

    X, y, _ = problem(1500)
    model = pairstep.dask.SVC(C=1e5, tol=1e-10, time_limit=60).set_callbacks(Enough())
    model.fit(*lazy(X, y))
    assert tasks
    assert model.optimality_.kkt_violation > 1e-10


@pytest.mark.usefixtures("over_partitions")
def test_names_on_the_dashboard_and_laziness(client):
    """The dashboard shows the keys of tasks."""
    X, y, _ = problem(600)
    dX, dy = lazy(X, y)
    seen = []

    class Listener(distributed.SchedulerPlugin):
        def transition(self, key, start, finish, *_, **__):
            seen.append(str(key))

    client.cluster.scheduler.add_plugin(Listener(), name="listener")
    try:
        model = pairstep.dask.SVC(client=client).fit(dX, dy)
        assert all(any(f"pairstep-partition-{k}-" in key for key in seen) for k in (0, 1))
        lazily = [model.decision_function(dX), model.predict(dX)]
        names = ["pairstep-decision_function-", "pairstep-predict-"]
        assert not any(name in key for name in names for key in seen)
        dask.compute(*lazily)
        assert all(any(name in key for key in seen) for name in names)
    finally:
        client.cluster.scheduler.remove_plugin("listener")


@pytest.mark.parametrize("persisted", [False, True])
def test_blocks_of_unknown_lengths(client, persisted):
    X, y, _ = problem(300)
    (dX,) = lazy(X)
    some = X[:, 0] > 0
    dX = dX[dask.array.from_array(some, chunks=dX.chunks[0])]
    if persisted:
        dX = dX.persist()
    model = pairstep.dask.SVC(client=client).fit(dX, y[some])
    assert model.shape_fit_ == (some.sum(), X.shape[1])
