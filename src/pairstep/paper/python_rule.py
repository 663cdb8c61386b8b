"""Calls a rule that is a Python function, and checks the step that it returns."""

from __future__ import annotations

import math

import numpy as np

from .._validation import Array, numbers_for_message
from ..coordinates import Coordinates, Step
from .rule_task import RuleTask
from .rules.pairs import no_step

# Relative error that counts as rounding in the sum of a step and in its distance to a bound. A
# larger value would let the sums drift; a smaller one would reject rules that add up many
# coordinates.
STEP_ROUNDING = 1e-12


def propose_step(task: RuleTask, gradient: Array, alpha: float) -> Step:
    """Call the rule for each group of coordinates that share a sum; return the best step.

    For groups under one total the rule is also called with all coordinates together. No coordinate
    may then change by more than the sum of its group may, because an exchange between two groups
    changes both sums. So a rule for pairs still finds the best pair. A step of more coordinates may
    exceed the limit of a group's sum. It is then shortened, and its decrease is reduced in
    proportion; the true decrease of a convex model is at least as large.
    """
    layout, every = task.layout, task.coordinates(gradient)
    rule = task.rule.as_function(task.rng, task.n_iter)
    best = no_step()
    for begin, end in zip(layout.starts[:-1], layout.starts[1:], strict=True):
        if end - begin < 2:
            continue
        coordinates = every.some(np.arange(begin, end))
        step = checked(rule(coordinates, alpha), coordinates, task.rule.name)
        if len(step.indices) and (not len(best.indices) or step.decrease > best.decrease):
            best = Step(begin + step.indices, step.delta, step.decrease)
    if not layout.nested:
        return best
    slacks = layout.group_slacks(task.z)
    across = every.capped(slacks[0][layout.group], slacks[1][layout.group])
    step = checked(rule(across, alpha), across, task.rule.name)
    part = min(layout.times(slacks, step.indices, step.delta), 1.0)
    if part == 0 or not len(step.indices):
        return best
    step = Step(step.indices, part * step.delta, part * step.decrease)
    return step if not len(best.indices) or step.decrease > best.decrease else best


def checked(step: object, coordinates: Coordinates, name: str) -> Step:
    """Check that a step is feasible, and return it without entries of 0."""
    if not isinstance(step, Step):
        raise TypeError(f"rule {name} must return a Step, got {step!r}")
    indices, delta = np.asarray(step.indices), np.asarray(step.delta, float)
    n = len(coordinates.left_derivative)
    if indices.ndim != 1 or indices.shape != delta.shape:
        raise ValueError(
            f"rule {name} must return one delta per index, got indices of shape {indices.shape} "
            f"and delta of shape {delta.shape}"
        )
    if not len(indices):
        return no_step()
    if indices.dtype.kind not in "iu":
        raise TypeError(f"rule {name} must return integers as indices, got {indices!r}")
    different, count = np.unique(indices, return_counts=True)
    if not 0 <= different[0] <= different[-1] < n:
        wrong = different[0] if different[0] < 0 else different[-1]
        raise ValueError(f"rule {name} returned index {wrong}, but there are {n} coordinates")
    if count.max() > 1:
        raise ValueError(f"rule {name} returned index {different[np.argmax(count)]} twice")
    if not np.isfinite(delta).all() or math.isnan(step.decrease):
        raise ValueError(f"rule {name} returned a step with NaN or infinite entries: {step!r}")
    size = float(np.abs(delta).sum())
    if abs(math.fsum(delta)) > STEP_ROUNDING * size:
        raise ValueError(
            f"rule {name} must return changes that sum to 0, but they sum to {math.fsum(delta):g} "
            f"(their sizes to {size:g})"
        )
    slack = np.where(
        delta < 0, coordinates.max_decrease[indices], coordinates.max_increase[indices]
    )
    beyond = np.abs(delta) > np.maximum(slack, 0) * (1 + STEP_ROUNDING)
    if beyond.any():
        k = int(np.argmax(beyond))
        change, most = numbers_for_message(delta[k], slack[k])
        raise ValueError(
            f"rule {name} returned a change of {change} at index {indices[k]}, "
            f"which can change by at most {most}"
        )
    moved = delta != 0
    return Step(indices[moved].astype(np.int64), delta[moved], float(step.decrease))
