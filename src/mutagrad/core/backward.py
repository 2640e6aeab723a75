"""Asking for derivatives: `backward`, `grad`, and hooks on what a sweep brings."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Union
from weakref import ref

from ..arrays import np
from ..arrays.kinds import IN_USE, anywhere, device_of, moved, others, real_kind
from ..arrays.numpy import SILENT, fp_state, set_fp_state, silently
from ..base.errors import BadArgument, BadValue, DTypeError, GradientError, OutOfMemory, ShapeError
from ..base.layout import ANSWERING, has_own_layout
from ..base.locks import new_lock
from ..base.modes import OTHER_KIND, UNRECORDED, Modes, call_with, mode, tidy
from ..base.operands import Array, kind_name
from ..base.provenance import here
from ..base.sockets import socket
from .arithmetic import ON_ARRAYS, ON_TENSORS
from .evidence import BEGUN, REFUSED, Evidence
from .factory import detached, make, window_or_none
from .fast_sweep import FastSweep
from .graph import UNKNOWN_SHAPE, Adjoint, Freed, Hooks, Leaf, Node, ViewOf, Writer, place_of, positions, positions_in
from .indexing import put
from .nans import has_nan, nan_found
from .op import RECORDED
from .saved import SEEN_THROUGH
from .spread import ASKED, EVER, asked, check_separate, check_told_apart, node_of, separate, shares_memory, spreading
from .storage import Repeated, Storage, TensorBase, before_write, check_inside, histories, memory_of, same_group
from .sweep import Sweep, SweepAcross, reaching
from .window import Whole, Window, overlaps_itself
from .write import FOLLOW

# Which engine runs: `Sweep` gives the same, plainly. And which where arrays of other kinds may come up.
SWEEP: type[Sweep] = FastSweep
SWEEP_ACROSS: type[Sweep] = SweepAcross

# ------------------------------------------------------------------------------------------------------------ the seeds

def _seed(tensor: Any, gradient: TensorBase | None, create_graph: bool) -> Any:
    """The adjoint to start from, given or ones: a tensor if the sweep is recorded, else an array."""
    if not isinstance(tensor, TensorBase):
        raise BadArgument(f"backward: can only differentiate tensors, not {kind_name(tensor)}")
    if tensor._storage.writer is None:
        raise _no_history(tensor)
    array = tensor._array
    if gradient is None:
        if array.dtype.kind == "c":
            raise GradientError("backward: grad can be implicitly created only for real scalar outputs, "
                                "or several real ones, and this is complex",
                                why="a complex number has two derivatives, "
                                    "one by its real and one by its imaginary part", fix="y.abs().sum().backward()")
        ones = np.empty(array.shape, array.dtype)
        ones.fill(1)
        ones = moved(ones, device_of(array)) if IN_USE else ones
        return make(ones) if create_graph or OTHER_KIND else ones
    if not isinstance(gradient, TensorBase):
        raise BadArgument(f"backward: the gradient must be a tensor, not {kind_name(gradient)}",
                          fix="y.backward(mutagrad.ones_like(y))")
    if gradient._array.shape != array.shape:
        raise ShapeError("backward: Mismatch in shape: "
                         f"the gradient has shape {gradient._array.shape}, the tensor {array.shape}",
                         why="it weighs every element of the tensor", fix="y.backward(mutagrad.ones_like(y))")
    if gradient._array.dtype.kind not in "fcV":
        raise DTypeError("backward: the gradient must be of a floating point type, "
                         f"not {gradient._array.dtype.name}", fix="gradient.float()")
    if IN_USE and device_of(gradient._array) is not device_of(array):
        raise BadValue("backward: Expected all tensors to be on the same device, but the tensor is on "
                       f"{tensor.device} and its gradient on {gradient.device}", fix="gradient.to(y.device)")
    if has_nan(gradient._array):
        nan_found("the gradient to start from has nan in it", None)
    if gradient._array.dtype != array.dtype:
        gradient = make(silently(gradient._array.astype, array.dtype))
    return gradient


def _no_history(tensor: TensorBase) -> GradientError:
    REFUSED[:] = ref(tensor), BEGUN[0]
    kind = tensor._array.dtype
    if kind.kind not in "fcV":
        why = f"it is of type {kind.name}, which has no derivatives"
    else:
        why = ("nothing that it was computed from requires a gradient; or it was computed inside no_grad, from .data, "
               "from .detach() or from .item()")
    return GradientError("backward: this tensor does not require grad and does not have a grad_fn", why=why,
                         fix="x = mutagrad.tensor(..., requires_grad=True) before computing with x")


class GradientEdge(NamedTuple):
    """A place in the graph: what a node wrote. `ownership_token` is a tensor still as it was there, if one is known."""

    node: Any
    output_nr: int
    ownership_token: TensorBase | None = None


# What may be given where tensors are meant: one, or several. (Of gradients, None stands for ones.)
Tensors = Union[TensorBase, GradientEdge, Sequence[Union[TensorBase, GradientEdge, None]]]
Seed = tuple[Writer, Any, Adjoint]  # a writer, the window on what it wrote (None: all of it), and the adjoint of that


def get_gradient_edge(tensor: TensorBase) -> GradientEdge:
    """Return the place in the graph at which a tensor is now, whatever is written to it later."""
    if not tensor.requires_grad:
        raise GradientError("get_gradient_edge: cannot get the gradient edge of something that does not require grad",
                            fix="x.requires_grad_()")
    kept = detached(tensor)
    kept._storage.writer = tensor._storage.writer
    return GradientEdge(tensor._storage.writer if tensor.is_leaf else tensor.grad_fn, tensor.output_nr, kept)


def _at(edge: TensorBase | GradientEdge | None) -> Any:
    """What stands for an edge: the leaf, a tensor as it was there, or else the node; tensors stand for themselves."""
    if edge.__class__ is not GradientEdge:
        return edge
    leaf = edge.node.tensor() if isinstance(edge.node, Leaf) else None
    if leaf is not None and leaf._storage.writer is edge.node:
        return leaf
    written = getattr(getattr(edge.node, "op", None), "outputs", None)
    if edge.ownership_token is not None:
        return edge.ownership_token
    return written[edge.output_nr]() if written else edge.node


def _listed(tensors: Tensors) -> list[Any]:
    if isinstance(tensors, (TensorBase, GradientEdge)):
        return [_at(tensors)]
    return [_at(t) if t.__class__ is GradientEdge else t for t in tensors]


def _pairs(tensors: Tensors, gradients: Tensors | None) -> tuple[list[Any], list[Any]]:
    tensors = _listed(tensors)
    return tensors, [None] * len(tensors) if gradients is None else _listed(gradients)


def _seeds(tensors: list[Any], gradients: list[Any], create_graph: bool) -> list[Seed]:
    if len(gradients) != len(tensors):
        raise BadArgument(f"backward: {len(tensors)} tensors but {len(gradients)} gradients")
    seeds = [_seed(t, g, create_graph) for t, g in zip(tensors, gradients)]
    return [(t._storage.writer, window_or_none(t), g if create_graph or not isinstance(g, TensorBase) else g._array)
            for t, g in zip(tensors, seeds)]


class Run(Evidence):
    """One sweep while it runs: what it visits, and what is to be called when it is over."""

    callbacks: list[Callable[[], None]] | None = None
    notes: dict[Hashable, dict[str, Any]] | None = None  # what a hook on several tensors has seen so far
    useful: set[Writer] | None = None  # the only nodes worth visiting, if not all are

    def reached(self) -> set[Writer]:
        """Return all that it visits."""
        seen: set[Writer] = set()
        stack: list[Writer | None] = [start[0] for start in self.starts]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen and (self.useful is None or node in self.useful):
                seen.add(node)
                stack.extend(node.inputs)
        return seen

    def call_later(self, callback: Callable[[], None]) -> None:
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append(callback)

    def note(self, about: Hashable) -> dict[str, Any]:
        """Return what somebody keeps in mind for as long as the sweep runs."""
        if self.notes is None:
            self.notes = {}
        return self.notes.setdefault(about, {})


def running() -> Run:
    """Return the innermost sweep that is running on this thread."""
    if mode.now.sweep is None:
        raise GradientError("backward: this can only be asked during the backward pass",
                            fix="ask in a hook, or in a Function's backward")
    return mode.now.sweep  # type: ignore[no-any-return]


def run_sweep(seeds: list[Seed], create_graph: bool, retain: bool,
              deposit: Callable[[Leaf, list[Any], bool], None] | None,
              wanted: Mapping[Writer, Callable[[list[Any]], None]], only: bool,
              edge: Mapping[Writer, Callable[[Any], None]] | None = None, spread: Sequence[Node] = ()) -> None:
    """Run one sweep in the mode that it needs: recorded if `create_graph`; if `only`, of nodes that reach `wanted`.

    `spread` are the nodes for what is wanted of windows whose elements share memory.
    """
    if RETAINED:
        _keep_newest()
    if ASKED:
        spread = [*spread, *(node for node, _ in asked() if node not in spread)]
        check_told_apart(seeds, asked(), "backward")
    arithmetic = ON_TENSORS if create_graph else ON_ARRAYS
    before, errors, across, freed = mode.now, fp_state(), others(), Freed(here())
    # What part of another sweep finds, or one that is traced, is no evidence of its own.
    run = Run(seeds, freed, retain, edge is None and before.sweep is None and before.kind is None and not spread)
    if only:
        run.useful = useful = _useful([node for node, _, _ in seeds], wanted, spread)
        run.wanted = tuple(map(ref, wanted))
    else:
        useful = None
    try:
        mode.now = Modes(before, recorded=create_graph, sweep=run)
        set_fp_state(SILENT)
        engine = SWEEP_ACROSS if across else SWEEP
        settings = arithmetic, freed, retain, deposit, wanted, useful, edge or {}
        (spreading(engine, spread, *settings) if spread else engine(*settings)).run(seeds)
        for callback in run.callbacks or ():  # which may add another
            callback()
    except MemoryError as error:
        raise error if isinstance(error, OutOfMemory) else OutOfMemory.found_by("backward", error) from None
    finally:
        mode.now = before
        set_fp_state(errors)
        tidy()
    if run.callbacks is not None or run.notes is not None or only:
        run.callbacks = run.notes = run.useful = None
    run.finish()


def _useful(starts: list[Writer], wanted: Iterable[Writer], spread: Sequence[Node]) -> set[Writer]:
    """The nodes worth visiting. What reads the memory of a spread window leads to the node of that."""
    useful = reaching(starts, wanted)
    memories = {node[0] for node in spread if node in useful}
    return useful | (reaching(starts, memories) - memories) if memories else useful


# ---------------------------------------------------------------------------------------------------------- the answers

def backward(tensors: Tensors, grad_tensors: Tensors | None = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: Tensors | Mapping[Any, Any] | None = None) -> None:
    """Add the derivatives of the sum of `tensors` to `.grad` of the leaves (or only of `inputs`).

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> mg.autograd.backward((x * 3).sum())
    >>> x.grad
    tensor([3., 3.])
    """
    if ANSWERING and has_own_layout((tensors, grad_tensors, inputs)):
        return ANSWERING[0]("backward", backward, (tensors, grad_tensors, retain_graph, create_graph, inputs), {})
    tensors, gradients = _pairs(tensors, grad_tensors)
    seeds = _seeds(tensors, gradients, create_graph)
    for tensor, gradient in zip(tensors, gradients):
        if gradient is None and tensor._array.size == 1 and _is_nan(tensor._array):
            nan_found("the loss is nan", tensor._storage.writer)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        return run_sweep(seeds, create_graph, retain, _deposit_recorded if create_graph else _deposit, {}, False)
    inputs = _listed(list(inputs.values()) if isinstance(inputs, Mapping) else inputs)
    if not inputs:
        raise BadValue("backward: inputs cannot be empty",
                       fix="leave it out to differentiate with respect to all leaves")
    found = _derivatives(seeds, inputs, create_graph, retain)
    for tensor, g in zip(inputs, found):
        if g is not None and isinstance(tensor, TensorBase):
            _add_grad(tensor, g, create_graph)
            _call_after(tensor._storage.writer, tensor)


def _is_nan(array: Array) -> bool:
    if type(array) is np.ndarray and array.dtype.char in "fd":
        value = array.item()
        return bool(value != value)
    return anywhere(np.isnan(array))


def grad(outputs: Tensors, inputs: Tensors | Mapping[Any, Any], grad_outputs: Tensors | None = None,
         retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True,
         allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> Any:
    """Return the derivatives of the sum of `outputs` with respect to `inputs` as they are now: a tuple, or a dict.

    >>> import mutagrad as mg
    >>> x = mg.tensor(2., requires_grad=True)
    >>> g, = mg.autograd.grad(x ** 3, x, create_graph=True)
    >>> mg.autograd.grad(g, x)
    (tensor(12.),)
    """
    if ANSWERING and has_own_layout((outputs, inputs, grad_outputs)):
        return ANSWERING[0]("grad", grad, (outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs,
                                           allow_unused, is_grads_batched, materialize_grads), {})
    if materialize_grads and allow_unused is False:
        raise BadValue("grad: Expected allow_unused to be True or not passed when materialize_grads=True",
                       fix="leave allow_unused out")
    if isinstance(inputs, Mapping):
        found = grad(outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                     allow_unused, is_grads_batched, materialize_grads)
        return dict(zip(inputs, found))
    if is_grads_batched:
        return _rows_of_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    seeds = _seeds(*_pairs(outputs, grad_outputs), create_graph)
    given = [inputs] if isinstance(inputs, (TensorBase, GradientEdge)) else list(inputs)
    inputs = _listed(given)
    if not inputs:
        raise BadValue("grad: grad requires non-empty inputs.", fix="mutagrad.autograd.grad(y, [x])")
    found = _derivatives(seeds, inputs, create_graph, create_graph if retain_graph is None else retain_graph)
    for i, g in enumerate(found):
        if g is None and materialize_grads and isinstance(given[i], GradientEdge):
            raise GradientError("grad: materialize_grads cannot be used when the given input is a GradientEdge",
                                fix="allow_unused=True gives None for it")
        if g is None and materialize_grads:
            found[i] = make(np.zeros_like(inputs[i]._array)).requires_grad_(create_graph)
        elif g is None and not allow_unused:
            raise GradientError(f"grad: input {i}, {_told(inputs[i])}, has no influence on the outputs as it is now",
                                why="it was not used, or it was written to after it was used",
                                fix="Set allow_unused=True, which gives None for it")
    return tuple(found)


def _rows_of_grad(outputs: Tensors, inputs: Tensors, grad_outputs: Tensors | None, retain_graph: bool | None,
                  create_graph: bool, *settings: Any) -> tuple[Any, ...]:
    """Return derivatives for each row of `grad_outputs`, put together along a new first dimension."""
    seeds = [] if grad_outputs is None else _listed(grad_outputs)
    counts = {g._array.shape[0] if isinstance(g, TensorBase) and g._array.ndim else 0 for g in seeds}
    if (len(counts) != 1 or not (count := counts.pop())
            or [g._array.shape[1:] for g in seeds] != [y._array.shape for y in _listed(outputs)]):
        raise BadValue("grad: If `is_grads_batched=True`, we interpret the first dimension of each of grad_outputs "
                       "as the batch dimension: the others must be those of its output, and the first of the same size "
                       "for all", fix="grad_outputs=mutagrad.eye(y.numel())")
    seeds = [g.to(y.dtype) for g, y in zip(seeds, _listed(outputs))]
    keep = create_graph if retain_graph is None else retain_graph
    rows = [grad(outputs, inputs, [g[i] for g in seeds], keep or i < count - 1, create_graph, True,
                 settings[0], False, settings[1]) for i in range(count)]
    return tuple(None if column[0] is None else RECORDED.stack(column) for column in zip(*rows))


def _derivatives(seeds: list[Seed], inputs: Sequence[Any], create_graph: bool, retain: bool) -> list[Any]:
    found: list[Any] = [None] * len(inputs)
    by_node: dict[Any, list[tuple[int, Window | None, Any]]] = {}
    spread: list[Node] = []
    for i, tensor in enumerate(inputs):
        if isinstance(tensor, Node):
            by_node.setdefault(tensor, []).append((i, None, None))
            continue
        if isinstance(tensor, ViewOf):
            by_node.setdefault(tensor.writer, []).append((i, place_of(tensor, "grad"), None))
            continue
        if not isinstance(tensor, TensorBase):
            raise BadArgument(f"grad: input {i} is {kind_name(tensor)}, not a tensor")
        if tensor._storage.writer is None:
            raise GradientError(f"grad: input {i}, of shape {tensor._array.shape}, does not require grad",
                                fix="x.requires_grad_() before computing with it")
        if shares_memory(tensor):
            if len(places := _places(tensor)) > 1 or places[0][2] is not None:
                check_separate(tensor, "grad")
            if (node := node_of(tensor, "grad", spread)) not in spread:
                spread.append(node)
            by_node.setdefault(node, []).append((i, None, None))
            continue
        for node, window, elements in _places(tensor):
            by_node.setdefault(node, []).append((i, window, elements))

    def keep(node: Any) -> Callable[[list[Any]], None]:
        def take(holder: list[Any]) -> None:
            whole, wanted = None, by_node[node]
            for i, window, elements in wanted:
                if window is None:
                    given = holder if len(wanted) == 1 else holder.copy()
                    found[i] = _shaped_like(inputs[i], given, create_graph)
                    continue
                whole = _as_buffer(node, holder[0], create_graph) if whole is None else whole  # one, for all windows
                part = (ON_TENSORS.take(whole, window, False) if create_graph
                        else make(ON_ARRAYS.take(whole, window, False)))
                found[i] = part if elements is None else _put_part(found[i], inputs[i], elements, part)
        return take

    if spread:
        known = [node for node, _ in asked()]
        check_told_apart(seeds, [(node, EVER) for node in spread if node not in known], "grad")
    run_sweep(seeds, create_graph, retain, None, {node: keep(node) for node in by_node}, True, None, spread)
    if IN_USE:
        found = [RECORDED.joined(g, x) if g is not None and isinstance(x, TensorBase) else g
                 for g, x in zip(found, inputs)]
    return found


def _put_part(found: Any, tensor: Any, elements: Any, part: Any) -> Any:
    """A gradient of which some elements have been found."""
    array = tensor._array
    found = make(np.zeros(array.shape, array.dtype)) if found is None else found
    put(RECORDED.reshape(found, (array.size,)), (elements,), part, "grad", accumulate=True)
    return found


def _told(wanted: TensorBase | Node) -> str:
    return f"of shape {wanted._array.shape}" if isinstance(wanted, TensorBase) else repr(wanted)


def _place(tensor: TensorBase) -> tuple[Any, Window | None]:
    """The writer whose adjoint a tensor's gradient is a part of, and the window of that part.

    A view that was saved and brought back stands for the view that it was.
    """
    writer = tensor._storage.writer
    if isinstance(writer, Node) and writer.op is SEEN_THROUGH and tensor._offset is None:
        return writer[0], writer.windows[0]  # type: ignore[index]
    return writer, window_or_none(tensor)


Place = tuple[Any, Union[Window, None], Any]  # a writer, the window on what it wrote, and which elements that is


def _places(tensor: TensorBase) -> list[Place]:
    """The writers whose adjoints a tensor's gradient is made of, the window on each, and which elements it is for.

    That is one, for all of them, but where memory has several histories. What is written in one of them is copied into
    the others, and each is read by itself: of an element as it is now, all that reads it arrives at the newest writer
    of the history through which it was read, or passes on from there to that of another one.
    """
    writer, window = _place(tensor)
    storage, array = tensor._storage, tensor._array
    ledger = memory_of(tensor).ledger
    if ledger is None or ledger.aliases is None or array.dtype != storage.buffer.dtype:
        return [(writer, window, None)]
    alike = [h for h in histories(tensor) if h.writer is not None and same_group(h, storage)
             and h.buffer.dtype == array.dtype and (h.__class__ is not Repeated or h is storage)]
    newest = {h.writer for h in alike}
    if len(newest) < 2:
        return [(writer, window, None)]
    places: list[Place] = []
    wanted = positions(tensor._offset or 0, array.shape, array.strides, array.itemsize).reshape(-1)
    for history in dict.fromkeys(alike):
        there = wanted + (storage.start - history.start) // array.itemsize
        elements = ((there >= 0) & (there < history.buffer.size)).nonzero()[0]
        elements = elements[_kept(history, there[elements], newest)]
        if elements.size:
            if history.writer.whole is UNKNOWN_SHAPE:
                history.writer.whole = history.buffer.shape, history.buffer.dtype
            places.append((history.writer, _picked(history.writer.whole, there[elements]), elements))
    return places


def _kept(history: Storage, wanted: Array, newest: set[Any]) -> Array:
    """Which elements of a history do not pass on to the newest writer of another one, which they were copied from."""
    kept, waiting = np.ones(wanted.size, bool), np.arange(wanted.size)
    writer, buffer = history.writer, history.buffer
    while isinstance(writer, Node) and writer.written is not None and waiting.size:
        inside = np.isin(wanted[waiting], positions_in(writer.written, buffer, buffer.dtype))
        if writer.op is FOLLOW and writer[0] in newest:
            kept[waiting[inside]] = False
        waiting, writer = waiting[~inside], writer.previous
    if isinstance(writer, Node) and writer.op is FOLLOW and writer.written is None and writer[0] in newest:
        kept[waiting] = False
    return kept


def _picked(whole: Whole, places: Any) -> Window:
    return 0, (prod(whole[0]),), (whole[1].itemsize,), (places,)


def _shaped_like(tensor: TensorBase | Node, holder: list[Any], create_graph: bool) -> Any:
    """The adjoint of all that a node wrote, as a tensor of its own; copied only if somebody else can see it."""
    if create_graph:
        return RECORDED.clone(holder[0])
    return make(ON_ARRAYS.own(holder, None if isinstance(tensor, Node) else tensor._array.dtype))


def _as_buffer(node: Writer, g: Adjoint, create_graph: bool) -> Any:
    """The same as a buffer that windows can be laid over."""
    if create_graph:
        return g if g._offset is None else RECORDED.clone(g)
    dtype = node.whole[1]
    return g if g.dtype == dtype and g.flags.c_contiguous else np.array(g, dtype, order="C")


def _deposit(leaf: Leaf, holder: list[Any], windowed: bool) -> None:
    """Add the adjoint in `holder` to a leaf's `.grad`: that of its storage or, if `windowed`, of its window on that."""
    tensor = leaf.tensor()
    if tensor is None:
        return
    if holder[0].__class__ is list:
        _add_rows(tensor, holder.pop())
        return _call_after(leaf, tensor)
    g = ON_ARRAYS.own(holder, tensor._array.dtype if windowed or leaf.window is None else leaf.whole[1])
    if leaf.window is not None and not windowed:
        g = np.asarray(ON_ARRAYS.take(g, leaf.window, False))
    if IN_USE:
        g = moved(g, device_of(tensor._array))
    _add_grad(tensor, make(_shaped(g, leaf, tensor)), False)
    if leaf.after is not None:
        _call_after(leaf, tensor)


_deposit.takes_rows = True  # type: ignore[attr-defined]


def _add_rows(tensor: TensorBase, pending: list[tuple[Any, Array]]) -> None:
    """Add what arrived for rows of a matrix to its `.grad`, which is sparse if nothing else is."""
    rows, values = [], []
    for (_, _, _, index), g in pending:
        numbers = index[0].reshape(-1)
        kept = slice(None) if index.left_out is None else numbers != index.left_out
        rows.append(numbers[kept])
        values.append(g.reshape(numbers.size, tensor._array.shape[1])[kept])
    at, found = np.concatenate(rows), np.concatenate(values).astype(tensor._array.dtype, copy=False)
    with _adding:
        old: Any = tensor._grad
        if old is None or has_own_layout((old,)):
            new = socket("sparse").of_rows(at, make(found), tensor._array.shape)
            tensor._grad = new if old is None else old + new
        else:
            call_with(UNRECORDED, put, old, (at,), make(found), "grad", accumulate=True)


def _shaped(g: Array, leaf: Leaf, tensor: TensorBase) -> Array:
    if tensor._array.shape != leaf.shape:
        raise GradientError(f"backward: a leaf of shape {tensor._array.shape} cannot take a gradient "
                            f"of shape {leaf.shape}",
                            why="its .data was set to a tensor of another shape after it was used",
                            fix="compute again after x.data = ...")
    return g if g.shape == leaf.shape else g.reshape(leaf.shape)


def _deposit_recorded(leaf: Leaf, holder: list[Any], windowed: bool) -> None:
    tensor = leaf.tensor()
    if tensor is None:
        return
    g = holder.pop()
    dtype = tensor._array.dtype if windowed or leaf.window is None else leaf.whole[1]
    if g._array.dtype != dtype:
        g = ON_TENSORS.own([g], dtype)
    if leaf.window is not None and not windowed:
        g = ON_TENSORS.view(RECORDED.clone(g), leaf.window)
    _add_grad(tensor, RECORDED.joined(RECORDED.clone(g), tensor), True)
    _call_after(leaf, tensor)


def _call_after(leaf: Writer | None, tensor: TensorBase) -> None:
    after = getattr(leaf, "after", None)
    if after and mode.now.sweep is not None:
        mode.now.sweep.answered("after", 0, [])
    for hook, in after.in_order() if after else ():
        if hook(tensor) is not None:
            raise BadArgument("register_post_accumulate_grad_hook: hooks should return None.",
                              fix="x.grad = ..., inside the hook")


_adding = new_lock()  # several threads may differentiate with respect to one leaf


def _add_grad(tensor: TensorBase, g: TensorBase, create_graph: bool) -> None:
    """Add to `.grad`: in its memory, so whoever holds it sees it; as a new tensor where the sum must have a history."""
    if OTHER_KIND:
        check_inside(tensor)
    with _adding:
        old = tensor._grad
        if old is None:
            tensor._grad = g
        elif ANSWERING and has_own_layout((old,)):
            tensor._grad = g + old  # type: ignore[operator]
        elif (create_graph or old._storage.writer is not None or not old._array.flags.c_contiguous
                and overlaps_itself(old._array.shape, old._array.strides, old._array.itemsize)):
            tensor._grad = old + g
        else:
            before_write(old)
            np.add(old._array, g._array, old._array)


# ---------------------------------------------------------------------------------------------------------------- hooks

class RemovableHandle:
    """What registering a hook returns: `handle.remove()`."""

    def __init__(self, hooks: Hooks, key: Hashable) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def _writer(tensor: TensorBase, what: str) -> Writer:
    writer = tensor._storage.writer
    if writer is None:
        raise GradientError(f"{what}: this tensor does not require a gradient", fix="x.requires_grad_()")
    return writer  # type: ignore[no-any-return]


def register_hook(tensor: TensorBase, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Show `hook` the adjoint of the tensor as it is now: of this version of its storage, through its window."""
    writer = _writer(tensor, "register_hook")
    if OTHER_KIND and (level := real_kind()) is not None:
        level.before_user_code("a hook", [tensor._array])
    if shares_memory(tensor):
        writer = separate(tensor, "register_hook")
    return enter_hook(writer, hook, window_or_none(tensor))


def enter_hook(writer: Writer, hook: Callable[[Any], Any], window: Window | None,
               key: Hashable | None = None) -> RemovableHandle:
    """Enter a hook. Those on tensors come first, then what keeps their gradients, then those on the node."""
    if writer.hooks is None:
        writer.hooks = Hooks()
    return RemovableHandle(writer.hooks, writer.hooks.enter((hook, window), key))


def register_after(tensor: TensorBase, hook: Callable[[Any], None]) -> RemovableHandle:
    writer = _writer(tensor, "register_post_accumulate_grad_hook")
    if not isinstance(writer, Leaf):
        raise GradientError("register_post_accumulate_grad_hook: "
                            "post accumulate grad hooks cannot be registered on non-leaf tensors",
                            why="only leaves accumulate gradients", fix="x.register_hook(hook)")
    return enter_after(writer, hook)


def enter_after(leaf: Leaf, hook: Callable[[Any], None]) -> RemovableHandle:
    if leaf.after is None:
        leaf.after = Hooks()
    return RemovableHandle(leaf.after, leaf.after.enter((hook,)))


class _Keeper:
    """The hook that puts a computed tensor's gradient into its `.grad`."""

    rank = 1

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor = ref(tensor)

    def __call__(self, g: TensorBase) -> None:
        tensor = self.tensor()
        if tensor is not None and _keeper_of(tensor) in (None, self):  # else it was asked for that of a newer version
            _add_grad(tensor, RECORDED.clone(g), mode.grad)


def retain_grad(tensor: TensorBase) -> None:
    """Keep the gradient of a computed tensor as it is when a sweep begins. (A leaf that was written reports as one.)"""
    writer, leaf = _writer(tensor, "retain_grad"), tensor._storage.leaf
    if (leaf is None or leaf.tensor() is not tensor) and not retains_grad(tensor):
        if shares_memory(tensor):
            writer = separate(tensor, "retain_grad")
        enter_hook(writer, _Keeper(tensor), window_or_none(tensor), _keeper_key(tensor))
        number, asked = id(tensor), RETAINED if tensor._offset is None else RETAINED_VIEWS
        asked[number] = ref(tensor, lambda _: asked.pop(number, None))


RETAINED: dict[int, Any] = {}  # tensors, not views, whose gradient is kept, of whatever version
RETAINED_VIEWS: dict[int, Any] = {}  # these keep that of the version on which it was asked for


def _keep_newest() -> None:
    """Keep the gradient of what tensors are now, where they were written since it was asked for."""
    for tensor in [reference() for reference in list(RETAINED.values())]:
        writer = None if tensor is None else tensor._storage.writer
        if writer is not None and tensor._storage.leaf is None and _keeper_of(tensor) is None:
            enter_hook(writer, _Keeper(tensor), None, _keeper_key(tensor))


def retains_grad(tensor: TensorBase) -> bool:
    return _keeper_of(tensor) is not None


def _keeper_of(tensor: TensorBase) -> _Keeper | None:
    """What keeps the gradient of a tensor as it is now."""
    hooks = getattr(tensor._storage.writer, "hooks", None)
    keeper, _ = hooks.get(_keeper_key(tensor), (None, None)) if hooks else (None, None)
    return keeper if keeper is not None and keeper.tensor() is tensor else None


def _keeper_key(tensor: TensorBase) -> tuple[str, int]:
    return "retain_grad", id(tensor)
