"""Derivatives of functions written with JAX or PyTorch, computed by these libraries in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._validation import Array, choice
from ..extras import needed

LIBRARIES = ("jax", "torch")


def value_and_gradient(value: Callable[[Any], Any], library: str) -> Callable[[Array], Any]:
    """Return a function that computes value and gradient with NumPy arrays."""
    if choice("library of gradient", library, LIBRARIES) == "jax":
        jax = needed("jax", by="Smooth")
        both = jax.jit(jax.value_and_grad(value))

        def with_jax(x: Array) -> tuple[float, Array]:
            with jax.enable_x64(True):
                found, gradient = both(x)
                return float(found), np.asarray(gradient)

        return with_jax

    torch = needed("torch", by="Smooth")

    def with_torch(x: Array) -> tuple[float, Array]:
        point = torch.tensor(x, requires_grad=True)
        found = value(point)
        (gradient,) = torch.autograd.grad(found, point)
        return found.item(), gradient.numpy()

    return with_torch


def hessian(value: Callable[[Any], Any], library: str) -> Callable[[Array], Array]:
    """Return a function that computes the Hessian with NumPy arrays."""
    if choice("library of hessian", library, LIBRARIES) == "jax":
        jax = needed("jax", by="Smooth")
        second = jax.jit(jax.hessian(value))

        def with_jax(x: Array) -> Array:
            with jax.enable_x64(True):
                return np.asarray(second(x))

        return with_jax

    torch = needed("torch", by="Smooth")
    return lambda x: torch.autograd.functional.hessian(value, torch.tensor(x)).numpy()
