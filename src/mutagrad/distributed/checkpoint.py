"""Checkpoints in parts, `torch.distributed.checkpoint`: each process writes what its devices hold.

    save({"model": model.state_dict(), "optimizer": optimizer}, checkpoint_id="step_100")
    load({"model": state, "optimizer": optimizer}, checkpoint_id="step_100")

A checkpoint is a folder: parts of tensors as files that NumPy reads, and `index.json`, which says the shape and type of
each tensor and which file holds which part. What is loaded may be placed in another way, over another number of
devices, or in the CPU's memory: of each file, only what is needed is read.
"""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import Any, Union

from ..arrays import np
from ..arrays.kinds import host, is_spread
from ..autograd.modes import no_grad
from ..base.errors import BadValue, NotSupported, ShapeError
from ..base.operands import Array
from ..base.sockets import socket
from ..core.factory import make
from ..core.storage import TensorBase
from . import all_gather_object, barrier, get_rank, get_world_size, is_initialized

__all__ = ["FileSystemReader", "FileSystemWriter", "load", "save"]

Path = Union[str, "os.PathLike[str]"]
Keys = tuple[Any, ...]
FORMAT = "mutagrad checkpoint 1"
_PLAIN = (bool, int, float, str, type(None))


class FileSystemWriter:
    """Names the folder of a checkpoint."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path


class FileSystemReader(FileSystemWriter):
    """Names the folder of a checkpoint."""


def _folder(name: str, checkpoint_id: Path | None, storage: Any) -> str:
    found = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)
    if found is None:
        raise BadValue(f"checkpoint.{name}: there is no folder", fix=f'{name}(state, checkpoint_id="step_100")')
    return os.path.abspath(os.fspath(found))


def _told(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _state(value: Any) -> Any:
    """A module or an optimizer stands for its state."""
    return value.state_dict() if hasattr(value, "load_state_dict") and hasattr(value, "state_dict") else value


# -------------------------------------------------------------------------------------------------------------- writing

def save(state_dict: dict[str, Any], *, checkpoint_id: Path | None = None, storage_writer: Any = None,
         planner: Any = None, process_group: Any = None, no_dist: bool = False) -> None:
    """Write a state of tensors, numbers and text, in dicts and lists. All processes have to call it.

    It is written under another name, and renamed when it is whole. The folder has to be one that all of them reach.
    """
    folder = _folder("save", checkpoint_id, storage_writer)
    rank, several = _processes(no_dist)
    partial = f"{folder}.partial"
    if rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
    if several:
        barrier()
    parts: dict[str, Any] = {}
    tensors: dict[str, Any] = {}
    values: list[Any] = []
    for keys, value in _leaves(_state(state_dict), ()):
        if not isinstance(value, TensorBase):
            values.append([list(keys), value])
            continue
        name = _told(keys)
        tensors[name] = {"keys": list(keys), "shape": list(value.shape), "dtype": str(value.dtype).rpartition(".")[2],
                         "parts": []}
        parts[name] = _write_parts(value, partial, f"{len(tensors):06d}.{rank}", rank)
    for each in _gathered(parts, several):
        for name, found in each.items():
            tensors[name]["parts"] += found
    if rank == 0:
        with open(os.path.join(partial, "index.json"), "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "tensors": tensors, "values": values}, file)
        _replace(partial, folder)
    if several:
        barrier()


def _processes(alone: bool) -> tuple[int, bool]:
    if alone or not is_initialized() or get_world_size() == 1:
        return 0, False
    return get_rank(), True


def _gathered(value: Any, several: bool) -> list[Any]:
    if not several:
        return [value]
    found: list[Any] = [None] * get_world_size()
    all_gather_object(found, value)
    return found


def _leaves(value: Any, keys: Keys) -> Any:
    """Yield what is in nested containers, and under which keys."""
    value = _state(value)
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, (str, int)):
                raise NotSupported(f"checkpoint.save: a key is of {type(key).__name__}: {key!r}", fix="a name")
            yield from _leaves(part, (*keys, key))
        if not value:
            yield keys, {}
    elif isinstance(value, (list, tuple)):
        for k, part in enumerate(value):
            yield from _leaves(part, (*keys, k))
        if not value:
            yield keys, []
    elif isinstance(value, (TensorBase, *_PLAIN)):
        yield keys, value
    else:
        raise NotSupported(f"checkpoint.save: {_told(keys)} is of type {type(value).__name__}",
                           why="a checkpoint has tensors, numbers and text, in dicts and lists",
                           fix="leave it out, or mutagrad.save")


def _write_parts(tensor: Any, folder: str, name: str, rank: int) -> list[Any]:
    """Write the parts of a tensor that this process is to write, and return where they lie."""
    array = tensor._array
    if is_spread(array):
        found = socket("mesh").shards(array)
    else:
        found = [(tuple(slice(0, n) for n in array.shape), host(array, "it is saved"))] if rank == 0 else []
    parts = []
    for k, (where, values) in enumerate(found):
        file = f"{name}.{k}.npy"
        np.save(os.path.join(folder, file), _as_numbers(np.ascontiguousarray(values).reshape(values.shape)))
        parts.append({"file": file, "start": [s.start or 0 for s in where], "shape": list(values.shape)})
    return parts


def _as_numbers(array: Array) -> Array:
    """Elements of a type that NumPy does not know, as whole numbers of their size."""
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


def _replace(new: str, old: str) -> None:
    """Put a folder in the place of another, which may not be there."""
    aside = f"{old}.old"
    shutil.rmtree(aside, ignore_errors=True)
    if os.path.exists(old):
        os.rename(old, aside)
    os.rename(new, old)
    shutil.rmtree(aside, ignore_errors=True)


# -------------------------------------------------------------------------------------------------------------- reading

def load(state_dict: dict[str, Any], *, checkpoint_id: Path | None = None, storage_reader: Any = None,
         planner: Any = None, process_group: Any = None, no_dist: bool = False) -> None:
    """Read a state into tensors that are there, in place, and put numbers and text into their dicts and lists.

    Modules and optimizers in `state_dict` load their state. An empty dict, as the state of a new optimizer, is filled
    with all that the checkpoint has there.
    """
    source = Checkpoint(_folder("load", checkpoint_id, storage_reader))
    missing: list[str] = []
    with no_grad():
        source.fill(state_dict, (), missing)
    if missing:
        raise BadValue(f"checkpoint.load: {len(missing)} values are not in {source.folder}: "
                       f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}",
                       why=f"it has {len(source.tensors)} tensors: {', '.join(list(source.tensors)[:5])} ...",
                       fix="leave them out of the state that is loaded")


class Checkpoint:
    """A folder that was saved."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
                index = json.load(file)
        except (OSError, ValueError) as error:
            raise BadValue(f"checkpoint.load: {folder} has no index.json that can be read", why=str(error),
                           fix="the folder that checkpoint.save has written") from None
        if index.get("format") != FORMAT:
            raise BadValue(f"checkpoint.load: {folder} is of the format {index.get('format')!r}", why=f"not {FORMAT!r}",
                           fix="the folder that checkpoint.save has written")
        self.tensors: dict[str, Any] = index["tensors"]
        self.values = {tuple(keys): value for keys, value in index["values"]}
        self.by_keys = {tuple(row["keys"]): name for name, row in self.tensors.items()}

    def fill(self, value: Any, keys: Keys, missing: list[str]) -> Any:
        """Return what was saved under these keys, in the form of what is there."""
        if hasattr(value, "load_state_dict") and hasattr(value, "state_dict"):
            value.load_state_dict(self.fill(value.state_dict(), keys, missing))
            return value
        if isinstance(value, dict):
            for key in list(value):
                value[key] = self.fill(value[key], (*keys, key), missing)
            return value if value else self.everything(keys)
        if isinstance(value, list):
            value[:] = [self.fill(part, (*keys, k), missing) for k, part in enumerate(value)]
            return value
        if isinstance(value, tuple):
            return type(value)([self.fill(part, (*keys, k), missing) for k, part in enumerate(value)])
        if isinstance(value, TensorBase):
            return self.read(value, keys, missing)
        if keys in self.values or keys in self.by_keys:
            return self.everything(keys)
        missing.append(_told(keys))
        return value

    def read(self, tensor: Any, keys: Keys, missing: list[str]) -> Any:
        """Read a tensor into the memory of one that is there."""
        if keys not in self.by_keys:
            missing.append(_told(keys))
            return tensor
        name = self.by_keys[keys]
        shape = tuple(self.tensors[name]["shape"])
        if shape != tensor.shape:
            raise ShapeError(f"checkpoint.load: {name} is of shape {shape}, and {tuple(tensor.shape)} is expected",
                             fix="a state of the model that was saved")
        reader = self.reader(name)
        array = tensor._array
        found = socket("mesh").filled(array, reader) if is_spread(array) else reader(tuple(slice(0, n) for n in shape))
        tensor.detach().copy_(make(found))
        return tensor

    def everything(self, keys: Keys) -> Any:
        """Return all that was saved under some keys, in the CPU's memory."""
        if keys in self.values:
            return self.values[keys]
        if keys in self.by_keys:
            name = self.by_keys[keys]
            return make(self.reader(name)(tuple(slice(0, n) for n in self.tensors[name]["shape"])))
        below = dict.fromkeys(k[len(keys)] for k in (*self.by_keys, *self.values) if len(k) > len(keys)
                              and k[:len(keys)] == keys)
        return {key: self.everything((*keys, key)) for key in below}

    def reader(self, name: str) -> Callable[[tuple[slice, ...]], Array]:
        """Return a function that reads a part of a tensor out of those files that have some of it."""
        row = self.tensors[name]
        dtype = getattr(socket("top"), row["dtype"]).array_type
        sizes = row["shape"]

        def read(where: tuple[slice, ...]) -> Array:
            spans = [s.indices(n)[:2] for s, n in zip(where, sizes)]
            out, count = np.empty([b - a for a, b in spans], dtype), 0
            for part in row["parts"]:
                both = [(max(a, s), min(b, s + n)) for (a, b), s, n in zip(spans, part["start"], part["shape"])]
                if all(a < b for a, b in both):
                    kept = self.file(name, part["file"])
                    piece = kept[tuple(slice(a - s, b - s) for (a, b), s in zip(both, part["start"]))]
                    out[tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(both, spans))] = (
                        piece if piece.dtype == dtype else np.ascontiguousarray(piece).view(dtype).reshape(piece.shape))
                    count += piece.size
            if count < out.size:
                raise BadValue(f"checkpoint.load: parts of {name} are missing in {self.folder}",
                               why=f"{count} of {out.size} elements were found", fix="a checkpoint that was finished")
            return out

        return read

    def file(self, name: str, file: str) -> Array:
        try:
            found: Array = np.load(os.path.join(self.folder, file), mmap_mode="r")
            return found
        except (OSError, ValueError) as error:
            raise BadValue(f"checkpoint.load: {file}, a part of {name}, cannot be read", why=str(error),
                           fix=f"the whole folder {self.folder}, with the files of all processes") from None
