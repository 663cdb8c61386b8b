"""Races: a rule runs on a problem, and what happens in each iteration is written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .. import SumBox, minimize
from ..objectives import Objective
from ..result import History, Progress
from .parts import Measured


@dataclass(frozen=True)
class Race:
    """A problem and how a rule is to run on it."""

    objective: Objective
    constraint: SumBox
    rule: str
    step: str
    max_iter: int
    tol: float = 0.0
    seed: int = 0

    def run(self, optimum: float, repeat: int = 1) -> Measured:
        """Suboptimality, interior variables, variables moved and seconds, per iteration.

        Runs are alike to the bit, so to take the noise of the machine out of the seconds a run may
        be repeated: of each iteration the least time counts. No run begins after a second.
        """
        took: list[NDArray[np.float64]] = []
        while len(took) < repeat and sum(float(t.sum()) for t in took) < 1:
            result = minimize(
                self.objective, self.constraint, rule=self.rule, step=self.step,
                max_iter=self.max_iter, tol=self.tol, seed=self.seed, history=True,
            )  # fmt: skip
            assert result.history is not None
            took.append(np.diff(result.history.time, prepend=0.0))
        history = cast(History, result.history)
        return {
            "suboptimality": history.value - optimum,
            "interior": history.interior,
            "moved": history.moved,
            "seconds": np.cumsum(np.min(took, axis=0)),
            "x": result.x,
            "converged": np.array(str(result.status) == "optimal"),
        }

    def unsettled(self, final: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many variables are not yet as in the final active set, per iteration.

        A variable is at its lower bound, at its upper bound, or between them. The run is the same
        as in `run`, only watched from a callback.
        """
        layout = self.constraint.layout(len(final))
        lower, upper = layout.bounds
        at_lower, at_upper = final == lower, final == upper
        start = self.constraint.start(len(final))
        counts = [int((((start == lower) != at_lower) | ((start == upper) != at_upper)).sum())]

        def watch(progress: Progress) -> bool:
            x = progress.x
            differs = ((x == lower) != at_lower) | ((x == upper) != at_upper)
            counts.append(int(np.count_nonzero(differs)))
            return False

        minimize(
            self.objective, self.constraint, rule=self.rule, step=self.step,
            max_iter=self.max_iter, tol=self.tol, seed=self.seed, callback=watch,
        )  # fmt: skip
        return np.array(counts)


def identified_at(unsettled: NDArray[np.int64], tolerated: int = 0) -> int:
    """Find the iteration from which on the active set is the final one, but for a few variables."""
    wrong = np.flatnonzero(unsettled > tolerated)
    return int(wrong[-1]) + 1 if len(wrong) else 0
