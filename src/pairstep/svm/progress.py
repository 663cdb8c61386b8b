"""Progress of a running fit, for scikit-learn's callbacks and the terminal."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from .. import log
from ..result import Status
from .engine import Solutions

STEPS = 100  # tasks that callbacks see in a fit: one per percent


@dataclass
class FitProgress:
    """Progress of a fit. The solver calls it 20 times a second, and stops if it returns False.

    The progress of a dual is estimated from the number of digits by which its violation still
    exceeds `tol`. Each percent is a task of the fit, after which any callback may stop the fit.
    """

    estimator: Any
    context: Any
    tol: float
    duals: int
    verbose: bool = False
    reported: int = 0
    solved: int = -1
    largest: float = 0.0
    stopped: bool = False
    began: float = field(default_factory=time.perf_counter)

    def __call__(self, violation: float, iterations: int, solved: int) -> bool:
        """Report progress, and return False if a callback wants the fit to stop."""
        due = int(STEPS * self._fraction(violation, solved))
        if due > self.reported and log.is_enabled(self.verbose):
            log.write(self._line(violation, iterations, solved), self.verbose)
        while self.reported < due and not self.stopped:
            self.reported += 1
            task = self.context.subcontext(task_name="percent")
            task.call_on_fit_task_begin(estimator=self.estimator)
            self.stopped = task.call_on_fit_task_end(estimator=self.estimator)
        return not self.stopped

    def summarize(self, solutions: Solutions, support_vectors: int) -> None:
        """Print the result of the fit."""
        if not log.is_enabled(self.verbose):
            return
        line = self._line(
            float(solutions.kkt_violation.max()),
            int(solutions.n_iter.sum()),
            solutions.status.count(Status.OPTIMAL),
        )
        seconds = time.perf_counter() - self.began
        log.write(f"{line}, {support_vectors} support vectors, {seconds:.2g} s", self.verbose)

    def _line(self, violation: float, iterations: int, solved: int) -> str:
        return (
            f"{solved} of {self.duals} solved, {iterations} iterations, "
            f"KKT violation {violation:.2e} (tol={self.tol:g})"
        )

    def _fraction(self, violation: float, solved: int) -> float:
        if solved != self.solved:
            self.solved, self.largest = solved, 0.0
        # The solver does not know the violation of a dual before its first round.
        if math.isfinite(violation):
            self.largest = max(self.largest, violation)
        digits = math.log(max(self.largest / self.tol, 1.0))
        left = math.log(max(violation / self.tol, 1.0))
        part = max(1 - left / digits, 0.0) if 0 < digits < math.inf else 0.0
        return min((solved + part) / self.duals, 1.0)
