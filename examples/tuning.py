"""Choosing C and gamma
====================

The scores of a whole grid, and the path of the best kernel.

`SVCCV` scores every C and gamma by cross-validation on one kernel matrix per gamma. The left panel
is the surface of scores; the right one follows the machine of the best gamma from C to C: as errors
cost more, fewer samples are support vectors. Data: the astroparticle set of the LIBSVM guide.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
from _data import Array, find
from _picture import BLUE, panels, run, save
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVC, SVCCV, path


def samples() -> tuple[Array, Array, bool]:
    """Give samples, their classes, and whether they are made up."""
    found = find("svm/svmguide1.gz")
    if found is None:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((600, 4))
        return X, ((X[:, :2] ** 2).sum(axis=1) + 0.3 * rng.standard_normal(600) > 1.4) * 1.0, True
    with gzip.open(found) as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y, False


def main(out: Path) -> None:
    """Search, follow the path, print, draw."""
    X, y, made_up = samples()
    X = StandardScaler().fit_transform(X)
    began = time.perf_counter()
    search = SVCCV(Cs=8, gammas=7, random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    best = search.best_params_
    print(f"{len(search.cv_results_['params'])} candidates in 5 folds: {seconds:.2f} s")
    print(f"best: C={best['C']:.3g}, gamma={best['gamma']:.3g}, accuracy {search.best_score_:.4f}")

    Cs, gammas = (np.unique(search.cv_results_[f"param_{name}"]) for name in ("C", "gamma"))
    followed = path(X, y, Cs, machine=SVC(gamma=best["gamma"]))
    for C, count in zip(Cs, followed.n_support, strict=True):
        print(f"C={C:.3g}: {count} support vectors")

    figure, (left, right) = panels(1, 2, (11.5, 5.0))
    surface = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))
    drawn = left.contourf(gammas, Cs, surface, levels=15, cmap="Blues")
    left.plot(best["gamma"], best["C"], marker="*", color="black", markersize=14)
    left.set(xscale="log", yscale="log", title="Accuracy", xlabel="gamma", ylabel="C")
    figure.colorbar(drawn, ax=left)
    right.semilogx(Cs, followed.n_support, marker="o", color=BLUE)
    right.set(title="Support vectors with the best gamma", xlabel="C")
    right.grid()
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
