"""Attack the support vector machines: `python -m tests.attacks.svms --count 3000 --backend cpu`.

Checks of each fit: it ends within the limit, with a model or a ValueError that says what is wrong
with the data; the dual coefficients satisfy their bounds and sums; a status other than `optimal`
comes with a ConvergenceWarning; and a fit is `optimal` only at an optimum.

The violation is recomputed from `support_` and `dual_coef_` in long double: for the RBF kernel from
differences of rows, for the linear kernel from centered rows, otherwise from the formula. If its
rounding error is not small compared with `tol`, integer arithmetic decides, or there is no check.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pairstep.svm

from . import fits, runner
from .exact import Exact
from .fits import Fit
from .runner import Defect

LONG = np.longdouble
LONG_EPS = float(np.finfo(LONG).eps)
AT_LIMIT = 1e-9  # relative distance at which a coefficient counts as at its limit
CHUNK = 2**22  # numbers in memory at a time
EXACT_ROWS = 120  # up to this number of rows, integers are fast enough

# Documented errors about data and parameters.
REFUSALS = {
    "nu": r"specified nu is infeasible",
    "not finite": r"not finite|gamma must be finite",
    "one class": r"belong to the same class|number of classes has to be greater than one",
    "weights": r"zero or negative weights",
}


@dataclass
class Answer:
    """A fitted model or the error, and the warnings."""

    model: Any
    refusal: str
    converged: bool
    warnings: list[str]


class Svms:
    """The attack, on one back end."""

    def __init__(self, backend: str, limit: float, family: str | None = None) -> None:
        self.backend = backend
        self.limit = limit
        self.family = family

    def open(self) -> None:
        """Start what the back end needs; it ends with this process."""
        if self.backend in ("stand-in", "gpu"):
            import pairstep.gpu.device
            import pairstep.gpu.svm

            # Small duals go to the GPU too.
            pairstep.gpu.svm.TUNING = replace(pairstep.gpu.svm.TUNING, local_size=0)
            if self.backend == "stand-in":
                from tests.stand_in import StandIn

                pairstep.gpu.device.Cuda = lambda number: StandIn()
        elif self.backend == "dask":
            import distributed

            import pairstep.dask.svm

            # Small duals go to the workers too.
            pairstep.dask.svm.TUNING = replace(pairstep.dask.svm.TUNING, local_size=0)
            cluster = distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
            )
            self._client = distributed.Client(cluster)

    def draw(self, rng: np.random.Generator) -> Fit:
        """Return a random fit."""
        # NumPy instead of a GPU is too slow for a meaningful time limit.
        most = 600 if self.backend == "stand-in" else fits.MOST_ROWS
        return fits.draw(rng, self.family, precomputed=self.backend != "dask", most=most)

    def solve(self, case: Fit) -> Answer:
        """Fit a model."""
        X, y, module, parameters = case.X, case.y, pairstep.svm, case.parameters
        if self.backend == "dask":
            import dask.array

            module = pairstep.dask
            chunks = len(X) // 3 + 1
            X = dask.array.from_array(X, chunks=(chunks, X.shape[1]))
            y = dask.array.from_array(y, chunks=chunks)
        elif self.backend != "cpu":
            parameters = parameters | {"device": "cuda"}
        model = getattr(module, case.estimator)(**parameters)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            refusal = ""
            try:
                model.fit(X, y, sample_weight=case.weights)
            except ValueError as error:
                refusal = str(error)
        unconverged = [w for w in heard if issubclass(w.category, ConvergenceWarning)]
        others = [f"{w.category.__name__}: {w.message}" for w in heard if w not in unconverged]
        return Answer(model, refusal, not unconverged, others)

    def check(self, case: Fit, answer: Answer) -> tuple[str, list[Defect]]:
        """Return the defects of the model."""
        if answer.refusal:
            for name, words in REFUSALS.items():
                if re.search(words, answer.refusal):
                    return f"refused: {name}", []
            return "refused", [Defect("refused", answer.refusal)]
        verdict = Verdict()
        defects = list(check_model(case, answer, verdict))
        return verdict.word, defects


@dataclass
class Verdict:
    """The statuses of a model, and whether all of them could be checked."""

    word: str = ""


# ------------------------------------------------------------------ duals


@dataclass
class Dual:
    """One binary problem of a model, from its public attributes.

    Its variables are those of the samples in `rows`. `left` and `right` are added to the sums of
    kernel values and coefficients; `falls` and `rises` mark the variables that certainly can
    decrease and increase, one pair of masks for each group that shares a sum.
    """

    rows: np.ndarray
    z: np.ndarray
    left: np.ndarray
    right: np.ndarray
    groups: list[tuple[np.ndarray, np.ndarray]]
    excess: float  # how far a coefficient exceeds its limit, relative to the limit
    imbalance: float  # error of the sum, relative to the sum of absolute values


def duals_of(case: Fit, model: Any) -> Iterator[Dual]:
    """Yield the binary problems in the order of the statuses."""
    n = len(case.X)
    weights = np.ones(n) if case.weights is None else np.maximum(case.weights, 0.0)
    coefficients = np.atleast_2d(np.asarray(model.dual_coef_))
    kind = case.estimator
    if kind in ("SVC", "NuSVC"):
        targets = np.searchsorted(model.classes_, case.y)
        limit = weights * np.asarray(model.class_weight_)[targets]
        pairs = list(combinations(range(len(model.classes_)), 2))
        for i, j in pairs:
            z = _pair_coefficients(model, coefficients, targets, n, i, j)
            positive = j if len(pairs) == 1 else i
            rows = np.flatnonzero(((targets == i) | (targets == j)) & (limit > 0))
            sign = np.where(targets[rows] == positive, 1.0, -1.0)
            if kind == "SVC":
                yield _classification(rows, z[rows], sign, case.parameters["C"] * limit[rows])
            else:
                own = weights[rows]  # nu-classification ignores class weights
                yield _nu_classification(rows, z[rows], sign, own, case.parameters["nu"])
        return
    z = np.zeros(n)
    z[model.support_] = coefficients[0]
    rows = np.flatnonzero(weights > 0)
    limit = weights[rows] * case.parameters.get("C", 1.0)
    z, y = z[rows], case.y[rows]
    if kind == "SVR":
        yield _regression(rows, z, y, limit, case.parameters["epsilon"])
    elif kind == "NuSVR":
        yield _nu_regression(rows, z, y, limit, case.parameters["nu"])
    else:
        total = case.parameters["nu"] * limit.sum()
        nothing = np.zeros(len(rows))
        yield Dual(
            rows, z, nothing, nothing, [(z > 0, z < limit * (1 - AT_LIMIT))],
            _excess(z, nothing, limit), abs(z.sum() - total) / total,
        )  # fmt: skip


def _pair_coefficients(
    model: Any, coefficients: np.ndarray, targets: np.ndarray, n: int, i: int, j: int
) -> np.ndarray:
    """The coefficients of class i against class j for all samples, from LIBSVM's layout."""
    z = np.zeros(n)
    of = targets[model.support_]
    z[model.support_[of == i]] = coefficients[j - 1, of == i]
    z[model.support_[of == j]] = coefficients[i, of == j]
    return z


def _excess(z: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    size = np.maximum(upper - lower, 1e-300)
    return float((np.maximum(lower - z, z - upper) / size).max(initial=0.0))


def _classification(rows: Any, z: Any, sign: Any, limit: Any) -> Dual:
    lower, upper = np.where(sign > 0, 0.0, -limit), np.where(sign > 0, limit, 0.0)
    slack = AT_LIMIT * limit
    falls = np.where(sign > 0, z > 0, z > lower + slack)
    rises = np.where(sign > 0, z < upper - slack, z < 0)
    balance = abs(z.sum()) / max(np.abs(z).sum(), 1e-300)
    return Dual(rows, z, -sign, -sign, [(falls, rises)], _excess(z, lower, upper), balance)


def _nu_classification(rows: Any, z: Any, sign: Any, limit: Any, nu: float) -> Dual:
    """The dual of NuSVC, whose model is divided by the margin; the sums give the margin."""
    total = nu * limit.sum() / 2
    sums = z[sign > 0].sum(), -z[sign < 0].sum()
    z = z * (total / sums[0] if sums[0] > 0 else 1.0)
    one = _classification(rows, z, sign, limit)
    [(falls, rises)] = one.groups
    nothing = np.zeros(len(rows))
    groups = [(falls & (sign == s), rises & (sign == s)) for s in (1.0, -1.0)]
    return Dual(rows, z, nothing, nothing, groups, one.excess, one.imbalance)


def _regression(rows: Any, z: Any, y: Any, limit: Any, epsilon: float) -> Dual:
    left = -y + np.where(z > 0, epsilon, -epsilon)
    right = -y + np.where(z < 0, -epsilon, epsilon)
    slack = limit * (1 - AT_LIMIT)
    balance = abs(z.sum()) / max(np.abs(z).sum(), 1e-300)
    return Dual(rows, z, left, right, [(z > -slack, z < slack)], _excess(z, -limit, limit), balance)


def _nu_regression(rows: Any, z: Any, y: Any, limit: Any, nu: float) -> Dual:
    """Each coefficient is a difference of two variables, whose sums are known.

    If both are positive, the model determines only their difference. So a variable counts only if
    it can change for every possible common part.
    """
    shared = max(nu * limit.sum() / 2 - np.maximum(z, 0).sum(), 0.0)
    shared += AT_LIMIT * limit.max(initial=0.0)
    filled = limit - np.abs(z) <= shared
    up = (z > 0, (z < 0) | ~filled)
    down = ((z > 0) | ~filled, z < 0)
    balance = abs(z.sum()) / max(np.abs(z).sum(), 1e-300)
    return Dual(rows, z, -y, -y, [up, down], _excess(z, -limit, limit), balance)


# ------------------------------------------------------------------ kernels


def kernel_sums(case: Fit, model: Any, dual: Dual) -> tuple[np.ndarray, float]:
    """Sums of kernel values times coefficients, in long double, and their rounding error."""
    used = dual.z != 0
    z, at = dual.z[used].astype(LONG), dual.rows[used]
    kernel = case.parameters["kernel"]
    if kernel == "precomputed":
        values = case.X[np.ix_(dual.rows, at)]
        size = float((np.abs(values) @ np.abs(dual.z[used])).max(initial=0.0))
        return _by_chunks(len(dual.rows), len(at), lambda k: values[k].astype(LONG) @ z), (
            LONG_EPS * (len(at) + 2) * size
        )
    X = case.X.astype(LONG)
    if kernel == "linear":
        # Center at the median, because one outlier moves the mean away from all other rows. The
        # coefficients sum to 0 up to rounding, so only differences of rows count.
        X = X - np.median(X[dual.rows], axis=0)
        other = X[at] if case.estimator != "OneClassSVM" else case.X[at].astype(LONG)
        w = other.T @ z
        size = np.abs(X[dual.rows]) @ (np.abs(other).T @ np.abs(z))
        return X[dual.rows] @ w, LONG_EPS * (len(at) + 8) * float(size.max(initial=0.0))
    gamma, p = LONG(model._gamma), case.parameters
    coef0, degree = LONG(p.get("coef0", 0.0)), p.get("degree", 3)
    support, rows = X[at], X[dual.rows]

    def sums(k: slice) -> np.ndarray:
        if kernel == "rbf":
            distances = ((rows[k][:, None, :] - support) ** 2).sum(axis=2)
            return np.exp(-gamma * distances) @ z
        inner = gamma * (rows[k] @ support.T) + coef0
        return (inner**degree if kernel == "poly" else np.tanh(inner)) @ z

    found = _by_chunks(len(rows), len(at) * X.shape[1], sums)
    lengths = np.sqrt((X**2).sum(axis=1))
    inner = float(abs(gamma) * lengths[dual.rows].max() * lengths[at].max(initial=0) + abs(coef0))
    size = {"rbf": 1.0, "sigmoid": inner, "poly": degree * inner**degree}[kernel]
    spread = float(np.abs(z).sum())
    return found, LONG_EPS * (len(at) + X.shape[1] + 8) * size * spread


def _by_chunks(rows: int, columns: int, sums: Any) -> np.ndarray:
    step = max(1, CHUNK // max(columns, 1))
    parts = [sums(slice(k, k + step)) for k in range(0, rows, step)]
    return np.concatenate(parts) if parts else np.zeros(0, LONG)


def exact_violation(case: Fit, model: Any, dual: Dual) -> float | None:
    """The violation in integers, for polynomial kernels and few rows."""
    kernel = case.parameters["kernel"]
    if kernel not in ("linear", "poly", "precomputed") or len(dual.rows) > EXACT_ROWS:
        return None
    used = dual.z != 0
    X = Exact.of(case.X[dual.rows])
    if kernel == "precomputed":
        K = X[:, dual.rows[used]]
    elif kernel == "linear":
        center = Exact.of(np.median(case.X[dual.rows], axis=0))
        other = X if case.estimator == "OneClassSVM" else X - center
        K = (X - center) @ other[used].T
    else:
        inner = (X @ X[used].T) * Exact.of(model._gamma)
        inner = inner + Exact.of(np.full(inner.ints.shape, case.parameters["coef0"]))
        K = Exact.of(np.ones(inner.ints.shape))
        for _ in range(case.parameters["degree"]):
            K = K * inner
    sums = K @ Exact.of(dual.z[used])
    return violation(
        dual,
        (sums + Exact.of(dual.left)).numbers(),
        (sums + Exact.of(dual.right)).numbers(),
    )


def violation(dual: Dual, left: Any, right: Any) -> float:
    """The largest left derivative of variables that can decrease minus the smallest right one."""
    worst = 0.0
    for falls, rises in dual.groups:
        if falls.any() and rises.any():
            worst = max(worst, float(max(left[falls]) - min(right[rises])))
    return worst


# ------------------------------------------------------------------ checks


def check_model(case: Fit, answer: Answer, verdict: Verdict) -> Iterator[Defect]:
    """Check the binary problems of a model one by one."""
    model, tol = answer.model, case.parameters["tol"]
    statuses = [str(status) for status in model.optimality_.status]
    verdict.word = max(statuses, key=lambda status: status != "optimal")
    if answer.warnings:
        yield Defect("warning", "; ".join(answer.warnings))
    if answer.converged and verdict.word != "optimal":
        yield Defect("silent", f"{verdict.word} without a warning")
    duals = list(duals_of(case, model))
    if len(duals) != len(statuses):
        yield Defect("statuses", f"{len(statuses)} of {len(duals)} binary problems")
        return
    for dual, status, reported in zip(
        duals, statuses, model.optimality_.kkt_violation, strict=True
    ):
        if not np.isfinite(dual.z).all():
            yield Defect("not finite", "dual coefficients")
            continue
        if dual.excess > AT_LIMIT:
            yield Defect("bounds", f"a coefficient is beyond its limit by {dual.excess:g} of it")
        if dual.imbalance > 1e-9:
            yield Defect("sum", f"the sum misses by {dual.imbalance:g} of the sizes")
        if status != "optimal":
            continue
        with np.errstate(over="ignore"):
            sums, rounding = kernel_sums(case, model, dual)
        true = violation(dual, sums + dual.left, sums + dual.right)
        if not 2 * rounding < 0.1 * tol:
            exact = exact_violation(case, model, dual)
            if exact is None:
                verdict.word = f"{status}, not checked"
            true, rounding = (true, rounding) if exact is None else (exact, 0.0)
        if true > tol * (1 + 1e-6) + 2 * rounding:
            yield Defect(
                "optimal",
                f"true violation {true:g}, reported {reported:g}, tol {tol:g}, "
                f"rounding of the check {rounding:g}",
            )


def main() -> None:
    """Read the command line and run."""
    parser = runner.arguments(__doc__.splitlines()[0], 3000, fits.DATA)
    parser.add_argument("--backend", choices=["cpu", "stand-in", "dask", "gpu"], default="cpu")
    options = parser.parse_args()
    runner.main(Svms(options.backend, options.limit, options.family), options)


if __name__ == "__main__":
    main()
