"""Repairs of the duals of a model after a change of its samples.

Variables of removed samples become 0, others take over their part of the sums, and new samples
start at 0. The kernel rows of these variables update the gradient. If the optimality conditions
still hold, as after the removal of a sample that is not a support vector, that is all.

Otherwise the dual is solved for the free variables and those that violate the conditions most,
until all variables satisfy them. These are the working sets of a block solver, but nothing depends
on the number of samples except the kernel rows of the variables that change, and these are kept for
the next update. If that takes too long, the block solver continues from this point.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import Array
from ..constraints import Indices
from ..result import Status
from .duals import continue_from
from .engine import (
    Dual,
    Duals,
    Kernel,
    decide,
    solve,
)
from .sample_kernel import SampleKernel, extremes, one_sided_derivatives
from .training_data import SolvedDual, TrainingData

# The gradient is recomputed when the rounding errors of earlier updates may have reached this
# fraction of the tolerance. A larger one would leave less of the tolerance to the solver; a smaller
# one would compute it more often than needed.
MAX_DRIFT = 1.0 / 16

# A dual with fewer variables is repaired by a solve of all of them, which takes about as long as
# the set-up of a solve for some.
MIN_VARIABLES_TO_RESTRICT = 1000
# Variables that a repair solves for at most. With more, the copy of their kernel values and the
# steps on them take longer than a solve of all variables.
MAX_RESTRICTED_VARIABLES = 2500
# Variables of each group that join the free ones in a round of a repair. Most of them are close to
# a violation, and remain so from update to update. With fewer, more rounds would be needed, because
# the steps of a round make others violate the conditions; more would take more kernel rows.
MAX_JOINING = 96
# Rounds of a repair. Most take two or three.
MAX_ROUNDS = 20
# Fractions of the tolerance to which a round solves, and at which the repair is complete. The rest
# is for the variables that a round leaves out, and for rounding errors.
TARGET_OF_ROUND = 0.7
TARGET_OF_REPAIR = 0.95


def joining_variables(
    dual: Dual, gradient: Array, members: Indices, multiplier: Sequence[float], allowed: float
) -> Indices | None:
    """Return variables that a repair solves for in addition to its members.

    These are the free variables, and in each group those with the largest violations, or closest to
    a violation, relative to the last multipliers. A new sample may violate the conditions so much
    that the middle of the extreme derivatives is far from the multiplier. The result is None if the
    violation is allowed.
    """
    left, right = one_sided_derivatives(dual, gradient)
    is_in = (dual.lower < dual.z) & (dual.z < dual.upper)
    if dual.l1 is not None:
        is_in &= dual.z != 0
    worst = 0.0
    for group, middle in zip(dual.groups, multiplier, strict=True):
        if group.start == group.stop:
            continue
        most, least = left[group].max(), right[group].min()
        if not (np.isfinite(most) and np.isfinite(least)):
            continue  # all variables of the group are at the same bound
        worst = max(worst, most - least)
        violation = np.maximum(left[group] - middle, middle - right[group])
        violation[is_in[group]] = -np.inf
        first, last = np.searchsorted(members, [group.start, group.stop])
        violation[members[first:last] - group.start] = -np.inf
        some: Any = slice(None)
        if len(violation) > MAX_JOINING:
            some = np.argpartition(violation, -MAX_JOINING)[-MAX_JOINING:]
        is_in[group][some] = True
    return None if worst <= allowed else np.flatnonzero(is_in)


class Repair:
    """Repairs the duals of a model after a change of the samples."""

    def __init__(
        self, model: Any, kernel: SampleKernel, training: TrainingData, kept: Indices, X_new: Any
    ):
        self.model, self.kernel, self.plan, self.before = model, kernel, kernel.plan, training
        assert training.samples is not None
        self.before_slots = training.samples.slots
        self.place = np.full(len(self.before_slots), -1)
        self.place[kept] = np.arange(len(kept))
        self.first_new, self.X_new = len(kept), X_new
        self.ends = time.perf_counter() + self.plan.time_limit()

    def run(self, old: SolvedDual, dual: Dual) -> SolvedDual:
        """Return a new dual at its solution, from the old one."""
        before = old.dual
        rows = self.place[before.rows]
        stays = rows >= 0
        kernel = self.kernel
        # Parameters may have changed since the last update: a smaller `tol` needs a more precise
        # gradient. Errors of kernel values are nearly independent, so their squares add up.
        is_precise = kernel.rounding * np.sqrt(old.moved) <= MAX_DRIFT * kernel.tol
        if (
            np.array_equal(rows, dual.rows)
            and np.array_equal(dual.upper, before.upper)
            and np.array_equal(dual.totals, before.totals)
            and is_precise
            and old.verified is not None
            and old.solution.kkt_violation <= kernel.tol
            and old.solution.error <= MAX_DRIFT * kernel.tol
        ):
            dual.z, dual.gradient = before.z, before.gradient
            return replace(old, dual=dual)
        verified = self._start(old, dual, rows, stays)
        assert dual.gradient is not None
        is_precise &= old.solution.error <= MAX_DRIFT * kernel.tol
        if is_precise and verified is not None:
            found = extremes(dual, dual.gradient)
            # These were compared with precise values for the last certificate, and are the same.
            if {*found} <= {*verified.tolist()}:
                solution = kernel.judged(dual, 0.0, old.solution.error, 0)
                if solution.status == Status.OPTIMAL:
                    return SolvedDual(dual, solution, old.moved, verified)
        moved, n_iter = old.moved, 0
        if len(dual.z) >= MIN_VARIABLES_TO_RESTRICT:
            n_iter, change = self._repaired(dual, old.solution.multiplier)
            moved += change
        if kernel.rounding * np.sqrt(moved) > MAX_DRIFT * kernel.tol:
            dual.gradient, moved = kernel.gradient(dual), 0.0
        solution, _, verified = kernel.certified(dual, n_iter)
        if solution.status != Status.OPTIMAL:
            self.plan.matrix = kernel.samples.matrix()
            (solution,) = self.plan.solve(Duals.of([dual]), cold=False, keep_going=None)
            solution = solution._replace(n_iter=solution.n_iter + n_iter)
            ratio = kernel.rounding_of_solver / kernel.rounding
            moved += float(np.sum((ratio * (solution.z - dual.z)) ** 2))
            dual.z, dual.gradient, verified = solution.z, solution.gradient, None
        return SolvedDual(dual, solution, moved, verified)

    def _start(self, old: SolvedDual, dual: Dual, rows: Indices, stays: Any) -> Indices | None:
        """Set z and the gradient from the old solution, with z changed so that the sums hold.

        Returns the variables of `old.verified`, or None if z has changed or one of them is removed.
        """
        before = old.dual
        assert before.gradient is not None
        kernel = self.kernel
        is_new = dual.rows >= self.first_new
        # Slices are copied faster than indices. Most updates only add or only remove samples.
        at: Any = np.flatnonzero(~is_new) if is_new.any() else slice(None)
        was: Any = slice(None) if stays.all() else np.flatnonzero(stays)
        if not np.array_equal(dual.rows[at], rows[was]):
            # The dual of two classes without weight has variables, until a sample has weight.
            dual.gradient = kernel.gradient(dual)
            return None
        value = np.zeros(len(dual.z))
        value[at] = before.z[was]
        gradient = dual.linear.copy()
        gradient[at] = before.gradient[was]
        dual.gradient = gradient
        new = np.flatnonzero(is_new)
        if len(new):
            gradient[new] += self._new_sums(before)[dual.rows[new] - self.first_new]
        removed = np.flatnonzero(~stays)
        gone = removed[before.z[removed] != 0]
        fits = len(gone) == 0 and np.array_equal(dual.totals, before.totals)
        if fits and (dual.lower <= value).all() and (value <= dual.upper).all():
            dual.z = value
            if old.verified is None or not stays[old.verified].all():
                return None
            verified = old.verified
            if not isinstance(was, slice):
                verified = np.searchsorted(was, verified)
            return verified if isinstance(at, slice) else np.asarray(at[verified])
        dual.z = value.copy()
        continue_from(replace(dual, z=value), dual)
        changed = np.flatnonzero(dual.z != value)
        last = self.before.samples
        assert last is not None
        change = (dual.z - value)[changed]
        sums = kernel.sums(kernel.samples[dual.rows[changed]], change, dual)
        sums += kernel.sums(last[before.rows[gone]], -before.z[gone], dual)
        gradient += sums[kernel.samples.slots[dual.rows]]
        return None

    def _new_sums(self, before: Dual) -> Array:
        """Return the kernel of each new sample with the old support vectors, times their z."""
        model, kernel = self.model, self.kernel
        last = self.before.samples
        assert last is not None
        z = np.bincount(before.rows, before.z, minlength=len(last.slots))
        support, vectors = model.support_, model.support_vectors_
        if np.count_nonzero(z) != np.count_nonzero(z[support]):
            # In nu-regression, a sample whose two variables cancel is not a support vector.
            support = np.flatnonzero(z)
            vectors = last[support]
        work = float(len(support)) * self.X_new.shape[0] * self.X_new.shape[1]
        sums = decide(
            vectors, kernel.precise(before), z[support][:, None], self.X_new,
            threads=self.plan.threads(work), laid_out=model._laid_out,
        )  # fmt: skip
        return np.asarray(sums[:, 0])

    def _repaired(self, dual: Dual, multiplier: Sequence[float]) -> tuple[int, float]:
        """Solve a dual from its z for the variables that can change, as far as possible.

        `multiplier` has the multipliers of the last solution. Returns the number of iterations and
        the sum of the squared changes of z.
        """
        kernel, plan = self.kernel, self.plan
        gradient = dual.gradient
        assert gradient is not None
        limit, n_iter, moved = plan.max_iterations(), 0, 0.0
        members: Indices = np.zeros(0, np.int64)
        for _ in range(MAX_ROUNDS):
            joining = joining_variables(
                dual, gradient, members, multiplier, TARGET_OF_REPAIR * kernel.tol
            )
            seconds = self.ends - time.perf_counter()
            if joining is None or n_iter >= limit or seconds <= 0:
                break
            members = np.union1d(members, joining)
            bytes_of_block = len(members) ** 2 * kernel.dtype.itemsize
            if len(members) > MAX_RESTRICTED_VARIABLES or bytes_of_block > plan.cache_bytes():
                break
            slots = kernel.samples.slots[dual.rows[members]]
            some, at = np.unique(slots, return_inverse=True)
            if len(some) == len(slots):
                hessian = kernel.rows().block(slots, kernel.values(dual))
            else:  # in nu-regression, two variables can have the same slot
                hessian = kernel.rows().block(some, kernel.values(dual))[np.ix_(at, at)]
            z = dual.z[members]
            others = dual.z.copy()
            others[members] = 0.0
            restricted = Dual(
                np.arange(len(members)), gradient[members] - hessian @ z,
                dual.lower[members], dual.upper[members], np.searchsorted(members, dual.starts),
                dual.totals - [math.fsum(others[group].tolist()) for group in dual.groups], z,
                None if dual.l1 is None else dual.l1[members], gradient[members], False,
            )  # fmt: skip
            (solution,) = solve(
                hessian, Kernel("precomputed"), [restricted], tol=TARGET_OF_ROUND * kernel.tol,
                max_iter=limit - n_iter, time_limit=seconds, cache_bytes=plan.cache_bytes(),
                threads=1, dtype=kernel.dtype, cold=False,
            )  # fmt: skip
            n_iter += max(solution.n_iter, 1)
            multiplier = solution.multiplier
            change = solution.z - z
            changed = np.flatnonzero(change)
            if len(changed) == 0:
                break
            moved += float(change @ change)
            dual.z[members] = solution.z
            some, at = np.unique(slots[changed], return_inverse=True)
            total: Array = np.bincount(at, change[changed]).astype(np.float64)
            sums = kernel.rows().combined(kernel.samples, some, total, kernel.values(dual))
            if sums is None:
                sums = kernel.sums(kernel.samples.data[some], total, dual)
            gradient += sums[kernel.samples.slots[dual.rows]]
        return n_iter, moved
