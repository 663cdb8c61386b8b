"""Derivatives of validation losses, compared with differences of fits."""

import numpy as np
import pytest

from pairstep import svm
from pairstep.svm import SVC, SVR, NuSVC, tune_by_gradient, validation_gradient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3))
NOISE = 0.3 * RNG.normal(size=160)
CLASSES = np.where(X[:, 0] * X[:, 1] + X[:, 0] + NOISE > 0, "yes", "no")
TARGETS = np.sin(X[:, 0]) + 0.5 * X[:, 1] + NOISE / 3
STEP = 1e-5

MODELS = [
    SVC(C=2.0, gamma=0.4, tol=1e-10),
    SVC(C=0.5, kernel="linear", tol=1e-10),
    SVC(C=0.5, kernel="poly", degree=2, gamma=0.3, coef0=1.0, tol=1e-10),
    SVR(C=2.0, gamma=0.4, epsilon=0.1, tol=1e-10),
]


def loss_of(model, loss, factors=None, **changed):
    scaled = X if factors is None else X * factors
    y = TARGETS if isinstance(model, SVR) else CLASSES
    fitted = type(model)(**model.get_params() | changed).fit(scaled[:100], y[:100])
    return validation_gradient(fitted, scaled[100:], y[100:], loss)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_derivatives_are_those_of_fits(model, loss):
    if isinstance(model, SVR) and loss == "logistic":
        pytest.skip("SVR has no margins")
    found = loss_of(model, loss)
    assert not found.degenerate

    def difference(change):
        ahead, behind = (loss_of(model, loss, **change(sign * STEP)).loss for sign in (1, -1))
        return (ahead - behind) / (2 * STEP)

    assert pytest.approx(difference(lambda t: {"C": model.C + t}), rel=1e-3, abs=1e-6) == found.C
    if model.kernel != "linear":
        expected = difference(lambda t: {"gamma": model.gamma + t})
        assert found.gamma == pytest.approx(expected, rel=1e-3, abs=1e-6)
    else:
        assert found.gamma == 0.0
    for k in range(3):
        expected = difference(lambda t, k=k: {"factors": 1 + t * np.eye(3)[k]})
        assert found.scales[k] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def span_loss(model, factors=None, **changed):
    scaled = X[:80] if factors is None else X[:80] * factors
    y = (TARGETS if isinstance(model, SVR) else CLASSES)[:80]
    fitted = type(model)(**model.get_params() | changed).fit(scaled, y)
    return validation_gradient(fitted, scaled, y, "span")


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_derivatives_of_the_span_loss(model):
    found = span_loss(model)

    def difference(change):
        ahead, behind = (span_loss(model, **change(sign * STEP)).loss for sign in (1, -1))
        return (ahead - behind) / (2 * STEP)

    assert pytest.approx(difference(lambda t: {"C": model.C + t}), rel=1e-3, abs=1e-6) == found.C
    if model.kernel != "linear":
        expected = difference(lambda t: {"gamma": model.gamma + t})
        assert found.gamma == pytest.approx(expected, rel=1e-3, abs=1e-6)
    for k in range(3):
        expected = difference(lambda t, k=k: {"factors": 1 + t * np.eye(3)[k]})
        assert found.scales[k] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_spans_predict_fits_without_a_sample():
    model = SVC(C=2.0, gamma=0.4, tol=1e-10)
    predicted = span_loss(model).decisions
    samples, y = X[:80], CLASSES[:80]
    exact = np.array([
        SVC(**model.get_params())
        .fit(np.delete(samples, p, axis=0), np.delete(y, p))
        .decision_function(samples[p : p + 1])[0]
        for p in range(80)
    ])  # fmt: skip
    training = model.fit(samples, y).decision_function(samples)
    assert np.mean(np.abs(predicted - exact) < 1e-6) > 0.5  # the free vectors stayed free
    assert np.abs(predicted - exact).mean() < 0.5 * np.abs(training - exact).mean()


def test_spans_need_the_training_samples():
    model = SVC().fit(X[:80], CLASSES[:80])
    with pytest.raises(ValueError, match="in the same order"):
        validation_gradient(model, X[80:], CLASSES[80:], "span")


def test_tuning_with_spans_needs_one_fit_for_each_evaluation():
    tuned = tune_by_gradient(SVC(gamma=0.3), X, CLASSES, loss="span", max_iter=5)
    assert tuned.loss < tuned.history[0]
    assert tuned.model.score(X, CLASSES) > 0.85


def test_decisions_are_those_of_the_model():
    model = SVC().fit(X, CLASSES)
    found = validation_gradient(model, X, CLASSES)
    np.testing.assert_allclose(found.decisions, model.decision_function(X), atol=1e-9)


def test_without_free_support_vectors_the_derivatives_are_flagged():
    model = SVC(C=1e-4).fit(X, CLASSES)
    assert (np.abs(model.dual_coef_) == 1e-4).sum() >= len(model.support_) - 1
    found = validation_gradient(model, X, CLASSES)
    if (np.abs(model.dual_coef_) == 1e-4).all():
        assert found.degenerate


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (NuSVC(), {}, "SVC or an SVR"),
        (SVC(kernel="sigmoid"), {}, "kernel"),
        (SVC(class_weight="balanced"), {}, "class_weight"),
        (SVC(), {"loss": "hinge"}, "loss"),
        (SVR(), {"loss": "logistic"}, "loss"),
    ],
    ids=["model", "kernel", "weights", "loss", "SVR"],
)
def test_what_is_not_supported_is_refused(model, options, message):
    y = TARGETS if isinstance(model, SVR) else CLASSES
    with pytest.raises((ValueError, TypeError), match=message):
        validation_gradient(model.fit(X, y), X, y, **options)


def test_three_classes_are_refused():
    y = np.arange(160) % 3
    with pytest.raises(ValueError, match="two classes"):
        validation_gradient(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="classes that the model"):
        validation_gradient(SVC().fit(X[y < 2], y[y < 2]), X, y)


def test_irrelevant_features_are_scaled_down():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(150, 12))
    y = wide[:, 0] * wide[:, 1] > 0
    tuned = tune_by_gradient(SVC(C=1.0, gamma=0.1), wide, y, cv=3, max_iter=15)
    assert tuned.scales[:2].min() > 3 * tuned.scales[2:].max()
    test = rng.normal(size=(400, 12))
    truth = test[:, 0] * test[:, 1] > 0
    plain = SVC(C=tuned.C, gamma=0.1).fit(wide, y).score(test, truth)
    assert tuned.model.score(test, truth) > plain + 0.05
    assert tuned.loss < tuned.history[0]


def test_only_C_and_gamma():
    tuned = tune_by_gradient(SVR(C=0.1, gamma=5.0), X, TARGETS, cv=3, scales=False, max_iter=10)
    assert (tuned.scales == 1).all()
    assert tuned.loss < 0.9 * tuned.history[0]
    assert svm.SVR(C=tuned.C, gamma=tuned.gamma).fit(X, TARGETS).score(X, TARGETS) > 0.5


def test_progress_is_printed(capsys):
    tune_by_gradient(SVC(), X, CLASSES, cv=2, scales=False, max_iter=1, verbose=True)
    assert "loss" in capsys.readouterr().out
