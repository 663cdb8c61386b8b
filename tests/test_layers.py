"""Layers for PyTorch and JAX, with the real libraries where they are installed."""

import numpy as np
import pytest

import pairstep
from pairstep import layers


def problem(batch, n, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(*batch, 2 * n, n))
    return np.swapaxes(F, -1, -2) @ F / n, rng.normal(size=(*batch, n))


def test_a_batch_of_any_shape():
    Q, c = problem((2, 3), 4)
    given = {
        "Q": Q, "c": c[0, 0], "total": np.array([1.0, 2.0])[:, None], "lower": np.array(0.0),
        "upper": np.full(4, 0.9),
    }  # fmt: skip
    x = layers.solve(given, 1e-8)
    assert x.shape == (2, 3, 4)
    single = pairstep.solve_qp(Q[1, 2], c[0, 0], total=2.0, upper=0.9)
    np.testing.assert_array_equal(x[1, 2], single.x)
    v = np.random.default_rng(1).normal(size=x.shape)
    found = layers.derivatives(given, x, v, "one-sided")
    shapes = {name: value.shape for name, value in given.items()}
    assert {name: value.shape for name, value in found.items()} == shapes
    one = single.vjp(v[1, 2])
    np.testing.assert_allclose(found["Q"][1, 2], one["Q"], atol=1e-9)


@pytest.mark.parametrize("kind", ["one-sided", "smoothed"])
def test_a_vertex(kind):
    """All variables are at bounds, so no free variable gives the multiplier."""
    Q, c, upper = np.diag([1.0, 2.0, 3.0]), np.array([-3.0, 0.5, 1.0]), np.full(3, 1.0)
    given = {"Q": Q, "c": c, "total": np.array(1.0), "lower": np.zeros(3), "upper": upper}
    x, v = layers.solve(given, 1e-8), np.array([1.0, -2.0, 0.5])
    assert x.tolist() == [1.0, 0.0, 0.0]
    found = layers.derivatives(given, x, v, kind)
    expected = pairstep.solve_qp(Q, c, upper=upper).vjp(v, derivative=kind)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-12, err_msg=name)


def test_a_missing_library_names_the_extra(monkeypatch):
    import sys

    for name in ("torch", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, f"pairstep.{name}", raising=False)
        with pytest.raises(ImportError, match=rf"pip install 'pairstep\[{name}\]'"):
            __import__(f"pairstep.{name}")


class TestTorch:
    @pytest.fixture(autouse=True)
    def library(self):
        self.torch = pytest.importorskip("torch")
        self.layer = pytest.importorskip("pairstep.torch")

    def tensors(self, batch=(), n=4, seed=0):
        Q, c = problem(batch, n, seed)
        return (self.torch.tensor(a, requires_grad=True) for a in (Q, c))

    def test_gradcheck(self):
        Q, c = self.tensors((3,))
        total = self.torch.tensor([0.8, 1.0, 1.5], dtype=self.torch.float64, requires_grad=True)
        lower = self.torch.full((4,), -0.2, dtype=self.torch.float64, requires_grad=True)
        upper = self.torch.full((3, 4), 0.7, dtype=self.torch.float64, requires_grad=True)

        def solve(Q, c, total, lower, upper):
            Q = (Q + Q.mT) / 2
            return self.layer.solve_qp(Q, c, total=total, lower=lower, upper=upper, tol=1e-13)

        assert self.torch.autograd.gradcheck(solve, (Q, c, total, lower, upper), atol=1e-6)

    def test_gradcheck_of_least_squares_and_projections(self):
        A, b = (self.torch.tensor(np.random.default_rng(k).normal(size=s), requires_grad=True)
                for k, s in enumerate([(2, 6, 3), (2, 6)]))  # fmt: skip
        options = {"lower": -1.0, "ridge": 0.1, "tol": 1e-13}
        check = self.torch.autograd.gradcheck
        assert check(lambda A, b: self.layer.simplex_lstsq(A, b, **options), (A, b), atol=1e-6)
        y = self.torch.tensor(np.random.default_rng(2).normal(size=(5, 4)), requires_grad=True)
        assert check(lambda y: self.layer.project(y, upper=0.6), (y,), atol=1e-6)

    def test_a_shared_matrix(self):
        Q, _ = self.tensors()
        _, c = self.tensors((5,))
        x = self.layer.solve_qp(Q, c)
        x[:, 0].sum().backward()
        assert (Q.grad.shape, c.grad.shape) == ((4, 4), (5, 4))

    def test_vmap(self):
        Q, c = self.tensors((5,))
        v = self.torch.randn(5, 4, dtype=self.torch.float64)

        def loss(Q, c, v):
            return (self.layer.solve_qp(Q, c) * v).sum()

        slopes = self.torch.func.vmap(self.torch.func.grad(loss, argnums=(0, 1)))(Q, c, v)
        together = self.torch.autograd.grad(loss(Q, c, v), (Q, c))
        for one, other in zip(slopes, together, strict=True):
            self.torch.testing.assert_close(one, other)
        shared = self.torch.func.vmap(lambda c: self.layer.solve_qp(Q[0], c))(c)
        self.torch.testing.assert_close(shared, self.layer.solve_qp(Q[0], c))

    def test_single_precision(self):
        Q, c = (t.detach().float() for t in self.tensors((2,)))
        x = self.layer.solve_qp(Q, c.requires_grad_())
        assert x.dtype == self.torch.float32
        x[:, 1].sum().backward()
        assert c.grad.dtype == self.torch.float32


class TestJax:
    @pytest.fixture(autouse=True)
    def library(self):
        self.jax = pytest.importorskip("jax")
        self.layer = pytest.importorskip("pairstep.jax")
        with self.jax.enable_x64(True):
            yield

    def test_derivatives(self):
        from jax.test_util import check_grads

        Q, c = problem((3,), 4)

        def solve(Q, c, total):
            Q = (Q + Q.mT) / 2
            return self.layer.solve_qp(Q, c, total=total, lower=-0.2, upper=0.9, tol=1e-13)

        total = np.array([0.8, 1.0, 1.5])
        check_grads(solve, (Q, c, total), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)

    def test_least_squares_and_projections(self):
        from jax.test_util import check_grads

        rng = np.random.default_rng(3)
        A, b, y = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 6)), rng.normal(size=(5, 4))
        check_grads(
            lambda A, b: self.layer.simplex_lstsq(A, b, lower=-1.0, ridge=0.1, tol=1e-13), (A, b),
            order=1, modes=["rev"], atol=1e-5, rtol=1e-5,
        )  # fmt: skip
        check_grads(
            lambda y: self.layer.project(y, upper=0.6), (y,), order=1, modes=["rev"], atol=1e-5
        )

    def test_jit_and_vmap(self):
        Q, c = problem((5,), 4)
        v = np.random.default_rng(4).normal(size=(5, 4))

        def loss(Q, c, v):
            return (self.layer.solve_qp(Q, c) * v).sum()

        jax = self.jax
        slopes = jax.vmap(jax.jit(jax.grad(loss, argnums=(0, 1))))(Q, c, v)
        together = jax.jit(jax.grad(loss, argnums=(0, 1)))(Q, c, v)
        for one, other in zip(slopes, together, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        shared = jax.vmap(lambda c: self.layer.solve_qp(Q[0], c))(c)
        np.testing.assert_allclose(shared, self.layer.solve_qp(Q[0], c))
