"""Declaring operations: one line each, from which the rest follows.

    mul = elementwise("mul", np.multiply, x=lambda g, y: g * y, y=lambda g, x: g * x)
    exp = elementwise("exp", np.exp, x=lambda g, out: g * out)
    sin = elementwise("sin", np.sin, x=lambda xp, g, x: g * xp.cos(x))

Unbroadcasting, saving, promotion, in-place forms, `out=` and large arrays are nobody's job but this file's.

Each operation's function is generated from its declaration, as `dataclasses` generates `__init__`: one flat function
without keyword arguments or inner calls, because for small arrays the call path is all there is.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

from ..arrays import np, parallel as large
from ..arrays.bfloat16 import in_single, rounded, widened
from ..arrays.compiled.compiler import choice
from ..arrays.kinds import Refused, is_plain
from ..arrays.numpy import KNOWN, constant, silent, silently
from ..arrays.parallel import SLOW
from ..base.errors import BadArgument, BadValue, OutOfMemory
from ..base.modes import NOT_RECORDING, mode
from ..base.operands import Array
from ..base.provenance import OURS
from .evidence import compared
from .factory import CODEGEN_GLOBALS, back_in_order, in_order, make, view_of, window_as
from .graph import UNKNOWN_SHAPE, Adjoint, Leaf, Node, Writer, next_order, window_of
from .number import PLAIN, number
from .op import (
    ABOUT_TYPES,
    RAW,
    TABLE,
    VARIANTS,
    Op,
    Rule,
    define_later,
    forward_for,
    generated,
    parameters,
    register,
    same,
    variant,
)
from .promote import EXACT, SCALAR_OPERAND, call_reflected, dtype_error, promote, shape_error
from .storage import SMALL, Storage, TensorBase, keep, ndarray, save
from .window import Shape, descends, order_of, overlaps_itself
from .write import begin_write, end_write, into, new_node, save_all, save_out

# What the inputs are called in the generated functions: PyTorch's names, which people use as keywords. (The names in a
# declaration are what its rules call them.) That they are the same everywhere lets operations share their source.
ARGUMENTS = ("input", "other", "third", "fourth")


# A copy of a whole input: of a leaf that has not been written since it was last saved, the same copy.
_COPY_OF_LEAF = """
    {a}.copy() if writer{i}.__class__ is not Leaf
    else kept[2] if (kept := writer{i}.kept)[0] is {a}
        and kept[1] == (owner := {x}._storage).version and owner.ledger is None
    else keep(writer{i}, {x}._storage, {a})"""


def _saved_value(op: Op, slot: int, arrays: list[str], how: str, leaves: bool = False) -> str:
    """The expression for one slot of `node.saved`; `how` makes a safe value out of an array ("" for by reference)."""
    (kind, i), users = op.saves[slot], op.needed[slot]
    if kind == "setting":
        return op.settings[i]
    if kind == "shape":
        return f"{arrays[i]}.shape"
    array, tensor = (arrays[i], ARGUMENTS[i]) if kind == "input" else ("result", "made")
    text = f"{array}{how}" if how else f"save({tensor}, node, {slot})"
    if leaves and kind == "input":
        text = _COPY_OF_LEAF.format(a=array, i=i, x=tensor)
    if kind == "input" and op.promotes and len(op.inputs) > 1:
        text = f"{array} if {tensor} is SCALAR_OPERAND else{text if text[0].isspace() else ' ' + text}"
    if len(users) == len(op.inputs):
        return text
    return f"({text}) if {' or '.join(f'writer{u} is not None' for u in sorted(users))} else None"


def _save_code(op: Op, arrays: list[str]) -> str:
    """Return lines that set `node.saved`. Small values are copied: that is cheaper than keeping track of them."""
    def saved(how: str, leaves: bool = False) -> str:
        values = [_saved_value(op, slot, arrays, how, leaves) + "," for slot in range(len(op.saves))]
        if not values:
            return "node.saved = ()"
        return "\n".join(["node.saved = (", *(indent(value, "    ") for value in values), ")"])

    if not op.frees:
        return saved("")
    largest = "result" if op.promotes else arrays[0]  # no input of an elementwise operation is larger than its result
    saves_out = any(kind == "out" for kind, _ in op.saves)
    sizes = [largest] if op.promotes or len(arrays) == 1 and not saves_out else [*arrays, "result"]
    small = saved(".copy()")
    if op.promotes and any(kind == "input" for kind, _ in op.saves):
        small = _lines("if node.windows is None:", indent(saved(".copy()", True), "    "),
                       "else:", indent(small, "    "))
    return _lines(
        f"if {' and '.join(f'{a}.size <= SMALL' for a in sizes)}:",
        f"    if {' and '.join(f'{a}.ndim' for a in sizes)}:",
        indent(small, " " * 8),
        "    else:",
        indent(saved("[()]" if op.promotes else ".copy()"), " " * 8),
        "else:",
        "    node.saved = ()",  # a record of this node may be looked at before the values are in place
        indent(saved(""), "    "))


def indent(text: str, space: str) -> str:  # textwrap's would add a thirtieth to the time of importing this package
    return "\n".join(space + line for line in text.splitlines())


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _window_code(op: Op, arrays: list[str]) -> str:
    """Return lines that set `node.windows`."""
    names = ARGUMENTS[:len(op.inputs)]
    whole = [f"{x}._offset is None" for x in names]
    windows = [f"None if writer{i} is None or {x}._offset is None else window_of({x})," for i, x in enumerate(names)]
    elements = ""
    if op.promotes:  # elements of something, as in loops: no call for each
        element = ("None if writer{0} is None or {1}._offset is None\n"
                   "else {1}._offset if a{0}.dtype is writer{0}.whole[1] else window_of({1}),")
        parts = (indent(element.format(i, x), " " * 8) for i, x in enumerate(names))
        elements = _lines("elif not result.ndim:", "    node.windows = (", *parts, "    )")
    if op.promotes and len(names) > 1:  # inputs may have been broadcast
        whole += [f"({x} is SCALAR_OPERAND or {arrays[i]}.shape == {arrays[0]}.shape)"
                  for i, x in enumerate(names) if i]
        whole += [f"{names[0]} is not SCALAR_OPERAND"]
        windows = [f"None if writer{i} is None else window_as({x}, result.shape)," for i, x in enumerate(names)]
    return _lines(
        "if (" + "\n        and ".join(whole) + "):",
        "    node.windows = None",
        elements,
        "else:",
        "    node.windows = (",
        *(f"        {window}" for window in windows),
        "    )")


def _record_code(op: Op, arrays: list[str]) -> str:
    """Return lines that make the node of a result."""
    names = ARGUMENTS[:len(op.inputs)]
    return _lines(
        "    if not NOT_RECORDING or mode.now.recorded:",
        *(f"        writer{i} = {x}._storage.writer" for i, x in enumerate(names)),
        f"        if {' or '.join(f'writer{i} is not None' for i in range(len(names)))}:",
        "            try:",
        "                frame = getframe(1)",
        "            except ValueError:  # called by no Python at all, but by a program that embeds it",
        "                frame = getframe()",
        "            code = frame.f_code",
        "            while code.co_filename in OURS and frame.f_back is not None:",
        "                frame = frame.f_back",
        "                code = frame.f_code",
        f"            node = Node(({', '.join(f'writer{i}' for i in range(len(names)))},))",
        "            element_type = result.dtype",
        "            node.op = OP if element_type is FLOAT32 or element_type is FLOAT64 else variant(OP, element_type)",
        "            node.order = next_order()",
        "            node.code = code",
        "            node.at = frame.f_lasti",
        "            node.hooks = node.written = None",
        "            node.whole = UNKNOWN_SHAPE",
        indent(_window_code(op, arrays), " " * 12),
        indent(_save_code(op, arrays), " " * 12),
        "            storage.writer = node",
        "    elif mode.now.inference:",
        "        storage.inference = True")


def _unrecorded_code(op: Op) -> list[str]:
    """Return lines that note where history ends in an operation without derivative, such as a comparison."""
    return [*(f"    if {x}._storage.writer is not None: compared(OP.name, {x}._storage.writer)"
              for x in ARGUMENTS[:len(op.inputs)]),
            "    if NOT_RECORDING and mode.now.inference and not mode.now.recorded: storage.inference = True"]


# What gives truth values.
ASKS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isnan, np.isinf, np.isfinite,
        np.signbit, np.logical_and, np.logical_or, np.logical_xor, np.logical_not}
BOOL = np.dtype(bool)

# What NumPy computes far faster by operator than by ufunc where both sides are single elements, as in many loops.
_OPERATORS = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/"}


def _number_code(op: Op) -> list[str]:
    """Return lines that turn settings into plain numbers, by value: tensors among them may be written to later."""
    return [f"    if {s}.__class__ not in PLAIN: {s} = number({s})" for s in op.numbers]


def _forward_code(op: Op, given: str, typical: str, differentiable: bool, warns: bool) -> tuple[list[str], str]:
    """The expression for a result, and lines before it. What is not NumPy's own computes short floats in float32."""
    operator = _OPERATORS.get(op.forward)  # type: ignore[call-overload]
    if operator and differentiable:
        return [], f"forward({given}) if elements != 1 or a0.ndim or a1.ndim else a0[()] {operator} a1[()]"
    if op.into:
        return [], f"forward({given})"
    function = "forward" if op.name in ABOUT_TYPES else "compute"
    widening = [f"    element_type = {typical}.dtype",
                "    short = element_type is not FLOAT32 and element_type is not FLOAT64 "
                "and element_type.char in 'eE'",
                "    compute = in_single(forward, element_type) if short else forward"]
    expression = f"silent().run({function}, {given})" if warns else f"{function}({given})"
    return widening if function == "compute" else [], expression


def _size_code(op: Op, inputs: int) -> str:
    """When an operation goes the way for large arrays: for NumPy's own that is later, as they are one step."""
    given = ", ".join(f"a{i}" for i in range(inputs))
    size = (f"elements >= PLENTY and is_much(elements, {given})" if op.into and op.forward not in SLOW
            else "elements >= MIDDLE and is_worth(elements)")
    if inputs != 2:
        return size
    differ = "(a1.size != elements or elements >= 512 and a0.shape != a1.shape)"  # 512 * 512 are many
    return f"{size} or {differ} and a1.ndim and is_spread(a0, a1)"


def _call_code(op: Op, coerce: list[str], arrays: list[str], differentiable: bool, elementwise: bool,
               warns: bool) -> str:
    names = ARGUMENTS[:len(op.inputs)]
    arguments, given = ", ".join([*names, *op.settings]), ", ".join([*arrays, *op.settings])
    inputs, settings = f"({', '.join(names)},)", f"({''.join(s + ', ' for s in op.settings)})"
    widening, forward = _forward_code(op, given, arrays[-1] if elementwise else arrays[0], differentiable, warns)
    lines = [
        f"def call({arguments}{', *, out=None' if elementwise else ''}):",
        *_number_code(op),
        *(["    if out is not None:", f"        return into(OP, out, {inputs}, {settings})"]
          if elementwise else []),
        *coerce,
        *([f"    elements = {arrays[0]}.size", f"    if {_size_code(op, len(arrays))}:",
           f"        return large(OP, {inputs}, ({', '.join(arrays)},), {settings})"]
          if elementwise and (differentiable or op.into) else []),
        *widening,
        "    try:",
        f"        result = {forward}",
        "    except ValueError as error:",
        f"        raise shape_error(OP, ({', '.join(arrays)},), error) from None",
        "    except TypeError as error:",
        f"        raise dtype_error(OP, ({', '.join(arrays)},), error) from None",
        *(["    except FloatingPointError:",  # np.seterr(all="raise") is for the user's own arrays
           f"        result = silent().run(forward, {given})"] if op.into else []),
        "    except MemoryError as error:",
        "        raise no_memory(OP.name, error) from None",
        "    except Refused as refusal:",  # by another kind of array
        f"        result = silent().run(refusal.instead, forward_for(OP, {arrays[-1]}.dtype), {given})",
        "    if result.__class__ is not ndarray:",
        "        result = result.__array__()",  # NumPy's scalar as a 0-d array, at a third of the cost of np.array
        f"    elif result.ndim > 1 and not {_laid_out_code(arrays, elementwise)}:",
        f"        return in_their_order(OP, {inputs}, ({', '.join(arrays)},), {settings}, result)" if elementwise else
        "        result = contiguous(result)",
        "    made = new(Tensor)",
        "    storage = Storage()",
        "    made._array = storage.buffer = result",
        "    made._storage = storage",
        "    made._offset = made._grad = storage.writer = storage.ledger = storage.root = storage.leaf = None",
        "    storage.version = 0",
        *([_record_code(op, arrays)] if differentiable else _unrecorded_code(op)),
        "    return made",
    ]
    return "\n".join(lines) + "\n"


def _laid_out_code(arrays: list[str], elementwise: bool) -> str:
    """Return the condition for a result that stays in C order: NumPy gives that, too, where operands disagree."""
    if not elementwise or len(arrays) < 2:
        return "result.flags.c_contiguous"
    return f"(result.flags.c_contiguous and ({arrays[0]}.flags.c_contiguous or descends({arrays[0]}.strides)))"


def _coerce_code(op: Op, otherwise: str = "return call_reflected(OP, given, error)",
                 in_place: bool = False) -> list[str]:
    """Return lines that leave tensors (or SCALAR_OPERAND) in the inputs' names; in a0, a1, ... arrays of one type.

    `otherwise` is what to do about an operand that is neither: `x * obj` may be known to `obj.__rmul__`.
    """
    n = len(op.inputs)
    names = ARGUMENTS[:n]
    given = f"({', '.join(names)},)"
    promote = f"{', '.join(names)}, {', '.join(f'a{i}' for i in range(n))} = promote(OP, {given})"
    promoted = ["try:", f"    {promote}", "except BadArgument as error:", f"    {otherwise.replace('given', given)}"]
    floats = {"float": " or a0.dtype.kind != 'f'", "real": " or a0.dtype.kind == 'c'"}.get(op.promotes, "")
    if n == 1:
        test = f"if not isinstance({names[0]}, Tensor){floats.replace('a0', names[0] + '._array')}:"
        return [f"    {test}", *(f"        {line}" for line in promoted),
                "    else:", f"        a0 = {names[0]}._array"]
    if n == 2:
        x, y = names
        checked = f"if a0.dtype is not a1.dtype{floats}:"
        return [
            f"    if ({x}.__class__ is Tensor and {y}.__class__ is Tensor",
            f"            or isinstance({x}, Tensor) and isinstance({y}, Tensor)):",
            f"        a0 = {x}._array",
            f"        a1 = {y}._array",
            f"        {checked}",
            f"            {promote}",
            f"    elif ({y}.__class__ in (float, int) and isinstance({x}, Tensor)",
            f"            and {x}._array.dtype.char in 'fd'):",
            f"        a0 = {x}._array",
            f"        a1 = KNOWN[a0.itemsize].get({y})",
            "        if a1 is None:",
            f"            a1 = constant({y}, a0.dtype)",
            f"        {y} = SCALAR_OPERAND",
            f"    elif ({x}.__class__ in (float, int) and isinstance({y}, Tensor)",
            f"            and {y}._array.dtype.char in 'fd'):",
            f"        a1 = {y}._array",
            f"        a0 = KNOWN[a1.itemsize].get({x})",
            "        if a0 is None:",
            f"            a0 = constant({x}, a1.dtype)",
            f"        {x} = SCALAR_OPERAND",
            "    else:",
            *(f"        {line}" for line in promoted),
            *([] if in_place or op.forward not in EXACT else [  # a number that a short type does not hold
                "        if a0.dtype is not a1.dtype:", f"            return large(OP, {given[:-2]}), (a0, a1), ())"]),
        ]
    return [f"    {line}" for line in promoted]


def elementwise(name: str, forward: Callable[..., Any], *, promotes: str = "any", settings: Sequence[str] = (),
                inputs: Sequence[str] | None = None, warns: bool = True, **rules: Rule | None) -> Any:
    """Declare an operation on corresponding elements; inputs broadcast and promote.

    `promotes`: "any" keeps integers, "float" turns them into the default float type, "mask" leaves the first input
    out, "real" refuses complex numbers (which have no order, though NumPy gives them one).
    Without rules the result has no derivative (comparisons, integer operations). `warns` is False for a forward of our
    own that never makes NumPy warn, and need not be silenced.
    """
    names = tuple(inputs or rules)
    op = Op(name, forward, names, settings, rules, promotes, into=isinstance(forward, np.ufunc))
    op.numbers = op.settings
    differentiable = bool(rules)
    if any(rule is not None for rule in rules.values()):
        op.declared = True
    return _function(op, _coerce_code(op), [f"a{i}" for i in range(len(names))], differentiable, True, warns)


_LOCALS = {"OP", "forward", "made", "storage", "result", "node", "frame", "code", "element_type", "short", "kept",
           "owner", "elements", "compute"}


def primitive(name: str, forward: Callable[..., Any], *, settings: Sequence[str] = (), numbers: Sequence[str] = (),
              inputs: Sequence[str] | None = None, warns: bool = True, **rules: Rule | None) -> Any:
    """Declare any other operation: inputs are tensors of the right types, settings follow by position.

    `numbers` are those among the settings that are the user's numbers, as all settings of an elementwise operation are.
    """
    names = tuple(inputs or rules)
    taken = set(settings) & (_LOCALS | CODEGEN_GLOBALS.keys())
    assert not taken, f"{name}: the generated function needs the names {taken} for itself"
    op = Op(name, forward, names, settings, rules)
    op.numbers = tuple(numbers)
    if any(rule is not None for rule in rules.values()):
        op.declared = True
    arrays = [f"{x}._array" for x in ARGUMENTS[:len(names)]]
    return _function(op, [], arrays, bool(rules), False, warns)


def _function(op: Op, coerce: list[str], arrays: list[str], differentiable: bool, elementwise: bool,
              warns: bool) -> Any:
    arguments = [*ARGUMENTS[:len(op.inputs)], *op.settings]
    function = define_later(lambda: _call_code(op, coerce, arrays, differentiable, elementwise, warns),
                            op.name, arguments, elementwise, OP=op, forward=op.forward)
    function.__module__, function.op = "mutagrad", op
    op.function = function
    return register(op, op.forward, function)


def in_place(function: Any) -> Any:
    """Return the form of an elementwise operation that writes into its first argument: `add_` of `add`.

    Where the operation is NumPy's own and nothing needs casting or broadcasting, it computes into the memory directly.
    """
    op = function.op
    closure = {"OP": op, "forward": op.forward} if _is_direct(op) else {"OP": op}
    arguments = [*ARGUMENTS[:len(op.inputs)], *op.settings]
    written = define_later(lambda: _in_place_code(op), op.name + "_", arguments, False, **closure)
    written.__module__ = "mutagrad"
    return written


def _is_direct(op: Op) -> bool:
    return op.into and len(op.inputs) < 3 and bool(op.rules)


# That every element of the window has memory of its own, so that it can be written.
_ONE_EACH = ("(target._offset is None or a0.flags.c_contiguous\n"
             "                     or not overlaps_itself(a0.shape, a0.strides, a0.itemsize))")


def _in_place_code(op: Op) -> str:
    names = ARGUMENTS[:len(op.inputs)]
    inputs, settings = ", ".join(names), "".join(f"{s}, " for s in op.settings)
    head = f"def call({', '.join([*names, *op.settings])}):"
    if not _is_direct(op):
        return "\n".join([head, *_number_code(op), f"    return into(OP, input, ({inputs},), ({settings}))"]) + "\n"
    arrays = [f"a{i}" for i in range(len(names))]
    fits = "\n                and ".join([
        "a0 is target._array", "(a0.dtype.char in 'fd' or a0.dtype.kind == 'f' and a0.size < PLENTY)", _ONE_EACH,
        *(f"({x} is SCALAR_OPERAND or not a{i}.ndim or a{i}.shape == a0.shape)" for i, x in enumerate(names) if i)])
    return "\n".join([
        head, "    target = input", f"    given = ({inputs},)", "    if isinstance(target, Tensor):",
        *(f"    {line}" for line in _coerce_code(op, "raise", True)),
        f"        if ({fits}):",
        f"            node = begin_write(OP, target, ({inputs},), ({', '.join(arrays)},), ())",
        "            try:",
        f"                if a0.size < PLENTY or not silent().run(apply, forward, ({', '.join(arrays)},), (), a0):",
        f"                    silent().run(forward, {', '.join(arrays)}, out=a0)",
        "            except MemoryError as error:",
        "                raise no_memory(OP.name, error) from None",
        "            return end_write(target, node)",
        f"    return into(OP, target, given, ({settings}))"]) + "\n"


def _conjugated(op: Op) -> Op:
    """The same for complex results: PyTorch's gradient is the conjugate of the derivative, g * conj(f'(x))."""
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    holomorphic = op.reverse

    def reverse(xp: SimpleNamespace, g: Adjoint, s: Sequence[Any], i: Sequence[Writer | None]) -> tuple[Any, ...]:
        found = holomorphic(xp, xp.conj(g), s, i)
        return tuple(gx if gx is None or not xp.is_complex(gx) else xp.conj(gx) for gx in found)

    other.reverse = reverse
    return other


def _widened(op: Op) -> Op:
    """The same for floats of two bytes: rules compute in float32, and what they give is rounded once.

    (On tensors, operations do that.)
    """
    if op.name in ABOUT_TYPES or op.rules and all(rule is same or rule is None for rule in op.rules.values()):
        return op  # nothing is computed of the adjoint
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    single = op.reverse

    def reverse(xp: SimpleNamespace, g: Adjoint, s: Sequence[Any], i: Sequence[Writer | None]) -> tuple[Any, ...]:
        if xp is not RAW:
            return single(xp, g, s, i)  # type: ignore[no-any-return]
        if op.promotes and g.size >= large.LARGE and (
                found := large.reverse(single, xp, g, s, i)) is not None:  # type: ignore[arg-type]
            return tuple(found)
        grads = single(xp, widened(g), [widened(v) for v in s], i)
        return tuple(None if gx is None else rounded(gx, g.dtype) for gx in grads)

    other.reverse = reverse
    return other


# --------------------------------------------------------------------------------------------------------- large arrays

def _is_spread(a: Array, b: Array) -> bool:
    """Whether two arrays of different shapes have a large result."""
    if a.size * b.size < large.LARGE:
        return False
    try:
        return prod(np.broadcast_shapes(a.shape, b.shape)) >= large.LARGE
    except ValueError:  # they have none
        return False


def _large(op: Op, tensors: tuple[TensorBase, ...], arrays: tuple[Array, ...], settings: tuple[Any, ...]) -> Any:
    """The same as the generated code for arrays that are worth splitting."""
    about = None
    if not settings and is_plain(*arrays):
        about = op.forward, *[(a.dtype, a.shape, a.strides) for a in arrays]
    known = _plans.get(about)
    try:
        if known is not None and (out := large.again(known[0], arrays, *known[1:])) is not None:
            return _finished(op, tensors, arrays, settings, out, None)
        shape = arrays[0].shape
        if any(a.shape != shape for a in arrays):
            shape = np.broadcast_shapes(*(a.shape for a in arrays))
        order = order_of(shape, *arrays) if is_plain(*arrays) else None
        if order is not None:
            tensors, arrays, shape = *_permuted(tensors, arrays, order), tuple([shape[d] for d in order])
        # Whether one operand is a number that a short type does not hold.
        wide = op.forward in EXACT and arrays[0].dtype is not arrays[1].dtype
        kind = arrays[tensors[0] is SCALAR_OPERAND if wide else -1].dtype
        forward = in_single(op.forward, kind) if wide else forward_for(op, kind)
        result_kind = BOOL if op.forward in ASKS else kind
        out = silently(large.evaluate, forward, arrays, settings, shape, result_kind)
        if about and order is None and not wide and (plan := large.plan_of(forward, arrays, out)) is not None:
            if len(_plans) >= 4096:
                _plans.clear()
            _plans[about] = plan, shape, result_kind
    except ValueError as error:
        raise shape_error(op, arrays, error) from None
    except TypeError as error:
        raise dtype_error(op, arrays, error) from None
    except MemoryError as error:
        raise OutOfMemory.found_by(op.name, error) from None
    return _finished(op, tensors, arrays, settings, out, order)


# How operations on large arrays of certain types and layouts are computed, and the shape and type of what they give.
_plans: dict[Any, tuple[Any, Shape, Any]] = {}


def _in_their_order(op: Op, tensors: tuple[TensorBase, ...], arrays: tuple[Array, ...], settings: tuple[Any, ...],
                    result: Array) -> Any:
    """The tensor for a result that is to lie in memory as its operands do, not in C order."""
    if not is_plain(result):
        return _finished(op, tensors, arrays, settings, result, None)
    order = order_of(result.shape, *arrays)
    if order is None:
        return _finished(op, tensors, arrays, settings, np.ascontiguousarray(result), None)
    if mode.grad and op.rules:
        tensors, arrays = _permuted(tensors, arrays, order)
    return _finished(op, tensors, arrays, settings, np.ascontiguousarray(result.transpose(order)), order)


def _permuted(tensors: tuple[TensorBase, ...], arrays: tuple[Array, ...],
              order: Shape) -> tuple[tuple[TensorBase, ...], tuple[Array, ...]]:
    """Operands with their dimensions in another order, once they have as many."""
    n = len(order)
    arrays = tuple([a.reshape((1,) * (n - a.ndim) + a.shape).transpose(order) if a.ndim else a for a in arrays])
    return tuple([view_of(t, a, t._offset or 0) if a.ndim else t for t, a in zip(tensors, arrays)]), arrays


def _finished(op: Op, tensors: tuple[TensorBase, ...], arrays: tuple[Array, ...], settings: tuple[Any, ...],
              out: Array, order: Shape | None) -> Any:
    """The tensor for a result, with its node; where its dimensions are in another order, a permuted view of one."""
    result, writers = make(out), [t._storage.writer for t in tensors]
    if not op.rules:
        for writer in writers:
            if writer is not None:
                compared(op.name, writer)
    elif mode.grad and writers.count(None) < len(writers):
        windows = tuple([None if w is None else window_as(t, out.shape) for t, w in zip(tensors, writers)])
        chosen = op.threaded if out.dtype.char in "fd" and arrays[-1].dtype.kind != "c" else variant(op, out.dtype)
        node = new_node(chosen, writers, None if windows.count(None) == len(windows) else windows)
        if op.saves:
            node.saved = save_all(op, node, tensors, arrays, settings)
        result._storage.writer = node
        save_out(node, result)
    return result if order is None else back_in_order(result, order)


# Rules that are one operation, known by their compiled form: for large arrays it can write its result into place.
_ONE_STEP = {rule.__code__.co_code: ufunc for rule, ufunc in
             ((lambda g, y: g * y, np.multiply), (lambda g, y: g / y, np.true_divide), (lambda g: -g, np.negative))}


def _threaded(op: Op) -> Op:
    """The same with rules that run on several threads, for large arrays."""
    rules = [op.rules.get(name) for name in op.inputs]
    if not op.promotes or all(rule is same or rule is None for rule in rules):
        return op
    steps = [None if rule is None else (_ONE_STEP.get(rule.__code__.co_code),
                                        [op.saves.index(op.source(p)) for p in parameters(rule)[1:]])
             if parameters(rule)[0] == "g" else None for rule in rules]
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    whole, compute_all = op.reverse, same not in rules

    def reverse(xp: SimpleNamespace, g: Any, s: Sequence[Any], i: Sequence[Writer | None]) -> Any:
        if xp is not RAW or g.size < large.MIDDLE or not large.is_worth(g.size):
            return whole(xp, g, s, i)
        if compute_all and choice.on:
            threaded = large.reverse(whole, xp, g, s, i)
            return whole(xp, g, s, i) if threaded is None else threaded
        grads: list[Any] = [None] * len(rules)
        rest: list[Writer | None] = [None] * len(rules)
        for k, step in enumerate(steps):
            if i[k] is not None:
                if rules[k] is same:
                    grads[k] = g
                elif (step is None or step[0] is None or choice.on
                        or (found := large.compute(step[0], (g, *(s[slot] for slot in step[1])))) is None):
                    rest[k] = i[k]
                else:
                    grads[k] = found
        if any(k is not None for k in rest):
            threaded = large.reverse(whole, xp, g, s, rest)
            others = whole(xp, g, s, rest) if threaded is None else threaded
            grads = [a if b is None else b for a, b in zip(grads, others)]
        return grads

    other.reverse = reverse
    return other


VARIANTS.update(conjugate=_conjugated, threaded=_threaded, widened=_widened)


# ---------------------------------------------------------------------------------------- what the generated code names

# NumPy warns of inf and nan in the name of the function that calls it. Those that are generated have no module's name,
# and what has none does not warn: the interpreter asks no filter, and none has to be installed in the user's program.
CODEGEN_GLOBALS.update(
    BadArgument=BadArgument, FLOAT32=np.dtype("float32"), FLOAT64=np.dtype("float64"), KNOWN=KNOWN, LARGE=large.LARGE,
    MIDDLE=large.MIDDLE, PLENTY=large.PLENTY, Leaf=Leaf, SCALAR_OPERAND=SCALAR_OPERAND, Refused=Refused,
    forward_for=forward_for, NOT_RECORDING=NOT_RECORDING,
    Node=Node, OURS=OURS, PLAIN=PLAIN, apply=large.apply, SMALL=SMALL, Storage=Storage,
    UNKNOWN_SHAPE=UNKNOWN_SHAPE, __name__=None, call_reflected=call_reflected, compared=compared,
    begin_write=begin_write, constant=constant, contiguous=in_order, dtype_error=dtype_error, end_write=end_write,
    getframe=sys._getframe, in_single=in_single, into=into, is_much=large.is_much, is_worth=large.is_worth,
    is_spread=_is_spread, keep=keep, in_their_order=_in_their_order, descends=descends,
    large=_large, mode=mode, ndarray=ndarray,
    new=object.__new__, next_order=next_order, no_memory=OutOfMemory.found_by, number=number,
    overlaps_itself=overlaps_itself, promote=promote, save=save, shape_error=shape_error, silent=silent,
    variant=variant, window_as=window_as, window_of=window_of)


def source(name: str) -> str:
    """Return what an operation's declaration has become: `print(source("mul"))`, or `source("mul_")` in place."""
    op = TABLE.get(name.removesuffix("_")) or TABLE.get(name)
    if op is None:
        raise BadValue(f"source: there is no operation {name!r}, or its module is not loaded yet", fix='source("mul")')
    return generated(op, name).replace("def call(", f"def {name}(", 1)
