"""Making tensors by the standard's functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..arrays import np
from ..arrays.dlpack import borrow
from ..base.device import check_device, device
from ..base.errors import BadValue
from ..base.operands import Array
from ..core.dtypes import as_dtype, dtype, get_default_dtype, int64, scalar_dtype
from ..core.factory import make
from ..core.number import number
from ..core.storage import TensorBase
from ..ops.create import create
from ..ops.linalg import matrices
from ..ops.shape import joining as arrange
from ..ops.shape.shape import clone, tensor_argument
from ..tensors.tensor import Tensor
from .kinds import as_type, type_of


def default_for(*numbers: Any) -> dtype:
    """Return the type of a new tensor of these numbers: the default of the highest kind among them."""
    return max((scalar_dtype(n) for n in numbers), key=lambda found: found.category)


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: device | str | None = None,
            copy: bool | None = None) -> Tensor:
    """Return a tensor of what is given: itself or its memory where possible, unless a copy is asked for or forbidden.

    >>> import mutagrad as mg
    >>> xp = mg.ones(1).__array_namespace__()
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float64)
    tensor([[1., 2.],
            [3., 4.]], dtype=mutagrad.float64)
    """
    check_device(device)
    to = None if dtype is None else as_dtype(dtype)
    if not isinstance(obj, TensorBase) and not _has_memory(obj):
        return create.tensor(obj, dtype=to) if copy is not False else _forbidden(obj)
    array = None if isinstance(obj, TensorBase) else np.asarray(obj)
    if copy is False and array is not None and not array.flags.writeable:
        return _forbidden(obj)
    x = obj if array is None else create.from_numpy(array)
    if to is None or type_of(x) is to:
        return clone(x) if copy else x
    return as_type(x, to) if copy is not False else _forbidden(obj)


def _forbidden(obj: Any) -> NoReturn:
    raise BadValue(f"asarray: {type(obj).__name__} cannot become such a tensor without a copy",
                   why="copy=False forbids one", fix="asarray(obj, copy=None)")


def _has_memory(obj: Any) -> bool:
    """Whether NumPy can look into it in place: an array, or anything that lends its memory as a buffer."""
    try:
        memoryview(obj).release()
    except TypeError:
        return hasattr(obj, "__array_interface__")
    return True


def from_dlpack(x: Tensor, /, *, device: device | str | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of another library's array.

    >>> import mutagrad as mg
    >>> mg.array_api.from_dlpack(mg.ones(2))
    tensor([1., 1.])
    """
    check_device(device)
    array = borrow(x)
    if copy is False and not array.flags.writeable:
        raise BadValue("from_dlpack: read-only memory must be copied, and copy=False forbids that",
                       fix="from_dlpack(x)")
    return create.from_numpy(array.copy() if copy else array)


def _filled(maker: Callable[..., Array], shape: int | tuple[int, ...], dtype: dtype | None,
            device: device | str | None) -> Tensor:
    check_device(device)
    return make(maker(shape, (get_default_dtype() if dtype is None else as_dtype(dtype)).array_type))


def empty(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return a tensor of this shape, of whatever the memory holds.

    >>> import mutagrad as mg
    >>> mg.array_api.empty((2, 3)).shape
    mutagrad.Size([2, 3])
    """
    return _filled(np.empty, shape, dtype, device)


def zeros(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return a tensor of zeros.

    >>> import mutagrad as mg
    >>> mg.array_api.zeros(2)
    tensor([0., 0.])
    """
    return _filled(np.zeros, shape, dtype, device)


def ones(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return a tensor of ones.

    >>> import mutagrad as mg
    >>> mg.array_api.ones(2)
    tensor([1., 1.])
    """
    return _filled(np.ones, shape, dtype, device)


def full(shape: int | tuple[int, ...], fill_value: complex, *, dtype: dtype | None = None,
         device: device | str | None = None) -> Tensor:
    """Return a tensor of one number, of the default type for such numbers.

    >>> import mutagrad as mg
    >>> mg.array_api.full((2,), 5.)
    tensor([5., 5.])
    """
    to = dtype or (type_of(fill_value) if isinstance(fill_value, TensorBase) else default_for(fill_value))
    value = number(fill_value)
    return _filled(lambda size, kind: np.full(size, value, kind), shape, to, device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return a tensor of the same shape, of whatever the memory holds.

    >>> import mutagrad as mg
    >>> mg.array_api.empty_like(mg.zeros(2)).shape
    mutagrad.Size([2])
    """
    return empty(x.shape, dtype=dtype or type_of(x), device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return zeros of the same shape.

    >>> import mutagrad as mg
    >>> mg.array_api.zeros_like(mg.tensor([3, 4]))
    tensor([0, 0])
    """
    return zeros(x.shape, dtype=dtype or type_of(x), device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return ones of the same shape.

    >>> import mutagrad as mg
    >>> mg.array_api.ones_like(mg.tensor([3, 4]))
    tensor([1, 1])
    """
    return ones(x.shape, dtype=dtype or type_of(x), device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: dtype | None = None,
              device: device | str | None = None) -> Tensor:
    """Return one number in the same shape.

    >>> import mutagrad as mg
    >>> mg.array_api.full_like(mg.zeros(2), 5.)
    tensor([5., 5.])
    """
    return full(x.shape, fill_value, dtype=dtype or type_of(x), device=device)


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: dtype | None = None,
           device: device | str | None = None) -> Tensor:
    """Return the numbers from start up to stop, which is not among them: none where step leads away from it.

    >>> import mutagrad as mg
    >>> mg.array_api.arange(3)
    tensor([0, 1, 2])
    """
    check_device(device)
    numbers = (start, step) if stop is None else (start, stop, step)
    if dtype is not None:
        to = as_dtype(dtype)
    else:
        to = int64 if all(isinstance(n, int) for n in numbers) else get_default_dtype()
    return make(np.arange(*((0, start, step) if stop is None else numbers), dtype=to.array_type))


def linspace(start: complex, stop: complex, /, num: int, *, dtype: dtype | None = None,
             device: device | str | None = None, endpoint: bool = True) -> Tensor:
    """Return so many numbers at equal distances, the last of which is stop unless endpoint is False.

    >>> import mutagrad as mg
    >>> mg.array_api.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_device(device)
    to = default_for(1.0, start, stop) if dtype is None else as_dtype(dtype)
    return make(np.linspace(start, stop, num, endpoint=endpoint, dtype=to.array_type))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None,
        device: device | str | None = None) -> Tensor:
    """Return ones on a diagonal, zeros elsewhere.

    >>> import mutagrad as mg
    >>> mg.array_api.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_device(device)
    return make(np.eye(n_rows, n_cols, k, (get_default_dtype() if dtype is None else as_dtype(dtype)).array_type))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Return a tensor of coordinates for each axis of a grid.

    >>> import mutagrad as mg
    >>> [x.shape for x in mg.array_api.meshgrid(mg.arange(2), mg.arange(3))]
    [mutagrad.Size([3, 2]), mutagrad.Size([3, 2])]
    """
    return list(arrange.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrix with zeros above its diagonal k.

    >>> import mutagrad as mg
    >>> mg.array_api.tril(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    return matrices.tril(tensor_argument(x, "tril"), k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrix with zeros below its diagonal k.

    >>> import mutagrad as mg
    >>> mg.array_api.triu(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 2.],
            [0., 4.]])
    """
    return matrices.triu(tensor_argument(x, "triu"), k)
