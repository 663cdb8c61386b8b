"""How a running fit tells scikit-learn's callbacks, and the terminal, how far it has come."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import log
from ..result import Status
from .machine import Solution

STEPS = 100  # a fit is that many tasks to its callbacks


@dataclass
class FitProgress:
    """Hears from the engine about twenty times a second; answers whether to go on.

    How far a dual has come is guessed from the digits of its violation that are still to go. Each
    hundredth of the way is a task of the fit, and any callback may end the fit after one.
    """

    estimator: Any
    context: Any
    tol: float
    duals: int
    verbose: bool = False
    told: int = 0
    solved: int = -1
    largest: float = 0.0
    stopped: bool = False
    began: float = field(default_factory=time.perf_counter)

    def __call__(self, violation: float, iterations: int, solved: int) -> bool:
        """Tell what is new; False if a callback wants the fit to end."""
        due = int(STEPS * self._fraction(violation, solved))
        if due > self.told and log.heard(self.verbose):
            log.tell(self._line(violation, iterations, solved), self.verbose)
        while self.told < due and not self.stopped:
            self.told += 1
            task = self.context.subcontext(task_name="percent")
            task.call_on_fit_task_begin(estimator=self.estimator)
            self.stopped = task.call_on_fit_task_end(estimator=self.estimator)
        return not self.stopped

    def summarise(self, solutions: Sequence[Solution], support_vectors: int) -> None:
        """Say how it ended."""
        if not log.heard(self.verbose):
            return
        line = self._line(
            max(solution.kkt_violation for solution in solutions),
            sum(solution.n_iter for solution in solutions),
            sum(solution.status == Status.OPTIMAL for solution in solutions),
        )
        seconds = time.perf_counter() - self.began
        log.tell(f"{line}, {support_vectors} support vectors, {seconds:.2g} s", self.verbose)

    def _line(self, violation: float, iterations: int, solved: int) -> str:
        return (
            f"{solved} of {self.duals} solved, {iterations} iterations, "
            f"KKT violation {violation:.2e} (tol={self.tol:g})"
        )

    def _fraction(self, violation: float, solved: int) -> float:
        if solved != self.solved:
            self.solved, self.largest = solved, 0.0
        # Not the first: asked before a dual's first round, the engine knows no violation yet.
        if math.isfinite(violation):
            self.largest = max(self.largest, violation)
        digits = math.log(max(self.largest / self.tol, 1.0))
        left = math.log(max(violation / self.tol, 1.0))
        part = max(1 - left / digits, 0.0) if 0 < digits < math.inf else 0.0
        return min((solved + part) / self.duals, 1.0)
