"""Tensors over memory that comes from elsewhere."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..arrays.dlpack import borrow
from ..base.device import device as device_class
from ..base.errors import BadData, BadValue
from ..core.dtypes import as_dtype, dtype, get_default_dtype
from ..core.factory import make
from ..core.storage import TensorBase
from ..ops.create.create import as_tensor, from_numpy, tensor
from ..ops.shape.places import on
from ..ops.shape.shape import clone
from .typed_storage import UntypedStorage

FUNCTIONS = "asarray from_dlpack frombuffer"


def from_dlpack(ext_tensor: Any, *, device: device_class | str | int | None = None, copy: bool | None = None) -> Any:
    """Return a tensor over the memory of another library's array.

    >>> import numpy as np, mutagrad as mg
    >>> array = np.zeros(2, "float32")
    >>> mg.from_dlpack(array).add_(1); array
    tensor([1., 1.])
    array([1., 1.], dtype=float32)
    """
    if type(ext_tensor).__name__ != "PyCapsule" and not hasattr(ext_tensor, "__dlpack__"):
        raise BadData(f"from_dlpack: {type(ext_tensor).__name__} does not share its memory",
                      why="it has no method __dlpack__", fix="mutagrad.tensor(data)")
    shared = on(from_numpy(borrow(ext_tensor)), device)
    return clone(shared) if copy else shared


def frombuffer(buffer: Any, *, dtype: dtype | type, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Any:
    """Return a tensor over the memory of a bytes-like object; read-only memory is copied.

    >>> import mutagrad as mg
    >>> mg.frombuffer(bytearray([1, 2, 3]), dtype=mg.uint8)
    tensor([1, 2, 3], dtype=mutagrad.uint8)
    """
    kind = as_dtype(dtype).array_type
    try:
        memoryview(buffer)
    except TypeError:
        raise BadData(f"frombuffer: {type(buffer).__name__} has no bytes to share",
                      fix="mutagrad.tensor(data)") from None
    room = memoryview(buffer).nbytes - offset
    fits = room >= kind.itemsize and not room % kind.itemsize if count < 0 else room >= count * kind.itemsize
    if not fits or count == 0 or offset < 0:
        raise BadValue(f"frombuffer: {count} elements of {dtype} from byte {offset} on do not fit into "
                       f"{room + offset} bytes")
    return from_numpy(np.frombuffer(buffer, kind, count, offset)).requires_grad_(requires_grad)


def asarray(obj: Any, *, dtype: dtype | type | None = None, device: device_class | str | int | None = None,
            copy: bool | None = None, requires_grad: bool | None = None) -> Any:
    """Return a tensor of anything: it shares memory where the type allows, unless `copy` says otherwise.

    >>> import mutagrad as mg
    >>> mg.asarray([1, 2])
    tensor([1, 2])
    """
    given = _shared(obj, dtype)
    found = tensor(obj, dtype=dtype, device=device) if given is None else as_tensor(given, dtype, device)
    if copy is False and (given is None or found is not given):
        raise BadValue(f"asarray: {type(obj).__name__} cannot be shared as {found.dtype}", why="copy=False",
                       fix="copy=None copies where it must")
    result = clone(found) if copy and given is found else found
    if requires_grad is None or result.requires_grad is requires_grad:
        return result
    return result.detach().requires_grad_(requires_grad)


def _shared(obj: Any, dtype: dtype | type | None) -> Any:
    """A tensor over the memory of an object, or None for one that has none to share."""
    if isinstance(obj, TensorBase):
        return obj
    if isinstance(obj, UntypedStorage):
        return make(obj._flat.copy())  # a tensor's own memory is written through that tensor only
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer(obj, dtype=get_default_dtype() if dtype is None else dtype)
    return None
