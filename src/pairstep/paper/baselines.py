"""Peers of the method in NumPy: Frank-Wolfe variants and SMO with conjugate or planned steps.

Each function minimizes ``x'Qx/2 + c'x`` where x sums to a total within bounds, from a feasible
start. It yields the point and its objective after every iteration, and ends when it can make no
more progress. They are written to be read and to count iterations; none is tuned for time.

Iterations are those of the references. Where we know only a part of a method for certain, we
implement that part, and the docstring says what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..coordinates import Coordinates, Step
from .claims import Array

Iterates = Iterator[tuple[Array, float]]
# Smallest weight of a vertex in the active set of a Frank-Wolfe method; smaller ones are dropped.
MIN_WEIGHT = 1e-14
# Largest gap of a pair, relative to the first gradient, at which SMO stops. Below it, conjugate
# directions consist of rounding errors.
STOP_GAP = 1e-11


@dataclass(frozen=True)
class Problem:
    """A convex quadratic whose variables have a fixed sum and bounds."""

    Q: Array
    c: Array
    total: float
    lower: Array
    upper: Array

    def value(self, x: Array) -> float:
        """Return the objective."""
        return float(x @ (0.5 * (self.Q @ x) + self.c))

    def vertex(self, g: Array) -> Array:
        """Minimize ``g'v`` over the feasible set: raise variables in the order of g."""
        order = np.argsort(g, kind="stable")
        v, distance = self.lower.copy(), (self.upper - self.lower)[order]
        left = self.total - v.sum()
        before = np.concatenate([[0.0], np.cumsum(distance)[:-1]])
        v[order] += np.clip(left - before, 0.0, distance)
        return v


# ---- Frank-Wolfe ----


class ActiveSet:
    """A point as a convex combination of vertices, which are called its atoms."""

    def __init__(self, problem: Problem, vertex: Array):
        self.problem = problem
        self.weights = np.ones(1)
        self.atoms, self.images = vertex[None].copy(), (problem.Q @ vertex)[None]  # images: Q atom
        self.index = {vertex.tobytes(): 0}
        self.x, self.gradient = vertex.copy(), self.images[0] + problem.c

    @property
    def objective(self) -> float:
        """The objective, from the gradient."""
        return 0.5 * float(self.x @ (self.gradient + self.problem.c))

    def slopes(self) -> Array:
        """Return the derivative in the direction of each atom, up to a constant."""
        return np.asarray(self.atoms[: len(self.weights)] @ self.gradient)

    def index_of(self, vertex: Array) -> int:
        """Return the index of a vertex, which becomes an atom of weight 0 if it is new."""
        key, k = vertex.tobytes(), len(self.weights)
        if key in self.index:
            return self.index[key]
        if k == len(self.atoms):  # double the capacity
            self.atoms = np.concatenate([self.atoms, self.atoms])
            self.images = np.concatenate([self.images, self.images])
        self.atoms[k], self.images[k] = vertex, self.problem.Q @ vertex
        self.weights = np.append(self.weights, 0.0)
        self.index[key] = k
        return k

    def toward(self, k: int) -> float:
        """Take the best step toward an atom; return its length."""
        d, image = self.atoms[k] - self.x, self.images[k] - (self.gradient - self.problem.c)
        return self.move(unit(k, len(self.weights)) - self.weights, 1.0, d, image)

    def away(self, k: int) -> float:
        """Take the best step away from an atom; return its length."""
        d, image = self.x - self.atoms[k], (self.gradient - self.problem.c) - self.images[k]
        weight = self.weights[k]
        longest = weight / (1 - weight) if weight < 1 else 0.0
        return self.move(self.weights - unit(k, len(self.weights)), longest, d, image)

    def between(self, away: int, toward: int) -> float:
        """Move weight from one atom to another, by the best amount; return it."""
        change = unit(toward, len(self.weights)) - unit(away, len(self.weights))
        d, image = self.atoms[toward] - self.atoms[away], self.images[toward] - self.images[away]
        return self.move(change, self.weights[away], d, image)

    def move(self, change: Array, longest: float, d: Array, image: Array) -> float:
        """Change the weights, and x along d, by the best step up to the longest; return it.

        `image` is Q times d.
        """
        slope, curvature = float(self.gradient @ d), float(d @ image)
        best = -slope / curvature if curvature > 0 else np.inf
        step = min(max(best, 0.0), longest)
        self.x = self.x + step * d
        self.gradient = self.gradient + step * image
        self.weights = self.weights + step * change
        for k in np.flatnonzero(self.weights <= MIN_WEIGHT)[::-1]:
            self.remove(int(k))
        self.weights /= self.weights.sum()
        return step

    def remove(self, k: int) -> None:
        """Remove an atom; the last one takes its place."""
        last = len(self.weights) - 1
        del self.index[self.atoms[k].tobytes()]
        if k < last:
            self.index[self.atoms[last].tobytes()] = k
            self.atoms[k], self.images[k] = self.atoms[last], self.images[last]
            self.weights[k] = self.weights[last]
        self.weights = self.weights[:last]


def unit(k: int, n: int) -> Array:
    """Return a unit vector."""
    e = np.zeros(n)
    e[k] = 1.0
    return e


def frank_wolfe(problem: Problem, take: Callable[[ActiveSet], float]) -> Iterates:
    """Start at the best vertex for c, and take steps until one has no length."""
    s = ActiveSet(problem, problem.vertex(problem.c))
    while take(s) > 0:
        yield s.x, s.objective


def toward_or_away(s: ActiveSet) -> float:
    """Move toward the best vertex or away from the worst atom, whichever promises more."""
    toward, slopes = s.problem.vertex(s.gradient), s.slopes()
    away = int(np.argmax(slopes))
    if float(s.gradient @ (s.x - toward)) >= slopes[away] - float(s.gradient @ s.x):
        return s.toward(s.index_of(toward))
    return s.away(away)


def pairwise(s: ActiveSet) -> float:
    """Move weight from the worst atom to the best vertex."""
    away = int(np.argmax(s.slopes()))
    k = s.index_of(s.problem.vertex(s.gradient))
    return s.between(away, k) if k != away else 0.0


def local_pairwise(s: ActiveSet) -> float:
    """Move weight from the worst to the best atom of the active set."""
    slopes = s.slopes()
    return s.between(int(np.argmax(slopes)), int(np.argmin(slopes)))


def quadratic_correction(s: ActiveSet) -> float:
    """Move toward the minimum over the affine hull of the atoms, until a weight is zero.

    This is the correction QC-MNP, after Wolfe's minimum-norm point. Affinely dependent atoms have
    no unique minimum; then the step is a pairwise one.
    """
    k = len(s.weights)
    A, images = s.atoms[:k], s.images[:k]
    system = np.block([[A @ images.T, np.ones((k, 1))], [np.ones(k), np.zeros(1)]])
    side = np.append(-A @ s.problem.c, 1.0)
    try:
        goal = np.linalg.solve(system, side)[:k]
    except np.linalg.LinAlgError:
        return local_pairwise(s)
    change = goal - s.weights
    slope = float(change @ s.slopes())
    if not np.isfinite(goal).all() or slope >= 0:
        return local_pairwise(s)
    falling = change < 0
    longest = float(np.min(s.weights[falling] / -change[falling], initial=1.0))
    return s.move(change, longest, change @ A, change @ images)


def blended(s: ActiveSet, correct: Callable[[ActiveSet], float]) -> float:
    """Correct the weights of the active set if that promises more than a Frank-Wolfe step."""
    toward = s.problem.vertex(s.gradient)
    if np.ptp(s.slopes()) >= float(s.gradient @ (s.x - toward)):
        return correct(s)
    return s.toward(s.index_of(toward))


def away_frank_wolfe(problem: Problem) -> Iterates:
    """Frank-Wolfe with away steps (Guelat and Marcotte 1986; Lacoste-Julien and Jaggi 2015)."""
    return frank_wolfe(problem, toward_or_away)


def pairwise_frank_wolfe(problem: Problem) -> Iterates:
    """Pairwise Frank-Wolfe (Lacoste-Julien and Jaggi 2015): weight moves from one atom to a vertex.

    On the simplex the vertices are the unit vectors, and this is gs-s with exact steps.
    """
    return frank_wolfe(problem, pairwise)


def blended_pairwise(problem: Problem) -> Iterates:
    """Blended pairwise conditional gradients (Tsuji, Tanaka and Pokutta 2022)."""
    return frank_wolfe(problem, partial(blended, correct=local_pairwise))


def corrected_blended_pairwise(problem: Problem) -> Iterates:
    """Corrective Frank-Wolfe with quadratic corrections (Halbey et al. 2025, arXiv:2506.02635).

    Every corrective step takes one. The reference also mixes them with pairwise steps, and has a
    second correction that solves a linear program.
    """
    return frank_wolfe(problem, partial(blended, correct=quadratic_correction))


def simplex_frank_wolfe(problem: Problem) -> Iterates:
    """Simplex Frank-Wolfe (Wang, Qi and Zhang 2025, arXiv:2509.24279), on the unit simplex.

    The linear problem is solved over the intersection of the simplex with the simplex ball
    ``{y : y >= x - d}`` of radius ``d = sqrt(2 (f(x) - B)/mu)``. It contains the optimum, because f
    is strongly convex with the constant mu and B is a lower bound on the optimum. We omit the
    refined variant and the extension to other polytopes.
    """
    mu = float(np.linalg.eigvalsh(problem.Q)[0])
    x = np.full(len(problem.c), problem.total / len(problem.c))
    image = problem.Q @ x
    bound = -np.inf
    while True:
        g = image + problem.c
        value = 0.5 * float(x @ (g + problem.c))
        radius = np.sqrt(2 * max(value - bound, 0.0) / mu) if mu > 0 else np.inf
        y = np.maximum(x - radius, problem.lower)
        y[np.argmin(g)] += problem.total - y.sum()
        d = y - x
        slope = float(g @ d)
        bound = max(bound, value + slope)
        moved = problem.Q @ d
        curvature = float(d @ moved)
        if slope >= 0 or curvature <= 0:
            return
        step = min(1.0, -slope / curvature)
        x, image = x + step * d, image + step * moved
        yield x, value + step * slope + 0.5 * step**2 * curvature


# ---- Sequential minimal optimization ----


def second_order_pair(problem: Problem, x: Array, g: Array) -> tuple[int, int]:
    """Choose a pair as LIBSVM does (Fan, Chen and Lin 2005): (variable to decrease, to increase).

    The first is the most violating one; the second maximizes the decrease without bounds.
    """
    increase = int(np.argmin(np.where(x < problem.upper, g, np.inf)))
    gap = np.where(x > problem.lower, g, -np.inf) - g[increase]
    curvature = problem.Q.diagonal() + problem.Q[increase, increase] - 2 * problem.Q[increase]
    gain = np.where(gap > 0, gap, 0.0) ** 2 / np.maximum(curvature, 1e-12)
    return int(np.argmax(gain)), increase


def reach(problem: Problem, x: Array, d: Array, used: NDArray[np.int64]) -> float:
    """Return how far one can go along d before a bound."""
    distance = np.where(d[used] > 0, problem.upper[used] - x[used], x[used] - problem.lower[used])
    with np.errstate(over="ignore"):
        return float(np.min(distance / np.abs(d[used])))


def conjugate_smo(problem: Problem, start: Array) -> Iterates:
    """Conjugate SMO (Torres-Barran, Alaiz and Dorronsoro 2021, arXiv:2003.08719).

    The direction is that of SMO, made conjugate to the previous direction. If the step along it is
    cut by a bound, the next direction is a plain one. The pair is LIBSVM's; the reference adapts
    its second choice to the conjugate direction.
    """
    Q = problem.Q
    x, g = start.copy(), Q @ start + problem.c
    value, smallest = problem.value(x), STOP_GAP * float(np.abs(g).max())
    previous: tuple[Array, Array, float] | None = None  # a direction, Q times it, its curvature
    while True:
        down, up = second_order_pair(problem, x, g)
        if g[down] - g[up] <= smallest:
            return
        plain = np.zeros(len(x))
        plain[down], plain[up] = -1.0, 1.0
        d, image = plain, Q[up] - Q[down]
        if previous is not None:
            old, old_image, old_curvature = previous
            factor = float(old_image[up] - old_image[down]) / old_curvature
            conjugate = plain - factor * old
            descends = float(g @ conjugate) < 0
            if descends and reach(problem, x, conjugate, np.flatnonzero(conjugate)) > 0:
                d, image = conjugate, image - factor * old_image
        slope, curvature = float(g @ d), float(d @ image)
        longest = reach(problem, x, d, np.flatnonzero(d))
        step = min(-slope / curvature if curvature > 0 else np.inf, longest)
        x = np.clip(x + step * d, problem.lower, problem.upper)
        g += step * image
        value += step * slope + 0.5 * step**2 * curvature
        previous = (d, image, curvature) if step < longest else None
        yield x, value


def planning_ahead_smo(problem: Problem, start: Array) -> Iterates:
    """Planning-ahead SMO (Glasmachers 2008, arXiv:1307.8305).

    If the previous step was not cut by a bound, the step on the new pair is the first of two that
    together, on the new and then on the previous pair, decrease the objective most. After a planned
    step, the planned pair is used if it promises more than LIBSVM's choice. We omit the limits on
    the length of a planned step that the reference needs to prove convergence.
    """
    Q = problem.Q
    x, g = start.copy(), Q @ start + problem.c
    value, smallest = problem.value(x), STOP_GAP * float(np.abs(g).max())
    previous: tuple[int, int] | None = None
    planned = False

    def model(pair: tuple[int, int]) -> tuple[float, float, float]:
        down, up = pair
        gap = float(g[down] - g[up])
        curvature = max(float(Q[down, down] + Q[up, up] - 2 * Q[down, up]), 1e-12)
        longest = min(x[down] - problem.lower[down], problem.upper[up] - x[up])
        return gap, curvature, float(longest)

    def gain(pair: tuple[int, int]) -> float:
        gap, curvature, longest = model(pair)
        step = min(max(gap / curvature, 0.0), longest)
        return step * gap - 0.5 * step**2 * curvature

    while True:
        pair = second_order_pair(problem, x, g)
        if g[pair[0]] - g[pair[1]] <= smallest:
            return
        if planned and previous is not None and gain(previous) > gain(pair):
            pair = previous
        gap, curvature, longest = model(pair)
        step, planned = min(gap / curvature, longest), False
        if previous is not None and previous != pair:
            (i, j), (k, m) = pair, previous
            cross = float(Q[i, k] - Q[i, m] - Q[j, k] + Q[j, m])
            other_gap, other_curvature, other_longest = model(previous)
            determinant = curvature * other_curvature - cross**2
            if determinant > 1e-12 * curvature * other_curvature:
                first = (other_curvature * gap - cross * other_gap) / determinant
                second = (curvature * other_gap - cross * gap) / determinant
                if 0 < first < longest and 0 < second < other_longest:
                    step, planned = first, True
        down, up = pair
        x[down], x[up] = x[down] - step, x[up] + step
        g += step * (Q[up] - Q[down])
        value += -step * gap + 0.5 * step**2 * curvature
        if not planned:
            previous = pair if step < longest else None
        yield x, value


def beck_pair(coordinates: Coordinates, alpha: float) -> Step:
    """Choose the pair of Beck (2014), whose step ``min(alpha gap/2, bounds)`` is longest.

    This is 2-coordinate descent with greedy selection, as a rule. Beck gives no search faster than
    O(n^2). This one is O(n log n):
    for a length t, only variables that can move by t matter, so the best gap of such variables is
    a running maximum over the variables in descending order of their distances.
    """
    left, right = coordinates.left_derivative, coordinates.right_derivative
    by_down, by_up = np.argsort(-coordinates.max_decrease), np.argsort(-coordinates.max_increase)
    down, up = coordinates.max_decrease[by_down], coordinates.max_increase[by_up]
    highest = np.maximum.accumulate(left[by_down])
    lowest = np.minimum.accumulate(right[by_up])
    t = np.concatenate([down, up])
    t = t[t > 0]
    last_down = np.searchsorted(-down, -t, side="right") - 1  # of those that can move by t
    last_up = np.searchsorted(-up, -t, side="right") - 1
    fine = (last_down >= 0) & (last_up >= 0)
    t, last_down, last_up = t[fine], last_down[fine], last_up[fine]
    if not len(t):
        return Step(np.zeros(0, int), np.zeros(0), 0.0)
    length = np.minimum(t, alpha * (highest[last_down] - lowest[last_up]) / 2)
    best = int(np.argmax(length))
    if not length[best] > 0:
        return Step(np.zeros(0, int), np.zeros(0), 0.0)
    i = int(by_down[np.argmax(left[by_down[: last_down[best] + 1]])])
    j = int(by_up[np.argmin(right[by_up[: last_up[best] + 1]])])
    gap = float(left[i] - right[j])
    amount = min(alpha * gap / 2, coordinates.max_decrease[i], coordinates.max_increase[j])
    return Step(np.array([i, j]), np.array([-amount, amount]), amount * gap - amount**2 / alpha)
