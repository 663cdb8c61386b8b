"""`pairstep train`: fit a machine to samples and keep it in a file."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from ..extras import needed
from .command import progress, report, require_writable
from .machines import (
    DATA,
    TYPES,
    add_machine,
    add_samples,
    gamma,
    given,
    made,
    number,
    training_samples,
    write_model,
)

EXAMPLES = """\
examples:
  pairstep train data.svm model
  pairstep train data.csv.gz model --label species --c 10 --gamma 0.5 --cv 5
  pairstep train house.csv model --type svr --epsilon 0.2
  zcat data.svm.gz | pairstep train - - --libsvm | svm-predict test.svm /dev/stdin out

"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "train",
        help="fit a support vector machine and keep it in a file",
        description="Fit a support vector machine to labelled samples and keep it in a file.",
        epilog=EXAMPLES + DATA,
    )
    add_samples(parser)
    parser.add_argument("--type", choices=TYPES, default="svc", help="default: svc")
    parser.add_argument("--c", metavar="X", type=number, help="cost of errors (1)")
    parser.add_argument("--gamma", metavar="X", type=gamma, help="scale, auto or a number (scale)")
    parser.add_argument("--nu", metavar="X", type=number, help="of nusvc, nusvr, oneclass (0.5)")
    parser.add_argument("--epsilon", metavar="X", type=number, help="of svr (0.1)")
    parser.add_argument(
        "--probability", action="store_true", default=None, help="learn probabilities of classes"
    )
    parser.add_argument("--cv", metavar="N", type=int, help="also cross-validate in N folds")
    add_machine(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, perhaps cross-validate, write."""
    cross_val_predict = needed("sklearn.model_selection", by="train").cross_val_predict
    from .. import svm
    from .scores import score_line

    Machine = getattr(svm, TYPES[options.type])
    parameters = given(
        options, C="c", gamma="gamma", nu="nu", epsilon="epsilon", probability="probability"
    )
    machine = made(Machine, parameters, options.type)
    require_writable(options.model)
    samples = training_samples(options, supervised=options.type != "oneclass")
    warnings.simplefilter("ignore", FutureWarning)  # of probabilities, which were asked for
    with progress():
        if options.cv is not None:
            predicted = cross_val_predict(machine, samples.X, samples.y, cv=options.cv)
        began = time.perf_counter()
        machine.fit(samples.X, samples.y)
        seconds = time.perf_counter() - began
    if options.cv is not None:
        line = score_line(machine, samples.y, predicted)
        report(f"{options.cv}-fold cross-validation: {line}", options.model)
    write_model(options, machine, samples)
    report(
        f"{len(machine.support_)} support vectors of {samples.X.shape[0]} samples, KKT violation "
        f"{machine.optimality_.kkt_violation.max():.2g}, {seconds:.2g} s",
        options.model,
    )
    return 0
