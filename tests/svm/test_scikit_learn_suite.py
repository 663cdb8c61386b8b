"""scikit-learn's tests of its svm module, run with our classes."""

import importlib.util
import types

import pytest
import sklearn.svm

import pairstep.svm
from pairstep.svm import SVC

LIBLINEAR = "tests LinearSVC, LinearSVR or other parts of LIBLINEAR"

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
        "test_libsvm_convergence_warnings": (
            "expects LIBSVM to need a third iteration: the engine is at the optimum after the first"
        ),
        "test_svr_errors": (
            "expects a fit to a kernel matrix of fewer samples than there are, refused by predict: "
            "fit refuses it"
        ),
    },
    "test_sparse": {
        "test_linearsvc": LIBLINEAR,
        "test_linearsvc_iris": LIBLINEAR,
        "test_sparse_liblinear_intercept_handling": LIBLINEAR,
    },
}


def substituted(name):
    """The module of tests, with scikit-learn's classes replaced by ours."""
    ours = {each: getattr(pairstep.svm, each) for each in pairstep.svm.__all__}
    spec = importlib.util.find_spec(f"sklearn.svm.tests.{name}")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for each in ours.keys() & vars(sklearn.svm).keys():
            patch.setattr(sklearn.svm, each, ours[each])
        spec.loader.exec_module(module)  # evaluates the parameters of the tests
    module.svm = types.SimpleNamespace(**{**vars(sklearn.svm), **ours})
    return module


@pytest.fixture(params=[42])
def global_random_seed(request):
    return request.param


def skip(reason):
    """Replace a skipped test by one without parameters, so that it is reported once."""

    @pytest.mark.skip(reason=reason)
    def skipped():
        raise AssertionError

    return skipped


OWN = {name: substituted(name) for name in SKIPPED}

# Some of these tests stop fits early on purpose, without expecting the warning.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

for _module, _skipped in SKIPPED.items():
    for _name, _test in vars(OWN[_module]).copy().items():
        if _name.startswith("test_") and isinstance(_test, types.FunctionType):
            if _name in _skipped:
                _test = skip(_skipped[_name])
            globals()[f"{_module}_{_name.removeprefix('test_')}"] = _test


@pytest.mark.parametrize("name", SKIPPED)
def test_skipped_tests_exist(name):
    assert not SKIPPED[name].keys() - vars(OWN[name]).keys()


@pytest.mark.parametrize("name", SKIPPED)
def test_our_classes_are_tested(name):
    assert OWN[name].svm.SVC is SVC
