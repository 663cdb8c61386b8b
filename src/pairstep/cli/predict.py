"""`pairstep predict`: predictions of a model for new samples."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..extras import needed
from .command import DASH, output, report, require_writable
from .machines import DATA, add_samples

if TYPE_CHECKING:
    from ..data import Samples

EXAMPLES = """\
examples:
  pairstep predict test.svm model              predictions to the screen
  pairstep predict test.csv model out.txt      predictions to a file, accuracy to the screen
  pairstep predict test.csv model --probability

The model may be one of LIBSVM's. Where the samples have labels, the accuracy is printed: on stdout,
or on stderr if predictions go to stdout.

"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "predict",
        help="predict with a model, and print how good it is where labels are known",
        description="Predict with a model that pairstep or LIBSVM has written.",
        epilog=EXAMPLES + DATA,
    )
    add_samples(parser)
    parser.add_argument("model", help="file that train, tune or LIBSVM has written")
    parser.add_argument("out", nargs="?", default=DASH, help="a line per sample (-)")
    parser.add_argument(
        "--probability", action="store_true", help="a csv file: class, and each one's probability"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read both, predict, write."""
    if options.data == options.model == DASH:
        raise ValueError("data and model cannot both be read from standard input")
    needed("sklearn", by="predict")
    from ..data.opened import opened
    from .scores import score_line

    require_writable(options.out)
    with opened(options.model) as file:
        content = file.read()
    machine, samples = read(options, content)
    predicted = machine.predict(samples.X)
    lines: Iterable[str] = map(text, predicted.tolist())
    if options.probability:
        if not hasattr(machine, "predict_proba"):
            raise ValueError("the model has no probabilities: train it with --probability")
        rows = zip(predicted.tolist(), *machine.predict_proba(samples.X).T.tolist(), strict=True)
        heading = ["class", *machine.classes_.tolist()]
        lines = (",".join(map(text, row)) for row in (heading, *rows))
    with output(options.out) as out:
        out.writelines(f"{line}\n".encode() for line in lines)
    if samples.y is not None:
        report(score_line(machine, samples.y, predicted), options.out)
    return 0


def read(options: argparse.Namespace, content: bytes) -> tuple[Any, Samples]:
    """The machine, and samples as it takes them."""
    import scipy.sparse

    from .. import svm
    from ..data import read_samples

    ours = content.startswith(b"PK")
    try:
        machine = (svm.load if ours else svm.load_libsvm_model)(io.BytesIO(content))
    except ValueError as error:
        raise ValueError(f"{options.model}: {error}") from error
    samples = read_samples(
        options.data, label=options.label, labelled=None, n_features=machine.n_features_in_,
        names=vars(machine).pop("feature_names_in_", None), zero_based=options.zero_based,
    )  # fmt: skip
    width = samples.X.shape[1]
    if not ours and width > machine.n_features_in_:
        # LIBSVM's files do not say how many features there were.
        machine = svm.load_libsvm_model(io.BytesIO(content), n_features=width)
    if width != machine.n_features_in_:
        raise ValueError(
            f"{options.data} has {width} features, and {options.model} {machine.n_features_in_}"
        )
    if scipy.sparse.issparse(samples.X) and not scipy.sparse.issparse(machine.support_vectors_):
        samples = replace(samples, X=samples.X.toarray())
    return machine, samples


def text(value: Any) -> str:
    """A prediction as it is written."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
