"""Run a rule on a problem and record every iteration."""

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
    """A problem, and the settings with which a rule runs on it."""

    objective: Objective
    constraint: SumBox
    rule: str
    step: str
    max_iter: int
    tol: float = 0.0
    seed: int = 0

    def run(self, optimum: float, repeat: int = 1) -> Measured:
        """Return suboptimality, interior variables, updated variables and seconds per iteration.

        Runs are identical to the bit, so a run can be repeated to remove noise from the times: the
        least time of each iteration counts. After one second in total, there are no more repeats.
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

    def not_final(self, final: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return how many variables are not yet in their final state, per iteration.

        The state of a variable is at its lower bound, at its upper bound, or between them. The
        iterations are the same as in `run`; a callback counts.
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


def identified_at(not_final: NDArray[np.int64], tolerated: int = 0) -> int:
    """Return the iteration after which at most `tolerated` variables are not final."""
    wrong = np.flatnonzero(not_final > tolerated)
    return int(wrong[-1]) + 1 if len(wrong) else 0
