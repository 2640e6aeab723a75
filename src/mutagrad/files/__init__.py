"""Saving and loading.

>>> import io
>>> import mutagrad as mg
>>> file = io.BytesIO()
>>> mg.save({"weight": mg.ones(2), "epoch": 3}, file)
>>> mg.load(io.BytesIO(file.getvalue()))
{'weight': tensor([1., 1.]), 'epoch': 3}

What is written is what torch.load reads: a zip archive of a pickle and of the memory of its tensors
(`files/torch_pickle.py`); or, on request, a safetensors file: arrays by name, and as text in its header whatever else
the object was made of (`files/header.py`). What is read are such files, by whomever, the older ones of PyTorch's
(`files/archive.py`, `files/old_archive.py`) and NumPy's (`files/numpy_files.py`). Nothing that a file names is run
(`files/safe_unpickler.py`), unless `weights_only=False` says that it may be.
"""
from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import IO, Any, TypeAlias

from ..base.device import device, place_named
from ..base.errors import BadArgument, BadFile, BadTarget, BadValue, CannotPickle, NoDevice, NotSupported
from .archive import Run, Source, read_archive
from .header import NoPlainData, Packer, Unpacker
from .limits import Looked, UsersError, damage, parsed
from .numpy_files import MAGIC, is_array_archive, read_array, read_arrays
from .old_archive import read_old_archive
from .safe_unpickler import Machine, unsafe_names
from .safetensors import Header, write
from .streams import Sink, write_file
from .torch_pickle import archive_of, unpickle

FILE_LIKE: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | device | str | dict[str, str] | None"

# --------------------------------------------------------------------------------------------------------------- saving

def save(obj: Any, f: FILE_LIKE, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False, *,
         format: str | None = None) -> None:
    """Write an object to a path or an open file, so that `torch.load` reads it, too.

    `format="safetensors"`, or a path that ends so, writes tensors, arrays, numbers, text and containers of these in
    that format, in which nothing can be run. Where something fails on the way, a file that was at that path before is
    still there, unchanged.

    >>> import mutagrad as mg
    >>> from io import BytesIO
    >>> file = BytesIO()  # or a path, such as "model.pt"
    >>> mg.save({"weight": mg.ones(2)}, file)
    >>> mg.load(BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not callable(getattr(f, "write", None)):
        raise BadTarget(f"save: expects a path or a file open for writing, got {type(f).__name__}",
                        fix="mutagrad.save(x, 'x.pt')")
    if format not in (None, "torch", "safetensors"):
        raise BadValue(f"save: there is no format {format!r}", fix="format='torch' or format='safetensors'")
    if format is None and isinstance(f, (str, os.PathLike)) and os.fsdecode(f).endswith(".safetensors"):
        format = "safetensors"
    writer = _plain_data(obj) if format == "safetensors" else archive_of(obj, pickle_module, pickle_protocol)
    if isinstance(f, (str, os.PathLike)):
        write_file(f, writer)
    else:
        writer(Sink(f))
        if callable(flush := getattr(f, "flush", None)):  # by which an object of the user's knows that this was all
            flush()


def _plain_data(obj: Any) -> Callable[[Sink], None]:
    """Prepare everything but the elements of tensors, so that what cannot be saved raises before a file is touched."""
    packer = Packer()
    try:
        description = json.dumps(packer.pack(obj))
    except NoPlainData as error:
        raise CannotPickle(f"save: {type(obj).__name__} cannot be saved as safetensors: it is, or holds, "
                           f"{error.args[0] if error.args else 'what is no plain data'}",
                           why="the format has tensors, and text for arrays, numbers and containers of such",
                           fix="format='torch', or a name that does not end in .safetensors") from None
    return partial(write, packer.arrays, {"format": "pt", "mutagrad": description})


# -------------------------------------------------------------------------------------------------------------- loading

@contextmanager
def _named(f: FILE_LIKE) -> Iterator[None]:
    """Errors name the file as the user does; the user's own are as they were raised."""
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", None)
    try:
        yield
    except (BadFile, NotSupported) as error:
        if isinstance(name, (str, bytes)):
            error.what = f"load: {os.fsdecode(name)}: {error.what.removeprefix('load: ')}"
            error.args = (error.what,)
        raise
    except OSError as error:
        if error.filename is None and isinstance(name, (str, bytes)):
            error.filename = name
        raise
    except UsersError as error:
        raise error.raised from None


def load(f: FILE_LIKE, map_location: MAP_LOCATION = None, pickle_module: Any = None, *,
         weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """Return what was saved to a path or an open file: by `mutagrad.save`, torch.save, safetensors, or NumPy.

    Nothing that a file names is run: one that names anything but plain data is refused, unless its names have been
    allowed with `serialization.add_safe_globals`. `weights_only=False` runs it, as Python's pickle does: it can do
    whatever a program can, so say that only of files from somebody you trust.

    >>> import mutagrad as mg
    >>> from io import BytesIO
    >>> file = BytesIO()  # or a path, such as "model.pt"
    >>> mg.save({"weight": mg.ones(2)}, file)
    >>> mg.load(BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.])}
    """
    trusted = weights_only is False or weights_only is None and pickle_module is not None
    if pickle_module is not None and not trusted:
        raise BadValue("load: weights_only=True with a pickle_module",
                       why="what another module would run cannot be known", fix="leave out one of them")
    run = _runner(trusted, pickle_module, pickle_load_args)
    if isinstance(f, (str, os.PathLike)):
        with _named(f), open(f, "rb") as file:
            source = Source(file if file.seekable() else io.BytesIO(file.read()), f, bool(mmap))
            return _load(source, _arrival(map_location), run, trusted)
    if not hasattr(f, "read"):
        raise BadTarget(f"load: expects a path or a file open for reading, got {type(f).__name__}",
                        fix="mutagrad.load('x.pt')")
    if mmap:
        raise BadValue("load: mmap=True with an open file", why="only a file with a name can be mapped",
                       fix="mutagrad.load(path, mmap=True)")
    with _named(f):
        start = f.tell() if hasattr(f, "seekable") and f.seekable() else None
        source = Source(f if start == 0 else io.BytesIO(f.read()), None, False)
        if not source.size:
            raise BadFile("load: there is nothing to read", fix="f.seek(0)",
                          why="this file is empty, or has been read or written up to its end")
        found = _load(source, _arrival(map_location), run, trusted)
    if start is not None and source.end is not None:
        f.seek(start + source.end)
    return found


def _runner(trusted: bool, pickle_module: Any, settings: dict[str, Any]) -> Run:
    """How the pickle in a file is read: by Python, or by a machine that knows plain data only."""
    if trusted:
        return lambda program, load_storage: unpickle(program, load_storage, pickle_module, settings)
    if settings.keys() - {"encoding"}:
        raise BadArgument(f"load: {', '.join(settings)} with weights_only=True",
                          why="only encoding= has a meaning for plain data",
                          fix="weights_only=False, if you trust the file")
    return lambda program, load_storage: Machine(load_storage, **settings).run(program)


def get_unsafe_globals_in_checkpoint(f: FILE_LIKE) -> list[str]:
    """Return the names in a file that `load` would refuse.

    >>> import mutagrad as mg
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> mg.save({"weight": mg.ones(2)}, file)
    >>> mg.serialization.get_unsafe_globals_in_checkpoint(BytesIO(file.getvalue()))
    []
    """
    found: list[str] = []

    def look(program: bytes, _: Any) -> Any:
        found.extend(unsafe_names(program))
        raise Looked

    with _named(f), open(f, "rb") if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file, suppress(Looked):
        _load(Source(file, None, False), _arrival("cpu"), look, False)
    return found


def _load(source: Source, arrival: Callable[[Any, str], Any], run: Run, trusted: bool) -> Any:
    head = source.bytes_at(0, min(source.size, 16)).tobytes()
    if head[:len(MAGIC)] == MAGIC:
        return read_array(source, arrival(None, "cpu"))
    if head[:2] == b"PK":
        if is_array_archive(source):
            return read_arrays(source, arrival(None, "cpu"))
        return read_archive(source, arrival, run, trusted)
    if head[8:9] == b"{":
        return _read_safetensors(source, arrival)
    if head[:1] == b"\x80":
        return read_old_archive(source, arrival, run, trusted)
    raise BadFile("load: this is neither a safetensors file nor one that torch.save or numpy.save wrote "
                  f"({source.size} bytes, beginning with {head!r})",
                  fix="mutagrad.save(x, path) and torch.save(x, path) write files that can be loaded")


def _arrival(map_location: MAP_LOCATION) -> Callable[[Any, str], Any]:
    """Return a function that tells where to what was at a place is to come: None for the CPU. It raises if that is not
    there. As in PyTorch, `map_location` is a place, a dict or a function."""
    if isinstance(map_location, str):
        map_location = device(map_location)

    def find(storage: Any, location: str) -> Any:
        place: Any = location
        if isinstance(map_location, dict):
            place = map_location.get(location, location)
        elif callable(map_location):
            try:
                moved = map_location(storage, location)
            except Exception as error:
                raise UsersError(error) from None
            place = location if moved is None else moved if isinstance(moved, (str, device)) else "cpu"
        elif map_location is not None:
            place = map_location
        try:
            if device(place).type != "meta":
                return place_named(place)
            raise NoDevice("meta")
        except NoDevice:
            raise NoDevice(f"load: Attempting to deserialize object on a {device(place).type.upper()} device: "
                           f"it was on {location}, and should come to {place}",
                           why="there is no such device", fix="mutagrad.load(f, map_location='cpu')") from None

    return find


def _read_safetensors(source: Source, arrival: Callable[[Any, str], Any]) -> Any:
    arrival(None, "cpu")
    with damage("safetensors file"):
        header = Header(source)
        source.end = header.end
        text = header.metadata.get("mutagrad", "").encode("utf-8", "surrogatepass")
        description = parsed(text) if text else {"dict": [[name, {"tensor": name}] for name in header.entries]}
        return Unpacker(header.array, len(text), arrival).unpack(description)
