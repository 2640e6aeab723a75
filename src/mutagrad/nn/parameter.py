"""Tensors that belong to a module."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..base.device import device as device_class
from ..base.errors import BadArgument, BadValue
from ..base.operands import Array, kind_name
from ..core.dtypes import dtype as element_type
from ..core.storage import TensorBase
from ..ops.create.create import empty
from ..tensors.tensor import Tensor, disabled_torch_function

if TYPE_CHECKING:
    from typing_extensions import Self

    from .common_types import DeviceLike


class Parameter(Tensor):
    """A tensor that a module lists among its parameters, as soon as it is assigned to an attribute.

    >>> import mutagrad as mg
    >>> mg.nn.Parameter(mg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__: Any = staticmethod(disabled_torch_function)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise BadArgument(f"Parameter: expects a tensor, got {kind_name(data)}",
                              fix="nn.Parameter(mutagrad.tensor(...))")
        made: Self = data.detach().as_subclass(_parameters_of(type(data), cls)).requires_grad_(requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy starts without a gradient."""
        copied = super().__deepcopy__(memo)
        copied._grad = None
        return copied

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        return "Parameter containing:\n" + super().__repr__()


_both: dict[tuple[type, type], type] = {}


_ParameterMeta = type(Parameter)


def _parameters_of(kind: type[Tensor], cls: type[Parameter]) -> Any:
    """The class of parameters whose data is of the class `kind`: one that takes functions over goes on doing so."""
    if kind is Tensor or kind.is_meta or kind.__torch_function__ is disabled_torch_function:
        return cls
    if issubclass(kind, cls):
        return kind
    if (kind, cls) not in _both:
        members = {"__torch_function__": kind.__torch_function__, "stands_for": kind}
        _both[kind, cls] = type(kind.__name__, (kind, cls), members)
    return _both[kind, cls]


class Buffer(Tensor):
    """A tensor that is part of a module's state but not trained; `persistent` says whether state_dict has it.

    >>> import mutagrad as mg
    >>> class Counter(mg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.count = mg.nn.Buffer(mg.zeros(()))
    >>> list(Counter().state_dict())
    ['count']
    """

    __torch_function__: Any = staticmethod(disabled_torch_function)
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        made: Self = (empty(0) if data is None else data).detach().as_subclass(cls)
        made.persistent = persistent
        return made


class UninitializedTensorMixin(Tensor):
    """A tensor that a lazy module will give a shape. Until then nothing can be computed with it."""

    __torch_function__: Any = staticmethod(disabled_torch_function)
    becomes: type[Tensor]

    @property
    def _array(self) -> Array:
        raise BadValue(f"{type(self).__name__}: an uninitialized parameter cannot be used",
                       why="a lazy module gets its shapes from the first input", fix="call the module once first")

    @_array.setter
    def _array(self, array: Array) -> None:
        TensorBase._array.__set__(self, array)

    @contextmanager
    def _as_tensor(self) -> Iterator[Any]:
        """As a tensor without elements, for what concerns its type alone."""
        lazy, self.__class__ = type(self), self.becomes  # type: ignore[assignment]
        try:
            yield self
        finally:
            self.__class__ = lazy  # type: ignore[assignment]

    @property
    def dtype(self) -> element_type:
        with self._as_tensor() as tensor:
            return tensor.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> device_class:
        with self._as_tensor() as tensor:
            return tensor.device  # type: ignore[no-any-return]

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        with self._as_tensor() as tensor:
            tensor.requires_grad_(requires_grad)
        return self

    def convert(self, fn: Callable[[Any], Any]) -> None:
        """Changes the element type: `fn` is what a module does to all its tensors."""
        with self._as_tensor() as tensor:
            tensor.data = fn(tensor.data)

    def materialize(self, shape: Sequence[int], device: DeviceLike | None = None,
                    dtype: element_type | None = None) -> None:
        """Gives it a shape, and memory that is still to be filled."""
        memory = empty(shape, device=device, dtype=self.dtype if dtype is None else dtype)
        self.__class__ = self.becomes  # type: ignore[assignment]
        self.data = memory

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), type(self)(self.requires_grad, dtype=self.dtype))  # type: ignore[call-arg]

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self), (self.requires_grad, None, self.dtype)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        return f"<{type(self).__name__}>"


def _shapeless(cls: type[UninitializedTensorMixin], requires_grad: bool, device: DeviceLike | None,
               dtype: element_type | None) -> Any:
    made = empty(0, device=device, dtype=dtype).as_subclass(cls.becomes)
    made.requires_grad_(requires_grad)
    made.__class__ = cls
    return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc,unused-ignore]
    """A parameter of a lazy module before its first call.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyLinear(3)
    >>> type(layer.weight).__name__
    'UninitializedParameter'
    """

    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: DeviceLike | None = None,
                dtype: element_type | None = None) -> Any:
        return _shapeless(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[misc,unused-ignore]
    """A buffer of a lazy module before its first call.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyBatchNorm1d()
    >>> type(layer.running_mean).__name__
    'UninitializedBuffer'
    """

    becomes = Tensor

    def __new__(cls, requires_grad: bool = False, device: DeviceLike | None = None, dtype: element_type | None = None,
                persistent: bool = True) -> Any:
        made = _shapeless(cls, requires_grad, device, dtype)
        made.persistent = persistent
        return made


def is_lazy(param: Any) -> bool:
    """Return whether this is a parameter or buffer without a shape."""
    return isinstance(param, UninitializedTensorMixin)
