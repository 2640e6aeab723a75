"""What a program sees of a tensor's history: whether it is a leaf, what wrote it, its gradient, its bare data."""
from __future__ import annotations

import warnings
from math import prod
from typing import Any, TypeVar

from ..arrays import np
from ..arrays.kinds import IN_USE, device_of, is_plain
from ..base.errors import BadArgument, BadData, BadValue, DTypeError, GradientError, NotSupported, ShapeError
from ..base.layout import has_own_layout
from ..base.modes import OTHER_KIND
from ..base.operands import Array, kind_name
from ..base.provenance import to_user
from .backward import RETAINED, RETAINED_VIEWS, retains_grad
from .dtypes import FLOAT, of_array
from .evidence import cut
from .factory import window_or_none
from .graph import Leaf, Node, Writer, edge, view_as, window_of, without_index
from .spread import check_separate
from .storage import Storage, TensorBase, another_history, check_inside, part_history, repeated_history
from .sweep import OUTPUT
from .view_names import Names, view_names
from .window import Whole, Window, index_of, memory_order, overlaps_itself
from .write import FOLLOW, new_node, set_write

AnyTensor = TypeVar("AnyTensor", bound=TensorBase)


def requires_grad_(tensor: AnyTensor, requires_grad: bool = True) -> AnyTensor:
    """Make this a leaf, whose `.grad` will be the derivative with respect to the value it has now.

    >>> import mutagrad as mg
    >>> mg.ones(2).requires_grad_().requires_grad
    True
    """
    storage, array = tensor._storage, tensor._array
    if requires_grad.__class__ is not bool:
        raise BadArgument(f"requires_grad: must be True or False, not {type(requires_grad).__name__}",
                          why=f"got {requires_grad!r}", fix="x.requires_grad_(True)")
    if requires_grad:
        if storage.writer is None:
            if array.dtype.kind not in "fcV":
                raise DTypeError("requires_grad: only floating point and complex tensors have gradients, "
                                 f"this one is {of_array(array.dtype).name}",
                                 why="an integer or boolean cannot change by a little",
                                 fix="x.float().requires_grad_()")
            if _overlaps(array):
                storage = _become_repeated(tensor, tensor)
            elif tensor._offset is not None or storage.root is not None:  # others see it, too: a history of its own
                storage, tensor._offset = part_history(tensor, linked=True)
                tensor._storage = storage
            storage.writer = storage.leaf = Leaf(tensor)
    elif storage.writer is not None:
        if not is_leaf(tensor):
            raise GradientError("requires_grad: only leaves can stop requiring a gradient, "
                                "and this tensor was computed", fix="y = x.detach()")
        storage.writer = storage.leaf = None
    return tensor


def _overlaps(array: Array) -> bool:
    return overlaps_itself(array.shape, array.strides, array.itemsize)


def _become_repeated(tensor: TensorBase, window: TensorBase) -> Storage:
    """Give a leaf to be, of a window whose elements share memory, memory in which each is one of its own."""
    if not is_plain(window._array):
        check_separate(window, "requires_grad")
    tensor._storage = storage = repeated_history(window)
    tensor._array, tensor._offset = storage.buffer, None
    return storage


def is_leaf(tensor: TensorBase) -> bool:
    """Whether the tensor was not computed out of others that need a gradient."""
    writer = tensor._storage.writer
    return writer is None or (writer.__class__ is Leaf and writer.tensor() is tensor)


def grad_fn(tensor: TensorBase) -> Any:
    """Return the latest write to this tensor's storage; of part of it, or of a leaf, what stands for the view."""
    if is_leaf(tensor):
        return None
    writer = tensor._storage.writer
    assert writer is not None
    if isinstance(writer, Node) and (tensor._offset is None or not is_plain(tensor._array)):
        return edge(writer)[0]
    window = window_of(tensor)
    if index_of(window) is not None:
        return view_as(writer, without_index(window), ("UnfoldBackward0",))
    return edge(view_as(writer, window, _views(tensor, writer, window), window))[0]


def _views(tensor: TensorBase, writer: Writer, window: Window) -> Names:
    """Return the names of the views that lead from what was written to a tensor.

    None where it is all of that: many operations' results are of another shape than their storage. None either where
    just this was written, or where it is one of several results in one storage.
    """
    array, seen, of_leaf = tensor._array, getattr(tensor, "_seen", None), isinstance(writer, Leaf)
    if not of_leaf and (_is_all(array, writer.whole) or _is_written(window, writer) or seen is array):
        return ()
    names = view_names(window, writer.whole)
    if seen is not None and seen.size == array.size and np.may_share_memory(seen, array):
        before = view_names((tensor._offset or 0, seen.shape, seen.strides, None), writer.whole)
        return names if before[-1:] == ("ViewBackward0",) else (*before, "ViewBackward0")
    return names or ("ViewBackward0",) * of_leaf


def _is_all(array: Array, whole: Whole) -> bool:
    return array.size == prod(whole[0]) and array.dtype == whole[1]


def _is_written(window: Window, node: Any) -> bool:
    return node.written is not None and index_of(node.written) is None and node.written == window


def output_nr(tensor: TensorBase) -> int:
    """Return which of the results of its `grad_fn` this is."""
    writer = tensor._storage.writer
    return writer.saved if isinstance(writer, Node) and writer.op is OUTPUT else 0


def warn_of_no_grad(tensor: TensorBase) -> None:
    """Warn where a gradient is looked for that no sweep will ever set, as PyTorch does."""
    leaf, asked = tensor._storage.leaf, id(tensor) in RETAINED or id(tensor) in RETAINED_VIEWS
    if (leaf is None or leaf.tensor() is not tensor) and not asked and not retains_grad(tensor):
        warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: backward() sets "
                      "it for leaves only, so it stays None. x.retain_grad() before backward() keeps the gradient of "
                      "a computed tensor; if the leaf was meant, read its .grad", UserWarning, stacklevel=to_user())


def set_grad(tensor: TensorBase, value: TensorBase | None) -> None:
    """Do `x.grad = value`, which must fit."""
    if value is not None and not isinstance(value, TensorBase):
        raise BadArgument(f"grad: a gradient must be a tensor or None, not {kind_name(value)}",
                          fix="x.grad = mutagrad.zeros_like(x)")
    if OTHER_KIND:
        check_inside(tensor)
    if value is tensor:
        raise GradientError("grad: a tensor cannot be its own gradient", fix="x.grad = x.detach().clone()")
    if value is not None and has_own_layout((value,)):
        if value.shape != tensor._array.shape or value.dtype is not of_array(tensor._array.dtype):  # type: ignore[attr-defined]
            raise ShapeError("grad: a sparse gradient must have the shape and type of its tensor")
        tensor._grad = value
        return
    if value is not None and (value._array.shape != tensor._array.shape or value._array.dtype != tensor._array.dtype):
        raise ShapeError(f"grad: a tensor of type {of_array(tensor._array.dtype)} and shape {tensor._array.shape} "
                         f"cannot have {of_array(value._array.dtype)} of shape {value._array.shape} as its gradient",
                         why="the two must agree in shape and type", fix="x.grad = mutagrad.zeros_like(x)")
    if value is not None and IN_USE and device_of(value._array) is not device_of(tensor._array):
        raise BadValue(f"grad: assigned grad has data located on a different device: {value.device}, "
                       f"while the tensor is on {tensor.device}", fix="x.grad = g.to(x.device)")
    tensor._grad = value


def detach_(tensor: AnyTensor) -> AnyTensor:
    """Cut the tensor off its history: from now on it is a constant.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True) * 2
    >>> x.detach_().requires_grad
    False
    """
    cut("detach_", tensor)
    tensor._storage = another_history(tensor)
    return tensor


def set_data(tensor: TensorBase, other: TensorBase) -> None:
    """Point a tensor at the memory of another; a computed one keeps its history, through which gradients still pass."""
    writer = tensor._storage.writer
    if OTHER_KIND:
        check_inside(tensor)
    if not isinstance(other, TensorBase):
        raise BadData(f"data: cannot be set to {type(other).__name__}", fix="x.data = y.data")
    if writer is not None and of_array(other._array.dtype).category < FLOAT:
        raise BadData(f"data: cannot be set to {type(other).__name__} of {of_array(other._array.dtype)}",
                      fix="x.data = y.data, of a floating point type")
    was_leaf = writer is not None and is_leaf(tensor)
    if writer is not None and not was_leaf and (tensor._offset is not None or other._offset is not None
                                                or tensor._array.shape != other._array.shape):
        _set_data_of_view(tensor, other)
        return
    if was_leaf:
        if _overlaps(other._array):
            _become_repeated(tensor, other)
        else:
            tensor._storage, tensor._offset = part_history(other, linked=False)
            tensor._array = other._array
        tensor._storage.writer = tensor._storage.leaf = Leaf(tensor)
        return
    tensor._storage, tensor._array, tensor._offset = another_history(other), other._array, other._offset
    tensor._storage.writer = writer


def _set_data_of_view(tensor: TensorBase, other: TensorBase) -> None:
    """The same where one of them is a view: what the old history says of the window is as if copied to the memory."""
    permuted = other._offset is not None and not other._array.flags.c_contiguous
    if (tensor._array.shape != other._array.shape
            or permuted and memory_order(window_of(other), other._array.itemsize) is None):
        raise NotSupported("data: a computed tensor cannot be given data of another shape, or with gaps",
                           why="its history is that of elements of this shape", fix="x.data = y.contiguous()")
    node = new_node(FOLLOW, (tensor._storage.writer,), (window_or_none(tensor),))
    if other._offset is None:
        storage, offset = another_history(other), None
    else:
        storage, offset = part_history(other, linked=False)
    tensor._storage, tensor._array, tensor._offset = storage, other._array, offset
    if permuted:
        set_write(node, storage, window_of(tensor))
    storage.writer = node
