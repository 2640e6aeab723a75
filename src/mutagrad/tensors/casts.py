"""Tensors in other element types, and what is asked about these types."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

from ..base.device import CPU, device as device_class, names_meta
from ..base.docstrings import with_example
from ..base.errors import NoDevice
from ..base.layout import memory_format, preserve_format
from ..base.package_name import called
from ..base.sockets import socket
from ..core.dtypes import (
    CLASS_NAMES,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    dtype_of_class,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ..core.factory import CODEGEN_GLOBALS
from ..core.promote import as_operand, operand_dtype
from ..core.storage import TensorBase
from ..ops.math.elementwise import cast
from ..ops.shape.places import on
from ..ops.shape.shape import contiguous, tensor_argument


def to(tensor: TensorBase, *targets: Any, dtype: dtype | type | None = None,
       device: device_class | str | int | None = None, non_blocking: bool = False, copy: bool = False,
       memory_format: memory_format | None = None) -> Any:
    """Return the tensor in another element type, or on another device: itself where nothing changes.

    >>> import mutagrad as mg
    >>> mg.tensor([1, 2]).to(mg.float64)
    tensor([1., 2.], dtype=mutagrad.float64)
    >>> mg.tensor([1.5]).to("cpu", mg.int64)
    tensor([1])
    """
    for target in targets:
        if isinstance(target, TensorBase):
            dtype, device = target.dtype, target.device
        elif isinstance(target, (str, device_class)) or target.__class__ is int:
            device = target
        elif not isinstance(target, bool):
            dtype = target
    if device is not None and names_meta(device) and not tensor.is_meta:
        return socket("meta").blank(tensor if dtype is None else tensor.to(dtype))
    wanted = tensor._array.dtype if dtype is None else as_dtype(dtype).array_type
    found = cast(tensor, wanted) if tensor._array.dtype is not wanted else tensor
    found = on(found, device)
    if copy and found is tensor:
        found = tensor.clone()
    return found if memory_format is None or memory_format is preserve_format else contiguous(found, memory_format)


def to_type(tensor: TensorBase, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the tensor's class in PyTorch's older way, `'torch.FloatTensor'`; given a type, `to` that.

    >>> import mutagrad as mg
    >>> mg.ones(2).type()
    'mutagrad.FloatTensor'
    >>> mg.ones(2).type(mg.int64)
    tensor([1, 1])
    """
    if dtype is None:
        name = CLASS_NAMES.get(tensor.dtype, tensor.dtype.name + "Tensor")
        return called(f"cuda.{name}" if tensor.is_cuda else name)
    return tensor.to(get_default_dtype() if dtype is CODEGEN_GLOBALS["Tensor"] else dtype_of_class(dtype))


def type_as(tensor: TensorBase, other: TensorBase) -> Any:
    """Return the tensor in the element type of another, and on its device.

    >>> import mutagrad as mg
    >>> mg.tensor([1.5]).type_as(mg.tensor([1]))
    tensor([1])
    """
    return tensor.to(tensor_argument(other, "type_as"))


def to_device(tensor: TensorBase, device: device_class | str | int, /, *, stream: Any = None) -> Any:
    """Do `to(device)`, under the array API standard's name.

    >>> import mutagrad as mg
    >>> mg.ones(2).to_device("cpu").device
    device(type='cpu')
    """
    return tensor.to(device=device)


def cuda(tensor: TensorBase, device: device_class | str | int | None = None, non_blocking: bool = False,
         memory_format: memory_format | None = None) -> Any:
    """Return the tensor on a GPU: the current one, unless another is named."""
    if not socket("devices").available("cuda"):
        raise NoDevice("cuda: this build computes on the CPU only", fix="x.cpu(), or leave the device out")
    return tensor.to(device="cuda" if device is None else device, memory_format=memory_format)


def cpu(tensor: TensorBase, memory_format: memory_format | None = None) -> Any:
    """Return the tensor in the CPU's memory: itself where it is there.

    >>> import mutagrad as mg
    >>> x = mg.ones(2)
    >>> x.cpu() is x
    True
    """
    return tensor.to(device=CPU, memory_format=memory_format)


def _caster(name: str, kind: dtype) -> Callable[..., Any]:
    """The method for one element type: `x.double()`."""
    def to_kind(tensor: TensorBase, memory_format: memory_format | None = None) -> Any:
        return tensor.to(kind, memory_format=memory_format)

    to_kind.__name__ = to_kind.__qualname__ = name
    to_kind.__doc__ = with_example(f"Return the tensor in {kind.name}: itself, if that is its type.",
                                   f">>> mg.tensor([1, 0]).{name}().dtype", f"{kind}")
    return to_kind


to_float, to_double = _caster("float", float32), _caster("double", float64)
to_half, to_bfloat16 = _caster("half", float16), _caster("bfloat16", bfloat16)
to_long, to_int, to_short = _caster("long", int64), _caster("int", int32), _caster("short", int16)
to_char, to_byte, to_bool = _caster("char", int8), _caster("byte", uint8), _caster("bool", bool_)
to_cfloat, to_cdouble = _caster("cfloat", complex64), _caster("cdouble", complex128)


def is_floating_point(input: TensorBase) -> bool:
    """Whether the elements are floats.

    >>> import mutagrad as mg
    >>> mg.is_floating_point(mg.ones(2)), mg.is_floating_point(mg.arange(2))
    (True, False)
    """
    return tensor_argument(input, "is_floating_point").is_floating_point()  # type: ignore[no-any-return]


def is_complex(input: TensorBase) -> bool:
    """Whether the elements are complex numbers.

    >>> import mutagrad as mg
    >>> mg.is_complex(mg.tensor([1j]))
    True
    """
    return tensor_argument(input, "is_complex").is_complex()  # type: ignore[no-any-return]


def result_type(tensor: TensorBase | complex | SupportsFloat,
                other: TensorBase | complex | SupportsFloat) -> dtype:
    """Return the type in which an operation on these two computes.

    >>> import mutagrad as mg
    >>> mg.result_type(mg.tensor([1, 2]), 1.5)
    mutagrad.float32
    """
    return operand_dtype([as_operand(tensor, "result_type"), as_operand(other, "result_type")])
