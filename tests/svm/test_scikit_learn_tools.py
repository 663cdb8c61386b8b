"""Common checks of estimators, and other tools of scikit-learn: searches, pipelines, routing."""

import numpy as np
import pandas
import polars
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairstep.svm import SVC, SVCCV, SVR, SVRCV, NuSVC, NuSVR, OneClassSVM, QuantileSVR

X, Y = load_iris(return_X_y=True)
NAMES = ["a", "b", "c", "d"]
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
@pytest.mark.parametrize("Estimator", [SVC, OneClassSVM])
def test_frames(Estimator, frame):
    table = frame(dict(zip(NAMES, X.T, strict=True)))
    model = Estimator().fit(table, Y)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(table), Estimator().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[NAMES[::-1]])


def test_labels_from_a_frame():
    labels = pandas.Series(np.array(["x", "y", "z"])[Y], dtype="category")
    model = SVC().fit(X, labels)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert model.score(X, labels) > 0.95


def test_set_output():
    pipeline = make_pipeline(StandardScaler(), SVC()).set_output(transform="pandas")
    pipeline.fit(pandas.DataFrame(X, columns=NAMES), Y)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


def test_grid_search_in_processes():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1, 10]}, cv=3, n_jobs=2
    ).fit(X, Y)
    assert search.best_score_ > 0.95


def test_search_slices_precomputed_kernels():
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1]}, cv=3).fit(X @ X.T, Y)
    assert search.best_score_ > 0.9


def test_calibration_gives_probabilities():
    model = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("Estimator", ALL)
def test_metadata_routing(Estimator):
    weights = np.linspace(0.5, 2, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Estimator().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, Y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    expected = Estimator().fit(scaled, Y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].dual_coef_, expected.dual_coef_)


def test_cross_validation_with_routed_weights():
    weights = np.linspace(0.5, 2, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_val_score(model, X, Y, params={"sample_weight": weights}, cv=3)
    assert scores.min() > 0.9


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
    SVCCV(Cs=[1.0, 10.0], gammas=2, cv=2),
    SVRCV(Cs=[1.0, 10.0], gammas=2, cv=2),
    SVCCV(Cs=[1.0], kernel="linear", cv=2),
]

UNWEIGHTED_GAMMA = 'gamma="scale" is 1 / (n_features * X.var()) of the rows without their weights'
NO_NAMES = (
    "the message of the estimator names classes, and the check looks for sample_weight in the "
    "signature, which has `**params`"
)


def expected_failures(model):
    if isinstance(model, SVCCV | SVRCV):
        return {"check_classifiers_one_label_sample_weights": NO_NAMES}
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
