"""The shape of a tree as text, in PyTorch's format, and back.

>>> from mutagrad.utils._pytree import tree_structure, treespec_dumps, treespec_loads
>>> spec = tree_structure({"a": (1, [2])})
>>> treespec_loads(treespec_dumps(spec)) == spec
True
"""
from __future__ import annotations

import json
from collections import defaultdict, namedtuple
from importlib import import_module
from typing import Any

from .errors import BadData, BadValue, NotSupported
from .pytree import (
    LEAF,
    SUPPORTED_NODES,
    TEXT_FORMS,
    TextForm,
    TreeSpec,
    tree_unflatten,
)

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1
_NAMED: dict[type, TextForm] = {}  # tuples with names, by class


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Say by which name a class of tuples with names is known in text."""
    _NAMED[cls] = TextForm(serialized_type_name)


def _named_dump(kind: type) -> str:
    if kind not in _NAMED:
        raise NotSupported(f"treespec_dumps: Can't serialize a named tuple of the class {kind.__name__}",
                           why="nothing says by which name it is known in text",
                           fix="_register_namedtuple(cls, serialized_type_name='name')")
    return _NAMED[kind].name


def _named_load(name: str) -> type:
    for kind, form in _NAMED.items():
        if form.name == name:
            return kind
    raise NotSupported(f"treespec_loads: no named tuple is known as {name}",
                       fix="_register_namedtuple(cls, serialized_type_name='name')")


def _default_dump(context: list[Any]) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": getattr(factory, "__module__", None),
            "default_factory_name": getattr(factory, "__qualname__", None), "dict_context": keys}


def _default_load(written: dict[str, Any]) -> list[Any]:
    module, name = written["default_factory_module"], written["default_factory_name"]
    return [getattr(import_module(module), name) if module else None, written["dict_context"]]


_SPECIAL = {namedtuple: TextForm("collections.namedtuple", _named_dump, _named_load),
            defaultdict: TextForm("collections.defaultdict", _default_dump, _default_load)}


def _form(kind: Any) -> TextForm:
    if kind in TEXT_FORMS:
        return TEXT_FORMS[kind]
    if kind in _SPECIAL:
        return _SPECIAL[kind]
    if kind.__module__ in ("builtins", "collections"):
        return TextForm(f"{kind.__module__}.{kind.__qualname__}")
    raise NotSupported(f"treespec_dumps: no text is known for {kind.__name__}",
                       fix="register_pytree_node(..., serialized_type_name='name')")


def _as_data(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    form = _form(spec.type)
    context = json.dumps(spec.context) if form.dump is None else form.dump(spec.context)
    return {"type": form.name, "context": context, "children_spec": [_as_data(child) for child in spec.children_specs]}


def _from_data(data: dict[str, Any], kinds: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return LEAF
    if data["type"] not in kinds:
        raise NotSupported(f"treespec_loads: {data['type']} is not known", fix="register_pytree_node(...) first")
    kind = kinds[data["type"]]
    load = _form(kind).load
    context = json.loads(data["context"]) if load is None else load(data["context"])
    return TreeSpec(kind, context, [_from_data(child, kinds) for child in data["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return the shape of a tree as text."""
    if not isinstance(treespec, TreeSpec):
        raise BadData(f"treespec_dumps: expected a TreeSpec, got {type(treespec).__name__}", fix="tree_structure(tree)")
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        raise BadValue(f"treespec_dumps: Unknown protocol {protocol}", fix="protocol=1")
    return json.dumps([DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _as_data(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the shape of a tree from its text."""
    protocol, data = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise BadValue(f"treespec_loads: Unknown protocol {protocol}", fix="treespec_dumps(spec)")
    kinds = {}
    for kind in SUPPORTED_NODES:
        try:
            kinds[_form(kind).name] = kind
        except NotSupported:  # no text can name it
            continue
    return _from_data(data, kinds)


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the shape of a tree as it would be printed, with stars for leaves."""
    return repr(tree_unflatten([_Leaf()] * treespec.num_leaves, treespec))


def pytree_to_str(treespec: TreeSpec) -> str:
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    return treespec_loads(json)
