"""`mutagrad.describe(x)`: what is in a tensor, in one line.

>>> import mutagrad as mg
>>> mg.describe(mg.tensor([[0., 1.], [2., 5.]]))
tensor (2, 2) float32, 0 to 5, mean 2, std 2.16, 25% zeros
>>> mg.describe({"a": mg.ones(3), "b": mg.tensor([1, 2])})
a  tensor (3,) float32, all 1
b  tensor (2,) int64, 1 to 2, mean 1.5, std 0.7071
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan, sqrt
from typing import Any

from ..arrays import np
from ..arrays.kinds import share_memory, unknown, window
from ..base.errors import BadArgument
from ..base.layout import strided
from ..base.operands import Array
from ..base.provenance import describe as described
from ..core.graph import Leaf, Node
from ..core.window import index_of
from ..nn.module import Module
from ..nn.parameter import Parameter, is_lazy
from ..tensors.tensor import Tensor
from .statistics import Statistics, statistics


class Text(str):
    """Text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def describe(x: Any) -> Text:
    """Return a line about a tensor: shape, type, range, mean, deviation, zeros, nan, inf, gradient, who wrote it last.

    Of a list, dict or `state_dict` a line for each tensor in it, of a module one for each parameter and buffer.

    >>> import mutagrad as mg
    >>> mg.describe(mg.tensor([1., 2., 3.]))
    tensor (3,) float32, 1 to 3, mean 2, std 1
    """
    if isinstance(x, Tensor):
        return Text(_about(x))
    if not isinstance(x, (Module, Mapping, list, tuple)):
        if not hasattr(x, "__array__"):
            raise BadArgument("describe: expected a tensor, a module, or a list or dict of tensors, "
                              f"not {type(x).__name__}", fix="describe(mutagrad.as_tensor(x))")
        return Text(_about_array("array", np.asarray(x), np.asarray(x).dtype.name))
    rows = [(name, _about(value)) for name, value in _named(x)]
    width = max((len(name) for name, _ in rows), default=0)
    return Text("\n".join(f"{name:<{width}}  {line}" for name, line in rows) or f"{type(x).__name__} without tensors")


def line_about(x: Tensor) -> str:
    """Return the line about one tensor."""
    if is_lazy(x):
        return f"{type(x).__name__} without a shape yet"
    kind = "parameter" if isinstance(x, Parameter) else "tensor"
    place = "" if x.is_cpu else f" on {x.device}"
    if x.is_meta or unknown(x._array):
        return ", ".join([f"{kind} {tuple(x.shape)} {x.dtype.name}{place}", "no values", *_history(x)])
    return ", ".join([_about_array(kind, x._array, x.dtype.name + place), *_history(x)])


def _about(value: Any) -> str:
    if isinstance(value, Tensor) and value.layout is not strided:
        return f"sparse tensor {tuple(value.shape)} with {value._nnz():,} values: {line_about(value._values())}"
    return line_about(value) if isinstance(value, Tensor) else f"{type(value).__name__} {value!r}"[:80]


def _named(x: Any) -> Iterator[tuple[str, Any]]:
    """Yield what there is to describe, with its path."""
    waiting: list[tuple[str, Any]] = [("", x)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Module):
            inside = [*value.named_parameters(), *value.named_buffers()]
        elif isinstance(value, Mapping):
            inside = [(str(key), one) for key, one in value.items()]
        elif isinstance(value, (list, tuple)):
            inside = [(str(i), one) for i, one in enumerate(value)]
        else:
            yield name, value
            continue
        waiting += [(f"{name}.{key}" if name else key, one) for key, one in reversed(inside)]


# ------------------------------------------------------------------------------------------------------------- values

def number(value: float) -> str:
    """Return a number in four digits."""
    return f"{value:.4g}"


def share(part: float) -> str:
    """Return a share in per cent, never 0 or 100 if it is not quite that.

    >>> share(0.5), share(0.0001), share(0.9999)
    ('50%', '<1%', '>99%')
    """
    return "<1%" if 0 < part < 0.01 else ">99%" if 0.99 < part < 1 else f"{part:.0%}"


def _about_array(kind: str, array: Array, dtype: str) -> str:
    head = f"{kind} {tuple(array.shape)} {dtype}"
    found = statistics(array)
    if not found.size:
        return f"{head}, empty"
    words = _truths(found) if array.dtype.kind == "b" else _numbers(found, "|x| " if array.dtype.kind == "c" else "")
    return ", ".join([head, *words])


def _truths(found: Statistics) -> list[str]:
    return [f"{share(1 - found.zeros)} True"]


def _numbers(found: Statistics, of: str) -> list[str]:
    words = []
    if found.size > found.nans + found.infs:
        if found.smallest == found.largest:
            which = "" if found.size == 1 else "finite ones all " if found.nans + found.infs else "all "
            words = [f"{of}{which}{number(found.smallest)}"]
        else:
            words = [f"{of}{number(found.smallest)} to {number(found.largest)}", f"mean {number(found.mean)}",
                     f"std {number(found.std)}"]
    if found.zeros and found.smallest != found.largest:
        words.append(f"{share(found.zeros)} zeros")
    for word, count in (("nan", found.nans), ("inf", found.infs)):
        words += [f"{count:,} {word} ({share(count / found.size)})"] if count else []
    return words


# ------------------------------------------------------------------------------------------------------------ history

def _history(x: Tensor) -> list[str]:
    """Return what there is to say about the gradient and about who wrote the tensor."""
    grad: Any = x._grad  # x.grad would warn where there is none
    words = [f"grad norm {number(norm(grad))}"] if grad is not None else []
    if not words and x.requires_grad:
        words = ["no grad yet"] if x.is_leaf else []
    writer = last_writer(x)
    if isinstance(writer, Node):
        words.append(f"written by {writer.op.name} at {described(writer.where)}")
    elif isinstance(writer, Leaf):
        words.append("leaf")
    return words


def norm(x: Tensor) -> float:
    """Return the 2-norm of a tensor's elements, in double precision."""
    found = statistics(x._array)
    if found.nans or found.infs:
        return nan if found.nans else inf
    spread = found.std * found.std * (found.size - 1) if found.size > 1 else 0.0
    return sqrt(spread + found.size * found.mean * found.mean) if found.size else 0.0


def last_writer(x: Tensor) -> Any:
    """Return the newest recorded write that touched the tensor's elements, or the leaf; None if nothing is recorded."""
    writer = x._storage.writer
    while isinstance(writer, Node) and writer.written is not None and not _touches(writer, x):
        writer = writer.previous
    return writer


def _touches(writer: Node, x: Tensor) -> bool:
    """Whether a write to part of a storage may have changed elements of a tensor on it."""
    written: Any = writer.written
    if index_of(written) is not None:
        return True
    offset, shape, strides = (written, (), ()) if isinstance(written, int) else written[:3]
    buffer = x._storage.buffer
    dtype = buffer.dtype if isinstance(written, int) or written[3] is None else written[3].dtype
    return share_memory(window(buffer, shape, dtype, offset, strides), x._array)
