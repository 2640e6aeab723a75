"""What a module keeps: its parameters and buffers by name, saved and loaded.

The functions are methods of `Module`, written here. (A base class of its own was rejected: programs look at the bases
of modules.)
"""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from ..autograd import no_grad
from ..base.errors import BadArgument, BadValue, ShapeError
from ..base.modes import keeps_modes
from ..tensors.tensor import Tensor
from .hooks import Handle, put
from .parameter import Parameter, is_lazy

__all__ = ["IncompatibleKeys"]


class IncompatibleKeys(NamedTuple):
    """What load_state_dict(strict=False) found no place or no value for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _Loading:
    """One call of load_state_dict: what did not match, and what is to be written once everything is known to fit."""

    def __init__(self, metadata: Mapping[str, Any] | None, assign: bool) -> None:
        self.metadata, self.assign = metadata, assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self.writes: list[Callable[[], Any]] = []
        self.post_hooks: list[tuple[Any, Callable[..., Any]]] = []

    def collect(self, module: Any, state: dict[str, Any], prefix: str = "") -> None:
        """Goes through all modules, each with its own part of the state."""
        local = dict(self.metadata.get(prefix[:-1], {})) if self.metadata else {}
        local["assign_to_params_buffers"] = self.assign
        module._pending = self.writes
        try:
            module._load_from_state_dict(state, prefix, local, True, self.missing, self.unexpected, self.errors)
        finally:
            del module._pending
        for name, child in module._modules.items():
            if child is not None:
                inside = f"{prefix}{name}."
                self.collect(child, {key: value for key, value in state.items() if key.startswith(inside)}, inside)
        self.post_hooks += [(module, hook) for hook in module._load_state_dict_post_hooks.values()]

    def complaints(self, strict: bool) -> list[str]:
        """Return what is wrong: with `strict`, names without a partner, too."""
        sides = (("Missing", self.missing), ("Unexpected", self.unexpected)) if strict else ()
        unmatched = [f"{side} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". "
                     for side, keys in sides if keys]
        return unmatched + self.errors


def _loads_plainly(module: Any) -> bool:
    return getattr(module._load_from_state_dict, "__func__", None) is _load_from_state_dict


def _perform(writes: list[Callable[[], Any]]) -> None:
    with no_grad():
        for write in writes:
            write()


def register_state_dict_pre_hook(self: Any, hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, prefix, keep_vars) before a state_dict is made.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> handle = layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("saved"))
    >>> state = layer.state_dict()
    saved
    """
    return put(self._state_dict_pre_hooks, hook)


def register_state_dict_post_hook(self: Any, hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, state_dict, prefix, metadata) after it is made; the hook may change it, returns None.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 1)
    >>> handle = layer.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.pop("bias") and None)
    >>> list(layer.state_dict())
    ['weight']
    """
    return put(self._state_dict_hooks, hook, marks=[self._state_dict_hooks_silent])


def _register_state_dict_hook(self: Any, hook: Callable[..., Any]) -> Handle:
    return put(self._state_dict_hooks, hook)


def register_load_state_dict_pre_hook(self: Any, hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors) before loading.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> handle = layer.register_load_state_dict_pre_hook(lambda m, state, *_: state.update(weight=state.pop("w")))
    >>> layer.load_state_dict({"w": mg.zeros(1, 2)})
    <All keys matched successfully>
    """
    return put(self._load_state_dict_pre_hooks, hook, marks=[self._load_state_dict_pre_hooks_with_module])


def _register_load_state_dict_pre_hook(self: Any, hook: Callable[..., Any], with_module: bool = False) -> Handle:
    if with_module:
        return self.register_load_state_dict_pre_hook(hook)
    return put(self._load_state_dict_pre_hooks, hook)


def register_load_state_dict_post_hook(self: Any, hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, incompatible_keys) after loading; it may change the lists of keys.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 1)
    >>> handle = layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    >>> layer.load_state_dict({"weight": mg.zeros(1, 2)})
    <All keys matched successfully>
    """
    return put(self._load_state_dict_post_hooks, hook)


def get_extra_state(self: Any) -> Any:
    """Return what else belongs to the state: define it in a subclass, together with set_extra_state.

    >>> import mutagrad as mg
    >>> class Counter(mg.nn.Module):
    ...     count = 3
    ...     def get_extra_state(self):
    ...         return self.count
    ...     def set_extra_state(self, state):
    ...         self.count = state
    >>> counter = Counter()
    >>> counter.state_dict()["_extra_state"]
    3
    """
    raise BadValue("get_extra_state: is not defined", fix="define get_extra_state and set_extra_state together")


def set_extra_state(self: Any, state: Any) -> None:
    """Takes back what get_extra_state gave.

    >>> import mutagrad as mg
    >>> class Counter(mg.nn.Module):
    ...     count = 3
    ...     def get_extra_state(self):
    ...         return self.count
    ...     def set_extra_state(self, state):
    ...         self.count = state
    >>> counter = Counter()
    >>> counter.load_state_dict({"_extra_state": 5}); counter.count
    <All keys matched successfully>
    5
    """
    raise BadValue("set_extra_state: is not defined", fix="define get_extra_state and set_extra_state together")


def _kept(self: Any) -> dict[str, Any]:
    """The parameters and buffers of this module itself that belong to its state."""
    persistent = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
    return {n: v for n, v in chain(self._parameters.items(), persistent) if v is not None}


def _save_to_state_dict(self: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """What this module itself, without those inside, adds to a state_dict."""
    for name, value in self._kept().items():
        destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
    if type(self).get_extra_state is not get_extra_state:
        destination[prefix + "_extra_state"] = self.get_extra_state()


def state_dict(self: Any, *arguments: Any, destination: Any = None, prefix: str = "",
               keep_vars: bool = False) -> dict[str, Any]:
    """Return all parameters and persistent buffers by name. They share their memory with the module.

    >>> import mutagrad as mg
    >>> mg.nn.BatchNorm1d(2, affine=False).state_dict()["running_var"]
    tensor([1., 1.])
    """
    if arguments:
        warnings.warn("state_dict: positional arguments are deprecated; name them", FutureWarning, stacklevel=2)
        destination, prefix, keep_vars = [*arguments, *[destination, prefix, keep_vars][len(arguments):]]
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for number, hook in self._state_dict_hooks.items():
        answer = hook(self, destination, prefix, metadata)
        if answer is not None and number in self._state_dict_hooks_silent:
            raise BadValue("state_dict post-hook must return None", why="the dict is changed in place",
                           fix="return nothing")
        destination = destination if answer is None else answer
    return destination  # type: ignore[no-any-return]


@keeps_modes
def load_state_dict(self: Any, state_dict: Mapping[str, Any], strict: bool = True,
                    assign: bool = False) -> IncompatibleKeys:
    """Copies values by name into parameters and buffers: all of them, or, where something does not fit, none.

    `strict` demands that the names are the same; `assign` puts the tensors themselves in place of the old ones.
    Where a post-hook is registered, it decides which names are amiss, after the others were loaded. A module whose
    class has a `_load_from_state_dict` of its own is loaded at once, as that may read what was loaded.

    >>> import mutagrad as mg
    >>> one, other = mg.nn.Linear(2, 1), mg.nn.Linear(2, 1)
    >>> other.load_state_dict(one.state_dict())
    <All keys matched successfully>
    >>> mg.equal(one.weight, other.weight)
    True
    """
    if not isinstance(state_dict, Mapping):
        raise BadArgument(f"load_state_dict: Expected state_dict to be dict-like, got {type(state_dict).__name__}",
                          fix="model.load_state_dict(mutagrad.load(path))")
    loading = _Loading(getattr(state_dict, "_metadata", None), assign)
    loading.collect(self, OrderedDict(state_dict))
    hooks = loading.post_hooks
    at_once = {type(module).__name__ for module in self.modules() if not _loads_plainly(module)}
    self._check_loaded(loading, strict and not hooks,
                       "nothing was loaded" + f", but into {', '.join(sorted(at_once))}" * bool(at_once))
    _perform(loading.writes)
    result = IncompatibleKeys(loading.missing, loading.unexpected)
    for module, hook in hooks:
        if hook(module, result) is not None:
            raise BadValue("load_state_dict post-hook: must return None",
                           why="the lists of keys are changed in place", fix="return nothing")
    self._check_loaded(loading, strict, "what has a name in both was loaded")
    return result


def _check_loaded(self: Any, loading: _Loading, strict: bool, why: str) -> None:
    """Raises if there is anything to complain about."""
    complaints = loading.complaints(strict)
    if complaints:
        details = "\n\t".join(complaints)
        raise ShapeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{details}", why=why,
                         fix="load_state_dict(state, strict=False) leaves out names that do not match")


def _load_from_state_dict(self: Any, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
                          strict: bool, missing_keys: list[str], unexpected_keys: list[str],
                          error_msgs: list[str]) -> None:
    """What this module itself, without those inside, takes from a state_dict.

    It is written when this returns, unless `load_state_dict` calls it for a class that has no such method of its
    own: then once all is known to fit.
    """
    later = self.__dict__.get("_pending") if _loads_plainly(self) else None
    writes = [] if later is None else later
    self._complete_state(state_dict, prefix, local_metadata)
    for number, hook in self._load_state_dict_pre_hooks.items():
        first = (self,) if number in self._load_state_dict_pre_hooks_with_module else ()
        hook(*first, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    own = self._kept()
    for name, value in own.items():
        key = prefix + name
        if key in state_dict:
            assign = local_metadata.get("assign_to_params_buffers", False)
            self._load_one(name, key, value, state_dict[key], assign, error_msgs, writes)
        elif strict:
            missing_keys.append(key)
    extra = prefix + "_extra_state"
    if type(self).set_extra_state is not set_extra_state:
        if extra in state_dict:
            writes.append(lambda: self.set_extra_state(state_dict[extra]))
        elif strict:
            missing_keys.append(extra)
    elif strict and extra in state_dict:
        unexpected_keys.append(extra)
    if strict:
        for key in state_dict:
            first_part, _, rest = key[len(prefix):].partition(".")
            if key.startswith(prefix) and key != extra and first_part not in (self._modules if rest else own):
                unexpected_keys.append(key)
    if later is None:
        _perform(writes)


def _complete_state(self: Any, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
    """Adds what states lack that were saved before a layer kept it."""


def _load_one(self: Any, name: str, key: str, target: Any, value: Any, assign: bool, errors: list[str],
              writes: list[Callable[[], Any]]) -> None:
    """Notes what is to be written for one parameter or buffer, or why it cannot be."""
    if not isinstance(value, Tensor):
        errors.append(f"While copying the parameter named {key!r}, expected Tensor or Tensor-like object from "
                      f"checkpoint but received {type(value).__name__}.")
        return
    if is_lazy(value) or is_lazy(target):
        if is_lazy(target) and not is_lazy(value):
            writes += [lambda: target.materialize(value.shape), lambda: target.copy_(value)]
        elif not is_lazy(target):
            errors.append(f"{key}: the shape of an uninitialized parameter is not known, and it is "
                          f"{tuple(target.shape)} in current model; the module in the checkpoint had not been "
                          "called.")
        return
    if value.shape != target.shape and not (value.shape == (1,) and not target.ndim):
        errors.append(f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                      f"the shape in current model is {target.shape}.")
        return
    if not assign and target.is_meta and not value.is_meta:
        warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                      "current model does nothing; load_state_dict(state, assign=True) puts it in its place",
                      stacklevel=2)
    elif not assign:
        fits = value.shape == target.shape
        writes.append(lambda: target.copy_(value if fits else value.reshape(target.shape)))
    elif name in self._parameters:
        made = (value.requires_grad_(target.requires_grad) if isinstance(value, Parameter)
                else Parameter(value, target.requires_grad))
        writes.append(lambda: setattr(self, name, made))
    else:
        writes.append(lambda: setattr(self, name, value))
