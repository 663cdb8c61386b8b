"""Conversion to scikit-learn's estimators and to ONNX."""

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVC, SVCCV, SVR, NuSVC, NuSVR, OneClassSVM, to_sklearn

X, Y = load_iris(return_X_y=True)
TWO = Y != 0
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
NAMES = ["a", "b", "c", "d"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Attribute `prob:FutureWarning"),  # skl2onnx reads them
]


def check_same(model, new):
    """Check that both models agree on new samples; return scikit-learn's."""
    theirs = model.to_sklearn()
    assert type(theirs) is getattr(sklearn.svm, type(model).__name__)
    for name in ("decision_function", "score_samples", "predict_proba", "predict_log_proba"):
        assert hasattr(theirs, name) == hasattr(model, name)
        if hasattr(model, name):
            expected = getattr(model, name)(new)
            atol = 1e-6
            if name.endswith("proba") and len(model.classes_) == 2:
                expected = model.predict_proba(new)
                name, atol = "predict_proba", 5e-3  # the tolerance of scikit-learn's iteration
            np.testing.assert_allclose(getattr(theirs, name)(new), expected, 1e-6, atol)
    if isinstance(model, SVR | NuSVR):
        np.testing.assert_allclose(theirs.predict(new), model.predict(new), rtol=1e-6)
    elif not isinstance(model, OneClassSVM):  # many of its decisions are 0 up to rounding
        np.testing.assert_array_equal(theirs.predict(new), model.predict(new))
    for name in ("support_", "n_support_", "intercept_", "n_iter_", "fit_status_", "shape_fit_"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(model, name))
    return theirs


@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
def test_probabilities(Estimator, container, rows):
    data, labels = container(X[rows]), np.array(["x", "y", "z"])[Y[rows]]
    check_same(Estimator(probability=True, random_state=0).fit(data, labels), data)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
def test_decision_shapes_and_weights(shape, rows):
    model = SVC(decision_function_shape=shape, class_weight="balanced")
    check_same(model.fit(X[rows], Y[rows], sample_weight=1 + X[rows, 0]), X)
    check_same(SVC(break_ties=True).fit(X[rows], Y[rows]), X)


@pytest.mark.parametrize("Estimator", ALL)
def test_frames(Estimator):
    table = pandas.DataFrame(X, columns=NAMES)
    theirs = check_same(Estimator().fit(table, Y), table)
    assert theirs.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names"):
        theirs.predict(table[NAMES[::-1]])


def test_no_support_vectors():
    check_same(SVR(epsilon=10.0).fit(X, Y), X)
    check_same(SVR(epsilon=10.0).fit(scipy.sparse.csr_array(X), Y), X)


def outputs_of_onnx(model, new, **options):
    """Return the predictions of a model's ONNX file."""
    # Only where NumPy is too old for them: `make test` installs them.
    skl2onnx, onnxruntime = map(pytest.importorskip, ("skl2onnx", "onnxruntime"))
    kind = skl2onnx.common.data_types.FloatTensorType([None, new.shape[1]])
    file = skl2onnx.to_onnx(
        model.to_sklearn(), initial_types=[("X", kind)], options=options or None
    ).SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": new.astype(np.float32)})


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_onnx_of_classifiers(Estimator, rows, kernel):
    model = Estimator(kernel=kernel, gamma=0.02, coef0=0.5).fit(X[rows], Y[rows])
    labels = outputs_of_onnx(model, X[rows])[0]
    np.testing.assert_array_equal(labels, model.predict(X[rows]))


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_onnx_of_probabilities(Estimator, rows):
    model = Estimator(probability=True, random_state=0).fit(X[rows], Y[rows])
    labels, probabilities = outputs_of_onnx(model, X[rows], zipmap=False)
    np.testing.assert_array_equal(labels, model.predict(X[rows]))
    # With two classes, scikit-learn's probabilities are within 0.005.
    atol = 1e-3 if len(model.classes_) > 2 else 5e-3
    np.testing.assert_allclose(probabilities, model.predict_proba(X[rows]), atol=atol)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("Estimator", [SVR, NuSVR])
def test_onnx_of_regressors(Estimator, kernel):
    model = Estimator(kernel=kernel).fit(X, X @ [1.0, 2.0, -1.0, 0.5])
    (predictions,) = outputs_of_onnx(model, X)
    np.testing.assert_allclose(predictions.ravel(), model.predict(X), rtol=1e-4, atol=1e-4)


def test_onnx_of_one_class_models():
    model = OneClassSVM(nu=0.1, gamma=0.1).fit(X)
    labels, decisions = outputs_of_onnx(model, X)
    np.testing.assert_allclose(decisions.ravel(), model.decision_function(X), atol=1e-4)
    sure = np.abs(model.decision_function(X)) > 1e-4
    np.testing.assert_array_equal(labels.ravel()[sure], model.predict(X)[sure])


def test_pipelines_and_searches_are_converted():
    pipeline = make_pipeline(StandardScaler(), SVC(C=2.0)).fit(X, Y)
    theirs = to_sklearn(pipeline)
    assert type(theirs[-1]) is sklearn.svm.SVC
    assert type(pipeline[-1]) is SVC  # the original is unchanged
    np.testing.assert_allclose(theirs.decision_function(X), pipeline.decision_function(X))

    search = SVCCV(Cs=[1.0], gammas=[1.0]).fit(X, Y)
    assert type(to_sklearn(search)) is sklearn.svm.SVC
    np.testing.assert_array_equal(to_sklearn(search).predict(X), search.predict(X))
    grid = GridSearchCV(clone(pipeline), {"svc__C": [1.0, 2.0]}).fit(X, Y)
    assert type(to_sklearn(grid)[-1]) is sklearn.svm.SVC
    np.testing.assert_array_equal(to_sklearn(grid).predict(X), grid.predict(X))

    with pytest.raises(NotFittedError):
        to_sklearn(make_pipeline(StandardScaler(), SVC()))
    with pytest.raises(TypeError, match="got LogisticRegression"):
        to_sklearn(LogisticRegression())
