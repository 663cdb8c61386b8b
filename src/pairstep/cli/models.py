"""Shared by `train` and `tune`: options of an estimator, training samples, scaling, the model file.

The options have the names of the estimator's parameters in the parsed arguments.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..extras import needed
from .command import DASH, output, require_writable
from .libsvm_options import KERNELS, kernel, svm_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data import Samples

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


def add_estimator(parser: argparse.ArgumentParser, types: Mapping[str, str]) -> None:
    """Add the arguments of an estimator of one of these types, and of the file of its model."""
    add_samples(parser)
    parser.add_argument("model", help="file to write; - for standard output")
    parser.add_argument(
        "-s", "--type", choices=types, type=svm_type, default="svc", metavar="NAME",
        help=f"type of SVM: {', '.join(types)} (default: svc)",
    )  # fmt: skip
    parser.add_argument(
        "-t", "--kernel", choices=KERNELS, type=kernel, metavar="NAME",
        help=f"kernel: {', '.join(KERNELS)} (default: rbf)",
    )  # fmt: skip
    parser.add_argument("-d", "--degree", metavar="N", type=int, help="degree of poly (default: 3)")
    parser.add_argument(
        "-r", "--coef0", metavar="X", type=number,
        help="constant term of poly and sigmoid (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--quantile", metavar="X", type=number, nargs="+",
        help="quantile to fit, between 0 and 1, or several of them",
    )  # fmt: skip
    parser.add_argument(
        "-e", "--tol", metavar="X", type=number,
        help="KKT violation at which to stop (default: 0.001)",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--cache-size", metavar="MB", type=number,
        help="memory for kernel rows (default: 200)",
    )  # fmt: skip
    parser.add_argument(
        "--class-weight", metavar="LABEL=X", type=class_weight, action="append",
        help="multiply C of a class by X, or balanced; can be repeated (also -wLABEL X)",
    )  # fmt: skip
    parser.add_argument(
        "--scale", action="store_true",
        help="standardize features; the model stores the scaling for predict",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", dest="n_jobs", metavar="N", type=int, help="number of threads (default: all)"
    )
    parser.add_argument(
        "--libsvm", action="store_true", help="write LIBSVM's model format instead of pairstep's"
    )


def number(text: str) -> float:
    """Parse a finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def gamma(text: str) -> float | str:
    """Parse a gamma: a number, "scale" or "auto"."""
    return text if text in ("scale", "auto") else number(text)


def class_weight(text: str) -> str | tuple[str, float]:
    """Parse a label and its weight, such as ``-1=0.5``, or "balanced"."""
    label, _, weight = text.rpartition("=")
    if text == "balanced":
        return text
    if not label or number(weight) < 0:
        raise ValueError
    return label, number(weight)


def prepare(options: argparse.Namespace, types: Mapping[str, str]) -> tuple[Any, Samples]:
    """Return the estimator with the parameters that were given, and its training samples."""
    needed("sklearn", by=options.command)
    from .. import svm

    parameters = {kind: getattr(svm, name)._get_param_names() for kind, name in types.items()}
    known = set().union(*parameters.values())
    given = {k: v for k, v in vars(options).items() if k in known and v is not None}
    for name in given:
        if name not in parameters[options.type]:
            option = name.lower().replace("_", "-").removesuffix("s")  # epsilons of a search
            raise ValueError(f"--{option} is not an option of --type {options.type}")
    require_writable(options.model)
    samples = training_samples(options)
    if "class_weight" in given:
        given["class_weight"] = class_weights(given["class_weight"], samples.y)
    if "quantile" in given and len(given["quantile"]) == 1:
        given["quantile"] = given["quantile"][0]
    return getattr(svm, types[options.type])(**given), samples


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
    hint = f"they were taken from column {samples.guessed_label}; name another one with --label"
    if samples.y.dtype.kind == "f" and np.isfinite(samples.y).all():
        raise ValueError(f"{path}: the labels are continuous numbers; {hint}, or use --type svr")
    if len(np.unique(samples.y)) == 1:
        raise ValueError(f"{path}: the number of classes is 1; {hint}")


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


def class_weights(given: Sequence[Any], labels: NDArray[Any] | None) -> Any:
    """Return `class_weight` of an estimator from what `class_weight` has parsed."""
    import numpy as np

    if "balanced" in given:
        return "balanced"
    classes = {str(label): label for label in np.unique(labels).tolist()}  # type: ignore[arg-type]
    weights = {}
    for name, weight in given:
        written = name if name in classes else name.removeprefix("+")
        if written not in classes:
            shown = ", ".join([*classes][:8]) + (", ..." if len(classes) > 8 else "")
            raise ValueError(f"--class-weight {name}: there is no class {name}, only {shown}")
        weights[classes[written]] = weight
    return weights


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


def scaled(scaling: Any, model: Any) -> Any:
    """Return a pipeline of a scaler and a model, or the model if there is no scaler."""
    from sklearn.pipeline import Pipeline

    return model if scaling is None else Pipeline([("scale", scaling), ("svm", model)])


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
