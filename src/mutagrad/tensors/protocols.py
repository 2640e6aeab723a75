"""A tensor as Python and NumPy take it: as a number, as a container, as an array."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from ..arrays import np
from ..arrays.dlpack import lend
from ..base.errors import BadArgument, BadData, BadValue, GradientError, NotSupported
from ..base.modes import mode
from ..core.dtypes import bfloat16, of_array
from ..core.evidence import cut, was_swept
from ..core.factory import make
from ..core.number import check_taken, number, taken_here
from ..core.op import TABLE
from ..core.storage import TensorBase, export
from ..ops.create.create import from_numpy
from ..ops.linalg import products as linalg
from ..ops.math import elementwise
from ..ops.shape.moving import flip

# -------------------------------------------------------------------------------------------------------------- numbers


def item(tensor: TensorBase) -> Any:
    """Return the only element, as a Python number.

    >>> import mutagrad as mg
    >>> mg.tensor([2.5]).item()
    2.5
    """
    if tensor._array.size != 1:
        raise BadValue(f"item: a tensor of shape {tensor._array.shape} has {tensor._array.size} elements, not one",
                       fix="x.tolist()")
    if tensor._storage.writer is not None and not was_swept(tensor):
        cut("item", tensor)
    return tensor._array.item()


def _real_item(tensor: TensorBase) -> Any:
    value = tensor.item()
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise BadValue(f"item: {value} is not a real number", fix="x.real or abs(x)")
    return value.real


def as_bool(tensor: TensorBase) -> bool:
    """Return the truth of the only element."""
    if tensor._array.size != 1:
        raise BadValue(f"bool: the truth of a tensor of shape {tensor._array.shape} is ambiguous",
                       why=f"it has {tensor._array.size} elements", fix="x.any() or x.all()")
    return bool(tensor._array.item())


def as_int(tensor: TensorBase) -> int:
    """Return the only element as an integer, cut towards zero."""
    check_taken(tensor)
    return int(_real_item(tensor))


def as_float(tensor: TensorBase) -> float:
    """Return the only element as a float."""
    check_taken(tensor)
    return float(_real_item(tensor))


def as_complex(tensor: TensorBase) -> complex:
    """Return the only element as a complex number."""
    check_taken(tensor)
    return complex(tensor.item())


def as_index(tensor: TensorBase) -> int:
    """Return the only element, an integer, where Python needs an index."""
    if tensor._array.dtype.kind not in "iub" or tensor._array.size != 1:
        raise BadArgument("index: only integer tensors of one element can be an index, not "
                          f"{of_array(tensor._array.dtype).name} of shape {tensor._array.shape}", fix="int(x)")
    return int(tensor._array.item())


# ----------------------------------------------------------------------------------------------------------- containers

def length(tensor: TensorBase) -> int:
    """Return the size of the first dimension."""
    if not tensor._array.ndim:
        raise BadArgument("len: a 0-d tensor has no length", fix="x.numel()")
    return int(tensor._array.shape[0])


def iterate(tensor: TensorBase) -> Iterator[Any]:
    """Return views along the first dimension, one after the other."""
    if not tensor._array.ndim:
        raise BadArgument("iteration over a 0-d tensor", fix="x.item()")
    return iter(tensor.unbind(0))


def delete(tensor: TensorBase, key: Any) -> None:
    """Raise: memory has no gaps."""
    raise BadArgument("del: elements of a tensor cannot be deleted", fix="mutagrad.cat([x[:i], x[i + 1:]])")


def backwards(tensor: TensorBase) -> Any:
    """Return the tensor flipped along the first dimension."""
    return flip(tensor, 0) if tensor._array.ndim else tensor


def contains(tensor: TensorBase, element: Any) -> bool:
    """Whether any element is equal to this number."""
    if not isinstance(element, (TensorBase, bool, int, float, complex, np.generic)):
        raise BadData(f"in: a tensor holds numbers, not {type(element).__name__}")
    return bool((tensor == element)._array.any())


# --------------------------------------------------------------------------------------------------------------- arrays

def numpy(tensor: TensorBase, *, force: bool = False) -> Any:
    """Return a NumPy array over the same memory.

    >>> import mutagrad as mg
    >>> x = mg.zeros(2)
    >>> x.numpy()[0] = 5.
    >>> x
    tensor([5., 0.])
    """
    if not tensor.is_cpu:
        if force:
            return numpy(tensor.detach().cpu())
        raise BadArgument(f"numpy: can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy "
                          "the tensor to host memory first.", why="NumPy computes in the CPU's memory",
                          fix="x.cpu().numpy()")
    if tensor.requires_grad and mode.grad and not force:
        raise GradientError("numpy: this tensor requires a gradient, which NumPy would lose",
                            why="Can't call numpy() on Tensor that requires grad", fix="x.detach().numpy()")
    if tensor.dtype is bfloat16:
        raise BadArgument("numpy: got a tensor of bfloat16", why="NumPy has no such type", fix="x.float().numpy()")
    cut("numpy", tensor)
    return export(tensor)


def as_array(tensor: TensorBase, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return what `np.asarray(x)` gives."""
    check_taken(tensor)
    array = tensor.numpy()
    return array if dtype is None and not copy else np.array(array, dtype, copy=copy)


def wrap_array(tensor: TensorBase, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """Return as a tensor what a function of NumPy's that is no ufunc, such as `np.choose`, makes of it."""
    return array if taken_here() else from_numpy(array)


def apply_ufunc(tensor: TensorBase, ufunc: Callable[..., Any], method: str, *inputs: Any, **settings: Any) -> Any:
    """Apply a function of NumPy's: of tensors these are ours; those that we lack run on the arrays.

    In this package's own arithmetic on arrays, a tensor stands for a number.
    """
    if taken_here():
        return getattr(ufunc, method)(*(number(x) if isinstance(x, TensorBase) else x for x in inputs), **settings)
    function = _by_ufunc().get(ufunc)
    if method == "__call__" and function is not None and not settings:
        return function(*inputs)
    arrays = [x.numpy() if isinstance(x, TensorBase) else x for x in inputs]
    target = settings.get("out", ())
    if any(isinstance(x, TensorBase) for x in target):
        raise NotSupported(f"numpy.{ufunc.__name__}: out= cannot be a tensor", fix="x.copy_(result)")
    result = getattr(ufunc, method)(*arrays, **settings)
    if isinstance(result, tuple):  # of modf, divmod, frexp
        return tuple(y if y is given else make(np.array(y)) for y, given in zip_longest(result, target))
    return result if target or not isinstance(result, (np.ndarray, np.generic)) else make(np.array(result))


_ufuncs: dict[Any, Any] = {}


def _by_ufunc() -> dict[Any, Any]:
    """Our operation for each of NumPy's functions."""
    if _ufuncs.get("of") != len(TABLE):  # rooms are loaded when first used
        _ufuncs["of"] = len(TABLE)
        _ufuncs.update({op.forward: op.function for op in TABLE.values() if isinstance(op.forward, np.ufunc)})
        _ufuncs.update({np.matmul: linalg.matmul, np.power: elementwise.pow, np.sign: elementwise.sgn,
                        np.conjugate: elementwise.conj, np.remainder: elementwise.remainder,
                        np.fmod: elementwise.fmod, np.floor_divide: elementwise.floor_divide})
    return _ufuncs


def dlpack(tensor: TensorBase, *, stream: Any = None, max_version: tuple[int, int] | None = None,
           dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """Return the memory, for another library to read and write."""
    plain = tensor.is_cpu and not (tensor.requires_grad and mode.grad)
    array = export(tensor) if plain and tensor.dtype is bfloat16 else tensor.numpy()
    return lend(array, stream, max_version, dl_device, copy)


def dlpack_device(tensor: TensorBase) -> Any:
    """Return where that memory is: on the CPU."""
    return tensor._array.__dlpack_device__()
