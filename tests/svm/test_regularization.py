"""The regularization path equals single fits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from pairstep.svm import SVC, SVR, NuSVC, OneClassSVM, path

X, Y = load_iris(return_X_y=True)
CS = [0.1, 1.0, 10.0, 3.0]  # not sorted


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, OneClassSVM])
def test_the_memory_changes_nothing(Estimator):
    """If the matrix does not fit, each C or nu computes its own rows; the model is the same."""
    options = {"gamma": 0.2, "tol": 1e-8, "dtype": np.float64}
    whole, rows = (
        path(X, Y, [0.2, 0.4], model=Estimator(cache_size=size, **options)) for size in (200, 0.01)
    )
    np.testing.assert_allclose(rows.intercept, whole.intercept, atol=1e-6)


def test_the_objective_is_that_of_the_dual():
    """One pair of classes, from the coefficients and the kernel alone."""
    two = Y < 2
    found = path(X[two], Y[two], [0.5, 5.0], model=SVC(kernel="linear", tol=1e-9))
    K = X[two] @ X[two].T
    for (z,), C, objective in zip(found.coefficients, (0.5, 5.0), found.objective, strict=True):
        assert (np.abs(z) <= C).all()
        assert objective == pytest.approx(z @ K @ z / 2 - np.abs(z).sum(), abs=1e-6)
    assert found.objective[1] < found.objective[0]


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    left, right = path(X, Y, CS).plot()
    assert len(left.lines) == 50
    assert right.lines[0].get_xdata().tolist() == CS
    pyplot.close("all")
