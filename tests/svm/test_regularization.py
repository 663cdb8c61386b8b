"""The regularization path equals single fits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, path

X, Y = load_iris(return_X_y=True)
CS = [0.1, 1.0, 10.0, 3.0]  # not sorted


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("cache_size", [200, 0.01])
@pytest.mark.parametrize("Estimator", [SVC, SVR, NuSVR])
def test_every_point_is_a_fit(Estimator, kernel, cache_size):
    model = Estimator(kernel=kernel, gamma=0.2, cache_size=cache_size, tol=1e-8, dtype=np.float64)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    found = path(X, Y, CS, model=model, sample_weight=weights)
    assert found.parameter == "C"
    assert found.values.tolist() == CS
    assert (found.kkt_violation <= 1e-8).all()
    for k, C in enumerate(CS):
        alone = Estimator(**(model.get_params() | {"C": C})).fit(X, Y, weights)
        assert abs(found.n_support[k] - len(alone.support_)) <= 2
        np.testing.assert_allclose(found.intercept[k], alone.intercept_, atol=1e-5)
        np.testing.assert_allclose(found.coefficients[k].sum(axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("Estimator", [NuSVC, OneClassSVM])
def test_models_without_C_vary_nu(Estimator):
    nus = [0.1, 0.3, 0.5]
    y = Y if Estimator is NuSVC else None
    found = path(X, y, nus, model=Estimator(gamma=0.2, tol=1e-8, dtype=np.float64))
    assert found.parameter == "nu"
    assert (np.diff(found.n_support) > 0).all()
    for k, nu in enumerate(nus):
        alone = Estimator(nu=nu, gamma=0.2, tol=1e-8, dtype=np.float64).fit(X, y)
        np.testing.assert_allclose(found.intercept[k], alone.intercept_, atol=1e-5)


def test_a_precomputed_kernel_in_any_order_of_classes():
    order = np.random.default_rng(0).permutation(len(Y))
    model = SVC(kernel="linear", tol=1e-8, dtype=np.float64)
    expected = path(X[order], Y[order], CS, model=model)
    model.set_params(kernel="precomputed")
    found = path(X[order] @ X[order].T, Y[order], CS, model=model)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-6)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-9)


@pytest.mark.parametrize("Estimator", [NuSVC, OneClassSVM])
def test_the_memory_changes_nothing(Estimator):
    """If the matrix does not fit, each nu computes its own rows; the model is the same."""
    nus, y = [0.2, 0.4], Y if Estimator is NuSVC else None
    options = {"gamma": 0.2, "tol": 1e-8, "dtype": np.float64}
    whole, rows = (
        path(X, y, nus, model=Estimator(cache_size=size, **options)) for size in (200, 0.01)
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


def test_the_estimator_is_not_changed():
    model = SVC(C=7.0)
    path(X, Y, [1.0, 2.0], model=model)
    assert model.get_params() == SVC(C=7.0).get_params()
    assert not hasattr(model, "support_")


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    left, right = path(X, Y, CS).plot()
    assert len(left.lines) == 50
    assert right.lines[0].get_xdata().tolist() == CS
    pyplot.close("all")
