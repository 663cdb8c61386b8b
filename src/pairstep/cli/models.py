"""Shared by `train` and `tune`: arguments of a model, training samples, scaling, the model file."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .command import DASH, output
from .libsvm_options import KERNELS, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data import Samples

TYPES = {
    "svc": "SVC", "nusvc": "NuSVC", "oneclass": "OneClassSVM", "svr": "SVR", "nusvr": "NuSVR",
    "quantilesvr": "QuantileSVR",
}  # fmt: skip

DATA = """\
data:
  svmlight/LIBSVM, csv, npz (arrays X and y) or parquet; the format is detected from the content.
  Files whose names end in .gz, .bz2 or .xz are decompressed. - is standard input. The first line
  of a csv file can have the names of the columns. Labels are in the last column, or in the first
  one if that is named label, class, target or y or has text; --label names any other column.
"""

LIBSVM = """
LIBSVM:
  The options of svm-train work too: -s, -t, -d, -g, -r, -c, -n, -p, -m, -e, -b, -v and -wi, with
  LIBSVM's numbers for types and kernels. The default of gamma is scale; LIBSVM's is auto.
"""


def add_samples(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a file of samples."""
    parser.add_argument("data", help="file of samples; - for standard input")
    parser.add_argument(
        "--label", metavar="COLUMN", help="column of the labels in a table: its name or number"
    )
    parser.add_argument(
        "--zero-based", action="store_true", help="svmlight indices begin with 0, not 1"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a model, except those that `tune` searches."""
    parser.add_argument("model", help="file to write; - for standard output")
    parser.add_argument(
        "-t", "--kernel", choices=KERNELS, type=kernel, metavar="NAME",
        help=f"kernel: {', '.join(KERNELS)} (default: rbf)",
    )  # fmt: skip
    parser.add_argument("-d", "--degree", metavar="N", type=int, help="degree of poly (default: 3)")
    parser.add_argument(
        "-r",
        "--coef0",
        metavar="X",
        type=number,
        help="constant term of poly and sigmoid (default: 0)",
    )
    parser.add_argument(
        "-e", "--tol", metavar="X", type=number,
        help="KKT violation at which to stop (default: 0.001)",
    )  # fmt: skip
    parser.add_argument(
        "-m",
        "--cache-size",
        metavar="MB",
        type=number,
        help="memory for kernel rows (default: 200)",
    )
    parser.add_argument(
        "--class-weight", metavar="LABEL=X", action="append",
        help="multiply C of a class by X, or balanced; can be repeated (also -wLABEL X)",
    )  # fmt: skip
    parser.add_argument(
        "--scale", action="store_true",
        help="standardize features; the model stores the scaling for predict",
    )  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, help="number of threads (default: all)")
    parser.add_argument(
        "--libsvm", action="store_true", help="write LIBSVM's model format instead of pairstep's"
    )


def add_quantile(parser: argparse.ArgumentParser, models: str) -> None:
    """Add the argument for quantiles, which these models have."""
    parser.add_argument(
        "--quantile", metavar="X", type=number, nargs="+",
        help=f"quantile of {models}, between 0 and 1, or several of them",
    )  # fmt: skip


def quantile(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameter `quantile` if it was given: a number, or a list if there are several."""
    values = options.quantile
    return {} if values is None else {"quantile": values[0] if len(values) == 1 else values}


def number(text: str) -> float:
    """Parse a finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def gamma(text: str) -> float | str:
    """Parse a gamma: a number, "scale" or "auto"."""
    return text if text in ("scale", "auto") else number(text)


def given(options: argparse.Namespace, **names: str) -> dict[str, Any]:
    """Return the parameters of an estimator that were given, from ``parameter=option``."""
    shared = {name: name for name in ("kernel", "degree", "coef0", "tol", "cache_size")}
    found = {
        parameter: getattr(options, option)
        for parameter, option in {**shared, "n_jobs": "jobs", **names}.items()
    }
    return {parameter: value for parameter, value in found.items() if value is not None}


def made(Estimator: Any, parameters: dict[str, Any], options: argparse.Namespace) -> Any:
    """Return an estimator. Raise if it does not have one of the parameters."""
    unknown = sorted(parameters.keys() - set(Estimator._get_param_names()))
    if options.class_weight and options.type != "svc":
        unknown.append("class-weight")
    if unknown:
        raise ValueError(f"--{unknown[0].lower()} is not an option of --type {options.type}")
    return Estimator(**parameters)


def training_samples(options: argparse.Namespace) -> Samples:
    """Read the samples to fit a model to, with labels if it needs them."""
    from ..data import read_samples

    supervised = options.type != "oneclass"
    samples = read_samples(
        options.data, label=options.label, labeled=supervised, zero_based=options.zero_based,
        precomputed=options.kernel == "precomputed",
    )  # fmt: skip
    if supervised and samples.y is None:
        raise ValueError(
            f"{options.data} has no labels, which --type {options.type} needs; in an npz file they "
            "are the array y"
        )
    if options.type in ("svc", "nusvc") and samples.guessed_label is not None:
        require_classes(options.data, samples)
    if options.kernel == "precomputed":
        samples = training_kernel(options.data, samples)
    return samples


def require_classes(path: str, samples: Samples) -> None:
    """Raise if the column that was taken as the labels does not look like one."""
    import numpy as np

    assert samples.y is not None
    hint = f"they were taken from {samples.guessed_label}; name their column with --label, such as"
    if samples.y.dtype.kind == "f" and np.isfinite(samples.y).all():
        raise ValueError(
            f"{path}: the labels are continuous numbers; {hint} --label 1, or use --type svr"
        )
    if len(np.unique(samples.y)) == 1:
        raise ValueError(f"{path}: the number of classes is 1; {hint} --label 1")


def training_kernel(path: str, samples: Samples) -> Samples:
    """Return a dense kernel matrix. Raise if its rows are not numbered from 1 in order."""
    import numpy as np
    import scipy.sparse

    if samples.serials is not None:
        wrong = np.flatnonzero(samples.serials != np.arange(1, len(samples.serials) + 1))
        if len(wrong):
            raise ValueError(
                f"{path}: the samples of a precomputed kernel must be numbered in order, 0:1, 0:2, "
                f"and so on; sample {wrong[0] + 1} has 0:{samples.serials[wrong[0]]:g}"
            )
    return replace(samples, X=samples.X.toarray()) if scipy.sparse.issparse(samples.X) else samples


def class_weights(texts: Sequence[str] | None, labels: NDArray[Any] | None) -> Any:
    """Return `class_weight` of an estimator from texts such as ``-1=0.5``, or "balanced"."""
    import numpy as np

    if not texts or texts == ["balanced"]:
        return texts[0] if texts else None
    classes: list[Any] = np.unique(labels).tolist()  # type: ignore[arg-type]
    weights = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            weight = number(value)
        except ValueError:
            weight = -1.0
        if not name or weight < 0:
            raise ValueError(
                f"--class-weight must be balanced, or LABEL=X with a number X >= 0; got {text}"
            )
        matching = [label for label in classes if _same(label, name)]
        if not matching:
            shown = ", ".join(map(str, classes[:8])) + (", ..." if len(classes) > 8 else "")
            raise ValueError(f"--class-weight {text}: there is no class {name}, only {shown}")
        weights[matching[0]] = weight
    return weights


def _same(label: Any, text: str) -> bool:
    """Return whether a text names a label; numbers can be written differently, as +1 and 1."""
    try:
        return bool(label == type(label)(text))
    except ValueError:
        return False


def scaler(options: argparse.Namespace, samples: Samples) -> Any:
    """Return the scaler of --scale, or None. Sparse features stay sparse: they are not centered."""
    if not options.scale:
        return None
    if options.kernel == "precomputed":
        raise ValueError("--scale cannot be used with --kernel precomputed, which has no features")
    if options.libsvm:
        raise ValueError(
            "--scale: LIBSVM's model format cannot keep the scaling; remove --libsvm, or scale the "
            "data with svm-scale"
        )
    import scipy.sparse
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not scipy.sparse.issparse(samples.X))


def write_model(options: argparse.Namespace, model: Any, samples: Samples) -> None:
    """Write a model, with the names of the columns that it was fitted to."""
    import numpy as np

    from .. import svm

    if options.model == DASH and sys.stdout.isatty():
        raise ValueError(
            "will not write a model to a terminal: give a file instead of -, or pipe the output"
        )
    if samples.names is not None:
        first = model[0] if hasattr(model, "steps") else model
        first.feature_names_in_ = np.array(samples.names, object)
    with output(options.model) as file:
        (svm.save_libsvm_model if options.libsvm else svm.save)(model, file)
