"""The task of coordinate descent by a rule: a problem with a rule and a step length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _core
from .._validation import Array
from ..coordinates import Coordinates, coordinates_at
from ..kept import kept
from ..solve.task import Task
from .rules import Rule
from .steps import StepPlan


@dataclass(kw_only=True)
class RuleTask(Task):
    """A `Task` with a rule, a step length and, for random rules, a generator."""

    rule: Rule
    plan: StepPlan
    rng: np.random.Generator | None

    @property
    def patience(self) -> int:
        """Number of iterations without progress after which a solver gives up.

        A random or cyclic rule needs many iterations to hit a pair that makes progress, and more if
        the probabilities are unequal: 20 n^2 is 40 times the number of pairs.
        """
        n, odds = self.layout.n, 1.0
        if self.rule.guided:
            return _core.NumericalPolicy.patience(n)
        if self.rule.weighted and self.plan.lipschitz is not None:
            odds = min(float(self.plan.lipschitz.mean() / self.plan.lipschitz.min()), 1000.0)
        return 1000 + int(20 * odds * n**2)

    def coordinates(self, gradient: Array) -> Coordinates:
        """Return the coordinates as a rule sees them."""
        layout, l1_terms = self.layout, self.objective.l1_terms
        return coordinates_at(
            gradient, self.z, layout.lower, layout.upper, l1_terms, self.plan.lipschitz
        )

    @kept
    def choice(self) -> _core.Choice:
        """The native options of the rule."""
        return self.choice_with(self.plan.alpha)

    def choice_with(self, alpha: float) -> _core.Choice:
        """Return the native options of the rule with another step size."""
        return self.rule.choice(alpha, self.plan.lipschitz, self.rng)
