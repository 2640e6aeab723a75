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

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .errors import BadArgument, BadValue

PyTree = Any
Predicate = Callable[[PyTree], bool]
Flatten = Callable[[Any], tuple[list[Any], Any]]  # a container's children, and a context
Unflatten = Callable[[list[Any], Any], Any]  # the container again, from these
FlattenWithKeys = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]  # the children with their places, and a context


class NodeDef(NamedTuple):
    """How a container is taken apart into children and a context, and put together again."""

    flatten: Flatten
    unflatten: Unflatten
    flatten_with_keys: FlattenWithKeys | None = None

    @property
    def flatten_fn(self) -> Flatten:
        return self.flatten

    @property
    def unflatten_fn(self) -> Unflatten:
        return self.unflatten

    @property
    def flatten_with_keys_fn(self) -> FlattenWithKeys | None:
        return self.flatten_with_keys


# -------------------------------------------------------------------------------------------- where a leaf is in a tree

class SequenceKey(NamedTuple):
    """Where a leaf is in a list or tuple."""

    idx: int

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class MappingKey(NamedTuple):
    """Where a leaf is in a dictionary."""

    key: Any

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """Where a leaf is in an object."""

    name: str

    def get(self, owner: Any) -> Any:
        return getattr(owner, self.name)

    def __str__(self) -> str:
        return f".{self.name}"


def _numbered(values: Iterable[Any]) -> list[tuple[SequenceKey, Any]]:
    return [(SequenceKey(i), value) for i, value in enumerate(values)]


# ----------------------------------------------------------------------------------------------------------- containers

def _sequence(make: Callable[[list[Any], Any], Any], context: Callable[[Any], Any] = lambda v: None) -> NodeDef:
    return NodeDef(lambda v: (list(v), context(v)), make, lambda v: (_numbered(v), context(v)))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """The values of a dictionary with their places, and the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of a dictionary, and the keys."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


def _fields(v: Any) -> list[tuple[GetAttrKey, Any]]:
    return [(GetAttrKey(name), value) for name, value in zip(v._fields, v)]


# What PyTorch takes for containers. Other subclasses of list, tuple and dict are leaves.
SUPPORTED_NODES: dict[Any, NodeDef] = {
    tuple: _sequence(lambda children, _: tuple(children)),
    list: _sequence(lambda children, _: list(children)),
    dict: NodeDef(_dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    namedtuple: NodeDef(lambda v: (list(v), type(v)), lambda children, kind: kind(*children),
                        lambda v: (_fields(v), type(v))),
    OrderedDict: NodeDef(_dict_flatten, lambda values, keys: OrderedDict(zip(keys, values)), _dict_flatten_with_keys),
    defaultdict: NodeDef(lambda d: (list(d.values()), [d.default_factory, list(d)]),
                         lambda values, context: defaultdict(context[0], zip(context[1], values)),
                         lambda d: (_dict_flatten_with_keys(d)[0], [d.default_factory, list(d)])),
    deque: _sequence(lambda children, maxlen: deque(children, maxlen), lambda v: v.maxlen),
}
STANDARD_DICT_TYPES: frozenset[type] = frozenset({dict, OrderedDict, defaultdict})


class TextForm(NamedTuple):
    """How a kind of container is named in text, and how its context is written and read; None: as it is."""

    name: str
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None


TEXT_FORMS: dict[Any, TextForm] = {}  # of the kinds that have been registered with one


def register_pytree_node(cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, *,
                         serialized_type_name: str | None = None,
                         to_dumpable_context: Callable[[Any], Any] | None = None,
                         from_dumpable_context: Callable[[Any], Any] | None = None,
                         flatten_with_keys_fn: FlattenWithKeys | None = None) -> None:
    """Make a class a container: `flatten_fn` gives children and a context, of which `unflatten_fn` makes it again.

    `flatten_with_keys_fn` gives the children with their places (`SequenceKey`, `MappingKey`, `GetAttrKey`); the rest is
    about the text of `treespec_dumps`.
    """
    if cls in SUPPORTED_NODES:
        raise BadValue(f"register_pytree_node: {cls.__name__} is already registered as pytree node",
                       fix="register a class once")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise BadValue(f"register_pytree_node: Both to_dumpable_context and from_dumpable_context for {cls.__name__} "
                       "must be None or registered", fix="give both")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        TEXT_FORMS[cls] = TextForm(serialized_type_name, to_dumpable_context, from_dumpable_context)


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is one that `namedtuple` or `NamedTuple` has made, or a subclass."""
    fields = getattr(cls, "_fields", None)
    return (isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)
            and all(isinstance(name, str) for name in fields))


def is_namedtuple(obj: Any) -> bool:
    """Return whether this is a tuple with names, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def _is_namedtuple_instance(tree: Any) -> bool:
    return is_namedtuple_class(type(tree))


is_namedtuple_instance = _is_namedtuple_instance


def _get_node_type(tree: PyTree) -> Any:
    """Return what a tree is found by among the containers: its class, or `namedtuple`."""
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind


# ---------------------------------------------------------------------------------------------------------------- trees

class TreeSpec:
    """A tree without its leaves: the type of its container (None for a leaf), its context, and its children."""

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")
    num_nodes: int
    num_leaves: int

    def __init__(self, type: Any, context: Any, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        leaf = type is None
        self.num_nodes = 1 + sum(child.num_nodes for child in self.children_specs)
        self.num_leaves = 1 if leaf else sum(child.num_leaves for child in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return what stands in the places of this tree's leaves in a tree that begins in the same way."""
        found: list[PyTree] = []
        self._flatten_up_to(tree, found)
        return found

    def _flatten_up_to(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        alike = kind is self.type or kind in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES
        if not alike:
            raise BadValue(f"tree: Node type mismatch; expected {self.type!r}, but got {kind!r}",
                           why="the trees differ in shape", fix="tree_map(f, tree, tree_of_the_same_shape)")
        children, context = SUPPORTED_NODES[kind].flatten(tree)
        if kind in STANDARD_DICT_TYPES:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise BadValue(f"tree: Node keys mismatch; expected {list(keys)}, but got {list(tree)}",
                               why="the trees differ in shape", fix="trees with the same keys")
            children = [tree[key] for key in keys]
        elif len(children) != self.num_children or context != self.context and kind is not deque:
            raise BadValue(f"tree: Node arity mismatch; expected {self.num_children} children and {self.context!r}, "
                           f"but got {len(children)} and {context!r}",
                           why="the trees differ in shape", fix="tree_map(f, tree, tree_of_the_same_shape)")
        for spec, child in zip(self.children_specs, children):
            spec._flatten_up_to(child, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self is other or (self.type is other.type and self.num_nodes == other.num_nodes
                                 and bool(self.context == other.context)
                                 and self.children_specs == other.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), *self.children_specs))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        gap = ",\n" + " " * indent
        children = gap.join(child.__repr__(indent) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of a tree that is one leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None)


LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the shape of a tuple of trees of these shapes."""
    return TreeSpec(tuple, None, iterable)


def treespec_dict(mapping: Any = (), /, **named: TreeSpec) -> TreeSpec:
    """Return the shape of a dictionary of trees of these shapes."""
    specs = dict(mapping, **named)
    return TreeSpec(dict, list(specs), specs.values())


def tree_is_leaf(tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    """Return whether a tree is one leaf."""
    return is_leaf is not None and is_leaf(tree) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def tree_flatten(tree: PyTree, is_leaf: Predicate | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree from left to right, and its shape."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: Predicate | None) -> TreeSpec:
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return LEAF
    children, context = SUPPORTED_NODES[kind].flatten(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return a tree of this shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise BadArgument(f"tree_unflatten: expected a TreeSpec, got {type(treespec).__name__}",
                          fix="leaves, spec = tree_flatten(tree)")
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise BadValue(f"tree_unflatten: {len(given)} leaves for a tree with {treespec.num_leaves}",
                       fix="leaves, spec = tree_flatten(tree)")
    return _unflatten(iter(given), treespec)


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> PyTree:
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten(children, spec.context)


def tree_leaves(tree: PyTree, is_leaf: Predicate | None = None) -> list[Any]:
    """Return the leaves of a tree from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Predicate | None = None) -> Iterator[Any]:
    """Go through the leaves of a tree from left to right."""
    return iter(tree_leaves(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all arguments."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def tree_structure(tree: PyTree, is_leaf: Predicate | None = None) -> TreeSpec:
    """Return the shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Predicate | None = None) -> PyTree:
    """Return a tree of the same shape with `func` of every leaf, and of what is in its place in the other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), spec)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Predicate | None = None) -> PyTree:
    """Call `func` with every leaf; return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator: the function is applied to what is of a type, of one of several, or chosen by a predicate."""
    chosen = type_or_types_or_pred
    if isinstance(chosen, type) or not callable(chosen):
        chosen = lambda x: isinstance(x, type_or_types_or_pred)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Predicate | None = None) -> PyTree:
    """Change only leaves of a type, or of several, or those that a predicate chooses."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree,
                   is_leaf: Predicate | None = None) -> PyTree:
    """Call `func` with such leaves only; return the tree itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    """Return whether the predicate holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    """Return whether the predicate holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    """Return whether the predicate holds for all leaves of a type, or of several."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, pred: Predicate, tree: PyTree, is_leaf: Predicate | None = None) -> bool:
    """Return whether the predicate holds for some leaf of a type, or of several."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: Predicate | None = None) -> list[Any] | None:
    """Return a leaf for each of `treespec`'s, where a leaf may stand for a whole branch; None where they do not fit."""
    if treespec.is_leaf():
        return [tree]
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten(tree)
    if kind is not treespec.type or context != treespec.context or len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found
