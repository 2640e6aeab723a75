"""Questions about tensors that few programs ask."""
from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from ...base.device import device
from ...base.errors import BadValue, NoDevice
from ...base.sockets import socket
from ...core.dtypes import of_array
from ...core.factory import whole_memory
from ...core.storage import TensorBase, made_in_inference, memory_of
from .shape import tensor_argument

FUNCTIONS = "_assert _assert_async _check get_device is_inference is_nonzero is_same_size is_signed"
METHODS = "_base _is_view dim_order get_device is_nonzero is_pinned is_same_size is_set_to is_shared pin_memory"


def is_nonzero(input: TensorBase) -> bool:
    """Return the truth of a tensor of one element.

    >>> import mutagrad as mg
    >>> mg.is_nonzero(mg.tensor([2.]))
    True
    """
    return bool(tensor_argument(input, "is_nonzero"))


def _assert_async(input: TensorBase, assert_msg: str = "") -> None:
    """Raises unless a tensor of one element is true."""
    if not is_nonzero(input):
        raise BadValue(assert_msg or "_assert_async: expected one element that is nonzero, but got zero")


def _assert(condition: object, message: str) -> None:
    """`assert condition, message`, as a function."""
    if not isinstance(condition, TensorBase) and hasattr(type(condition), "__torch_function__"):
        untrue = BadValue("_assert: the condition has no truth")
        return socket("torch_function").late_dispatch(_assert, (condition, message), untrue)  # type: ignore[no-any-return]
    if not condition:
        raise AssertionError(message)


def _check(cond: object, message: Callable[[], object] | None = None) -> None:
    """Raises unless the condition holds; `message` is a function that gives the text."""
    if not cond:
        raise BadValue("_check: the condition does not hold" if message is None else str(message()))


def is_signed(input: TensorBase) -> bool:
    """Return whether the elements can be negative.

    >>> import mutagrad as mg
    >>> mg.is_signed(mg.zeros(1, dtype=mg.uint8))
    False
    """
    return of_array(tensor_argument(input, "is_signed")._array.dtype).is_signed


def is_inference(input: TensorBase) -> bool:
    """Return whether the tensor was made in inference mode. It can be used everywhere all the same.

    >>> import mutagrad as mg
    >>> mg.is_inference(mg.ones(2))
    False
    """
    return made_in_inference(tensor_argument(input, "is_inference"))


def is_same_size(input: TensorBase, other: TensorBase) -> bool:
    """Return whether two tensors have one shape.

    >>> import mutagrad as mg
    >>> mg.is_same_size(mg.zeros(2, 3), mg.ones(2, 3))
    True
    """
    a, b = (tensor_argument(x, "is_same_size")._array.shape for x in (input, other))
    return bool(a == b)


def is_set_to(x: TensorBase, tensor: TensorBase) -> bool:
    """Return whether two tensors are the same window on the same memory.

    >>> import mutagrad as mg
    >>> x = mg.zeros(2)
    >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
    (True, False)
    """
    one_memory = memory_of(x) is memory_of(tensor_argument(tensor, "is_set_to"))
    return one_memory and ((x.storage_offset(), x.shape, x.stride())
                           == (tensor.storage_offset(), tensor.shape, tensor.stride()))


def _is_view(x: TensorBase) -> bool:
    """Whether the tensor was made as a view of another."""
    return x._offset is not None or x._array.size < memory_of(x).buffer.size


def _owner(x: TensorBase) -> Any:
    """The tensor that a view is a view of, None for one that is none.

    Views do not know it. Few programs ask, so it is looked for among all objects, rather than kept by every view.
    """
    if not _is_view(x):
        return None
    memory = memory_of(x)
    for found in gc.get_referrers(memory):
        if isinstance(found, TensorBase) and found._storage is memory and found._offset is None:
            return found
    return whole_memory(memory)  # it is gone, but for its memory


_base = property(_owner)


def get_device(input: TensorBase) -> int:
    """Return the number of the device, -1 for the CPU.

    >>> import mutagrad as mg
    >>> mg.get_device(mg.zeros(1))
    -1
    """
    index: int | None = tensor_argument(input, "get_device").device.index
    return -1 if index is None else index


def is_pinned(x: TensorBase, device: device | str | None = None) -> bool:
    """Return whether the memory is kept in place for copies to a GPU.

    >>> import mutagrad as mg
    >>> mg.zeros(1).is_pinned()
    False
    """
    return False


def pin_memory(x: TensorBase, device: device | str | None = None) -> Any:
    """Return the tensor itself: copies to a GPU need no memory of their own. Without a GPU, raise as PyTorch does."""
    if socket("devices").available("cuda"):
        return x
    raise NoDevice("pin_memory: there is no GPU to copy to", why="computation is on the CPU",
                   fix="leave pin_memory() out where cuda.is_available() is False")


def is_shared(x: TensorBase) -> bool:
    """Return whether other processes see the memory.

    >>> import mutagrad as mg
    >>> mg.zeros(1).is_shared()
    False
    """
    return False


def dim_order(x: TensorBase) -> tuple[int, ...]:
    """Return the dimensions in the order in which they lie in memory, outermost first.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3).t().dim_order()
    (1, 0)
    """
    steps = x.stride()
    return tuple(sorted(range(len(steps)), key=lambda d: -steps[d]))
