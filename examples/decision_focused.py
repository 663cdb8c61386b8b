"""A predictor that learns from decisions
=======================================

Train a return forecast by the portfolios it leads to, not by its squared error.

An investor forecasts returns from a few signals and then chooses a portfolio::

    minimize    aversion x'Cx / 2 - forecast'x
    subject to  0 <= x <= 0.3, sum(x) = 1

The usual way has two steps: fit the forecast by least squares, then optimize. But not all errors of
a forecast matter: those that do not change the portfolio are harmless. *Decision-focused* learning
minimizes what counts, the realized objective of the portfolio, by gradient descent through the
solver. All portfolios of a step are solved in one call, :func:`pairstep.solve_qps`, and
:meth:`~pairstep.BatchResult.vjp` returns the derivative with respect to the forecasts.
"""

import argparse
import time

import matplotlib.pyplot as plt
import numpy as np

import pairstep

# %%
# Make the data
# -------------
#
# The expected return of half of the assets is a linear function of the signals. The other half is
# protected: it gains as much, but does not lose. The forecast is linear, so it cannot be right
# everywhere. (Real returns are so noisy that a difference between two forecasts would be luck.)

rng = np.random.default_rng(7)
ASSETS, SIGNALS, TRAIN, TEST = 20, 5, 400, 2000
mixing = rng.normal(size=(SIGNALS, ASSETS)) / np.sqrt(SIGNALS)
is_protected = np.arange(ASSETS) % 2 == 0
loadings = 0.3 * rng.normal(size=(3, ASSETS))
covariance = loadings.T @ loadings + 0.1 * np.eye(ASSETS)


def expected(signals):
    """Return the expected returns."""
    linear = signals @ mixing
    return np.where(is_protected, np.maximum(linear, 0.0), linear)


def draw(count):
    """Return signals and realized returns."""
    signals = rng.normal(size=(count, SIGNALS))
    noise = rng.multivariate_normal(np.zeros(ASSETS), covariance, count)
    return signals, expected(signals) + noise


signals, returns = draw(TRAIN)
test_signals, test_returns = draw(TEST)

# %%
# Portfolios and their derivatives
# --------------------------------

AVERSION = 2.0
risk = AVERSION * covariance


def portfolios(forecasts):
    """Return one portfolio per row of forecasts."""
    return pairstep.solve_qps(risk, -forecasts, upper=0.3)


def cost(x, realized):
    """Return the mean realized objective: risk minus return."""
    return float(np.mean(np.einsum("bi,ij,bj->b", x, risk, x) / 2 - (realized * x).sum(axis=1)))


# %%
# Two steps
# ---------

two_steps = np.linalg.lstsq(signals, returns, rcond=None)[0]

# %%
# Descent through the solver
# --------------------------
#
# The derivative of the cost with respect to a portfolio is ``risk x - returns``. The derivative
# with respect to the linear term comes from the solver. "smoothed" derivatives also see assets
# that are just outside the portfolio. The steps are those of Adam.

weights = two_steps.copy()
momentum, scale = np.zeros_like(weights), np.zeros_like(weights)
costs, best, best_cost = [], weights, np.inf
validation = slice(0, TRAIN // 4)  # these samples choose when to stop
training = slice(TRAIN // 4, TRAIN)
began = time.perf_counter()
for step in range(1, 201):
    batch = portfolios(signals[training] @ weights)
    v = (batch.x @ risk - returns[training]) / len(batch.x)
    slope = -signals[training].T @ batch.vjp(v, derivative="smoothed")["c"]
    momentum = 0.9 * momentum + 0.1 * slope
    scale = 0.999 * scale + 0.001 * slope**2
    weights = weights - 0.02 * (momentum / (1 - 0.9**step)) / (
        np.sqrt(scale / (1 - 0.999**step)) + 1e-8
    )
    held_out = cost(portfolios(signals[validation] @ weights).x, returns[validation])
    test = cost(portfolios(test_signals[:500] @ weights).x, test_returns[:500])
    costs.append((cost(batch.x, returns[training]), held_out, test))
    if held_out < best_cost:
        best, best_cost = weights, held_out
seconds = time.perf_counter() - began

# %%
# Compare them on new data
# ------------------------
#
# "Gain" is the improvement over equal weights, as a part of what a perfect forecast of the expected
# returns would gain.

even = cost(np.full((TEST, ASSETS), 1 / ASSETS), test_returns)
ideal = cost(portfolios(expected(test_signals)).x, test_returns)


def gain(forecasts):
    """Return the part of the possible gain, in percent."""
    return 100 * (even - cost(portfolios(forecasts).x, test_returns)) / (even - ideal)


usual, focused = gain(test_signals @ two_steps), gain(test_signals @ best)
errors = [float(np.mean((test_signals @ w - test_returns) ** 2)) for w in (two_steps, best)]
print(f"two steps: gain {usual:.1f} %, mean squared error {errors[0]:.3f}")
print(f"decision-focused: gain {focused:.1f} %, mean squared error {errors[1]:.3f}")
print(f"200 steps, each with {3 * TRAIN // 4} portfolios and derivatives: {seconds:.2f} s")

# %%
# Draw
# ----

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
labels = ("training", "validation", "new data")
for values, label in zip(np.array(costs).T, labels, strict=True):
    axes[0].plot(values, label=label)
axes[0].set(xlabel="step", ylabel="risk minus return", title="descent from least squares")
axes[0].legend()
bars = axes[1].bar(["two steps", "decision-focused"], [usual, focused], color=["C7", "C0"])
axes[1].bar_label(bars, fmt="%.0f %%")
axes[1].set(ylabel="part of the possible gain, %", title="new data", ylim=(0, 108))

parser = argparse.ArgumentParser(description="Train a forecast through portfolios.")
parser.add_argument("--out", default="decision_focused.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
