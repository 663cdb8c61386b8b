"""`pairstep predict`: predict new samples with a model from a file."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..extras import needed
from .command import DASH, output, report, require_writable
from .models import DATA, add_samples

if TYPE_CHECKING:
    from ..data import Samples

EXAMPLES = """\
examples:
  pairstep predict test.svm model              predictions to stdout
  pairstep predict test.csv model out.txt      predictions to a file, accuracy to stdout
  pairstep predict test.csv model --probability

The model can also be one that LIBSVM has written. If the samples have labels, the accuracy is
printed to stdout, or to stderr if the predictions go to stdout.

"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "predict",
        help="predict with a model, and print its accuracy if labels are known",
        description="Predict with a model that pairstep or LIBSVM has written.",
        epilog=EXAMPLES + DATA,
    )
    add_samples(parser)
    parser.add_argument("model", help="file that train, tune or LIBSVM has written")
    parser.add_argument(
        "out",
        nargs="?",
        default=DASH,
        help="file for the predictions, one line per sample (default: -, standard output)",
    )
    parser.add_argument(
        "--probability", action="store_true",
        help="write csv: the predicted class and the probability of each class (also -b 1)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read model and samples, predict, write."""
    if options.data == options.model == DASH:
        raise ValueError("data and model cannot both be read from standard input")
    needed("sklearn", by="predict")
    import numpy as np

    from .scores import quantile_of, score_line

    require_writable(options.out)
    from_stdin = options.model == DASH
    content = sys.stdin.buffer.read() if from_stdin else Path(options.model).read_bytes()
    model, samples = read(options, content)
    predicted = model.predict(samples.X)
    columns = np.atleast_2d(predicted.T).tolist()
    header = quantile_of(model) if predicted.ndim == 2 else None
    if options.probability:
        if not hasattr(model, "predict_proba"):
            raise ValueError("the model has no probabilities: train it with --probability")
        columns += model.predict_proba(samples.X).T.tolist()
        header = ["class", *model.classes_.tolist()]
    rows = zip(*columns, strict=True)
    with output(options.out) as out:
        for row in rows if header is None else (header, *rows):
            out.write(f"{','.join(map(text, row))}\n".encode())
    if samples.y is not None:
        report(score_line(model, samples.y, predicted), options.out)
    return 0


def read(options: argparse.Namespace, content: bytes) -> tuple[Any, Samples]:
    """Return the model, and the samples in the form that it takes."""
    import scipy.sparse

    from .. import svm
    from ..data import read_samples

    in_our_format = content.startswith(b"PK")
    try:
        model = (svm.load if in_our_format else svm.load_libsvm_model)(io.BytesIO(content))
    except ValueError as error:
        raise ValueError(f"{options.model}: {error}") from error
    first, estimator = (model[0], model[-1]) if hasattr(model, "steps") else (model, model)
    samples = read_samples(
        options.data, label=options.label, n_features=model.n_features_in_,
        names=vars(first).pop("feature_names_in_", None), zero_based=options.zero_based,
        precomputed=estimator.kernel == "precomputed",
    )  # fmt: skip
    width = samples.X.shape[1]
    if not in_our_format and width > model.n_features_in_:
        # LIBSVM's files do not store the number of features.
        model = estimator = svm.load_libsvm_model(io.BytesIO(content), n_features=width)
    if width != model.n_features_in_:
        raise ValueError(
            f"{options.data} has {width} features, but {options.model} was trained with "
            f"{model.n_features_in_}"
        )
    if scipy.sparse.issparse(samples.X) and not scipy.sparse.issparse(estimator.support_vectors_):
        samples = replace(samples, X=samples.X.toarray())
    return model, samples


def text(value: Any) -> str:
    """Return a prediction as text."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
