"""Operations that users define: a forward and a backward of their own.

>>> import mutagrad as mg
>>> class Cube(mg.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x ** 3
...     @staticmethod
...     def backward(ctx, g):
...         x, = ctx.saved_tensors
...         return 3 * x ** 2 * g
>>> x = mg.tensor(2., requires_grad=True)
>>> Cube.apply(x).backward(); x.grad
tensor(12.)
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from ..backends import np
from ..construct import detached, make, window_or_none
from ..engine import OUTPUT
from ..errors import BadArgument, GradientError, ShapeError
from ..graph import Node, mode
from ..ops.elementwise import cast
from ..ops.shape import expand, reshape
from ..second_order import _source, _with_history
from ..storage import TensorBase, memory_of, save
from ..write import new_node, set_write


class Context:
    """What `forward` leaves for `backward`: `ctx`. Anything else may be kept as an attribute."""

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._node: Any = None
        self._kinds: tuple[tuple[str, int], ...] = ()
        self._input_shapes: list[Any] = []
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors as they are now: a later write to them does not change what backward sees."""
        for t in tensors:
            if t is not None and not isinstance(t, TensorBase):
                raise BadArgument(f"save_for_backward: can only save tensors, not {type(t).__name__}", fix="ctx.value = value")
        self._to_save = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        node = self._node() if self._node is not None else None
        if node is None:
            return self._to_save
        if not isinstance(node.saved, tuple):
            raise GradientError("saved_tensors: the values saved by this Function are gone", why="an earlier backward() freed them",
                                fix="call that backward() with retain_graph=True")
        return tuple(_restored(node, kind, value) for kind, value in zip(self._kinds, node.saved))

    saved_variables = saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Says that forward changed these inputs. (It is noticed anyway.)"""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Says that these outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for outputs that nothing depends on."""
        self._materialize = value


def _restored(node: Node, kind: tuple[str, int], value: Any) -> Any:
    if value is None:
        return None
    name, i = kind
    if name == "constant":
        return _with_history(value, None, None)
    if name == "output":
        made = node.op.outputs[i]() if node.op.outputs[i] is not None else None
        return _with_history(value, *(_source(made, "out", 0) if made is not None else (None, None)))
    return _with_history(value, *_source(node, "input", i))


FunctionCtx = BackwardCFunction = Context  # PyTorch's names, for annotations


class Applied:
    """The operation of one call of a Function: its reverse is the user's backward."""

    adds = False
    frees = True
    promotes = ""
    saves: tuple[Any, ...] = ()

    def __init__(self, function: type[Function], ctx: Context, count: int) -> None:
        self.name = function.__name__
        self.function, self.ctx, self.count = function, ctx, count
        self.shapes: list[Any] = []
        self.outputs: list[Any] = []

    def reverse(self, xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
        given = g if isinstance(g, dict) else {0: g}
        incoming = [self._incoming(given.get(i), shape) for i, shape in enumerate(self.shapes)]
        answers = self.function.backward(self.ctx, *incoming)
        answers = answers if isinstance(answers, (tuple, list)) else (answers,)
        return self._outgoing(answers, links)

    def _incoming(self, g: Any, shape: Any) -> Any:
        if g is None:
            if shape is None or not self.ctx._materialize:
                return None
            return make(np.zeros(*shape))
        return g if isinstance(g, TensorBase) else make(np.array(g))

    def _outgoing(self, answers: Sequence[Any], links: Any) -> list[Any]:
        links = links[: len(self.ctx.needs_input_grad)]  # the writer before, if any, comes after the inputs
        if len(answers) > len(links) and all(a is None for a in answers[len(links):]):
            answers = answers[: len(links)]
        if len(answers) != len(links):
            raise GradientError(f"{self.name}.backward returned {len(answers)} gradients for {len(links)} inputs of forward",
                                fix="return one for each input, None for those without")
        return [None if k is None or a is None else self._checked(a, i) for i, (k, a) in enumerate(zip(links, answers))]

    def _checked(self, answer: Any, i: int) -> Any:
        if not isinstance(answer, TensorBase):
            raise BadArgument(f"{self.name}.backward returned {type(answer).__name__} as gradient {i}", fix="return a tensor or None")
        shape, dtype = self.ctx._input_shapes[i]
        if answer._array.shape != shape:
            answer = self._fitted(answer, shape, i)
        if answer._array.dtype != dtype:
            answer = cast(answer, dtype)
        return answer if mode.grad else answer._array

    def _fitted(self, answer: Any, shape: tuple[int, ...], i: int) -> Any:
        """A gradient in the input's shape: summed over the dimensions that the input was broadcast along."""
        given = answer._array.shape
        try:
            common = np.broadcast_shapes(given, shape)
        except ValueError:
            common = ()
        if common == shape:
            return expand(answer, *shape)
        if answer._array.size == np.prod(shape, dtype=int):
            return reshape(answer, *shape)
        if common == given:
            return answer.sum_to_size(*shape)
        raise ShapeError(f"{self.name}.backward returned a gradient of shape {given} for input {i} of shape {shape}")


class Function:
    """Base class: define `forward(ctx, ...)` and `backward(ctx, *grads)` as static methods and call `apply`."""

    @staticmethod
    def forward(*arguments: Any, **settings: Any) -> Any:
        raise NotImplementedError("define forward(ctx, ...) as a static method")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("define backward(ctx, *grads) as a static method")

    vjp = backward

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Runs forward without recording, then records the call as one operation."""
        ctx = Context()
        tensors = [a if isinstance(a, TensorBase) else None for a in arguments]
        ctx.needs_input_grad = tuple(t is not None and t._storage.writer is not None for t in tensors)
        ctx._input_shapes = [None if t is None else (t._array.shape, t._array.dtype) for t in tensors]
        recording = mode.grad and any(ctx.needs_input_grad)
        links = (tuple(None if t is None else t._storage.writer for t in tensors),
                 tuple(None if t is None else window_or_none(t) for t in tensors))
        writers = [None if t is None else t._storage.writer for t in tensors]
        versions = [None if t is None else memory_of(t).version for t in tensors]
        before, mode.grad = mode.grad, False
        try:
            result = _call_forward(cls, ctx, arguments)
        finally:
            mode.grad = before
        changed = [t for t, v in zip(tensors, versions) if t is not None and memory_of(t).version != v]
        for t, writer in zip(tensors, writers):
            if t is not None:
                t._storage.writer = writer
        outputs = result if isinstance(result, tuple) else (result,)
        if recording:
            outputs = _record(cls, ctx, outputs, tensors, links, _dirty(changed, ctx, outputs))
        return outputs if isinstance(result, tuple) else outputs[0]


def _call_forward(cls: type[Function], ctx: Context, arguments: tuple[Any, ...]) -> Any:
    if cls.setup_context is Function.setup_context:
        return cls.forward(ctx, *arguments)
    result = cls.forward(*arguments)
    cls.setup_context(ctx, arguments, result)
    return result


def _is(tensor: Any, tensors: Sequence[Any]) -> bool:
    return any(tensor is t for t in tensors)


def _dirty(changed: list[Any], ctx: Context, outputs: tuple[Any, ...]) -> list[Any]:
    """The inputs that forward changed: marked ones, and those whose memory has a new version.

    Versions are the memory's, so an input that only shares memory with a changed one that is marked or returned is not.
    """
    known = [*ctx._dirty, *(t for t in changed if _is(t, outputs))]
    explained = [memory_of(t) for t in known]
    return known + [t for t in changed if not _is(t, known) and not _is(memory_of(t), explained)]


def _record(cls: type[Function], ctx: Context, outputs: tuple[Any, ...], tensors: list[Any], links: tuple[Any, ...], dirty: list[Any]) -> tuple[Any, ...]:
    for t in dirty:
        if t._storage.writer is not None and not _is(t, outputs):
            raise GradientError(f"{cls.__name__}: forward changed an input that it does not return",
                                why="its gradient could not reach backward", fix="return the changed input, too")
    op = Applied(cls, ctx, len(outputs))
    node = new_node(op, *links)
    differentiable = [isinstance(o, TensorBase) and o._array.dtype.kind in "fcV" and not _is(o, ctx._constant) for o in outputs]
    several = sum(differentiable) > 1 or len(outputs) > 1
    results = []
    for i, (o, yes) in enumerate(zip(outputs, differentiable)):
        op.shapes.append((o._array.shape, o._array.dtype) if isinstance(o, TensorBase) else None)
        results.append(_attach(o, node, i, several, _is(o, dirty), _is(o, tensors)) if yes else o)
    ctx._kinds = tuple(_kind(t, tensors, outputs, dirty) for t in ctx._to_save)
    node.saved = tuple(None if t is None else save(t, node, slot) for slot, t in enumerate(ctx._to_save))
    op.outputs = [ref_or_none(r, yes) for r, yes in zip(results, differentiable)]
    ctx._node = _weak(node)
    ctx._to_save = ()
    return tuple(results)


def ref_or_none(result: Any, yes: bool) -> Any:
    return _weak(result._storage.writer) if yes else None


def _weak(node: Any) -> Any:
    return ref(node)


def _kind(t: Any, tensors: Sequence[Any], outputs: Sequence[Any], dirty: Sequence[Any]) -> tuple[str, int]:
    """What a saved tensor was to the call: an input that forward changed is saved as the output that it became."""
    for i, x in enumerate(tensors):
        if x is t and t is not None and not _is(t, dirty):
            return "input", i
    for i, o in enumerate(outputs):
        if o is t and t is not None:
            return "output", i
    return "constant", 0


def _attach(output: Any, node: Node, number: int, several: bool, dirty: bool, is_input: bool) -> Any:
    """Makes `node` the writer of an output: of its storage, if it is new or was changed; else of a history of its own."""
    fresh = output._storage.writer is None and output._storage.root is None and not is_input
    if not dirty and not fresh:
        output = detached(output)
    writer = node
    if several:
        writer = new_node(OUTPUT, (node,))
        writer.saved = number
    if dirty or output._offset is not None:
        window = window_or_none(output)
        if window is not None:
            set_write(writer, output._storage, window)
    output._storage.writer = writer
    return output


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For a backward that is not differentiable itself: asking for second derivatives through it is an error, not a zero."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        if mode.grad:
            raise GradientError("once_differentiable: this Function's backward was declared not to be differentiable",
                                fix="call backward() without create_graph=True")
        return backward(ctx, *grads)

    return wrapped
