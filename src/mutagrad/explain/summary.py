"""`mutagrad.summary(model, x)`: the layers of a model, with shapes, parameters, bytes and multiply-adds.

>>> import mutagrad as mg
>>> print(mg.summary(mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.ReLU()), mg.ones(2, 3)))
layer        output  parameters  bytes  multiply-adds
-----------------------------------------------------
Sequential   (2, 4)           -      -              -
  0: Linear  (2, 4)          16   64 B             24
  1: ReLU    (2, 4)           -      -              -
<BLANKLINE>
input: (2, 3)
parameters: 16, all trainable (64 B)
outputs of layers: 64 B
multiply-adds of known layers: 24
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from ..autograd import no_grad
from ..base.errors import BadArgument, BadValue
from ..base.pytree import tree_leaves
from ..core.dtypes import dtype as ElementType
from ..nn.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ..nn.parameter import is_lazy
from ..ops.create.create import ones
from ..ops.random.generator import fork_rng
from ..tensors.tensor import Tensor
from .module_paths import on_this_thread
from .multiply_adds import multiply_adds
from .table import bytes_text, html_table, text_table


@dataclass(eq=False)
class Layer:
    """A module as it was called by another: how often, what it returned, what it has and what it computed itself."""

    name: str
    kind: str
    depth: int
    calls: int = 0
    outputs: list[str] = field(default_factory=list)
    output_bytes: int = 0
    parameters: int = 0
    trainable: int = 0
    buffers: int = 0
    bytes: int = 0
    multiply_adds: int = 0
    shared: bool = False
    label: str = ""  # the name, without that of the layer around it
    children: dict[Module, Layer] = field(default_factory=dict, repr=False)

    def hold(self, value: Tensor, is_buffer: bool) -> None:
        """Count a parameter or buffer as its own."""
        if is_buffer:
            self.buffers += value.numel()
        else:
            self.parameters += value.numel()
            self.trainable += value.numel() if value.requires_grad else 0
        self.bytes += value.nbytes


def summary(model: Module, *args: Any, input_size: Sequence[Any] | None = None, input_data: Any = None,
            dtype: ElementType | None = None, depth: int | None = None, **settings: Any) -> Summary:
    """Return the table of a model's layers: print it, let a notebook show it, or read `.layers` and the totals.

    The model is run once, with these arguments (one tuple or list of tensors is taken apart; a dict as `input_data` is
    keyword arguments); or with ones of a given `input_size`, such as (1, 3, 32, 32), or several such, of a `dtype`. It
    runs in eval mode and no_grad, and is afterwards as it was: flags, buffers, attributes, random numbers. Without
    input there are no shapes.
    `depth` is that of the modules to show; what is deeper counts for the one around it.

    >>> import mutagrad as mg
    >>> print(mg.summary(mg.nn.Linear(3, 2), mg.ones(1, 3)))
    layer   output  parameters  bytes  multiply-adds
    ------------------------------------------------
    Linear  (1, 2)           8   32 B              6
    <BLANKLINE>
    input: (1, 3)
    parameters: 8, all trainable (32 B)
    outputs of layers: 8 B
    multiply-adds of known layers: 6
    """
    if not isinstance(model, Module):
        raise BadArgument(f"summary: expected a module, not {type(model).__name__}", fix="summary(model, x)")
    if isinstance(input_data, Mapping):
        settings = {**input_data, **settings}
    elif input_data is not None:
        args = (*args, input_data)
    inputs = _inputs(model, args, input_size, dtype)
    run = _Run(model)
    if inputs or settings:
        run.call(inputs, settings)
    else:
        run.list_modules()
    run.count_parameters()
    return Summary(run, depth, _given(inputs, settings))


# -------------------------------------------------------------------------------------------------------------- input

def _inputs(model: Module, given: tuple[Any, ...], size: Sequence[Any] | None,
            dtype: ElementType | None) -> tuple[Any, ...]:
    """Return what to call the model with."""
    if size is not None:
        return (*_of_size(model, size, dtype), *given)
    if len(given) == 1 and _is_size(given[0]):
        return tuple(_of_size(model, given[0], dtype))
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def _is_size(value: Any) -> bool:
    """Whether this is a shape, or several."""
    if not isinstance(value, (tuple, list)) or not value:
        return False
    return all(type(n) is int for n in value) or all(_is_size(one) for one in value)


def _of_size(model: Module, size: Sequence[Any], dtype: ElementType | None) -> list[Tensor]:
    if not _is_size(size):
        raise BadValue(f"summary: input_size must be a shape or a list of shapes, not {size!r}",
                       fix="input_size=(1, 3, 32, 32)")
    like = next((p for p in model.parameters() if not is_lazy(p) and p.is_floating_point()), None)
    dtype = dtype or (like.dtype if like is not None else None)
    device = like.device if like is not None else None
    return [ones(tuple(one), dtype=dtype, device=device) for one in (size if _is_size(size[0]) else [size])]


def shapes_text(value: Any) -> str:
    """Return the shapes of the tensors in a value, laid out as they are in it.

    >>> import mutagrad as mg
    >>> shapes_text((mg.ones(2), {"a": mg.ones(3, 1)}))
    '(2,), [a: (3, 1)]'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_one_shape(one)}" for key, one in value.items())
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_one_shape, value))
    return _one_shape(value)


def _given(inputs: tuple[Any, ...], settings: dict[str, Any]) -> str:
    return ", ".join(filter(None, [shapes_text(inputs), shapes_text(settings)]))


def _one_shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    if isinstance(value, (Mapping, tuple, list)):
        return f"[{shapes_text(value)}]"
    return "None" if value is None else type(value).__name__


# ---------------------------------------------------------------------------------------------------------------- run

class _Run:
    """One call of a model, in which layers are noted; the model is afterwards as it was."""

    def __init__(self, model: Module) -> None:
        self.model = model
        self.names = {module: name for name, module in model.named_modules()}
        self.root = Layer("", type(model).__name__, 0)
        self.first: dict[Module, Layer] = {model: self.root}
        self.open: list[_Open] = []
        self.failed: _Open | None = None

    def call(self, inputs: tuple[Any, ...], settings: dict[str, Any]) -> None:
        with ExitStack() as stack:
            stack.callback(_restore, [_State(module) for module in self.names])
            stack.enter_context(fork_rng())
            stack.enter_context(no_grad())
            stack.enter_context(register_module_forward_pre_hook(on_this_thread(self._enter)))
            stack.enter_context(register_module_forward_hook(on_this_thread(self._note), with_kwargs=True))
            stack.enter_context(register_module_forward_hook(on_this_thread(self._leave), always_call=True))
            self.model.eval()
            try:
                self.model(*inputs, **settings)
            except Exception as error:
                raise self._failure(error, _given(inputs, settings)) from error

    def _failure(self, error: Exception, given: str) -> BadValue:
        """The error to raise: at which layer, what that was called with, and what came before."""
        done = [layer for layer in _flattened(self.root) if layer.outputs]
        before = f"{_title(done[-1])} had returned {done[-1].outputs[-1]}" if done else "no layer had returned"
        failed = self.failed
        where = f"{_title(failed.layer)}, called with {failed.given}," if failed is not None else "the model"
        return BadValue(f"summary: {where} failed: {getattr(error, 'what', error)}",
                        why=f"the model was called with {given or 'nothing'}; before, {before}",
                        fix="give what its forward takes: summary(model, x), summary(model, input_size=(1, 3, 32, 32))")

    def _enter(self, module: Module, inputs: Any) -> None:
        layer = self._child_of(self.open[-1].layer, module) if self.open else self.root
        layer.calls += 1
        self.open.append(_Open(layer, shapes_text(inputs) or "nothing"))

    def _child_of(self, around: Layer, module: Module) -> Layer:
        if module not in around.children:
            name = self.names.get(module, "")
            label = name.removeprefix(f"{around.name}.") if around.name else name
            made = Layer(name, type(module).__name__, around.depth + 1, shared=module in self.first, label=label)
            around.children[module] = made
            self.first.setdefault(module, made)
        return around.children[module]

    def _note(self, module: Module, inputs: tuple[Any, ...], settings: dict[str, Any], output: Any) -> None:
        """Note what a call has returned. If one inside has failed, somebody has caught its error."""
        layer, text = self.open[-1].layer, shapes_text(output)
        self.open[-1].returned, self.failed = True, None
        layer.outputs += [text] if text not in layer.outputs else []
        layer.output_bytes += sum(t.nbytes for t in tree_leaves(output) if isinstance(t, Tensor))
        layer.multiply_adds += multiply_adds(module, inputs, settings, output)

    def _leave(self, module: Module, inputs: Any, output: Any) -> None:
        """End a call, also one that has raised an error: the innermost of those is the one that failed."""
        call = self.open.pop()
        if not call.returned and self.failed is None:
            self.failed = call

    def list_modules(self) -> None:
        """Note all modules without calling any."""
        for module, name in list(self.names.items())[1:]:
            self._child_of(self.first[self.model.get_submodule(name.rpartition(".")[0])], module)

    def count_parameters(self) -> None:
        """Count each parameter and buffer once, for the module that has it or the nearest around it that was called."""
        seen: set[int] = set()
        for module, name in self.names.items():
            around = module
            while around not in self.first:
                name = name.rpartition(".")[0]
                around = self.model.get_submodule(name)
            for value, is_buffer in [*((p, False) for p in module.parameters(recurse=False)),
                                     *((b, True) for b in module.buffers(recurse=False))]:
                if id(value) not in seen and not is_lazy(value):
                    seen.add(id(value))
                    self.first[around].hold(value, is_buffer)

    def not_called(self) -> list[str]:
        """Modules with parameters that were never called."""
        return [name for module, name in self.names.items()
                if module not in self.first and any(True for _ in module.parameters(recurse=False))]


@dataclass
class _Open:
    """A call that is going on, and what it was given."""

    layer: Layer
    given: str
    returned: bool = False


class _State:
    """What a module is like before it is run: its attributes and the values of its buffers."""

    def __init__(self, module: Module) -> None:
        self.module, self.attributes = module, dict(module.__dict__)
        self.lazy = any(is_lazy(p) for p in module.parameters(recurse=False))
        self.table = dict(module._buffers)
        self.buffers = [(b, b._version, b.detach().clone()) for b in module.buffers(recurse=False) if not is_lazy(b)]

    def restore(self) -> None:
        if self.lazy:  # it has its shapes now, and stays so
            self.module.training = self.attributes["training"]
            return
        self.module.__dict__.clear()
        self.module.__dict__.update(self.attributes)
        self.module._buffers.clear()
        self.module._buffers.update(self.table)
        with no_grad():
            for buffer, version, value in self.buffers:
                if buffer._version != version:
                    buffer.copy_(value)


def _restore(states: list[_State]) -> None:
    for state in states:
        state.restore()


# -------------------------------------------------------------------------------------------------------------- table

def _flattened(layer: Layer) -> list[Layer]:
    """Return a layer and all inside it, in the order of their first calls."""
    found, waiting = [], [layer]
    while waiting:
        found.append(waiting.pop())
        waiting += reversed(found[-1].children.values())
    return found


def _title(layer: Layer) -> str:
    return f"{layer.name} ({layer.kind})" if layer.name else layer.kind


def _folded(layer: Layer, depth: int) -> Layer:
    """Return the layer without what is deeper, which counts for the last ones that are shown."""
    if layer.depth < depth:
        return replace(layer, children={module: _folded(child, depth) for module, child in layer.children.items()})
    inside = _flattened(layer)
    sums = {name: sum(getattr(one, name) for one in inside) for name in _COUNTS}
    return replace(layer, children={}, **sums)


_COUNTS = ("parameters", "trainable", "buffers", "bytes", "multiply_adds")


class Summary:
    """The layers of a model as a table, and totals: `print` it, or read `layers`, `parameters`, `trainable` ..."""

    def __init__(self, run: _Run, depth: int | None, given: str) -> None:
        every = _flattened(run.root)
        self.given = given
        self.layers = every if depth is None else _flattened(_folded(run.root, depth))
        self.parameters = sum(layer.parameters for layer in every)
        self.trainable = sum(layer.trainable for layer in every)
        self.buffers = sum(layer.buffers for layer in every)
        self.bytes = sum(layer.bytes for layer in every)
        self.output_bytes = sum(layer.output_bytes for layer in every if not layer.children)
        self.multiply_adds = sum(layer.multiply_adds for layer in every)
        self.not_called = run.not_called() if given else []

    @property
    def frozen(self) -> int:
        return self.parameters - self.trainable

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads of the columns, and the rows."""
        columns: dict[str, Callable[[Layer], str]] = {"layer": _row_title}
        if self.given:
            columns["output"] = _outputs
        columns["parameters"] = lambda layer: _number(layer.parameters)
        if self.frozen:
            columns["frozen"] = lambda layer: _number(layer.parameters - layer.trainable)
        columns["bytes"] = lambda layer: bytes_text(layer.bytes) if layer.bytes else "-"
        if self.given:
            columns["multiply-adds"] = lambda layer: _number(layer.multiply_adds)
        return list(columns), [[write(layer) for write in columns.values()] for layer in self.layers]

    def totals(self) -> list[str]:
        """Return the lines below the table."""
        which = ("all trainable" if not self.frozen else "none trainable" if not self.trainable else
                 f"{self.trainable:,} trainable, {self.frozen:,} frozen")
        buffers = f" and {self.buffers:,} in buffers" if self.buffers else ""
        lines = [f"input: {self.given}"] if self.given else []
        lines.append(f"parameters: {self.parameters:,}, {which}{buffers} ({bytes_text(self.bytes)})"
                     if self.parameters else f"parameters: none{buffers}")
        if self.given:
            lines += [f"outputs of layers: {bytes_text(self.output_bytes)}",
                      f"multiply-adds of known layers: {self.multiply_adds:,}"]
        if self.not_called:
            more = f" and {len(self.not_called) - 5} more" if len(self.not_called) > 5 else ""
            lines.append(f"not called themselves: {', '.join(self.not_called[:5])}{more}")
        return lines

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table()), "", *self.totals()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        totals = "".join(f"<div>{escape(line)}</div>" for line in self.totals())
        return html_table(*self.table()) + f'<div style="font: 12px system-ui; padding: 6px 10px">{totals}</div>'


def _number(count: int) -> str:
    return f"{count:,}" if count else "-"


def _row_title(layer: Layer) -> str:
    title = f"{layer.label}: {layer.kind}" if layer.label else layer.kind
    again = f" ×{layer.calls}" if layer.calls > 1 else ""
    return "  " * layer.depth + title + again + (" (shared)" if layer.shared else "")


def _outputs(layer: Layer) -> str:
    texts = layer.outputs
    text = texts[0] + (f" and {len(texts) - 1} more" if len(texts) > 1 else "") if texts else "-"
    return text if len(text) <= 60 else f"{text[:59]}…"
