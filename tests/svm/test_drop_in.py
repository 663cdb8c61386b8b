"""What programs written for scikit-learn's machines rely on."""

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
@pytest.mark.parametrize("Machine", ALL)
def test_types_by_name(Machine, dtype):
    expected = Machine(dtype=getattr(np, dtype)).fit(X, Y)
    for given in (dtype, np.dtype(dtype)):
        machine = Machine(dtype=given).fit(X, Y)
        assert clone(machine).dtype == given
        np.testing.assert_array_equal(machine.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("dtype", ["float16", "double", "f4", np.dtype("int32"), int, None])
def test_other_types(dtype):
    with pytest.raises(ValueError, match="'dtype' parameter of SVC must be"):
        SVC(dtype=dtype).fit(X, Y)


@pytest.mark.parametrize("Machine", ALL)
def test_numbers_of_support_vectors(Machine):
    machine = Machine().fit(X, Y)
    theirs = getattr(sklearn.svm, Machine.__name__)().fit(X, Y)
    for name in ("n_support_", "_n_support"):
        found, expected = getattr(machine, name), getattr(theirs, name)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert machine.n_support_.sum() == len(machine.support_)
    assert not hasattr(Machine(), "n_support_")
    machine._n_support[0] += 1
    with pytest.raises(ValueError, match=f"internal representation of {Machine.__name__} was alt"):
        machine.predict(X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_coefficients_of_libsvm(classes, container):
    rows = slice(50 * classes)
    data, labels = container(X[rows]), Y[rows]
    machine = SVC(tol=1e-8).fit(data, labels)
    theirs = sklearn.svm.SVC(tol=1e-8).fit(data, labels)
    assert abs(machine._dual_coef_ - theirs._dual_coef_).max() < 1e-5
    before = machine.decision_function(data)
    machine._dual_coef_ = 2 * machine._dual_coef_
    assert np.abs(machine.decision_function(data) - before).max() > 0.1


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
@pytest.mark.parametrize("Machine", ["SVC", "SVR", "OneClassSVM"])
def test_functions_are_asked_as_scikit_learn_asks_them(Machine, kind):
    """Once by each method, with the very objects that it was given."""
    given = SAMPLES[kind]
    asked = {}
    for module in (pairstep.svm, sklearn.svm):
        calls = asked[module] = []

        def kernel(A, B, calls=calls):
            calls.append((A is given, B is given))
            return numbers(A) @ numbers(B).T

        settings = {"probability": True} if Machine == "SVC" else {}
        machine = getattr(module, Machine)(kernel=kernel, **settings).fit(given, Y)
        for name in ("predict", "decision_function", "predict_proba", "score_samples"):
            if hasattr(machine, name):
                getattr(machine, name)(given)
    assert asked[pairstep.svm] == asked[sklearn.svm]
    assert all(all(call) for call in asked[pairstep.svm])


@pytest.mark.parametrize("Machine", ALL)
def test_verbose_ends_with_a_summary(Machine, capsys):
    machine = Machine(verbose=True).fit(X, Y)
    *_, last = capsys.readouterr().out.splitlines()
    duals = len(machine.intercept_)
    found = re.fullmatch(
        rf"\[pairstep\] {duals} of {duals} solved, (\d+) iterations, KKT violation (\S+) "
        r"\(tol=0.001\), (\d+) support vectors, \S+ s",
        last,
    )
    assert int(found[1]) == np.sum(machine.n_iter_)
    assert float(found[2]) == pytest.approx(machine.optimality_.kkt_violation.max(), rel=0.01)
    assert int(found[3]) == len(machine.support_)


def test_verbose_counts_the_machines_of_cross_validation(capsys):
    SVC(verbose=True, probability=True).fit(X, Y)
    assert "18 of 18 solved" in capsys.readouterr().out


@pytest.mark.parametrize("Machine", ALL)
def test_silence(Machine, capsys):
    Machine().fit(X, Y)
    assert capsys.readouterr() == ("", "")
