"""Attention with exact zeros
==========================

Replace the softmax of an attention layer by a projection onto the simplex with a cap.

An attention layer averages the values of tokens with weights that depend on scores. Softmax gives
every token a positive weight, so irrelevant tokens always disturb the average. The point of the
simplex that is nearest to the scores has exact zeros (*sparsemax*). With a cap on each weight, at
least a given number of tokens share the average::

    minimize    |weights - scores|^2 / 2
    subject to  0 <= weights <= 1/4, sum(weights) = 1

:func:`pairstep.solve_qps` computes the weights of all sequences in one call, and
:meth:`~pairstep.BatchResult.vjp` passes derivatives back to the scores. With PyTorch or JAX the
same layer is one line: ``pairstep.torch.project(scores, upper=0.25)``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import pairstep

# %%
# Make the data
# -------------
#
# Every sequence has 32 tokens with a key and a value, and a query. A hidden matrix decides how well
# a key fits the query. The target is the mean value of the four tokens that fit best.

rng = np.random.default_rng(0)
TOKENS, WIDTH, RELEVANT = 32, 6, 4
hidden = rng.normal(size=(WIDTH, WIDTH))


def draw(count):
    """Return queries, keys, values, and the mean value of the relevant tokens."""
    queries = rng.normal(size=(count, WIDTH))
    keys = rng.normal(size=(count, TOKENS, WIDTH))
    values = rng.normal(size=(count, TOKENS))
    fit = scores_of(hidden, queries, keys)
    best = np.argsort(-fit, axis=1)[:, :RELEVANT]
    return queries, keys, values, np.take_along_axis(values, best, axis=1).mean(axis=1)


def scores_of(matrix, queries, keys):
    """Return ``query' matrix key`` for each token."""
    return np.einsum("bi,ij,btj->bt", queries, matrix, keys, optimize=True)


train, test = draw(1000), draw(1000)

# %%
# Two attention layers
# --------------------
#
# Each returns the weights, and a function that passes the derivative of the loss with respect to
# the weights back to the scores.


def softmax(scores):
    """All weights are positive."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)

    def backward(slopes):
        return weights * (slopes - (weights * slopes).sum(axis=1, keepdims=True))

    return weights, backward


def simplex(scores):
    """At least four weights are positive, and most are 0."""
    batch = pairstep.solve_qps(np.eye(TOKENS), -scores, upper=1 / RELEVANT)
    return batch.x, lambda slopes: -batch.vjp(slopes)["c"]


# %%
# Train both
# ----------
#
# Adam on the squared error of the output, from the same start.


def loss_of(layer, matrix, data):
    """Return the mean squared error, its derivative, and the weights."""
    queries, keys, values, targets = data
    weights, backward = layer(scores_of(matrix, queries, keys))
    errors = (weights * values).sum(axis=1) - targets
    slopes = backward(2 * errors[:, None] * values / len(errors))
    gradient = np.einsum("bi,bt,btj->ij", queries, slopes, keys, optimize=True)
    return float(np.mean(errors**2)), gradient, weights


def trained(layer, steps=300, rate=0.05):
    """Return the matrix and the test errors during training."""
    matrix = 0.1 * np.random.default_rng(1).normal(size=(WIDTH, WIDTH))
    mean, square = np.zeros_like(matrix), np.zeros_like(matrix)
    errors = []
    for step in range(1, steps + 1):
        _, gradient, _ = loss_of(layer, matrix, train)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        scale = np.sqrt(square / (1 - 0.99**step)) + 1e-12
        matrix = matrix - rate * mean / (1 - 0.9**step) / scale
        errors.append(loss_of(layer, matrix, test)[0])
    return matrix, errors


layers = {"softmax": softmax, "simplex, at most 1/4 each": simplex}
found = {name: trained(layer) for name, layer in layers.items()}
without = float(np.mean(test[3] ** 2))
for name, (_, errors) in found.items():
    print(
        f"{name}: test error {errors[-1]:.4f}, {100 * errors[-1] / without:.1f} % of no attention"
    )

# %%
# Draw the weights of one sequence
# --------------------------------

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1, 2]
)
for color, (name, (matrix, errors)) in zip(("C7", "C0"), found.items(), strict=True):
    left.semilogy(errors, color=color, label=name)
    weights = loss_of(layers[name], matrix, test)[2][0]
    shift = -0.2 if color == "C7" else 0.2
    right.bar(np.arange(TOKENS) + shift, weights, width=0.4, color=color, label=name)
    print(f"{name}: {np.mean(weights > 1e-9) * TOKENS:.0f} of {TOKENS} weights are positive")
fit = scores_of(hidden, test[0], test[1])[0]
for token in np.argsort(-fit)[:RELEVANT]:
    right.axvspan(token - 0.5, token + 0.5, color="C2", alpha=0.15, linewidth=0)
left.set(xlabel="step", ylabel="test error", title="squared error")
right.set(xlabel="token", ylabel="weight", title="one test sequence; relevant tokens are shaded")
right.set_ylim(0, 0.33)
right.legend()

parser = argparse.ArgumentParser(description="Attention on the simplex.")
parser.add_argument("--out", default="simplex_attention.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
