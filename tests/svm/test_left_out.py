"""Leave-one-out decisions equal those of refits without each sample."""

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score

from pairstep.svm import SVC, SVCCV, SVR, leave_one_out

TOL = 1e-6


def refits(model, X, y, weights=None):
    """Decisions on each sample of a fit without it, with the gamma and class weights of the fit."""
    found = []
    for i in range(X.shape[0]):
        rest = np.delete(np.arange(X.shape[0]), i)
        other = clone(model)
        if isinstance(model.kernel, str) and model.kernel != "precomputed":
            other.set_params(gamma=float(model._gamma))
        if getattr(model, "class_weight", None) == "balanced":
            given = dict(zip(model.classes_, model.class_weight_, strict=True))
            other.set_params(class_weight=given)
        pairwise = model.kernel == "precomputed"
        train, test = (X[np.ix_(rest, rest)], X[i, rest][None]) if pairwise else (X[rest], X[[i]])
        labels = None if y is None else y[rest]
        other.fit(train, labels, None if weights is None else weights[rest])
        decide = other.predict if is_regressor(model) else other.decision_function
        found.append(decide(test)[0])
    return np.array(found)


def problem(kind, seed, n=60):
    if kind in ("SVR", "NuSVR"):
        X, y = make_regression(n, 4, noise=10, random_state=seed)
        return X, y / y.std()
    X, y = make_classification(
        n, 6, n_informative=4, flip_y=0.1, n_classes=3 if kind == "multiclass" else 2,
        random_state=seed,
    )  # fmt: skip
    return X, None if kind == "OneClassSVM" else y


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="linear", tol=TOL),
        SVC(kernel="poly", degree=2, coef0=1.0, tol=TOL),
        SVC(C=1e-3, tol=TOL),  # all support vectors are at their bounds
        SVC(C=1e6, gamma=10.0, tol=TOL),  # none is
        SVC(dtype=np.float64, tol=TOL),
        SVC(class_weight="balanced", tol=TOL),
        SVC(cache_size=1e-3, tol=TOL),  # too small for the kernel matrix
        SVR(kernel="linear", epsilon=0.0, tol=TOL),
    ],
    ids=["linear", "poly", "bounded", "free", "float64", "balanced", "no matrix", "SVR linear"],
)
def test_kernels_and_extreme_parameters(model):
    X, y = problem(type(model).__name__, 7, 50)
    model = clone(model).fit(X, y)
    found = leave_one_out(model, X, y)
    expected = refits(model, X, y)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found.decisions, expected, atol=200 * TOL * scale)


def test_sample_weights_and_samples_without_weight():
    X, y = problem("SVC", 3)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weights[:5] = 0.0
    model = SVC(tol=TOL).fit(X, y, weights)
    found = leave_one_out(model, X, y, sample_weight=weights)
    np.testing.assert_allclose(found.decisions, refits(model, X, y, weights), atol=200 * TOL)
    assert found.score == pytest.approx(accuracy_score(y, found.predictions, sample_weight=weights))


def test_most_repairs_do_not_need_the_block_solver(monkeypatch):
    from pairstep.svm import left_out

    solved = []
    solve = left_out.solve
    monkeypatch.setattr(
        left_out, "solve", lambda X, kernel, duals, **o: solved.append(len(duals))
        or solve(X, kernel, duals, **o)
    )  # fmt: skip
    X, y = make_classification(600, 10, flip_y=0.1, random_state=0)
    model = SVC().fit(X, y)
    leave_one_out(model, X, y)
    assert sum(solved) - 1 <= 0.1 * len(model.support_)


def test_samples_that_are_not_support_vectors_keep_their_decisions():
    X, y = problem("SVC", 1)
    model = SVC(C=10.0).fit(X, y)
    others = np.setdiff1d(np.arange(len(y)), model.support_)
    assert len(others) > 5
    found = leave_one_out(model, X, y)
    np.testing.assert_allclose(
        found.decisions[others], model.decision_function(X)[others], atol=model.tol
    )
    assert np.abs(found.decisions - model.decision_function(X)).max() > 0.1


def test_a_fit_that_was_not_finished_warns():
    X, y = problem("SVC", 0)
    with pytest.warns(ConvergenceWarning):
        model = SVC(C=1e4, max_iter=3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="leave-one-out solutions miss the tolerance"):
        leave_one_out(model, X, y)


def test_progress_is_printed_if_asked_for(capsys, monkeypatch):
    from pairstep.svm import left_out

    X, y = problem("SVC", 0)
    model = SVC().fit(X, y)
    monkeypatch.setattr(left_out, "SECONDS_BETWEEN_LINES", 0.0)
    leave_one_out(model, X, y)
    assert capsys.readouterr().out == ""
    leave_one_out(model, X, y, verbose=True)
    assert "samples left out" in capsys.readouterr().out


def test_weights_of_a_search():
    X, y = problem("multiclass", 2)
    weight = np.linspace(0.5, 1.5, len(y))
    search = SVCCV(cv="loo", Cs=[0.1, 1.0], gammas=[0.1]).fit(X, y, sample_weight=weight)
    assert search.n_splits_ == 1
    for C, score in zip([0.1, 1.0], search.cv_results_["mean_test_score"], strict=True):
        model = SVC(C=C, gamma=0.1).fit(X, y, sample_weight=weight)
        assert score == leave_one_out(model, X, y, sample_weight=weight).score
