"""PyTorch's path to trees, with what libraries that have containers of their own take from there."""
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..base.pytree import (
    LEAF as _LEAF_SPEC,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    GetAttrKey,
    LeafSpec,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    TreeSpec,
    _broadcast_to_and_flatten,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_leaf,
    _is_namedtuple_instance,
    _private_register_pytree_node,
    _register_pytree_node,
    arg_tree_leaves,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    map_only,
    register_pytree_node,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_structure,
    tree_unflatten,
    treespec_dict,
    treespec_leaf,
    treespec_tuple,
)
from ..base.pytree_paths import (
    KeyPath,
    key_get,
    keystr,
    register_constant,
    register_dataclass,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from ..base.pytree_text import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    _register_namedtuple,
    pytree_to_str,
    str_to_pytree,
    treespec_dumps,
    treespec_loads,
    treespec_pprint,
)

Context = DumpableContext = KeyEntry = Any
FlattenFunc = UnflattenFunc = ToDumpableContextFn = FromDumpableContextFn = Callable[..., Any]
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list]
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = SUPPORTED_NODES[namedtuple]


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is of tuples with named fields that are counted: results of `max`, `time.struct_time`."""
    counts = (getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
    return isinstance(cls, type) and issubclass(cls, tuple) and all(isinstance(count, int) for count in counts)


def is_structseq(obj: Any) -> bool:
    """Return whether this is such a tuple, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Return whether this is such a tuple."""
    return is_structseq_class(type(obj))


__all__ = [
    "BUILTIN_TYPES",
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "STANDARD_DICT_TYPES",
    "SUPPORTED_NODES",
    "_LEAF_SPEC",
    "Context",
    "DumpableContext",
    "FlattenFunc",
    "FromDumpableContextFn",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFunc",
    "_broadcast_to_and_flatten",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_is_leaf",
    "_is_namedtuple_instance",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_namedtuple_flatten",
    "_namedtuple_flatten_with_keys",
    "_namedtuple_unflatten",
    "_private_register_pytree_node",
    "_register_namedtuple",
    "_register_pytree_node",
    "_tuple_flatten",
    "_tuple_flatten_with_keys",
    "_tuple_unflatten",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "pytree_to_str",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "str_to_pytree",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]
