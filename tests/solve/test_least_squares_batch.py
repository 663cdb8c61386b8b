"""Least squares with a matrix per problem, compared with single solves."""

import numpy as np
import pytest

from pairstep import simplex_lstsq

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(30, 12, 5)), RNG.normal(size=(30, 12))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"ridge": 0.3, "lower": -1.0}, {"total": 2.0, "upper": 0.7},
        {"l1": 0.2, "center": 0.1, "lower": -2.0},
        {"groups": [0, 0, 1, 1, 1], "group_upper": {0: 0.3}},
    ],
    ids=["simplex", "ridge", "bounds", "l1", "groups"],
)  # fmt: skip
def test_the_same_solutions_as_single_solves(options):
    batch = simplex_lstsq(A, B, **options, tol=1e-12)
    assert batch.success.all()
    for k in range(30):
        single = simplex_lstsq(A[k], B[k], **options, tol=1e-12)
        np.testing.assert_allclose(batch.x[k], single.x, atol=1e-9)
        assert batch.fun[k] == pytest.approx(single.fun, rel=1e-12)


def test_one_right_hand_side_for_all_matrices():
    batch = simplex_lstsq(A, B[0])
    np.testing.assert_allclose(batch.x[3], simplex_lstsq(A[3], B[0]).x, atol=1e-8)


def test_matrices_as_lists():
    np.testing.assert_array_equal(simplex_lstsq(A.tolist(), B.tolist()).x, simplex_lstsq(A, B).x)
