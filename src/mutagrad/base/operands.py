"""What arrays and tensors are to a type checker: at run time these classes are empty."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Operand:
    """Has Python's operators, each of which gives the like; and other attributes, of which nothing is said here."""

    __slots__ = ()

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, index: Any) -> Self: ...

        def __setitem__(self, index: Any, value: Any) -> None: ...

        def _unary(self) -> Self: ...

        def _binary(self, other: Any) -> Self: ...

        __neg__ = __pos__ = __abs__ = __invert__ = _unary
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _binary
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _binary
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary
        __eq__ = __ne__ = _binary  # type: ignore[assignment]

        def __bool__(self) -> bool: ...

        def __int__(self) -> int: ...

        def __index__(self) -> int: ...

        def __float__(self) -> float: ...

        def __len__(self) -> int: ...


class Array(Operand):
    """An array of any kind: NumPy's, or one that arrays/kinds.py describes. None is an instance of this class."""

    if TYPE_CHECKING:
        shape: tuple[int, ...]
        strides: tuple[int, ...]
        dtype: Any
        ndim: int
        size: int
        nbytes: int
        itemsize: int

        def _made(self, *arguments: Any, **settings: Any) -> Array: ...

        reshape = transpose = swapaxes = astype = copy = sum = prod = max = min = any = all = cumsum = take = _made


def is_pytorchs(kind: type) -> bool:
    """Whether a class is that of PyTorch's own tensors, which may be in the same program, or derived from it."""
    return not issubclass(kind, Operand) and any(
        base.__module__ == "torch" and base.__qualname__ == "Tensor" for base in kind.__mro__)


def kind_name(value: Any) -> str:
    """Return the name of a value's class, as errors say it: `Tensor` alone could be anybody's."""
    kind = type(value)
    return f"{kind.__name__} of PyTorch's (mutagrad.from_dlpack takes it)" if is_pytorchs(kind) else kind.__name__
