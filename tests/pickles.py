"""Pickles written instruction by instruction, and the files that torch.save would put them into."""
from __future__ import annotations

import io
import pickle
import struct
import zipfile
from typing import Any

import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C


def name(module: str, attribute: str) -> bytes:
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    data = pickle.encode_long(value)
    return (b"\x8a" + bytes([len(data)]) if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data))) + data


def group(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def numbers(*values: int) -> bytes:
    return group(*map(number, values))


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + group(*arguments) + b"R"


def listed(*items: bytes) -> bytes:
    return b"](" + b"".join(items) + b"e"


def keyed(*keys: bytes) -> bytes:
    """A dictionary with None under each of these."""
    return b"}(" + b"".join(key + b"N" for key in keys) + b"u"


def put(index: int) -> bytes:
    return b"r" + struct.pack("<I", index)


def get(index: int) -> bytes:
    return b"j" + struct.pack("<I", index)


def storage(kind: str = "FloatStorage", key: str = "0", count: int = 6, place: str = "cpu", tail: bytes = b"") -> bytes:
    """A reference to a storage; the first format's has `tail=b"N"`."""
    return group(text("storage"), name("torch", kind), text(key), text(place), number(count), tail) + b"Q"


REBUILD = name("torch._utils", "_rebuild_tensor_v2")
EMPTY = call(name("collections", "OrderedDict"))


def tensor(cell: bytes | None = None, offset: int = 0, size: Any = (2, 3), stride: Any = (3, 1), hooks: bytes = EMPTY,
    marks: bytes = b"",
           **settings: Any) -> bytes:
    return call(REBUILD, cell or storage(**settings), number(offset), numbers(*size), numbers(*stride), b"\x89", hooks,
        marks)


def archive(program: bytes, root: str = "archive", order: bytes = b"little", compression: int = zipfile.ZIP_STORED,
    **entries: bytes) -> bytes:
    """A file as torch.save writes it, with a storage of six floats."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as made:
        made.writestr(f"{root}/data.pkl", b"\x80\x02" + program + b".")
        made.writestr(f"{root}/byteorder", order)
        content = {"0": np.arange(6, dtype="<f4" if order != b"big" else ">f4").tobytes()} | {k.lstrip("_"): v for k,
            v in entries.items()}
        for key, value in content.items():
            made.writestr(f"{root}/data/{key}", value)
        made.writestr(f"{root}/version", b"3\n")
    return target.getvalue()


def old_archive(program: bytes, names: Any = ("0",), data: bytes | None = None) -> bytes:
    """The same in the format that torch.save had before PyTorch 1.6."""
    head = b"".join(pickle.dumps(value, 2) for value in (MAGIC, 1001, {"little_endian": True}))
    keys = names if isinstance(names, bytes) else pickle.dumps(list(names), 2)
    return head + b"\x80\x02" + program + b"." + keys + (struct.pack("<q", 6) + np.arange(6, dtype="<f4").tobytes()
        if data is None else data)
