"""SVCCV and SVRCV give the scores of GridSearchCV over SVC and SVR."""

import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, ShuffleSplit

from pairstep import _core
from pairstep.svm import SVC, SVCCV, SVR, SVRCV

X, Y = load_iris(return_X_y=True)
X = np.ascontiguousarray(X[::2] + 0.01 * np.random.default_rng(0).normal(size=(75, 4)))
Y = Y[::2]
GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.05, 0.5]}
KINDS = {"SVC": (SVC, SVCCV), "SVR": (SVR, SVRCV)}
LISTS = {"C": "Cs", "gamma": "gammas", "epsilon": "epsilons"}
TIMES = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}


def both(kind, X, y, grid=GRID, fit=None, cv=3, scoring=None, **model):
    """Return our search and a GridSearchCV over our estimator, both fitted."""
    Estimator, Search = KINDS[kind]
    lists = {LISTS[name]: values for name, values in grid.items()}
    ours = Search(**lists, cv=cv, scoring=scoring, **model).fit(X, y, **(fit or {}))
    theirs = GridSearchCV(Estimator(**model), grid, cv=cv, scoring=scoring)
    return ours, theirs.fit(X, y, **(fit or {}))


def assert_same(ours, theirs, within=0.0):
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name in set(theirs.cv_results_) - TIMES - {"params"}:
        mine, other = ours.cv_results_[name], theirs.cv_results_[name]
        assert mine.dtype == other.dtype, name
        if name.startswith("rank") and within:
            continue
        if name.startswith("param_"):
            assert mine.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(mine, other, rtol=0, atol=within, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=within)
    assert ours.n_splits_ == theirs.n_splits_


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(24, 150),
    classes=st.integers(2, 4),
    kernel=st.sampled_from(["rbf", "poly", "linear", "precomputed"]),
    sparse=st.booleans(),
    weighted=st.booleans(),
    cache_size=st.sampled_from([200, 0.01]),
)
@example(  # rounds that halve the violation but hardly decrease the objective
    seed=0, n=118, classes=4, kernel="poly", sparse=False, weighted=False, cache_size=200
)
def test_the_scores_of_a_grid_search(seed, n, classes, kernel, sparse, weighted, cache_size):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    data = rng.normal(size=(n, 3)) + y[:, None]
    data[rng.uniform(size=data.shape) < 0.3] = 0.0
    if kernel == "precomputed":
        data = rbf_kernel(data, gamma=0.2)
    elif sparse:
        data = scipy.sparse.csr_array(data)
    grid = {"C": [0.1, 1.0, 30.0]}
    if kernel in ("rbf", "poly"):
        grid["gamma"] = [0.02, 0.3]
    fit = {"sample_weight": rng.uniform(0.0, 2.0, n)} if weighted else {}
    model = {"kernel": kernel, "cache_size": cache_size, "dtype": np.float64, "tol": 1e-9}
    model["class_weight"] = "balanced" if seed % 2 else None
    ours, theirs = both("SVC", data, y, grid, fit, **model)
    assert_same(ours, theirs)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 150),
    kernel=st.sampled_from(["rbf", "linear", "precomputed"]),
    weighted=st.booleans(),
)
def test_the_scores_of_a_grid_search_in_regression(seed, n, kernel, weighted):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 2))
    y = np.sin(data[:, 0]) + 0.1 * rng.normal(size=n)
    if kernel == "precomputed":
        data = rbf_kernel(data, gamma=0.2)
    grid = {"C": [0.1, 3.0], "epsilon": [0.01, 0.2]}
    if kernel == "rbf":
        grid["gamma"] = [0.1, 1.0]
    fit = {"sample_weight": rng.uniform(0.1, 2.0, n)} if weighted else {}
    ours, theirs = both("SVR", data, y, grid, fit, kernel=kernel, dtype="float64", tol=1e-9)
    assert_same(ours, theirs, 1e-6)


def noisy(n):
    rng = np.random.default_rng(n)
    data = rng.normal(size=(n, 2))
    return {"X": data, "y": (data.sum(axis=1) + rng.normal(size=n) > 0).astype(int)}


AREA = make_scorer(roc_auc_score, response_method="decision_function")
LIKE_A_GRID_SEARCH = {
    # Training parts of 128 samples are solved to a tighter tolerance; panels have 48 columns.
    **{f"{n} samples": noisy(n) | {"cv": 5, "tol": 1e-7} for n in (127, 128, 129, 160, 161, 162)},
    "gamma by name": {"X": X * [1, 5, 1, 1],
                      "grid": {"C": [1.0], "gamma": ["scale", "auto", 0.1]}},
    "f1": {"y": Y > 0, "scoring": "f1"},
    "area": {"y": Y > 0, "scoring": AREA},
    "shuffled": {"cv": ShuffleSplit(4, random_state=0)},
    "predefined": {"cv": PredefinedSplit(np.arange(75) % 5 - 1)},
    "groups": {"cv": GroupKFold(3), "fit": {"groups": np.arange(75) % 7}},
    "an infinite C": {"y": Y > 0, "grid": {"C": [1.0, np.inf], "gamma": [0.5]}},
    "only infinite C": {"y": Y > 0, "grid": {"C": [np.inf, np.inf], "gamma": [0.5]}},
    "distances beyond float32": {"X": 1e-20 * X, "grid": {"C": [1.0, 10.0], "gamma": [1e39, 1e40]}},
}  # fmt: skip


@pytest.mark.parametrize("case", LIKE_A_GRID_SEARCH.values(), ids=LIKE_A_GRID_SEARCH)
def test_like_a_grid_search(case):
    ours, theirs = both("SVC", **({"X": X, "y": Y} | case))
    assert_same(ours, theirs)
    assert ours.best_score_ > 0.6


@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_a_scorer_that_fails():
    ours, theirs = both("SVC", X, Y, scoring="roc_auc_ovr")  # needs probabilities
    assert np.isnan(ours.cv_results_["mean_test_score"]).all()
    assert ours.best_index_ == theirs.best_index_


def test_a_split_without_a_second_class_fails_alone():
    cv = [(np.arange(10), np.arange(10, 75)), (np.arange(10, 75), np.arange(10))]
    y = (np.arange(75) >= 10) & (np.arange(75) % 2 == 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours, theirs = both("SVC", X, y, cv=cv)
    assert sum(issubclass(w.category, FitFailedWarning) for w in caught) == 2
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


def test_the_best_model_is_fitted_to_all_samples():
    search = SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=3).fit(X, Y)
    alone = SVC(**search.best_params_).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))
    assert search.score(X, Y) == alone.score(X, Y)
    assert search.classes_.tolist() == [0, 1, 2]
    assert search.n_features_in_ == 4
    assert search.best_estimator_.n_jobs is None
    unfitted = SVCCV(Cs=[1.0], gammas=[0.1], refit=False, cv=3).fit(X, Y)
    assert not hasattr(unfitted, "best_estimator_")
    assert not hasattr(unfitted, "predict")
    chosen = SVCCV(Cs=GRID["C"], gammas=[0.1], cv=3, refit=lambda results: 1).fit(X, Y)
    assert chosen.best_params_ == {"C": 5.0, "gamma": 0.1}


def test_numbers_are_logarithmic_grids():
    search = SVCCV(Cs=3, gammas=3, cv=3).fit(X, Y)
    results = search.cv_results_
    scale = 1 / (4 * X.var())
    np.testing.assert_allclose(np.unique(results["param_C"]), [1e-2, 10**0.5, 1e3])
    np.testing.assert_allclose(
        np.unique(results["param_gamma"]), [0.01 * scale, scale, 100 * scale], rtol=1e-9
    )
    one = SVRCV(Cs=1, gammas=1, epsilons=1, cv=3).fit(X, X[:, 0])
    assert one.best_params_["gamma"] == pytest.approx(scale)
    assert one.best_params_["epsilon"] == pytest.approx(10**-1.5 * X[:, 0].std())


def test_random_state_shuffles_folds():
    ordered = SVRCV(Cs=[1.0], gammas=[1.0], cv=3).fit(X[:, 1:], X[:, 0])
    drawn = [SVRCV(Cs=[1.0], gammas=[1.0], cv=3, random_state=k) for k in (0, 0, 1)]
    scores = [search.fit(X[:, 1:], X[:, 0]).best_score_ for search in drawn]
    assert scores[0] == scores[1]
    assert len({ordered.best_score_, *scores}) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("matrices", [0, 1, 2, 3, 10])
def test_kernels_that_fit_in_memory_are_computed_once(monkeypatch, matrices, dtype):
    """Memory for one matrix: one kernel matrix per gamma. For two or more: distances once."""
    rng = np.random.default_rng(1)
    data, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    made = {"squared_distances": 0, "kernel_matrix": 0}
    for name in made:
        compute = getattr(_core, name)

        def counted(*arguments, name=name, compute=compute):
            made[name] += 1
            return compute(*arguments)

        monkeypatch.setattr(_core, name, counted)
    each = 300 * (300 + 48) * np.dtype(dtype).itemsize / 0.75 / 2**20
    options = {"cv": 4, "n_jobs": 2, "dtype": dtype, "tol": 1e-6, "refit": False}
    grid = {"Cs": [0.5, 5.0, 50.0], "gammas": [0.05, 0.3, 2.0]}
    found = SVCCV(**grid, **options, cache_size=max(matrices, 0.5) * each * 1.001).fit(data, y)
    assert made == {
        "squared_distances": int(matrices >= 2),
        "kernel_matrix": 3 if matrices == 1 else 0,
    }
    theirs = GridSearchCV(
        SVC(dtype=dtype, tol=1e-6),
        {"C": grid["Cs"], "gamma": grid["gammas"]}, cv=4, refit=False,
    ).fit(data, y)  # fmt: skip
    scores = [search.cv_results_["mean_test_score"] for search in (found, theirs)]
    np.testing.assert_array_equal(*scores)


PEAK = """
import ctypes
import sys
import numpy as np
from pathlib import Path
from pairstep.svm import SVCCV

def megabytes(field):
    return float(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = X[:, 0] + rng.normal(size=3000) > 0
for cache_size in map(float, sys.argv[1:]):
    search = SVCCV(Cs=[0.1, 1.0], gammas=[0.01, 0.1, 1.0], cv=3, cache_size=cache_size)
    search.fit(X[:100], y[:100])
    ctypes.CDLL(None).malloc_trim(0)  # otherwise freed memory would be reused unseen
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    search.fit(X, y)
    print(megabytes("VmHWM") - before)
"""


@pytest.mark.unsanitized
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak memory")
def test_memory_stays_within_cache_size_and_data():
    """A matrix of 3000 rows takes 35 MB, so the sizes hold none, one and all three of them."""
    cache_sizes = [30, 60, 150]
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, cache_sizes)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    for cache_size, peak in zip(cache_sizes, map(float, ran.stdout.split()), strict=True):
        assert peak <= cache_size + 20  # the data, their folds and support vectors


# --------------------------------------------------------------------------- checkpoints and limits


def test_time_limit():
    search = SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=3, time_limit=0.0)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0: . of 6 candidates were left out"):
        search.fit(X, Y)
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.predict(X).shape == (75,)


@pytest.mark.parametrize("name", ["squared_distances", "kernel_matrix", "rbf_of_distances"])
def test_time_limit_while_a_kernel_matrix_is_computed(monkeypatch, name):
    """Native code gets the remaining time; a matrix that takes longer is not used."""
    left = []

    def late(*arguments):
        left.append(arguments[-1])
        return False if name == "rbf_of_distances" else None

    monkeypatch.setattr(_core, name, late)
    gammas = [0.5] if name == "kernel_matrix" else GRID["gamma"]
    grid = {"C": GRID["C"], "gamma": gammas}
    ours = SVCCV(Cs=grid["C"], gammas=gammas, cv=3, time_limit=1000.0).fit(X, Y)
    assert left
    assert all(0 < seconds <= 1000 for seconds in left)
    assert_same(ours, GridSearchCV(SVC(), grid, cv=3).fit(X, Y))


@pytest.mark.slow
def test_the_best_so_far_when_time_is_up():
    scores = []

    def slow(model, X, y):
        scores.append(model.score(X, y))
        if len(scores) == 9:  # the last one of the first gamma
            time.sleep(2.1)
        return scores[-1]

    search = SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=3, time_limit=2.0, scoring=slow)
    with pytest.warns(ConvergenceWarning, match="3 of 6 candidates were left out, namely"):
        search.fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).sum() == 3
    assert search.best_score_ == np.nanmax(scores)


def test_iterations_are_limited_with_one_warning():
    search = SVCCV(Cs=[1e3, 1e4], gammas=[0.5], cv=3, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, np.random.default_rng(0).integers(0, 2, 75))
    own = [w for w in caught if "of the search" in str(w.message)]
    assert len(own) == 1
    assert own[0].category is ConvergenceWarning
    assert own[0].filename == __file__


def test_scores_are_reported(capsys):
    SVCCV(Cs=[1.0], gammas=[0.1], cv=3, verbose=True).fit(X, Y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "scored" in line]
    assert len(lines) == 3
    assert lines[-1].startswith("[pairstep] 3 of 3 scored: C=1, gamma=0.1, split 2: 0.")


# --------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_matrix_from_distances(dtype):
    order = np.random.default_rng(0).permutation(75)
    distances = _core.squared_distances(X, None, order, dtype == np.float32, 2)
    assert distances.dtype == dtype
    for gamma in (1e-3, 0.3, 40.0):
        matrix = np.empty_like(distances)
        _core.rbf_of_distances(distances, gamma, matrix, 2)
        grain = np.finfo(dtype).eps
        np.testing.assert_allclose(
            matrix[:, :75], rbf_kernel(X[order], gamma=gamma),
            rtol=0, atol=max(grain, 1e-13, 1e-12 * gamma),  # the origin is far from the samples
        )  # fmt: skip
    with pytest.raises(ValueError, match="the same shape"):
        _core.rbf_of_distances(distances, 1.0, matrix[:-1], 2)


def test_plots():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=3).fit(X, Y).plot()
    (image,) = axes.images
    assert image.get_array().shape == (3, 2)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.5", "5", "50"]
    line = SVCCV(Cs=GRID["C"], kernel="linear", cv=3).fit(X, Y).plot().lines[0]
    assert line.get_xdata().tolist() == GRID["C"]
    pyplot.close("all")


@pytest.mark.parametrize("classes", [2, 3])
def test_scorer_may_predict_other_samples(classes):
    """A scorer that is a plain function gets a model that predicts its argument."""
    X, y = make_classification(120, n_informative=4, n_classes=classes, random_state=0)

    def on_half(model, X, y):
        half = len(X) // 2
        assert len(model.predict(X[:half])) == half
        return float((model.predict(X[::-1]) == y[::-1]).mean())

    found = SVCCV(Cs=[1.0], gammas=[0.1], scoring=on_half).fit(X, y)
    expected = SVCCV(Cs=[1.0], gammas=[0.1], scoring="accuracy").fit(X, y)
    assert found.best_score_ == pytest.approx(expected.best_score_)
