"""Trees: nested lists, tuples, dicts and the like as a list of their leaves and a description of the rest.

>>> from mutagrad.utils._pytree import tree_flatten, tree_map, tree_unflatten
>>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([10, 20, 30], spec)
{'a': 10, 'b': (20, [30])}
>>> tree_map(lambda x: x + 1, [1, (2,)])
[2, (3,)]
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .errors import BadValue

PyTree = Any
Predicate = Callable[[PyTree], bool]
Flatten = Callable[[Any], tuple[list[Any], Any]]  # a container's children, and a context
Unflatten = Callable[[list[Any], Any], Any]  # the container again, from these


class NodeDef(NamedTuple):
    """How a container is taken apart into children and a context, and put together again."""

    flatten: Flatten
    unflatten: Unflatten

    @property
    def flatten_fn(self) -> Flatten:
        return self.flatten

    @property
    def unflatten_fn(self) -> Unflatten:
        return self.unflatten


def _mapping(make: Callable[[list[Any], list[Any]], Any]) -> NodeDef:
    return NodeDef(lambda d: (list(d.values()), list(d)), lambda values, keys: make(keys, values))


SUPPORTED_NODES: dict[type, NodeDef] = {
    list: NodeDef(lambda v: (v, None), lambda children, _: list(children)),
    tuple: NodeDef(lambda v: (list(v), None), lambda children, _: tuple(children)),
    deque: NodeDef(lambda v: (list(v), v.maxlen), lambda children, maxlen: deque(children, maxlen)),
    dict: _mapping(lambda keys, values: dict(zip(keys, values))),
    OrderedDict: _mapping(lambda keys, values: OrderedDict(zip(keys, values))),
    defaultdict: NodeDef(lambda d: (list(d.values()), (d.default_factory, list(d))),
                         lambda values, context: defaultdict(context[0], zip(context[1], values))),
}
_NAMED_TUPLE = NodeDef(lambda v: (list(v), type(v)), lambda children, kind: kind(*children))


def register_pytree_node(cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **settings: Any) -> None:
    """Make a class a container: `flatten_fn` gives children and a context, of which `unflatten_fn` makes it again."""
    if cls in SUPPORTED_NODES:
        raise BadValue(f"register_pytree_node: {cls.__name__} is registered already", fix="register a class once")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


class MappingKey(NamedTuple):
    """Where a leaf is in a dictionary."""

    key: Any


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """The values of a dictionary with their places, and the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of a dictionary, and the keys."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


def _definition(tree: PyTree) -> NodeDef | None:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _NAMED_TUPLE
    return SUPPORTED_NODES.get(type(tree))


class TreeSpec(NamedTuple):
    """A tree without its leaves: the type of its container (None for a leaf), its context, and its children."""

    type: type | None
    context: Any
    children_specs: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None


LEAF = TreeSpec(None, None, ())


def LeafSpec() -> TreeSpec:
    """Return the shape of a tree that is one leaf."""
    return LEAF


def _get_node_type(tree: PyTree) -> type:
    """Return the class by which a tree is found among the containers."""
    return type(tree)


def tree_flatten(tree: PyTree, is_leaf: Predicate | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree from left to right, and its shape."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: Predicate | None) -> TreeSpec:
    definition = None if is_leaf is not None and is_leaf(tree) else _definition(tree)
    if definition is None:
        leaves.append(tree)
        return LEAF
    children, context = definition.flatten(tree)
    return TreeSpec(type(tree), context, tuple(_flatten(child, leaves, is_leaf) for child in children))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return a tree of this shape with these leaves."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise BadValue(f"tree_unflatten: {len(given)} leaves for a tree with {treespec.num_leaves}",
                       fix="leaves, spec = tree_flatten(tree)")
    return _unflatten(iter(given), treespec)


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> PyTree:
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children_specs]
    definition = SUPPORTED_NODES.get(spec.type, _NAMED_TUPLE)
    return definition.unflatten(children, spec.context)


def tree_leaves(tree: PyTree, is_leaf: Predicate | None = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: PyTree, is_leaf: Predicate | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Predicate | None = None) -> PyTree:
    """Return a tree of the same shape with `func` of every leaf, and of those in the same place of the other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf) for rest in rests]
    if any(other != spec for _, other in others):
        raise BadValue("tree_map: the trees differ in shape", fix="tree_map(f, tree, tree_of_the_same_shape)")
    return tree_unflatten(map(func, leaves, *(other for other, _ in others)), spec)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Predicate | None = None) -> PyTree:
    """Call `func` with every leaf; return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Predicate | None = None) -> PyTree:
    """Change only leaves of a type, or of several, or those that a predicate chooses."""
    chosen = type_or_types_or_pred
    if isinstance(chosen, (type, tuple)):
        return tree_map(lambda x: func(x) if isinstance(x, chosen) else x, tree, is_leaf=is_leaf)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))
