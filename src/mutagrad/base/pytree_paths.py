"""Leaves of a tree together with where they are.

>>> from mutagrad.utils._pytree import keystr, tree_flatten_with_path
>>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": 1, "b": (2, [3])})[0]]
[("['a']", 1), ("['b'][0]", 2), ("['b'][1][0]", 3)]
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .errors import BadArgument, BadValue
from .pytree import (
    SUPPORTED_NODES,
    GetAttrKey,
    Predicate,
    PyTree,
    TreeSpec,
    _get_node_type,
    register_pytree_node,
    tree_is_leaf,
    tree_structure,
    tree_unflatten,
)

KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """Return a path as text."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at a place in a tree."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_leaves_with_path(tree: PyTree, is_leaf: Predicate | None = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, each after its path."""
    return list(_with_path((), tree, is_leaf))


def _with_path(path: KeyPath, tree: PyTree, is_leaf: Predicate | None) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    flatten = SUPPORTED_NODES[kind].flatten_with_keys
    if flatten is None:
        raise BadValue(f"tree: Did not find a flatten_with_keys_fn for type: {kind}",
                       fix="register_pytree_node(..., flatten_with_keys_fn=...)")
    for key, child in flatten(tree)[0]:
        yield from _with_path((*path, key), child, is_leaf)


def tree_flatten_with_path(tree: PyTree,
                           is_leaf: Predicate | None = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves of a tree, each after its path, and its shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
                       is_leaf: Predicate | None = None) -> PyTree:
    """Return a tree of the same shape with `func` of every path and leaf, and of what is in its place in the others."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    return tree_unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)), spec)


def register_dataclass(cls: type, *, field_names: Sequence[str] | None = None,
                       drop_field_names: Sequence[str] | None = None, serialized_type_name: str | None = None) -> None:
    """Make a dataclass a container of its fields, of which those that are None are left out."""
    if not dataclasses.is_dataclass(cls) and field_names is None:
        raise BadArgument(f"register_dataclass: {cls.__name__} is no dataclass", fix="give field_names")
    known = ([f.name for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls)
             else list(field_names or ()))
    names = [name for name in (known if field_names is None else field_names) if name not in (drop_field_names or ())]
    if not set(names) <= set(known):
        raise BadValue(f"register_dataclass: {cls.__name__} has no field {sorted(set(names) - set(known))}")

    def split(obj: Any) -> tuple[list[tuple[GetAttrKey, Any]], list[list[str]]]:
        values = [(name, getattr(obj, name)) for name in names]
        there = [(GetAttrKey(name), value) for name, value in values if value is not None]
        return there, [[key.name for key, _ in there], [name for name, value in values if value is None]]

    def flatten(obj: Any) -> tuple[list[Any], list[list[str]]]:
        there, context = split(obj)
        return [value for _, value in there], context

    def unflatten(values: Any, context: list[list[str]]) -> Any:
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=split)


def register_constant(cls: type) -> None:
    """Make the objects of a class part of a tree's shape: they have no leaves."""
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj))
