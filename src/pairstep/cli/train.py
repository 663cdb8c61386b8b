"""`pairstep train`: fit an SVM to samples and write it to a file."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from ..extras import needed
from .command import progress, report, require_writable
from .libsvm_options import svm_type
from .models import (
    DATA,
    LIBSVM,
    TYPES,
    add_model,
    add_quantile,
    add_samples,
    class_weights,
    gamma,
    given,
    made,
    number,
    quantile,
    scaler,
    training_samples,
    write_model,
)

EXAMPLES = """\
examples:
  pairstep train data.svm model
  pairstep train data.csv.gz model --label species --c 10 --gamma 0.5 --cv 5 --scale
  pairstep train house.csv model --type svr --epsilon 0.2
  pairstep train house.csv model --type quantilesvr --quantile 0.05 0.5 0.95
  pairstep train -s 0 -t 2 -c 10 -g 0.5 -w1 2 -w-1 1 data.svm model
  zcat data.svm.gz | pairstep train - - --libsvm | svm-predict test.svm /dev/stdin out

"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "train",
        help="fit a support vector machine and write it to a file",
        description="Fit a support vector machine to labeled samples and write it to a file.",
        epilog=EXAMPLES + DATA + LIBSVM,
    )
    add_samples(parser)
    parser.add_argument(
        "-s", "--type", choices=TYPES, type=svm_type, default="svc", metavar="NAME",
        help=f"type of SVM: {', '.join(TYPES)} (default: svc)",
    )  # fmt: skip
    parser.add_argument("-c", "--c", metavar="X", type=number, help="cost of errors (default: 1)")
    parser.add_argument(
        "-g", "--gamma", metavar="X", type=gamma,
        help="gamma of poly, rbf and sigmoid: a number, scale or auto (default: scale)",
    )  # fmt: skip
    parser.add_argument(
        "-n",
        "--nu",
        metavar="X",
        type=number,
        help="nu of nusvc, nusvr and oneclass (default: 0.5)",
    )
    parser.add_argument(
        "-p", "--epsilon", metavar="X", type=number, help="epsilon of svr (default: 0.1)"
    )
    add_quantile(parser, "quantilesvr (default: 0.5)")
    parser.add_argument(
        "--probability", action="store_true", default=None,
        help="also fit class probabilities (also -b 1)",
    )  # fmt: skip
    parser.add_argument(
        "-v", "--cv", metavar="N", type=int, help="also print a score by N-fold cross-validation"
    )
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, cross-validate if requested, and write the model."""
    cross_val_predict = needed("sklearn.model_selection", by="train").cross_val_predict
    from sklearn.pipeline import Pipeline

    from .. import svm
    from .scores import score_line

    parameters = quantile(options) | given(
        options, C="c", gamma="gamma", nu="nu", epsilon="epsilon", probability="probability"
    )
    estimator = made(getattr(svm, TYPES[options.type]), parameters, options)
    require_writable(options.model)
    samples = training_samples(options)
    if options.class_weight:
        estimator.set_params(class_weight=class_weights(options.class_weight, samples.y))
    scaling = scaler(options, samples)
    model = Pipeline([("scale", scaling), ("svm", estimator)]) if scaling else estimator
    # scikit-learn deprecates `probability`, but --probability has requested it.
    warnings.simplefilter("ignore", FutureWarning)
    with progress():
        if options.cv is not None:
            predicted = cross_val_predict(model, samples.X, samples.y, cv=options.cv)
        began = time.perf_counter()
        model.fit(samples.X, samples.y)
        seconds = time.perf_counter() - began
    # Write the model first: printing fails if the reader of the output has exited.
    write_model(options, model, samples)
    if options.cv is not None:
        line = score_line(model, samples.y, predicted)
        report(f"{options.cv}-fold cross-validation: {line}", options.model)
    report(
        f"{len(estimator.support_)} support vectors of {samples.X.shape[0]} samples, KKT violation "
        f"{estimator.optimality_.kkt_violation.max():.2g}, {seconds:.2g} s",
        options.model,
    )
    return 0
