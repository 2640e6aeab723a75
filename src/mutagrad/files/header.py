"""A checkpoint's structure as text: everything but the elements of its tensors.

A plain value is written as it is, anything else as a dict of one entry that names its kind: `{"tuple": [1, 2]}`. A
tensor is the name of an array. Where tensors overlap in memory, one array is written for all of them, and each is a
window on that.
"""
from __future__ import annotations

import base64
import math
from argparse import Namespace
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

from ..arrays import np
from ..arrays.kinds import moved
from ..base.device import device
from ..base.operands import Array
from ..core import dtypes
from ..core.factory import make
from ..core.size import Size
from ..core.storage import Storage, memory_of, memory_offset, new_storage, window_extent
from ..nn.parameter import Buffer, Parameter
from ..ops.create.create import tensor
from ..tensors.copying import rebuild
from ..tensors.tensor import Tensor
from .limits import MOST_DIMENSIONS, Meter, refuse, shown
from .safe_unpickler import distinct, tensor_over
from .safetensors import RESERVED

DEEPEST = 100  # levels: a structure within itself has more than any limit
MOST_CLASSES = 1000  # of named tuples: each is compiled, which takes longer than anything else in a file
MOST_FIELDS = 1000  # of one of them
LONGEST_NUMBER = 64  # characters
LARGEST = 1 << 10_000  # integers beyond are not written as text: Python reads no more than some thousand digits


class NoPlainData(Exception):
    """Something that cannot be described as text and arrays."""


class Packer:
    """Takes a structure apart into arrays by name and a description."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._tensors: list[tuple[str, Tensor, dict[str, Any]]] = []
        self._nodes: dict[int, dict[str, Any]] = {}
        self._names: set[str] = {RESERVED}

    def pack(self, value: Any) -> Any:
        description = self._pack(value, ())
        groups: dict[int, list[tuple[str, Tensor, dict[str, Any]]]] = {}
        for entry in self._tensors:
            groups.setdefault(id(memory_of(entry[1])), []).append(entry)
        for group in groups.values():
            self._place(group)
        return description

    def _pack(self, value: Any, keys: tuple[str, ...]) -> Any:
        if len(keys) > DEEPEST:
            raise NoPlainData
        kind = type(value)
        if value is None or kind in (bool, str) or kind is int and -LARGEST < value < LARGEST:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, Tensor):
            return self._tensor(value, keys)
        if kind in (dict, OrderedDict):
            return self._mapping(value, keys)
        if kind in SIMPLE:
            return {SIMPLE[kind][0]: SIMPLE[kind][1](value)}
        if kind in (list, tuple, set) or isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._sequence(value, keys)
        if _is_array(value):
            return {"scalar" if isinstance(value, np.generic) else "ndarray": self._tensor(_over(value), keys)}
        if kind in PARTS and (kind is not defaultdict or value.default_factory in FACTORIES.values()):
            return {kind.__name__: self._pack(PARTS[kind](value), keys)}
        raise NoPlainData

    def _sequence(self, value: Any, keys: tuple[str, ...]) -> Any:
        items = [self._pack(item, (*keys, str(k))) for k, item in enumerate(value)]
        if type(value) is list:
            return items
        if type(value) in (tuple, set):
            return {type(value).__name__: items}
        return {"namedtuple": [type(value).__name__, list(value._fields), items]}

    def _mapping(self, value: Any, keys: tuple[str, ...]) -> Any:
        items = []
        for key, item in value.items():
            plain = isinstance(key, (str, int, float, bool, bytes, dtypes.dtype, device)) or key is None
            if not plain and type(key) is not tuple:
                raise NoPlainData
            items.append([self._pack(key, keys), self._pack(item, (*keys, str(key)))])
        node: dict[str, Any] = {type(value).__name__: items}
        if hasattr(value, "_metadata"):  # of a state_dict: the versions of its modules
            node["_metadata"] = self._pack(value._metadata, (*keys, "_metadata"))
        return node

    def _tensor(self, tensor: Tensor, keys: tuple[str, ...]) -> Any:
        if type(tensor) not in (Tensor, Parameter, Buffer) or not tensor.__dict__.keys() <= {"persistent"}:
            raise NoPlainData
        if id(tensor) not in self._nodes:
            node: dict[str, Any] = {"tensor": ""}
            if tensor.requires_grad:
                node["requires_grad"] = True
            if isinstance(tensor, Parameter):
                node["parameter"] = True
            if not tensor.is_cpu:
                node["device"] = str(tensor.device)
            self._tensors.append((self._name(".".join(keys) or "tensor"), tensor, node))
            self._nodes[id(tensor)] = node
        return self._nodes[id(tensor)]

    def _name(self, wanted: str) -> str:
        name = wanted = wanted.encode("utf-8", "replace").decode()  # lone surrogates are no text for other libraries
        count = 1
        while name in self._names:
            count += 1
            name = f"{wanted}#{count}"
        self._names.add(name)
        return name

    def _place(self, group: list[tuple[str, Tensor, dict[str, Any]]]) -> None:
        """Writes the arrays of tensors over one memory: each its own where they do not overlap, else one for all."""
        whole = next((entry for entry in group if _is_whole(entry[1])), None)
        if len(group) == 1 or whole is None and _apart([entry[1] for entry in group]):
            for name, tensor, node in group:
                self._put(name, tensor._array, node)
            return
        buffer = memory_of(group[0][1]).buffer
        carrier = whole[0] if whole else self._name("storage")
        self._put(carrier, whole[1]._array if whole else buffer.reshape(-1), whole[2] if whole else {})
        for _, tensor, node in group:
            if whole is None or tensor is not whole[1]:
                item = tensor._array.itemsize
                held = buffer.dtype if whole is None else whole[1]._array.dtype
                node.update(tensor=carrier, of=dtypes.of_array(held).name, dtype=tensor.dtype.name,
                            size=list(tensor._array.shape), stride=[step // item for step in tensor._array.strides],
                            offset=memory_offset(tensor) // item)

    def _put(self, name: str, array: Array, node: dict[str, Any]) -> None:
        node["tensor"] = name
        if array.dtype.char == "D":  # which the format has only as pairs of doubles
            node["of"] = "complex128"
        self.arrays[name] = array


def _is_array(value: Any) -> bool:
    """Whether this is NumPy's, with elements that a tensor can have. (A subclass would lose its masks, for example.)"""
    held = isinstance(value, np.generic) or type(value) in (np.ndarray, np.memmap)
    return held and value.dtype.kind in "biufc" and value.dtype.itemsize <= (16 if value.dtype.kind == "c" else 8)


def _over(array: Array) -> Tensor:
    """A tensor over an array's own memory, where it lies there as a tensor's does, else over a copy."""
    plain = np.asarray(array)
    if plain.flags.c_contiguous and plain.dtype.isnative:
        return make(plain.view(dtypes.of_array(plain.dtype).array_type))
    return tensor(array)


def _is_whole(tensor: Tensor) -> bool:
    array = tensor._array
    return bool(array.flags.c_contiguous and array.nbytes == memory_of(tensor).buffer.nbytes)


def _apart(tensors: list[Tensor]) -> bool:
    """Whether no two of them reach over the same bytes."""
    extents = sorted(window_extent(tensor) for tensor in tensors if tensor._array.size)
    return all(end <= start for (_, end), (start, _) in pairwise(extents))


SIMPLE: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Size: ("Size", list),
    device: ("device", str),
    complex: ("complex", lambda z: [repr(z.real), repr(z.imag)]),
    bytes: ("bytes", lambda data: base64.b64encode(data).decode("ascii")),
    **dict.fromkeys((dtypes.dtype, type(dtypes.bfloat16)), ("dtype", lambda d: d.name)),
}

FACTORIES: dict[str | None, Any] = {  # of a defaultdict
    None: None, **{kind.__name__: kind for kind in (bool, int, float, str, list, dict, set)}}
PARTS: dict[type, Callable[[Any], Any]] = {
    Namespace: vars,
    deque: lambda items: [list(items), items.maxlen],
    defaultdict: lambda items: [getattr(items.default_factory, "__name__", None), dict(items)],
}


# ------------------------------------------------------------------------------------------------------- and back again

class Unpacker:
    """Puts a structure together again from its description, a text of this length, and arrays by name."""

    def __init__(self, arrays: Callable[[Any], Array], length: int, arrival: Callable[[Any, str], Any]) -> None:
        self._array, self._arrival = arrays, cache(partial(arrival, None))
        self._storages: dict[str, Storage] = {}
        self._tensors: dict[str, Tensor] = {}
        self._classes: dict[tuple[str, ...], Any] = {}
        self._meter = Meter(length)

    def unpack(self, node: Any, level: int = 0) -> Any:
        if node is None or type(node) in (bool, int, float, str):
            return node
        if level > 5 * DEEPEST:
            refuse(f"its structure has more than {level} levels")
        if type(node) is list:
            return [self.unpack(item, level + 1) for item in node]
        if type(node) is not dict or not node:
            refuse("its structure is not described as it should be")
        if "tensor" in node:
            return self._tensor(node)
        kind, content = next(iter(node.items()))
        if kind in ("dict", "OrderedDict"):
            return self._mapping(kind, _list(content, "pairs"), node.get("_metadata"), level)
        if kind not in READ:
            refuse(f"its structure has a part of the kind {shown(kind)}")
        return READ[kind](self, self.unpack(content, level + 1))

    def _mapping(self, kind: str, content: list[Any], metadata: Any, level: int) -> Any:
        made: dict[Any, Any] = OrderedDict() if kind == "OrderedDict" else {}
        for pair in content:
            key, value = _list(pair, "a key and a value", 2)
            made[self._meter.key(self.unpack(key, level + 1), made)] = self.unpack(value, level + 1)
        if metadata is not None and kind == "OrderedDict":
            made._metadata = self.unpack(metadata, level + 1)  # type: ignore[attr-defined]
        return made

    def _tensor(self, node: dict[str, Any]) -> Tensor:
        text = repr(node)
        if text not in self._tensors:
            made = self._window(node, node.get("requires_grad") is True and not node.get("parameter"))
            self._tensors[text] = Parameter(made, node.get("requires_grad") is True) if node.get("parameter") else made
        return self._tensors[text]

    def _window(self, node: dict[str, Any], requires_grad: bool) -> Tensor:
        name = node["tensor"]
        if type(name) is not str or name not in self._storages:
            made = _storage(self._array(name), node.get("of") == "complex128")
            made.buffer = moved(made.buffer, self._arrival(_text(node.get("device", "cpu"))))
            self._storages[name] = made
        storage = self._storages[name]
        if "size" in node:
            place = node.get("offset"), node["size"], node.get("stride")
            return tensor_over(storage, _dtype(node.get("dtype")), *place, requires_grad)
        return rebuild(Tensor, storage, None, None, None, requires_grad, None)  # type: ignore[no-any-return]

    def set_of(self, items: Any) -> set[Any]:
        return distinct(self._meter, _list(items, "items"))

    def named_tuple(self, content: Any) -> Any:
        """Return a tuple with these names; its class is a new one, as a file cannot bring the program's own."""
        name, fields, items = _list(content, "a name, fields and items", 3)
        fields, items = _list(fields, "fields"), _list(items, "items")
        if len(fields) > MOST_FIELDS or not all(type(text) is str for text in (name, *fields)):
            refuse(f"a named tuple has {len(fields)} fields, or they are not named")
        described = (name, *fields)
        if described not in self._classes:
            if len(self._classes) == MOST_CLASSES:
                refuse(f"it has named tuples of more than {MOST_CLASSES} classes")
            self._classes[described] = namedtuple(name, fields)  # type: ignore[misc]
        return self._classes[described](*items)


def _list(content: Any, what: str, count: int | None = None) -> list[Any]:
    """A list, and no tensor, which may take for ever to go through."""
    if type(content) is not list or count is not None and len(content) != count:
        refuse(f"where {what} should be listed, there is {shown(content)}")
    return content


def _text(content: Any) -> str:
    return content if isinstance(content, str) else refuse(f"where text should be, there is {shown(content)}")


def _short(content: Any) -> str:
    text = _text(content)
    return text if len(text) <= LONGEST_NUMBER else refuse(f"{shown(text)} has {len(text)} characters")


def _float(content: Any) -> float:
    return float(_short(content))


def _dtype(name: Any) -> dtypes.dtype:
    return BY_NAME[name] if type(name) is str and name in BY_NAME else refuse(f"{shown(name)} is no element type")


def _size(content: Any) -> Size:
    sizes = _list(content, "sizes")
    if len(sizes) > MOST_DIMENSIONS or not all(type(n) is int for n in sizes):
        refuse(f"{shown(sizes)} is no shape")
    return Size(sizes)


def _as_array(content: Any) -> Any:
    if isinstance(content, Tensor) and content.dtype is not dtypes.bfloat16:
        return content.numpy()
    return refuse("an array is not described as it should be")


def _scalar(content: Any) -> Any:
    array = _as_array(content)
    return array[()] if array.ndim == 0 else refuse("a number is not described as it should be")


def _namespace(content: Any) -> Namespace:
    if type(content) is not dict or not all(type(name) is str for name in content):
        refuse("a Namespace is not made of names")
    made = Namespace()
    vars(made).update(content)
    return made


def _deque(content: Any) -> deque[Any]:
    items, longest = _list(content, "items and a length", 2)
    return deque(_list(items, "items"), longest)


def _default(content: Any) -> Any:
    name, items = _list(content, "a name and items", 2)
    if not (name is None or type(name) is str) or name not in FACTORIES or type(items) is not dict:
        refuse("a defaultdict is not described as it should be")
    return defaultdict(FACTORIES[name], items)


def _storage(array: Array, pairs: bool) -> Storage:
    if pairs and (array.dtype != "float64" or array.ndim < 1 or array.shape[-1] != 2):
        refuse("complex numbers are not saved as pairs of doubles")
    return new_storage(array.reshape(-1).view("complex128").reshape(array.shape[:-1]) if pairs else array)


BY_NAME = {d.name: d for d in (*dtypes.ALL, dtypes.bfloat16)}
READ: dict[str, Callable[[Unpacker, Any], Any]] = {
    "float": lambda _, text: _float(text),
    "tuple": lambda _, items: tuple(_list(items, "items")),
    "set": Unpacker.set_of,
    "Size": lambda _, sizes: _size(sizes),
    "dtype": lambda _, name: _dtype(name),
    "device": lambda _, name: device(_short(name)),
    "complex": lambda _, parts: complex(*map(_float, _list(parts, "two numbers", 2))),
    "bytes": lambda _, text: base64.b64decode(_text(text), validate=True),
    "namedtuple": Unpacker.named_tuple,
    "ndarray": lambda _, content: _as_array(content),
    "scalar": lambda _, content: _scalar(content),
    "Namespace": lambda _, content: _namespace(content),
    "deque": lambda _, content: _deque(content),
    "defaultdict": lambda _, content: _default(content),
}
