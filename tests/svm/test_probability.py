"""Class probabilities, compared with scikit-learn's and part by part with other methods."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import samples
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import scale

import pairstep.svm
from pairstep import _core
from pairstep.svm import SVC, SVCCV, NuSVC
from pairstep.svm.duals import c_classification, hold_out, nu_classification
from pairstep.svm.engine import Kernel, decide, solve
from pairstep.svm.probability import FOLDS, folds

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER[0]), CANCER[1]
EXACT = {"tol": 1e-9, "probability": True, "random_state": 7}
# nu/2 times the size of a fold is not an integer: otherwise all support vectors may be at their
# bounds, and then the margin is not unique.
NU = {SVC: {}, NuSVC: {"nu": 0.2134}}

pytestmark = pytest.mark.filterwarnings(
    "ignore:The `probability`:FutureWarning", "ignore:.*`prob[AB]_`:FutureWarning"
)


def check_same(model, X, y, new=None, **options):
    """Check that sigmoids and probabilities equal scikit-learn's for the same random_state."""
    new = X if new is None else new
    model.fit(X, y, **options)
    theirs = model.to_sklearn().fit(X, y, **options)
    np.testing.assert_allclose(model.probA_, theirs.probA_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.probB_, theirs.probB_, rtol=1e-4, atol=1e-4)
    # With two classes, scikit-learn's iteration stops within 0.005 of the sigmoid.
    atol = 5e-3 if len(model.classes_) == 2 else 3e-5
    np.testing.assert_allclose(model.predict_proba(new), theirs.predict_proba(new), atol=atol)


@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_same_as_scikit_learn(Estimator, data):
    """tests/svm/test_models.py has other kernels and storages."""
    check_same(Estimator(gamma=0.1, **NU[Estimator], **EXACT), *data)


def test_same_as_scikit_learn_with_many_classes():
    X, y = load_digits(return_X_y=True)
    check_same(SVC(gamma=0.001, **EXACT), X[:500], y[:500], X[500:])


@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_same_as_scikit_learn_with_weights(Estimator):
    X, y = CANCER
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.5, 2, len(y)) * (rng.random(len(y)) > 0.2)
    settings = {"nu": 0.1} if Estimator is NuSVC else {"class_weight": {0: 3.0}}
    check_same(Estimator(gamma=0.05, **settings, **EXACT), X, y, sample_weight=weights)


# So small that some folds are empty and some models see only one class.
@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 2), (1, 4), (2, 3), (5, 1), (3, 3), (1, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_same_as_scikit_learn_on_very_few_samples(sizes, seed):
    y = np.repeat([0, 1], sizes)
    X = np.random.default_rng(seed).normal(size=(len(y), 2)) + y[:, None]
    check_same(SVC(**{**EXACT, "random_state": seed}), X, y)


@pytest.mark.parametrize("seed", range(5))
def test_folds_without_a_nu(seed):
    """A model of cross-validation may have too few samples of a class for its nu."""
    y = np.repeat([0, 1], [4, 6])
    X = np.random.default_rng(seed).normal(size=(10, 2)) + 2 * y[:, None]
    model = NuSVC(nu=0.8, **{**EXACT, "random_state": seed}).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_classes_of_one_sample():
    X, y = np.diag([1.0, 2.0, 3.0]), ["a", "b", "c"]
    check_same(SVC(gamma=0.5, **EXACT), X, y)


def drawn(n, seed):
    """LIBSVM's shuffle with scikit-learn's numbers, from NumPy's Mersenne twister."""
    order, numbers = np.arange(n), np.random.RandomState(seed)
    for i in range(n):
        span = n - i
        while True:
            product = int(numbers.randint(0, 2**32, dtype=np.uint32)) * span
            if product % 2**32 >= 2**32 % span:
                break
        j = i + product // 2**32
        order[[i, j]] = order[[j, i]]
    return order


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5, 6, 9, 10, 11, 1000])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 2])
def test_folds_are_those_of_libsvm(n, seed):
    parts = folds(n, seed)
    assert len(parts) == FOLDS
    np.testing.assert_array_equal(np.concatenate(parts), drawn(n, seed))
    assert [len(part) for part in parts] == [(k + 1) * n // 5 - k * n // 5 for k in range(5)]


def platt(decisions, positives):
    """Minus the log-likelihood of slope and offset, with Platt's targets."""
    n = len(decisions)
    high, low = (positives + 1) / (positives + 2), 1 / (n - positives + 2)
    target = np.repeat([high, low], [positives, n - positives])

    def loss(parameters):
        u = parameters[0] * decisions + parameters[1]
        return float((target * u + np.logaddexp(0, -u)).sum())

    return loss


@pytest.mark.parametrize(
    ("positives", "negatives"), [(1, 0), (0, 1), (1, 1), (3, 40), (40, 3), (500, 700)]
)
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_sigmoid_is_the_likeliest(positives, negatives, spread):
    rng = np.random.default_rng(positives)
    side = np.repeat([1.0, -1.0], [positives, negatives])
    decisions = spread * (rng.normal(size=len(side)) + side)
    slope, offset = _core.fit_sigmoid(decisions, positives)
    loss = platt(decisions / spread, positives)
    best = scipy.optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead", tol=1e-9)
    # It ends where both derivatives are below 1e-5, so earlier where decisions are small.
    assert loss([slope * spread, offset]) <= best.fun + (1e-3 if spread < 1 else 1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e9, 1e150])
def test_sigmoid_of_extreme_decisions(size):
    slope, offset = _core.fit_sigmoid(size * np.array([1.0, 2.0, -1.0, -2.0]), 2)
    assert np.isfinite([slope, offset]).all()


def coupled(decisions, slopes, offsets, classes):
    """Return the minimizer on the simplex from the linear system of its optimality conditions."""
    r = np.zeros((classes, classes))
    with np.errstate(over="ignore"):
        likely = np.clip(1 / (1 + np.exp(slopes * decisions + offsets)), 1e-7, 1 - 1e-7)
    r[np.triu_indices(classes, 1)] = likely
    r = r + np.tril(1 - r.T, -1)
    Q = -r.T * r
    np.fill_diagonal(Q, (r**2).sum(axis=0) - np.diag(r) ** 2)
    system = np.block([[Q, np.ones((classes, 1))], [np.ones((1, classes)), np.zeros((1, 1))]])
    return np.linalg.lstsq(system, np.r_[np.zeros(classes), 1.0], rcond=None)[0][:classes], Q


@settings(max_examples=60, deadline=None)
@given(classes=st.integers(2, 9), seed=st.integers(0, 2**16), size=st.sampled_from([0.1, 1.0, 5.0]))
def test_coupling_is_the_minimum(classes, seed, size):
    rng = np.random.default_rng(seed)
    pairs = classes * (classes - 1) // 2
    slopes, offsets = -rng.uniform(0.5, 3, pairs), rng.normal(size=pairs)
    decisions = size * rng.normal(size=(3, pairs))
    given = _core.couple(decisions, slopes, offsets, classes, 1)
    np.testing.assert_allclose(given.sum(axis=1), 1, rtol=1e-12)
    assert (given > 0).all()
    for row, p in zip(decisions, given, strict=True):
        best, Q = coupled(row, slopes, offsets, classes)
        if classes == 2:
            np.testing.assert_allclose(p, best, atol=1e-7)
        # It ends where all entries of Qp are within 0.005 / k of p'Qp.
        assert np.abs(Q @ p - p @ Q @ p).max() <= 0.005 / classes + 1e-12
        assert p @ Q @ p <= best @ Q @ best + 0.01 / classes


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 1000])
def test_coupling_in_threads(classes, rows):
    rng = np.random.default_rng(rows)
    pairs = classes * (classes - 1) // 2
    slopes, offsets, decisions = -np.ones(pairs), np.zeros(pairs), rng.normal(size=(rows, pairs))
    one, two = (_core.couple(decisions, slopes, offsets, classes, n) for n in (1, 2))
    assert one.shape == (rows, classes)
    np.testing.assert_array_equal(one, two)


def test_coupling_gets_valid_probabilities():
    with pytest.raises(ValueError, match="per pair of classes"):
        _core.couple(np.zeros((1, 2)), np.zeros(2), np.zeros(2), 3, 1)
    with pytest.raises(ValueError, match="positives must be"):
        _core.fit_sigmoid(np.zeros(2), 3)


@pytest.mark.parametrize(
    "written",
    [c_classification, lambda i, j, limit: nu_classification(i, j, limit, 0.3)],
    ids=["C", "nu"],
)
def test_held_out_rows_get_decisions_without_training(written):
    X, y = CANCER
    limit = np.random.default_rng(3).uniform(0.5, 2, len(y))
    positive, negative = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    held = folds(len(y), 11)[2]
    dual = written(positive, negative, limit)
    seen = np.delete(dual.rows, held)
    whole = hold_out(dual, held)
    fewer = written(seen[y[seen] == 0], seen[y[seen] == 1], limit)
    settings = {
        "tol": 1e-10, "max_iter": 10**6, "time_limit": np.inf, "cache_bytes": 2**26, "threads": 1,
    }  # fmt: skip
    kernel = Kernel("rbf", 0.02)
    one, other = solve(X, kernel, [whole, fewer], **settings)
    assert not one.z[held].any()
    np.testing.assert_allclose(np.delete(one.z, held), other.z, atol=1e-7)
    np.testing.assert_allclose(whole.totals, fewer.totals, atol=1e-9)
    sums = decide(X[seen], kernel, other.z[:, None], X[dual.rows[held]], threads=1).ravel()
    np.testing.assert_allclose((one.gradient - whole.linear)[held], sums, atol=1e-7)


def test_infinite_C():
    X, y = IRIS
    check_same(SVC(C=np.inf, gamma=1.0, **EXACT), X[:100], y[:100])


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
@pytest.mark.parametrize("Estimator", ["SVC", "NuSVC"])
def test_log_loss_on_new_samples(Estimator, load):
    """Also with default tolerances, which change single probabilities."""
    X, y = load(return_X_y=True)
    X = np.ascontiguousarray(X / X.std(), np.float32)
    order = np.random.default_rng(4).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    settings = {"probability": True, "random_state": 0}
    if Estimator == "NuSVC":
        settings["nu"] = 0.2
    losses = []
    for module in (pairstep.svm, sklearn.svm):
        model = getattr(module, Estimator)(**settings).fit(X[train], y[train])
        losses.append(log_loss(y[test], model.predict_proba(X[test])))
    assert abs(losses[0] - losses[1]) < 0.005
    assert losses[0] < 0.6


def test_random_state():
    X, y = make_classification(120, random_state=1)
    same = [SVC(probability=True, random_state=3).fit(X, y).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    other = SVC(probability=True, random_state=4).fit(X, y).predict_proba(X)
    assert np.abs(same[0] - other).max() > 1e-6
    generator = np.random.RandomState(3)
    drawn = [SVC(probability=True, random_state=generator).fit(X, y).probA_ for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert drawn[0] == sklearn_slope(X, y, np.random.RandomState(3))


def sklearn_slope(X, y, random_state):
    theirs = sklearn.svm.SVC(probability=True, random_state=random_state, tol=1e-10).fit(X, y)
    return pytest.approx(theirs.probA_, rel=1e-4)


def test_nothing_is_drawn_without():
    X, y = IRIS
    generator = np.random.RandomState(3)
    SVC(random_state=generator).fit(X, y)
    assert generator.randint(10**6) == np.random.RandomState(3).randint(10**6)


def test_probabilities_do_not_change_the_model():
    X, y = IRIS
    plain, calibrated = SVC().fit(X, y), SVC(probability=True).fit(X, y)
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(calibrated, name))
    assert len(calibrated.optimality_.status) == 3
    assert len(plain.probA_) == len(plain.probB_) == 0


def test_availability():
    X, y = IRIS
    for model in (SVC(), NuSVC(), SVC(probability=False)):
        for name in ("predict_proba", "predict_log_proba"):
            assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="predict_proba"):
        SVC().predict_proba  # noqa: B018
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SVC(probability=True).predict_proba(X)
    late = SVC().fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="when fitted with probability=False"):
        late.predict_proba(X)


@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
@pytest.mark.parametrize("probability", [False, True, np.True_])
def test_deprecation(Estimator, probability):
    X, y = IRIS
    name = Estimator.__name__
    with pytest.warns(FutureWarning, match=rf"`CalibratedClassifierCV\({name}\(\), ") as caught:
        model = Estimator(probability=probability).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(FutureWarning, match="`probA_` was deprecated"):
        assert len(model.probA_) == 3 * bool(probability)
    with pytest.warns(FutureWarning, match="`probB_` was deprecated"):
        assert len(model.probB_) == 3 * bool(probability)


@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_warm_start(Estimator):
    X, y = IRIS
    model = Estimator(warm_start=True, gamma=0.1, **EXACT).fit(X, y)
    cold = model.predict_proba(X)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), cold, atol=1e-6)
    assert (model.n_iter_ == 1).all()
    X, y = np.vstack([X, X[::3] + 0.1]), np.r_[y, y[::3]]
    more = Estimator(gamma=0.1, **EXACT).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), more.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("lost", [[0], [2], [0, 1]])
def test_classes_without_weight(lost):
    """Some models were fitted to one class only, or to none."""
    X, y = IRIS
    y = np.where(np.arange(150) % 10 == 0, 3, y)
    model = SVC(class_weight=dict.fromkeys(lost, 0.0), **EXACT).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_max_iter_warns_once_for_all_binary_problems():
    X, y = IRIS
    with pytest.warns(ConvergenceWarning, match="in 18 binary problems") as caught:
        model = SVC(probability=True, max_iter=1).fit(X, y)
    assert len([warning for warning in caught if warning.category is ConvergenceWarning]) == 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_support_columns():
    X, y = IRIS
    K = X @ X.T
    model = SVC(kernel="precomputed", **EXACT).fit(K, y)
    expected = model.predict_proba(K)
    model.set_params(support_columns=True)
    np.testing.assert_array_equal(model.predict_proba(K[:, model.support_]), expected)


def calibration_error(outcome, probability):
    """Return the mean distance between probabilities and frequencies, over ten intervals."""
    interval = np.minimum((10 * probability).astype(int), 9)
    return sum(
        np.mean(some) * abs(outcome[some].mean() - probability[some].mean())
        for some in (interval == k for k in range(10))
        if some.any()
    )


@pytest.mark.parametrize(
    ("name", "C", "gamma"),
    [("phishing.gz", 10.0, 0.1), ("splice.gz", 1.0, 0.01), ("german.numer_scale.gz", 1.0, 0.05)],
)
def test_calibration_on_held_out_data(name, C, gamma):
    """Reliability, Brier score and log loss are those of CalibratedClassifierCV."""
    X, new, y, actual = train_test_split(*samples(name), train_size=0.4, random_state=0)
    ours = SVC(C=C, gamma=gamma, probability=True, random_state=0).fit(X, y)
    theirs = CalibratedClassifierCV(SVC(C=C, gamma=gamma), ensemble=False).fit(X, y)
    outcome = (actual == ours.classes_[1]).astype(float)
    one, other = (model.predict_proba(new)[:, 1] for model in (ours, theirs))
    assert brier_score_loss(outcome, one) < 1.01 * brier_score_loss(outcome, other)
    assert log_loss(outcome, one) < 1.01 * log_loss(outcome, other)
    assert calibration_error(outcome, one) < max(0.03, calibration_error(outcome, other) + 0.01)
    # A constant probability, which is calibrated but useless, is much worse.
    assert brier_score_loss(outcome, one) < 0.85 * outcome.var()


@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
def test_probabilities_of_a_search(data):
    X, y = data
    grid = {"Cs": [0.1, 10.0], "gammas": [0.01, 0.1]}
    search = SVCCV(probability=True, random_state=3, **grid).fit(X, y)
    best = SVC(probability=True, random_state=3, **search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(search.predict_log_proba(X), np.log(search.predict_proba(X)))
    plain = SVCCV(random_state=3, **grid).fit(X, y)
    assert not hasattr(plain, "predict_proba")
    np.testing.assert_array_equal(
        plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
def test_a_search_by_the_log_loss(data):
    """The candidates are calibrated within each fold, as in a grid search."""
    X, y = data
    seed, scoring = 3, "neg_log_loss"
    grid = {"C": [0.1, 10.0], "gamma": [0.01, 0.1]}
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = SVC(probability=True, random_state=seed, tol=1e-6)
    theirs = GridSearchCV(model, grid, scoring=scoring, cv=StratifiedKFold(3)).fit(X, y)
    ours = SVCCV(
        Cs=grid["C"], gammas=grid["gamma"], probability=True, random_state=seed, scoring=scoring,
        cv=StratifiedKFold(3), tol=1e-6,
    ).fit(X, y)  # fmt: skip
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.02
    )


def test_a_search_warns_once_and_only_calibrates_the_last_fit(monkeypatch):
    X, y = IRIS
    counts = []
    fit_sigmoid = _core.fit_sigmoid
    monkeypatch.setattr(
        "pairstep._core.fit_sigmoid", lambda *given: counts.append(1) or fit_sigmoid(*given)
    )
    with pytest.warns(FutureWarning, match="probability") as caught:
        SVCCV(Cs=2, gammas=2, probability=True).fit(X, y)
    assert len(caught) == 1
    assert len(counts) == 3  # pairs of classes
