"""Solves that PyTorch can differentiate: `solve_qp`, `simplex_lstsq` and `project`.

Tensors may have any number of leading batch axes, which broadcast against each other; all problems
of a batch are solved in one native call. Tensors of any floating type are computed in float64 on
the CPU, and results have the type and device of the first argument.
"""

from __future__ import annotations

from typing import Any

from . import layers
from .extras import needed
from .solve.derivatives import Kind

torch = needed("torch", by="pairstep.torch")
once_differentiable = needed("torch.autograd.function", by="pairstep.torch").once_differentiable


def solve_qp(
    Q: Any,
    c: Any,
    *,
    total: Any = 1.0,
    lower: Any = 0.0,
    upper: Any = None,
    tol: float = 1e-8,
    derivative: Kind = "one-sided",
) -> Any:
    """Minimize ``x'Qx / 2 + c'x`` with ``sum(x) = total`` and ``lower <= x <= upper``.

    Parameters
    ----------
    Q : tensor of shape (..., n, n)
        Symmetric positive semidefinite matrices. Derivatives are symmetric too.
    c : tensor of shape (..., n)
        Linear terms.
    total : float or tensor of shape (...)
        The sums.
    lower, upper : float or tensor of shape (..., n)
        The bounds; ``upper=None`` means none.
    tol : float
        As in `pairstep.solve_qp`.
    derivative : {"one-sided", "smoothed"}
        What to do at bounds, as in `Result.vjp`.

    Returns
    -------
    tensor of shape (..., n)
        The solutions. It raises ValueError if a problem is infeasible or could not be solved.

    Examples
    --------
    >>> import pytest; torch = pytest.importorskip("torch")
    >>> import pairstep.torch
    >>> c = torch.tensor([0.0, 0.1, 0.2], dtype=torch.float64, requires_grad=True)
    >>> x = pairstep.torch.solve_qp(torch.eye(3, dtype=torch.float64), c)
    >>> x[0].backward()
    >>> c.grad
    tensor([-0.6667,  0.3333,  0.3333], dtype=torch.float64)
    """
    tensors = [
        torch.as_tensor(value, dtype=torch.float64, device=Q.device)
        for value in (Q, c, total, lower, layers.upper_bound(upper))
    ]
    return _Solve.apply(*tensors, tol, derivative).to(Q.dtype)


def simplex_lstsq(
    A: Any,
    b: Any,
    *,
    total: Any = 1.0,
    lower: Any = 0.0,
    upper: Any = None,
    ridge: Any = 0.0,
    tol: float = 1e-8,
    derivative: Kind = "one-sided",
) -> Any:
    """Minimize ``|Ax - b|^2 / 2 + ridge |x|^2 / 2`` with a sum and bounds, as `solve_qp` does.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
        One column per variable.
    b : tensor of shape (..., m)
        Right-hand sides.
    total, lower, upper, tol, derivative
        As in `solve_qp`.
    ridge : float or tensor
        Weight of the squared norm of x.

    Returns
    -------
    tensor of shape (..., n)
        The solutions.
    """
    wide = A.to(torch.float64)
    identity = torch.eye(A.shape[-1], dtype=torch.float64, device=A.device)
    Q = wide.mT @ wide + ridge * identity
    c = -(wide.mT @ b.to(torch.float64)[..., None])[..., 0]
    options = {"total": total, "lower": lower, "upper": upper, "tol": tol}
    return solve_qp(Q, c, **options, derivative=derivative).to(A.dtype)


def project(y: Any, *, total: float = 1.0, lower: float = 0.0, upper: float | None = None) -> Any:
    """Return the nearest points that sum to `total` within the bounds; sparsemax by default.

    Parameters
    ----------
    y : tensor of shape (..., n)
        The points to project.
    total, lower, upper : float
        The sum and the bounds, the same for all points.

    Returns
    -------
    tensor of shape (..., n)
        The projections.

    Examples
    --------
    >>> import pytest; torch = pytest.importorskip("torch")
    >>> import pairstep.torch
    >>> pairstep.torch.project(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return _Project.apply(y, float(total), float(lower), float(layers.upper_bound(upper)))


NAMES = tuple(layers.AXES)


def _arrays(tensors: Any) -> dict[str, Any]:
    return {
        name: tensor.detach().cpu().numpy() for name, tensor in zip(NAMES, tensors, strict=True)
    }


class _Solve(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(Q: Any, c: Any, total: Any, lower: Any, upper: Any, tol: float, kind: Kind) -> Any:
        x = layers.solve(_arrays((Q, c, total, lower, upper)), tol)
        return torch.from_numpy(x).to(Q.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, _, ctx.kind = inputs
        ctx.save_for_backward(*tensors, output)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, v: Any) -> Any:
        *tensors, x = ctx.saved_tensors
        return (*_Derivatives.apply(*tensors, x, v, ctx.kind), None, None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        *tensors, tol, kind = inputs
        return _Solve.apply(*_in_front(in_dims, tensors), tol, kind), 0


class _Derivatives(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """The derivatives of a loss with respect to the tensors; a function too, for vmap."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        *tensors, x, v, kind = inputs
        found = layers.derivatives(
            _arrays(tensors), x.detach().cpu().numpy(), v.detach().cpu().numpy(), kind
        )
        return tuple(torch.from_numpy(found[name]).to(v.device) for name in NAMES)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *v: Any) -> Any:
        raise NotImplementedError("pairstep.torch.solve_qp has first derivatives only")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        # Every problem needs derivatives of its own, also with respect to what all share.
        *tensors, x, v, kind = inputs
        own = [
            value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)
            for value, dim in zip((*tensors, x, v), in_dims, strict=False)
        ]
        front = _in_front((0,) * len(NAMES), own[: len(NAMES)])
        found = _Derivatives.apply(*front, *own[len(NAMES) :], kind)
        shaped = [
            f.reshape(t.shape) if f.numel() == t.numel() else f.flatten(1).sum(1)  # one number
            for f, t in zip(found, own, strict=False)
        ]
        return tuple(shaped), (0,) * len(NAMES)


class _Project(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(y: Any, total: float, lower: float, upper: float) -> Any:
        x = layers.project(y.detach().cpu().double().numpy(), total, lower, upper)
        return torch.from_numpy(x).to(y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, _, ctx.lower, ctx.upper = inputs
        ctx.save_for_backward(output)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, v: Any) -> Any:
        (x,) = ctx.saved_tensors
        found = layers.project_derivative(
            x.detach().cpu().numpy(), v.detach().cpu().numpy(), ctx.lower, ctx.upper
        )
        return torch.from_numpy(found).to(v), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, y: Any, *rest: Any) -> Any:
        return _Project.apply(y.movedim(in_dims[0], 0), *rest), 0


def _in_front(in_dims: Any, tensors: Any) -> list[Any]:
    """Move the axis that vmap adds to the front of every tensor that has it."""
    named = list(zip(NAMES, tensors, in_dims, strict=False))
    n = tensors[0].shape[-1]
    depth = max(value.ndim - (dim is not None) - layers.AXES[name] for name, value, dim in named)
    moved = []
    for name, value, dim in named:
        if dim is None:
            moved.append(value)
            continue
        front = value.movedim(dim, 0)
        if front.ndim == layers.AXES[name]:  # a bound given as one number
            front = front[:, None].expand(-1, n)
        # Batch axes that other tensors have come after the new one.
        missing = depth - (front.ndim - 1 - layers.AXES[name])
        moved.append(front.reshape(front.shape[0], *(1,) * missing, *front.shape[1:]))
    return moved
