"""A rule that is a Python function: what it sees, and whether its answer is a move."""

from __future__ import annotations

import math

import numpy as np

from .._validation import Array
from ..rules import Accounts, Move
from ..rules.accounts import accounts_at, no_move
from .task import Task

SLACK = 1e-12  # of rounding, relative to what is moved


def ask(task: Task, gradient: Array, alpha: float) -> Move:
    """Ask about each group of coordinates that share a sum; the best answer counts.

    Groups under one total are asked about together as well, with no room for an account beyond
    that of its group's sum: the elementary exchanges of a tree of sums are those of two accounts
    within a group or across two, and two that happen to be of one group may trade that far too.
    So a rule for pairs still finds its best pair. A move of more accounts may use up a group's
    room several times: it is shortened to what the group has, at least in proportion to its gain.
    """
    layout, constants = task.layout, task.plan.lipschitz
    every = accounts_at(
        gradient, task.z, layout.lower, layout.upper, task.objective.kinks, constants
    )
    rule = task.rule.asked(task.rng, task.n_iter)
    best = no_move()
    for begin, end in zip(layout.starts[:-1], layout.starts[1:], strict=True):
        if end - begin < 2:
            continue
        accounts = every.some(np.arange(begin, end))
        move = checked(rule(accounts, alpha), accounts, task.rule.name)
        if len(move.indices) and (not len(best.indices) or move.decrease > best.decrease):
            best = Move(begin + move.indices, move.delta, move.decrease)
    if not layout.nested:
        return best
    rooms = layout.group_rooms(task.z)
    across = every.capped(rooms[0][layout.group], rooms[1][layout.group])
    move = checked(rule(across, alpha), across, task.rule.name)
    part = min(layout.times(rooms, move.indices, move.delta), 1.0)
    if part == 0 or not len(move.indices):
        return best
    move = Move(move.indices, part * move.delta, part * move.decrease)
    return move if not len(best.indices) or move.decrease > best.decrease else best


def checked(move: object, accounts: Accounts, name: str) -> Move:
    """`move` without changes of 0, if it can be made."""
    if not isinstance(move, Move):
        raise TypeError(f"rule {name} must return a Move, got {move!r}")
    indices, delta = np.asarray(move.indices), np.asarray(move.delta, float)
    n = len(accounts.down_price)
    if indices.ndim != 1 or indices.shape != delta.shape:
        raise ValueError(
            f"rule {name} must return one delta per index, got indices of shape {indices.shape} "
            f"and delta of shape {delta.shape}"
        )
    if not len(indices):
        return no_move()
    if indices.dtype.kind not in "iu":
        raise TypeError(f"rule {name} must return whole numbers as indices, got {indices!r}")
    different, count = np.unique(indices, return_counts=True)
    if not 0 <= different[0] <= different[-1] < n:
        wrong = different[0] if different[0] < 0 else different[-1]
        raise ValueError(f"rule {name} returned index {wrong}, but there are {n} accounts")
    if count.max() > 1:
        raise ValueError(f"rule {name} returned index {different[np.argmax(count)]} twice")
    if not np.isfinite(delta).all() or math.isnan(move.decrease):
        raise ValueError(f"rule {name} returned a move that is not finite: {move!r}")
    size = float(np.abs(delta).sum())
    if abs(math.fsum(delta)) > SLACK * size:
        raise ValueError(
            f"rule {name} must return changes that sum to 0, but they sum to {math.fsum(delta):g} "
            f"(their sizes to {size:g})"
        )
    room = np.where(delta < 0, accounts.down_room[indices], accounts.up_room[indices])
    beyond = np.abs(delta) > np.maximum(room, 0) * (1 + SLACK)
    if beyond.any():
        k = int(np.argmax(beyond))
        raise ValueError(
            f"rule {name} returned a change of {delta[k]:g} at index {indices[k]}, "
            f"which has room for {room[k]:g}"
        )
    moved = delta != 0
    return Move(indices[moved].astype(np.int64), delta[moved], float(move.decrease))
