"""Pickles of PyTorch's, read without running anything that they name.

A pickle is a program, and Python's own unpickler calls whatever that program names. Here it runs on a machine that
knows containers, numbers and strings, and for every other name has either a constructor of our own or an error.
"""
from __future__ import annotations

import math
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..arrays import np
from ..arrays.kinds import moved
from ..base.device import device
from ..base.errors import BadArgument, BadFile, BadValue, MutagradError
from ..base.layout import SPARSE, layout, sparse_coo, strided
from ..base.operands import Array
from ..core import dtypes
from ..core.size import Size
from ..core.storage import Storage, memory_of, new_storage
from ..nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from ..sparse.construct import sparse_compressed_tensor, sparse_coo_tensor
from ..tensors.copying import rebuild
from ..tensors.tensor import Tensor
from ..tensors.typed_storage import TypedStorage
from . import numpy_pickle
from .limits import LONGEST_NAME, MOST_DIMENSIONS, Meter, instructions, refuse, shown, whole
from .torch_names import original

# ---------------------------------------------------------------------------------------------------- what may be named

_user_globals: dict[str, Any] = {}


def _named(entry: Any) -> tuple[str, Any]:
    """`(object, "module.name")`, or an object that knows its name."""
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise BadValue(f"add_safe_globals: {entry!r} is no pair of an object and its full name",
                           fix='add_safe_globals([(f, "module.f")])')
        return entry[1], entry[0]
    if not hasattr(entry, "__qualname__"):
        raise BadArgument(f"add_safe_globals: {entry!r} is neither a class nor a function",
                          fix="add_safe_globals([MyClass])")
    return f"{entry.__module__}.{entry.__qualname__}", entry


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let files that are loaded name these classes and functions. The file then decides what is called with what.

    >>> import mutagrad as mg
    >>> class Settings:
    ...     pass
    >>> mg.serialization.add_safe_globals([Settings])
    >>> mg.serialization.get_safe_globals() == [Settings]
    True
    >>> mg.serialization.clear_safe_globals()
    """
    _user_globals.update(map(_named, safe_globals))


def get_safe_globals() -> list[Any]:
    """Return what has been added.

    >>> import mutagrad as mg
    >>> mg.serialization.get_safe_globals()
    []
    """
    return list(_user_globals.values())


def clear_safe_globals() -> None:
    """Allow nothing any more of what `add_safe_globals` has.

    >>> import mutagrad as mg
    >>> mg.serialization.clear_safe_globals()
    >>> mg.serialization.get_safe_globals()
    []
    """
    _user_globals.clear()


class safe_globals:
    """`with safe_globals([MyClass]):` allows them for a while.

    >>> import mutagrad as mg
    >>> class Settings:
    ...     pass
    >>> with mg.serialization.safe_globals([Settings]):
    ...     len(mg.serialization.get_safe_globals())
    1
    """

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._added = dict(map(_named, safe_globals))

    def __enter__(self) -> None:
        self._before = dict(_user_globals)
        _user_globals.update(self._added)

    def __exit__(self, *exception: Any) -> None:
        _user_globals.clear()
        _user_globals.update(self._before)


class Global(NamedTuple):
    """A name in a file: what it makes when it is called, if it can be."""

    name: str
    make: Callable[..., Any] | None = None


def _wholes(values: Any) -> bool:
    return type(values) in (tuple, list, Size) and len(values) <= MOST_DIMENSIONS and all(map(whole, values))


def _steps(values: Any) -> bool:
    if type(values) not in (tuple, list) or len(values) > MOST_DIMENSIONS:
        return False
    return all(type(step) is int and abs(step) < 1 << 62 for step in values)


# --------------------------------------------------------------------------------------------------------- constructors

def _ordered(meter: Meter, items: Any = ()) -> OrderedDict[Any, Any]:
    """Of pairs, which is how Python 2 wrote it."""
    made: OrderedDict[Any, Any] = OrderedDict()
    for pair in items if type(items) in (list, tuple) else refuse("an OrderedDict is not made of a list"):
        if type(pair) not in (list, tuple) or len(pair) != 2:
            refuse("an OrderedDict is not made of pairs")
        made[meter.key(pair[0], made)] = pair[1]
    return made


def _counter(meter: Meter, counts: Any = None) -> Counter[Any]:
    """A copy of a dictionary, whose keys have been looked at when they were put into it."""
    if counts is not None and type(counts) is not dict:
        refuse("a Counter is not made of a dict")
    return Counter(counts)


def _set(meter: Meter, items: Any = ()) -> set[Any]:
    return distinct(meter, items if type(items) in (list, tuple) else refuse("a set is not made of a list"))


def distinct(meter: Meter, items: Any) -> set[Any]:
    """Return the set of what is in a list."""
    made: set[Any] = set()
    for item in items:
        made.add(meter.key(item, made))
    return made


def _namespace() -> Namespace:
    return Namespace()


def _deque(meter: Meter, items: Any = (), longest: Any = None) -> deque[Any]:
    if type(items) not in (list, tuple) or not (longest is None or whole(longest)):
        refuse("a deque is not made of a list and a length")
    return deque(items, longest)


def _default(meter: Meter, factory: Any = None) -> defaultdict[Any, Any]:
    name = factory.name if isinstance(factory, Global) else ""
    if factory is not None and name not in FACTORIES:
        refuse("the values of a defaultdict are made by what is not supported")
    return defaultdict(FACTORIES[name] if name else None)


def _complex(real: Any, imaginary: Any) -> complex:
    if not {type(real), type(imaginary)} <= {int, float}:
        refuse("a complex number is not made of two numbers")
    return complex(real, imaginary)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """How bytes are written where the pickle's protocol has only text."""
    if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1"):
        refuse("bytes are not made of text")
    return text.encode("latin1")


def _bytearray(content: Any = b"", encoding: Any = "latin1") -> bytearray:
    if type(content) is str:
        content = _encode(content, encoding)
    return bytearray(content) if type(content) is bytes else refuse("a bytearray is not made of bytes")


def _size(sizes: Any) -> Size:
    return Size(sizes) if _wholes(sizes) else refuse(f"{shown(sizes)} is no shape")


def _device(kind: Any, index: Any = None) -> device:
    if type(kind) is not str or len(kind) > LONGEST_NAME or not (index is None or whole(index)):
        refuse(f"{shown(kind)} is no device")
    return device(kind, index)


def _layout(name: Any) -> layout:
    return LAYOUTS[name] if type(name) is str and name in LAYOUTS else refuse(f"there is no layout {shown(name)}")


class Cell(TypedStorage):
    """The memory of one or several tensors in a file. It is read when the first of them tells the type of its elements.

    Where a program has saved a storage as such, it is what comes back.
    """

    def __init__(self, kind: dtypes.dtype | None, count: int, read: Callable[[dtypes.dtype], Array]) -> None:
        self.kind, self.count, self._read, self.any_type = kind, count, read, kind is None
        self.place: Any = None  # the device that it comes to
        self._storage: Storage | None = None
        self._marked: dict[tuple[bool, bool], Storage] = {}

    def __getattr__(self, name: str) -> Any:
        """What a storage has, once that is asked for."""
        if name not in ("_tensor", "_memory", "_flat"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        storage = self.settled()
        assert self.kind is not None
        kind = dtypes.LOADED_AS.get(self.kind, self.kind)
        super().__init__(tensor_over(storage, kind, 0, (storage.buffer.size,), (1,), False))
        return self.__dict__[name]

    def settled(self) -> Storage:
        """Return the storage, read if no tensor has asked for it: as bytes, if nothing tells what they are."""
        return self.storage(self.kind or dtypes.uint8)

    def storage(self, kind: dtypes.dtype | None) -> Storage:
        wanted = kind or self.kind or refuse("a tensor has no element type")
        if self._storage is None:
            self._storage, self.kind = new_storage(moved(self._read(wanted), self.place)), wanted
        if wanted is not self.kind and (not self.any_type or {wanted, self.kind} & dtypes.LOADED_AS.keys()):
            refuse(f"the same memory is of {self.kind} and of {wanted}")
        return self._storage

    def marked(self, conj: bool, neg: bool) -> Storage:
        """Return memory for the conjugates or negatives of all elements: the same for all tensors marked so."""
        if (conj, neg) not in self._marked:
            assert self._storage is not None
            self._marked[conj, neg] = new_storage(np.zeros_like(self._storage.buffer.reshape(-1)))
        return self._marked[conj, neg]

    def compute_marked(self) -> None:
        """Fill that memory, once there are elements to compute with."""
        for (conj, neg), storage in self._marked.items():
            assert self._storage is not None
            values, target = self._storage.buffer.reshape(-1), storage.buffer.reshape(-1)
            np.copyto(target, values.conj() if conj and target.dtype.kind == "c" else values)
            if neg:
                np.negative(target, out=target)


def tensor_over(storage: Storage, kind: dtypes.dtype, offset: Any, size: Any, stride: Any,
                requires_grad: bool) -> Tensor:
    """Return a window on a storage, counted in elements. The first that covers all of it gives it its shape."""
    if not whole(offset) or not _wholes(size) or not _steps(stride) or len(size) != len(stride):
        refuse(f"no tensor has offset {shown(offset)}, size {shown(size)}, stride {shown(stride)}")
    buffer, item, shape = storage.buffer, kind.itemsize, tuple(size)
    reach = [(n - 1) * step for n, step in zip(shape, stride)] if 0 not in shape else []
    first, end = offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0) + (0 not in shape)
    if first < 0 or end * item > buffer.nbytes or math.prod(n or 1 for n in shape) * item >= 1 << 63:
        refuse(f"a tensor of size {shape}, stride {tuple(stride)} and offset {offset} reaches beyond its "
               f"{buffer.nbytes // item} elements")
    covers = offset == 0 and math.prod(shape) * item == buffer.nbytes and _in_order(shape, stride)
    if covers and buffer.dtype == kind.array_type:
        if buffer.ndim == 1:
            storage.buffer = buffer = buffer.reshape(shape)
        if buffer.shape == shape:
            return rebuild(Tensor, storage, shape, None, None, requires_grad, None)  # type: ignore[no-any-return]
    steps = tuple(step * item for step in stride) if 0 not in shape else None
    start = offset * item
    return rebuild(Tensor, storage, shape, steps, start, requires_grad, kind.array_type)  # type: ignore[no-any-return]


def _in_order(shape: tuple[int, ...], stride: Any) -> bool:
    step = 1
    for n, found in zip(reversed(shape), reversed(tuple(stride))):
        if n != 1 and found != step and 0 not in shape:
            return False
        step *= n
    return True


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
            kind: Any = None, metadata: Any = None) -> Tensor:
    if not isinstance(storage, Cell) or not _empty(hooks) or not (kind is None or isinstance(kind, dtypes.dtype)):
        refuse("a tensor is not made of a storage")
    found = storage.storage(kind)
    if not _empty(metadata) and any(_marks(metadata)):
        found = storage.marked(*_marks(metadata))
    kind = kind or storage.kind or refuse("a tensor has no element type")
    return tensor_over(found, dtypes.LOADED_AS.get(kind, kind), offset, size, stride, requires_grad is True)


def _empty(value: Any) -> bool:
    """None or without entries; what else has a truth may have to be computed for it."""
    return value is None or isinstance(value, (dict, list, tuple)) and not value


def _marks(metadata: Any) -> tuple[bool, bool]:
    """PyTorch keeps a conjugate or negative as the number and a mark; here it is computed."""
    known = type(metadata) is dict and all(type(mark) is str and mark in ("conj", "neg") for mark in metadata)
    if not known or not all(type(value) is bool for value in metadata.values()):
        refuse("a tensor has marks that are not supported", why="only conj and neg are")
    return metadata.get("conj", False), metadata.get("neg", False)


def _tensor_v2(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any,
               metadata: Any = None) -> Tensor:
    return _tensor(storage, offset, size, stride, requires_grad, hooks, None, metadata)


def _tensor_v3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, kind: Any,
               metadata: Any = None) -> Tensor:
    return _tensor(storage, offset, size, stride, requires_grad, hooks, kind, metadata)


def _parameter(values: Any, requires_grad: Any = True, hooks: Any = None) -> Parameter:
    if not isinstance(values, Tensor) or not _empty(hooks):
        refuse("a parameter is not made of a tensor")
    if values._array.size > memory_of(values).buffer.size:  # elements that share memory would get memory of their own
        refuse("a parameter has more elements than its storage")
    return Parameter(values, requires_grad is True)


def _parameter_with_state(values: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    return _with_attributes(_parameter(values, requires_grad, hooks), state)


def _of_type(make: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor that has attributes of the user's, or is a Parameter or Buffer."""
    makers = (_tensor_v2, _tensor_v3, _parameter)
    if not isinstance(make, Global) or make.make not in makers or type(arguments) is not tuple:
        refuse("a tensor is not made by one of PyTorch's functions")
    made = make.make(*arguments)  # type: ignore[misc]
    name = kind.name if isinstance(kind, Global) else ""
    if name == "torch.nn.parameter.Buffer":
        made = made.as_subclass(Buffer)
    elif name == "torch.nn.parameter.Parameter" and not isinstance(made, Parameter):
        made = _parameter(made, made.requires_grad)
    elif isinstance(kind, type) and issubclass(kind, Tensor):  # which the user has allowed
        made = made.as_subclass(kind).requires_grad_(made.requires_grad)
    elif name not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        refuse(f"tensors of the class {name or shown(kind)} are not supported",
               fix="save tensor.as_subclass(torch.Tensor)")
    return _with_attributes(made, state)


def _settable(tensor: Tensor, name: str) -> bool:
    return name == "persistent" or not hasattr(type(tensor), name)


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    if type(state) is tuple and len(state) == 2 and _empty(state[1]):
        state = state[0]
    if _empty(state):
        return tensor
    if type(state) is not dict or not all(type(name) is str and _settable(tensor, name) for name in state):
        refuse("a tensor has attributes that would hide its own")
    tensor.__dict__.update(state)
    return tensor


def rebuilt(kind: Any, memory: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Return a tensor in an archive of ours: its class, and a window on a storage, counted in elements."""
    found = TENSORS.get(kind.name) if isinstance(kind, Global) else None
    if isinstance(kind, type) and issubclass(kind, Tensor):
        found = kind
    if found is None or not isinstance(memory, Cell) or not isinstance(dtype, dtypes.dtype):
        refuse("a tensor is not made of its class, a storage and an element type")
    made = tensor_over(memory.storage(None), dtype, offset, size, stride, False)
    return (made if found is Tensor else made.as_subclass(found)).requires_grad_(requires_grad is True)


def sparse(kind: Any, parts: Any, requires_grad: Any = False, *, meter: Meter | None = None) -> Tensor:
    """Return a sparse tensor of its layout and its parts: indices, values, size, and whether it is coalesced."""
    kind = LAYOUTS.get(kind, kind) if type(kind) is str else kind
    count = 2 if kind is sparse_coo else 3
    if kind not in SPARSE or type(parts) is not tuple or len(parts) not in (count + 1, count + 2 * (count == 2)) \
            or not all(type(part) is Tensor for part in parts[:count]) or not _wholes(parts[count]):
        refuse("a sparse tensor is not made of its layout, indices, values and size")
    for part in parts[:count - 1] if meter is not None else ():
        meter.read(memory_of(part), part._array.size)  # type: ignore[union-attr]
    try:
        plain = tuple(part.detach() for part in parts[:count])
        made = _sparse(kind, plain, Size(parts[count]), len(parts) > count + 1 and parts[count + 1] is True)
    except MutagradError as error:
        refuse(f"the parts of a sparse tensor do not fit: {error.args[0].partition(chr(10))[0][:200]}")
    return made.requires_grad_() if requires_grad is True or parts[count - 1].requires_grad else made


def _sparse(kind: layout, parts: tuple[Any, ...], size: Size, coalesced: bool) -> Any:
    if kind is not sparse_coo:
        return sparse_compressed_tensor(parts[0], parts[1], parts[2], size, layout=kind)
    return sparse_coo_tensor(parts[0], parts[1], size, is_coalesced=coalesced, check_invariants=True)


def typed_storage(values: Any) -> TypedStorage:
    """Return the memory of a tensor in an archive of ours."""
    return TypedStorage(values) if isinstance(values, Tensor) else refuse("a storage is not made of a tensor")


FACTORIES: dict[str, Any] = {f"builtins.{kind.__name__}": kind for kind in (bool, int, float, str, list, dict, set)}
LAYOUTS = {f"torch.{kind.name}": kind for kind in (strided, *SPARSE)}
CONTAINERS: dict[str, Callable[..., Any]] = {  # of keys: their first argument is the meter
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "collections.deque": _deque,
    "collections.defaultdict": _default,
    **numpy_pickle.METERED,
    **{name: lambda meter, *parts: sparse(*parts, meter=meter)
       for name in ("torch._utils._rebuild_sparse_tensor", f"{sparse.__module__}.{sparse.__name__}")},
}
CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "argparse.Namespace": _namespace,
    "builtins.complex": _complex,
    **numpy_pickle.PLAIN,
    "builtins.bytearray": _bytearray,
    "builtins.bytes": lambda: b"",  # as the older protocols write it
    "_codecs.encode": _encode,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _layout,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.nn.parameter.Parameter": _parameter,
    "mutagrad.Size": _size,
    "mutagrad.device": _device,
    **{f"{make.__module__}.{make.__name__}": make for make in (rebuilt, typed_storage)},
    **{f"mutagrad.pickled.{make.__name__}": make for make in (rebuilt, typed_storage)},  # as older files name these
    "mutagrad._size.Size": _size,
    "mutagrad._tensor.Size": _size,
    "mutagrad.device.device": _device,
}
TENSORS: dict[str, type[Tensor]] = {
    f"{kind.__module__}.{kind.__name__}": kind
    for kind in (Tensor, Parameter, Buffer, UninitializedParameter, UninitializedBuffer)}
TENSORS["mutagrad._tensor.Tensor"] = Tensor
CLASSES = frozenset(["torch.Tensor", "torch.nn.parameter.Buffer", "numpy.ndarray", *FACTORIES, *TENSORS])
TYPES = {name: d for d in vars(dtypes).values() if isinstance(d, dtypes.dtype)
         for name in (f"torch.{d.name}", f"mutagrad.core.dtypes.{d.__reduce__()}", f"mutagrad.dtypes.{d.__reduce__()}")}
STORAGES = {f"torch.{name.replace('Tensor', 'Storage')}": d for d, name in dtypes.CLASS_NAMES.items()}
UNTYPED = "torch.storage.UntypedStorage"


def full_name(module: str, name: str) -> str:
    """Return a name in a file, with Python 2's name of the built-in module as Python 3's."""
    if len(module) + len(name) > LONGEST_NAME:
        refuse(f"it names something by {len(module) + len(name)} characters")
    module, name = original("builtins" if module == "__builtin__" else module, name)
    return f"{module}.{name}"


def known(full: str) -> Any:
    """Return what a name in a file stands for, where it is one of those that every file may use; else None."""
    if full in TYPES:
        return TYPES[full]
    if full in CONSTRUCTORS or full in CONTAINERS or full in CLASSES or full in STORAGES or full == UNTYPED:
        return Global(full, CONSTRUCTORS.get(full))
    return None


def _find(module: str, name: str) -> Any:
    full = full_name(module, name)
    return _user_globals[full] if full in _user_globals else known(full) or refuse_names([full])


def refuse_names(names: list[str]) -> NoReturn:
    shown = ", ".join(name[:200] for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    raise BadFile(f"load: Unsupported global: the file names {shown}, not allowed in a file of plain data",
                  why="to make such objects is to run code that the file chooses; nothing has been run",
                  fix="if you trust whoever wrote it: mutagrad.load(f, weights_only=False); "
                      "or allow single classes by mutagrad.serialization.add_safe_globals")


def names_in(program: bytes) -> list[str]:
    """Return the full names that a pickle uses, each once."""
    found: dict[str, None] = {}
    pushed: list[Any] = [None, None]
    memo: dict[int, Any] = {}
    argument: Any
    for instruction, argument, _ in instructions(program):
        kind = instruction.name
        if kind in ("GLOBAL", "INST"):
            found[full_name(*argument.split(" ", 1))] = None
        elif kind == "STACK_GLOBAL" and all(type(part) is str for part in pushed[-2:]):
            found[full_name(*pushed[-2:])] = None
        if kind == "MEMOIZE":
            memo[len(memo)] = pushed[-1]
        elif kind.endswith("PUT"):
            memo[argument] = pushed[-1]
        else:
            pushed = [pushed[-1], memo.get(argument) if kind.endswith("GET") else argument]
    return list(found)


def unsafe_names(program: bytes) -> list[str]:
    """Return the names that neither belong to plain data nor have been allowed."""
    return [name for name in names_in(program) if name not in _user_globals and known(name) is None]


# ---------------------------------------------------------------------------------------------------------- the machine

_PUSH = frozenset(["BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT", "BINUNICODE",
                   "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
                   "BYTEARRAY8"])
_OLD_TEXT = frozenset(["BINSTRING", "SHORT_BINSTRING", "STRING"])
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class Machine:
    """Runs the instructions of a pickle that make plain data; every other one is refused."""

    def __init__(self, load_storage: Callable[[Any], Any], encoding: str = "utf-8") -> None:
        self.meter = Meter(0)
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.load_storage, self.encoding = load_storage, encoding

    def run(self, program: bytes) -> Any:
        self.meter = Meter(len(program))
        unknown = unsafe_names(program)
        if unknown:
            refuse_names(unknown)
        argument: Any
        for instruction, argument, _ in instructions(program):
            name = instruction.name
            if name in _PUSH:
                self.stack.append(argument)
            elif name in _OLD_TEXT:
                self.stack.append(self.old_text(argument))
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _EMPTY:
                self.stack.append(_EMPTY[name]())
            elif name in _TUPLES:
                self.stack.append(tuple(self.take(_TUPLES[name])))
            elif name.endswith("PUT"):
                if argument > len(program):
                    refuse("its pickle numbers its parts beyond all that it has")  # it could choose them of one hash
                self.memo[argument] = self.stack[-1]
            elif name.endswith("GET"):
                self.stack.append(self.memo[argument])
            elif name in INSTRUCTIONS:
                INSTRUCTIONS[name](self, argument)
            elif name not in ("PROTO", "FRAME", "STOP"):
                refuse(f"its pickle has the instruction {name}, which is not supported")
        return self.stack.pop()

    def old_text(self, argument: str) -> Any:
        """Return text of Python 2, which was bytes; `encoding="bytes"` leaves it so."""
        raw = argument.encode("latin1")
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    def take(self, count: int) -> list[Any]:
        found = self.stack[-count:]
        if len(found) < count:
            refuse("its pickle takes more than it has made")
        del self.stack[-count:]
        return found

    def since_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.marks.pop()
        return found

    # ----------------------------------------------------------------------------------------------------- instructions

    def mark(self, _: Any) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, (list, deque)):
            refuse(f"items are appended to {type(target).__name__}")
        target.extend(items)

    def add(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, set):
            refuse(f"items are added to {type(target).__name__}")
        for item in items:
            target.add(self.meter.key(item, target))

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            refuse(f"keys are set in {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            target[self.meter.key(key, target)] = value

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            refuse("a global is not named by text")
        self.stack.append(_find(module, name))

    def constructor(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function from the stack, if it is allowed, and its arguments."""
        function, arguments = self.take(2)
        name = function.name if isinstance(function, Global) else ""
        if name in CONTAINERS:
            make: Any = partial(CONTAINERS[name], self.meter)
        else:
            make = function.make if isinstance(function, Global) else function if _allowed(function) else None
        if make is None or type(arguments) is not tuple:
            refuse(f"its pickle calls {name or type(function).__name__}")
        self.meter.charge_for((arguments, *arguments))
        return make, arguments

    def call(self, _: Any) -> None:
        make, arguments = self.constructor()
        self.stack.append(make(*arguments))

    def new(self, _: Any) -> None:
        make, arguments = self.constructor()
        made = make.__new__(make, *arguments) if _allowed(make) else make(*arguments)  # type: ignore[arg-type]
        self.stack.append(made)

    def build(self, _: Any) -> None:
        """Set an object's state: that of a state_dict is the versions of its modules."""
        target, state = self.stack[-2], self.take(1)[0]
        self.meter.charge_for((state, *state) if type(state) is tuple and len(state) == 2 else (state,))
        if type(target) is OrderedDict and type(state) is dict and _only_metadata(state):
            target.__dict__.update(state)
        elif type(target) in TENSORS.values():
            _with_attributes(target, state)
        elif type(target) is Namespace and type(state) is dict and all(type(name) is str for name in state):
            vars(target).update(state)
        elif type(target) is np.ndarray:
            numpy_pickle.set_state(self.meter, target, state)
        elif type(target) is numpy_pickle.ArrayType:
            target.set_state(state)
        elif _allowed(type(target)):
            _set_state(target, state)
        else:
            refuse(f"its pickle sets the state of {type(target).__name__}")

    def persistent(self, _: Any) -> None:
        self.stack.append(self.load_storage(self.take(1)[0]))


def _only_metadata(state: dict[Any, Any]) -> bool:
    return all(type(name) is str and name == "_metadata" for name in state)


def _allowed(value: Any) -> bool:
    """Whether the user has."""
    return any(value is allowed for allowed in _user_globals.values())


def _set_state(target: Any, state: Any) -> None:
    """As Python does, for a class that the user has allowed."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if plain:
        target.__dict__.update(plain)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


INSTRUCTIONS: dict[str, Callable[[Machine, Any], Any]] = {
    "MARK": Machine.mark,
    "POP": lambda m, _: m.take(1) if m.stack else m.since_mark(),
    "POP_MARK": lambda m, _: m.since_mark(),
    "MEMOIZE": Machine.memoize,
    "TUPLE": lambda m, _: _push(m, tuple(m.since_mark())),
    "LIST": lambda m, _: _push(m, m.since_mark()),
    "DICT": lambda m, _: _dictionary(m, m.since_mark()),
    "FROZENSET": lambda m, _: _push(m, frozenset(distinct(m.meter, m.since_mark()))),
    "APPEND": lambda m, _: m.extend(m.take(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "SETITEM": lambda m, _: m.set_items(m.take(2)),
    "SETITEMS": lambda m, _: m.set_items(m.since_mark()),
    "ADDITEMS": lambda m, _: m.add(m.since_mark()),
    "GLOBAL": lambda m, argument: m.name(*argument.split(" ", 1)),
    "STACK_GLOBAL": lambda m, _: m.name(*m.take(2)),
    "REDUCE": Machine.call,
    "NEWOBJ": Machine.new,
    "BUILD": Machine.build,
    "BINPERSID": Machine.persistent,
}


def _push(machine: Machine, value: Any) -> None:
    machine.stack.append(value)


def _dictionary(machine: Machine, items: list[Any]) -> None:
    machine.stack.append({})
    machine.set_items(items)
