"""Machines in files of our own: safe to load from strangers, readable by every later version.

A file is an npz archive without compression: what a fit has found out as arrays and, in
``header.json``, what has no shape. Nothing in it is code: the class comes from a fixed table, and
everything is checked against everything else before a machine is made of it.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..data.npz import read_npz, refused
from ..files import Place, reading, writing
from .base import Optimality
from .restore import MACHINES, restored, state_of

FORMAT, VERSION = "pairstep machine", 1
HEADER = "header.json"
CONTAINERS = {"csr_array": scipy.sparse.csr_array, "csr_matrix": scipy.sparse.csr_matrix}
SPARSE = "support_vectors_"  # and its three arrays
PARTS = ("data", "indices", "indptr")
OPTIMALITY = "optimality_"


def save(machine: Any, path: Place) -> None:
    """Keep a fitted machine in a file.

    The file is written beside its place and put there once it is whole and on the disk: a full
    disk or a crash leave an earlier file as it was.

    Parameters
    ----------
    machine : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted; with a kernel by name, for a function cannot be kept in a file. What `warm_start`
        would continue from is not kept.
    path : path or binary file
        Where to.

    See Also
    --------
    load : The way back.
    save_libsvm_model : In LIBSVM's format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pairstep import svm
    >>> machine = svm.SVC().fit([[0.0], [1.0]], ["low", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     svm.save(machine, Path(folder) / "machine")
    ...     again = svm.load(Path(folder) / "machine")
    >>> again.predict([[0.2], [0.7]])
    array(['low', 'high'], dtype='<U4')
    """
    arrays, header = _contents(machine)
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: Place) -> Any:
    """Read a machine that `save` has written; safe, whoever has made the file.

    Parameters
    ----------
    path : path or binary file
        Where from.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted as it was.
    """
    with reading(path) as file:
        found = read_npz(file, packed=False)
    with refused("a machine in a file"):
        header = json.loads(found.pop(HEADER))  # type: ignore[arg-type]
        if header["format"] != FORMAT:
            raise ValueError(f"a file of the format {header['format']!r}, not {FORMAT!r}")
        if header["version"] > VERSION:
            raise ValueError(
                f"the file has version {header['version']} of the format, from pairstep "
                f"{header['pairstep']}; this one, {__version__}, reads up to {VERSION}"
            )
        return _machine(header, found)


def _contents(machine: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes into a file: arrays by name, and the rest."""
    if type(machine).__name__ not in MACHINES or type(machine) not in MACHINES.values():
        raise TypeError(
            f"machine must be one of {', '.join(MACHINES)}, got {type(machine).__name__}"
        )
    check_is_fitted(machine)
    state = state_of(machine)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "pairstep": __version__,
        "class": type(machine).__name__,
        "parameters": {
            name: _plain(name, value) for name, value in machine.get_params(deep=False).items()
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
        state["dual_coef_"] = machine._dense_coefficients()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    header["state"] = {
        name: _plain(name, value) for name, value in state.items() if name not in arrays
    }
    return arrays, header


def _machine(header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """A machine of what was in a file."""
    if header["class"] not in MACHINES:
        raise ValueError(f"a machine of the class {header['class']!r} is not known")
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
    told = {name: arrays.pop(name) for name in list(arrays) if name.startswith(f"{OPTIMALITY}.")}
    if told:
        state[OPTIMALITY] = Optimality(
            **{name.removeprefix(f"{OPTIMALITY}."): array for name, array in told.items()}
        )
    if "feature_names" in header:
        state["feature_names_in_"] = np.array(header["feature_names"], object)
    return restored(MACHINES[header["class"]], parameters, {**state, **arrays})


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if name == "dtype":
        return np.dtype(value).name
    if isinstance(value, dict):
        return [[_plain(name, key), _plain(name, item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [_plain(name, item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{name}={value!r} cannot be kept in a file: it is no number, name or None")
