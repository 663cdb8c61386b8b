"""Saving and loading models: nothing is lost, and bad files are refused."""

import io
import json
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC as THEIRS

from pairstep.svm import (
    SVC,
    SVCCV,
    SVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    load,
    save,
    save_libsvm_model,
)

X, Y = load_iris(return_X_y=True)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
OLD = Path(__file__).parents[1] / "data"

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")


def kept(model):
    """Return the contents of a model file."""
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def again(model):
    return load(io.BytesIO(kept(model)))


def check_same(model, new):
    """Save and load a model, check that nothing changed, and return it."""
    back = again(model)
    assert type(back) is type(model)
    assert back.get_params() == model.get_params()
    for name, value in vars(model).items():
        # The former is computed from the support vectors, the latter is not saved.
        if name in ("_laid_out", "_training"):
            continue
        other = vars(back)[name]
        if scipy.sparse.issparse(value):
            assert type(other) is type(value)
            assert (other != value).nnz == 0
        elif name == "optimality_":
            for part, numbers in vars(value).items():
                np.testing.assert_array_equal(getattr(other, part), numbers)
        else:
            np.testing.assert_array_equal(other, value)
            if isinstance(value, np.ndarray):
                assert other.dtype == value.dtype
    for name in ("predict", "decision_function", "score_samples", "predict_proba"):
        assert hasattr(back, name) == hasattr(model, name)
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(back, name)(new), getattr(model, name)(new))
    return back


@pytest.mark.parametrize("Estimator", [*ALL, QuantileSVR])
def test_every_attribute(Estimator):
    """tests/svm/test_models.py compares decisions for other kernels and storages."""
    check_same(Estimator(kernel="sigmoid", coef0=0.5, gamma=0.05).fit(X, Y), X)
    data = scipy.sparse.csr_matrix((X * (X > 1)).astype(np.float32))
    back = check_same(Estimator(kernel="linear", dtype=np.float64).fit(data, Y), data)
    assert back.support_vectors_.dtype == np.float32
    K = X @ X.T
    fitted = Estimator(kernel="precomputed", support_columns=True).fit(K, Y)
    check_same(fitted, K[:, fitted.support_])


def test_no_support_vectors():
    check_same(SVR(epsilon=10.0).fit(X, Y), X)
    check_same(SVR(epsilon=10.0).fit(scipy.sparse.csr_array(X), Y), X)


CLASSES = {
    "text": ["Ünder", "b", "c" * 50], "bool": [True, False, False], "int": [-5, 10**12, 3],
    "float": [0.0, -1.0, 7.0], "byte": np.array([7, 200, 3], np.uint8),
}  # fmt: skip


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("Estimator", [SVC, NuSVC])
def test_classes_of_any_kind_and_probabilities(Estimator, classes):
    labels = np.array(classes)[Y]
    weights = dict.fromkeys(np.unique(labels), 1.5)
    for options in ({}, {"probability": True, "random_state": np.int64(0), "break_ties": True}):
        model = Estimator(class_weight=weights, **options).fit(X, labels)
        assert check_same(model, X).class_weight == weights


def test_names_of_features():
    table = pandas.DataFrame(X, columns=["a", "b", "ü", "d"])
    back = check_same(SVC().fit(table, Y), table)
    with pytest.raises(ValueError, match="feature names"):
        back.predict(table[["b", "a", "ü", "d"]])


@pytest.mark.parametrize("quantile", [(0.7, 0.3), np.array([0.7, 0.3])])
def test_quantiles_become_a_list(quantile):
    model = QuantileSVR(quantile=quantile).fit(X, Y)
    back = again(model)
    assert back.quantile == [0.7, 0.3]
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_a_file_with_another_number_of_quantiles_is_refused():
    model = QuantileSVR(quantile=[0.1, 0.9]).fit(X, Y)
    for wrong in (0.1, [0.1, 0.5, 0.9], [0.1, 1.5]):
        model.quantile = wrong
        with pytest.raises(ValueError, match=r"damaged|quantile"):
            again(model)


@pytest.mark.parametrize("Estimator", ALL)
def test_a_loaded_model_can_be_fitted_again(Estimator):
    model = Estimator(warm_start=True).fit(X, Y)
    back = again(model)
    assert not hasattr(back, "_last_duals")
    np.testing.assert_allclose(back.to_sklearn().dual_coef_, model.dual_coef_)
    clone(back).fit(X, Y)
    back.fit(X[::2], Y[::2])
    assert back.shape_fit_ == (75, 4)


def test_extreme_parameters():
    model = SVC(C=np.inf, kernel="linear", dtype="float64", time_limit=1e9, tol=1e-9)
    back = again(model.fit(X, Y > 0))
    assert np.inf == back.C
    assert back.dtype is np.float64


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(kernel=lambda A, B: A @ B.T), "kernel=.* cannot be saved"),
        (SVC(random_state=np.random.RandomState(0)), "random_state=.* cannot be saved"),
    ],
)
def test_attributes_that_cannot_be_saved_are_named(model, message, tmp_path):
    model.fit(X, Y)
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_other_objects_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(SVC(), tmp_path / "model")
    with pytest.raises(TypeError, match="SVC"):
        save(THEIRS().fit(X, Y), tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model")


@pytest.mark.parametrize("write", [save, save_libsvm_model])
def test_error_says_what_to_save_of_a_pipeline_or_search(write, tmp_path):
    pipeline = make_pipeline(MinMaxScaler(), SVC()).fit(X, Y)
    with pytest.raises(TypeError, match=r"Pipeline; pass pipeline\[-1\]"):
        write(pipeline, tmp_path / "model")
    for search in (SVCCV(Cs=[1.0], gammas=[1.0]), GridSearchCV(SVC(), {"C": [1.0]})):
        with pytest.raises(TypeError, match=r"; pass search\.best_estimator_"):
            write(search.fit(X, Y), tmp_path / "model")
        search.set_params(refit=False)
        with pytest.raises(TypeError, match="refit=True"):
            write(clone(search).fit(X, Y), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_model(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "model"
    save(SVC(C=1.0).fit(X, Y), path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            save(SVC(C=2.0).fit(X, Y), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert load(path).C == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["svc-1", "svr-1"])
def test_files_of_earlier_versions_are_read(name):
    """The files were written by version 1 of the format, and must never be replaced."""
    model = load(OLD / f"{name}.model")
    expected = json.loads((OLD / f"{name}.json").read_text())
    new = np.array(expected["new"])
    names = model.__dict__.pop("feature_names_in_", None)
    assert names is None or names[0] == "sepal length"
    assert model.predict(new).tolist() == pytest.approx(expected["predict"])
    if "predict_proba" in expected:
        np.testing.assert_allclose(model.predict_proba(new), expected["predict_proba"])
    for parameter, value in expected["parameters"].items():
        assert getattr(model, parameter) == value


FILES_OF_D6498D6 = json.loads((OLD / "models" / "expected.json").read_text())


@pytest.mark.parametrize("name", FILES_OF_D6498D6)
def test_all_kinds_of_models_are_read(name):
    """Commit d6498d6 wrote one file of each kind. They must stay readable, and never change."""
    model = load(OLD / "models" / f"{name}.model")
    expected = FILES_OF_D6498D6[name]
    at = np.array(expected["at"])
    if name == "sparse":
        at = scipy.sparse.csr_array(at)
    for method in set(expected) - {"at"}:
        values = expected[method]
        found = getattr(model, method)(at)
        if found.dtype.kind == "U":
            assert found.tolist() == values
        else:
            np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-12)


# Hostile files


def rewritten(content, change):
    """Rewrite the file; `change` gets a dict with the bytes of its members."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def with_header(content, **new):
    def change(members):
        header = json.loads(members["header.json"])
        for path, value in new.items():
            *above, last = path.split("__")
            place = header
            for name in above:
                place = place[name]
            place[last] = value
        members["header.json"] = json.dumps(header).encode()

    return rewritten(content, change)


def with_array(content, name, array):
    file = io.BytesIO()
    np.save(file, array)
    return rewritten(content, lambda members: members.update({f"{name}.npy": file.getvalue()}))


with warnings.catch_warnings(action="ignore"):
    DENSE = kept(SVC(probability=True, random_state=0).fit(X, Y))
SPARSE = kept(OneClassSVM().fit(scipy.sparse.csr_array(X)))
CONTENTS = {"dense": DENSE, "sparse": SPARSE}


def refused(content, match=None):
    with pytest.raises(ValueError, match=match) as error:
        load(io.BytesIO(content))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("content", [DENSE, SPARSE], ids=CONTENTS)
def test_truncated(content):
    for length in [*range(60), *range(60, len(content), 97)]:
        refused(content[:length])


@pytest.mark.parametrize("which", CONTENTS)
@given(data=st.data())
def test_any_wrong_byte_is_handled(which, data):
    changed = bytearray(CONTENTS[which])
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        model = load(io.BytesIO(bytes(changed)))
    except ValueError:
        return
    model.predict(X)  # bytes that the checksums do not cover do not matter


@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused(content):
    refused(content)
    refused(b"PK\x03\x04" + content)


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.namelist()


@pytest.mark.parametrize(
    ("which", "name"),
    [(which, name) for which, content in CONTENTS.items() for name in members_of(content)],
)
@given(data=st.data())
@settings(max_examples=25)
def test_any_member_may_be_wrong_behind_right_checksums(which, name, data):
    def change(members):
        changed = bytearray(members[name])
        for _ in range(data.draw(st.integers(1, 3))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        members[name] = bytes(changed)

    said = None
    try:
        model = load(io.BytesIO(rewritten(CONTENTS[which], change)))
        model.predict(X)  # a valid model, but not the one that was saved
    except ValueError as error:
        said = str(error)
    assert said is None or len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("support_vectors_", np.ones((3, 4))),
        ("support_vectors_", np.full((51, 4), np.nan)),
        ("support_", np.arange(51) + 100),
        ("support_", -np.arange(51)),
        ("support_", np.arange(51.0)),
        ("dual_coef_", np.ones((3, 51))),
        ("intercept_", np.ones(2)),
        ("intercept_", np.array([1.0, np.inf, 0.0])),
        ("_n_support", np.array([51, 1, -1])),
        ("_n_support", np.array([1, 1, 1])),
        ("classes_", np.array([1, 1, 2])),
        ("classes_", np.array([1])),
        ("_probA", np.ones(1)),
        ("class_weight_", np.ones(2)),
        ("_label_order", np.array([0, 1, 1])),
        ("n_iter_", np.ones(3)),
        ("optimality_.status", np.ones(3)),
        ("unheard_of", np.ones(3)),
    ],
)
def test_inconsistent_parts_are_refused(name, array):
    refused(with_array(DENSE, name, array), f"{name.split('.')[-1]}|text")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda a: a + 1000),
        ("indices", lambda a: a - 1000),
        ("indices", lambda a: a * 0),
        ("indptr", lambda a: a[::-1]),
        ("indptr", lambda a: a * 1000),
        ("indptr", lambda a: a[:1]),
        ("data", lambda a: a[:-1]),
        ("data", lambda a: a * np.nan),
        ("data", lambda a: a.astype("U5")),
    ],
)
def test_inconsistent_sparse_parts_are_refused(name, change):
    with zipfile.ZipFile(io.BytesIO(SPARSE)) as archive:
        array = np.load(io.BytesIO(archive.read(f"support_vectors_.{name}.npy")))
    refused(with_array(SPARSE, f"support_vectors_.{name}", change(array)))


@pytest.mark.parametrize(
    ("new", "match"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "version 2"),
        ({"version": "one"}, "damaged"),
        ({"class": "Pipeline"}, "Pipeline"),
        ({"class": ["SVC"]}, "damaged"),
        ({"class": "SVR"}, "SVR has no"),
        ({"parameters__C": -1.0}, "'C' parameter"),
        ({"parameters__tol": 10**400}, "tol must be below"),
        ({"parameters__coef0": -(10**400)}, "coef0 must be below"),
        ({"parameters__degree": 1e300}, "'degree' parameter"),
        ({"parameters__kernel": "precomputed"}, "is inconsistent"),
        ({"parameters__unheard": 1}, "unheard"),
        ({"parameters__dtype": "object"}, "dtype"),
        ({"parameters": []}, "damaged"),
        ({"state___gamma": float("nan")}, "_gamma"),
        ({"state__shape_fit_": [10**30, 4]}, "is inconsistent"),
        ({"state__n_features_in_": 2**40}, "is inconsistent"),
        ({"state___sparse": True}, "is inconsistent"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"feature_names": [1, 2, 3, 4]}, "feature_names"),
        ({"container": "csr_array"}, "damaged"),
        ({"container": "list"}, "damaged"),
    ],
)
def test_invalid_headers_are_refused(new, match):
    refused(with_header(DENSE, **new), match)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "[" * 100_000, "9" * 10_000, "\x00"])
def test_headers_must_be_json(text):
    refused(rewritten(DENSE, lambda members: members.update({"header.json": text.encode()})))


def test_pickles_are_not_opened():
    class Bomb:
        def __reduce__(self):
            raise AssertionError("it was opened")

    file = io.BytesIO()
    with pytest.raises(AssertionError):
        np.save(file, np.array([Bomb()], object), allow_pickle=True)
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"cos\nsystem\n."
    refused(rewritten(DENSE, lambda members: members.update({"support_.npy": content})), "object")


def most_memory(content):
    """The peak memory of an attempt to load, in bytes."""
    tracemalloc.start()
    try:
        refused(content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_decompression_bomb_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 10**8)
    assert len(file.getvalue()) < 10**6
    assert most_memory(file.getvalue()) < 10**7


@pytest.mark.parametrize("shape", [(10**9,), (10**6, 10**6), (2**62, 4), (-1,), (1, -4)])
def test_memory_is_not_reserved_for_missing_data(shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    content = b"\x93NUMPY\x01\x00" + (117).to_bytes(2, "little") + header.ljust(116) + b"\n"
    changed = rewritten(DENSE, lambda members: members.update({"intercept_.npy": content}))
    assert most_memory(changed) < 10**7
