"""Models in LIBSVM's files predict the same here and in LIBSVM."""

import ctypes
import io
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris

from pairstep.svm import (
    SVC,
    SVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load,
    load_libsvm_model,
    save,
    save_libsvm_model,
)  # fmt: skip

X, Y = load_iris(return_X_y=True)
TARGET = X @ [1.0, -0.5, 0.2, 0.1]
TYPES = {"c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "svr": SVR, "nu_svr": NuSVR}
KERNELS = ["linear", "poly", "rbf", "sigmoid"]
# In the order of their first sample, which is LIBSVM's own.
LABELS = {"two": [1, 1, -1], "ascending": [1, 3, 5], "mixed": [5, -7, 3], "descending": [9, 8, 2]}

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
every_type = pytest.mark.parametrize("kind", TYPES)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


class Theirs:
    """LIBSVM itself, without its Python wrapper, whose buffer for nu_svc is too small."""

    def __init__(self, model):
        self.model = model

    @classmethod
    def trained(cls, rows, y, options):
        from libsvm.svmutil import svm_train

        return cls(svm_train(np.asarray(y, float).tolist(), rows, f"{options} -q"))

    @classmethod
    def of(cls, model, path):
        from libsvm.svmutil import svm_load_model

        save_libsvm_model(model, path)
        return cls(svm_load_model(str(path)))

    def here(self, path, **options):
        from libsvm.svmutil import svm_save_model

        svm_save_model(str(path), self.model)
        return load_libsvm_model(path, **options)

    def _asked(self, function, rows, size):
        from libsvm.svm import gen_svm_nodearray, libsvm

        numbers = (ctypes.c_double * size)()
        answers = []
        for row in rows:
            label = getattr(libsvm, function)(self.model, gen_svm_nodearray(row)[0], numbers)
            answers.append([label, *numbers])
        return np.array(answers)

    def predict(self, rows):
        k = self.model.get_nr_class()
        return self._asked("svm_predict_values", rows, k * (k - 1) // 2)[:, 0]

    def predict_proba(self, rows, classes):
        k = self.model.get_nr_class()
        labels = self.model.get_labels()
        found = self._asked("svm_predict_probability", rows, k)[:, 1:]
        return found[:, [labels.index(label) for label in classes]]


@pytest.fixture(autouse=True)
def _installed():
    pytest.importorskip("libsvm")


def number(kind):
    return list(TYPES).index(kind)


def label_line(path):
    return next(line for line in path.read_text().splitlines() if line.startswith("label"))


def check_same(theirs, ours, rows, new, kind):
    if "svr" in kind:
        np.testing.assert_allclose(ours.predict(new), theirs.predict(rows), rtol=1e-9, atol=1e-9)
    elif kind == "one_class":  # many of its decisions are 0 up to rounding
        sure = np.abs(ours.decision_function(new)) > 1e-9
        np.testing.assert_array_equal(ours.predict(new)[sure], theirs.predict(rows)[sure])
    else:
        np.testing.assert_array_equal(ours.predict(new), theirs.predict(rows))


@every_kernel
@every_type
def test_models_trained_by_libsvm(kind, kernel, tmp_path):
    y = TARGET if "svr" in kind else Y
    options = f"-s {number(kind)} -t {KERNELS.index(kernel)} -g 0.05 -r 0.5 -d 2 -n 0.3 -b 1"
    theirs = Theirs.trained(X.tolist(), y, options)
    if kind.endswith("_svc"):
        ours = theirs.here(tmp_path / "model")
    else:
        with pytest.warns(UserWarning, match="is ignored"):
            ours = theirs.here(tmp_path / "model")
    assert type(ours) is TYPES[kind]
    assert ours.kernel == kernel
    check_same(theirs, ours, X.tolist(), X, kind)
    check_same(theirs, ours, X.tolist(), scipy.sparse.csr_array(X), kind)
    if kind.endswith("_svc"):
        expected = theirs.predict_proba(X.tolist(), [0, 1, 2])
        np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-9)


@every_kernel
@every_type
def test_models_trained_by_pairstep(kind, kernel, tmp_path):
    options = {"probability": True, "random_state": 0} if kind.endswith("_svc") else {}
    model = TYPES[kind](kernel=kernel, gamma=0.05, coef0=0.5, degree=2, **options)
    model.fit(X, TARGET if "svr" in kind else Y)
    theirs = Theirs.of(model, tmp_path / "model")
    check_same(theirs, model, X.tolist(), X, kind)
    if options:
        expected = theirs.predict_proba(X.tolist(), [0, 1, 2])
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    again = load_libsvm_model(tmp_path / "model")
    check_same(theirs, again, X.tolist(), X, kind)
    check_same(theirs, again.to_sklearn(), X.tolist(), scipy.sparse.csr_matrix(X), kind)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("kind", ["c_svc", "nu_svc"])
def test_labels_in_any_order(kind, labels, tmp_path):
    y = np.array(labels)[Y]
    wide = np.random.default_rng(0).normal(scale=3, size=(2000, 4)) + X.mean(axis=0)
    theirs = Theirs.trained(X.tolist(), y, f"-s {number(kind)} -g 0.1 -n 0.3 -b 1")
    ours = theirs.here(tmp_path / "model")
    assert ours.classes_.tolist() == sorted(set(labels))
    # Some votes tie.
    check_same(theirs, ours, wide.tolist(), wide, kind)
    expected = theirs.predict_proba(wide.tolist(), ours.classes_)
    np.testing.assert_allclose(ours.predict_proba(wide), expected, atol=1e-9)

    file = io.BytesIO()
    save(ours, file)
    file.seek(0)
    np.testing.assert_array_equal(load(file).predict(wide), ours.predict(wide))
    save_libsvm_model(ours, tmp_path / "again")
    assert label_line(tmp_path / "again") == label_line(tmp_path / "model")
    again = load_libsvm_model(tmp_path / "again")
    np.testing.assert_array_equal(again.predict(wide), ours.predict(wide))
    np.testing.assert_array_equal(again.predict_proba(wide), ours.predict_proba(wide))
    check_same(Theirs.of(ours, tmp_path / "again"), ours, wide.tolist(), wide, kind)

    restart = clone(ours).fit(X, Y).predict(wide)
    np.testing.assert_array_equal(ours.fit(X, Y).predict(wide), restart)


@every_type
def test_precomputed_kernels(kind, tmp_path):
    y = TARGET if "svr" in kind else Y
    K = X @ X.T
    rows = [{0: k + 1, **{j + 1: value for j, value in enumerate(row)}} for k, row in enumerate(K)]
    theirs = Theirs.trained(rows, y, f"-s {number(kind)} -t 4 -n 0.3")
    check_same(theirs, theirs.here(tmp_path / "model", n_features=150), rows, K, kind)
    model = TYPES[kind](kernel="precomputed").fit(K, y)
    check_same(Theirs.of(model, tmp_path / "model"), model, rows, K, kind)


def test_precomputed_kernels_keep_the_order_of_labels(tmp_path):
    y, K = np.array([9, 2, 5])[Y], X @ X.T
    rows = [{0: k + 1, **{j + 1: value for j, value in enumerate(row)}} for k, row in enumerate(K)]
    theirs = Theirs.trained(rows, y, "-t 4")
    ours = theirs.here(tmp_path / "model", n_features=150)
    save_libsvm_model(ours, tmp_path / "again")
    assert label_line(tmp_path / "again") == "label 9 2 5"
    again = load_libsvm_model(tmp_path / "again", n_features=150)
    np.testing.assert_array_equal(again.support_, ours.support_)
    np.testing.assert_array_equal(again.predict(K), ours.predict(K))
    check_same(Theirs.of(ours, tmp_path / "again"), ours, rows, K, "c_svc")


# A decision of exactly 0 goes to the second class in the file.
@pytest.mark.parametrize("labels", ["1 -1", "-1 1", "3 1 2", "2 3 1"])
def test_decisions_of_zero_are_those_of_libsvm(labels, tmp_path):
    k = len(labels.split())
    lines = [" ".join(["1"] * (k - 1)) + f" {c + 1}:1" for c in range(k)]
    ones = " ".join(["1"] * k)
    (tmp_path / "model").write_text(
        f"svm_type c_svc\nkernel_type linear\nnr_class {k}\ntotal_sv {k}\n"
        f"rho {' '.join(['0'] * (k * (k - 1) // 2))}\nlabel {labels}\nnr_sv {ones}\nSV\n"
        + "\n".join(lines)
        + "\n"
    )
    from libsvm.svmutil import svm_load_model

    ours = load_libsvm_model(tmp_path / "model")
    theirs = Theirs(svm_load_model(str(tmp_path / "model")))
    new = np.array([[0.0] * k, [1.0] + [0.0] * (k - 1), [0.0] * (k - 1) + [-1.0]])
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new.tolist()))


def test_sparse_and_single_samples(tmp_path):
    data = scipy.sparse.csr_matrix((X * (X > 1)).astype(np.float32))
    model = SVC().fit(data, Y)
    theirs = Theirs.of(model, tmp_path / "model")
    check_same(theirs, model, data.toarray().tolist(), data, "c_svc")


def test_no_support_vectors(tmp_path):
    model = SVR(epsilon=100.0).fit(X, TARGET)
    theirs = Theirs.of(model, tmp_path / "model")
    np.testing.assert_allclose(theirs.predict(X.tolist()), model.predict(X))
    again = load_libsvm_model(tmp_path / "model", n_features=4)
    np.testing.assert_allclose(again.predict(X), model.predict(X))


@pytest.mark.parametrize("labels", [[False, True, True], [-1.0, 1.0, 1.0]])
def test_labels_that_are_whole_numbers(labels, tmp_path):
    model = SVC().fit(X, np.array(labels)[Y])
    check_same(Theirs.of(model, tmp_path / "model"), model, X.tolist(), X, "c_svc")


@pytest.mark.parametrize("labels", [["a", "b", "c"], [0, 1, 2**31]])
def test_labels_that_libsvm_cannot_have(labels, tmp_path):
    model = SVC().fit(X, np.array(labels)[Y])
    with pytest.raises(ValueError, match="whole numbers"):
        save_libsvm_model(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_models_that_libsvm_cannot_represent_are_refused(tmp_path):
    model = SVC(kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(ValueError, match="no kernel"):
        save_libsvm_model(model, tmp_path / "model")
    save_libsvm_model(SVC().fit(X, Y), tmp_path / "model")
    with pytest.raises(ValueError, match="n_features is 3, but support vectors have up to 4"):
        load_libsvm_model(tmp_path / "model", n_features=3)


MODEL = b"""svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 3
rho 0.1 -0.2 0.3
label 2 1 3
nr_sv 1 1 1
SV
0.5 0.25 1:1 3:-2
-0.5 1 2:1e-3
-1 -0.25 1:1 2:2 3:3
"""


def test_blank_lines_carriage_returns_and_a_byte_order_mark_do_not_matter():
    expected = load_libsvm_model(io.BytesIO(MODEL)).predict(X[:, :3])
    changed = b"\xef\xbb\xbf" + MODEL.replace(b"\n", b" \r\n\r\n")
    np.testing.assert_array_equal(
        load_libsvm_model(io.BytesIO(changed)).predict(X[:, :3]), expected
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"svm_type", b"<html>", "begins with"),
        (b"c_svc", b"d_svc", "svm_type must be"),
        (b"rbf", b"rbg", "kernel_type must be"),
        (b"gamma 0.5", b"gamma x", "gamma must contain only"),
        (b"gamma 0.5", b"gamma nan", "not finite"),
        (b"gamma 0.5", b"gamma -1", "gamma"),
        (b"gamma 0.5", b"", "gamma must have 1"),
        (b"nr_class 3", b"nr_class 100000000", "rho must have"),
        (b"nr_class 3", b"nr_class -3", "nr_class"),
        (b"nr_class 3", b"nr_class 1", "nr_class"),
        (b"nr_class 3", b"nr_class 3.5", "nr_class must have whole numbers"),
        (b"nr_class 3", b"nr_class 1e300", "nr_class must have whole numbers"),
        (b"rbf\n", b"polynomial\ncoef0 0\ndegree 2.5\n", "degree must have whole numbers"),
        (b"nr_sv 1 1 1", b"nr_sv 1.5 1 1", "nr_sv must have whole numbers"),
        (b"total_sv 3", b"total_sv 1000000000000", "total_sv"),
        (b"total_sv 3", b"total_sv 4", "total_sv is 4"),
        (b"rho 0.1", b"rho inf", "not finite"),
        (b"label 2", b"label 2.5", "whole"),
        (b"label 2", b"label 1", "classes_"),
        (b"nr_sv 1 1", b"nr_sv 2 1", "nr_sv"),
        (b"nr_sv 1 1 1", b"nr_sv 4 -2 1", "nr_sv"),
        (b"SV\n", b"", "no line 'SV'"),
        (b"0.5 0.25", b"0.5", "line 10"),
        (b"3:-2", b"3:x", "line 10"),
        (b"3:-2", b"1:-2", "line 10"),
        (b"3:-2", b"-3:-2", "line 10"),
        (b"3:-2", b"2.5:-2", "line 10"),
        (b"3:-2", b"4294967297:-2", "line 10"),
        (b"1:1 3:-2", b"0:1 3:-2", "at least 1"),
        (b"3:-2", b"3:nan", "support_vectors_"),
        (b"3:-2", b"3:1e999", "support_vectors_"),
        (b"-0.5 1", b"nan 1", "dual_coef_"),
        (b"1e-3", b"\xff\xfe", "line 11"),
        (b"gamma", b"\xff\xfe", "not text"),
        (b"rho", b"probA 1 2 3\nprobB 1 2\nrho", "probB"),
    ],
)
def test_malformed_models_are_refused(old, new, message):
    assert old in MODEL
    with pytest.raises(ValueError, match=message):
        load_libsvm_model(io.BytesIO(MODEL.replace(old, new, 1)))


@pytest.mark.parametrize("number", [b"1e300", b"1.5", b"0", b"-1", b"nan", b"inf", b"2147483648"])
def test_precomputed_kernels_have_numbers_of_samples(number):
    text = b"svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0\n"
    text += b"label 1 -1\nnr_sv 1 1\nSV\n0.5 0:" + number + b"\n-0.5 0:2\n"
    with pytest.raises(ValueError, match="number of a sample"):
        load_libsvm_model(io.BytesIO(text))


def test_a_wide_model_stays_sparse():
    wide = MODEL.replace(b"3:-2", b"2147483647:-2")
    tracemalloc.start()
    model = load_libsvm_model(io.BytesIO(wide))
    new = scipy.sparse.csr_array(([1.0], ([0], [2**31 - 2])), (1, 2**31 - 1))
    assert model.predict(new).shape == (1,)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@given(data=st.data())
def test_any_wrong_byte_is_handled(data):
    changed = bytearray(MODEL)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"9", b"-", b":", b" ", b"\n", b"\x00", b"1e9", b"\xff"])
        )
    try:
        model = load_libsvm_model(io.BytesIO(bytes(changed)))
    except ValueError:
        return
    assert len(model.predict(scipy.sparse.csr_array((1, model.n_features_in_)))) == 1


@given(content=st.binary(max_size=200))
def test_random_bytes_are_refused(content):
    for begin in (b"", b"svm_type c_svc\n", MODEL[:130]):
        with pytest.raises(ValueError, match=r"."):
            load_libsvm_model(io.BytesIO(begin + content))
