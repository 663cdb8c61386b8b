"""Details that programs written for scikit-learn's SVMs rely on."""

import re

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris

import pairstep.svm
from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, Y = load_iris(return_X_y=True)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("Estimator", ALL)
def test_types_by_name(Estimator, dtype):
    expected = Estimator(dtype=getattr(np, dtype)).fit(X, Y)
    for given in (dtype, np.dtype(dtype)):
        model = Estimator(dtype=given).fit(X, Y)
        assert clone(model).dtype == given
        np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("Estimator", ALL)
def test_an_altered_model_is_refused(Estimator):
    model = Estimator().fit(X, Y)
    assert not hasattr(Estimator(), "n_support_")
    model._n_support[0] += 1
    with pytest.raises(
        ValueError, match=f"internal representation of {Estimator.__name__} was alt"
    ):
        model.predict(X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_coefficients_of_libsvm(classes, container):
    rows = slice(50 * classes)
    data, labels = container(X[rows]), Y[rows]
    model = SVC(tol=1e-8).fit(data, labels)
    theirs = sklearn.svm.SVC(tol=1e-8).fit(data, labels)
    assert abs(model._dual_coef_ - theirs._dual_coef_).max() < 1e-5
    before = model.decision_function(data)
    model._dual_coef_ = 2 * model._dual_coef_
    assert np.abs(model.decision_function(data) - before).max() > 0.1


SAMPLES = {
    "array": X,
    "float32": X.astype(np.float32),
    "list": X.tolist(),
    "frame": pandas.DataFrame(X),
    "sparse": scipy.sparse.csr_array(X),
    "strings": [" ".join(map(str, row)) for row in X],
}


def numbers(samples):
    """The samples as an array."""
    if scipy.sparse.issparse(samples):
        return samples.toarray()
    if isinstance(samples[0] if isinstance(samples, list) else None, str):
        return np.array([row.split() for row in samples], float)
    return np.asarray(samples, float)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("Estimator", ["SVC", "SVR", "OneClassSVM"])
def test_kernel_functions_are_called_as_in_scikit_learn(Estimator, kind):
    """Once per method call, with the objects that the user passed."""
    given = SAMPLES[kind]
    asked = {}
    for module in (pairstep.svm, sklearn.svm):
        calls = asked[module] = []

        def kernel(A, B, calls=calls):
            calls.append((A is given, B is given))
            return numbers(A) @ numbers(B).T

        settings = {"probability": True} if Estimator == "SVC" else {}
        model = getattr(module, Estimator)(kernel=kernel, **settings).fit(given, Y)
        for name in ("predict", "decision_function", "predict_proba", "score_samples"):
            if hasattr(model, name):
                getattr(model, name)(given)
    assert asked[pairstep.svm] == asked[sklearn.svm]
    assert all(all(call) for call in asked[pairstep.svm])


@pytest.mark.parametrize("Estimator", ALL)
def test_verbose_ends_with_a_summary(Estimator, capsys):
    model = Estimator(verbose=True).fit(X, Y)
    *_, last = capsys.readouterr().out.splitlines()
    duals = len(model.intercept_)
    found = re.fullmatch(
        rf"\[pairstep\] {duals} of {duals} solved, (\d+) iterations, KKT violation (\S+) "
        r"\(tol=0.001\), (\d+) support vectors, \S+ s",
        last,
    )
    assert int(found[1]) == np.sum(model.n_iter_)
    assert float(found[2]) == pytest.approx(model.optimality_.kkt_violation.max(), rel=0.01)
    assert int(found[3]) == len(model.support_)


def test_verbose_counts_the_models_of_cross_validation(capsys):
    SVC(verbose=True, probability=True).fit(X, Y)
    assert "18 of 18 solved" in capsys.readouterr().out
