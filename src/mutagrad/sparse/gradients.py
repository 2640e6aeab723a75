"""Asking for derivatives by sparse tensors and of sparse tensors: by their values, and of their values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.gradcheck import gradcheck, gradgradcheck
from ..base.errors import BadArgument
from ..core.backward import backward, grad
from ..tensors.tensor import Tensor
from .convert import to_dense
from .coordinates import Coordinates, coordinates, everywhere
from .table import answers
from .tensor import SparseTensor


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)) else list(tensors)


def _values(tensors: Any) -> list[Any]:
    return [x._numbers if isinstance(x, SparseTensor) else x for x in _listed(tensors)]


def _seeds(tensors: Any, gradients: Any) -> list[Any] | None:
    """Return the gradients to start from, those of sparse tensors as gradients of their values."""
    if gradients is None:
        return None
    return [x._seed(g) if isinstance(x, SparseTensor) and isinstance(g, Tensor) else g
            for x, g in zip(_listed(tensors), _listed(gradients))]


@answers("grad")
def _grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *given: Any, **settings: Any) -> tuple[Any, ...]:
    found = grad(_values(outputs), _values(inputs), _seeds(outputs, grad_outputs), *given, **settings)
    return tuple(x._gradient(g) if isinstance(x, SparseTensor) and g is not None else g
                 for x, g in zip(_listed(inputs), found))


@answers("backward")
def _backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
              inputs: Any = None) -> None:
    backward(_values(tensors), _seeds(tensors, grad_tensors), retain_graph, create_graph,
             None if inputs is None else _values(inputs))
    return None


# ----------------------------------------------------------------------------------------------------------- gradcheck

def _everywhere(x: Any) -> Coordinates:
    """Return the same tensor with all its zeros as entries."""
    return everywhere(to_dense(x.detach()), coordinates(x).sparse_dim()).requires_grad_(x.requires_grad)


def _prepared(inputs: Any, masked: bool) -> list[Any]:
    """Return inputs whose entries are those that are to be varied."""
    given = _listed(inputs)
    return [(x.detach()._entries().requires_grad_(x.requires_grad) if masked or not isinstance(x, Coordinates)
             else _everywhere(x)) if isinstance(x, SparseTensor) else x for x in given]


def _on_values(func: Callable[..., Any], like: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of the values of sparse inputs that gives dense outputs."""
    def of_values(*values: Any) -> Any:
        result = func(*(x._with(v) if isinstance(x, SparseTensor) else v for x, v in zip(like, values)))
        outputs = result if isinstance(result, (list, tuple)) else (result,)
        return tuple(to_dense(y) if isinstance(y, SparseTensor) else y for y in outputs)

    return of_values


@answers("gradcheck")
def _gradcheck(func: Callable[..., Any], inputs: Any, *, masked: bool | None = None, **settings: Any) -> bool:
    like = _prepared(inputs, bool(masked))
    return gradcheck(_on_values(func, like), _values(like), **settings)


@answers("gradgradcheck")
def _gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, masked: bool = False,
                   **settings: Any) -> bool:
    like = _prepared(inputs, masked)
    return gradgradcheck(_on_values(func, like), _values(like), grad_outputs, **settings)


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """Return a gradcheck that takes sparse inputs: the one of this package does so in any case.

    >>> import mutagrad as mg
    >>> check = mg.sparse.as_sparse_gradcheck(mg.autograd.gradcheck)
    >>> x = mg.eye(2, dtype=mg.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x.to_dense().square(), (x,), masked=True)
    True
    """
    if not callable(gradcheck):
        raise BadArgument("as_sparse_gradcheck: expects a function",
                          fix="as_sparse_gradcheck(mutagrad.autograd.gradcheck)")

    def check(func: Callable[..., Any], inputs: Any, **settings: Any) -> bool:
        like = _prepared(inputs, bool(settings.pop("masked", False)))
        return gradcheck(_on_values(func, like), _values(like), **settings)  # type: ignore[no-any-return]

    return check


