"""What a sweep does to adjoints: take from a window, add to one, own a buffer, sum what was broadcast, call hooks.

`Arithmetic` does it with arrays, `RecordedArithmetic`, for `create_graph=True`, with tensors. Taking, clearing and
accumulating are then reads and in-place writes like a user's, differentiated like those of any other program.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from math import prod
from operator import itemgetter
from sys import getrefcount
from typing import Any

from ..arrays import kinds, np, parallel, places
from ..arrays.copies import copy_in_order
from ..arrays.kinds import IN_USE, is_plain, levels_of
from ..base.counters import counters
from ..base.errors import BadArgument, ShapeError
from .factory import make, view
from .graph import Adjoint, Hooks, Node
from .indexing import picked, put, read
from .op import RAW, RECORDED
from .ownership import SOLE, SOLE_BASE, SOLE_STORAGE
from .saved import source_of, with_history
from .storage import Storage, TensorBase, memory_of
from .window import As, Shape, Whole, Window, are_apart, broadcast_axes, index_of, memory_order

SMALL = 1024  # elements up to which a sum is simply made anew
TINY = 64  # elements up to which many adjoints are added in one go


def _is_all_of(view: Any, base: Any) -> bool:
    """Whether a view has all of the memory that an array owns, in its order, and may write to it."""
    return base.__class__ is np.ndarray and base.base is None and base.nbytes == view.nbytes and view.flags.carray


class Arithmetic:
    """What a sweep does to adjoints that are arrays."""

    xp = RAW

    restore: Callable[[Node], Any] | None = None  # how to make of `node.saved` what rules compute with, if not that
    small: Any = np.ndarray  # of which type small adjoints may simply be added with +

    def reshape(self, g: Adjoint, shape: Shape) -> Any:
        return g.reshape(shape)

    def sum_to(self, g: Adjoint, shape: Shape) -> Any:
        """Sum what was broadcast, so that the adjoint has this shape."""
        axes, squeeze = broadcast_axes(g.shape, shape)
        if g.dtype.char in "eE":  # in a short type a running sum sticks: 2048 + 1 is 2048, or 256 + 1 is 256
            g = self.xp.sum(g.astype(np.float32), axes, True).astype(g.dtype)
        else:
            g = self.xp.sum(g, axes, True)
        return g.reshape(shape) if squeeze else g

    def cast(self, g: Adjoint, dtype: Any) -> Any:
        return g if dtype is None or g.dtype == dtype else self.own([g], dtype)

    def array_of(self, g: Any) -> Any:
        """An array of an adjoint: of several results, one that is of another kind if there is one."""
        if g.__class__ is dict:
            return next((v for v in g.values() if not is_plain(v)), None)
        return g

    def levels(self, g: Any) -> list[Any]:
        """The levels of arrays of another kind that an adjoint belongs to."""
        return levels_of(self.array_of(g)) if IN_USE else []

    def leave(self, g: Any, level: Any) -> Any:
        """An adjoint as what it means outside of a level."""
        return level.total(g)

    def share(self, g: Any, level: Any) -> Any:
        """An adjoint from outside as what it means inside of a level."""
        return {k: v if v is None else level.share(v) for k, v in g.items()} if g.__class__ is dict else level.share(g)

    def zeros(self, whole: Whole, like: Adjoint | None = None) -> Any:
        """Return a buffer of zeros, of the kind of what will be added to it."""
        buffer = kinds.zeros(*whole, like)
        counters.allocated += buffer.nbytes
        return buffer

    def made_of(self, whole: Whole, parts: list[tuple[Any, Any]]) -> Any:
        """Return a fresh buffer out of adjoints of windows that have nothing in common; None if they do, or are small.

        They are assigned: adding to zeros would be two passes more.
        """
        if len(parts) == 1 and (found := self.whole_from(whole, *parts[0])) is not None:
            return found
        size, kind = prod(whole[0]), whole[1]
        if size < parallel.MIDDLE or not are_apart([window for window, _ in parts], kind.itemsize):
            return None
        if any(g.__class__ is not np.ndarray or g.dtype != kind or g.shape != window[1] or not is_plain(g)
               for window, g in parts):
            return None
        buffer: Any = (np.empty if sum(g.size for _, g in parts) == size else np.zeros)(*whole)
        counters.allocated += buffer.nbytes
        for window, g in parts:
            parallel.assign(self.view(buffer, window), g)
            counters.touched += g.nbytes
        return buffer

    def whole_from(self, whole: Whole, window: Any, g: Any) -> Any:
        """Return a fresh buffer out of the adjoint of a window that is all of it in another order; None if it is not.

        It is read in the order of the buffer: zeros, and adding to them, would be three passes more.
        """
        if (window.__class__ is int or window[3] is not None or g.size < SMALL or g.dtype != whole[1]
                or g.__class__ is not np.ndarray or g.shape != window[1] or not is_plain(g)):
            return None
        order = memory_order(window, g.itemsize)
        if order is None or prod(whole[0]) != g.size:
            return None
        counters.allocated += g.nbytes
        counters.touched += g.nbytes
        found: Any = copy_in_order(g.transpose(order))
        return found if found.shape == whole[0] else found.reshape(whole[0])

    def own(self, holder: list[Adjoint], dtype: Any) -> Any:
        """Return the one adjoint in `holder` as a contiguous buffer that nobody else sees; copied only if need be."""
        g: Any = holder.pop()
        dtype = dtype or g.dtype
        if getrefcount(g) <= SOLE and g.__class__ is np.ndarray and g.dtype == dtype and g.flags.c_contiguous:
            base = g.base  # where a rule has reshaped what it made, or NumPy has: of a sum over dimensions
            if base is None or getrefcount(base) <= SOLE_BASE and _is_all_of(g, base):
                return g
        counters.allocated += g.nbytes
        if g.dtype == dtype and g.__class__ is np.ndarray:
            return copy_in_order(g)
        return np.array(g.real if g.dtype.kind == "c" and dtype.kind != "c" else g, dtype, order="C")

    def view(self, buffer: Any, window: Any) -> Any:
        """Return the part of a buffer in a window, before its index picks."""
        offset, shape, strides, index = window
        kind = index.dtype if index.__class__ is As else buffer.dtype
        if IN_USE:
            return kinds.window(buffer, shape, kind, offset, strides)
        return np.ndarray(shape, kind, buffer, offset, strides)  # the same, without the call

    def take(self, buffer: Adjoint, window: Any, clear: bool) -> Any:
        """Return what stands in the window (a copy), and clear that if asked."""
        if window.__class__ is int:  # one element: far cheaper by number than by window
            flat, item = buffer.reshape(-1), buffer.itemsize
            g = flat[window // item]
            if clear:
                flat[window // item] = 0
            counters.touched += item
            return g
        view, index = self.view(buffer, window), window[3]
        if index.__class__ is As:
            index = index.index
        g = copy_in_order(view) if index is None else picked(view, index)
        if clear and index is not None:
            places.put(view, index, np.zeros(g.shape if g.size >= SMALL else (), g.dtype))
        elif clear:
            parallel.assign(view, np.zeros((), view.dtype))
        counters.touched += g.nbytes
        return g

    def add_window(self, buffer: Adjoint, window: Any, g: Any) -> None:
        """Add an adjoint to what stands in the window."""
        if window.__class__ is int:
            item = buffer.itemsize
            flat = buffer if buffer.ndim == 1 else buffer.reshape(-1)
            flat[window // item] += g
            counters.touched += item
            return
        counters.touched += g.nbytes
        view, index = self.view(buffer, window), window[3]
        if index.__class__ is As:
            index = index.index
        if index is not None:
            places.add_at(view, index, g)
        elif view.size < parallel.PLENTY or not parallel.apply(np.add, (view, g), (), view):
            kinds.accumulate(view, g)

    def add(self, holder: list[Any], g: Any) -> Any:
        """Return their sum, in the memory of the one in `holder` where nobody else can see that."""
        a = holder.pop()
        if a.size > SMALL and getrefcount(a) <= SOLE and a.dtype == g.dtype and a.flags.writeable:
            base = a.base
            if base is None or getrefcount(base) <= SOLE_BASE and _is_all_of(a, base):
                return a if a.size >= parallel.PLENTY and parallel.apply(np.add, (a, g), (), a) else np.add(a, g, a)
        found = parallel.compute(np.add, (a, g)) if a.size >= parallel.PLENTY and a.dtype == g.dtype else None
        return a + g if found is None else found

    def total(self, gs: list[Adjoint]) -> Any:
        """Return their sum; of many small ones in one go."""
        if len(gs) > 8 and gs[0].__class__ is self.small and gs[0].size <= TINY and is_plain(*gs):
            return np.add.reduce(gs, 0)
        while len(gs) > 1:
            gs.append(self.add([gs.pop()], gs.pop()))
        return gs.pop()

    def call_hooks(self, hooks: Hooks, g: Adjoint) -> tuple[Adjoint, bool]:
        """Show each hook the gradient as the one before left it: the same tensor, where both have the same window."""
        mine = True
        for window, group in groupby(hooks.in_order(), itemgetter(1)):
            shown = make(g.copy() if window is None else self.take(g, window, False))
            for hook, _ in group:
                answer = hook(shown)
                shown = shown if answer is None else _checked(answer, shown)
            if window is None:
                g, mine = shown._array, False  # a hook may keep what it was shown
            else:
                if not mine:
                    g, mine = self.own([g], g.dtype), True
                self.take(g, window, True)
                self.add_window(g, window, shown._array)
        return g, mine


class RecordedArithmetic(Arithmetic):
    """The same for adjoints that are tensors: every step is an operation like a user's, and recorded."""

    xp = RECORDED

    small = None

    def restore(self, node: Node) -> Any:  # type: ignore[override]
        """Return the saved values as tensors with the history that they had."""
        saves = node.op.saves
        if not saves:  # an operation on a list: its inputs come first, if it saves them
            if not node.op.frees or not getattr(node.op, "pure", False):  # a Function asks for them when it needs them
                return node.saved
            saves = [("input", i) for i in range(len(node.saved) - 1)] + [("setting", 0)]
        return [v if kind in ("setting", "shape") or v is None else with_history(v, *source_of(node, kind, i))
                for (kind, i), v in zip(saves, node.saved)]

    def reshape(self, g: Adjoint, shape: Shape) -> Any:
        return RECORDED.reshape(g, shape)

    def sum_to(self, g: Adjoint, shape: Shape) -> Any:
        axes, squeeze = broadcast_axes(g._array.shape, shape)
        g = RECORDED.sum(g, axes, True)
        return RECORDED.reshape(g, shape) if squeeze else g

    def cast(self, g: Adjoint, dtype: Any) -> Any:
        return g if dtype is None or g._array.dtype == dtype else RECORDED.cast(g, dtype)

    def array_of(self, g: Any) -> Any:
        if g.__class__ is dict:
            return super().array_of({k: v if v is None else v._array for k, v in g.items()})
        return getattr(g, "_array", None)

    def leave(self, g: Any, level: Any) -> Any:
        return RECORDED.total_of_slices(g, level)

    def share(self, g: Any, level: Any) -> Any:
        return RECORDED.same_for_slices(g / level.size, level)

    def zeros(self, whole: Whole, like: Adjoint | None = None) -> Any:
        return make(kinds.zeros(*whole, None if like is None else like._array))

    def made_of(self, whole: Whole, parts: list[tuple[Any, Any]]) -> Any:
        return None

    def own(self, holder: list[Adjoint], dtype: Any) -> Any:
        g = holder.pop()
        if dtype is not None and g._array.dtype != dtype:
            g = RECORDED.cast(g, dtype)
            return g if g._offset is None else RECORDED.clone(g)
        if (getrefcount(g) <= SOLE and g._offset is None and getrefcount(g._storage) <= SOLE_STORAGE
                and not _lent(g._storage)):
            return g
        return RECORDED.clone(g)

    def view(self, buffer: Any, window: Window) -> Any:
        if window.__class__ is int:
            return view(buffer, (), (), window)  # type: ignore[arg-type]
        offset, shape, strides, index = window  # type: ignore[misc]
        return view(buffer, shape, strides, offset, index.dtype if index.__class__ is As else None)

    def take(self, buffer: Adjoint, window: Window, clear: bool) -> Any:
        part, index = self.view(buffer, window), index_of(window)
        g = RECORDED.clone(part) if index is None else read(part, index)
        if clear:
            put(part, index, 0, "take")
        return g

    def add_window(self, buffer: Adjoint, window: Window, g: Adjoint) -> None:
        put(self.view(buffer, window), index_of(window), g, "accumulate", accumulate=True)

    def add(self, holder: list[Adjoint], g: Adjoint) -> Any:
        return RECORDED.add(holder.pop(), g)

    def call_hooks(self, hooks: Hooks, g: Adjoint) -> tuple[Adjoint, bool]:
        mine = True
        for window, group in groupby(hooks.in_order(), itemgetter(1)):
            shown = found = RECORDED.clone(g) if window is None else self.take(g, window, False)
            version = memory_of(found).version
            for hook, _ in group:
                answer = hook(shown)
                shown = shown if answer is None else _checked(answer, shown)
            if window is None:
                g, mine = shown, False
            elif shown is not found or memory_of(found).version != version:
                if not mine:
                    g, mine = RECORDED.clone(g), True
                put(self.view(g, window), None, shown, "hook")
        return g, mine


def _lent(storage: Storage) -> bool:
    """Whether its memory is also another storage's, or NumPy's."""
    return storage.root is not None or storage.ledger is not None and storage.ledger.exported()


def _checked(answer: Any, shown: TensorBase) -> TensorBase:
    if not isinstance(answer, TensorBase):
        raise BadArgument(f"hook: must return None or a gradient, not {type(answer).__name__}", fix="return g * 2")
    if answer._array.shape != shown._array.shape:
        raise ShapeError(f"hook: must return a gradient of shape {shown._array.shape}, not {answer._array.shape}",
                         fix="return g.reshape(...)")
    return answer


ON_ARRAYS, ON_TENSORS = Arithmetic(), RecordedArithmetic()
