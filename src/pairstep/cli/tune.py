"""`pairstep tune`: search C, gamma and epsilon by cross-validation, and keep the best machine."""

from __future__ import annotations

import argparse
from typing import Any

from .command import DASH, progress, report, require_writable
from .machines import (
    DATA,
    add_machine,
    add_samples,
    gamma,
    given,
    made,
    number,
    training_samples,
    write_model,
)

SEARCHES = {"svc": "SVCCV", "svr": "SVRCV"}

EXAMPLES = """\
examples:
  pairstep tune data.svm model
  pairstep tune data.csv model --c 0.1 1 10 100 --gamma 0.01 0.1 1 --cv 5
  pairstep tune house.csv model --type svr --epsilon 0.01 0.1 1

Scores are kept in a journal, MODEL.journal unless said otherwise: the same command, killed and run
again, continues. Remove it when it is not needed any more.

"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "tune",
        help="search C and gamma by cross-validation, and keep the best machine",
        description="Search C, gamma and epsilon by cross-validation, fit the best to all samples\n"
        "and keep it in a file.",
        epilog=EXAMPLES + DATA,
    )
    add_samples(parser)
    parser.add_argument("--type", choices=SEARCHES, default="svc", help="default: svc")
    several = {"nargs": "+", "metavar": "X"}
    parser.add_argument("--c", type=number, **several, help="values to try (10, 0.01 to 1000)")
    parser.add_argument("--gamma", type=gamma, **several, help="values to try (10, about scale)")
    parser.add_argument("--epsilon", type=number, **several, help="of svr: values to try (0.1)")
    parser.add_argument("--cv", metavar="N", type=int, default=5, help="folds (5)")
    parser.add_argument("--seed", metavar="N", type=int, help="shuffle samples before folding")
    parser.add_argument(
        "--halving", action="store_true", default=None,
        help="all candidates on a ninth of the samples, the best on more",
    )  # fmt: skip
    parser.add_argument("--journal", metavar="FILE", help="default: MODEL.journal")
    add_machine(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search, fit, write."""
    from .. import __version__, svm
    from ..svm.journal import Journal, fingerprint

    parameters = given(
        options,
        Cs="c",
        gammas="gamma",
        epsilons="epsilon",
        cv="cv",
        halving="halving",
        random_state="seed",
    )
    search = made(getattr(svm, SEARCHES[options.type]), parameters, options.type)
    require_writable(options.model)
    samples = training_samples(options, supervised=True)
    path = options.journal
    if path is None and options.model != DASH:
        path = f"{options.model}.journal"
    if path is not None:
        # All that scores depend on but the candidates, which the journal's lines name.
        decisive = {k: v for k, v in parameters.items() if k not in ("Cs", "gammas", "epsilons")}
        decisive.pop("n_jobs", None)
        about = fingerprint(samples.X, samples.y, options.type, decisive, __version__)
        search.journal = Journal(path, about)
    with progress():
        search.fit(samples.X, samples.y)
    best = ", ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in search.best_params_.items())  # fmt: skip
    tried = len({tuple(some.items()) for some in search.cv_results_["params"]})
    write_model(options, search.best_estimator_, samples)
    word = "accuracy" if options.type == "svc" else "R2"
    report(
        f"best of {tried}: {best}; {options.cv}-fold {word} {search.best_score_:.4f}",
        options.model,
    )
    return 0
