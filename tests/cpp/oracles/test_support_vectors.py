"""Support vectors that stay packed between predictions."""

import copy
import itertools
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from oracles import dense
from pairwise import pairwise
from sklearn.metrics.pairwise import pairwise_kernels

from pairstep import _core
from pairstep.svm import SVC, SVR
from pairstep.svm.engine import Kernel, LaidOut, decide, native

RNG = np.random.default_rng(0)
KERNELS = [
    Kernel("rbf", 0.3),
    Kernel("linear"),
    Kernel("poly", 0.2, 2, 1.0),
    Kernel("sigmoid", 0.1),
]


def data(count, features, kind):
    X = RNG.normal(size=(count, features))
    if kind == "sparse":
        X[RNG.random(X.shape) < 0.6] = 0.0
        return scipy.sparse.csr_array(X)
    return X.astype(kind)


@pytest.mark.parametrize(
    ("support", "kernel", "kind", "instruction_set"),
    pairwise(
        [1, 47, 48, 49, 400], KERNELS, ["float64", "float32", "sparse"], _core.instruction_sets()
    ),
    indirect=["instruction_set"],
    ids=str,
)
def test_decisions_of_any_number_of_rows(support, kernel, kind, instruction_set):
    vectors, X = data(support, 5, kind), data(200, 5, kind)
    weights, starts = RNG.normal(size=(support, 2)), np.array([0, support // 3, support])
    parameters = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    K = pairwise_kernels(dense(X), dense(vectors), kernel.name, filter_params=True, **parameters)
    truth = np.hstack([K[:, a:b] @ weights[a:b] for a, b in itertools.pairwise(starts)])
    laid_out = LaidOut()
    for rows in (1, 2, 3, 7, 8, 9, 95, 96, 97, 200):
        one, two = (
            decide(vectors, kernel, weights, X[:rows], threads=threads, starts=starts,
                   laid_out=laid_out)
            for threads in (1, 2)
        )  # fmt: skip
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, truth[:rows], rtol=1e-10, atol=1e-10 * np.abs(K).max())


@pytest.mark.parametrize("kind", ["float64", "sparse"])
def test_a_decision_does_not_depend_on_the_other_rows(kind):
    vectors, X = data(500, 7, kind), data(300, 7, kind)
    weights = RNG.normal(size=(500, 3))
    together = decide(vectors, Kernel("rbf", 0.2), weights, X, threads=2)
    for row in (0, 1, 95, 96, 299):
        alone = decide(vectors, Kernel("rbf", 0.2), weights, X[[row]], threads=1)
        np.testing.assert_array_equal(alone[0], together[row])


def test_support_vectors_are_packed_once():
    vectors, laid_out = data(60, 4, "float64"), LaidOut()
    first = laid_out.vectors(vectors, Kernel("rbf", 0.5))
    assert laid_out.vectors(vectors, Kernel("rbf", 0.5)) is first
    assert laid_out.vectors(vectors, Kernel("rbf", 0.6)) is not first
    assert laid_out.vectors(vectors.copy(), Kernel("rbf", 0.6)) is not first


@pytest.mark.parametrize("sparse", [False, True])
def test_changed_attributes_are_used(sparse):
    X = data(80, 3, "sparse" if sparse else "float64")
    y = np.arange(80) % 2
    model = SVC(gamma=0.5).fit(X, y)
    before = model.decision_function(X[:3])

    def truth():
        K = pairwise_kernels(dense(X)[:3], dense(model.support_vectors_), "rbf", gamma=0.5)
        return K @ dense(model.dual_coef_)[0] + model.intercept_

    np.testing.assert_allclose(before, truth(), atol=1e-12)
    model.support_vectors_ = 2.0 * model.support_vectors_
    np.testing.assert_allclose(model.decision_function(X[:3]), truth(), atol=1e-12)
    model.dual_coef_ = 3.0 * model.dual_coef_
    np.testing.assert_allclose(model.decision_function(X[:3]), truth(), atol=1e-12)
    if not sparse:
        model.dual_coef_ *= 2.0  # in place
        np.testing.assert_allclose(model.decision_function(X[:3]), truth(), atol=1e-12)
    model.fit(X[:40], y[:40])
    np.testing.assert_allclose(model.decision_function(X[:3]), truth(), atol=1e-12)
    assert (before != model.decision_function(X[:3])).all()


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_pack_their_own_support_vectors(again):
    X = data(300, 30, "float64")
    model = SVR().fit(X, X[:, 0])
    size = len(pickle.dumps(model))
    decisions = model.predict(X[:2])
    assert len(pickle.dumps(model)) == size
    np.testing.assert_array_equal(again(model).predict(X[:2]), decisions)


def test_concurrent_predictions():
    X = data(500, 40, "float32")
    model = SVC().fit(X, np.arange(500) % 3)
    expected = model.decision_function(X[:5])
    for _ in range(20):
        fresh = copy.copy(model)
        fresh._laid_out = LaidOut()
        found = []
        threads = [
            threading.Thread(target=lambda m=fresh, f=found: f.append(m.decision_function(X[:5])))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        for decisions in found:
            np.testing.assert_array_equal(decisions, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.zeros((1, 19))}, "weights must be outputs x support vectors"),
        ({"sums": np.zeros((29, 1))}, "weights must be outputs x support vectors"),
        ({"starts": np.array([0, 19])}, "starts must go from 0 to n"),
        ({"X": np.zeros((30, 4))}, "the same number of features"),
        ({"X": native(scipy.sparse.csr_array(np.zeros((30, 3))))}, "both be sparse"),
    ],
)
def test_inconsistent_arguments_are_refused(change, message):
    vectors = _core.SupportVectors(Kernel("rbf").native, np.zeros((20, 3)), None)
    arguments = {
        "weights": np.zeros((1, 20)), "X": np.zeros((30, 3)), "sums": np.zeros((30, 1)),
        "threads": 1, "allowed": 0.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        vectors.decide(**{**arguments, **change})
    with pytest.raises(ValueError, match="must not be precomputed"):
        _core.SupportVectors(Kernel("precomputed").native, np.zeros((20, 3)), None)
