"""A model after updates is the model of a fit to the same samples."""

import copy
import io
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from pairstep import svm
from pairstep.svm import SVC, SVCCV, SVR, NuSVC, NuSVR, OneClassSVM, leave_one_out

TOL = 1e-5
MODELS = {
    "SVC": SVC(C=3.0, tol=TOL),
    "multiclass": SVC(C=2.0, tol=TOL, decision_function_shape="ovo"),
    "NuSVC": NuSVC(nu=0.3, tol=TOL),
    "SVR": SVR(epsilon=0.2, tol=TOL),
    "NuSVR": NuSVR(nu=0.4, tol=TOL),
    "OneClassSVM": OneClassSVM(nu=0.3, tol=TOL),
}


def problem(kind, n=120, seed=0):
    if kind in ("SVR", "NuSVR"):
        X, y = make_regression(n, 4, noise=10, random_state=seed)
        return X, y / y.std()
    X, y = make_classification(
        n, 6, n_informative=4, flip_y=0.1, n_classes=3 if kind == "multiclass" else 2,
        random_state=seed,
    )  # fmt: skip
    return X, y


def decisions(model, X):
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


def objective(model, X, y):
    """The dual objective of a fit to X and y, from the coefficients alone."""
    z = np.zeros(X.shape[0])
    z[model.support_] = model.dual_coef_[0]
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    linear = -np.where(y == 1, 1.0, -1.0)
    return z @ np.exp(-model._gamma * distances) @ z / 2 + linear @ z


def check_like_a_fit(model, X, y, weights=None, tol=300 * TOL):
    other = clone(model).set_params(gamma=model._gamma)
    if getattr(model, "class_weight", None) is not None:
        other.set_params(
            class_weight=dict(zip(model.classes_, model.class_weight_, strict=True))
        )  # fmt: skip
    other.fit(X, None if isinstance(model, OneClassSVM) else y, weights)
    assert model.shape_fit_ == X.shape
    assert model.optimality_.kkt_violation.max() <= model.tol
    assert set(model.optimality_.status) == {"optimal"}
    np.testing.assert_allclose(decisions(model, X), decisions(other, X), atol=tol)
    rows = model.support_vectors_ - X[model.support_]
    assert abs(rows).max() == 0


def test_a_stream_of_updates_ends_at_the_objective_of_a_fit():
    X, y = problem("SVC", 460)
    n = 60
    model = SVC(C=2.0, gamma=0.1).fit(X[:n], y[:n])
    for k in range(n, 460):
        model.update(X[[k]], y[[k]], remove=[0])
    other = SVC(C=2.0, gamma=0.1, tol=1e-8).fit(X[-n:], y[-n:])
    ours, best = (objective(one, X[-n:], y[-n:]) for one in (model, other))
    assert best - 1e-9 <= ours <= best + model.optimality_.duality_gap[0] + 1e-9
    assert ours - best <= model.tol * 2.0 * n


def test_weights_of_samples_and_classes():
    X, y = problem("SVC")
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weights[[5, 110]] = 0.0
    model = SVC(class_weight="balanced", tol=TOL).fit(X[:100], y[:100], weights[:100])
    model.update(X[100:], y[100:], weights[100:], remove=[0, 5])
    rows = np.delete(np.arange(120), [0, 5])
    check_like_a_fit(model, X[rows], y[rows], weights[rows])


def test_samples_that_are_not_support_vectors_change_nothing():
    X, y = problem("SVC")
    model = SVC(C=3.0).fit(X, y)
    others = np.setdiff1d(np.arange(len(y)), model.support_)
    before = copy.copy(model.dual_coef_)
    removed = SVC(C=3.0).fit(X, y).update(remove=others)
    np.testing.assert_allclose(removed.dual_coef_, before, rtol=1e-12)
    assert removed.n_iter_[0] == 1
    added = removed.update(X[others], y[others])
    np.testing.assert_allclose(added.dual_coef_, before, rtol=1e-12)


def test_updates_continue_with_warm_starts_and_leave_one_out():
    X, y = problem("SVC")
    model = SVC(tol=TOL, warm_start=True).fit(X[:100], y[:100])
    model.update(X[100:], y[100:])
    check_like_a_fit(model, X, y)
    found = leave_one_out(model, X, y)
    other = leave_one_out(SVC(tol=TOL, gamma=model._gamma).fit(X, y), X, y)
    np.testing.assert_allclose(found.decisions, other.decisions, atol=300 * TOL)
    model.fit(X, y)
    assert model.n_iter_[0] < 100


def test_a_failed_update_leaves_the_model_unchanged():
    X, y = problem("multiclass")
    model = SVC().fit(X, y)
    before = pickle.dumps(model)
    last = np.flatnonzero(y == 2)
    for arguments, message in [
        (((X[:1], [3]), {}), "label 3, which is not one of the classes"),
        (((), {"remove": last}), "no sample of class 2"),
        (((), {"remove": [120]}), "index 120, but there are 120"),
        (((), {"remove": [-1]}), "index -1"),
        (((), {"remove": [1, 1]}), "twice"),
        (((), {"remove": [0.5]}), "list of integers"),
        (((X[:2], y[:1]), {}), "inconsistent numbers of samples"),
        (((X[:1, :2], y[:1]), {}), "features"),
        (((np.full((1, 6), np.nan), y[:1]), {}), "NaN"),
        (((None, y[:1]), {}), "need X_new"),
        (((sparse.csr_array(X[:1]), y[:1]), {}), "X_new must be dense"),
    ]:
        given, named = arguments
        with pytest.raises(ValueError, match=message):
            model.update(*given, **named)
    assert pickle.dumps(model) == before
    assert model.update() is model
    with pytest.raises(ValueError, match="nu is infeasible"):
        NuSVC(nu=0.8).fit(X, y).update(remove=last[5:])


def test_models_without_training_data_are_refused():
    X, y = problem("SVC")
    model = SVC().fit(X, y)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    file = io.BytesIO()
    svm.save(model, file)
    file.seek(0)
    for one in [*copies, svm.load(file)]:
        with pytest.raises(ValueError, match="does not have its training data"):
            one.update(X[:1], y[:1])
    assert len(pickle.dumps(model)) < len(pickle.dumps(model.support_vectors_)) + 8000
    K = X @ X.T
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        SVC(kernel="precomputed").fit(K, y).update(remove=[0])
    with pytest.raises(ValueError, match="needs a kernel that pairstep computes"):
        SVC(kernel=lambda A, B: A @ B.T).fit(X, y).update(remove=[0])
    with pytest.warns(FutureWarning):
        model = SVC(probability=True).fit(X, y)
    with pytest.raises(ValueError, match="probability=True"):
        model.update(remove=[0])


def test_data_that_were_changed_in_place_are_refused():
    X, y = problem("SVC")
    model = SVC().fit(X, y)
    X *= 2
    with pytest.raises(ValueError, match="was changed since"):
        model.update(remove=[0])


def test_the_best_model_of_a_search_can_be_updated():
    X, y = problem("SVC")
    search = SVCCV(Cs=[1.0], gammas=[0.1]).fit(X, y)
    check_like_a_fit(search.best_estimator_.update(remove=[0]), X[1:], y[1:], tol=0.02)


def test_an_update_that_is_not_finished_warns():
    X, y = problem("SVC")
    model = SVC(C=1e4, tol=TOL).fit(X[:100], y[:100])
    model.set_params(max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model.update(X[100:], y[100:])
    assert model.fit_status_ == 1


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "multiclass"])
def test_repairs_that_solve_for_some_variables(kind):
    X, y = problem(kind, 1400)
    labels = (lambda rows: None) if kind == "OneClassSVM" else (lambda rows: y[rows])
    model = clone(MODELS[kind]).set_params(tol=1e-3, gamma=0.2).fit(X[:1200], labels(slice(1200)))
    rows = np.arange(1200)
    rng = np.random.default_rng(0)
    for k in range(1200, 1230):
        gone = np.unique([rng.choice(model.support_), rng.integers(len(rows))])
        model.update(X[[k]], labels([k]), remove=gone)
        assert model.optimality_.kkt_violation[0] <= model.tol
        rows = np.append(np.delete(rows, gone), k)
    check_like_a_fit(model, X[rows], y[rows], tol=50 * model.tol)
    # Gradients of all samples, not only of those that determine the violation.
    dual = model._training.solved[0].dual
    K = rbf_kernel(X[rows], gamma=0.2)
    z = np.bincount(dual.rows, dual.z, minlength=len(rows))
    np.testing.assert_allclose(dual.gradient, dual.linear + (K @ z)[dual.rows], atol=1e-4)


@pytest.mark.parametrize("format", [np.asarray, sparse.csr_array])
def test_a_sliding_window_reuses_its_memory(format):
    X, y = problem("SVC", 900)
    n = 50
    model = SVC(C=2.0, gamma=0.1, tol=TOL).fit(format(X[:n]), y[:n])
    most = 0
    for k in range(n, 900, 5):
        new = np.arange(k, k + 5)
        model.update(format(X[new]), y[new], remove=np.arange(5))
        most = max(most, model._training.samples.data.shape[0])
    assert most <= 500
    check_like_a_fit(model, format(X[-n:]), y[-n:])


def test_shallow_copies_are_updated_independently():
    X, y = problem("SVC")
    model = SVC(tol=TOL).fit(X[:60], y[:60]).update(remove=[0])
    other = copy.copy(model)
    stay = np.append(np.delete(np.arange(1, 60), model.support_[:5]), np.arange(60, 80))
    model.update(X[60:80], y[60:80], remove=model.support_[:5])
    gone = other.support_[5:9]
    other.update(X[80:], y[80:], remove=gone)
    rows = np.append(np.delete(np.arange(1, 60), gone), np.arange(80, 120))
    check_like_a_fit(other, X[rows], y[rows])
    check_like_a_fit(model, X[stay], y[stay])


def test_parameters_may_change_between_updates():
    X, y = problem("SVC", 1300)
    model = SVC(C=1.0, gamma=0.2).fit(X[:1200], y[:1200]).update(remove=[0])
    model.set_params(C=3.0, tol=1e-4).update(X[1200:], y[1200:])
    check_like_a_fit(model, X[1:], y[1:], tol=30 * model.tol)
    others = np.setdiff1d(np.arange(1200), model.support_)[:2]
    model.set_params(tol=1e-6).update(remove=others)
    rows = np.delete(np.arange(1, 1300), others)
    check_like_a_fit(model, X[rows], y[rows], tol=30 * model.tol)
    model.set_params(kernel="poly", degree=2, coef0=1.0, tol=1e-3).update(remove=[0])
    check_like_a_fit(model, X[rows[1:]], y[rows[1:]], tol=30 * model.tol)
