"""Machines in LIBSVM's text format, as ``svm-train`` writes it and ``svm-predict`` reads it.

After a header of lines ``name value ...`` and the line ``SV``, each support vector has a line: its
coefficients, one per pair of classes that it takes part in, and ``index:value`` for its entries.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._validation import Array
from ..constraints import Indices
from ..files import Place, reading, writing
from .classification import SVC, NuSVC, pairs_in
from .novelty import OneClassSVM
from .regression import SVR, NuSVR
from .restore import WIDEST, restored

TYPES: dict[str, Any] = {
    "c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR,
}  # fmt: skip
CLASSIFIERS = ("c_svc", "nu_svc")
# LIBSVM's name of each kernel, and which numbers belong to it.
KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
LARGEST_LABEL = 2**31 - 1
# What `svm-train -b 1` adds for machines that have no probabilities here.
LEFT_OUT = {
    "one_class": ("prob_density_marks", "probabilities of novelty"),
    "epsilon_svr": ("probA", "error bars of regression"),
    "nu_svr": ("probA", "error bars of regression"),
}


def save_libsvm_model(machine: Any, path: Place) -> None:
    """Keep a fitted machine in LIBSVM's format.

    The file is written beside its place and put there once it is whole and on the disk.

    Parameters
    ----------
    machine : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted, with a kernel by name. Classes must be whole numbers, as LIBSVM has them.
    path : path or binary file
        Where to.

    Examples
    --------
    >>> import io
    >>> from pairstep import svm
    >>> machine = svm.SVC(kernel="linear").fit([[-1.0], [1.0]], [-1, 1])
    >>> file = io.BytesIO()
    >>> svm.save_libsvm_model(machine, file)
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
    check_is_fitted(machine)
    kinds = {Machine: name for name, Machine in TYPES.items()}
    if type(machine) not in kinds:
        raise TypeError(f"LIBSVM has no machine such as {type(machine).__name__}")
    if machine.kernel not in KERNELS:
        raise ValueError(f"LIBSVM has no kernel such as {machine.kernel!r}")
    lines = _lines(machine, kinds[type(machine)])
    with writing(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def load_libsvm_model(path: Place, *, n_features: int | None = None) -> Any:
    r"""Read a machine in LIBSVM's format, trained there or here.

    Parameters
    ----------
    path : path or binary file
        Where from.
    n_features : int, optional
        Columns of the data that it was trained with, of which the file tells nothing: by default
        the largest index that a support vector has.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted; its predictions are those of LIBSVM. What the file does not say is as by default
        (C, nu, epsilon), and `support_` counts the support vectors as if there had been no other
        samples, except with a precomputed kernel. What LIBSVM keeps for error bars of regression
        and for probabilities of novelty (`svm-train -b 1`) has no use here: it is left out with a
        warning, and a file that is written from the machine is without it.

    Examples
    --------
    >>> import io
    >>> from pairstep import svm
    >>> text = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\n"
    >>> text += b"label 1 -1\nnr_sv 1 1\nSV\n0.5 1:1\n-0.5 1:-1\n"
    >>> machine = svm.load_libsvm_model(io.BytesIO(text))
    >>> machine.predict([[3.0], [-0.5]])
    array([ 1, -1])
    """
    with reading(path) as file:
        lines = enumerate(file, start=1)
        header = _read_header(lines)
        return _machine(header, lines, n_features)


def _lines(machine: Any, kind: str) -> Iterator[str]:
    name, numbers = KERNELS[machine.kernel]
    yield f"svm_type {kind}"
    yield f"kernel_type {name}"
    values = {"degree": machine.degree, "gamma": machine._gamma, "coef0": machine.coef0}
    yield from (f"{number} {values[number]:.17g}" for number in numbers)
    coefficients = machine._sign * machine._dense_coefficients()
    yield f"nr_class {len(coefficients) + 1}"
    yield f"total_sv {coefficients.shape[1]}"
    yield f"rho {_joined(0.0 - machine._sign * machine.intercept_)}"
    if kind in CLASSIFIERS:
        yield f"label {_joined(_whole(machine.classes_))}"
        if machine._effective_probability:
            yield f"probA {_joined(machine._probA)}"
            yield f"probB {_joined(machine._probB)}"
        yield f"nr_sv {_joined(machine.n_support_)}"
    yield "SV"
    for column, entries in zip(coefficients.T, _entries(machine), strict=True):
        yield f"{_joined(column)} {entries}"


def _entries(machine: Any) -> Iterable[str]:
    """The support vectors; of a precomputed kernel their numbers among the samples, from 1."""
    if machine.kernel == "precomputed":
        return (f"0:{row + 1}" for row in machine.support_)
    vectors = scipy.sparse.csr_array(machine.support_vectors_)
    columns, values = (vectors.indices + 1).tolist(), vectors.data.tolist()
    return (
        " ".join(f"{columns[at]}:{values[at]:.17g}" for at in range(begin, end))
        for begin, end in pairwise(vectors.indptr.tolist())
    )


def _joined(numbers: Iterable[Any]) -> str:
    return " ".join(f"{number:.17g}" for number in numbers)


def _whole(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Classes as LIBSVM has them."""
    if classes.dtype.kind in "biuf":
        whole = classes.astype(np.float64)
        if (whole == np.rint(whole)).all() and (np.abs(whole) <= LARGEST_LABEL).all():
            return whole.astype(np.int64)
    raise ValueError(
        f"LIBSVM's classes are whole numbers below 2**31, got {classes[:3].tolist()}: save has any"
    )


def _read_header(lines: Iterator[tuple[int, bytes]]) -> dict[str, list[str]]:
    header: dict[str, list[str]] = {}
    for number, line in lines:
        try:
            name, *values = line.decode("ascii").split() or [""]
        except UnicodeDecodeError:
            raise ValueError(f"not a model of LIBSVM: line {number} is not text") from None
        if name == "SV":
            return header
        if number == 1 and name != "svm_type":
            raise ValueError(f"not a model of LIBSVM: it begins with {name[:20]!r}, not 'svm_type'")
        if name:
            header[name] = values
    raise ValueError("not a model of LIBSVM: there is no line 'SV'")


def _machine(
    header: dict[str, list[str]], lines: Iterator[tuple[int, bytes]], n_features: int | None
) -> Any:
    kind = _chosen(header, "svm_type", TYPES)
    by_their_name = {theirs: name for name, (theirs, _) in KERNELS.items()}
    kernel = by_their_name[_chosen(header, "kernel_type", by_their_name)]
    parameters: dict[str, Any] = {"kernel": kernel}
    for name in KERNELS[kernel][1]:
        (value,) = _numbers(header, name, 1)
        parameters[name] = int(value) if name == "degree" else float(value)

    (k,) = _numbers(header, "nr_class", 1).astype(np.int64).tolist()
    if k < 2 or (k > 2 and kind not in CLASSIFIERS):
        raise ValueError(f"nr_class of {kind} cannot be {k}")
    pairs = k * (k - 1) // 2
    rho = _numbers(header, "rho", pairs)
    coefficients, vectors = _read_vectors(lines, k - 1)
    (count,) = _numbers(header, "total_sv", 1)
    if count != len(vectors):
        raise ValueError(f"total_sv is {count:g}, but {len(vectors)} support vectors are there")

    name, meaning = LEFT_OUT.get(kind, ("", ""))
    if name in header:
        warnings.warn(f"{name} is left out: there are no {meaning} here", UserWarning, stacklevel=3)
    state: dict[str, Any] = {"_gamma": float(parameters.get("gamma", 0.0))}
    order = np.arange(len(vectors))
    if kind in CLASSIFIERS:
        likely = "probA" in header and "probB" in header
        parameters["probability"] = likely or "deprecated"
        classes = _whole(_numbers(header, "label", k))
        sizes = _numbers(header, "nr_sv", k).astype(np.int64)
        if sizes.min() < 0 or sizes.sum() != len(vectors):
            raise ValueError(f"nr_sv has {sizes.sum()} support vectors, and total_sv {count:g}")
        A, B = (_numbers(header, name, pairs if likely else 0) for name in ("probA", "probB"))
        by_label = np.argsort(classes, kind="stable")
        order = _groups_in(by_label, sizes)
        coefficients = _coefficients_in(by_label, sizes, coefficients)
        at, turned = pairs_in(by_label)
        rho = turned * rho[at]
        if likely:
            A, B = A[at], turned * B[at]
        state |= {
            "classes_": classes[by_label], "class_weight_": np.ones(k),
            "_n_support": sizes[by_label].astype(np.int32), "n_iter_": np.zeros(pairs, np.int32),
            "_effective_probability": likely, "_probA": A, "_probB": B,
        }  # fmt: skip
        if k > 2 and (np.diff(by_label) < 0).any():
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
    """The attributes that hold support vectors and their coefficients.

    They are sparse, so that the machine takes dense and sparse samples.
    """
    if precomputed:
        if any(len(vector) == 0 or vector[0] != 0 for vector in vectors):
            raise ValueError("with a precomputed kernel each support vector begins with 0:number")
        rows = np.array([vector[1] for vector in vectors], np.int64) - 1
        n = int(rows.max(initial=0)) + 1 if n_features is None else n_features
        return {
            "_sparse": False, "support_": rows.astype(np.int32), "shape_fit_": (n, n),
            "n_features_in_": n, "support_vectors_": np.empty((0, 0)), "dual_coef_": coefficients,
        }  # fmt: skip
    starts = np.cumsum([0, *(len(vector) // 2 for vector in vectors)], dtype=np.int32)
    entries = np.concatenate([np.empty(0), *vectors]).reshape(-1, 2)
    indices, values = entries[:, 0].astype(np.int32) - 1, entries[:, 1].copy()
    if indices.min(initial=0) < 0:
        raise ValueError("indices of features begin with 1, got 0")
    widest = int(indices.max(initial=0)) + 1
    n = widest if n_features is None else n_features
    if n < widest:
        raise ValueError(f"n_features is {n}, but support vectors have up to {widest}")
    rows = np.arange(len(vectors), dtype=np.int32)
    return {
        "_sparse": True, "support_": rows, "shape_fit_": (max(len(rows), 1), n),
        "n_features_in_": n, "dual_coef_": scipy.sparse.csr_array(coefficients),
        "support_vectors_": scipy.sparse.csr_array((values, indices, starts), (len(rows), n)),
    }  # fmt: skip


def _read_vectors(lines: Iterator[tuple[int, bytes]], outputs: int) -> tuple[Array, list[Array]]:
    """Coefficients, a column per support vector; of each vector index, value, index, value, ..."""
    coefficients, vectors = [], []
    for number, line in lines:
        try:
            numbers = np.array(line.replace(b":", b" ").split(), np.float64)
        except ValueError:
            raise ValueError(f"line {number} has something else than numbers") from None
        if not len(numbers):
            continue
        own, entries = numbers[:outputs], numbers[outputs:]
        if len(own) < outputs or len(entries) != 2 * line.count(b":"):
            raise ValueError(
                f"line {number} must have {outputs} coefficients, then index:value ..."
            )
        indices = entries[::2]
        whole = (indices == np.rint(indices)).all() and (indices >= 0).all()
        if not (whole and (np.diff(indices) > 0).all() and (indices <= WIDEST).all()):
            raise ValueError(f"line {number} must have indices that are whole numbers and ascend")
        coefficients.append(own)
        vectors.append(entries)
    return np.array(coefficients).reshape(-1, outputs).T.copy(), vectors


def _groups_in(order: Indices, sizes: Indices) -> Indices:
    """Support vectors side by side by class, in another order of the classes."""
    ends = np.cumsum(sizes)
    return np.concatenate([np.arange(ends[c] - sizes[c], ends[c]) for c in order])


def _coefficients_in(order: Indices, sizes: Indices, coefficients: Array) -> Array:
    """Their coefficients, as the machines of another order of the classes have them.

    A vector of class i has its coefficient in the machine of i and j in row j - 1 if j > i, in row
    j else. Of two classes the first is positive, so that signs change where two change places.
    """
    starts = np.cumsum(sizes) - sizes
    laid = []
    for a, i in enumerate(order):
        own = coefficients[:, starts[i] : starts[i] + sizes[i]]
        rows = [(j - (j > i), 1.0 if (a < b) == (i < j) else -1.0)
                for b, j in enumerate(order) if b != a]  # fmt: skip
        laid.append(np.array([sign * own[row] for row, sign in rows]))
    return np.concatenate(laid, axis=1)


def _chosen(header: dict[str, list[str]], name: str, choices: Iterable[str]) -> str:
    value = " ".join(header.get(name, []))
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value[:40]!r}")
    return value


def _numbers(header: dict[str, list[str]], name: str, count: int) -> Array:
    values: Sequence[str] = header.get(name, []) if count else []
    if len(values) != count:
        raise ValueError(f"{name} must have {count} numbers, got {len(values)}")
    try:
        numbers = np.array(values, np.float64)
    except ValueError:
        raise ValueError(f"{name} has something else than numbers") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} has numbers that are not finite")
    return numbers
