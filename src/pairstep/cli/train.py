"""`pairstep train`: fit an SVM to samples and write it to a file."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from .command import progress, report
from .models import DATA, LIBSVM, add_estimator, gamma, number, prepare, scaled, scaler, write_model

TYPES = {
    "svc": "SVC", "nusvc": "NuSVC", "oneclass": "OneClassSVM", "svr": "SVR", "nusvr": "NuSVR",
    "quantilesvr": "QuantileSVR",
}  # fmt: skip

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
    add_estimator(parser, TYPES)
    parser.add_argument(
        "-c", "--c", dest="C", metavar="X", type=number, help="cost of errors (default: 1)"
    )
    parser.add_argument(
        "-g", "--gamma", metavar="X", type=gamma,
        help="gamma of poly, rbf and sigmoid: a number, scale or auto (default: scale)",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--nu", metavar="X", type=number,
        help="nu of nusvc, nusvr and oneclass (default: 0.5)",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--epsilon", metavar="X", type=number, help="epsilon of svr (default: 0.1)"
    )
    parser.add_argument(
        "--probability", action="store_true", default=None,
        help="also fit class probabilities (also -b 1)",
    )  # fmt: skip
    parser.add_argument(
        "-v", "--cv", metavar="N", type=int, help="also print a score by N-fold cross-validation"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, cross-validate if requested, and write the model."""
    estimator, samples = prepare(options, TYPES)
    from sklearn.model_selection import cross_val_predict

    from .scores import score_line

    model = scaled(scaler(options, samples), estimator)
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
