"""Compressed models: their error, their vectors, and what works with them."""

import io
import pickle

import numpy as np
import pandas
import pytest
import scipy
from real_data import samples
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from pairstep.svm import (
    SVC,
    SVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    load,
    load_libsvm_model,
    save,
    save_libsvm_model,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
SIDE = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.3 * RNG.normal(size=600) > 0
VALUES = np.sin(X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=600)
LEVEL = np.digitize(X[:, 0] + 0.2 * RNG.normal(size=600), [-0.6, 0.6])

MODELS = {
    "SVC": (SVC(C=3.0), SIDE),
    "SVC, three classes": (SVC(decision_function_shape="ovo"), LEVEL),
    "NuSVC": (NuSVC(nu=0.5), SIDE),
    "SVR": (SVR(epsilon=0.05), VALUES),
    "NuSVR": (NuSVR(), VALUES),
    "QuantileSVR": (QuantileSVR(quantile=[0.1, 0.5, 0.9], C=3.0), VALUES),
    "OneClassSVM": (OneClassSVM(nu=0.3), None),
}


def decisions(model, data):
    if not hasattr(model, "decision_function"):
        return model.predict(data)
    return model.decision_function(data)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("relative", [0.2, 0.01])
def test_every_model_stays_within_the_error(name, relative):
    model, y = MODELS[name]
    model.fit(X, y)
    before = decisions(model, X)
    max_error = relative * before.std()
    small = model.compress(X, max_error=max_error)
    assert type(small) is type(model)
    assert small is not model
    found = small.compression_
    change = np.abs(decisions(small, X) - before).max()
    assert change <= max_error
    assert change == pytest.approx(found.max_error, rel=1e-6)
    assert found.n_points == len(X)
    assert found.n_support_before == len(model.support_)
    assert found.n_support == len(small.support_) == len(small.support_vectors_)
    assert found.n_support < found.n_support_before
    np.testing.assert_array_equal(small.support_vectors_, X[small.support_])
    # The original is unchanged.
    np.testing.assert_array_equal(decisions(model, X), before)
    assert not hasattr(model, "compression_")
    assert not hasattr(small, "optimality_")


def test_layout_of_several_classes():
    model = SVC(decision_function_shape="ovo").fit(X, LEVEL)
    small = model.compress(X, max_error=0.2)
    assert small.n_support_.sum() == len(small.support_)
    np.testing.assert_array_equal(
        LEVEL[small.support_], np.repeat(small.classes_, small.n_support_)
    )
    theirs = small.to_sklearn()
    np.testing.assert_allclose(theirs.decision_function(X), small.decision_function(X), atol=1e-8)
    assert (theirs.predict(X) == small.predict(X)).all()


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_other_kernels(kernel):
    model = SVC(kernel=kernel, coef0=0.5, degree=2, gamma=0.1).fit(X, SIDE)
    small = model.compress(X, max_error=1e-3)
    assert np.abs(small.decision_function(X) - model.decision_function(X)).max() <= 1e-3
    # The functions of the first two kernels have few dimensions.
    most = {"linear": 4, "poly": 10, "sigmoid": len(model.support_) - 1}
    assert len(small.support_) <= most[kernel]
    if kernel == "linear":
        np.testing.assert_allclose(small.coef_, model.coef_, atol=1e-2)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_sparse_data(container):
    data = container(np.where(np.abs(X) > 0.5, X, 0.0))
    model = SVC().fit(data, SIDE)
    small = model.compress(data, max_error=0.1)
    assert type(small.support_vectors_) is type(model.support_vectors_)
    assert type(small.dual_coef_) is type(model.dual_coef_)
    assert np.abs(small.decision_function(data) - model.decision_function(data)).max() <= 0.1
    assert len(small.support_) < len(model.support_)


def test_single_precision_is_verified_in_double_precision():
    model = SVC().fit(X.astype(np.float32), SIDE)
    small = model.compress(X.astype(np.float32), max_error=0.05)
    exact = X.astype(np.float32).astype(np.float64)
    change = small.decision_function(exact) - model.decision_function(exact)
    assert np.abs(change).max() == pytest.approx(small.compression_.max_error, rel=1e-6)
    assert small.support_vectors_.dtype == np.float32


def test_names_of_features():
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = SVC().fit(table, SIDE)
    small = model.compress(table, max_error=0.1)
    assert small.feature_names_in_.tolist() == ["a", "b", "c"]
    change = small.decision_function(table) - model.decision_function(table)
    assert np.abs(change).max() == pytest.approx(small.compression_.max_error, rel=1e-6)


def test_kernels_that_are_not_positive():
    model = SVC(kernel="sigmoid", coef0=-1.0, gamma=0.1).fit(X, SIDE)
    assert model.compress(X, max_error=0.1).compression_.max_error <= 0.1


def test_huge_kernel_values():
    huge = 1e27 * X
    model = SVC(kernel="poly", degree=3, gamma=1.0, C=1e-162).fit(huge, SIDE)
    allowed = 1e-3 * np.ptp(model.decision_function(huge))
    assert allowed > 0
    with pytest.raises(ValueError, match="squares of kernel values overflow"):
        model.compress(huge, max_error=allowed)


def test_fewer_vectors_for_larger_errors():
    model = SVC(C=3.0).fit(X, SIDE)
    sizes = [len(model.compress(X, max_error=error).support_) for error in (1.0, 0.3, 0.1, 0.03)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_no_vectors_and_all_vectors():
    model = SVC(C=3.0).fit(X, SIDE)
    none = model.compress(X, max_error=100.0)
    assert len(none.support_) == 0
    assert len(np.unique(none.decision_function(X))) == 1
    every = model.compress(X, max_error=1e-14)
    assert every.compression_.max_error == 0.0
    np.testing.assert_array_equal(every.decision_function(X), model.decision_function(X))
    empty = SVR(epsilon=100.0).fit(X, VALUES)
    assert len(empty.compress(X, max_error=0.1).support_) == 0
    empty = QuantileSVR(quantile=[0.1, 0.9]).fit(X, np.ones(len(X)))
    assert len(empty.compress(X, max_error=0.1).support_) == 0


def test_few_points_do_not_spoil_the_others():
    model = SVC(C=3.0).fit(X, SIDE)
    small = model.compress(X[:5], max_error=0.05)
    assert np.abs(small.decision_function(X) - model.decision_function(X)).max() < 1.0


@pytest.mark.parametrize("name", MODELS)
def test_files_pickles_and_a_new_fit(name):
    model, y = MODELS[name]
    small = model.fit(X, y).compress(X, max_error=0.2)
    file = io.BytesIO()
    save(small, file)
    file.seek(0)
    for again in (load(file), pickle.loads(pickle.dumps(small))):
        assert again.compression_ == small.compression_
        np.testing.assert_array_equal(decisions(again, X), decisions(small, X))
    if not isinstance(model, QuantileSVR):
        theirs = small.to_sklearn()
        np.testing.assert_allclose(decisions(theirs, X), decisions(small, X), atol=1e-8)
    fitted = small.fit(X, y)
    assert not hasattr(fitted, "compression_")
    assert hasattr(fitted, "optimality_")


def test_libsvm_file():
    small = SVC().fit(X, SIDE.astype(int)).compress(X, max_error=0.1)
    file = io.BytesIO()
    save_libsvm_model(small, file)
    file.seek(0)
    again = load_libsvm_model(file)
    np.testing.assert_allclose(again.decision_function(X), small.decision_function(X), atol=1e-8)


def test_probabilities_follow_the_decisions():
    with pytest.warns(FutureWarning, match="probability"):
        model = SVC(probability=True, random_state=0).fit(X, SIDE)
    small = model.compress(X, max_error=0.01)
    np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), atol=0.01)


def test_a_file_with_a_wrong_report_is_refused():
    small = SVC().fit(X, SIDE).compress(X, max_error=0.1)
    small.compression_ = small.compression_._replace(n_support=3)
    file = io.BytesIO()
    save(small, file)
    file.seek(0)
    with pytest.raises(ValueError, match="compression_"):
        load(file)


@pytest.mark.parametrize("max_error", [0.0, -1.0, np.nan, np.inf, "0.1", None, True])
def test_invalid_errors(max_error):
    with pytest.raises(ValueError, match="max_error must be a positive number"):
        SVC().fit(X, SIDE).compress(X, max_error=max_error)


def test_invalid_models_and_points():
    with pytest.raises(ValueError, match="is not fitted"):
        SVC().compress(X, max_error=0.1)
    with pytest.raises(ValueError, match="the kernel must be given by name"):
        SVC(kernel="precomputed").fit(X @ X.T, SIDE).compress(X @ X.T, max_error=0.1)
    with pytest.raises(ValueError, match="the kernel must be given by name"):
        SVC(kernel=lambda A, B: A @ B.T).fit(X, SIDE).compress(X, max_error=0.1)
    with pytest.raises(ValueError, match="features"):
        SVC().fit(X, SIDE).compress(X[:, :2], max_error=0.1)


def test_progress(capfd):
    model = SVC().fit(X, SIDE)
    model.compress(X, max_error=0.1)
    assert capfd.readouterr().out == ""
    model.set_params(verbose=True).compress(X, max_error=0.1)
    assert "vectors: error" in capfd.readouterr().out


def test_iris_keeps_its_predictions():
    data, labels = load_iris(return_X_y=True)
    model = SVC(C=1.0).fit(data, labels)
    small = model.compress(data, max_error=0.1)
    assert is_classifier(small)
    assert (small.predict(data) == model.predict(data)).mean() > 0.98


def test_five_times_fewer_vectors_on_real_data():
    data = samples("phishing.gz")
    train, test, y, y_test = train_test_split(*data, train_size=0.5, random_state=0)
    model = SVC(C=10.0, gamma=0.1).fit(train, y)
    small = model.compress(train, max_error=0.1)
    assert 5 * len(small.support_) < len(model.support_)
    assert small.score(test, y_test) > model.score(test, y_test) - 1e-3
