"""What a program may ask of a recorded operation, `y.grad_fn`, and of the end of the graph at a leaf.

These are hooks, saved values, a call. A hook on a node sees what comes in, before its rules run, or what comes in and
out, after. To that end the operation of that one node is exchanged for one that calls the hooks around it, so that
nodes without hooks cost nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ref

from ..base.errors import BadArgument, GradientError, NotSupported
from ..base.modes import mode
from ..core.arithmetic import ON_ARRAYS, ON_TENSORS
from ..core.backward import RemovableHandle, enter_after, enter_hook
from ..core.dtypes import dtype as ElementType, of_array
from ..core.evidence import user_code
from ..core.factory import make, window_or_none
from ..core.graph import Freed, Hooks, Leaf, Node, ViewOf, Writer, place_of
from ..core.op import RAW
from ..core.saved import snapshot, source_of, with_history
from ..core.storage import TensorBase
from ..core.sweep import OUTPUT, already_freed
from ..core.window import Window, shape_of
from ..tensors.tensor import Tensor

Grads = tuple["Tensor | None", ...]


def _shown(g: Any) -> Any:
    """An adjoint as a tensor of its own, which a hook may keep or change."""
    return g if g is None or isinstance(g, TensorBase) else make(ON_ARRAYS.own([g], g.dtype))


def _answer(found: Any, given: tuple[Any, ...], what: str) -> Any:
    """What a hook says instead of what it was given: nothing, or as many gradients."""
    if found is None:
        return given
    found = (found,) if isinstance(found, TensorBase) else tuple(found)
    if len(found) != len(given):
        raise BadArgument(f"{what}: must return None or {len(given)} gradients, not {len(found)}",
                          fix="return None where nothing shall change")
    for old, new in zip(given, found):
        fits = isinstance(new, TensorBase) and (old is None or new._array.shape == old._array.shape)
        if new is not None and not fits:
            raise BadArgument(f"{what}: must return gradients of the shapes that it was given, "
                              f"not {getattr(new, 'shape', type(new).__name__)}")
    return found


class Hooked:
    """The operation of one node together with its hooks."""

    adds = False  # so that its rules run, whatever it adds to
    pure = False

    def __init__(self, node: Node) -> None:
        self.op, self.node = node.op, ref(node)
        self.before, self.after = Hooks(), Hooks()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def reverse(self, xp: Any, g: Any, saved: Any, links: Sequence[Writer | None]) -> Any:
        given = tuple(_shown(gx) for gx in self._incoming(g))
        for hook, in self.before.in_order():
            given = _answer(hook(given), given, "register_prehook")
        known = {i: gx if mode.grad else gx._array for i, gx in enumerate(given) if gx is not None}
        grads = self.op.reverse(xp, known if isinstance(g, dict) else known[0], saved, links)
        if not self.after:
            return user_code(links, list(grads))
        places = self._places(len(grads))
        found = tuple(self._outgoing(i, grads[i]) for i in places)
        for hook, in self.after.in_order():
            found = _answer(hook(found, given), found, "register_hook")
        changed = list(grads)
        for i, gx in zip(places, found):
            changed[i] = gx if gx is None or mode.grad else gx._array
        return user_code(links, changed)

    def _places(self, count: int) -> list[int]:
        """Which inputs are tensors: of a custom Function, not all may be."""
        context = getattr(self.op, "ctx", None)
        return [i for i in range(count) if context is None or context._input_shapes[i] is not None]

    def _incoming(self, g: Any) -> list[Any]:
        return [g.get(i) for i in range(self.op.count)] if isinstance(g, dict) else [g]

    def _outgoing(self, i: int, g: Any) -> Any:
        """As it will arrive at the input: summed, where that was broadcast."""
        node = self.node()
        window = None if node is None or node.windows is None else node.windows[i]
        shape = None if window is None else shape_of(window)
        if g is not None and shape is not None and g.shape != shape:
            g = (ON_TENSORS if mode.grad else ON_ARRAYS).sum_to(g, shape)
        return _shown(g)


def _hooked(node: Node) -> Hooked:
    """The operation of a node, exchanged for one with hooks if it was not before."""
    node = node[0] if node.op is OUTPUT and node[0] is not None else node
    if not isinstance(node.op, Hooked):
        node.op = Hooked(node)
    return node.op


def _registered(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    return RemovableHandle(hooks, hooks.enter((hook,)))


def register_hook(node: Node, hook: Callable[[Grads, Grads], Any]) -> RemovableHandle:
    """Call `hook(grad_inputs, grad_outputs)` after this operation was differentiated; its answer replaces the first."""
    return _registered(_hooked(node).after, hook)


def register_prehook(node: Node, hook: Callable[[Grads], Any]) -> RemovableHandle:
    """Call `hook(grad_outputs)` before this operation is differentiated; what it returns replaces them."""
    return _registered(_hooked(node).before, hook)


class _Before:
    """A hook on the end of the graph at a leaf, after those on the leaf itself."""

    rank = 2

    def __init__(self, hook: Callable[[Grads], Any]) -> None:
        self.hook = hook

    def __call__(self, g: Tensor) -> Any:
        return _answer(self.hook((g,)), (g,), "register_prehook")[0]


class _After:
    """A hook on the end of the graph at a leaf, called once the gradient has been added: remembers it until then."""

    rank = 3

    def __init__(self, hook: Callable[[Grads, Grads], Any]) -> None:
        self.hook = hook
        self.arrived: Tensor | None = None

    def __call__(self, g: Tensor) -> None:
        self.arrived = g


class _Added:
    """What calls such a hook then, after those that only want to see the leaf."""

    rank = 3

    def __init__(self, late: _After) -> None:
        self.late = late

    def __call__(self, tensor: Tensor) -> None:
        self.late.hook((), (self.late.arrived,))
        self.late.arrived = None


class _Handles(RemovableHandle):
    """The handle of a hook that is entered in two places."""

    def __init__(self, *handles: RemovableHandle) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def _window(leaf: Leaf) -> Window | None:
    tensor = leaf.tensor()
    return None if tensor is None else window_or_none(tensor)


def _register_leaf_hook(leaf: Leaf, hook: Callable[[Grads, Grads], Any]) -> RemovableHandle:
    """Call `hook((), grad_outputs)` after a gradient has been added to the leaf's `.grad`."""
    late = _After(hook)
    return _Handles(enter_hook(leaf, late, _window(leaf)), enter_after(leaf, _Added(late)))


def _register_leaf_prehook(leaf: Leaf, hook: Callable[[Grads], Any]) -> RemovableHandle:
    """Call `hook(grad_outputs)` before a gradient is added to the leaf's `.grad`; what it returns replaces it."""
    return enter_hook(leaf, _Before(hook), _window(leaf))


def _register_view_prehook(view: ViewOf, hook: Callable[[Grads], Any]) -> RemovableHandle:
    """Call `hook(grad_outputs)` with what has reached the elements of a view; what it returns replaces that."""
    return enter_hook(view.writer, _Before(hook), place_of(view, "register_prehook"))


def _no_node(what: str) -> Callable[..., Any]:
    def refuse(view: ViewOf, *arguments: Any) -> Any:
        raise NotSupported(f"{what}: {view.name()} stands for a view, which has no node of its own that could run",
                           fix="register_prehook(hook), which sees what has reached the view; "
                               "or ask the next node: next_functions[0][0]")
    return refuse


def call(node: Node, *grads: Tensor) -> Any:
    """Return the gradients of the operation's inputs for one of its output, as PyTorch's `y.grad_fn(g)`."""
    if len(grads) != 1:
        raise BadArgument(f"{node.name()}: expected 1 arguments, got {len(grads)} instead", fix="y.grad_fn(g)")
    if isinstance(node.saved, Freed):
        raise already_freed(node)
    found = tuple(_shown(g) for g in node.op.reverse(RAW, grads[0]._array, node.saved, node))
    return found if len(found) > 1 else found[0]


class InputMetadata(NamedTuple):
    """Shape and type of what comes in to a node."""

    shape: tuple[int, ...]
    dtype: ElementType
    is_nested_tensor: bool = False


def _metadata_of_view(view: ViewOf) -> tuple[InputMetadata, ...]:
    """The same for a view."""
    window = place_of(view, "_input_metadata")
    index = window[3] if isinstance(window, tuple) else None
    return (InputMetadata(shape_of(window) or (), of_array(view.writer.whole[1] if index is None else index.dtype)),)


def _saved(node: Node, kind: str, number: int) -> Any:
    """A value that a node has saved, as the tensor that it was."""
    if isinstance(node.saved, Freed):
        raise GradientError(f"{node.name()}: saved tensors were asked for after they have already been freed",
                            why="an earlier backward() freed them", fix="call that backward() with retain_graph=True")
    kinds = list(getattr(node.op, "kinds", node.op.saves))
    if (kind, number) not in kinds:
        raise AttributeError(f"{node.name()} has not saved that")
    value = snapshot(node, kinds.index((kind, number)))
    return None if value is None else with_history(value, *source_of(node, kind, number), shared=False)


def _metadata(node: Node) -> tuple[InputMetadata, ...]:
    """Shape and type of each result of an operation, which are those of the gradients that come in."""
    written = node.written
    if written is not None:
        shapes: Any = [(written[1] if isinstance(written, tuple) else (), node.whole[1])]
    else:
        shapes = getattr(node.op, "shapes", None)
    if not shapes:
        raise AttributeError(f"{node.name()} does not remember the shape of its result")
    return tuple(InputMetadata(shape, of_array(dtype)) for shape, dtype in shapes)


# Methods and properties that need tensors, which the layer of nodes does not know. They are written into its classes
# from here, and nowhere else is this done: nodes of a subclass would have to be made down there, too, where operations
# are recorded.
Node.register_hook, Node.register_prehook = register_hook, register_prehook  # type: ignore[attr-defined]
Leaf.register_hook, Leaf.register_prehook = _register_leaf_hook, _register_leaf_prehook  # type: ignore[attr-defined]
ViewOf.register_prehook = _register_view_prehook  # type: ignore[attr-defined]
ViewOf.register_hook, ViewOf.__call__ = _no_node("register_hook"), _no_node("call")  # type: ignore[attr-defined, method-assign]
Node.__call__, Node._input_metadata = call, property(_metadata)  # type: ignore[attr-defined, method-assign]
ViewOf._input_metadata = property(_metadata_of_view)  # type: ignore[attr-defined]
Node._saved_self = property(lambda node: _saved(node, "input", 0))  # type: ignore[attr-defined]
Node._saved_other = property(lambda node: _saved(node, "input", 1))  # type: ignore[attr-defined]
Node._saved_result = property(lambda node: _saved(node, "out", 0))  # type: ignore[attr-defined]
