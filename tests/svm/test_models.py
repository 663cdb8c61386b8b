"""Every SVM, in every storage of its samples, by every road to a result.

A row of `MODELS` is a model, a row of `STORAGES` a container and a kernel, a row of `ROADS` a way
to a result. Each road returns decisions, and those of plain fits of the same samples, which must
agree. What a model or a storage does not offer says why in `NOT_OFFERED`, and must be refused. A
new model, storage or road is a new row.
"""

import copy
import functools
import io
import pickle
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import PredefinedSplit
from stand_in import StandIn

import pairstep.gpu.device
import pairstep.gpu.svm
from pairstep import svm

TOL = 1e-8
RNG = np.random.default_rng(3)
# Half of the entries are 0, and the others are float32, so that all storages hold the same numbers.
POINTS = RNG.uniform(0.5, 2.5, size=(80, 4)).astype(np.float32).astype(float)
POINTS[:, :3] *= RNG.random((80, 3)) < 0.5
POINTS[60] = 0.0  # a sparse row without entries
X, NEW = POINTS[:60], POINTS[60:]
SCORE = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] ** 2 + 0.3 * RNG.normal(size=60)
CLASSES = np.array(["ant", "bee", "cat"])[np.digitize(SCORE, np.quantile(SCORE, [0.33, 0.67]))]
SIDES = np.where(np.median(SCORE) < SCORE, 3, -1)
ALL, FIRST = np.arange(60), np.arange(45)


@dataclass(frozen=True)
class Model:
    """An estimator, its targets, and what a search and a path vary."""

    estimator: Any
    y: Any
    other: dict[str, float]  # another value of C or nu
    search: dict[str, Any] | None = None  # its class, and parameters


NUMBERS = {"tol": TOL, "C": 2.0}
PAIRS = {"tol": TOL, "decision_function_shape": "ovo"}
MODELS = {
    "SVC": Model(svm.SVC(C=3.0, tol=TOL), SIDES, {"C": 0.7}, {"Search": "SVCCV"}),
    "SVC of 3 classes": Model(svm.SVC(**PAIRS, class_weight={"cat": 2.0}), CLASSES, {"C": 0.7},
                              {"Search": "SVCCV", "class_weight": {"cat": 2.0}}),
    "NuSVC": Model(svm.NuSVC(nu=0.73, tol=TOL), SIDES, {"nu": 0.78}),
    "NuSVC of 3 classes": Model(svm.NuSVC(nu=0.73, **PAIRS), CLASSES, {"nu": 0.78}),
    "SVR": Model(svm.SVR(epsilon=0.2, **NUMBERS), SCORE, {"C": 0.7},
                 {"Search": "SVRCV", "epsilons": [0.2]}),
    "NuSVR": Model(svm.NuSVR(nu=0.43, **NUMBERS), SCORE, {"C": 0.7}),
    "QuantileSVR": Model(svm.QuantileSVR(quantile=0.81, **NUMBERS), SCORE, {"C": 0.7},
                         {"Search": "SVRCV", "quantile": 0.81}),
    "QuantileSVR of 2": Model(svm.QuantileSVR(quantile=[0.22, 0.81], **NUMBERS), SCORE, {"C": 0.7},
                              {"Search": "SVRCV", "quantile": [0.22, 0.81]}),
    "OneClassSVM": Model(svm.OneClassSVM(nu=0.33, tol=TOL), None, {"nu": 0.51}),
}  # fmt: skip
KERNELS = {
    "rbf": {"gamma": 0.3}, "linear": {}, "poly": {"gamma": 0.3, "degree": 2, "coef0": 1.0},
}  # fmt: skip


def wide_indices(rows):
    """Return rows with indices of 64 bits, as SciPy makes them for large data."""
    found = scipy.sparse.csr_array(rows)
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


def gram(A, B, kernel="rbf"):
    return pairwise_kernels(A, B, metric=kernel, filter_params=True, **KERNELS[kernel])


@dataclass(frozen=True)
class Storage:
    """How samples are stored, and the kernel."""

    of: Callable[[Any], Any]
    kernel: Any = "rbf"
    computed: str = "rbf"  # the kernel of a plain fit


STORAGES = {
    "C order": Storage(np.ascontiguousarray),
    "Fortran order": Storage(np.asfortranarray),
    "float32": Storage(lambda rows: rows.astype(np.float32)),
    "list": Storage(np.ndarray.tolist),
    "frame": Storage(lambda rows: pandas.DataFrame(rows, columns=list("abcd"))),
    "csr": Storage(scipy.sparse.csr_array),
    "csr, int64 indices": Storage(wide_indices),
    "precomputed": Storage(np.asarray, "precomputed"),
    "function": Storage(np.asarray, gram),
    **{name: Storage(np.asarray, name, name) for name in KERNELS if name != "rbf"},
    "linear, csr": Storage(scipy.sparse.csr_array, "linear", "linear"),
}


@functools.cache
def plain(name, kernel, rows, other=False):
    """Return a fit to these rows in C order."""
    model, rows = MODELS[name], np.array(rows)
    parameters = KERNELS[kernel] | (model.other if other else {})
    estimator = clone(model.estimator).set_params(kernel=kernel, **parameters)
    return estimator.fit(X[rows], None if model.y is None else model.y[rows])


@functools.cache
def of_libsvm(name, kernel, tol=TOL, **options):
    """Return a fit by scikit-learn."""
    model = MODELS[name]
    Theirs = getattr(sklearn.svm, type(model.estimator).__name__)
    given = model.estimator.get_params()
    same = {"C", "nu", "epsilon", "class_weight", "decision_function_shape"} & given.keys()
    parameters = {parameter: given[parameter] for parameter in same} | KERNELS[kernel]
    return Theirs(kernel=kernel, tol=tol, max_iter=10**6, **parameters, **options).fit(X, model.y)


def decide(fitted, samples):
    return (fitted.predict if is_regressor(fitted) else fitted.decision_function)(samples)


@dataclass(frozen=True)
class Case:
    """A model whose samples are in a storage."""

    name: str
    model: Model
    storage: Storage

    def samples(self, rows=X, train=ALL):
        pairwise = self.storage.kernel == "precomputed"
        return self.storage.of(gram(rows, X[train]) if pairwise else rows)

    def targets(self, rows):
        return None if self.model.y is None else self.model.y[rows]

    def estimator(self, other=False, **changed):
        parameters = KERNELS[self.storage.computed] | (self.model.other if other else {}) | changed
        return clone(self.model.estimator).set_params(kernel=self.storage.kernel, **parameters)

    def fit(self, rows=ALL, **changed):
        return self.estimator(**changed).fit(self.samples(X[rows], rows), self.targets(rows))

    def decisions(self, fitted, new=NEW, train=ALL):
        return decide(fitted, self.samples(new, train))

    def expected(self, rows=ALL, other=False, new=NEW):
        """Return the decisions of a plain fit to these rows."""
        return decide(plain(self.name, self.storage.computed, tuple(rows), other), new)


ROADS = {}


def road(within=1e-4):
    """Register a function that returns decisions, and those of plain fits, which must agree."""

    def register(function):
        ROADS[function.__name__.replace("_", " ")] = function, within
        return function

    return register


@road()
def fit(case):
    """Compare with LIBSVM; where it has no such model, check its optimality conditions."""
    model = case.fit()
    rows = model.support_vectors_
    if case.storage.kernel in KERNELS:
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        np.testing.assert_array_equal(rows, X[model.support_])
    assert (model.optimality_.kkt_violation <= TOL).all()
    assert set(model.optimality_.status) == {"optimal"}
    if not isinstance(model, svm.QuantileSVR):
        theirs = of_libsvm(case.name, case.storage.computed)
        if case.storage.computed == "rbf":  # positive definite, so coefficients are unique
            check_attributes(model, theirs)
        if not is_regressor(model):
            np.testing.assert_array_equal(model.predict(case.samples(NEW)), theirs.predict(NEW))
        return case.decisions(model), decide(theirs, NEW)
    K, found = gram(X, X, case.storage.computed), model.dual_coef_
    found = found.toarray() if scipy.sparse.issparse(found) else found
    for quantile, coefficients, intercept in zip(
        np.atleast_1d(model.quantile), found, model.intercept_, strict=True
    ):
        z = np.zeros(60)
        z[model.support_] = coefficients
        lower, upper = -2.0 * (1 - quantile), 2.0 * quantile
        assert abs(z.sum()) < 1e-12
        assert ((lower <= z) & (z <= upper)).all()
        errors = SCORE - K @ z - intercept  # positive above the quantile
        assert (errors[z < upper] <= 2 * TOL).all()
        assert (errors[z > lower] >= -2 * TOL).all()
    return case.decisions(model), case.expected()


def check_attributes(model, theirs):
    """Check that attributes are those of scikit-learn."""
    names = ["support_", "n_support_", "dual_coef_", "intercept_", "shape_fit_", "fit_status_"]
    names += ["classes_", "class_weight_"] if is_classifier(model) else []
    names += ["offset_"] if hasattr(theirs, "offset_") else []
    for name in names:
        found, expected = getattr(model, name), getattr(theirs, name)
        if scipy.sparse.issparse(found):
            found = found.toarray()
        if name == "shape_fit_" and model.kernel == "precomputed":
            expected = (60, 60)
        if getattr(expected, "dtype", np.dtype("U")).kind == "U":
            assert np.array_equal(found, expected)
            continue
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)
    assert np.shape(model.n_iter_) == np.shape(theirs.n_iter_)


@road(within=5e-3)  # of two classes, scikit-learn's iteration stops that far from the sigmoid
def probabilities(case):
    options = {"probability": True, "random_state": 7}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability`", FutureWarning)
        theirs = of_libsvm(case.name, case.storage.computed, tol=1e-5, **options)
        found = case.fit(**options).predict_proba(case.samples(NEW))
    return found, theirs.predict_proba(NEW)


@road()
def whole_weights_are_repetitions(case):
    weights = np.arange(60) % 3
    model = case.estimator().fit(case.samples(), case.targets(ALL), sample_weight=weights)
    assert (weights[model.support_] > 0).all()
    return case.decisions(model), case.expected(np.repeat(ALL, weights))


@road()
def warm_start(case):
    """First fit fewer samples with another C or nu."""
    model = case.fit(FIRST, other=True, warm_start=True)
    model.set_params(**{name: getattr(case.model.estimator, name) for name in case.model.other})
    model.fit(case.samples(), case.targets(ALL))
    found = case.decisions(model)
    if "nu" not in case.model.other:
        again = np.sum(model.fit(case.samples(), case.targets(ALL)).n_iter_)
        assert again <= len(model.intercept_)  # one step each shows that nothing is to be done
    return found, case.expected()


@road()
def predict_in_other_storages(case):
    model = case.fit()
    others = [np.asfortranarray, np.float32, np.ndarray.tolist]
    if scipy.sparse.issparse(model.support_vectors_):
        others += [scipy.sparse.csr_array, scipy.sparse.coo_matrix]
    found = [decide(model, convert(NEW)) for convert in others]
    return np.array(found), np.array([case.expected()] * len(others))


@road(within=1e-14)
def copies(case):
    model = case.fit()
    found = [
        again(model)
        for again in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)))
    ]
    return np.array([case.decisions(one) for one in found]), np.array([case.decisions(model)] * 3)


@road(within=0.0)
def file(case):
    model, stored = case.fit(), io.BytesIO()
    svm.save(model, stored)
    stored.seek(0)
    loaded = svm.load(stored)
    assert loaded.get_params() == model.get_params()
    assert type(loaded.support_vectors_) is type(model.support_vectors_)
    np.testing.assert_array_equal(
        loaded.predict(case.samples(NEW)), model.predict(case.samples(NEW))
    )
    return case.decisions(loaded), case.decisions(model)


@road(within=1e-9)
def libsvm_file(case):
    """tests/svm/test_libsvm_files.py lets LIBSVM itself predict from such files."""
    model, stored = replace(case, model=with_numbers(case.model)).fit(), io.BytesIO()
    svm.save_libsvm_model(model, stored)
    stored.seek(0)
    loaded = svm.load_libsvm_model(stored, n_features=model.n_features_in_)
    if is_classifier(loaded):
        loaded.decision_function_shape = "ovo"
    return case.decisions(loaded), case.decisions(model)


def with_numbers(model):
    """Classes in LIBSVM's files are whole numbers."""
    if model.y is None or model.y.dtype.kind != "U":
        return model
    estimator = clone(model.estimator)
    if getattr(estimator, "class_weight", None):
        estimator.set_params(class_weight={2: 2.0})
    return replace(model, estimator=estimator, y=np.unique(model.y, return_inverse=True)[1])


@road(within=1e-9)
def to_sklearn(case):
    model = case.fit()
    theirs = model.to_sklearn()
    assert type(theirs) is getattr(sklearn.svm, type(model).__name__)
    again = pickle.loads(pickle.dumps(theirs))
    theirs.intercept_ += 1.0  # it is a copy
    return case.decisions(again), case.decisions(model)


@road()
def path(case):
    """Compare the decisions from its coefficients, with weights."""
    ((parameter, other),) = case.model.other.items()
    values = [other, getattr(case.model.estimator, parameter)]
    model = case.estimator()
    before = model.get_params()
    weights = ALL % 3
    found = svm.path(
        case.samples(), case.targets(ALL), values, model=model, sample_weight=weights
    )  # fmt: skip
    assert model.get_params() == before
    assert not hasattr(model, "support_")
    assert found.parameter == parameter
    assert found.values.tolist() == values
    assert (found.kkt_violation <= TOL).all()
    sums = np.einsum("nx,vdx->vnd", gram(NEW, X, case.storage.computed), found.coefficients)
    sign = -1.0 if case.model.y is SIDES else 1.0  # positive for the first class of a pair
    decisions = sign * sums + found.intercept[:, None]
    if decisions.shape[2] == 1 and not np.ndim(getattr(model, "quantile", 0)):
        decisions = decisions[:, :, 0]
    rows = np.repeat(ALL, weights)
    return decisions, np.array([case.expected(rows, other) for other in (True, False)])


@functools.cache
def refits(name, kernel):
    """Return the decisions on each sample of a plain fit without it."""
    return np.array([
        decide(plain(name, kernel, tuple(np.delete(ALL, i))), X[[i]])[0] for i in ALL[::3]
    ])  # fmt: skip


@road()
def leave_one_out(case):
    found = svm.leave_one_out(case.fit(), case.samples(), case.targets(ALL))
    assert (found.kkt_violation <= TOL).all()
    if is_classifier(case.model.estimator):
        score = np.mean(found.predictions == case.model.y)
        if found.decisions.ndim == 1:
            np.testing.assert_array_equal(found.predictions == 3, found.decisions > 0)
    elif isinstance(case.model.estimator, svm.OneClassSVM):
        np.testing.assert_array_equal(found.predictions, np.where(found.decisions >= 0, 1, -1))
        score = np.mean(found.decisions >= 0)
    elif isinstance(case.model.estimator, svm.QuantileSVR):
        score = d2_pinball_score(SCORE, found.decisions, alpha=0.81)
    else:
        score = r2_score(SCORE, found.decisions)
    assert found.score == pytest.approx(score)
    return found.decisions[::3], refits(case.name, case.storage.computed)


@road()
def update(case):
    """Only add samples, then only remove some, then both at once."""
    model, rows = case.fit(FIRST), FIRST
    for new, gone in [(range(45, 55), []), ([], [50, 44, 1]), (range(55, 60), [0, 7, 20])]:
        given = (case.samples(X[list(new)]), case.targets(list(new))) if new else ()
        assert model.update(*given, remove=gone) is model
        rows = np.append(np.delete(rows, gone), np.array(new, int))
        assert model.shape_fit_ == (len(rows), 4)
        assert (model.optimality_.kkt_violation <= TOL).all()
        decisions = case.decisions(model, train=rows)
        np.testing.assert_allclose(decisions, case.expected(rows), atol=1e-4)
    return decisions, case.expected(rows)


def search_of(case, **options):
    """Return a fitted search over two C, of which the second is the C of the model."""
    given = dict(case.model.search or {"Search": f"{type(case.model.estimator).__name__}CV"})
    Search = getattr(svm, given.pop("Search"))
    parameters = {name: [value] if name == "gamma" else value
                  for name, value in KERNELS[case.storage.computed].items()}  # fmt: skip
    gammas = {"gammas": parameters.pop("gamma")} if "gamma" in parameters else {}
    if not isinstance(case.storage.kernel, str) or case.storage.kernel == "precomputed":
        gammas = {}
    Cs = [case.model.other["C"], case.model.estimator.C]
    search = Search(kernel=case.storage.kernel, Cs=Cs, tol=TOL, **given, **gammas, **parameters,
                    **options)  # fmt: skip
    return search.fit(case.samples(), case.targets(ALL))


FOLD = np.where(np.arange(60) < 20, 0, -1)  # only the first 20 samples are held out


@road()
def search(case):
    """Compare the scores of held-out samples, and the model that is fitted to all samples."""
    found = search_of(case, cv=PredefinedSplit(FOLD), scoring=None)
    rest = ALL[20:]
    scores = [
        plain(case.name, case.storage.computed, tuple(rest), other).score(
            X[:20], case.targets(FOLD == 0)
        )
        for other in (True, False)
    ]
    best = found.best_index_ == 0
    if is_classifier(found):
        found.best_estimator_.decision_function_shape = "ovo"
    decisions = case.decisions(found.best_estimator_)
    np.testing.assert_allclose(decisions, case.expected(other=best), atol=1e-4)
    return found.cv_results_["split0_test_score"], np.array(scores)


@road()
def search_with_a_scorer(case, **options):
    """A scorer may use the model of a fold as if it were fitted; here it takes a norm."""

    def norm(model, X, y):
        assert model.support_vectors_.shape[0] in (0, len(model.support_))
        return float(np.linalg.norm(decide(model, X)))

    shape = {"decision_function_shape": "ovo"} if case.name == "SVC of 3 classes" else {}
    found = search_of(case, cv=PredefinedSplit(FOLD), scoring=norm, refit=False, **shape, **options)
    norms = [
        np.linalg.norm(case.expected(ALL[20:], other=other, new=X[:20])) for other in (True, False)
    ]
    return found.cv_results_["split0_test_score"], np.array(norms)


@road()
def search_by_leave_one_out(case):
    found = search_of(case, cv="loo", refit=False)
    model = case.fit()
    score = svm.leave_one_out(model, case.samples(), case.targets(ALL)).score
    return found.cv_results_["mean_test_score"][1:], np.array([score])


@contextmanager
def stand_in_of_gpu():
    """Yield a list of the devices that are used, in which NumPy replaces CuPy.

    Few computers have a GPU; tests/gpu/test_on_gpu.py needs one.
    """
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairstep.gpu.device, "Cuda", lambda _: made.append(StandIn()) or made[-1])
        everything = replace(pairstep.gpu.svm.TUNING, local_size=0)
        patch.setattr(pairstep.gpu.svm, "TUNING", everything)
        patch.setattr(pairstep.gpu.svm, "MIN_SEARCH_SIZE", 0)
        patch.setattr(pairstep.gpu.svm, "DECISION_ROWS", 16)
        yield made


@road(within=1e-3)
def gpu(case):
    with stand_in_of_gpu() as made:
        model = case.fit(device="cuda", tol=1e-6)
        assert len(made) == (case.storage.kernel is not gram)  # a function computes on the CPU
        decisions = case.decisions(model)
    on_cpu = pickle.loads(pickle.dumps(model)).set_params(device="cpu")
    np.testing.assert_allclose(case.decisions(on_cpu), decisions, atol=1e-9)
    return decisions, case.expected()


@road(within=1e-3)
def gpu_search(case):
    with stand_in_of_gpu() as made:
        found = search_with_a_scorer(case, device="cuda")
        assert bool(made) == (case.storage.kernel is not gram)
    return found


@road()
def dask(case):
    """The partitions of two workers solve what the coordinator would solve alone."""
    import dask.array
    import dask.dataframe

    import pairstep.dask

    estimator = case.estimator()
    lazily = getattr(pairstep.dask, type(estimator).__name__)(**estimator.get_params())
    given, targets = case.samples(), case.targets(ALL)
    if isinstance(given, pandas.DataFrame):
        given = dask.dataframe.from_pandas(given, npartitions=4)
    elif not isinstance(given, list):
        given = dask.array.from_array(X, chunks=(17, 4)).map_blocks(
            case.storage.of, dtype=given.dtype, meta=np.empty((0, 0))
        )
    with pytest.MonkeyPatch.context() as patch:
        everything = replace(pairstep.dask.svm.TUNING, local_size=0)
        patch.setattr(pairstep.dask.svm, "TUNING", everything)
        model = lazily.fit(given, targets)
    assert model.traffic_.rounds > 5
    new = dask.array.from_array(NEW, chunks=(7, 4))
    local = model.to_local()
    assert type(local) is type(estimator)
    if isinstance(given, dask.array.Array):
        found = decide(model, new.map_blocks(case.storage.of))
        np.testing.assert_array_equal(found.compute(), case.decisions(local))
    return case.decisions(local), case.expected()


# ------------------------------------------------------------------ the table

# (road, model or storage): why there is none. A name stands for all rows that begin with it.
ONE_QUANTILE = "of several quantiles there is no single decision"
NO_SEARCH = "there are searches for the models with C and either labels or numbers"
NOT_OFFERED = {
    **{("probabilities", model): "they are of classes"
       for model in ("SVR", "NuSVR", "Quantile", "OneClassSVM")},
    ("predict in other storages", "frame"): "scikit-learn warns if names of features are missing",
    ("predict in other storages", "precomputed"): "the kernel of new samples is given, not samples",
    ("file", "function"): "a file does not contain code",
    ("libsvm file", "frame"): "scikit-learn warns if names of features are missing",
    ("libsvm file", "function"): "LIBSVM has no such kernel",
    ("libsvm file", "Quantile"): "LIBSVM has no quantile regression",
    ("to sklearn", "Quantile"): "scikit-learn has no quantile regression with kernels",
    ("to sklearn", "csr, int64 indices"): "scikit-learn's models take indices of 32 bits",
    ("leave one out", "QuantileSVR of 2"): ONE_QUANTILE,
    ("search by leave one out", "QuantileSVR of 2"): ONE_QUANTILE,
    ("update", "QuantileSVR of 2"): ONE_QUANTILE,
    ("update", "precomputed"): "the kernel of new samples with the earlier ones is not given",
    ("update", "function"): "a function is called with all samples",
    **{(way, model): NO_SEARCH for model in ("NuSVC", "NuSVR", "OneClassSVM")
       for way in ("search", "search with a scorer", "search by leave one out", "gpu search")},
    ("dask", "list"): "samples are in partitions",
    ("dask", "precomputed"): "a matrix of all pairs of samples would not fit on a cluster",
    ("dask", "function"): "workers compute the kernel natively",
}  # fmt: skip


def cells():
    """Yield each cell of the table: its road, model and storage, and why it is empty, if it is."""
    for way, name, storage in product(ROADS, MODELS, STORAGES):
        reasons = [
            reason for (road, row), reason in NOT_OFFERED.items()
            if road == way and (name.startswith(row) or storage == row)
        ]  # fmt: skip
        if way == "dask" and name != "SVC" and storage != "C order":
            continue  # each takes a second, and what partitions do is the same for all models
        yield way, name, storage, reasons


def parameters(offered):
    return [
        pytest.param(way, Case(name, MODELS[name], STORAGES[storage]), id=f"{way}-{name}-{storage}",
                     marks=pytest.mark.xdist_group("dask") if way == "dask" else ())
        for way, name, storage, reasons in cells() if offered != bool(reasons)
    ]  # fmt: skip


@pytest.fixture
def client_if_needed(way, request):
    """Return a client of a cluster for the rows that need one."""
    if way == "dask":
        pytest.importorskip("distributed")
        return request.getfixturevalue("client")
    return None


@pytest.mark.usefixtures("client_if_needed")
@pytest.mark.parametrize(("way", "case"), parameters(offered=True))
def test_every_road_ends_at_the_model_of_a_plain_fit(way, case):
    function, within = ROADS[way]
    found, expected = function(case)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=within)


@pytest.mark.usefixtures("client_if_needed")
@pytest.mark.parametrize(("way", "case"), parameters(offered=False))
def test_what_is_not_offered_is_refused(way, case):
    """There is an error or a warning, or no class of that name."""
    function, _ = ROADS[way]
    with pytest.raises((ValueError, TypeError, AttributeError, UserWarning)):
        function(case)


def test_every_model_is_in_the_table():
    """A new one needs a row."""
    public = {name for name in svm.__all__ if hasattr(getattr(svm, name), "fit")}
    rows = {type(model.estimator).__name__ for model in MODELS.values()}
    searches = {model.search["Search"] for model in MODELS.values() if model.search}
    assert public == rows | searches
