"""PyTorch's oldest constructors, one class for each type of elements.

>>> import mutagrad as mg
>>> mg.LongTensor([1, 2])
tensor([1, 2])
>>> isinstance(mg.ones(2), mg.FloatTensor), isinstance(mg.ones(2), mg.LongTensor)
(True, False)
"""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.device import device as device_class
from ..base.docstrings import with_example
from ..base.errors import BadArgument, BadValue
from ..core import dtypes
from ..core.factory import make
from ..core.size import Size
from ..core.storage import Storage
from ..ops.create import create
from .tensor import Tensor
from .typed_storage import TypedStorage

METHODS = "storage_type"


class _TypedTensor(type):
    """The class of such a class: a tensor of the right type is its instance, and calling it makes one."""

    dtype: dtypes.dtype

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if bases:
            raise BadArgument(f"{bases[0].__name__}: is not an acceptable base type",
                              why="its instances are those of Tensor", fix=f"class {name}(Tensor)")
        return super().__new__(mcs, name, bases, namespace)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *data: Any, device: device_class | str | int | None = None) -> Any:
        """Make an uninitialised tensor from sizes, one of values from anything else."""
        if len(data) != 1 or isinstance(data[0], (int, Size)):
            return create.empty(*(data or (0,)), dtype=cls.dtype, device=device)
        if isinstance(data[0], TypedStorage):
            return data[0].as_tensor(cls.dtype.array_type)
        if isinstance(data[0], Tensor):
            if data[0].dtype is not cls.dtype:
                raise BadArgument(f"{cls.__name__}: expects a tensor of {cls.dtype}, got {data[0].dtype}",
                                  fix=f"x.to({cls.dtype})")
            return data[0].detach()
        made = create.tensor(data[0], device=device)
        return made if made.dtype is cls.dtype else made.to(cls.dtype)


def _described(what: str, name: str, of: dtypes.dtype) -> str:
    return with_example(f"{what} of {of}.", f">>> mg.{name}([1, 0]).dtype", f"{of}")


def _class(of: dtypes.dtype) -> Any:
    name = dtypes.CLASS_NAMES[of]
    return _TypedTensor(name, (), {"dtype": of, "__module__": "mutagrad", "__doc__": _described("Tensors", name, of)})


FloatTensor, DoubleTensor = map(_class, (dtypes.float32, dtypes.float64))
HalfTensor, BFloat16Tensor = map(_class, (dtypes.float16, dtypes.bfloat16))
CharTensor, ShortTensor, IntTensor, LongTensor = map(_class, (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64))
BoolTensor, ByteTensor = map(_class, (dtypes.bool_, dtypes.uint8))


class _StorageClass(type):
    """The class of a class of storages: a storage of the right type is its instance, and calling it makes one."""

    dtype: dtypes.dtype
    is_cuda = is_sparse = False

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype

    def __call__(cls, data: Any = 0) -> TypedStorage:
        """Make so many uninitialised elements from a number, and the values of a sequence from that."""
        made = create.empty if isinstance(data, int) else create.tensor
        return TypedStorage(made(data, dtype=cls.dtype))

    def from_buffer(cls, buffer: Any, byte_order: str = "native") -> TypedStorage:
        """Return the elements in the bytes of a buffer, copied; `byte_order` is "native", "little" or "big"."""
        kind = cls.dtype.array_type
        orders = {"native": "=", "little": "<", "big": ">"}
        if byte_order not in orders:
            raise BadValue(f"from_buffer: byte_order={byte_order!r} is none of {', '.join(orders)}",
                           fix="byte_order='native'")
        read = np.uint8 if cls.dtype is dtypes.bool_ else kind.newbyteorder(orders[byte_order])
        found = np.frombuffer(bytes(buffer), read)
        return TypedStorage(make(found.astype(kind)))


def _storage_class(of: dtypes.dtype) -> _StorageClass:
    name = dtypes.CLASS_NAMES[of].replace("Tensor", "Storage")
    return _StorageClass(name, (), {"dtype": of, "__module__": "mutagrad", "__doc__": _described("Storages", name, of)})


FloatStorage, DoubleStorage = map(_storage_class, (dtypes.float32, dtypes.float64))
HalfStorage, BFloat16Storage = map(_storage_class, (dtypes.float16, dtypes.bfloat16))
CharStorage, ShortStorage = map(_storage_class, (dtypes.int8, dtypes.int16))
IntStorage, LongStorage = map(_storage_class, (dtypes.int32, dtypes.int64))
BoolStorage, ByteStorage = map(_storage_class, (dtypes.bool_, dtypes.uint8))
ComplexFloatStorage, ComplexDoubleStorage = map(_storage_class, (dtypes.complex64, dtypes.complex128))


def storage_type(x: Tensor) -> Any:
    """Return the class of storages of such elements, such as `mutagrad.FloatStorage`.

    >>> import mutagrad as mg
    >>> mg.zeros(3).storage_type()
    <class 'mutagrad.FloatStorage'>
    """
    return globals()[dtypes.CLASS_NAMES[x.dtype].replace("Tensor", "Storage")]


def typename(obj: Any) -> str:
    """Return the full name of an object's type, or of the class or function that it is.

    >>> import mutagrad as mg
    >>> mg.typename(mg.zeros(1))
    'mutagrad.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


def is_storage(obj: Any) -> bool:
    """Whether it is the memory of a tensor.

    >>> import mutagrad as mg
    >>> mg.is_storage(mg.zeros(2).untyped_storage())
    True
    """
    return isinstance(obj, (Storage, TypedStorage))
