"""scikit-learn's common checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR

# Accurate enough that weights and repetitions can be compared, with a gamma that does not change
# when rows are repeated.
EXACT = {"gamma": 0.5, "tol": 1e-10}

ESTIMATORS = [
    *(Estimator() for Estimator in (SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM)),
    *(Estimator(**EXACT) for Estimator in (SVC, SVR, NuSVR, QuantileSVR)),
    NuSVC(nu=0.3, **EXACT),
    SVC(kernel="precomputed"),
    SVR(kernel="linear", tol=1e-10),
    SVC(probability=True, random_state=0),
]

UNWEIGHTED_GAMMA = 'gamma="scale" is 1 / (n_features * X.var()) of the rows without their weights'


def expected_failures(model):
    failures = {}
    if model.gamma == "scale" and model.kernel == "rbf":
        failures["check_sample_weight_equivalence_on_dense_data"] = UNWEIGHTED_GAMMA
        failures["check_sample_weight_equivalence_on_sparse_data"] = UNWEIGHTED_GAMMA
    if isinstance(model, NuSVC):
        failures["check_class_weight_classifiers"] = "NuSVC ignores class_weight"
    return failures


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)
