"""Run a rule on a problem and record every iteration."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import SumBox
from ..objectives import Objective
from ..result import History, Progress
from .coordinate_descent import coordinate_descent
from .experiment import Array, Measured

FREE = SumBox(total=0.0, lower=-np.inf, upper=np.inf)


def race(
    objective: Objective,
    constraint: SumBox,
    *,
    optimum: float = 0.0,
    final: Array | None = None,
    repeat: int = 1,
    **options: Any,
) -> Measured:
    """Run a rule with the options of `coordinate_descent`.

    Returns
    -------
    dict
        Suboptimality, interior variables, updated variables and seconds per iteration, and the last
        x. If `final` is given, also how many variables are not yet in their final state in each
        iteration: at the lower bound, at the upper bound or between them.
    """
    counts: list[int] = []

    def watch(progress: Progress) -> None:
        counts.append(differing(progress.x))

    def differing(x: Array) -> int:
        lower, upper = constraint.layout(len(x)).bounds
        return int((((x == lower) != (final == lower)) | ((x == upper) != (final == upper))).sum())

    if final is not None:
        counts.append(differing(options.get("x0", constraint.start(len(final)))))
        options["callback"] = watch
    times = []
    for _ in range(repeat):  # runs are identical to the bit, and the least times count
        result = coordinate_descent(objective, constraint, history=True, **options)
        history = cast(History, result.history)
        times.append(np.diff(history.time, prepend=0.0))
    return {
        "suboptimality": history.value - optimum,
        "interior": history.interior,
        "moved": history.moved,
        "seconds": np.cumsum(np.min(times, axis=0)),
        "x": result.x,
        "not_final": np.array(counts),
    }


def identified_at(not_final: NDArray[np.int64], tolerated: int = 0) -> int:
    """Return the iteration after which at most `tolerated` variables are not final."""
    wrong = np.flatnonzero(not_final > tolerated)
    return int(wrong[-1]) + 1 if len(wrong) else 0
