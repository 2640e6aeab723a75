"""Trees are taken apart and put together as PyTorch's are."""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import mutagrad as mg
from mutagrad.utils import _pytree as pytree


class Pair(NamedTuple):
    first: Any
    second: Any


class Triple(tuple[int, ...]):
    pass


@dataclass
class Settings:
    rate: float
    name: str | None = None


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


pytree.register_dataclass(Settings, serialized_type_name="Settings")
pytree.register_pytree_node(Box, lambda b: ([b.content], None), lambda children, _: Box(*children))
TREE = {"a": [1, Pair(2, (3,))], "b": OrderedDict(z=4), "c": defaultdict(list, k=5), "d": deque([6, 7], 3), "e": Settings(8)}


def test_a_size_is_a_container_of_its_numbers() -> None:
    leaves, spec = pytree.tree_flatten(mg.zeros(2, 3).shape)
    assert leaves == [2, 3] and repr(spec) == "TreeSpec(Size, None, [*,\n  *])"
    assert pytree.tree_map(lambda n: n * 2, mg.Size([2, 3])) == (4, 6) and pytree.tree_leaves(Triple((1, 2))) == [(1, 2)]


def test_every_kind_of_container_comes_back() -> None:
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == list(range(1, 9)) and pytree.tree_leaves(None) == [None]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE and again["c"].default_factory is list and again["d"].maxlen == 3
    assert spec == pytree.tree_structure(again) and hash(spec) == hash(pytree.tree_structure(again))
    assert (spec.num_leaves, spec.num_children, spec.type) == (8, 5, dict) and spec.unflatten(leaves) == TREE
    assert pytree.tree_leaves(spec) == [spec] and isinstance(pytree.tree_structure(1), pytree.LeafSpec)


def test_where_leaves_are() -> None:
    found, _ = pytree.tree_flatten_with_path(TREE)
    assert [pytree.keystr(path) for path, _ in found] == ["['a'][0]", "['a'][1].first", "['a'][1].second[0]", "['b']['z']", "['c']['k']",
                                                           "['d'][0]", "['d'][1]", "['e'].rate"]
    assert [pytree.key_get(TREE, path) for path, _ in found] == [leaf for _, leaf in found] == pytree.tree_leaves(TREE)
    assert pytree.tree_map_with_path(lambda path, x: (pytree.keystr(path), x), [5]) == [("[0]", 5)]
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path([Box(1)])


def test_other_trees_may_go_on_and_dictionaries_are_matched_by_key() -> None:
    assert pytree.tree_map(lambda x, y: (x, y), [1, 2], [3, [4, 5]]) == [(1, 3), (2, [4, 5])]
    assert pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    for tree, other in (([1], (1,)), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (Pair(1, 2), (1, 2))):
        with pytest.raises(ValueError, match="mismatch"):
            pytree.tree_map(max, tree, other)


def test_a_leaf_stands_for_a_branch() -> None:
    spec = pytree.tree_structure([1, [2, 3]])
    assert pytree._broadcast_to_and_flatten([0, 5], spec) == [0, 5, 5] and pytree._broadcast_to_and_flatten([1, 2, 3], spec) is None


def test_only_some_leaves() -> None:
    assert pytree.tree_map_only(int | float, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 3.0]
    assert pytree.map_only(lambda x: x == 1)(lambda x: -x)(1) == -1
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"]) and not pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
    assert pytree.arg_tree_leaves(1, [2], a=3) == [1, 2, 3] and list(pytree.tree_iter([1, (2,)])) == [1, 2]


def test_the_shape_of_a_tree_as_text() -> None:
    pytree._register_namedtuple(Pair, serialized_type_name="Pair")
    spec = pytree.tree_structure(TREE)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1, 2]})) == "{'a': [*, *]}"
    with pytest.raises(NotImplementedError, match="no text"):
        pytree.treespec_dumps(pytree.tree_structure(Box(1)))
