"""The reference optima of the experiments, against SciPy and the optimality conditions."""

import math

import numpy as np
import pytest
import scipy.optimize

from pairstep.paper.problems import box_optimum, equality_optimum, least_squares


def test_columns_are_scaled_only_on_request():
    A, b = least_squares(3, 50)
    assert A.shape == (50, 50)
    assert b.shape == (50,)
    norms = [np.linalg.norm(least_squares(3, 50, scaled)[0], axis=0) for scaled in (False, True)]
    assert norms[0].max() / norms[0].min() < 3
    assert norms[1].max() / norms[1].min() > 10


@pytest.mark.parametrize("weights", [None, np.array([1.0, -2.0, 0.5, 3.0, 1.0, 0.1])])
def test_equality_optimum_solves_the_kkt_system(weights):
    A, b = least_squares(0, 6)
    a = np.ones(6) if weights is None else weights
    system = np.block([[A.T @ A, a[:, None]], [a, np.zeros(1)]])
    x = np.linalg.solve(system, np.append(A.T @ b, 0.0))[:6]
    value = 0.5 * np.sum((A @ x - b) ** 2)
    assert equality_optimum(A, b, weights) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("limits", [(0.0, -1.0, 1.0), (1.0, 0.0, math.inf), (0.0, -0.1, 0.1)])
@pytest.mark.parametrize("seed", range(5))
def test_box_optimum_agrees_with_scipy(seed, limits):
    total, lower, upper = limits
    A, b = least_squares(seed, 8)
    H, c = A.T @ A, -A.T @ b
    x, value = box_optimum(H, c, *limits)
    assert x.sum() == pytest.approx(total, abs=1e-12)
    assert (x >= lower - 1e-12).all()
    assert (x <= upper + 1e-12).all()
    peer = scipy.optimize.minimize(
        lambda z: z @ (0.5 * H @ z + c), np.full(8, total / 8), jac=lambda z: H @ z + c,
        bounds=[limits[1:]] * 8, method="SLSQP", options={"ftol": 1e-15, "maxiter": 1000},
        constraints={"type": "eq", "fun": lambda z: z.sum() - total, "jac": np.ones_like},
    )  # fmt: skip
    assert value <= peer.fun + 1e-9 * abs(value)
    assert value == pytest.approx(peer.fun, rel=1e-7)


def test_box_optimum_with_every_variable_at_a_bound():
    c = np.array([-10.0, 10.0, -20.0, 20.0])
    x, _ = box_optimum(np.eye(4), c, 0.0, -1.0, 1.0)
    assert x.tolist() == [1.0, -1.0, 1.0, -1.0]


def test_box_optimum_satisfies_the_optimality_conditions():
    A, b = least_squares(1, 300)
    H, c = A.T @ A, -A.T @ b
    x, _ = box_optimum(H, c, 0.0, -1.0, 1.0)
    gradient = H @ x + c
    free = (x > -1) & (x < 1)
    multiplier = gradient[free].mean()
    assert 0 < free.sum() < 300
    assert np.abs(gradient[free] - multiplier).max() < 1e-8
    assert (gradient[x == -1] > multiplier).all()
    assert (gradient[x == 1] < multiplier).all()
