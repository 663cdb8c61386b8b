"""Models in LIBSVM's text format, which ``svm-train`` writes and ``svm-predict`` reads.

A file has a header of lines ``name value ...``, the line ``SV``, and a line per support vector: its
coefficients, one for each other class, and ``index:value`` for each of its entries. The format is
defined by `svm_save_model` in LIBSVM's ``svm.cpp``.
"""

from __future__ import annotations

import warnings
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from ..constraints import Indices
from ..files import Place, reading, writing
from .base import as_now
from .classification import SVC, NuSVC, label_order
from .data import dense
from .decisions import pairs_in_order
from .engine import MAX_SPARSE_COLUMNS
from .export import hint_for
from .novelty import OneClassSVM
from .regression import SVR, NuSVR
from .restore import restored

TYPES: dict[str, Any] = {
    "c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR,
}  # fmt: skip
CLASSIFIERS = ("c_svc", "nu_svc")
# LIBSVM's name of each kernel, and its parameters.
KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
LARGEST_LABEL = 2**31 - 1  # LIBSVM stores labels as 32-bit integers
# Lines that `svm-train -b 1` adds for models that have no probabilities here.
LEFT_OUT = {
    "one_class": ("prob_density_marks", "probabilities of novelty"),
    "epsilon_svr": ("probA", "error bars of regression"),
    "nu_svr": ("probA", "error bars of regression"),
}


def save_libsvm_model(model: Any, path: Place) -> None:
    """Save a fitted model in LIBSVM's format.

    The data are written to a temporary file, which replaces an existing file only when it is
    complete and on the disk.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The fitted model. Its kernel must be given by name, and its classes must be whole numbers.
        The classes of a model that was read from such a file are written in the order of the file.
    path : path or binary file
        The file to write.

    Examples
    --------
    >>> import io
    >>> from pairstep import svm
    >>> model = svm.SVC(kernel="linear").fit([[-1.0], [1.0]], [-1, 1])
    >>> file = io.BytesIO()
    >>> svm.save_libsvm_model(model, file)
    >>> print(file.getvalue().decode())
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    rho 0
    label -1 1
    nr_sv 1 1
    SV
    0.5 1:-1
    -0.5 1:1
    <BLANKLINE>
    """
    kinds = {Estimator: name for name, Estimator in TYPES.items()}
    if type(model) not in kinds:
        raise TypeError(f"LIBSVM has no model type {type(model).__name__}{hint_for(model)}")
    model = as_now(model)
    check_is_fitted(model)
    if model.kernel not in KERNELS:
        raise ValueError(f"LIBSVM has no kernel {model.kernel!r}")
    lines = _lines(model, kinds[type(model)])
    with writing(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def load_libsvm_model(path: Place, *, n_features: int | None = None) -> Any:
    r"""Read a model in LIBSVM's format.

    Parameters
    ----------
    path : path or binary file
        The file to read.
    n_features : int, optional
        Number of columns of the training data, which the file does not contain. By default, the
        largest index of a support vector.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The fitted model, whose predictions are those of LIBSVM. C, nu and epsilon are not in the
        file and have their defaults. `support_` numbers the support vectors as if there had been
        no other samples, except with a precomputed kernel. The lines that `svm-train -b 1` adds for
        regression and novelty detection are ignored with a warning.

    Examples
    --------
    >>> import io
    >>> from pairstep import svm
    >>> text = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\n"
    >>> text += b"label 1 -1\nnr_sv 1 1\nSV\n0.5 1:1\n-0.5 1:-1\n"
    >>> model = svm.load_libsvm_model(io.BytesIO(text))
    >>> model.predict([[3.0], [-0.5]])
    array([ 1, -1])
    """
    with reading(path) as file:
        lines = enumerate(file, start=1)
        header = _read_header(lines)
        return _model(header, lines, n_features)


def _lines(model: Any, kind: str) -> Iterator[str]:
    name, numbers = KERNELS[model.kernel]
    yield f"svm_type {kind}"
    yield f"kernel_type {name}"
    values = {"degree": model.degree, "gamma": model._gamma, "coef0": model.coef0}
    yield from (f"{number} {values[number]:.17g}" for number in numbers)
    coefficients = model._sign * dense(model.dual_coef_)
    rho = -model._sign * model.intercept_
    vectors = np.arange(coefficients.shape[1])
    classified: list[str] = []
    if kind in CLASSIFIERS:
        # LIBSVM breaks ties by the order of the classes in the file.
        order, sizes = label_order(model), model.n_support_
        at, turned = pairs_in_order(order)
        vectors = _groups_in(order, sizes)
        coefficients = _coefficients_in(order, sizes, coefficients)
        rho = turned * rho[at]
        classified.append(f"label {_joined(_whole(model.classes_)[order])}")
        if model._effective_probability:
            classified.append(f"probA {_joined(model._probA[at])}")
            classified.append(f"probB {_joined(turned * model._probB[at])}")
        classified.append(f"nr_sv {_joined(sizes[order])}")
    yield f"nr_class {len(coefficients) + 1}"
    yield f"total_sv {len(vectors)}"
    yield f"rho {_joined(0.0 + rho)}"  # 0.0 + -0.0 is 0.0
    yield from classified
    yield "SV"
    for column, entries in zip(coefficients.T, _entries(model, vectors), strict=True):
        yield f"{_joined(column)} {entries}"


def _entries(model: Any, order: Indices) -> Iterable[str]:
    """Return the entries of each support vector; with a precomputed kernel its number, from 1."""
    if model.kernel == "precomputed":
        return (f"0:{row + 1}" for row in model.support_[order])
    vectors = scipy.sparse.csr_array(model.support_vectors_)[order]
    columns, values = (vectors.indices + 1).tolist(), vectors.data.tolist()
    return (
        " ".join(f"{columns[at]}:{values[at]:.17g}" for at in range(begin, end))
        for begin, end in pairwise(vectors.indptr.tolist())
    )


def _joined(numbers: Iterable[Any]) -> str:
    return " ".join(f"{number:.17g}" for number in numbers)


def _whole(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return class labels as the integers that LIBSVM requires."""
    if classes.dtype.kind in "biuf":
        whole = classes.astype(np.float64)
        if (whole == np.rint(whole)).all() and (np.abs(whole) <= LARGEST_LABEL).all():
            return whole.astype(np.int64)
    raise ValueError(
        f"LIBSVM's classes are whole numbers below 2**31, got {classes[:3].tolist()}; "
        "pairstep.svm.save stores any labels"
    )


def _read_header(lines: Iterator[tuple[int, bytes]]) -> dict[str, list[str]]:
    header: dict[str, list[str]] = {}
    for number, line in lines:
        try:
            text = line.removeprefix(BOM_UTF8) if number == 1 else line
            name, *values = text.decode("ascii").split() or [""]
        except UnicodeDecodeError:
            raise ValueError(f"not a LIBSVM model: line {number} is not text") from None
        if name == "SV":
            return header
        if number == 1 and name != "svm_type":
            raise ValueError(f"not a LIBSVM model: it begins with {name[:20]!r}, not 'svm_type'")
        if name:
            header[name] = values
    raise ValueError("not a LIBSVM model: there is no line 'SV'")


def _model(
    header: dict[str, list[str]], lines: Iterator[tuple[int, bytes]], n_features: int | None
) -> Any:
    kind = _chosen(header, "svm_type", TYPES)
    by_their_name = {theirs: name for name, (theirs, _) in KERNELS.items()}
    kernel = by_their_name[_chosen(header, "kernel_type", by_their_name)]
    parameters: dict[str, Any] = {"kernel": kernel}
    for name in KERNELS[kernel][1]:
        read = _integers if name == "degree" else _numbers
        (parameters[name],) = read(header, name, 1).tolist()

    (k,) = _integers(header, "nr_class", 1).tolist()
    if k < 2 or (k > 2 and kind not in CLASSIFIERS):
        raise ValueError(f"nr_class of {kind} cannot be {k}")
    pairs = k * (k - 1) // 2
    rho = _numbers(header, "rho", pairs)
    coefficients, vectors = _read_vectors(lines, k - 1)
    (count,) = _integers(header, "total_sv", 1).tolist()
    if count != len(vectors):
        raise ValueError(f"total_sv is {count}, but the file has {len(vectors)} support vectors")

    name, meaning = LEFT_OUT.get(kind, ("", ""))
    if name in header:
        warnings.warn(f"{name} is ignored: pairstep has no {meaning}", UserWarning, stacklevel=3)
    state: dict[str, Any] = {"_gamma": float(parameters.get("gamma", 0.0))}
    order = np.arange(len(vectors))
    if kind in CLASSIFIERS:
        likely = "probA" in header and "probB" in header
        parameters["probability"] = likely or "deprecated"
        classes = _whole(_numbers(header, "label", k))
        sizes = _integers(header, "nr_sv", k)
        if sizes.min() < 0 or sizes.sum() != len(vectors):
            raise ValueError(f"the numbers of nr_sv sum to {sizes.sum()}, but total_sv is {count}")
        A, B = (_numbers(header, name, pairs if likely else 0) for name in ("probA", "probB"))
        by_label = np.argsort(classes, kind="stable")
        order = _groups_in(by_label, sizes)
        coefficients = _coefficients_in(by_label, sizes, coefficients)
        at, turned = pairs_in_order(by_label)
        rho = turned * rho[at]
        if likely:
            A, B = A[at], turned * B[at]
        state |= {
            "classes_": classes[by_label], "class_weight_": np.ones(k),
            "_n_support": sizes[by_label].astype(np.int32), "n_iter_": np.zeros(pairs, np.int32),
            "_effective_probability": likely, "_probA": A, "_probB": B,
        }  # fmt: skip
        if (np.diff(by_label) < 0).any():
            state["_label_order"] = np.argsort(by_label)
    else:
        state |= {"_n_support": np.full(2, len(vectors), np.int32), "n_iter_": 0}
    sign = -1.0 if kind in CLASSIFIERS and k == 2 else 1.0
    state["intercept_"] = 0.0 - sign * rho
    if kind == "one_class":
        state["offset_"] = -state["intercept_"]
    vectors = [vectors[at] for at in order]
    return restored(
        TYPES[kind], parameters,
        state | _laid_out(kernel == "precomputed", vectors, sign * coefficients, n_features),
    )  # fmt: skip


def _laid_out(
    precomputed: bool, vectors: list[Array], coefficients: Array, n_features: int | None
) -> dict[str, Any]:
    """Return the fitted attributes that hold support vectors and their coefficients.

    The support vectors are sparse, so that the model takes dense and sparse samples.
    """
    if precomputed:
        if any(len(vector) == 0 or vector[0] != 0 for vector in vectors):
            raise ValueError("a support vector of a precomputed kernel must begin with 0:number")
        numbers = np.array([vector[1] for vector in vectors], np.float64)
        wrong = ~((numbers == np.rint(numbers)) & (numbers >= 1) & (numbers <= MAX_SPARSE_COLUMNS))
        if wrong.any():
            raise ValueError(
                "with a precomputed kernel 0:number must have the number of a sample, from 1 to "
                f"{MAX_SPARSE_COLUMNS}; got 0:{numbers[wrong][0]:g}"
            )
        rows = numbers.astype(np.int64) - 1
        n = int(rows.max(initial=0)) + 1 if n_features is None else n_features
        return {
            "_sparse": False, "support_": rows.astype(np.int32), "shape_fit_": (n, n),
            "n_features_in_": n, "support_vectors_": np.empty((0, 0)), "dual_coef_": coefficients,
        }  # fmt: skip
    starts = np.cumsum([0, *(len(vector) // 2 for vector in vectors)], dtype=np.int32)
    entries = np.concatenate([np.empty(0), *vectors]).reshape(-1, 2)
    indices, values = entries[:, 0].astype(np.int32) - 1, entries[:, 1].copy()
    if indices.min(initial=0) < 0:
        raise ValueError("indices of features must be at least 1, got 0")
    widest = int(indices.max(initial=0)) + 1
    n = widest if n_features is None else n_features
    if n < widest:
        raise ValueError(f"n_features is {n}, but support vectors have up to {widest} features")
    rows = np.arange(len(vectors), dtype=np.int32)
    return {
        "_sparse": True, "support_": rows, "shape_fit_": (max(len(rows), 1), n),
        "n_features_in_": n, "dual_coef_": scipy.sparse.csr_array(coefficients),
        "support_vectors_": scipy.sparse.csr_array((values, indices, starts), (len(rows), n)),
    }  # fmt: skip


def _read_vectors(lines: Iterator[tuple[int, bytes]], outputs: int) -> tuple[Array, list[Array]]:
    """Return coefficients, a column per support vector, and for each vector [index, value, ...]."""
    coefficients, vectors = [], []
    for number, line in lines:
        try:
            numbers = np.array(line.replace(b":", b" ").split(), np.float64)
        except ValueError:
            raise ValueError(f"line {number} must contain only numbers") from None
        if not len(numbers):
            continue
        column, entries = numbers[:outputs], numbers[outputs:]
        if len(column) < outputs or len(entries) != 2 * line.count(b":"):
            raise ValueError(
                f"line {number} must have {outputs} coefficients, then index:value ..."
            )
        indices = entries[::2]
        whole = (indices == np.rint(indices)).all() and (indices >= 0).all()
        if not (whole and (np.diff(indices) > 0).all() and (indices <= MAX_SPARSE_COLUMNS).all()):
            raise ValueError(f"line {number} must have ascending whole numbers as indices")
        coefficients.append(column)
        vectors.append(entries)
    return np.array(coefficients).reshape(-1, outputs).T.copy(), vectors


def _groups_in(order: Indices, sizes: Indices) -> Indices:
    """Return the support vectors, which are grouped by class, in another order of the classes."""
    ends = np.cumsum(sizes)
    return np.concatenate([np.arange(ends[c] - sizes[c], ends[c]) for c in order])


def _coefficients_in(order: Indices, sizes: Indices, coefficients: Array) -> Array:
    """Return the coefficients for another order of the classes.

    The coefficient of a vector of class i in the model of the pair (i, j) is in row j - 1 if j > i,
    and in row j otherwise. The first class of a pair is positive, so that the signs of a pair
    change if its classes are swapped.
    """
    starts = np.cumsum(sizes) - sizes
    reordered = []
    for a, i in enumerate(order):
        block = coefficients[:, starts[i] : starts[i] + sizes[i]]
        rows = [(j - (j > i), 1.0 if (a < b) == (i < j) else -1.0)
                for b, j in enumerate(order) if b != a]  # fmt: skip
        reordered.append(np.array([sign * block[row] for row, sign in rows]))
    return np.concatenate(reordered, axis=1)


def _chosen(header: dict[str, list[str]], name: str, choices: Iterable[str]) -> str:
    value = " ".join(header.get(name, []))
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value[:40]!r}")
    return value


def _integers(header: dict[str, list[str]], name: str, count: int) -> NDArray[np.int64]:
    numbers = _numbers(header, name, count)
    wrong = (numbers != np.rint(numbers)) | (np.abs(numbers) > MAX_SPARSE_COLUMNS)
    if wrong.any():
        raise ValueError(f"{name} must have whole numbers below 2**31, got {numbers[wrong][0]:g}")
    return numbers.astype(np.int64)


def _numbers(header: dict[str, list[str]], name: str, count: int) -> Array:
    values: Sequence[str] = header.get(name, []) if count else []
    if len(values) != count:
        raise ValueError(f"{name} must have {count} numbers, got {len(values)}")
    try:
        numbers = np.array(values, np.float64)
    except ValueError:
        raise ValueError(f"{name} must contain only numbers") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} has numbers that are not finite")
    return numbers
