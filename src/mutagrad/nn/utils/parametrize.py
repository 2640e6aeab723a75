"""Parameters that are computed from others whenever they are read.

>>> import mutagrad as mg
>>> from mutagrad.nn.utils import parametrize
>>> class Symmetric(mg.nn.Module):
...     def forward(self, x):
...         return x.triu() + x.triu(1).mT
>>> layer = parametrize.register_parametrization(mg.nn.Linear(3, 3), "weight", Symmetric())
>>> bool((layer.weight == layer.weight.mT).all())
True

The module's class is replaced by one of its own, whose properties are the parametrized parameters.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from ...autograd import no_grad
from ...base.errors import BadValue, NotSupported
from ...base.modes import keeps_modes
from ...core.dtypes import dtype
from ...tensors.tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]


class _Cache:
    """What was computed inside `with cached()`."""

    depth = 0
    values: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized parameter only once inside the block.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> with mg.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


def _check_same(found: Any, shape: Sequence[int], dtype: dtype, what: str, demand: str) -> None:
    """A parametrization gives a tensor like the one in whose place it stands, unless it is declared unsafe."""
    if not isinstance(found, Tensor):
        raise BadValue(f"{what} must return a tensor, got {type(found).__name__}", fix="return a tensor")
    for aspect, before, after in (("dtype", dtype, found.dtype), ("shape", tuple(shape), tuple(found.shape))):
        if before != after:
            raise BadValue(f"{what} {demand} {aspect} of the tensor: {before} became {after}",
                           fix="register_parametrization(..., unsafe=True)")


_REGISTERING = "Registering a parametrization", "may not change the"


def _check_sequence(start: Any) -> None:
    """That a right_inverse that gives no tensor gives several."""
    if not isinstance(start, Sequence):
        raise BadValue(f"right_inverse must return a Tensor or a Sequence of tensors, got {type(start).__name__}",
                       fix="return a tensor")
    for i, t in enumerate(start):
        if not isinstance(t, Tensor):
            raise BadValue(f"right_inverse must return a Tensor or a Sequence of tensors, got element {i} of the "
                           f"sequence with type {type(t).__name__}", fix="return tensors")


class ParametrizationList(ModuleList):
    """The parametrizations of one parameter, applied in turn to `original` (or `original0`, `original1`, ...).

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> type(layer.parametrizations.weight).__name__
    'ParametrizationList'
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise BadValue("ParametrizationList: needs at least one module",
                           fix="register_parametrization(module, name, parametrization)")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        start = self._start(original)
        self.is_tensor = isinstance(start, Tensor)
        if not self.is_tensor:
            _check_sequence(start)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            if start.dtype != dtype:
                raise BadValue(f"when right_inverse outputs one tensor, it may not change the dtype: {dtype} became "
                               f"{start.dtype}", fix=f"return result.to({dtype})")
            if start.device != original.device:
                raise BadValue("when right_inverse outputs one tensor, it may not change the device: "
                               f"{original.device} became {start.device}", fix="return a tensor on the same device")
            original.data = start.detach()
            _put(self, "original", original)
        else:
            for i, t in enumerate(start):
                made = Parameter(t, original.requires_grad) if isinstance(original, Parameter) else t
                _put(self, f"original{i}", made)
        if not unsafe:
            _check_same(self(), shape, dtype, *_REGISTERING)

    @keeps_modes
    def _start(self, value: Tensor) -> Any:
        """What the parametrizations that can be inverted make the value of."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        value = module.right_inverse(value)
        return value

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @keeps_modes
    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parameter has this value: what an assignment does.

        >>> import mutagrad as mg
        >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
        >>> layer.parametrizations.weight.right_inverse(mg.ones(2, 3))
        >>> layer.weight.detach().round()
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise NotSupported(f"parametrization {type(module).__name__} has no right_inverse, so that nothing "
                                       "can be assigned", fix="define right_inverse(value)")
                value = module.right_inverse(value)
        values = [value] if self.is_tensor else value
        several = isinstance(values, Sequence) and len(values) == self.ntensors
        if not several or not all(isinstance(t, Tensor) for t in values):
            raise BadValue(f"right_inverse must return {self.ntensors} tensors",
                           fix="as many as when it was registered")
        for original, new in zip(self._originals(), values):
            if original.dtype != new.dtype:
                raise BadValue(f"right_inverse returned {new.dtype} for an original of {original.dtype}",
                               fix=f"return result.to({original.dtype})")
        for original, new in zip(self._originals(), values):
            original.data = new.detach()

    def forward(self) -> Any:
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _put(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# --------------------------------------------------------------------------------------------------- a class of its own

def _copied(self: Any, memo: dict[int, Any]) -> Any:
    """A copy has a class of its own, too, so that removing its parametrizations leaves the first one alone."""
    kept = {name: value for name, value in vars(type(self)).items() if name not in ("__dict__", "__weakref__")}
    replica: Any = object.__new__(type(type(self).__name__, type(self).__bases__, kept))
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    return replica


def _refuse_to_pickle(self: Any) -> Any:
    raise NotSupported("a parametrized module cannot be pickled", why="its class exists only here",
                       fix="mutagrad.save(module.state_dict(), path)")


def _parametrized_property(name: str) -> property:
    def get(self: Module) -> Any:
        parametrization = self.parametrizations[name]
        if not _Cache.depth:
            return parametrization()
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = parametrization()
        return _Cache.values[key]

    def put(self: Module, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Make `module.tensor_name` what `parametrization` computes from the tensor that was there.

    >>> import mutagrad as mg
    >>> class Positive(mg.nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> (layer.weight > 0).all()
    tensor(True)
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            cls = type(module)
            members = {"__deepcopy__": _copied, "__getstate__": _refuse_to_pickle}
            module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _parametrized_property(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise BadValue(f"register_parametrization: {type(module).__name__} does not have a parameter, a buffer or a "
                       f"parametrized tensor {tensor_name!r}", fix="a name from dict(module.named_parameters())")
    return module


def _append(module: Module, tensor_name: str, parametrization: Module, unsafe: bool) -> None:
    if not unsafe:
        before = getattr(module, tensor_name)
        after = parametrization(before)
        _check_same(after, before.shape, before.dtype, *_REGISTERING)
        if hasattr(parametrization, "right_inverse"):
            try:
                back = parametrization.right_inverse(after)
            except NotImplementedError:
                back = before
            _check_same(back, before.shape, before.dtype, "right_inverse", "must have the same")
    module.parametrizations[tensor_name].append(parametrization)
    module.parametrizations[tensor_name].unsafe |= unsafe


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether anything of a module, or this parameter, is parametrized.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> [mg.nn.utils.parametrize.is_parametrized(layer, name) for name in ("weight", "bias")]
    [True, False]
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a parametrized tensor an ordinary one again: with its present value, or with that of the original.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> _ = mg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> [name for name, p in layer.named_parameters()]
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise BadValue(f"remove_parametrizations: {type(module).__name__} does not have a parametrization on "
                       f"{tensor_name!r}", fix="is_parametrized(module, name)")
    made = module.parametrizations[tensor_name]
    if not made.is_tensor and not leave_parametrized:
        raise BadValue("remove_parametrizations: leave_parametrized=False is for one original, and there are several "
                       "here", fix="leave_parametrized=True")
    value = getattr(module, tensor_name)
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            original.data = value.detach()
    else:
        original = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _put(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module  # type: ignore[no-any-return]


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before anything of it was parametrized.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> mg.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module,
                                         tensor_name: str | None = None) -> Module:
    """Gives another module the same parametrizations, on the same originals.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> other = mg.nn.utils.parametrize.transfer_parametrizations_and_params(layer, mg.nn.Linear(3, 2))
    >>> mg.nn.utils.parametrize.is_parametrized(other, "weight")
    True
    """
    if is_parametrized(from_module):
        for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
            if not hasattr(to_module, name):
                setattr(to_module, name, Parameter(getattr(from_module, name)))
            made = from_module.parametrizations[name]
            for parametrization in made:
                register_parametrization(to_module, name, parametrization)
            for original in ["original"] if made.is_tensor else [f"original{i}" for i in range(made.ntensors)]:
                setattr(to_module.parametrizations[name], original, getattr(made, original))
    return to_module  # type: ignore[no-any-return]
