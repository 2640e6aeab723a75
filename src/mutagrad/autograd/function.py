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
import inspect
import warnings
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

from ..arrays import np
from ..arrays.kinds import real_kind
from ..base.errors import BadArgument, GradientError, ShapeError, UnmarkedWrite
from ..base.layout import ANSWERING, has_own_layout
from ..base.modes import OTHER_KIND, UNRECORDED, call_with, mode
from ..base.operands import kind_name
from ..core.evidence import user_code
from ..core.factory import detached, linked_alias, make, window_or_none
from ..core.graph import UNKNOWN_SHAPE, Node, ViewOf, Writer, edge, seen_through
from ..core.saved import snapshot, source_of, with_history
from ..core.storage import TensorBase, histories, memory_of, save
from ..core.sweep import OUTPUT
from ..core.window import overlaps_itself
from ..core.write import new_node, set_write, tell_aliases
from ..ops.math.elementwise import cast
from ..ops.shape.shape import expand, reshape
from . import forward_ad
from .packing import Values, pack_function

Layouts = dict[int, Any]


class Context:
    """What `forward` leaves for `backward`: `ctx`. Anything else may be kept as an attribute."""

    def __init__(self) -> None:
        self._to_save: tuple[TensorBase | None, ...] = ()
        self._for_jvp: tuple[TensorBase | None, ...] = ()
        self._in_jvp = False
        self._dirty: tuple[TensorBase, ...] = ()
        self._constant: tuple[TensorBase, ...] = ()
        self._materialize = self._materialize_non_diff_grads = True
        self._node: ref[Node] | None = None
        self._sources: list[Any] = []  # of what is saved: writer and window; of an output, its number
        self._input_shapes: list[Any] = []
        # Sparse tensors stand for their values: among the inputs, the outputs, and what is saved.
        self._layouts: Layouts = {}
        self._output_layouts: Layouts = {}
        self._saved_layouts: Layouts = {}
        self._metadata: dict[Any, Any] = {}
        self.needs_input_grad: tuple[bool, ...] = ()

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: TensorBase | None) -> None:
        """Keep tensors as they are now: a later write to them does not change what backward sees."""
        self._to_save, self._saved_layouts = _of_values(_only_tensors(tensors, "save_for_backward"))

    def save_for_forward(self, *tensors: TensorBase | None) -> None:
        """Keep tensors for `jvp`."""
        self._for_jvp = _only_tensors(tensors, "save_for_forward")

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if self._in_jvp:
            return self._for_jvp
        if self._node is None:
            return _in_layouts(self._to_save, self._saved_layouts)
        node = self._node()
        if node is None or not isinstance(node.saved, (tuple, Values)):
            raise GradientError("saved_tensors: the values saved by this Function are gone",
                                why="an earlier backward() freed them, or nothing is left that was computed by it",
                                fix="call that backward() with retain_graph=True")
        found = tuple(_restored(node, slot, source) for slot, source in enumerate(self._sources))
        return _in_layouts(found, self._saved_layouts)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def mark_dirty(self, *tensors: TensorBase) -> None:
        """Say that forward changed these inputs. (It is noticed anyway.)"""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: TensorBase) -> None:
        """Say that these outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs that nothing depends on."""
        self._materialize = value


def _of_values(tensors: Sequence[Any]) -> tuple[tuple[Any, ...], Layouts]:
    """Return the values of sparse tensors in their place, and of which tensor they are."""
    if not ANSWERING or not has_own_layout(tensors):
        return tuple(tensors), {}
    layouts = {i: t.detach() for i, t in enumerate(tensors) if getattr(t, "_own_layout", False)}
    return tuple(t._numbers if i in layouts else t for i, t in enumerate(tensors)), layouts


def _in_layouts(values: tuple[Any, ...], layouts: Layouts) -> tuple[Any, ...]:
    """Return them as sparse tensors again."""
    return tuple(layouts[i]._with(v) if i in layouts else v for i, v in enumerate(values)) if layouts else values


def _only_tensors(values: tuple[TensorBase | None, ...], what: str) -> tuple[TensorBase | None, ...]:
    for t in values:
        if t is not None and not isinstance(t, TensorBase):
            raise BadArgument(f"{what}: can only save tensors, not {kind_name(t)}", fix="ctx.value = value")
    return values


def _restored(node: Node, slot: int, source: Any) -> Any:
    """A saved value as a tensor of its own, so that backward may write to it, with the history that it had."""
    value = snapshot(node, slot)
    if value is None:
        return None
    writer, window = _output_source(node, source) if source.__class__ is int else source
    return with_history(value, writer, window, shared=False)


def _output_source(node: Node, number: int) -> tuple[Writer | None, Any]:
    """The writer and window of an output; of one that the program has dropped, the writer is made again."""
    made = node.op.outputs[number]
    if made is None:
        return None, None
    writer = made()
    if writer is None:
        writer = new_node(OUTPUT, (node,))
        writer.saved = number
        node.op.outputs[number] = _weak(writer)
        return writer, None
    return source_of(writer, "out", 0)


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

    def reverse(self, xp: Any, g: Any, saved: Any, links: Sequence[Writer | None]) -> list[Any]:
        given = g if isinstance(g, dict) else {0: g}
        incoming = [self._incoming(given.get(i), shape, self.outputs[i] is None) for i, shape in enumerate(self.shapes)]
        incoming = list(_in_layouts(tuple(incoming), self.ctx._output_layouts))
        function = self.function
        usual = function.vjp is Function.vjp and function.backward is not Function.backward
        backward = function.backward if usual else _backward_of(function)
        answers = backward(self.ctx, incoming) if function.boxed_grads_call else backward(self.ctx, *incoming)
        answers = answers if isinstance(answers, (tuple, list)) else (answers,)
        return user_code(links, self._outgoing(answers, links))

    def _incoming(self, g: Any, shape: Any, constant: bool) -> Any:
        if g is None:
            if shape is None or not self.ctx._materialize or constant and not self.ctx._materialize_non_diff_grads:
                return None
            return make(np.zeros(*shape))
        return g if isinstance(g, TensorBase) else make(np.array(g))

    def _outgoing(self, answers: Sequence[Any], links: Sequence[Writer | None]) -> list[Any]:
        links = links[: len(self.ctx.needs_input_grad)]  # the writer before, if any, comes after the inputs
        if len(answers) > len(links) and all(a is None for a in answers[len(links):]):
            answers = answers[: len(links)]
        if len(answers) != len(links):
            raise GradientError(f"{self.name}.backward returned {len(answers)} gradients for {len(links)} inputs "
                                "of forward", fix="return one for each input, None for those without")
        return [None if k is None or a is None else self._checked(a, i) for i, (k, a) in enumerate(zip(links, answers))]

    def _checked(self, answer: Any, i: int) -> Any:
        if not isinstance(answer, TensorBase):
            raise BadArgument(f"{self.name}.backward returned {type(answer).__name__} as gradient {i}",
                              fix="return a tensor or None")
        if i in self.ctx._layouts:
            answer = self.ctx._layouts[i]._seed(answer)
        shape, dtype = self.ctx._input_shapes[i]
        if answer._array.shape != shape:
            answer = self._fitted(answer, shape, i)
        if answer._array.dtype != dtype:
            answer = cast(answer, dtype)
        return answer if mode.grad else answer._array

    def _fitted(self, answer: TensorBase, shape: tuple[int, ...], i: int) -> Any:
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
        raise ShapeError(f"{self.name}.backward returned an invalid gradient for input {i}: "
                         f"got shape {given} but expected shape {shape}")


def _backward_of(function: type[Function]) -> Callable[..., Any]:
    """Return what the user has called backward, or vjp, which is the same."""
    own = [f for f, base in ((function.backward, Function.backward), (function.vjp, Function.vjp)) if f is not base]
    if len(own) != 1:
        said = ("Implementing both 'backward' and 'vjp' leaves open which is meant" if own else
                "must implement either the backward or the vjp method to be differentiated")
        raise GradientError(f"{function.__name__}: {said}", fix="@staticmethod def backward(ctx, *grads): ...")
    return own[0]


class FunctionNode(Node):
    """The node of one call of a Function, under the Function's name; what `ctx` keeps can be read from it."""

    __slots__ = ()

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Writer | ViewOf | None, int], ...]:
        """The writers of the arguments that are tensors, with the number of the output; views of them in between."""
        kinds = self.op.ctx._input_shapes
        return tuple(edge(seen_through(writer, window)) for writer, window, kind
                     in zip_longest(self[:len(kinds)], self.windows or (), kinds) if kind is not None)

    @property
    def metadata(self) -> dict[Any, Any]:
        """What anybody wants to note about this call."""
        return self.op.ctx._metadata  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name in Node.__slots__ or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.op.ctx, name)


class _Named(type):
    """Gives every Function a class of nodes: `_backward_cls`."""

    def __init__(cls, name: str, bases: tuple[type, ...], inside: dict[str, Any], **settings: Any) -> None:
        super().__init__(name, bases, inside, **settings)
        cls._backward_cls = type(f"{name}Backward", (FunctionNode,), {"__slots__": ()})


class Function(metaclass=_Named):
    """Base class: define `forward(ctx, ...)` and `backward(ctx, *grads)` as static methods and call `apply`.

    `jvp(ctx, *tangents)`, if there is one, is what `forward_ad` uses; without it, tangents are found by way of
    `backward`. `vmap` is not called: under `func.vmap`, forward sees one slice at a time, or all at once if the class
    says `generate_vmap_rule = True`. With `boxed_grads_call = True`, backward is given its gradients as one list.

    >>> import mutagrad as mg
    >>> class Square(mg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = mg.tensor([3.], requires_grad=True)
    >>> Square.apply(x).sum().backward()
    >>> x.grad
    tensor([6.])
    """

    generate_vmap_rule = False
    boxed_grads_call = False

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        warnings.warn(f"{type(self).__name__} should not be instantiated: its methods are static",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        name = type(self).__name__
        raise GradientError(f"{name}: Legacy autograd function with non-static forward method is deprecated",
                            fix=f"{name}.apply(...), with static methods forward(ctx, ...) and backward(ctx, *grads)")

    @staticmethod
    def forward(*arguments: Any, **settings: Any) -> Any:
        """Compute the results: define it in a subclass, as a static method. Inside, nothing is recorded.

        >>> import mutagrad as mg
        >>> class Double(mg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        >>> Double.apply(mg.ones(2))
        tensor([2., 2.])
        """
        raise NotImplementedError("you must implement the forward function: define forward(ctx, ...) "
                                  "as a static method")

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        """Return the gradient of each argument, None for one without: define it in a subclass, as a static method.

        >>> import mutagrad as mg
        >>> class Reversed(mg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.clone()
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return -g
        >>> x = mg.ones(2, requires_grad=True)
        >>> Reversed.apply(x).sum().backward()
        >>> x.grad
        tensor([-1., -1.])
        """
        raise NotImplementedError("define backward(ctx, *grads) as a static method")

    @staticmethod
    def vjp(ctx: Context, *grads: Any) -> Any:
        """Return the gradient of each argument: PyTorch's second name of `backward`."""
        raise NotImplementedError("define backward(ctx, *grads) as a static method")

    @staticmethod
    def jvp(ctx: Context, *tangents: Any) -> Any:
        """Return the tangent of each result, from those of the arguments; `forward_ad` asks for it, if there is one.

        >>> import mutagrad as mg
        >>> class Double(mg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def jvp(ctx, dx):
        ...         return 2 * dx
        >>> with mg.autograd.forward_ad.dual_level():
        ...     x = mg.autograd.forward_ad.make_dual(mg.ones(2), mg.tensor([1., 3.]))
        ...     mg.autograd.forward_ad.unpack_dual(Double.apply(x)).tangent
        tensor([2., 6.])
        """
        raise NotImplementedError("define jvp(ctx, *tangents) as a static method")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        """Accepted as PyTorch's, and not called: under `func.vmap`, forward sees one slice at a time."""
        raise NotImplementedError("define vmap(info, in_dims, ...) as a static method")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what backward needs, where `forward` is written without ctx.

        >>> import mutagrad as mg
        >>> class Square(mg.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2 * ctx.saved_tensors[0] * g
        >>> x = mg.tensor([3.], requires_grad=True)
        >>> Square.apply(x).sum().backward()
        >>> x.grad
        tensor([6.])
        """
        raise NotImplementedError

    @classmethod
    def apply(cls, *arguments: Any, **named: Any) -> Any:
        """Run forward without recording, then record the call as one operation.

        >>> import mutagrad as mg
        >>> class Square(mg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         x, = ctx.saved_tensors
        ...         return 2 * x * g
        >>> x = mg.tensor([3.], requires_grad=True)
        >>> Square.apply(x).sum().backward()
        >>> x.grad
        tensor([6.])
        """
        if named:
            arguments = _by_position(cls, arguments, named)
        if OTHER_KIND and not cls.generate_vmap_rule and (level := real_kind()) is not None:
            level.before_user_code(cls.__name__, [a._array for a in arguments if isinstance(a, TensorBase)])
        ctx = Context()
        if cls.setup_context is not Function.setup_context:  # which is given the defaults of forward, too
            bound = inspect.signature(cls.forward).bind(*arguments)
            bound.apply_defaults()
            arguments = bound.args
        tensors, ctx._layouts = _of_values([a if isinstance(a, TensorBase) else None for a in arguments])
        ctx.needs_input_grad = tuple(t is not None and t._storage.writer is not None for t in tensors)
        ctx._input_shapes = [None if t is None else (t._array.shape, t._array.dtype) for t in tensors]
        recording = mode.grad and any(ctx.needs_input_grad)
        links = (tuple(None if t is None else t._storage.writer for t in tensors),
                 tuple(None if t is None or t._storage.writer is None else window_or_none(t) for t in tensors))
        writers = [(storage, storage.writer) for t in tensors if t is not None for storage in histories(t)]
        tangents = _tangents(cls, tensors)
        versions = [None if t is None else memory_of(t).version for t in tensors]
        result = call_with(UNRECORDED, _call_forward, cls, ctx, arguments)
        changed = [t for t, v in zip(tensors, versions) if t is not None and memory_of(t).version != v]
        for storage, writer in writers:  # what forward has written is recorded below, as the Function's
            storage.writer = writer
        outputs, ctx._output_layouts = _of_values(result if isinstance(result, tuple) else (result,))
        if recording:
            outputs = _record(cls, ctx, outputs, tensors, links, _dirty(changed, ctx, outputs))
        if tangents is not None:
            _carry_on(cls, ctx, tangents, outputs)
        outputs = _in_layouts(outputs, ctx._output_layouts)
        return outputs if isinstance(result, tuple) else outputs[0]


def _by_position(cls: type[Function], arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of `forward` in order: gradients belong to places, so a name stands for the place that it has."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [p.name for p in inspect.signature(cls.forward).parameters.values() if p.kind in plain]
    places = places[cls.setup_context is Function.setup_context:]  # without ctx
    found, left = list(arguments), dict(named)
    for i, name in enumerate(places[len(found):], len(found)):
        if left and name not in left:
            raise BadArgument(f"{cls.__name__}.apply: forward() missing required argument: {name!r} (position {i})",
                              why="arguments may be left out at the end only", fix=f"give {name}, too")
        if left:
            found.append(left.pop(name))
    if left:
        raise BadArgument(f"{cls.__name__}.apply: forward() got an unexpected keyword argument {next(iter(left))!r}",
                          why=f"it has the places {', '.join(places)}", fix="arguments that have a place of their own")
    return tuple(found)


def _call_forward(cls: type[Function], ctx: Context, arguments: tuple[Any, ...]) -> Any:
    if cls.setup_context is Function.setup_context:
        return cls.forward(ctx, *arguments)
    result = cls.forward(*arguments)
    cls.setup_context(ctx, arguments, result)
    return result


def _tangents(cls: type[Function], tensors: Sequence[Any]) -> list[TensorBase | None] | None:
    """Of the inputs, for `jvp`: zeros where a tensor has none. None if there is nothing to carry on, or no `jvp`."""
    if not forward_ad.is_open() or cls.jvp is Function.jvp:
        return None
    found = [None if t is None else forward_ad.unpack_dual(t).tangent for t in tensors]
    if all(tangent is None for tangent in found):
        return None
    return [make(np.zeros_like(t._array)) if tangent is None and t is not None and _is_float(t) else tangent
            for t, tangent in zip(tensors, found)]


def _is_float(tensor: TensorBase) -> bool:
    return tensor._array.dtype.kind in "fcV"


def _carry_on(cls: type[Function], ctx: Context, tangents: list[TensorBase | None], outputs: tuple[Any, ...]) -> None:
    """Give the outputs the tangents that `jvp` says."""
    ctx._in_jvp = True
    try:
        answers = cls.jvp(ctx, *tangents)
    finally:
        ctx._in_jvp = False
    answers = answers if isinstance(answers, tuple) else (answers,)
    if len(answers) != len(outputs):
        raise GradientError(f"{cls.__name__}.jvp returned {len(answers)} tangents for {len(outputs)} outputs "
                            "of forward", fix="return one for each output, None for those without")
    for i, (output, tangent) in enumerate(zip(outputs, answers)):
        if tangent is not None and (not isinstance(output, TensorBase) or output._storage.writer is None):
            raise GradientError(f"{cls.__name__}.jvp returned a tangent for output {i}, which has no derivative",
                                fix="You should return None at that position instead")
        if tangent is not None and tangent._array.shape != output._array.shape:
            raise ShapeError(f"{cls.__name__}.jvp returned a tangent of shape {tangent._array.shape} "
                             f"for output {i} of shape {output._array.shape}")
        if isinstance(output, TensorBase) and output._storage.writer is not None:
            forward_ad.attach(output, tangent)


def _is(one: object, others: Sequence[object]) -> bool:
    return any(one is other for other in others)


def _dirty(changed: list[TensorBase], ctx: Context, outputs: tuple[Any, ...]) -> list[TensorBase]:
    """The inputs that forward changed: marked ones, and those whose memory has a new version.

    Versions are the memory's, so an input that only shares memory with a changed one that is marked or returned is not.
    """
    known = [*ctx._dirty, *(t for t in changed if _is(t, outputs))]
    explained = [memory_of(t) for t in known]
    return known + [t for t in changed if not _is(t, known) and not _is(memory_of(t), explained)]


def _check_dirty(cls: type[Function], ctx: Context, tensors: Sequence[Any], outputs: tuple[Any, ...],
                 dirty: list[TensorBase]) -> None:
    for t in dirty:
        if t._storage.writer is not None and _is(t, tensors) and not _is(t, outputs):
            kind = GradientError if _is(t, ctx._dirty) else UnmarkedWrite
            raise kind(f"{cls.__name__}: forward changed an input that it does not return",
                       why="its gradient could not reach backward: Some elements marked as dirty "
                       "during the forward method were not returned as output.", fix="return the changed input, too")
    if any(not _is(t, tensors) for t in ctx._dirty):
        warnings.warn(f"{cls.__name__}: mark_dirty received a tensor that was not an input", stacklevel=3)


def _record(cls: type[Function], ctx: Context, outputs: tuple[Any, ...], tensors: Sequence[Any], links: tuple[Any, ...],
            dirty: list[TensorBase]) -> tuple[Any, ...]:
    if dirty:
        _check_dirty(cls, ctx, tensors, outputs, dirty)
        dirty = [t for t in dirty if _is(t, tensors)]
    op = Applied(cls, ctx, len(outputs))
    node = new_node(op, *links)
    node.__class__ = cls._backward_cls
    differentiable = [isinstance(o, TensorBase) and _is_float(o) and not _is(o, ctx._constant) for o in outputs]
    several = sum(differentiable) > 1 or len(outputs) > 1
    results: list[Any] = []
    for i, (o, yes) in enumerate(zip(outputs, differentiable)):
        op.shapes.append((o._array.shape, o._array.dtype) if isinstance(o, TensorBase) else None)
        first = next((j for j in range(i) if outputs[j] is o), i) if i else 0
        if first < i:
            results.append(results[first])
        else:
            results.append(_attach(o, node, i, several, _is(o, dirty), _is(o, tensors)) if yes else o)
    ctx._sources = [_source(t, outputs, tensors, dirty) for t in ctx._to_save]
    node.saved = tuple(None if t is None else save(t, node, slot) for slot, t in enumerate(ctx._to_save))
    pack_function(node)
    op.outputs = [ref_or_none(r, yes) for r, yes in zip(results, differentiable)]
    ctx._node = _weak(node)
    ctx._to_save = ()
    return tuple(results)


def ref_or_none(result: Any, yes: bool) -> ref[Node] | None:
    return _weak(result._storage.writer) if yes else None


def _weak(node: Node) -> ref[Node]:
    return ref(node)


def _source(t: TensorBase | None, outputs: Sequence[Any], tensors: Sequence[Any], dirty: Sequence[TensorBase]) -> Any:
    """Return where a saved tensor came from: the number of the output that it is, or else its writer and window.

    An input that forward changed is saved as the output that it became.
    """
    if t is None:
        return None, None
    number = next((i for i, o in enumerate(outputs) if o is t), None)
    if number is not None and (_is(t, dirty) or not _is(t, tensors)):
        return number
    writer, origin = t._storage.writer, t._storage.origin
    if origin is not None and memory_of(t).version == origin[1]:  # a view that forward made, unrecorded
        writer = origin[0]()
        if writer is not None and writer.whole is UNKNOWN_SHAPE:
            writer.whole = t._storage.buffer.shape, t._storage.buffer.dtype
    return writer, None if writer is None else window_or_none(t)


def _attach(output: TensorBase, node: Node, number: int, several: bool, dirty: bool, is_input: bool) -> TensorBase:
    """Make `node` the writer of an output: of its storage, if it is new or was changed; else of a history of its own.

    One over memory that others see is linked to theirs: a write to either is part of both. Elements that are the same
    memory have gradients of their own to come, so such an output is copied.
    """
    array = output._array
    if overlaps_itself(array.shape, array.strides, array.itemsize):
        output = make(array.copy())
    elif not dirty and not (output._storage.writer is None and output._storage.root is None and not is_input):
        output = linked_alias(output)
    writer = node
    if several:
        writer = new_node(OUTPUT, (node,))
        writer.saved = number
    if dirty or output._offset is not None:
        window = window_or_none(output)
        if window is not None:
            set_write(writer, output._storage, window)
    output._storage.writer = writer
    if dirty:
        tell_aliases(output, writer)
    return output


class _Once:
    """The operation of a gradient that is not differentiable itself."""

    name, promotes = "once_differentiable", ""
    adds = frees = False
    saves: tuple[Any, ...] = ()

    def reverse(self, xp: Any, g: Any, saved: Any, links: Sequence[Writer | None]) -> NoReturn:
        raise GradientError("once_differentiable: this Function's backward was declared not to be differentiable",
                            why="trying to differentiate twice a function that was marked with @once_differentiable",
                            fix="leave the decorator out, if backward computes with tensors alone")


_ONCE = _Once()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that is not differentiable itself: differentiating what it gave is an error, not a zero."""

    @functools.wraps(backward)
    def wrapped(ctx: Context, *grads: Any) -> Any:
        answers = call_with(UNRECORDED, backward, ctx, *grads)
        if not mode.grad:
            return answers
        node = ctx._node() if ctx._node is not None else None
        writers = [g._storage.writer for g in grads if isinstance(g, TensorBase)] + list(node or ())
        given = answers if isinstance(answers, tuple) else (answers,)
        given = tuple(_only_once(a, writers) if isinstance(a, TensorBase) else a for a in given)
        return given if isinstance(answers, tuple) else given[0]

    return wrapped


def _only_once(answer: TensorBase, writers: list[Any]) -> Any:
    found = detached(answer).clone()
    found._storage.writer = new_node(_ONCE, writers)
    return found


class InplaceFunction(Function):
    """PyTorch's old base class for a Function that changes its input: here, as `Function` with `ctx.mark_dirty`."""
