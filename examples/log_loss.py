"""Stacking by log loss
====================

How much to believe each of several classifiers.

Five models give each case a score, the logarithm of the odds that a tumour is benign. Their mix
with weights that are not negative and add up to one is to have the smallest log loss on cases that
the models have not been fitted to:

    minimise mean log(1 + exp(-s_i (Zx)_i)),    x >= 0, sum(x) = 1.

A single overconfident model costs dearly where it errs; the mix hedges. The data come with
scikit-learn.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _picture import BLUE, GREY, PALE, panels, run, save
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairstep

MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=10.0)),
    "forest": RandomForestClassifier(100, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(11)),
    "naive Bayes": GaussianNB(),
    "quadratic": QuadraticDiscriminantAnalysis(reg_param=0.1),
}


def log_odds(probability: np.ndarray) -> np.ndarray:
    """Scores, of probabilities that nobody takes for certain."""
    p = np.clip(probability, 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


def log_loss(score: np.ndarray, y: np.ndarray) -> float:
    """The mean of minus the logarithm of the probability of what came."""
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -score, score))))


def main(out: Path) -> None:
    """Find the weights by cross-validation, print and draw them and the losses on new cases."""
    X, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=1, stratify=y)
    seen, new = (np.empty((len(rows), len(MODELS))) for rows in (train, test))
    for k, model in enumerate(MODELS.values()):
        ahead = cross_val_predict(model, train, y_train, cv=10, method="predict_proba")
        seen[:, k] = log_odds(ahead[:, 1])
        new[:, k] = log_odds(model.fit(train, y_train).predict_proba(test)[:, 1])
    result = pairstep.minimize(pairstep.Logistic(seen, y_train), pairstep.Simplex(), tol=1e-10)
    print(f"weights: {result.status} after {result.n_iter} iterations")
    print(f"sum of the weights: {math.fsum(result.x)}")
    losses = {name: log_loss(new[:, k], y_test) for k, name in enumerate(MODELS)}
    losses["plain average"] = log_loss(new.mean(axis=1), y_test)
    losses["pairstep"] = log_loss(new @ result.x, y_test)
    for name, loss in losses.items():
        print(f"log loss on new cases, {name}: {loss:.4f}")
    print(f"on the cases seen: {result.fun:.4f}, best model: {best_alone(seen, y_train):.4f}")

    figure, (left, right) = panels(1, 2, (11.5, 4.6))
    left.barh(list(MODELS), result.x, color=BLUE)
    left.invert_yaxis()
    left.set(title="Weights")
    names = sorted(losses, key=lambda name: losses[name])
    colours = [{"pairstep": BLUE, "plain average": GREY}.get(name, PALE) for name in names]
    right.barh(names, [losses[name] for name in names], color=colours)
    right.invert_yaxis()
    right.set(title="Log loss on new cases")
    save(figure, out)


def best_alone(scores: np.ndarray, y: np.ndarray) -> float:
    """The smallest loss of a single model."""
    return min(log_loss(column, y) for column in scores.T)


if __name__ == "__main__":
    run(main, __doc__)
