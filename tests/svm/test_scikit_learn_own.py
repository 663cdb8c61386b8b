"""scikit-learn's tests of its svm module, with our classes in the place of its own."""

import importlib.util
import itertools
import types

import numpy as np
import pytest
import sklearn.svm

import pairstep.svm
from pairstep.svm import SVC

LIBLINEAR = "tests LinearSVC, LinearSVR or other parts of LIBLINEAR"
PROBABILITY = "tests the deprecated probability"
INTERNAL = "tests what scikit-learn keeps for LIBSVM in private attributes"
ITERATIONS = (
    "expects LIBSVM's number of iterations: the engine may have reached the optimum by then"
)

SKIPPED = {
    "test_svm": {
        "test_linearsvr": LIBLINEAR,
        "test_linearsvr_fit_sampleweight": LIBLINEAR,
        "test_linearsvc_parameters": LIBLINEAR,
        "test_linearsvc": LIBLINEAR,
        "test_linearsvc_crammer_singer": LIBLINEAR,
        "test_linearsvc_fit_sampleweight": LIBLINEAR,
        "test_crammer_singer_binary": LIBLINEAR,
        "test_linearsvc_iris": LIBLINEAR,
        "test_dense_liblinear_intercept_handling": LIBLINEAR,
        "test_liblinear_set_coef": LIBLINEAR,
        "test_linearsvc_verbose": LIBLINEAR,
        "test_linear_svm_convergence_warnings": LIBLINEAR,
        "test_lsvc_intercept_scaling_zero": LIBLINEAR,
        "test_linearsvm_liblinear_sample_weight": LIBLINEAR,
        "test_dual_auto": LIBLINEAR,
        "test_dual_auto_edge_cases": LIBLINEAR,
        "test_probability": PROBABILITY,
        "test_hasattr_predict_proba": PROBABILITY,
        "test_probability_raises_futurewarning": PROBABILITY,
        "test_svc_nusvc_probA_probB_deprecated": PROBABILITY,
        "test_tweak_params": INTERNAL,
        "test_svc_raises_error_internal_representation": INTERNAL,
        "test_libsvm_convergence_warnings": f"{ITERATIONS}; see test_hard_input.py",
        "test_svr_errors": "expects predict to find that a kernel matrix is too small; fit does",
    },
    "test_sparse": {
        "test_linearsvc": LIBLINEAR,
        "test_linearsvc_iris": LIBLINEAR,
        "test_sparse_liblinear_intercept_handling": LIBLINEAR,
        "test_svc": f"{PROBABILITY}; see test_sparse_svc_equals_dense_svc below",
        "test_unsorted_indices": f"{PROBABILITY}; see test_unsorted_indices below",
        "test_sparse_svc_clone_with_callable_kernel": PROBABILITY,
        "test_timeout": f"{ITERATIONS}; see test_hard_input.py",
    },
}


def substituted(name):
    """The module of tests, every class in it that we have replaced by ours."""
    ours = {each: getattr(pairstep.svm, each) for each in pairstep.svm.__all__}
    spec = importlib.util.find_spec(f"sklearn.svm.tests.{name}")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for each in ours.keys() & vars(sklearn.svm).keys():
            patch.setattr(sklearn.svm, each, ours[each])
        spec.loader.exec_module(module)  # evaluates what the tests are parametrised by
    module.svm = types.SimpleNamespace(**{**vars(sklearn.svm), **ours})
    return module


@pytest.fixture(params=[42])
def global_random_seed(request):
    return request.param


def skip(reason):
    """A test in the place of one that is skipped: without its parameters, once."""

    @pytest.mark.skip(reason=reason)
    def skipped():
        raise AssertionError

    return skipped


OWN = {name: substituted(name) for name in SKIPPED}

# Their machines are stopped early on purpose, here and there without expecting the warning.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

for _module, _skipped in SKIPPED.items():
    for _name, _test in vars(OWN[_module]).copy().items():
        if _name.startswith("test_") and isinstance(_test, types.FunctionType):
            if _name in _skipped:
                _test = skip(_skipped[_name])
            globals()[f"{_module}_{_name.removeprefix('test_')}"] = _test


@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_skipped_exists(name):
    assert not SKIPPED[name].keys() - vars(OWN[name]).keys()


@pytest.mark.parametrize("name", SKIPPED)
def test_our_classes_are_tested(name):
    assert OWN[name].svm.SVC is SVC


SPARSE = OWN["test_sparse"]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("container", SPARSE.CSR_CONTAINERS + SPARSE.LIL_CONTAINERS)
@pytest.mark.parametrize(
    ("X", "y", "new"),
    [
        (SPARSE.X, SPARSE.Y, SPARSE.T),
        (SPARSE.X2, SPARSE.Y2, SPARSE.T2),
        (SPARSE.X_blobs[:80], SPARSE.y_blobs[:80], SPARSE.X_blobs[80:]),
        (SPARSE.iris.data, SPARSE.iris.target, SPARSE.iris.data),
    ],
)
def test_sparse_svc_equals_dense_svc(X, y, new, container, kernel):
    machine = SVC(gamma=1, kernel=kernel, decision_function_shape="ovo")
    SPARSE.check_svm_model_equal(machine, container(X), y, new)


def test_unsorted_indices():
    X, y = SPARSE.load_digits(return_X_y=True)
    X, new, y = SPARSE.sparse.csr_array(X[:50]), SPARSE.sparse.csr_array(X[50:100]), y[:50]
    machine = SVC(kernel="linear").fit(X, y)
    shuffled = SVC(kernel="linear").fit(reversed_rows(X), y)
    np.testing.assert_array_equal(machine.coef_.toarray(), shuffled.coef_.toarray())
    np.testing.assert_array_equal(
        machine.decision_function(new), machine.decision_function(reversed_rows(new))
    )


def reversed_rows(X):
    """The same matrix, the entries of each row stored from right to left."""
    order = np.concatenate([np.arange(b, e)[::-1] for b, e in itertools.pairwise(X.indptr)])
    result = SPARSE.sparse.csr_array((X.data[order], X.indices[order], X.indptr), X.shape)
    assert not result.has_sorted_indices
    return result
