"""Many simplex least-squares problems at once, compared with other methods; and one large problem.

    python -m benchmarks.batch [--quick] [--out results/batch]

Samson (9025 pixels, 3 endmembers) and mixtures of spectra from the USGS library are unmixed by
several methods: pairstep's batch; one cvxopt QP per pixel, as in pysptools, on a subsample; SciPy's
nnls with a heavily weighted row for the sum, on a subsample; and, vectorized in NumPy on the whole
batch, accelerated projected gradient with restarts and ADMM (SUnSAL), which drop finished pixels.

The violation is the Frank-Wolfe bound on the suboptimality relative to ``|b|^2 / 2`` of the pixel,
recomputed from A and the pixels for every method; the largest of all pixels counts. Iterative
methods run until it is below 1e-8 or their time is up; in the latter case the ratio is a lower
bound. Batches in which every problem has its own matrix are in `benchmarks.qp_batches`. Unmixing a
synthetic scene with 2 to 33 endmembers is compared with reading its data once.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cvxopt
import numpy as np
import scipy.io
import scipy.linalg
import scipy.optimize

import pairstep

from .qp_problems import data_folder

VIOLATION = 1e-8  # largest valid violation of objective, bounds and sum


@dataclass
class Row:
    method: str
    pixels: int
    each: float  # seconds per pixel
    violation: float
    bounds: float
    sums: float
    note: str = ""


def gaps(A: np.ndarray, B: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the Frank-Wolfe bound of each pixel, relative to ``|b|^2 / 2``."""
    gradient = A.T @ (A @ X - B)
    return ((gradient * X).sum(0) - gradient.min(0)) / (0.5 * (B**2).sum(0))


def row(method: str, A: np.ndarray, B: np.ndarray, X: np.ndarray, seconds: float) -> Row:
    result = Row(method, B.shape[1], seconds / B.shape[1], float(gaps(A, B, X).max()),
                 float(np.maximum(-X, 0).max()), float(np.abs(X.sum(0) - 1).max()))  # fmt: skip
    if max(result.violation, result.bounds, result.sums) > VIOLATION:
        result.note = "violation not reached "
    return result


# ----------------------------------------------------------------------------------------- methods


def batch(A: np.ndarray, B: np.ndarray) -> Row:
    for tol in (1e-6, 1e-8, 1e-10, 1e-12):
        times = []
        while len(times) < 5 and sum(times) < 5:
            began = time.perf_counter()
            result = pairstep.simplex_lstsq(A, B, tol=tol)
            times.append(time.perf_counter() - began)
        best = row("pairstep", A, B, result.x.T, min(times))
        names, counts = np.unique(result.status, return_counts=True)
        best.note += f"tol {tol:.0e}, first {times[0] * 1e3:.1f} ms, " + ", ".join(
            f"{c} {s}" for s, c in zip(names, counts, strict=True)
        )
        if best.violation <= VIOLATION:
            break
    return best


def per_pixel_cvxopt(A: np.ndarray, B: np.ndarray) -> Row:
    n = A.shape[1]
    cvxopt.solvers.options.update(show_progress=False, abstol=1e-9, reltol=1e-9, feastol=1e-9)
    P, G = cvxopt.matrix(A.T @ A), cvxopt.matrix(-np.eye(n))
    h, E, e = cvxopt.matrix(0.0, (n, 1)), cvxopt.matrix(1.0, (1, n)), cvxopt.matrix(1.0)
    X = np.empty((n, B.shape[1]))
    began = time.perf_counter()
    for k, b in enumerate(B.T):
        solution = cvxopt.solvers.qp(P, cvxopt.matrix(-A.T @ b), G, h, E, e)
        X[:, k] = np.array(solution["x"]).ravel()
    return row("cvxopt per pixel", A, B, X, time.perf_counter() - began)


def nnls_with_sum_row(A: np.ndarray, B: np.ndarray) -> Row:
    weight = 1e5 * np.abs(A).max()
    tall = np.vstack([A, np.full(A.shape[1], weight)])
    right = np.vstack([B, np.full(B.shape[1], weight)])
    began = time.perf_counter()
    X = np.column_stack([scipy.optimize.nnls(tall, b)[0] for b in right.T])
    return row("nnls, sum row", A, B, X, time.perf_counter() - began)


def project(X: np.ndarray) -> np.ndarray:
    """Project every column onto the simplex."""
    ordered = -np.sort(-X, axis=0)
    excess = np.cumsum(ordered, axis=0) - 1
    count = np.arange(1, len(X) + 1)[:, None]
    last = (ordered * count > excess).sum(0) - 1
    shift = excess[last, np.arange(X.shape[1])] / (last + 1)
    return np.maximum(X - shift, 0)


def until_done(A: np.ndarray, B: np.ndarray, seconds: float, begin: Callable) -> tuple:
    """Iterate on the pixels that are not finished; check after every call, 20 iterations."""
    began = time.perf_counter()
    gram, cross = A.T @ A, A.T @ B
    size = 0.5 * (B**2).sum(0)
    X = project(np.zeros((A.shape[1], B.shape[1])))
    active = np.arange(B.shape[1])
    advance, state = begin(gram), None
    while len(active) and time.perf_counter() - began < seconds:
        part = cross[:, active]
        state = advance(X[:, active], part, state)
        X[:, active] = state[0]
        gradient = gram @ state[0] - part
        unfinished = (gradient * state[0]).sum(0) - gradient.min(0) > VIOLATION * size[active]
        active = active[unfinished]
        state = tuple(s[..., unfinished] for s in state)
    return X, time.perf_counter() - began, len(active)


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


def batched(method: str, begin: Callable, A: np.ndarray, B: np.ndarray, seconds: float) -> Row:
    X, spent, left = until_done(A, B, seconds, begin)
    result = row(method, A, B, X, spent)
    result.note = f"{left} pixels not done after {spent:.0f} s" if left else ""
    return result


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


def compare(name: str, A: np.ndarray, B: np.ndarray, sample: int, seconds: float) -> list[Row]:
    some = B[:, np.linspace(0, B.shape[1] - 1, min(sample, B.shape[1])).astype(int)]
    rows = [
        batch(A, B),
        per_pixel_cvxopt(A, some),
        nnls_with_sum_row(A, some),
        batched("projected gradient", projected_gradient, A, B, seconds),
        batched("ADMM (SUnSAL)", admm, A, B, seconds),
    ]
    mine = rows[0]
    print(f"\n{name}: {A.shape[0]} bands, {A.shape[1]} endmembers, {B.shape[1]} pixels\n")
    print(f"  {'method':20}{'pixels':>8}{'us/pixel':>11}{'violation':>11}{'bounds':>9}{'sum':>9}"
          f"{'pairstep is':>13}")  # fmt: skip
    for r in rows:
        print(f"  {r.method:20}{r.pixels:8}{1e6 * r.each:11.2f}{r.violation:11.0e}{r.bounds:9.0e}"
              f"{r.sums:9.0e}{r.each / mine.each:12.1f}x  {r.note}")  # fmt: skip
    reached = [r for r in rows[2:] if "not" not in r.note]
    alternative = min((r.each for r in reached), default=np.nan)
    print(f"\n  over cvxopt per pixel {rows[1].each / mine.each:.0f}x, over the best "
          f"alternative {alternative / mine.each:.1f}x", flush=True)  # fmt: skip
    return rows


# ----------------------------------------------------------------------------------------- scaling


def peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def best_of(work: Callable[[], object], seconds: float = 0.3) -> float:
    times: list[float] = []
    while sum(times) < seconds:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def reading(pixels: int, bands: int = 198) -> None:
    """Compare the time to unmix a synthetic scene with the time to read it."""
    print(f"\nA synthetic scene of {pixels} pixels and {bands} bands, compared with summing it\n")
    print(f"  {'endmembers':>10}{'ms':>9}{'times reading':>15}{'violation':>11}")
    for n in (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 32, 33):
        rng = np.random.default_rng(n)
        A = rng.uniform(0, 1, (bands, n))
        B = A @ rng.dirichlet(np.ones(n), pixels).T + 0.01 * rng.standard_normal((bands, pixels))
        worst = gaps(A, B, pairstep.simplex_lstsq(A, B).x.T).max()
        assert worst < VIOLATION
        ours, read = best_of(lambda A=A, B=B: pairstep.simplex_lstsq(A, B)), best_of(B.sum)
        print(f"  {n:10}{1e3 * ours:9.2f}{ours / read:15.1f}{worst:11.0e}", flush=True)


def forget_peak() -> None:
    ctypes.CDLL(None).malloc_trim(
        0
    )  # otherwise memory that is already freed would be reused unseen
    Path("/proc/self/clear_refs").write_text("5")


def scaling(sizes: list[int], out: Path) -> None:
    """Solve one problem with 300 rows; print its time, and its memory beyond A itself."""
    print("\nOne right-hand side, A of 300 rows, Gram matrix never formed\n")
    print(f"  {'n':>8}{'seconds':>10}{'A, MB':>9}{'extra MB':>10}{'n x n, MB':>11}{'bound':>9}"
          f"{'support':>9}  status")  # fmt: skip
    lines = []
    for n in sizes:
        rng = np.random.default_rng(n)
        A = rng.standard_normal((300, n))
        x = np.zeros(n)
        x[rng.choice(n, 30, replace=False)] = rng.dirichlet(np.ones(30))
        b = A @ x + 0.05 * rng.standard_normal(300)
        forget_peak()
        before = peak_megabytes()
        began = time.perf_counter()
        result = pairstep.simplex_lstsq(A, b, time_limit=120)
        seconds = time.perf_counter() - began
        extra = peak_megabytes() - before
        bound = float(gaps(A, b[:, None], result.x[:, None])[0])
        support = int((result.x > 0).sum())
        size = A.nbytes / 2**20
        lines.append((n, seconds, size, extra, bound, support, str(result.status)))
        print(f"  {n:8}{seconds:10.3f}{size:9.0f}{extra:10.1f}{n * n * 8 / 2**20:11.0f}{bound:9.0e}"
              f"{support:9}  {result.status}", flush=True)  # fmt: skip
    with open(out / "scaling.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "seconds", "a_mb", "extra_mb", "bound", "support", "status"])
        writer.writerows(lines)
    plot_scaling(lines, out)


def plot_scaling(lines: list[tuple], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    n, seconds, size, extra = (np.array([line[k] for line in lines]) for k in range(4))
    left.loglog(n, seconds, "o-k")
    left.set(xlabel="n", ylabel="seconds", title="simplex least squares, 300 rows")
    right.loglog(n, np.maximum(extra, 0.1), "o-k", label="beyond A, at the peak")
    right.loglog(n, size, "--", label="A itself")
    right.loglog(n, n**2 * 8 / 2**20, ":", label="the n x n matrix (never formed)")
    right.set(xlabel="n", ylabel="MB", title="memory")
    right.legend()
    for kind in ("png", "svg"):
        figure.savefig(out / f"scaling.{kind}", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/batch"))
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a batched method")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    if data is None:
        print("PAIRSTEP_DATA is not set: skipping Samson and the USGS library")
    else:
        seconds = 5.0 if options.quick else options.seconds
        tables = {
            "Samson": compare("Samson", *samson(data, options.quick), 300, seconds),
            "USGS": compare("USGS library", *library(data, options.quick), 20, seconds),
        }
        with open(options.out / "batch.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["data", "method", "pixels", "us_per_pixel", "violation",
                             "bound_violation", "sum_violation", "note"])  # fmt: skip
            for name, rows in tables.items():
                for r in rows:
                    writer.writerow([name, r.method, r.pixels, 1e6 * r.each, r.violation, r.bounds,
                                     r.sums, r.note])  # fmt: skip
    for pixels in (2_000,) if options.quick else (10_000, 100_000):
        reading(pixels)
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
    scaling(sizes[:3] if options.quick else sizes, options.out)


if __name__ == "__main__":
    main()
