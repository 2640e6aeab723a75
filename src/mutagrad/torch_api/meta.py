"""Tensors of which there is a shape and a type, and no data: the device "meta".

A model that is made there costs no memory: its tensors have zeros that are never touched, and so never become real. Writes do
nothing, functions give tensors of the same kind, and asking for values is an error.

>>> import mutagrad as mg
>>> with mg.device("meta"):
...     layer = mg.nn.Linear(100_000, 1000)
>>> layer.weight.shape, layer.weight.device
(mutagrad.Size([1000, 100000]), device(type='meta'))
"""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.device import META, device
from ..base.errors import NotSupported
from ..core.factory import make
from ..tensors.tensor import Tensor
from .torch_function import untouched

# Functions that need values.
_READS = frozenset(["__array__", "__bool__", "__complex__", "__contains__", "__float__", "__index__", "__int__", "allclose", "cpu", "data_ptr", "equal", "item",
                    "masked_select", "nonzero", "numpy", "tolist", "unique", "unique_consecutive"])
# Methods in place that write no values.
_RESHAPING = frozenset(["detach_", "requires_grad_", "resize_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"])


class Meta(Tensor):
    """A tensor without data."""

    is_meta, is_cpu = True, False

    def __new__(cls, *arguments: Any, **settings: Any) -> Any:
        """`type(parameter)(data)`: a parameter, with data if it is given some."""
        return real_class(cls)(*arguments, **settings)

    @property
    def device(self) -> device:
        return META

    def as_subclass(self, cls: type[Any]) -> Any:
        """The same as an instance of a subclass: one without data, too."""
        return Tensor.as_subclass(self, without_data(cls))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = blank(self).as_subclass(type(self)).requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        kind = "Parameter containing:\n" if real_class(type(self)).__name__ == "Parameter" else ""
        return f"{kind}tensor(..., device='meta', size={tuple(self._array.shape)}" + (", requires_grad=True)" if self.requires_grad else ")")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not all(issubclass(kind, Meta) for kind in types):
            return NotImplemented
        name = func.__name__
        if name == "__set__":
            return _set(func, args)
        if name in _READS or name == "to" and _leaves(args[1:], kwargs):
            raise NotSupported(f"{name}: Cannot copy out of meta tensor; no data!", why="a tensor on the device 'meta' has a shape and a type only",
                               fix="model.to_empty(device='cpu'), or load_state_dict(state, assign=True)")
        if name == "__setitem__" or name == "setitem" or name.endswith("_") and not name.endswith("__") and name not in _RESHAPING:
            return _written(name, args[0])
        result = untouched(func, args, kwargs)
        return result if kwargs.get("device") is not None and device(kwargs["device"]).type != "meta" else emptied(result)


def _leaves(targets: Any, settings: Any) -> bool:
    """Whether `x.to(...)` asks for another device."""
    wanted = [t for t in (*targets, settings.get("device")) if isinstance(t, (str, device))]
    return any(device(t).type != "meta" for t in wanted)


def _written(name: str, target: Any) -> Any:
    """What a write gives that has nothing to write."""
    if not isinstance(target, Meta):
        raise NotSupported(f"{name}: Cannot copy out of meta tensor; no data!", why="the target has data, and the source has none",
                           fix="write the other way round")
    return None if name in ("__setitem__", "setitem") else target


def _set(func: Any, args: Any) -> None:
    """`x.data = y` makes x a tensor with or without data, as y is."""
    target, value = args
    if func == Tensor.data.__set__:  # type: ignore[attr-defined]
        kind = real_class(type(target))
        target.__class__ = without_data(kind) if isinstance(value, Meta) else kind
    untouched(func, args, None)


def emptied(result: Any) -> Any:
    """Tensors without data of the shapes and types of these."""
    if isinstance(result, Tensor):
        return result if isinstance(result, Meta) else Tensor.as_subclass(result, Meta)
    if isinstance(result, (list, tuple)) and any(isinstance(one, Tensor) for one in result):
        return type(result)([emptied(one) for one in result])
    return result


_classes: dict[type, Any] = {Tensor: Meta}


def without_data(kind: Any) -> Any:
    """The class of the tensors of a class that have no data."""
    if issubclass(kind, Meta):
        return kind
    if kind not in _classes:
        _classes[kind] = type(kind.__name__, (Meta, kind), {"__torch_function__": Meta.__torch_function__, "stands_for": Meta})
    return _classes[kind]


def real_class(kind: type) -> Any:
    """The class of such tensors if they had data."""
    return next(base for base in kind.__mro__ if not issubclass(base, Meta))


def blank(x: Tensor) -> Any:
    """A tensor without data of the shape and type of x."""
    return Tensor.as_subclass(make(np.zeros(x._array.shape, x._array.dtype)), Meta)
