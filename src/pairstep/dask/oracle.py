"""The block gear's questions, answered by shares: each of its own rows, merged by the coordinator.

A round is one message to all shares: who has moved, with the rows that they have not been sent
before; the answer brings the survey for the next round, with rows that the coordinator lacks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.machine import Dual
from .cluster import Line
from .matrix import ClusterMatrix
from .share import Answer, Calls

# Below this share of active accounts it pays to go on without the others.
WORTH_SHRINKING = 0.7

USUAL = 256  # accounts of a side that the gear mostly asks for


class ClusterOracle:
    """Answers for one dual, which begins where its z is."""

    def __init__(
        self, matrix: ClusterMatrix, dual: Dual, *, tol: float, cache_bytes: int, threads: int,
        single: bool,
    ):  # fmt: skip
        self.matrix, self.shares, self.dual = matrix, matrix.shares, dual
        self.tol, self.cache_bytes, self.threads, self.single = tol, cache_bytes, threads, single
        self.accounts = [
            np.flatnonzero((dual.rows >= line.begin) & (dual.rows < line.end))
            for line in self.shares.lines
        ]
        self.mover = np.full(len(dual.z), -1, np.int64)  # the number of an account that has moved
        self.movers = np.zeros(0, np.int64)  # accounts in the order of these numbers
        self.levels: list[Array] = []  # the prices at which the problem was shrunk
        self.sizes = [len(dual.z)]  # of the levels
        self.count, self.with_free = USUAL, False
        self.found: tuple[Indices, Array] | None = None  # what the last survey has found
        self.verified: Calls = []  # what has a share verify its prices as all of them have
        matrix.oracle = self
        moves = self._moves(np.flatnonzero(dual.z))
        norms = self.shares.ask(
            [[self._begin(line), *moves, ("norms",)] for line in self.shares.lines],
            again=[("norms",)],
        )
        largest = max(answer[-1][0] for answer in norms)
        usual = sum(answer[-1][1] for answer in norms) / len(dual.z)
        # Of one kernel value: at most, and between points of the usual size, for outliers are few.
        self.rounding, self.usual_rounding = (
            self._rounding(square) if single else 0.0 for square in (largest, usual)
        )

    def _rounding(self, square: float) -> float:
        error = _core.float32_rounding(self.matrix.kernel.native, square)
        return math.inf if error is None else error

    def _begin(self, line: Line) -> tuple[Any, ...]:
        own, dual = self.accounts[line.number], self.dual
        return (
            "begin", own, dual.rows[own] - line.begin, dual.linear[own], dual.lower[own],
            dual.upper[own], None if dual.kink is None else dual.kink[own],
            np.searchsorted(own, dual.starts).astype(np.int64), len(dual.z), self.cache_bytes,
            self.single,
        )  # fmt: skip

    def restoring(self, line: Line) -> Calls:
        """What a new owner of a share has to be told: the dual, who has moved, what is left out."""
        slots = self.matrix.slots[self.dual.rows[self.movers]]
        return [
            self._begin(line),
            ("introduce", self.movers, slots),
            self._advance(self.movers),
            *(("shrink", markets) for markets in self.levels),
        ]

    def _moves(self, moved: Indices) -> Calls:
        """How shares are told of accounts that have moved."""
        new = moved[self.mover[moved] < 0]
        calls, slots = self.matrix.store(self.dual.rows[new])
        if len(new):
            self.mover[new] = len(self.movers) + np.arange(len(new))
            self.movers = np.concatenate([self.movers, new])
            calls.append(("introduce", new, slots))
        return [*calls, self._advance(moved)]

    def _advance(self, moved: Indices) -> tuple[Any, ...]:
        dual = self.dual
        x = dual.z[moved]
        free = (x > dual.lower[moved]) & (x < dual.upper[moved])
        if dual.kink is not None:
            free &= x != 0
        return "advance", self.mover[moved], x, free

    def _survey(self) -> tuple[Any, ...]:
        # Rows are shared out as they came: each share has its part of those furthest out.
        count = self.count
        if len(self.shares.lines) > 2:
            count = min(count, 2 * count // len(self.shares.lines) + 16)
        return "survey", count, self.with_free

    def _ask_and_survey(self, calls: Calls, again: Calls) -> list[Answer]:
        """Ask the shares, and in the same round what the next survey will be about."""
        survey = self._survey()
        answers = self.shares.ask_all([*calls, survey], again=[*again, survey])
        accounts, gradient = [], []
        for line, answer in zip(self.shares.lines, answers, strict=True):
            *_, (some, their_gradient, rows, features) = answer
            accounts.append(some)
            gradient.append(their_gradient)
            self.matrix.learn(rows + line.begin, features)
        self.found = np.concatenate(accounts), np.concatenate(gradient)
        return answers

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, float, float]:
        """Merge what the shares find; mostly it came with the last answer."""
        if count > self.count or (with_free and not self.with_free):
            self.found = None
            self.count, self.with_free = max(self.count, count), with_free
        if self.found is None:
            self._ask_and_survey([], [])
        assert self.found is not None
        # Errors of kernel values are independent enough to add up as squares.
        z = self.dual.z[self.movers]
        noise = self.usual_rounding * math.sqrt(float((z * z).sum()))
        return *self.found, 1.0, noise

    def fill_block(self, members: Indices, out: Array) -> None:
        """Compute the block here: the rows of members have come with the survey."""
        self.count = max(USUAL, len(members) // 8)
        exact = self.with_free or not self.single
        self.matrix.fill_block(self.dual.rows[members], exact, self.threads, out)

    def advance(self, moved: Indices, delta: Array) -> None:
        """Tell all shares."""
        self.verified = []
        self._ask_and_survey(self._moves(moved), [])

    def verify(self) -> None:
        """Have prices computed anew that are close to being the dearest or the cheapest anywhere.

        Closer than eight times the largest error that was found on the way or that one support
        vector alone could make (all of them if need be).
        """
        heaviest = float(np.abs(self.dual.z).max(initial=0.0))
        margin, error, anew = max(self.tol, 8 * heaviest * self.rounding), 0.0, True
        markets = self._markets(self.shares.ask_all([("markets",)]), 0)
        while True:
            # A share that was restored has verified nothing yet.
            self.verified = [("verify", markets, margin, True)]
            calls: Calls = [("verify", markets, margin, anew), ("markets",)]
            answers = self._ask_and_survey(calls, [*self.verified, ("markets",)])
            markets = self._markets(answers, 1)
            error = max(error, *(answer[0][1] for answer in answers))
            if sum(answer[0][0] for answer in answers) == 0 and margin >= 8 * error:
                return
            margin, anew = max(margin, 8 * error), False

    def _markets(self, answers: list[Answer], place: int) -> Array:
        """The dearest and the cheapest price of each group, of all shares."""
        each = np.stack([answer[place] for answer in answers])
        return np.stack([each[:, :, 0].max(axis=0), each[:, :, 1].min(axis=0)], axis=1)

    def shrink(self, markets: Array) -> int:
        """Go on with who can trade at these prices, where that leaves out enough."""
        left = sum(answer[0] for answer in self.shares.ask_all([("active", markets)]))
        if left < 2 or left > WORTH_SHRINKING * self.sizes[-1]:
            return 0
        self.levels.append(markets)
        self.sizes.append(left)
        self._ask_and_survey([("shrink", markets)], [])
        return int(left)

    def unshrink(self) -> None:
        """Take the last shrinking back."""
        self.levels.pop()
        self.sizes.pop()
        self._ask_and_survey([("unshrink",)], [])

    def gradient(self) -> Array:
        """Of all accounts."""
        whole = np.empty(len(self.dual.z))
        answers = self.shares.ask_all([("gradient",)], again=[*self.verified, ("gradient",)])
        for own, answer in zip(self.accounts, answers, strict=True):
            whole[own] = answer[-1]
        return whole
