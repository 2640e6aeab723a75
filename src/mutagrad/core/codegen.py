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
from typing import Any

from ..arrays import np, parallel as large
from ..arrays.bfloat16 import in_single, rounded, widened
from ..arrays.numpy import KNOWN, constant, silent, silently
from ..base.errors import BadArgument, OutOfMemory
from ..base.modes import NOT_RECORDING, mode
from ..base.provenance import OURS
from .factory import SCOPE, make, window_as
from .graph import UNSEEN, Leaf, Node, next_order, window_of
from .number import PLAIN, number
from .op import ABOUT_TYPES, RAW, VARIANTS, Op, Rule, define_later, forward_for, parameters, register, same, variant
from .promote import EXACT, NOTHING, answered, dtype_error, promote, shape_error
from .storage import SMALL, Storage, keep, ndarray, save
from .write import begin_write, end_write, into, new_node, save_all, save_out

# What the inputs are called in the generated functions: PyTorch's names, which people use as keywords. (The names in a
# declaration are what its rules call them.) That they are the same everywhere is what lets operations share their source.
ARGUMENTS = ("input", "other", "third", "fourth")


# A copy of a whole input: of a leaf that has not been written since it was last saved, the same copy.
_COPY_OF_LEAF = ("{a}.copy() if w{i}.__class__ is not Leaf else k[2] if (k := w{i}.kept)[0] is {a} and k[1] == (l := {x}._storage).version"
                 " and l.ledger is None else keep(w{i}, {x}._storage, {a})")


def _saved_value(op: Op, slot: int, arrays: list[str], how: str, leaves: bool = False) -> str:
    """The expression for one slot of `node.saved`; `how` makes a safe value out of an array ("" for by reference)."""
    (kind, i), users = op.saves[slot], op.needed[slot]
    if kind == "setting":
        return op.settings[i]
    if kind == "shape":
        return f"{arrays[i]}.shape"
    array, tensor = (arrays[i], ARGUMENTS[i]) if kind == "input" else ("r", "t")
    text = f"{array}{how}" if how else f"save({tensor}, n, {slot})"
    if leaves and kind == "input":
        text = _COPY_OF_LEAF.format(a=array, i=i, x=tensor)
    if kind == "input" and op.promotes and len(op.inputs) > 1:
        text = f"{array} if {tensor} is NOTHING else {text}"
    return text if len(users) == len(op.inputs) else f"({text}) if {' or '.join(f'w{u} is not None' for u in sorted(users))} else None"


def _save_code(op: Op, arrays: list[str]) -> list[str]:
    """Lines that set `node.saved`. Small values are copied: that is cheaper than keeping track of them."""
    def line(how: str, leaves: bool = False) -> str:
        return f"n.saved = ({''.join(_saved_value(op, slot, arrays, how, leaves) + ', ' for slot in range(len(op.saves)))})"

    if not op.frees:
        return [f"            {line('')}"]
    largest = "r" if op.promotes else arrays[0]  # no input of an elementwise operation is larger than its result
    sizes = [largest] if op.promotes or len(arrays) == 1 and not any(kind == "out" for kind, _ in op.saves) else [*arrays, "r"]
    return [
        f"            if {' and '.join(f'{a}.size <= SMALL' for a in sizes)}:",
        f"                if {' and '.join(f'{a}.ndim' for a in sizes)}:",
        *([f"                    if n.windows is None: {line('.copy()', True)}",
           f"                    else: {line('.copy()')}"] if op.promotes and any(kind == "input" for kind, _ in op.saves)
          else [f"                    {line('.copy()')}"]),
        "                else:",
        f"                    {line('[()]' if op.promotes else '.copy()')}",
        "            else:",
        "                n.saved = ()",  # a record of this node may be looked at before the values are in place
        f"                {line('')}",
    ]


def _window_code(op: Op, arrays: list[str]) -> list[str]:
    """Lines that set `node.windows`."""
    names = ARGUMENTS[:len(op.inputs)]
    whole = [f"{x}._offset is None" for x in names]
    windows = [f"None if w{i} is None or {x}._offset is None else window_of({x})" for i, x in enumerate(names)]
    elements = []
    if op.promotes:
        element = "None if w{0} is None or {1}._offset is None else {1}._offset if a{0}.dtype is w{0}.whole[1] else window_of({1})"
        elements = ["            elif not r.ndim:",  # elements of something, as in loops: no call for each
                    f"                n.windows = ({', '.join(element.format(i, x) for i, x in enumerate(names))},)"]
    if op.promotes and len(names) > 1:  # inputs may have been broadcast
        whole += [f"({x} is NOTHING or {arrays[i]}.shape == {arrays[0]}.shape)" for i, x in enumerate(names) if i]
        whole += [f"{names[0]} is not NOTHING"]
        windows = [f"None if w{i} is None else window_as({x}, r.shape)" for i, x in enumerate(names)]
    return [
        f"            if {' and '.join(whole)}:",
        "                n.windows = None",
        *elements,
        "            else:",
        f"                n.windows = ({', '.join(windows)},)",
    ]


def _record_code(op: Op, arrays: list[str]) -> list[str]:
    """Lines that make the node `n` for the result `t` with array `r`."""
    names = ARGUMENTS[:len(op.inputs)]
    return [
        "    if not NOT_RECORDING or mode.now.recorded:",
        *(f"        w{i} = {x}._storage.writer" for i, x in enumerate(names)),
        f"        if {' or '.join(f'w{i} is not None' for i in range(len(names)))}:",
        "            try:",
        "                f = getframe(1)",
        "            except ValueError:  # called by no Python at all, but by a program that embeds it",
        "                f = getframe()",
        "            c = f.f_code",
        "            while c.co_filename in OURS and f.f_back is not None:",
        "                f = f.f_back",
        "                c = f.f_code",
        f"            n = Node(({', '.join(f'w{i}' for i in range(len(names)))},))",
        "            d = r.dtype",
        "            n.op = OP if d is FLOAT32 or d is FLOAT64 else variant(OP, d)",
        "            n.order = next_order()",
        "            n.code = c",
        "            n.at = f.f_lasti",
        "            n.hooks = n.written = None",
        "            n.whole = UNSEEN",
        *_window_code(op, arrays),
        *_save_code(op, arrays),
        "            s.writer = n",
    ]


# What NumPy computes far faster by operator than by ufunc where both sides are single elements, as in loops over elements.
_OPERATORS = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/"}


def _number_code(op: Op) -> list[str]:
    """Lines that turn settings into plain numbers, by value: tensors among them may be written to later."""
    return [f"    if {s}.__class__ not in PLAIN: {s} = number({s})" for s in op.numbers]


def _call_code(op: Op, coerce: list[str], arrays: list[str], differentiable: bool, elementwise: bool, warns: bool) -> str:
    names = ARGUMENTS[:len(op.inputs)]
    arguments = ", ".join([*names, *op.settings])
    given, widening, operator = ", ".join([*arrays, *op.settings]), [], _OPERATORS.get(op.forward)  # type: ignore[call-overload]
    forward = f"forward({given})"
    if operator and differentiable:
        forward += f" if z != 1 or a0.ndim or a1.ndim else a0[()] {operator} a1[()]"
    elif not op.into:
        f = "forward" if op.name in ABOUT_TYPES else "f"  # what is not NumPy's own computes short floats in float32
        forward = f"silent().run({f}, {given})" if warns else f"{f}({given})"
        widening = [f"    d = {arrays[-1] if elementwise else arrays[0]}.dtype",
                    "    f = forward if d is FLOAT32 or d is FLOAT64 or d.char not in 'eE' else in_single(forward, d)"] if f == "f" else []
    lines = [
        f"def call({arguments}{', *, out=None' if elementwise else ''}):",
        *_number_code(op),
        *(["    if out is not None:", f"        return into(OP, out, ({', '.join(names)},), ({''.join(s + ', ' for s in op.settings)}))"]
          if elementwise else []),
        *coerce,
        *(["    z = a0.size", "    if z >= LARGE:",
           f"        return large(OP, ({', '.join(names)},), ({', '.join(arrays)},), ({''.join(s + ', ' for s in op.settings)}))"]
          if elementwise and differentiable else []),
        *widening,
        "    try:",
        f"        r = {forward}",
        "    except ValueError as error:",
        f"        raise shape_error(OP, ({', '.join(arrays)},), error) from None",
        "    except TypeError as error:",
        f"        raise dtype_error(OP, ({', '.join(arrays)},), error) from None",
        *(["    except FloatingPointError:",  # np.seterr(all="raise") is for the user's own arrays
           f"        r = silent().run(forward, {given})"] if op.into else []),
        "    except MemoryError as error:",
        "        raise no_memory(OP.name, error) from None",
        "    if r.__class__ is not ndarray:",
        "        r = r.__array__()",  # NumPy's scalar as a 0-d array, at a third of the cost of np.array
        "    elif r.ndim > 1 and not r.flags.c_contiguous:",
        "        r = contiguous(r)",
        "    t = new(Tensor)",
        "    s = Storage()",
        "    t._array = s.buffer = r",
        "    t._storage = s",
        "    t._offset = t._grad = s.writer = s.ledger = s.root = s.leaf = None",
        "    s.version = 0",
        *(_record_code(op, arrays) if differentiable else []),
        "    return t",
    ]
    return "\n".join(lines) + "\n"


def _coerce_code(op: Op, otherwise: str = "return answered(OP, given, error)", in_place: bool = False) -> list[str]:
    """Lines that leave tensors (or NOTHING) in the inputs' names and their arrays, of one type, in a0, a1, ...

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
        return [f"    {test}", *(f"        {line}" for line in promoted), "    else:", f"        a0 = {names[0]}._array"]
    if n == 2:
        x, y = names
        checked = f"if a0.dtype is not a1.dtype{floats}:"
        return [
            f"    if {x}.__class__ is Tensor and {y}.__class__ is Tensor or isinstance({x}, Tensor) and isinstance({y}, Tensor):",
            f"        a0 = {x}._array",
            f"        a1 = {y}._array",
            f"        {checked}",
            f"            {promote}",
            f"    elif ({y}.__class__ is float or {y}.__class__ is int) and isinstance({x}, Tensor) and {x}._array.dtype.char in 'fd':",
            f"        a0 = {x}._array",
            f"        a1 = KNOWN[a0.itemsize].get({y})",
            "        if a1 is None:",
            f"            a1 = constant({y}, a0.dtype)",
            f"        {y} = NOTHING",
            f"    elif ({x}.__class__ is float or {x}.__class__ is int) and isinstance({y}, Tensor) and {y}._array.dtype.char in 'fd':",
            f"        a1 = {y}._array",
            f"        a0 = constant({x}, a1.dtype)",
            f"        {x} = NOTHING",
            "    else:",
            *(f"        {line}" for line in promoted),
            *([] if in_place or op.forward not in EXACT else [  # a number that a short type does not hold
                "        if a0.dtype is not a1.dtype:", f"            return large(OP, {given[:-2]}), (a0, a1), ())"]),
        ]
    return [f"    {line}" for line in promoted]


def elementwise(name: str, forward: Callable[..., Any], *, promotes: str = "any", settings: Sequence[str] = (),
                inputs: Sequence[str] | None = None, warns: bool = True, **rules: Rule | None) -> Any:
    """Declares an operation on corresponding elements; inputs broadcast and promote.

    `promotes`: "any" keeps integers, "float" turns them into the default float type, "mask" leaves the first input out, "real"
    refuses complex numbers (which have no order, though NumPy gives them one).
    Without rules the result has no derivative (comparisons, integer operations). `warns` is False for a forward of our own that
    never makes NumPy warn, and need not be silenced.
    """
    names = tuple(inputs or rules)
    op = Op(name, forward, names, settings, rules, promotes, into=isinstance(forward, np.ufunc))
    op.numbers = op.settings
    differentiable = bool(rules)
    if any(rule is not None for rule in rules.values()):
        op.declared = True
    return _function(op, _coerce_code(op), [f"a{i}" for i in range(len(names))], differentiable, True, warns)


_LOCALS = {"OP", "forward", "t", "s", "r", "n", "f", "c", "d", "k", "l", "z"}


def primitive(name: str, forward: Callable[..., Any], *, settings: Sequence[str] = (), numbers: Sequence[str] = (),
              inputs: Sequence[str] | None = None, warns: bool = True, **rules: Rule | None) -> Any:
    """Declares any other operation: inputs are tensors of the right types, settings follow by position.

    `numbers` are those among the settings that are the user's numbers, as all settings of an elementwise operation are.
    """
    names = tuple(inputs or rules)
    taken = set(settings) & (_LOCALS | SCOPE.keys())
    assert not taken, f"{name}: the generated function needs the names {taken} for itself"
    op = Op(name, forward, names, settings, rules)
    op.numbers = tuple(numbers)
    if any(rule is not None for rule in rules.values()):
        op.declared = True
    arrays = [f"{x}._array" for x in ARGUMENTS[:len(names)]]
    return _function(op, [], arrays, bool(rules), False, warns)


def _function(op: Op, coerce: list[str], arrays: list[str], differentiable: bool, elementwise: bool, warns: bool) -> Any:
    arguments = [*ARGUMENTS[:len(op.inputs)], *op.settings]
    function = define_later(lambda: _call_code(op, coerce, arrays, differentiable, elementwise, warns), op.name, arguments, elementwise,
                            OP=op, forward=op.forward)
    function.__module__, function.op = "mutagrad", op
    op.function = function
    return register(op, op.forward, function)


def in_place(function: Any) -> Any:
    """The form of an elementwise operation that writes its result into its first argument: `add_` of `add`.

    Where the operation is NumPy's own and nothing needs casting or broadcasting, it computes into the memory directly.
    """
    op = function.op
    closure = {"OP": op, "forward": op.forward} if _is_direct(op) else {"OP": op}
    written = define_later(lambda: _in_place_code(op), op.name + "_", [*ARGUMENTS[:len(op.inputs)], *op.settings], False, **closure)
    written.__module__ = "mutagrad"
    return written


def _is_direct(op: Op) -> bool:
    return op.into and len(op.inputs) < 3 and bool(op.rules)


def _in_place_code(op: Op) -> str:
    names = ARGUMENTS[:len(op.inputs)]
    inputs, settings = ", ".join(names), "".join(f"{s}, " for s in op.settings)
    head = f"def call({', '.join([*names, *op.settings])}):"
    if not _is_direct(op):
        return "\n".join([head, *_number_code(op), f"    return into(OP, input, ({inputs},), ({settings}))"]) + "\n"
    arrays = [f"a{i}" for i in range(len(names))]
    fits = " and ".join(["a0 is target._array", "target._offset is None", "a0.dtype.kind == 'f'", "a0.size < LARGE",
                         *(f"({x} is NOTHING or a{i}.shape == a0.shape)" for i, x in enumerate(names) if i)])
    return "\n".join([
        head, "    target = input", f"    given = ({inputs},)", "    if isinstance(target, Tensor):",
        *(f"    {line}" for line in _coerce_code(op, "raise", True)),
        f"        if {fits}:",
        f"            n = begin_write(OP, target, ({inputs},), ({', '.join(arrays)},), ())",
        f"            silent().run(forward, {', '.join(arrays)}, out=a0)",
        "            return end_write(target, n)",
        f"    return into(OP, target, given, ({settings}))"]) + "\n"


def _conjugated(op: Op) -> Op:
    """The same for complex results: PyTorch's gradient is the conjugate of the derivative, g * conj(f'(x))."""
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    holomorphic = op.reverse

    def reverse(xp: Any, g: Any, s: Any, i: Any) -> tuple[Any, ...]:
        return tuple(None if gx is None else xp.conj(gx) for gx in holomorphic(xp, xp.conj(g), s, i))

    other.reverse = reverse
    return other


def _widened(op: Op) -> Op:
    """The same for floats of two bytes: rules compute in float32, and what they give is rounded once. (On tensors, operations do that.)"""
    if op.name in ABOUT_TYPES:
        return op
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    single = op.reverse

    def reverse(xp: Any, g: Any, s: Any, i: Any) -> tuple[Any, ...]:
        if xp is not RAW:
            return single(xp, g, s, i)  # type: ignore[no-any-return]
        return tuple(None if gx is None else rounded(gx, g.dtype) for gx in single(xp, widened(g), [widened(v) for v in s], i))

    other.reverse = reverse
    return other


# ---------------------------------------------------------------------------------------------------------- large arrays

def _forward_large(forward: Any, arrays: tuple[Any, ...], settings: tuple[Any, ...], shape: tuple[int, ...], kind: Any) -> Any:
    out = np.empty(shape, kind)
    return out if out.dtype.kind != "c" and large.apply(forward, arrays, settings, out) else forward(*arrays, *settings)


def _large(op: Op, tensors: tuple[Any, ...], arrays: tuple[Any, ...], settings: tuple[Any, ...]) -> Any:
    """The same as the generated code for arrays that are worth splitting: there the call path does not matter."""
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        wide = op.forward in EXACT and arrays[0].dtype is not arrays[1].dtype  # a number that a short type does not hold
        kind = arrays[tensors[0] is NOTHING if wide else -1].dtype
        forward = in_single(op.forward, kind) if wide else forward_for(op, kind)
        out = silently(_forward_large, forward, arrays, settings, shape, kind)
    except ValueError as error:
        raise shape_error(op, arrays, error) from None
    except TypeError as error:
        raise dtype_error(op, arrays, error) from None
    except MemoryError as error:
        raise OutOfMemory.found_by(op.name, error) from None
    result = make(out)
    if mode.grad and any(t._storage.writer is not None for t in tensors):
        writers = tuple(t._storage.writer for t in tensors)
        windows = tuple(None if w is None else window_as(t, shape) for t, w in zip(tensors, writers))
        chosen = op.threaded if kind.char in "fd" and out.dtype.kind != "c" else variant(op, out.dtype)
        node = new_node(chosen, writers, None if windows.count(None) == len(windows) else windows)
        if op.saves:
            node.saved = save_all(op, node, tensors, arrays, settings)
        result._storage.writer = node
        save_out(node, result)
    return result


# Rules that are one operation, known by their compiled form: for large arrays it can write its result straight into place.
_ONE_STEP = {rule.__code__.co_code: ufunc for rule, ufunc in
             ((lambda g, y: g * y, np.multiply), (lambda g, y: g / y, np.true_divide), (lambda g: -g, np.negative))}


def _threaded(op: Op) -> Op:
    """The same with rules that run on several threads, for large arrays."""
    rules = [op.rules.get(name) for name in op.inputs]
    if not op.promotes or all(rule is same or rule is None for rule in rules):
        return op
    steps = [None if rule is None else (_ONE_STEP.get(rule.__code__.co_code), [op.saves.index(op.source(p)) for p in parameters(rule)[1:]])
             if parameters(rule)[0] == "g" else None for rule in rules]
    other = Op(op.name, op.forward, op.inputs, op.settings, op.rules, op.promotes)
    whole = op.reverse

    def reverse(xp: Any, g: Any, s: Any, i: Any) -> Any:
        if xp is not RAW or g.size < large.LARGE:
            return whole(xp, g, s, i)
        grads: list[Any] = [None] * len(rules)
        rest = [None] * len(rules)
        for k, step in enumerate(steps):
            if i[k] is not None:
                if rules[k] is same:
                    grads[k] = g
                elif step is None or step[0] is None or (found := large.compute(step[0], (g, *(s[slot] for slot in step[1])))) is None:
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


# ------------------------------------------------------------------------------------------- what the generated code names

# NumPy warns of inf and nan in the name of the function that calls it. Those that are generated have no module's name, and what
# has none does not warn: the interpreter asks no filter then, and none has to be installed in the user's program.
SCOPE.update(
    BadArgument=BadArgument, FLOAT32=np.dtype("float32"), FLOAT64=np.dtype("float64"), KNOWN=KNOWN, LARGE=large.LARGE, Leaf=Leaf, NOTHING=NOTHING,
    NOT_RECORDING=NOT_RECORDING, Node=Node, OURS=OURS, PLAIN=PLAIN, SMALL=SMALL, Storage=Storage, UNSEEN=UNSEEN, __name__=None,
    answered=answered, begin_write=begin_write, constant=constant, contiguous=np.ascontiguousarray, dtype_error=dtype_error, end_write=end_write,
    getframe=sys._getframe, in_single=in_single, into=into, keep=keep, large=_large, mode=mode, ndarray=ndarray, new=object.__new__,
    next_order=next_order, no_memory=OutOfMemory.found_by, number=number, promote=promote, save=save, shape_error=shape_error, silent=silent, variant=variant,
    window_as=window_as, window_of=window_of)
