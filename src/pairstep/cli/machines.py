"""What `train` and `tune` share: arguments that describe a machine, samples, and the model file."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, Any

from .command import DASH, output

if TYPE_CHECKING:
    from ..data import Samples

TYPES = {"svc": "SVC", "nusvc": "NuSVC", "svr": "SVR", "nusvr": "NuSVR", "oneclass": "OneClassSVM"}
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

DATA = """\
data:
  svmlight/LIBSVM lines, csv, npz (arrays X, y) or parquet, told by their content; packed by gzip,
  bzip2 or xz or not; - is standard input. A csv file has names in its first line, or none.
"""


def add_samples(parser: argparse.ArgumentParser) -> None:
    """Arguments that say how samples are read."""
    parser.add_argument("data", help="file of samples; - for standard input")
    parser.add_argument(
        "--label", metavar="COLUMN", help="of a table: name or number of the labels' column (last)"
    )
    parser.add_argument(
        "--zero-based", action="store_true", help="svmlight indices begin with 0, not 1"
    )


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Arguments that describe a machine, but for those that `tune` searches."""
    parser.add_argument("model", help="file to write; - for standard output")
    parser.add_argument("--kernel", choices=KERNELS, help="default: rbf")
    parser.add_argument("--degree", metavar="N", type=int, help="of the kernel poly (3)")
    parser.add_argument("--coef0", metavar="X", type=number, help="of poly and sigmoid (0)")
    parser.add_argument("--tol", metavar="X", type=number, help="KKT violation to stop at (0.001)")
    parser.add_argument("--cache-size", metavar="MB", type=number, help="for kernel rows (200)")
    parser.add_argument("--jobs", metavar="N", type=int, help="threads (all)")
    parser.add_argument(
        "--libsvm", action="store_true", help="write LIBSVM's format instead of our own"
    )


def number(text: str) -> float:
    """Read a number that is finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def gamma(text: str) -> float | str:
    """Read a gamma: a number or a name."""
    return text if text in ("scale", "auto") else number(text)


def given(options: argparse.Namespace, **names: str) -> dict[str, Any]:
    """Parameters of an estimator that the user has given, by `parameter=option`."""
    shared = {name: name for name in ("kernel", "degree", "coef0", "tol", "cache_size")}
    found = {
        parameter: getattr(options, option)
        for parameter, option in {**shared, "n_jobs": "jobs", **names}.items()
    }
    return {parameter: value for parameter, value in found.items() if value is not None}


def made(Estimator: Any, parameters: dict[str, Any], kind: str) -> Any:
    """An estimator; says which of its parameters it does not have."""
    strange = sorted(parameters.keys() - set(Estimator._get_param_names()))
    if strange:
        raise ValueError(f"--{strange[0].lower()} is not for --type {kind}")
    return Estimator(**parameters)


def training_samples(options: argparse.Namespace, supervised: bool) -> Samples:
    """Samples to fit a machine to, with labels where it needs them."""
    from ..data import read_samples

    samples = read_samples(
        options.data, label=options.label, labelled=supervised, zero_based=options.zero_based
    )
    if supervised and samples.y is None:
        raise ValueError(f"{options.data} has no labels")
    return samples


def write_model(options: argparse.Namespace, machine: Any, samples: Samples) -> None:
    """Keep a machine, with the names of the columns that it was fitted to."""
    import numpy as np

    from .. import svm

    if options.model == DASH and sys.stdout.isatty():
        raise ValueError("a model is not for a screen: give a file, or a pipe behind -")
    if samples.names is not None:
        machine.feature_names_in_ = np.array(samples.names, object)
    with output(options.model) as file:
        (svm.save_libsvm_model if options.libsvm else svm.save)(machine, file)
