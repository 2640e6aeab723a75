"""Any object that Python can pickle: written for a program's own use, and read where the user says that it is trusted.

The file is a zip archive of the form that torch.save writes, `files/archive.py`: a pickle, and the memory of its
tensors beside it, so that tensors which share memory share it again, and large ones can be mapped. Classes of PyTorch's
are read as ours of the same name.
"""
from __future__ import annotations

import importlib
import io
import pickle
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..arrays.kinds import device_of, moved
from ..base.device import known
from ..base.errors import BadFile, CannotPickle
from ..base.torch_paths import our_path
from ..core.dtypes import of_array
from ..core.storage import Storage, memory_of, memory_offset
from ..sparse.tensor import SparseTensor
from ..tensors.copying import attributes_of
from ..tensors.tensor import Tensor
from ..tensors.typed_storage import TypedStorage
from .safe_unpickler import CONSTRUCTORS, STORAGES, TYPES, UNTYPED, Global, rebuilt, sparse, typed_storage
from .streams import Sink, pieces

# -------------------------------------------------------------------------------------------------------------- writing


def archive_of(value: Any, module: Any, protocol: int) -> Callable[[Sink], None]:
    """Pickle an object by a module such as Python's `pickle`, and return what writes an archive that holds it."""
    storages: dict[int, tuple[str, Storage]] = {}
    program = io.BytesIO()
    pickler = type("Pickler", (_Writer, (module or pickle).Pickler), {"storages": storages})
    try:
        pickler(program, protocol=protocol).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CannotPickle(f"save: {type(value).__name__} cannot be saved: {error}",
                           why="Python pickles what can be imported by its name",
                           fix="define its class or function at the top of a module, or save the tensors and numbers "
                               "that it is made of") from error
    return partial(_write, program.getvalue(), list(storages.values()))


def _write(program: bytes, storages: list[tuple[str, Storage]], sink: Sink) -> None:
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        _add(archive, "data.pkl", [program], len(program))
        _add(archive, "byteorder", [b"little"])
        _add(archive, "version", [b"3\n"])
        for key, storage in storages:
            _add(archive, f"data/{key}", pieces(moved(storage.buffer, None)), storage.buffer.nbytes)


def _add(archive: zipfile.ZipFile, name: str, content: Iterable[bytes | memoryview], size: int = 0) -> None:
    """Adds an entry. None has a date, so the same object is the same file."""
    info = zipfile.ZipInfo(f"archive/{name}")
    info.file_size, info.external_attr = size, 0o600 << 16
    with archive.open(info, "w") as entry:
        for piece in content:
            entry.write(piece)


class _Writer:
    """What is added to a pickler: tensors are windows, and storages are references to entries of the archive."""

    storages: dict[int, tuple[str, Storage]]

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, Storage):
            return None
        key, _ = self.storages.setdefault(id(value), (str(len(self.storages)), value))
        place = device_of(value.buffer)
        location = "cpu" if place is None else str(known(*place.name))
        return "storage", of_array(value.buffer.dtype), key, location, value.buffer.size

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, SparseTensor):
            return sparse, (f"torch.{value.layout.name}", _parts(value), value.requires_grad)
        if isinstance(value, Tensor) and type(value).__reduce_ex__ is Tensor.__reduce_ex__:
            return _reduced(value)
        if isinstance(value, TypedStorage):
            return typed_storage, (value._tensor,)
        inherited = getattr(super(), "reducer_override", None)
        return inherited(value) if inherited else NotImplemented


def _parts(x: SparseTensor) -> tuple[Any, ...]:
    """Return what a sparse tensor is made of."""
    *indices, (_, values) = x._shown()
    end = (tuple(x.shape), x.is_coalesced()) if x.is_sparse else (tuple(x.shape),)
    return (*(index for _, index in indices), values, *end)


def _reduced(tensor: Tensor) -> Any:
    array, memory = tensor._array, memory_of(tensor)
    item = array.itemsize
    window = memory_offset(tensor) // item, tuple(array.shape), tuple(step // item for step in array.strides)
    return rebuilt, (type(tensor), memory, tensor.dtype, *window, tensor.requires_grad), attributes_of(tensor)


# -------------------------------------------------------------------------------------------------------------- reading

def unpickle(program: bytes, load_storage: Callable[[Any], Any], module: Any, settings: dict[str, Any]) -> Any:
    """Run a pickle and return what it makes. It can do anything, so this is only for files that the user trusts."""
    reader = type("Unpickler", (_Reader, (module or pickle).Unpickler), {"persistent_load": staticmethod(load_storage)})
    return reader(io.BytesIO(program), **{"encoding": "utf-8", **settings}).load()


class _Reader:
    """What is added to an unpickler: PyTorch's names mean what has the same name here."""

    def find_class(self, module: str, name: str) -> Any:
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
    made = made if type(made) is kind else made.as_subclass(kind)
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
