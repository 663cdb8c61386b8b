"""Many simplex least-squares problems at once, compared with other methods.

    PAIRSTEP_DATA=... python -m benchmarks.batch [--quick] [--only PART...] [--budget 60]

Table "batch": Samson (9025 pixels, 3 endmembers) and mixtures of spectra from the USGS library are
unmixed by several methods: pairstep's batch; one cvxopt QP per pixel, as in pysptools, on a
subsample; SciPy's nnls with a heavily weighted row for the sum, on a subsample; and, vectorized in
NumPy on the whole batch, accelerated projected gradient with restarts and ADMM (SUnSAL), which drop
finished pixels. The violation is the Frank-Wolfe bound on the suboptimality relative to
``|b|^2 / 2`` of the pixel, recomputed from A and the pixels for every method; the largest of all
pixels counts, and must be below 1e-8, as must the violations of bounds and sum.

Table "scene": a synthetic scene with 2 to 33 endmembers, compared with summing its data once.
Batches in which every problem has its own matrix are in `benchmarks.qp_batches`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.io
import scipy.linalg
import scipy.optimize

import pairstep

from .harness import (
    Entry,
    Solve,
    Table,
    data_folder,
    digits,
    fastest,
    log,
    named,
    parser,
    race,
    times_of,
)  # fmt: skip

VIOLATION = 1e-8  # largest valid violation of objective, bounds and sum


def gaps(A: np.ndarray, B: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the Frank-Wolfe bound of each pixel, relative to ``|b|^2 / 2``."""
    gradient = A.T @ (A @ X - B)
    return ((gradient * X).sum(0) - gradient.min(0)) / (0.5 * (B**2).sum(0))


# ----------------------------------------------------------------------------------------- methods


def batch(A: np.ndarray, B: np.ndarray) -> Solve:
    return lambda tol: pairstep.simplex_lstsq(A, B, tol=tol).x.T


def cvxopt_per_pixel(A: np.ndarray, B: np.ndarray) -> Solve:
    import cvxopt

    n = A.shape[1]
    P, G = cvxopt.matrix(A.T @ A), cvxopt.matrix(-np.eye(n))
    h, E, e = cvxopt.matrix(0.0, (n, 1)), cvxopt.matrix(1.0, (1, n)), cvxopt.matrix(1.0)

    def solve(tol: float) -> np.ndarray:
        cvxopt.solvers.options.update(show_progress=False, abstol=tol, reltol=tol, feastol=tol)
        return np.column_stack([
            np.array(cvxopt.solvers.qp(P, cvxopt.matrix(-A.T @ b), G, h, E, e)["x"]).ravel()
            for b in B.T
        ])  # fmt: skip

    return solve


def nnls_with_sum_row(A: np.ndarray, B: np.ndarray) -> Solve:
    weight = 1e5 * np.abs(A).max()
    tall = np.vstack([A, np.full(A.shape[1], weight)])
    right = np.vstack([B, np.full(B.shape[1], weight)])
    return lambda _: np.column_stack([scipy.optimize.nnls(tall, b)[0] for b in right.T])


def project(X: np.ndarray) -> np.ndarray:
    """Project every column onto the simplex."""
    ordered = -np.sort(-X, axis=0)
    excess = np.cumsum(ordered, axis=0) - 1
    count = np.arange(1, len(X) + 1)[:, None]
    last = (ordered * count > excess).sum(0) - 1
    shift = excess[last, np.arange(X.shape[1])] / (last + 1)
    return np.maximum(X - shift, 0)


def until_done(begin: Callable, A: np.ndarray, B: np.ndarray) -> Solve:
    """Iterate on the pixels that are not finished; check after every call, 20 iterations."""

    def solve(tol: float) -> np.ndarray:
        gram, cross = A.T @ A, A.T @ B
        size = 0.5 * (B**2).sum(0)
        X = project(np.zeros((A.shape[1], B.shape[1])))
        active = np.arange(B.shape[1])
        advance, state = begin(gram), None
        while len(active):
            part = cross[:, active]
            state = advance(X[:, active], part, state)
            X[:, active] = state[0]
            gradient = gram @ state[0] - part
            unfinished = (gradient * state[0]).sum(0) - gradient.min(0) > tol * size[active]
            active = active[unfinished]
            state = tuple(s[..., unfinished] for s in state)
        return X

    return solve


def projected_gradient(gram: np.ndarray) -> Callable:
    step = 1 / scipy.linalg.eigvalsh(gram, subset_by_index=[len(gram) - 1] * 2)[0]

    def advance(X: np.ndarray, cross: np.ndarray, state: tuple | None) -> tuple:
        X, Y, t = state or (X, X, np.ones(X.shape[1]))
        for _ in range(20):
            new = project(Y - step * (gram @ Y - cross))
            restart = ((Y - new) * (new - X)).sum(0) > 0
            later = (1 + np.sqrt(1 + 4 * t**2)) / 2
            Y = np.where(restart, new, new + (t - 1) / later * (new - X))
            t = np.where(restart, 1.0, later)
            X = new
        return X, Y, t

    return advance


def admm(gram: np.ndarray) -> Callable:
    n = len(gram)
    weight = 0.01 * np.trace(gram) / n
    inverse = np.linalg.inv(gram + weight * np.eye(n))

    def advance(X: np.ndarray, cross: np.ndarray, state: tuple | None) -> tuple:
        Z, U = state or (X, np.zeros_like(X))
        for _ in range(20):
            W = inverse @ (cross + weight * (Z - U))
            Z = project(W + U)
            U = U + W - Z
        return Z, U

    return advance


# -------------------------------------------------------------------------------------------- data


def samson(data: Path, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    raw = scipy.io.loadmat(data / "unmixing" / "samson_dataset.mat")
    Y, M = raw["Y"].astype(float), raw["M"].astype(float)
    return np.ascontiguousarray(M), np.ascontiguousarray(Y[:, :: 20 if quick else 1])


def library(data: Path, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the USGS library, and pixels that mix five of its spectra, with noise at 40 dB."""
    A = scipy.io.loadmat(data / "unmixing" / "USGS_1995_Library.mat")["datalib"].astype(float)
    A = np.ascontiguousarray(A[:, 3:])  # wavelengths, resolutions and channels come first
    rng = np.random.default_rng(0)
    count = 100 if quick else 2000
    X = np.zeros((A.shape[1], count))
    for k in range(count):
        X[rng.choice(len(X), 5, replace=False), k] = rng.dirichlet(np.ones(5))
    B = A @ X
    return A, B + 0.01 * np.sqrt((B**2).mean(0)) * rng.standard_normal(B.shape)


def compare(A: np.ndarray, B: np.ndarray, sample: int, budget: float,
            peers: list[str]) -> list[object]:  # fmt: skip
    """Return cells: the time of a pixel, and how many times as long other methods take."""
    some = B[:, np.linspace(0, B.shape[1] - 1, min(sample, B.shape[1])).astype(int)]
    methods = {
        "pairstep": (batch, B, (1e-6, 1e-8, 1e-10, 1e-12)),
        "cvxopt": (cvxopt_per_pixel, some, (1e-7, 1e-8, 1e-9, 1e-10)),
        "nnls": (nnls_with_sum_row, some, (0.0,)),
        "projected gradient on the batch": (partial(until_done, projected_gradient), B,
                                            (VIOLATION,)),
        "ADMM on the batch": (partial(until_done, admm), B, (VIOLATION,)),
    }  # fmt: skip
    each: dict[str, float] = {}
    for name, (method, pixels, ladder) in methods.items():

        def judge(X: np.ndarray, pixels: np.ndarray = pixels) -> tuple[float, float]:
            beyond = max(float(-X.min()), float(np.abs(X.sum(0) - 1).max()))
            return float(gaps(A, pixels, X).max()), beyond

        entry = Entry(name, f"{pixels.shape[1]}", partial(method, A, pixels), ladder)
        best = fastest(race([entry], judge, (VIOLATION, VIOLATION), budget, peers), name)
        if best:
            each[name] = best.best / pixels.shape[1]
    own = each.pop("pairstep", np.nan)
    cvxopt = each.pop("cvxopt", np.nan)
    cell = f"{1e6 * own:.2g} us" if own < 1e-4 else f"{1e3 * own:.2g} ms"
    name = min(each, key=each.__getitem__, default="none")
    best = f"{each[name] / own:.3g} ({name})" if each else name
    return [B.shape[1], cell, digits(cvxopt / own), best]


def read_scene(table: Table, pixels: int, bands: int = 198) -> None:
    """Compare the time to unmix a synthetic scene with the time to read it."""
    for n in (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 32, 33):
        rng = np.random.default_rng(n)
        A = rng.uniform(0, 1, (bands, n))
        B = A @ rng.dirichlet(np.ones(n), pixels).T + 0.01 * rng.standard_normal((bands, pixels))
        worst = gaps(A, B, pairstep.simplex_lstsq(A, B).x.T).max()
        assert worst < VIOLATION
        ours, _ = times_of(lambda A=A, B=B: pairstep.simplex_lstsq(A, B), 0.3, most=10**6)
        read, _ = times_of(B.sum, 0.3, most=10**6)
        table.add(pixels, n, digits(1e3 * min(ours)), digits(min(ours) / min(read)))


def main() -> None:
    options = parser(__doc__, budget=60.0).parse_args()
    data = data_folder(required=False)
    if data is not None:
        table = Table(
            options.out, "batch", "Many right-hand sides",
            ["data", "count", "`simplex_lstsq`, each", "faster than cvxopt by",
             "faster than the best other method by"],
            ["cvxopt", "scipy", "numpy"],
        )  # fmt: skip
        for name, load, sample in (("Samson, 3 materials", samson, 300),
                                   ("spectra of the USGS library", library, 20)):  # fmt: skip
            if named(name, options.only):
                log(f"\n{name}")
                A, B = load(data, options.quick)
                table.add(name, *compare(A, B, sample, options.budget, options.peers))
    if named("scene", options.only):
        table = Table(options.out, "scene", "Unmixing a synthetic scene of 198 bands", [
            "pixels", "materials", "ms", "times summing it"])  # fmt: skip
        for pixels in (2_000,) if options.quick else (10_000, 100_000):
            read_scene(table, pixels)


if __name__ == "__main__":
    main()
