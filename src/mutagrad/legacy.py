"""PyTorch's oldest constructors, one class for each type of elements.

>>> import mutagrad as mg
>>> mg.LongTensor([1, 2])
tensor([1, 2])
>>> isinstance(mg.ones(2), mg.FloatTensor), isinstance(mg.ones(2), mg.LongTensor)
(True, False)
"""
from __future__ import annotations

from typing import Any

from . import dtypes
from ._tensor import Size, Tensor
from .device import check_device
from .errors import BadArgument
from .ops import create
from .storage import Storage


class _TypedTensor(type):
    """The class of such a class: a tensor of the right type is its instance, and calling it makes one."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        """From sizes an uninitialised tensor, from anything else one of its values."""
        check_device(device)
        if len(data) != 1 or isinstance(data[0], (int, Size)):
            return create.empty(*(data or (0,)), dtype=cls.dtype)
        if isinstance(data[0], Tensor):
            if data[0].dtype is not cls.dtype:
                raise BadArgument(f"{cls.__name__}: expects a tensor of {cls.dtype}, got {data[0].dtype}", fix=f"x.to({cls.dtype})")
            return data[0].detach()
        made = create.tensor(data[0])
        return made if made.dtype is cls.dtype else made.to(cls.dtype)


def _class(of: dtypes.dtype) -> Any:
    return _TypedTensor(dtypes.CLASS_NAMES[of], (), {"dtype": of, "__module__": "mutagrad", "__doc__": f"Tensors of {of}."})


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor = map(_class, (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16))
CharTensor, ShortTensor, IntTensor, LongTensor = map(_class, (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64))
BoolTensor, ByteTensor = map(_class, (dtypes.bool_, dtypes.uint8))


def typename(obj: Any) -> str:
    """The full name of an object's type, or of the class or function that it is."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


def is_storage(obj: Any) -> bool:
    """Whether it is the memory of a tensor."""
    return isinstance(obj, Storage)
