"""`pairstep tune`: search C, gamma and epsilon by cross-validation, and write the best model."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from .command import DASH, progress, report
from .models import DATA, LIBSVM, add_estimator, gamma, number, prepare, scaled, scaler, write_model

SEARCHES = {"svc": "SVCCV", "svr": "SVRCV"}

EXAMPLES = """\
examples:
  pairstep tune data.svm model
  pairstep tune data.csv model --c 0.1 1 10 100 --gamma 0.01 0.1 1 --cv 5 --scale
  pairstep tune house.csv model --type svr --epsilon 0.01 0.1 1
  pairstep tune house.csv model --type svr --quantile 0.9

Scores are written to a checkpoint file, MODEL.checkpoint by default. If the search is interrupted,
run the same command again to continue. The file can be deleted afterwards.

"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tune",
        help="search C and gamma by cross-validation, and write the best model",
        description="Search C, gamma and epsilon by cross-validation, fit the best to all samples\n"
        "and write the model to a file.",
        epilog=EXAMPLES + DATA + LIBSVM,
    )
    add_estimator(parser, SEARCHES)
    several = {"nargs": "+", "metavar": "X"}
    parser.add_argument(
        "-c", "--c", dest="Cs", type=number, **several,
        help="values of C to try (default: 10 values from 0.01 to 1000)",
    )  # fmt: skip
    parser.add_argument(
        "-g", "--gamma", dest="gammas", type=gamma, **several,
        help="values of gamma to try (default: 10 values around that of scale)",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--epsilon", dest="epsilons", type=number, **several,
        help="values of epsilon to try, for svr (default: 0.1)",
    )  # fmt: skip
    parser.add_argument(
        "-v", "--cv", metavar="N", type=int, default=5, help="number of folds (default: 5)"
    )
    parser.add_argument(
        "--seed", dest="random_state", metavar="N", type=int,
        help="shuffle the samples with this seed",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="file of scores (default: MODEL.checkpoint)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search, fit, write."""
    search, samples = prepare(options, SEARCHES)
    scaling = scaler(options, samples)
    if scaling is not None:
        # Scale once, with the means of all samples, so that the folds can share kernel matrices.
        samples = replace(samples, X=scaling.fit_transform(samples.X))
    if search.checkpoint is None and options.model != DASH:
        search.set_params(checkpoint=f"{options.model}.checkpoint")
    with progress():
        search.fit(samples.X, samples.y)
    best = ", ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in search.best_params_.items())  # fmt: skip
    write_model(options, scaled(scaling, search.best_estimator_), samples)
    score = "accuracy" if options.type == "svc" else "R2"
    if options.quantile is not None:
        score = "D2 of the pinball loss"
    tried = len(search.cv_results_["params"])
    report(
        f"best of {tried}: {best}; {options.cv}-fold {score} {search.best_score_:.4f}",
        options.model,
    )
    return 0
