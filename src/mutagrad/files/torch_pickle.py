"""Any object that Python can pickle, in the form that torch.save writes.

The file is a zip archive, `files/archive.py`: a pickle, and the memory of its tensors beside it, so that tensors which
share memory share it again, and large ones can be mapped. Tensors and what goes with them are written under PyTorch's
names, so that torch.load reads them; classes of PyTorch's are read as ours of the same name.
"""
from __future__ import annotations

import importlib
import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..arrays.kinds import device_of, moved
from ..base.device import device, known
from ..base.errors import BadFile, CannotPickle
from ..base.layout import layout, sparse_bsr, sparse_csr, strided
from ..base.torch_paths import our_path
from ..core import dtypes
from ..core.size import Size
from ..core.storage import Storage, memory_of, memory_offset, new_storage
from ..core.window import dense_strides
from ..nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from ..tensors.copying import attributes_of
from ..tensors.tensor import Tensor
from ..tensors.typed_storage import TypedStorage, UntypedStorage
from . import torch_names as names
from .safe_unpickler import CONSTRUCTORS, STORAGES, TYPES, UNTYPED, Global, rebuilt, sparse
from .streams import Sink, pieces
from .torch_names import NamingPickler

# -------------------------------------------------------------------------------------------------------------- writing


def archive_of(value: Any, module: Any, protocol: int) -> Callable[[Sink], None]:
    """Pickle an object by a module such as Python's `pickle`, and return what writes an archive that holds it."""
    mixed: set[int] = set()
    while True:
        try:
            return _pickled(value, module, protocol, mixed)
        except _OfTwoTypes as found:  # once for each memory that is seen as elements of different types
            mixed.add(found.memory)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise CannotPickle(f"save: {type(value).__name__} cannot be saved: {error}",
                               why="Python pickles what can be imported by its name",
                               fix="define its class or function at the top of a module, or save the tensors and "
                                   "numbers that it is made of") from error


def _pickled(value: Any, module: Any, protocol: int, mixed: set[int]) -> Callable[[Sink], None]:
    for kind in ((module or pickle).Pickler, NamingPickler):
        entries = _Entries(mixed)
        program = io.BytesIO()
        pickler = type("Pickler", (_Writer, kind), {"entries": entries})
        pickler(program, protocol=protocol).dump(value)
        made = program.getvalue() if kind is NamingPickler else names.renamed(program.getvalue(), entries.used)
        if made is not None or module is not None:  # another module's pickles are read by that module
            break
    return partial(_write, program.getvalue() if made is None else made, list(entries.found.values()))


class _OfTwoTypes(Exception):
    """The elements of one memory are seen as of two types: then it has to be bytes for PyTorch."""

    def __init__(self, memory: int) -> None:
        self.memory = memory


class _Entries:
    """The storages that an object's tensors are windows on. To PyTorch each is elements of one type, or bytes."""

    def __init__(self, mixed: set[int]) -> None:
        self.mixed = mixed
        self.found: dict[int, tuple[str, Storage, dtypes.dtype | None]] = {}
        self.used: list[Any] = []  # of PyTorch's names

    def enter(self, memory: Storage, kind: dtypes.dtype | None) -> Any:
        """Return what refers to a storage; `kind` is the type of its elements, None for whichever."""
        any_type = kind is None
        kind = None if id(memory) in self.mixed or kind not in dtypes.CLASS_NAMES else kind
        key, _, known_as = self.found.setdefault(id(memory), (str(len(self.found)), memory, kind))
        if known_as is not kind and not any_type:
            raise _OfTwoTypes(id(memory))
        kind, place = known_as, device_of(memory.buffer)
        location = "cpu" if place is None else str(known(*place.name))
        name = "UntypedStorage" if kind is None else dtypes.CLASS_NAMES[kind].replace("Tensor", "Storage")
        count = memory.buffer.nbytes // (1 if kind is None else kind.itemsize)
        return "storage", getattr(names, name), key, location, count


class _Reference:
    """Stands for a storage in what a tensor is reduced to."""

    def __init__(self, memory: Storage, kind: dtypes.dtype | None) -> None:
        self.memory, self.kind = memory, kind


def _write(program: bytes, entries: list[tuple[str, Storage, Any]], sink: Sink) -> None:
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        _add(archive, "data.pkl", [program], len(program))
        _add(archive, "byteorder", [b"little"])
        for key, memory, _ in entries:
            _add(archive, f"data/{key}", pieces(moved(memory.buffer, None)), memory.buffer.nbytes)
        _add(archive, "version", [b"3\n"])


ALIGNED = 64  # bytes: where elements begin, so that they can be used where a file is mapped
_LOCAL_HEADER, _LARGE, _LARGE_FIELD = 30, 1 << 31, 20


def _add(archive: zipfile.ZipFile, name: str, content: Iterable[bytes | memoryview], size: int = 0) -> None:
    """Add an entry. None has a date, so the same object is the same file."""
    info = zipfile.ZipInfo(f"archive/{name}")
    info.file_size, info.external_attr = size, 0o600 << 16
    large = size >= _LARGE
    start = archive.fp.tell() + _LOCAL_HEADER + len(info.filename) + 4 + large * _LARGE_FIELD  # type: ignore[union-attr]
    padding = -start % ALIGNED
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(info, "w", force_zip64=large) as entry:
        for piece in content:
            entry.write(piece)


def _hooks() -> OrderedDict[Any, Any]:
    """Hooks are not saved; PyTorch expects that none are."""
    return OrderedDict()


class _Writer:
    """What is added to a pickler: tensors are windows, and storages are references to entries of the archive."""

    entries: _Entries

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, _Reference):
            return self.entries.enter(value.memory, value.kind)
        if isinstance(value, TypedStorage):
            return self.entries.enter(value._memory, None if isinstance(value, UntypedStorage) else value.dtype)
        return None

    def reducer_override(self, value: Any) -> Any:
        if names.is_name(value):
            self.entries.used.append(value)
        if isinstance(value, Tensor) and value.layout is not strided:
            return names._rebuild_sparse_tensor, (value.layout, _parts(value))
        if isinstance(value, Tensor) and type(value).__reduce_ex__ is Tensor.__reduce_ex__:
            return self.reduced(value)
        if type(value) in AS_PYTORCH:
            return AS_PYTORCH[type(value)](value)
        inherited = getattr(super(), "reducer_override", None)
        return inherited(value) if inherited else NotImplemented

    def reduced(self, tensor: Tensor) -> Any:
        """Return how PyTorch makes such a tensor; of one without a shape, how it is made here."""
        kind, state = type(tensor), attributes_of(tensor)
        if issubclass(kind, (UninitializedParameter, UninitializedBuffer)):
            memory, size = _Reference(memory_of(tensor), tensor.dtype), tuple(tensor._array.shape)
            return rebuilt, (kind, memory, tensor.dtype, 0, size, (1,), tensor.requires_grad), state
        make, arguments = self.window(tensor)
        if kind is Tensor and not state:
            return make, arguments
        if kind is Parameter:
            given = _Values(make, arguments), tensor.requires_grad, _hooks()
            make_parameter = names._rebuild_parameter_with_state if state else names._rebuild_parameter
            return make_parameter, (*given, state) if state else given
        shown = names.Tensor if kind in (Tensor, Buffer) else kind
        return names._rebuild_from_type_v2, (make, shown, arguments, state or {})

    def window(self, tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
        """Return PyTorch's function that makes a window on a storage, and what it is given."""
        memory, array, kind, item = memory_of(tensor), tensor._array, tensor.dtype, tensor._array.itemsize
        place = memory_offset(tensor) // item, tuple(array.shape), tuple(step // item for step in array.strides)
        # Written in order: PyTorch has no steps backwards, and NumPy says 0 for the steps of what is empty.
        if not array.size or any(step < 0 for step in array.strides):
            memory, place = new_storage(array), (0, place[1], dense_strides(array.shape, 1))
        given = (_Reference(memory, kind), *place, tensor.requires_grad, _hooks())
        if kind in dtypes.CLASS_NAMES and id(memory) not in self.entries.mixed:
            return names._rebuild_tensor_v2, given
        return names._rebuild_tensor_v3, (*given, kind)


def _device(value: device) -> Any:
    return names.device, (value.type,) if value.index is None else (value.type, value.index)


# What PyTorch has, too, by its class here.
AS_PYTORCH: dict[type, Callable[[Any], Any]] = {
    Size: lambda value: (names.Size, (tuple(value),)),
    device: _device,
    layout: lambda value: (names._get_layout, (f"torch.{value.name}",)),
}


class _Values:
    """Stands for the tensor that a parameter is made of."""

    def __init__(self, make: Any, arguments: Any) -> None:
        self.made_by = make, arguments

    def __reduce__(self) -> Any:
        return self.made_by


def _parts(tensor: Any) -> tuple[Any, ...]:
    """Return what a sparse tensor is made of; its values say whether it requires a gradient."""
    size, wanted = tuple(tensor.shape), tensor.requires_grad
    if tensor.is_sparse:
        return tensor._indices(), tensor._values().detach().requires_grad_(wanted), size, tensor.is_coalesced()
    by_rows = tensor.layout in (sparse_csr, sparse_bsr)
    starts = tensor.crow_indices() if by_rows else tensor.ccol_indices()
    others = tensor.col_indices() if by_rows else tensor.row_indices()
    return starts, others, tensor.values().detach().requires_grad_(wanted), size


# -------------------------------------------------------------------------------------------------------------- reading

def unpickle(program: bytes, load_storage: Callable[[Any], Any], module: Any, settings: dict[str, Any]) -> Any:
    """Run a pickle and return what it makes. It can do anything, so this is only for files that the user trusts."""
    reader = type("Unpickler", (_Reader, (module or pickle).Unpickler), {"persistent_load": staticmethod(load_storage)})
    return reader(io.BytesIO(program), **{"encoding": "utf-8", **settings}).load()


class _Reader:
    """What is added to an unpickler: PyTorch's names mean what has the same name here."""

    def find_class(self, module: str, name: str) -> Any:
        module, name = names.original(module, name)
        full = f"{module}.{name}"
        if full in STORAGES or full == UNTYPED:
            return Global(full)
        if full in TYPES:
            return TYPES[full]
        if full in REBUILD:
            return REBUILD[full]
        if module == "torch" or module.startswith("torch."):
            return ours(module, name)
        return super().find_class(module, name)  # type: ignore[misc]


RENAMED = {"NonDynamicallyQuantizableLinear": "Linear"}  # a part of MultiheadAttention


def ours(module: str, name: str) -> Any:
    """Return the class or function that has the place of one of PyTorch's."""
    name = RENAMED.get(name, name)
    for path in (our_path(module), "mutagrad.nn", "mutagrad.nn.functional", "mutagrad"):
        try:
            found: Any = importlib.import_module(path)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            continue
    raise BadFile(f"load: the file names {module}.{name}, which is not in mutagrad",
                  why="the object was pickled by PyTorch, and its class is needed here",
                  fix="in PyTorch: torch.save(model.state_dict(), f)")


def _of_type(make: Any, kind: type, arguments: Any, state: Any) -> Any:
    """A tensor of a subclass, or one with attributes."""
    made = make(*arguments)
    made = made if type(made) is kind else made.as_subclass(kind).requires_grad_(made.requires_grad)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state:
        plain, slots = state if type(state) is tuple else (state, None)
        made.__dict__.update(plain or {})
        for name, value in (slots or {}).items():
            setattr(made, name, value)
    return made


_REBUILDING = ("torch._utils.", "torch.serialization.")
REBUILD = {full: make for full, make in CONSTRUCTORS.items() if full.startswith(_REBUILDING)}
REBUILD["torch._tensor._rebuild_from_type_v2"] = _of_type
REBUILD["torch._utils._rebuild_sparse_tensor"] = sparse
