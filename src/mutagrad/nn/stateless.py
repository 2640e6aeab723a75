"""Modules as functions of their parameters: called with others, stacked for `vmap`."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.errors import BadValue
from ..ops.shape.shape import stack
from ..tensors.tensor import Tensor
from .module import Module
from .normalization import _BatchNorm

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(module: Module, parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
                    args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Calls a module with other tensors in the place of its parameters and buffers, given by name.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 1)
    >>> mg.func.functional_call(layer, {"weight": mg.ones(1, 2), "bias": mg.zeros(1)}, mg.tensor([1., 2.]))
    tensor([3.])
    """
    given = parameter_and_buffer_dicts
    given = given if isinstance(given, dict) else _joined(given)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with swapped(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _joined(dicts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for d in dicts:
        if given.keys() & d.keys():
            raise BadValue(f"functional_call: {sorted(given.keys() & d.keys())} are given twice")
        given.update(d)
    return given


@contextmanager
def swapped(module: Module, parameters_and_buffers: dict[str, Any], tie_weights: bool = False,
            strict: bool = False) -> Iterator[None]:
    """A block in which a module has other parameters and buffers; what it puts in their place is in the dict then."""
    given = parameters_and_buffers
    own = {name: (owner, table, key) for name, owner, table, key in _slots(module)}
    if strict and given.keys() != own.keys():
        raise BadValue(f"functional_call: unexpected names {sorted(given.keys() - own.keys())}, missing names "
                       f"{sorted(own.keys() - given.keys())}", fix="dict(module.named_parameters())")
    given = {name: value for name, value in given.items() if name in own}
    values = {id(_value(*own[name])): value for name, value in given.items()} if tie_weights else {}
    before = {name: _value(*slot) for name, slot in own.items()}
    try:
        for name, (owner, table, key) in own.items():
            if name in given or id(before[name]) in values:
                owner.__dict__[table][key] = given.get(name, values.get(id(before[name])))
        yield
    finally:
        parameters_and_buffers.update({name: _value(*own[name]) for name in given})
        for name, (owner, table, key) in own.items():
            owner.__dict__[table][key] = before[name]


def _slots(module: Module) -> Iterator[tuple[str, Module, str, str]]:
    for path, owner in module.named_modules(remove_duplicate=False):
        for table in ("_parameters", "_buffers"):
            for key, value in owner.__dict__[table].items():
                if value is not None:
                    yield f"{path}.{key}" if path else key, owner, table, key


def _value(owner: Module, table: str, key: str) -> Any:
    return owner.__dict__[table][key]


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and buffers of models of one kind, stacked by name, for `vmap` over `functional_call`.

    >>> import mutagrad as mg
    >>> params, buffers = mg.func.stack_module_state([mg.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    mutagrad.Size([3, 1, 2])
    """
    if not models:
        raise BadValue("stack_module_state: there are no models")
    if len({type(m) for m in models}) > 1:
        raise BadValue("stack_module_state: the models are of different classes")
    named = [dict(m.named_parameters()) for m in models]
    parameters = {name: stack([own[name] for own in named]).detach().requires_grad_(p.requires_grad)
                  for name, p in models[0].named_parameters()}
    buffers = [dict(m.named_buffers()) for m in models]
    return parameters, {name: stack([own[name] for own in buffers]) for name in buffers[0]}


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Makes every batch norm inside normalize by the batch at hand.

    Calls under `vmap` could not share running statistics.

    >>> import mutagrad as mg
    >>> mg.func.replace_all_batch_norm_modules_(mg.nn.BatchNorm1d(2)).track_running_stats
    False
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
