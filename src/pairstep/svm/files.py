"""Files of fitted models that are safe to load from untrusted sources.

A file is an npz archive without compression. It has the fitted attributes that are arrays and, in
``header.json``, the parameters and all other attributes. Nothing in it is code: the class comes
from a fixed table, and all parts are checked for consistency before a model is made of them. Later
versions of pairstep read the files of earlier ones.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

import numpy as np
import scipy
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..data.npz import read_npz, refused
from ..files import Place, reading, writing
from .base import as_now
from .data import dense
from .export import hint_for
from .plan import Optimality
from .restore import ESTIMATORS, restored, state_of
from .scaled import PREFIX, join, split

FORMAT, VERSION = "pairstep machine", 1  # existing files have this name, so it stays
HEADER = "header.json"
CONTAINERS = {"csr_array": scipy.sparse.csr_array, "csr_matrix": scipy.sparse.csr_matrix}
SPARSE = "support_vectors_"  # a sparse matrix is stored as three arrays
PARTS = ("data", "indices", "indptr")
OPTIMALITY = "optimality_"


def save(model: Any, path: Place) -> None:
    """Save a fitted model to a file.

    The data are written to a temporary file, which replaces an existing file only when it is
    complete and on the disk. A full disk or a crash leaves the existing file unchanged.

    Parameters
    ----------
    model : estimator, or a Pipeline of a StandardScaler and an estimator
        The fitted model: an `SVC`, `NuSVC`, `SVR`, `NuSVR`, `QuantileSVR` or `OneClassSVM`. Its
        kernel must be given by name, because a function cannot be saved.
        The duals from which `warm_start` would continue are not saved.
    path : path or binary file
        The file to write.

    See Also
    --------
    load : Read the file.
    save_libsvm_model : Save in LIBSVM's format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pairstep import svm
    >>> model = svm.SVC().fit([[0.0], [1.0]], ["low", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     svm.save(model, Path(folder) / "model")
    ...     again = svm.load(Path(folder) / "model")
    >>> again.predict([[0.2], [0.7]])
    array(['low', 'high'], dtype='<U4')
    """
    model, scaling = split(model)
    arrays, header = _contents(model)
    arrays |= scaling
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: Place) -> Any:
    """Read a model that `save` has written. This is safe even for files from untrusted sources.

    Parameters
    ----------
    path : path or binary file
        The file to read.

    Returns
    -------
    estimator or Pipeline
        The fitted model.
    """
    with reading(path) as file:
        found = read_npz(file, packed=False)
    with refused("a model in a file"):
        header = json.loads(found.pop(HEADER))  # type: ignore[arg-type]
        if header["format"] != FORMAT:
            raise ValueError(f"a file of the format {header['format']!r}, not {FORMAT!r}")
        if header["version"] > VERSION:
            raise ValueError(
                f"the file has version {header['version']} of the format, from pairstep "
                f"{header['pairstep']}; pairstep {__version__} reads up to version {VERSION}: "
                "upgrade pairstep"
            )
        scaling = {name: found.pop(name) for name in list(found) if name.startswith(PREFIX)}
        return join(_model(header, found), scaling)


def _contents(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a file by name, and its header."""
    if type(model).__name__ not in ESTIMATORS or type(model) not in ESTIMATORS.values():
        raise TypeError(
            f"model must be one of {', '.join(ESTIMATORS)}, got {type(model).__name__}"
            f"{hint_for(model)}"
        )
    model = as_now(model)
    check_is_fitted(model)
    state = state_of(model)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "pairstep": __version__,
        "class": type(model).__name__,
        "parameters": {
            name: plain(name, value) for name, value in model.get_params(deep=False).items()
        },
    }
    if "feature_names_in_" in state:
        header["feature_names"] = state.pop("feature_names_in_").tolist()
    optimality = state.pop(OPTIMALITY, None)
    if optimality is not None:
        state |= {f"{OPTIMALITY}.{name}": array for name, array in vars(optimality).items()}
    if state["_sparse"]:
        vectors = state.pop(SPARSE)
        header["container"] = type(vectors).__name__
        state |= {f"{SPARSE}.{part}": getattr(vectors, part) for part in PARTS}
        state["dual_coef_"] = dense(model.dual_coef_)
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    header["state"] = {
        name: plain(name, value) for name, value in state.items() if name not in arrays
    }
    return arrays, header


def _model(header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """Return the model that a file describes."""
    if header["class"] not in ESTIMATORS:
        raise ValueError(f"the class {header['class']!r} is unknown")
    parameters, state = header["parameters"], header["state"]
    parameters["dtype"] = np.dtype(parameters["dtype"]).type
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    state["shape_fit_"] = tuple(state["shape_fit_"])
    if "container" in header:
        Container = CONTAINERS[header["container"]]
        parts = tuple(arrays.pop(f"{SPARSE}.{part}") for part in PARTS)
        shape = len(parts[-1]) - 1, state["n_features_in_"]
        arrays[SPARSE] = Container(parts, shape)
        arrays["dual_coef_"] = Container(arrays["dual_coef_"])
    prefix = f"{OPTIMALITY}."
    optimality = {name: arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}
    if optimality:
        state[OPTIMALITY] = Optimality(
            **{name.removeprefix(prefix): array for name, array in optimality.items()}
        )
    if "feature_names" in header:
        state["feature_names_in_"] = np.array(header["feature_names"], object)
    return restored(ESTIMATORS[header["class"]], parameters, {**state, **arrays})


def plain(name: str, value: Any) -> Any:
    """Return a parameter or attribute as a value that JSON can store."""
    if name == "dtype":
        return np.dtype(value).name
    if isinstance(value, dict):
        return [[plain(name, key), plain(name, item)] for key, item in value.items()]
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(name, item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{name}={value!r} cannot be saved: it must be a number, string or None")
