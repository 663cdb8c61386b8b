"""Stacking classifiers by log loss
================================

Combine classifiers with the weights that minimize the log loss.

Five classifiers predict whether a tumor is benign. Each one gives a score, the log odds. The
stacked score is a weighted average with weights that are nonnegative and sum to one. The weights
minimize the log loss of cross-validated scores::

    minimize    mean log(1 + exp(-s_i (Zx)_i))
    subject to  x >= 0, sum(x) = 1

A single overconfident classifier has a large loss where it is wrong. An average reduces this
risk. The data come with scikit-learn.
"""

import argparse
import math

import matplotlib.pyplot as plt
import numpy as np
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
    "neighbors": make_pipeline(StandardScaler(), KNeighborsClassifier(11)),
    "naive Bayes": GaussianNB(),
    "quadratic": QuadraticDiscriminantAnalysis(reg_param=0.1),
}

# %%
# Compute the scores
# ------------------
#
# Training scores come from 10-fold cross-validation. Test scores come from models fitted to the
# whole training set. Clipping keeps the scores finite.


def log_odds(probability):
    """Return the log odds of clipped probabilities."""
    p = np.clip(probability, 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


def log_loss(score, y):
    """Return the mean log loss of scores."""
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -score, score))))


X, y = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=1, stratify=y)
Z_train, Z_test = np.empty((len(train), len(MODELS))), np.empty((len(test), len(MODELS)))
for k, model in enumerate(MODELS.values()):
    predicted = cross_val_predict(model, train, y_train, cv=10, method="predict_proba")
    Z_train[:, k] = log_odds(predicted[:, 1])
    Z_test[:, k] = log_odds(model.fit(train, y_train).predict_proba(test)[:, 1])

# %%
# Find the weights
# ----------------

result = pairstep.minimize(pairstep.Logistic(Z_train, y_train), pairstep.Simplex(), tol=1e-10)
print(f"weights: {result.status} after {result.n_iter} iterations")
print(f"sum of the weights: {math.fsum(result.x)}")
best_alone = min(log_loss(column, y_train) for column in Z_train.T)
print(f"training log loss: {result.fun:.4f}, best single model: {best_alone:.4f}")
losses = {name: log_loss(Z_test[:, k], y_test) for k, name in enumerate(MODELS)}
losses["average"] = log_loss(Z_test.mean(axis=1), y_test)
losses["pairstep"] = log_loss(Z_test @ result.x, y_test)
for name, loss in losses.items():
    print(f"test log loss, {name}: {loss:.4f}")

# %%
# Plot weights and test losses
# ----------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
left.barh(list(MODELS), result.x)
left.invert_yaxis()
left.set(title="Weights")
names = sorted(losses, key=losses.get)
colors = [{"pairstep": "C0", "average": "0.5"}.get(name, "0.8") for name in names]
right.barh(names, [losses[name] for name in names], color=colors)
right.invert_yaxis()
right.set(title="Log loss on the test set")

parser = argparse.ArgumentParser(description="Stack classifiers by log loss.")
parser.add_argument("--out", default="log_loss.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
