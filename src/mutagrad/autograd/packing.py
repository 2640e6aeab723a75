"""Saved values that the user keeps: in another form, or another place, than memory.

Inside `saved_tensors_hooks`, what an operation has saved is handed to a function of the user's, and what that returns
is kept instead; when the operation is differentiated, another function brings the value back.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

from ..arrays import np
from ..base.errors import BadArgument, GradientError
from ..base.modes import UNRECORDED, Block, call_with, mode, push
from ..base.operands import Array
from ..base.pytree import tree_flatten
from ..core.evidence import user_code
from ..core.factory import make
from ..core.graph import Node, Writer
from ..core.saved import source_of, with_history
from ..core.storage import TensorBase, memory_of


class Keeping(Block):
    """A block in which what operations save is kept in another way than by reference.

    `keeps` says how PyTorch does, which is all that most of them are: "copy" where a later write does not reach it,
    "alias" where it does and is not noticed, "again" where nothing is kept and all is computed anew. Of several blocks,
    the innermost counts.
    """

    keeps = "copy"
    pack_hook: Any = None  # the user's functions, where there are such
    unpack_hook: Any = None

    def changes(self) -> dict[str, Any]:
        return {"saved_hooks": push(self)}

    def __enter__(self) -> None:
        if mode.now.saved_hooks_refused:
            raise GradientError(mode.now.saved_hooks_refused[-1])
        self.enter()


class Packed:
    """A value in the user's form."""

    def __init__(self, value: Array, block: Keeping) -> None:
        pack, self.unpack_hook = block.pack_hook, block.unpack_hook
        given = make(np.array(value))
        self.kept = call_with(UNRECORDED, pack, given)
        block.keeps = "alias" if shares(self.kept, given) else "copy"
        if memory_of(given).version:
            raise GradientError("saved_tensors_hooks: A saved tensor pack hook is modifying its input in place.",
                                fix="return x * 2 instead of x.mul_(2)")

    def unpack(self) -> Array:
        """Return the value again, as an array."""
        found = call_with(UNRECORDED, self.unpack_hook, self.kept)
        if not isinstance(found, TensorBase):
            raise BadArgument("saved_tensors_hooks: Output of saved tensor unpack_hook expected to be a Tensor, "
                              f"not {type(found).__name__}")
        return found._array


def shares(kept: Any, given: TensorBase) -> bool:
    """Whether somewhere in what a hook has returned is the memory of what it was given."""
    tensors = [x for x in tree_flatten(kept)[0] if isinstance(x, TensorBase)]
    return any(memory_of(t) is memory_of(given) for t in tensors)


class Values(list[Any]):
    """In the place of `node.saved`: not a tuple, so that no write looks for values of its own memory in there."""


class Packing:
    """The operation of one node whose saved values are packed: brings them back for its rules."""

    def __init__(self, node: Node, kinds: list[tuple[str, int]]) -> None:
        self.op, self.kinds, self.node = node.op, kinds, ref(node)
        self.saves = (("setting", 0),) * len(kinds)  # so that a recorded sweep leaves them as they are

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def reverse(self, xp: Any, g: Any, saved: Iterable[Any], links: Sequence[Writer | None]) -> Any:
        values = [self._restored(kind, value) for kind, value in zip(self.kinds, saved)]
        return user_code(links, list(self.op.reverse(xp, g, values, links)))

    def _restored(self, kind: tuple[str, int], value: Any) -> Any:
        """A saved value again; where the sweep is recorded, with the history that it had."""
        if isinstance(value, Packed):
            value = value.unpack()
        node = self.node()
        if value is None or node is None or not mode.grad or kind[0] not in ("input", "out"):
            return value
        return with_history(value, *source_of(node, *kind))


def pack_function(node: Node) -> None:
    """Pack what a custom Function has saved, inside a block."""
    hooks = mode.now.saved_hooks
    if hooks and hooks[-1].pack_hook is not None and node.saved:
        node.saved = Values(None if value is None else Packed(value, hooks[-1]) for value in node.saved)


def pack_since(tensors: Iterable[TensorBase], since: int, block: Keeping) -> None:
    """Pack what operations newer than `since`, of which these tensors are the results, have saved."""
    stack, seen = [t._storage.writer for t in tensors], set()
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node not in seen and node.order < since:  # orders count downwards
            seen.add(node)
            stack.extend(node)
            _pack(node, block)


def _pack(node: Node, block: Keeping) -> None:
    if type(node.saved) is not tuple or not getattr(node.op, "frees", False) or hasattr(node.op, "ctx"):
        return
    kinds = list(node.op.saves) or [*(("input", i) for i in range(len(node.saved) - 1)), ("setting", 0)]
    if not any(_is_value(node, kind, value) for kind, value in zip(kinds, node.saved)):
        return
    values = Values(Packed(value, block) if _is_value(node, kind, value) else value
                    for kind, value in zip(kinds, node.saved))
    node.op, node.saved = Packing(node, kinds), values


def _is_value(node: Node, kind: tuple[str, int], value: Any) -> bool:
    """Whether it is a tensor's: not a setting, and not a number that stood in the place of one."""
    name, i = kind
    return value is not None and (name == "out" or name == "input" and (np.ndim(value) > 0 or node[i] is not None))
