"""Machines as scikit-learn's own estimators, and what is made of those."""

import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, Y = load_iris(return_X_y=True)
TWO = Y != 0
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
NAMES = ["a", "b", "c", "d"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Attribute `prob:FutureWarning"),  # skl2onnx reads them
]


def check_same(machine, new):
    """All that both can do with new samples gives the same; returns theirs."""
    theirs = machine.to_sklearn()
    assert type(theirs) is getattr(sklearn.svm, type(machine).__name__)
    for name in ("decision_function", "score_samples", "predict_proba", "predict_log_proba"):
        assert hasattr(theirs, name) == hasattr(machine, name)
        if hasattr(machine, name):
            expected = getattr(machine, name)(new)
            atol = 1e-6
            if name.endswith("proba") and len(machine.classes_) == 2:
                expected = machine.predict_proba(new)
                name, atol = "predict_proba", 5e-3  # scikit-learn stops so near to them
            np.testing.assert_allclose(getattr(theirs, name)(new), expected, 1e-6, atol)
    if isinstance(machine, SVR | NuSVR):
        np.testing.assert_allclose(theirs.predict(new), machine.predict(new), rtol=1e-6)
    elif not isinstance(machine, OneClassSVM):  # many of whose decisions are 0 but for rounding
        np.testing.assert_array_equal(theirs.predict(new), machine.predict(new))
    for name in ("support_", "n_support_", "intercept_", "n_iter_", "fit_status_", "shape_fit_"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(machine, name))
    return theirs


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("Machine", ALL)
def test_every_kernel(Machine, kernel):
    machine = Machine(kernel=kernel, coef0=0.5, gamma=0.05, degree=2).fit(X, Y)
    theirs = check_same(machine, X)
    if kernel == "linear":
        np.testing.assert_allclose(theirs.coef_, machine.coef_, atol=1e-12)
    # Each version has another default of `probability`.
    for name in theirs.get_params().keys() - {"probability"}:
        assert getattr(theirs, name) == getattr(machine, name)


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
@pytest.mark.parametrize("Machine", ALL)
def test_sparse(Machine, container):
    data = container(X * (X > 1))
    theirs = check_same(Machine(kernel="linear").fit(data, Y), data)
    assert scipy.sparse.issparse(theirs.coef_)
    np.testing.assert_allclose(theirs.predict(X * (X > 1)), theirs.predict(data))


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
def test_probabilities(Machine, container, rows):
    data, labels = container(X[rows]), np.array(["x", "y", "z"])[Y[rows]]
    check_same(Machine(probability=True, random_state=0).fit(data, labels), data)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
def test_decision_shapes_and_weights(shape, rows):
    machine = SVC(decision_function_shape=shape, class_weight="balanced")
    check_same(machine.fit(X[rows], Y[rows], sample_weight=1 + X[rows, 0]), X)
    check_same(SVC(break_ties=True).fit(X[rows], Y[rows]), X)


@pytest.mark.parametrize("Machine", ALL)
def test_precomputed_and_functions(Machine):
    check_same(Machine(kernel="precomputed").fit(X @ X.T, Y), X @ X.T)
    check_same(Machine(kernel=lambda A, B: A @ B.T).fit(X, Y), X[:7])


@pytest.mark.parametrize("Machine", ALL)
def test_float32_samples(Machine):
    theirs = check_same(Machine().fit(X.astype(np.float32), Y), X)
    assert theirs.support_vectors_.dtype == np.float64


@pytest.mark.parametrize("Machine", ALL)
def test_frames(Machine):
    table = pandas.DataFrame(X, columns=NAMES)
    theirs = check_same(Machine().fit(table, Y), table)
    assert theirs.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names"):
        theirs.predict(table[NAMES[::-1]])


def test_no_support_vectors():
    check_same(SVR(epsilon=10.0).fit(X, Y), X)
    check_same(SVR(epsilon=10.0).fit(scipy.sparse.csr_array(X), Y), X)


@pytest.mark.parametrize("Machine", ALL)
def test_it_is_a_copy(Machine):
    machine = Machine().fit(X, Y)
    before = machine.predict(X)
    theirs = machine.to_sklearn()
    theirs.intercept_ += 1
    theirs._n_support[:] = 0
    theirs.support_vectors_[:] = 0
    np.testing.assert_array_equal(machine.predict(X), before)


@pytest.mark.parametrize("Machine", ALL)
def test_life_after_that(Machine):
    theirs = Machine().fit(X, Y).to_sklearn()
    copy = pickle.loads(pickle.dumps(theirs))
    np.testing.assert_array_equal(copy.predict(X), theirs.predict(X))
    assert clone(theirs).fit(X, Y).shape_fit_ == theirs.shape_fit_


@pytest.mark.parametrize("Machine", ALL)
def test_unfitted(Machine):
    with pytest.raises(NotFittedError):
        Machine().to_sklearn()


def outputs_of_onnx(machine, new, **options):
    """What the ONNX file of a machine gives for these samples."""
    # Only where NumPy is too old for them: `make test` installs them.
    skl2onnx, onnxruntime = map(pytest.importorskip, ("skl2onnx", "onnxruntime"))
    kind = skl2onnx.common.data_types.FloatTensorType([None, new.shape[1]])
    file = skl2onnx.to_onnx(
        machine.to_sklearn(), initial_types=[("X", kind)], options=options or None
    ).SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": new.astype(np.float32)})


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_onnx_of_classifiers(Machine, rows, kernel):
    machine = Machine(kernel=kernel, gamma=0.02, coef0=0.5).fit(X[rows], Y[rows])
    labels = outputs_of_onnx(machine, X[rows])[0]
    np.testing.assert_array_equal(labels, machine.predict(X[rows]))


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_onnx_of_probabilities(Machine, rows):
    machine = Machine(probability=True, random_state=0).fit(X[rows], Y[rows])
    labels, probabilities = outputs_of_onnx(machine, X[rows], zipmap=False)
    np.testing.assert_array_equal(labels, machine.predict(X[rows]))
    # scikit-learn's form of them stops within 0.005 of those of two classes.
    atol = 1e-3 if len(machine.classes_) > 2 else 5e-3
    np.testing.assert_allclose(probabilities, machine.predict_proba(X[rows]), atol=atol)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("Machine", [SVR, NuSVR])
def test_onnx_of_regressors(Machine, kernel):
    machine = Machine(kernel=kernel).fit(X, X @ [1.0, 2.0, -1.0, 0.5])
    (predictions,) = outputs_of_onnx(machine, X)
    np.testing.assert_allclose(predictions.ravel(), machine.predict(X), rtol=1e-4, atol=1e-4)


def test_onnx_of_novelties():
    machine = OneClassSVM(nu=0.1, gamma=0.1).fit(X)
    labels, decisions = outputs_of_onnx(machine, X)
    np.testing.assert_allclose(decisions.ravel(), machine.decision_function(X), atol=1e-4)
    sure = np.abs(machine.decision_function(X)) > 1e-4
    np.testing.assert_array_equal(labels.ravel()[sure], machine.predict(X)[sure])
