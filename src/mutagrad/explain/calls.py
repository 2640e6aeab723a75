"""What a watched call did to memory and to the graph: which tensors it was given, which nodes it has made."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core.graph import Node, window_of
from ..core.storage import TensorBase
from ..core.window import Window, extent

# Calls that only ask about a tensor, and say nothing of what the program computes.
_ASKING = """
    __bool__ __class_getitem__ __contains__ __dir__ __format__ __hash__ __len__ __reduce__ __setstate__ data_ptr dim
    element_size get_device has_names is_complex is_contiguous is_conj is_floating_point is_inference is_neg
    is_pinned is_same_size is_set_to is_shared is_signed ndimension nelement numel register_hook
    register_post_accumulate_grad_hook requires_grad_ retain_grad size storage storage_offset storage_type stride
    sym_numel untyped_storage why"""
ASKING = frozenset(f"Tensor.{name}" for name in _ASKING.split())
# Properties whose values are tensors.
READ = frozenset(f"Tensor.{name}.__get__" for name in ("H", "T", "data", "grad", "imag", "mH", "mT", "real"))
SET = frozenset(("Tensor.data.__set__", "Tensor.grad.__set__"))


def is_told(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a call is part of what a program does to tensors, and not a question about one."""
    if name == "trace" and not args:  # which makes a recorder
        return False
    if name.endswith((".__get__", ".__set__")):
        return name in READ or name in SET
    return name not in ASKING


def short_name(name: str) -> str:
    """Return the name of an operation as a program would write it: `mul_` for `Tensor.mul_`, `x[i]` for its method."""
    name = name.removeprefix("Tensor.").removeprefix("nn.functional.")
    if name.endswith(".__get__"):
        return "." + name[:-8]
    if name.endswith(".__set__"):
        return "." + name[:-8] + " ="
    return _SHOWN.get(name) or (name[2:-2] if name.startswith("__") and name.endswith("__") else name)


_SHOWN = {"__getitem__": "x[i]", "__setitem__": "x[i] =", "__rsub__": "sub", "__rtruediv__": "div",
          "__truediv__": "div", "__rpow__": "pow", "__rmatmul__": "matmul"}


def tensors_in(value: Any, depth: int = 3) -> Iterator[TensorBase]:
    """Yield the tensors in an argument or a result, those inside of lists and dicts too; of sparse ones, the values."""
    if isinstance(value, TensorBase):
        yield value._numbers if getattr(value, "_own_layout", False) else value
    elif depth and isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(part, depth - 1)


def distinct(tensors: Iterable[TensorBase]) -> list[TensorBase]:
    """Return tensors, each once."""
    return list({id(tensor): tensor for tensor in tensors if hasattr(tensor, "_storage")}.values())


def new_nodes(tensors: Iterable[TensorBase], mark: int) -> list[Node]:
    """Return the nodes newer than `mark`, an order, that led to what is in these tensors now; the newest first."""
    found: dict[Node, None] = {}
    stack: list[Any] = [tensor._storage.writer for tensor in tensors]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node.order < mark and node not in found:
            found[node] = None
            stack.extend(node)
    return sorted(found, key=lambda node: node.order)


class Part(NamedTuple):
    """Bytes of a memory: the first and the end of the hull of a window, at which byte its storage begins, its type."""

    low: int
    high: int
    window: Window
    start: int
    dtype: Any


def part_of(tensor: TensorBase, window: Window | None = None) -> Part:
    """Return which bytes of its memory a tensor is, or a window on its storage."""
    storage = tensor._storage
    if window is None and tensor._offset is None:
        window = 0, storage.buffer.shape, storage.buffer.strides, None
    elif window is None:
        window = window_of(tensor)
    if window.__class__ is int:
        low, high = window, window + storage.buffer.itemsize  # type: ignore[operator]
    else:
        offset, shape, strides, _ = window  # type: ignore[misc]
        low, high = extent(offset, shape, strides, tensor._array.itemsize)
    return Part(storage.start + low, storage.start + high, window, storage.start, storage.buffer.dtype)


def written_part(tensor: TensorBase, node: Node | None, index: Any) -> Part:
    """Return which bytes a write to a tensor has changed: as its node says, or else those that a plain index picks."""
    if node is not None and node.written is not None:
        return part_of(tensor, node.written)
    array = tensor._array
    if index is not None and type(array).__name__ == "ndarray" and _is_plain(index):
        parts = index if isinstance(index, tuple) else (index,)
        found = array[parts if ... in parts else (*parts, ...)]
        if found.size:
            start = found.__array_interface__["data"][0] - array.__array_interface__["data"][0]
            return part_of(tensor, ((tensor._offset or 0) + start, found.shape, found.strides, None))
    return part_of(tensor)


def _is_plain(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, (int, slice)) and not isinstance(part, bool)
               for part in parts)

