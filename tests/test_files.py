"""Saving and loading: every kind of value comes back, a crash leaves the old file, and no file can do harm."""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import pickle
import random
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import files
from mutagrad.errors import BadFile

pytest.importorskip("safetensors", reason="the extra `files` brings it")
TYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
Point = namedtuple("Point", "x y")


def around(value: Any) -> Any:
    """Saved and loaded."""
    file = io.BytesIO()
    mg.save(value, file)
    file.seek(0)
    return mg.load(file)


def equal(a: mg.Tensor, b: mg.Tensor) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape and mg.equal(a, b)


def shares(a: mg.Tensor, b: mg.Tensor) -> bool:
    return np.shares_memory(a._array, b._array)


# ---------------------------------------------------------------------------------------------------------------- round trips

@pytest.mark.smoke
@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back(name: str) -> None:
    kind = getattr(mg, name)
    for x in (mg.arange(6).reshape(2, 3).to(kind), mg.tensor(1).to(kind), mg.zeros(0, 3).to(kind), mg.arange(24).reshape(2, 3, 4).to(kind).transpose(0, 2)[1:],
              mg.tensor([1, 0]).to(kind).expand(3, 2)):
        assert equal(around(x), x)
        assert equal(around({"x": [x]})["x"][0], x)


def test_plain_values_come_back() -> None:
    values = {"none": None, "yes": True, "number": 3, "large": 2**80, "float": 0.1, "inf": -math.inf, "text": 'a "quoted" \ud800 ü', "list": [1, [2, []]],
              "tuple": (1, (), "x"), "size": mg.Size([2, 3]), "dtype": mg.bfloat16, "bool": mg.bool, "device": mg.device("cpu"), "complex": 1 - 2j,
              "odd": complex(math.inf, -0.0), "bytes": b"\x00\xff", "set": {1, "a"}, 3: "key", (1, "a"): None, None: 1, 2.5: 1, True: 0, "empty": {}}
    found = around(values)
    assert found == values and list(found) == list(values)
    assert type(found["size"]) is mg.Size and type(found["yes"]) is bool and type(found["float"]) is float and str(found["odd"]) == str(values["odd"])
    assert math.isnan(around(math.nan)) and around([]) == [] and around({}) == {} and around(5) == 5 and around(None) is None
    named = around([Point(1, mg.ones(1)), Point(2, 3)])
    assert named[1] == (2, 3) and named[0].y.item() == 1 and type(named[0]) is type(named[1]) and type(named[0]).__name__ == "Point"
    ordered = around(OrderedDict(b=1, a=2))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]


def test_names_that_collide() -> None:
    value = {"a.b": mg.tensor(1), "a": {"b": mg.tensor(2)}, "__metadata__": mg.tensor(3), "": mg.tensor(4), "tensor": mg.tensor(5), "a.b#2": mg.tensor(6)}
    found = around(value)
    assert [found[k].item() for k in ("a.b", "__metadata__", "", "tensor", "a.b#2")] == [1, 3, 4, 5, 6] and found["a"]["b"].item() == 2


def test_gradients_and_parameters() -> None:
    found = around({"leaf": mg.ones(2, requires_grad=True), "plain": mg.ones(2), "computed": mg.ones(2, requires_grad=True) * 2,
                    "parameter": mg.nn.Parameter(mg.ones(2)), "frozen": mg.nn.Parameter(mg.ones(2), False)})
    assert [t.requires_grad for t in found.values()] == [True, False, True, True, False] and all(t.is_leaf for t in found.values())
    assert [type(t) is mg.nn.Parameter for t in found.values()] == [False, False, False, True, True]
    (found["leaf"] * found["parameter"]).sum().backward()
    assert found["leaf"].grad.tolist() == [1.0, 1.0]


def test_shared_memory_is_shared_again() -> None:
    base = mg.arange(12.0)
    found = around({"row": base.reshape(3, 4)[1], "base": base, "matrix": base.reshape(3, 4), "columns": base.reshape(3, 4).T, "bits": base.view(mg.int32), "other": mg.ones(2)})
    found["base"][4] = -1.0
    assert found["row"].tolist() == [-1.0, 5.0, 6.0, 7.0] and found["matrix"][1, 0].item() == found["columns"][0, 1].item() == -1.0
    assert found["bits"][4].item() == mg.tensor(-1.0).view(mg.int32).item() and not shares(found["base"], found["other"])
    overlapping = around([base[:8], base[4:]])
    assert shares(*overlapping) and overlapping[1].tolist() == list(range(4, 12))
    apart = around([base[:4], base[8:]])
    assert not shares(*apart) and apart[1].tolist() == [8, 9, 10, 11]
    pair = mg.tensor([1 + 2j, 3 + 4j], dtype=mg.complex128)
    both = around([pair, pair.real, pair[1:]])
    both[0][1] = 7 - 1j
    assert both[1].tolist() == [1.0, 7.0] and both[2].item() == 7 - 1j
    twice = around([base, base])
    assert twice[0] is twice[1]


def test_a_small_part_of_a_large_tensor_makes_a_small_file(tmp_path: Any) -> None:
    mg.save({"part": mg.zeros(100_000)[5:9]}, tmp_path / "small")
    assert os.path.getsize(tmp_path / "small") < 1000


def test_tied_weights_end_to_end(tmp_path: Any) -> None:
    def model() -> Any:
        made = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.ReLU(), mg.nn.Linear(3, 3))
        made[2].weight = made[0].weight
        return made

    first, second = model(), model()
    path = tmp_path / "model.pt"
    mg.save({"model": first.state_dict(), "epoch": 3}, path)
    found = mg.load(path)
    assert found["epoch"] == 3 and type(found["model"]) is OrderedDict and shares(found["model"]["0.weight"], found["model"]["2.weight"])
    assert found["model"]._metadata == first.state_dict()._metadata
    assert not second.load_state_dict(found["model"]).missing_keys
    x = mg.randn(2, 3)
    assert mg.equal(first(x), second(x))


def test_a_plain_state_dict_is_a_plain_safetensors_file(tmp_path: Any) -> None:
    numpy_form = pytest.importorskip("safetensors.numpy")
    mg.save(OrderedDict(weight=mg.ones(2, 3), bias=mg.zeros(2)), tmp_path / "a.safetensors")
    found = numpy_form.load_file(tmp_path / "a.safetensors")
    assert sorted(found) == ["bias", "weight"] and found["weight"].shape == (2, 3)
    numpy_form.save_file({"x": np.arange(6).reshape(2, 3), "flag": np.array([True]), "z": np.array(1j, "complex64")}, tmp_path / "b.safetensors", {"made": "by hand"})
    for mapped in (False, True):
        theirs = mg.load(tmp_path / "b.safetensors", mmap=mapped)
        assert theirs["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and theirs["flag"].dtype is mg.bool and theirs["z"].item() == 1j


# --------------------------------------------------------------------------------------------------------- files and failures

def test_paths_and_files(tmp_path: Any) -> None:
    x, path = mg.arange(5), tmp_path / "x.pt"
    mg.save(x, str(path))
    assert equal(mg.load(path), x) and equal(mg.load(str(path), mmap=True), x)
    with open(path, "rb") as file:
        assert equal(mg.load(file), x)
    with open(tmp_path / "y", "wb") as file:
        file.write(b"before")
        mg.save(x, file)
    with open(tmp_path / "y", "rb") as file:
        file.read(6)
        assert equal(mg.load(file), x)
    with gzip.open(tmp_path / "z", "wb") as file:
        mg.save(x, file)
    with gzip.open(tmp_path / "z", "rb") as file:
        assert equal(mg.load(file), x)
    mg.save(x, os.devnull)
    for bad in (3, None):
        with pytest.raises(TypeError):
            mg.save(x, bad)
        with pytest.raises(TypeError):
            mg.load(bad)
    with pytest.raises(FileNotFoundError):
        mg.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        mg.save(x, tmp_path / "no folder" / "x")
    with pytest.raises(ValueError, match="mmap"):
        mg.load(io.BytesIO(), mmap=True)


def test_a_mapped_file_is_not_written(tmp_path: Any) -> None:
    mg.save({"x": mg.zeros(1000), "y": mg.zeros(0)}, tmp_path / "x")
    found = mg.load(tmp_path / "x", mmap=True)
    found["x"][3] = 5.0
    assert found["x"].sum().item() == 5.0 and mg.load(tmp_path / "x")["x"].sum().item() == 0.0 and found["y"].shape == (0,)


def test_the_old_file_is_replaced_with_its_mode_and_through_links(tmp_path: Any) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    mg.save(mg.zeros(1), path)
    os.chmod(path, 0o600)
    link.symlink_to(path)
    mg.save(mg.ones(1), link)
    assert mg.load(path).item() == 1 and link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(where: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mg.save(mg.zeros(3), tmp_path / "x")

    def full(*_: Any) -> None:
        if where == "write":
            _[0].write(_[1][:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*{"write": (files, "write_all"), "fsync": (os, "fsync"), "replace": (os, "replace")}[where], full)
    with pytest.raises(OSError, match="No space"):
        mg.save(mg.ones(3), tmp_path / "x")
    monkeypatch.undo()
    assert mg.load(tmp_path / "x").tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["x"]


def child(tmp_path: Any, body: str) -> subprocess.CompletedProcess[str]:
    code = "import os, resource, signal, sys, mutagrad as mg\nfrom mutagrad import files\n" + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True, timeout=60)


def test_a_real_limit_on_the_size_of_files(tmp_path: Any) -> None:
    pytest.importorskip("resource")
    mg.save(mg.zeros(3), tmp_path / "x")
    done = child(tmp_path, """
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            mg.save(mg.ones(100_000), sys.argv[1])
        except OSError as error:
            print(error.errno)
    """)
    assert done.stdout.strip() == str(errno.EFBIG), done.stderr
    assert mg.load(tmp_path / "x").tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["x"]


def test_a_program_killed_while_it_saves_leaves_the_old_file(tmp_path: Any) -> None:
    mg.save(mg.zeros(3), tmp_path / "x")
    done = child(tmp_path, """
        def half(file, data):
            file.write(data[:len(data) // 2])
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        files.write_all = half
        mg.save(mg.ones(100_000), sys.argv[1])
    """)
    assert done.returncode == -signal.SIGKILL and mg.load(tmp_path / "x").tolist() == [0, 0, 0]


class Thing:
    pass


@pytest.mark.parametrize("make, path, fix", [
    (lambda: {"model": mg.nn.Linear(1, 1)}, r"checkpoint\['model'\] is a module, Linear", r"checkpoint\['model'\]\.state_dict\(\)"),
    (lambda: {"a": [1, {"f": len}]}, r"checkpoint\['a'\]\[1\]\['f'\] is the function len", "leave"),
    (lambda: Thing, "the class Thing", ""), (lambda: [Thing()], r"checkpoint\[0\] is of type .*Thing", ""), (lambda: lambda: 1, "function", ""),
    (lambda: {"x": np.array(["a"])}, "numpy.ndarray", "tolist"), (lambda: {"x": defaultdict(Thing)}, "defaultdict", "dict"), (lambda: {Thing(): 1}, "key", ""),
    (lambda: {"n": [slice(1)]}, "slice", "")])
def test_what_cannot_be_saved(make: Any, path: str, fix: str, tmp_path: Any) -> None:
    with pytest.raises(TypeError, match=path) as found:
        mg.save(make(), tmp_path / "x")
    assert pytest.importorskip("re").search(fix, found.value.fix) and os.listdir(tmp_path) == []


def test_what_training_programs_keep_beside_tensors() -> None:
    file = io.BytesIO()
    history = defaultdict(list, {"loss": [0.5, mg.ones(2)]})
    every = np.arange(6.0).reshape(2, 3)
    mg.save({"args": Namespace(lr=0.1, layers=(1, 2)), "best": np.float32(0.5), "every": every, "other": every[:, ::2], "history": history,
             "last": deque([1, 2], maxlen=2), "z": np.array(1j), "yes": np.bool_(True)}, file, pickle_protocol=4)
    found = mg.load(io.BytesIO(file.getvalue()))
    assert found["args"] == Namespace(lr=0.1, layers=(1, 2)) and type(found["best"]) is np.float32 and found["best"] == 0.5 and found["yes"] is np.True_
    assert type(found["every"]) is np.ndarray and (found["every"] == every).all() and (found["other"] == every[:, ::2]).all() and found["z"] == 1j
    assert found["history"]["none"] == [] and found["history"]["loss"][1].tolist() == [1, 1]
    assert found["last"] == deque([1, 2]) and found["last"].maxlen == 2


@pytest.mark.parametrize("part", [{"ndarray": [1]}, {"scalar": 1}, {"Namespace": [1]}, {"deque": 3}, {"defaultdict": ["eval", {"dict": []}]}, {"deque": [[], "a"]}])
def test_parts_that_are_not_what_they_should_be(part: Any) -> None:
    data = pytest.importorskip("safetensors.numpy").save({}, metadata={"format": "pt", "mutagrad": json.dumps(part)})
    with pytest.raises(BadFile):
        mg.load(io.BytesIO(data))


def test_a_structure_within_itself_cannot_be_saved() -> None:
    circle: list[Any] = []
    circle.append({"again": circle})
    with pytest.raises(ValueError, match="levels deep"):
        mg.save(circle, io.BytesIO())


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    files._safetensors.cache_clear()
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"mutagrad\[files\]"):
        mg.save(mg.ones(1), io.BytesIO())
    files._safetensors.cache_clear()


def test_the_library_is_found_when_first_used() -> None:
    code = "import sys, mutagrad; print([n for n in ('safetensors', 'mutagrad.files', 'mutagrad.pickled', 'zipfile') if n in sys.modules and n != 'zipfile'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------- damaged safetensors files

def raw(header: Any, data: bytes = b"") -> io.BytesIO:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(struct.pack("<Q", len(text)) + text + data)


def described(structure: Any, **arrays: Any) -> io.BytesIO:
    """A file with one array of 4 floats and this structure."""
    return raw({"__metadata__": {"mutagrad": structure if isinstance(structure, str) else json.dumps(structure)},
                "t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, **arrays}, bytes(16))


VIEW = {"tensor": "t", "dtype": "float32", "size": [2], "stride": [1], "offset": 0}


@pytest.mark.parametrize("file", [
    io.BytesIO(b""), io.BytesIO(b"\x00"), io.BytesIO(b"hello world, this is text"), io.BytesIO(bytes(100)), io.BytesIO(b"\x89PNG\r\n\x1a\n" + bytes(20)),
    io.BytesIO(struct.pack("<Q", 1 << 62) + b"{}"), io.BytesIO(struct.pack("<Q", 100) + b"{}"), raw(b"{"), raw(b"{nonsense"), raw(b'{"a":' * 20000),
    raw({"t": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 16]}}, bytes(16)),
    raw({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 1 << 50]}}, bytes(16)),
    raw({"t": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}, bytes(16)), raw({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, bytes(15)),
    raw({"t": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, bytes(16)), raw({"t": {"dtype": "F32", "shape": [3], "data_offsets": [0, 16]}}, bytes(16)),
    raw({"t": {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]}}, bytes(16)), raw({"t": 3}), raw({"t": {}}), raw({"__metadata__": 3}),
    described("nonsense"), described("[" * 50000), described({"tensor": "u"}), described({"tensor": ["t"]}), described({"exec": "1"}), described({}), described({"tuple": 3}),
    described({"dtype": "object"}), described({"dtype": ["float32"]}), described({"device": "moon"}), described({"namedtuple": ["x; import os", ["a"], [1]]}),
    described({"namedtuple": ["x", ["__class__"], [1]]}), described({"dict": [[{"dict": []}, 1]]}), described({"dict": [[1]]}), described({"bytes": "?"}),
    described({"Size": ["a"]}), described({"tensor": "t", "of": "complex128"}), described({**VIEW, "size": [1 << 40]}), described({**VIEW, "offset": 3}),
    described({**VIEW, "offset": -1}), described({**VIEW, "stride": [-1]}), described({**VIEW, "stride": [4]}), described({**VIEW, "stride": []}),
    described({**VIEW, "dtype": "float64", "offset": 1}), described({**VIEW, "size": ["2"]}), described({**VIEW, "size": [1 << 61, 1 << 61], "stride": [0, 0]})])
def test_damaged_safetensors(file: io.BytesIO) -> None:
    tracemalloc.start()
    try:
        for kind in (ValueError, RuntimeError):
            file.seek(0)
            with pytest.raises(kind) as found:
                mg.load(file)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert isinstance(found.value, BadFile)


def test_a_window_in_a_file_of_ours() -> None:
    assert mg.load(described([VIEW, {"tensor": "t"}]))[0].shape == (2,)


def test_a_type_that_is_not_supported_is_named() -> None:
    with pytest.raises(NotImplementedError, match="F8_E4M3"):
        mg.load(raw({"t": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)))


def test_booleans_other_than_0_and_1() -> None:
    found = mg.load(raw({"t": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\x00\x01\x07"))["t"]
    assert found.tolist() == [False, True, True] and found.sum().item() == 2


def test_bytes_changed_at_random_do_no_harm() -> None:
    file = io.BytesIO()
    mg.save({"a": mg.arange(3.0), "b": (1, "x", mg.arange(4).view(2, 2).T)}, file)
    survive(file.getvalue(), 300)


def survive(data: bytes, times: int) -> None:
    """Loading damaged copies raises our error or gives something; it never raises anything else."""
    source = random.Random(0)
    for _ in range(times):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 10])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        if source.random() < 0.2:
            del damaged[source.randrange(len(damaged)):]
        try:
            mg.load(io.BytesIO(bytes(damaged)))
        except mg.MutagradError as error:
            assert str(error)


# ---------------------------------------------------------------------------------------------------- PyTorch's checkpoints

def name(module: str, attribute: str) -> bytes:
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    data = pickle.encode_long(value)
    return b"\x8a" + bytes([len(data)]) + data


def group(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def numbers(*values: int) -> bytes:
    return group(*map(number, values))


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + group(*arguments) + b"R"


def storage(kind: str = "FloatStorage", key: str = "0", count: int = 6, place: str = "cpu") -> bytes:
    return group(text("storage"), name("torch", kind), text(key), text(place), number(count)) + b"Q"


REBUILD = name("torch._utils", "_rebuild_tensor_v2")
EMPTY = call(name("collections", "OrderedDict"))


def tensor(cell: bytes | None = None, offset: int = 0, size: Any = (2, 3), stride: Any = (3, 1), hooks: bytes = EMPTY, **settings: Any) -> bytes:
    return call(REBUILD, cell or storage(**settings), number(offset), numbers(*size), numbers(*stride), b"\x89", hooks)


def archive(program: bytes, root: str = "archive", order: bytes = b"little", compression: int = zipfile.ZIP_STORED, **entries: bytes) -> bytes:
    """A file as torch.save writes it, with a storage of six floats."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as made:
        made.writestr(f"{root}/data.pkl", b"\x80\x02" + program + b".")
        made.writestr(f"{root}/byteorder", order)
        content = {"0": np.arange(6, dtype="<f4" if order != b"big" else ">f4").tobytes()} | {k.lstrip("_"): v for k, v in entries.items()}
        for key, value in content.items():
            made.writestr(f"{root}/data/{key}", value)
        made.writestr(f"{root}/version", b"3\n")
    return target.getvalue()


def loaded(program: bytes, **settings: Any) -> Any:
    return mg.load(io.BytesIO(archive(program, **settings)))


def test_a_tensor_of_pytorch(tmp_path: Any) -> None:
    assert loaded(tensor()).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded(tensor(), root="other", order=b"big").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded(tensor(offset=1, size=(2,), stride=(3,))).tolist() == [1, 4]
    assert loaded(tensor(offset=1, size=(2, 2), stride=(0, 1))).tolist() == [[1, 2], [1, 2]]
    assert loaded(tensor(size=(), stride=())).shape == () and loaded(tensor(size=(0, 5), stride=(5, 1))).shape == (0, 5)
    (tmp_path / "x.pt").write_bytes(archive(tensor()))
    mapped = mg.load(tmp_path / "x.pt", mmap=True)
    mapped[0, 0] = 9.0
    assert mapped[1, 2].item() == 5.0 and mg.load(tmp_path / "x.pt")[0, 0].item() == 0.0


def test_plain_values_of_pytorch() -> None:
    program = b"}(" + b"".join([
        text("a"), b"]" + b"(K\x01G" + struct.pack(">d", 0.5) + b"e", text("b"), group(b"N", b"\x88", b"\x89"), text("size"), call(name("torch", "Size"), numbers(2, 3)),
        text("dtype"), name("torch", "bfloat16"), text("device"), call(name("torch", "device"), text("cuda"), number(1)),
        text("complex"), call(name("__builtin__", "complex"), b"G" + struct.pack(">d", 1), b"G" + struct.pack(">d", 2)),
        text("bytes"), call(name("_codecs", "encode"), text("\xff"), text("latin1")), text("set"), call(name("__builtin__", "set"), b"](K\x01K\x02e"),
        text("array"), call(name("__builtin__", "bytearray"), text("ab"), text("latin-1")), text("count"), call(name("collections", "Counter"), b"}" + text("x") + b"K\x03s"),
        text("again"), b"]q\x05h\x05a", number(7), number(-(2**70))]) + b"u"
    found = loaded(program)
    assert found["a"] == [1, 0.5] and found["b"] == (None, True, False) and found["size"] == mg.Size([2, 3]) and found["dtype"] is mg.bfloat16
    assert found["device"] == mg.device("cuda", 1) and found["complex"] == 1 + 2j and found["bytes"] == b"\xff" and found["set"] == {1, 2}
    assert found["array"] == bytearray(b"ab") and found["count"] == Counter(x=3) and found["again"][0] is found["again"] and found[7] == -(2**70)


def test_parameters_attributes_and_shared_storages() -> None:
    parameter = call(name("torch._utils", "_rebuild_parameter"), tensor(), b"\x88", EMPTY)
    found = loaded(b"](" + parameter + tensor(size=(6,), stride=(1,)) + tensor(offset=3, size=(3,), stride=(1,)) + b"e")
    assert type(found[0]) is mg.nn.Parameter and found[0].requires_grad and shares(found[0], found[1]) and shares(found[0], found[2])
    with mg.no_grad():
        found[0][1, 0] = -1.0
    assert found[2].tolist() == [-1, 4, 5]
    state = b"}" + text("tag") + text("hello") + b"s"
    tagged = loaded(call(name("torch._tensor", "_rebuild_from_type_v2"), REBUILD, name("torch", "Tensor"),
                         group(storage(), number(0), numbers(6), numbers(1), b"\x89", EMPTY), state))
    assert tagged.tag == "hello"
    conjugate = b"}" + text("conj") + b"\x88s"
    z = loaded(call(REBUILD, storage("ComplexFloatStorage", count=3), number(0), numbers(3), numbers(1), b"\x89", EMPTY, conjugate))
    assert z.tolist() == [-1j, 2 - 3j, 4 - 5j]
    new = loaded(call(name("torch._utils", "_rebuild_tensor_v3"), group(text("storage"), name("torch.storage", "UntypedStorage"), text("0"), text("cpu"), number(24)) + b"Q",
                      number(0), numbers(12), numbers(1), b"\x89", EMPTY, name("torch", "uint16")))
    assert new.dtype is mg.uint16 and new.shape == (12,)


def test_the_metadata_of_a_state_dict() -> None:
    metadata = b"}" + text("_metadata") + call(name("collections", "OrderedDict")) + b"sb"
    assert loaded(EMPTY + metadata)._metadata == {}


def test_where_tensors_were() -> None:
    data = archive(tensor(place="cuda:1"))
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        mg.load(io.BytesIO(data))
    for place in ("cpu", mg.device("cpu"), {"cuda:1": "cpu"}, lambda storage, location: storage):
        assert mg.load(io.BytesIO(data), map_location=place).shape == (2, 3)
    for place in ("cuda", {"cpu": "cuda"}, lambda storage, location: None):
        with pytest.raises(RuntimeError):
            mg.load(io.BytesIO(data), place)
    file = io.BytesIO()
    mg.save(mg.ones(1), file)
    with pytest.raises(RuntimeError):
        mg.load(file, "cuda")


RAN: list[str] = []


class Evil:
    def __reduce__(self) -> Any:
        return RAN.append, ("ran",)


class Config:
    def __init__(self, width: int) -> None:
        self.width = width


class Slotted:
    __slots__ = ("width",)


def configured(value: Any, protocol: int = 2) -> bytes:
    return archive(pickle.dumps(value, protocol)[2:-1])


@pytest.mark.parametrize("module, attribute", [("os", "system"), ("posix", "system"), ("builtins", "eval"), ("__builtin__", "exec"), ("builtins", "getattr"), ("sys", "exit"),
                                               ("subprocess", "Popen"), ("torch", "load"), ("torch.hub", "load"), ("numpy.core.multiarray", "_reconstruct"),
                                               ("collections", "OrderedDict.__init__"), ("test_files", "Config"), ("builtins", "list"), ("torch.", "Size"), ("", "")])
def test_a_name_that_is_not_allowed_is_refused(module: str, attribute: str) -> None:
    for program in (call(name(module, attribute), text("echo harm")), text(module) + text(attribute) + b"\x93(tR", name(module, attribute)):
        for kind in (pickle.UnpicklingError, ValueError, RuntimeError):
            with pytest.raises(kind, match="not allowed") as found:
                loaded(program)
        assert f"{module.replace('__builtin__', 'builtins')}.{attribute}" in str(found.value)
    with pytest.raises(pickle.UnpicklingError):
        mg.load(io.BytesIO(configured({"x": Evil()})), weights_only=False)
    assert not RAN


def test_names_that_the_user_allows() -> None:
    for protocol in (2, 4):
        data = configured({"config": Config(3), "class": Config, "dict": OrderedDict(a=1)}, protocol)
        with pytest.raises(pickle.UnpicklingError, match="Config"):
            mg.load(io.BytesIO(data))
        with mg.serialization.safe_globals([Config, (__import__("copyreg")._reconstructor, "copyreg._reconstructor")]):
            found = mg.load(io.BytesIO(data))
            assert type(found["config"]) is Config and found["config"].width == 3 and found["class"] is Config
        with pytest.raises(pickle.UnpicklingError):
            mg.load(io.BytesIO(data))
    slotted = Slotted()
    slotted.width = 4
    mg.serialization.add_safe_globals([Slotted])
    try:
        assert mg.serialization.get_safe_globals() == [Slotted] and mg.load(io.BytesIO(configured([slotted])))[0].width == 4
        with pytest.raises(pickle.UnpicklingError):  # what is allowed is called, what is not is not
            mg.load(io.BytesIO(configured([slotted, Evil()])))
    finally:
        mg.serialization.clear_safe_globals()
    assert not RAN and mg.serialization.get_safe_globals() == []
    for bad in ((1,), 3):
        with pytest.raises((TypeError, ValueError)):
            mg.serialization.add_safe_globals([bad])


DEEP = b"K\x01" + b"".join(b"\x85" for _ in range(50))
LAUGHS = b"K\x01\x85" + b"".join(b"q%c(h%ch%ct" % (k, k, k) for k in range(1, 60))


@pytest.mark.parametrize("program", [
    b"", b"0", b"R", b"N(tR", b"K\x01K\x02a", b"}K\x01s", b"N(K\x01u", b"t", b"e", b"h\x07", b"q\x01", b"j\xff\xff\xff\xff", b"Nr\xff\xff\xff\xffK\x01K\x02s",
    b"\x8b\xff\xff\xff\x7f", b"X\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8, b"B\xff\xff\xff\xff", b"I" + b"9" * 6000 + b"\n", b"(ios\nsystem\n", b"(cos\nsystem\no",
    b"\x82\x01", b"\x97", b"P0\n", b"NQ", numbers(1, 2) + b"Q", name("torch", "FloatStorage"), storage(),
    call(name("torch", "FloatStorage")), call(name("torch", "float32")), call(name("torch", "Tensor")), call(text("eval"), text("1")), call(tensor(), b"N"),
    name("torch", "Size") + b"(tK\x01R", name("collections", "OrderedDict") + b"}" + text("__class__") + b"K\x01sb", EMPTY + b"}" + text("update") + b"K\x01sb",
    tensor() + b"}" + text("_array") + b"K\x01sb", b"]}" + text("append") + b"K\x01sb", b"](}u", call(name("__builtin__", "bytearray"), number(1 << 40)),
    call(name("torch", "Size"), numbers(-1)), call(name("torch", "Size"), group(text("a"))), call(name("torch", "device"), text("moon")), call(name("torch", "device"), number(0)),
    call(name("__builtin__", "complex"), text("1")), call(name("__builtin__", "set"), b"]]a"), b"}" + DEEP + b"Ns", b"}" + LAUGHS + b"Ns", b"\x8f(" + LAUGHS + b"\x90",
    call(name("__builtin__", "set"), b"]" + LAUGHS + b"a"), call(name("collections", "OrderedDict"), b"](" + group(LAUGHS, b"N") + b"e"), call(name("_codecs", "encode"), text("a"), text("rot13")),
    tensor(count=7), tensor(count=1 << 40), tensor(count=-1), tensor(key="1"), tensor(key="../data.pkl"), tensor(key="/etc/passwd"), tensor(kind="DoubleStorage"),
    tensor(size=(3, 3)), tensor(offset=1), tensor(offset=-1), tensor(stride=(-3, 1)), tensor(size=(-2, 3)), tensor(size=(1 << 40, 1 << 40), stride=(0, 0)), tensor(stride=(1 << 61, 1 << 61)),
    tensor(size=(2,)), tensor(size=(1,) * 70, stride=(1,) * 70), tensor(size=(1 << 70,)), tensor(hooks=b"]K\x01a"), tensor(cell=b"N"), tensor(cell=text("x")),
    b"](" + tensor() + tensor(kind="IntStorage") + b"e", call(name("torch._utils", "_rebuild_parameter"), b"N", b"\x88", EMPTY),
    call(name("torch._utils", "_rebuild_tensor_v3"), storage(), number(0), numbers(6), numbers(1), b"\x89", EMPTY, text("float32")),
    call(name("torch._tensor", "_rebuild_from_type_v2"), name("collections", "OrderedDict"), name("torch", "Tensor"), b")", b"N"),
    call(name("torch._tensor", "_rebuild_from_type_v2"), REBUILD, name("torch", "Size"), group(storage(), number(0), numbers(6), numbers(1), b"\x89", EMPTY), b"N"),
    call(name("torch._tensor", "_rebuild_from_type_v2"), REBUILD, name("torch", "Tensor"), group(storage(), number(0), numbers(6), numbers(1), b"\x89", EMPTY), b"}" + text("backward") + b"K\x01s"),
    call(name("torch.serialization", "_get_layout"), text("torch.sparse_coo")), call(name("torch._utils", "_rebuild_sparse_tensor"), b"N", b"N")])
def test_a_hostile_pickle_is_refused(program: bytes) -> None:
    tracemalloc.start()
    try:
        for kind in (pickle.UnpicklingError, ValueError, RuntimeError):
            with pytest.raises(kind) as found:
                loaded(program)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert isinstance(found.value, BadFile) and str(found.value)


def test_a_long_way_down_is_no_harm() -> None:
    depth = 30_000
    assert len(loaded(b"]" * depth + b"a" * (depth - 1))) == 1


def test_hostile_archives() -> None:
    bomb = archive(tensor(count=10_000_000), compression=zipfile.ZIP_DEFLATED, _0=bytes(40_000_000))
    good = archive(tensor())
    two = io.BytesIO()
    with zipfile.ZipFile(two, "w") as made:
        made.writestr("a/data.pkl", b"N.")
        made.writestr("b/data.pkl", b"N.")
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("word/document.xml", "<x/>")
    flipped = bytearray(good)
    flipped[good.index(np.arange(6, dtype="<f4").tobytes()) + 9] ^= 1
    for data in (bomb, two.getvalue(), other.getvalue(), bytes(flipped), good[:-1], good[:len(good) // 2], good[:40], b"PK", b"PK\x03\x04" + bytes(50),
                 pickle.dumps([1]), overlapping()):
        tracemalloc.start()
        with pytest.raises(BadFile):
            mg.load(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[1] < 2 * len(data) + 10_000_000
        tracemalloc.stop()


def overlapping() -> bytes:
    """An archive whose directory lists the same bytes a thousand times."""
    data = archive(tensor(count=25_000, size=(1,), stride=(1,)), _0=bytes(100_000))
    start = data.index(b"PK\x01\x02")
    target = io.BytesIO()
    target.write(data[:start])
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        infos = source.infolist()
        with zipfile.ZipFile(target, "a") as made:
            made.NameToInfo.clear()
            made.filelist = []
            for k in range(1000):
                info = zipfile.ZipInfo(f"archive/data/{k + 1}")
                info.file_size = info.compress_size = infos[2].file_size
                info.header_offset, info.CRC = infos[2].header_offset, infos[2].CRC
                made.filelist.append(info)
            made.filelist += infos
            made._didModify = True
            made.start_dir = start
    return target.getvalue()


def test_torchscript_is_named() -> None:
    target = io.BytesIO(archive(tensor()))
    with zipfile.ZipFile(target, "a") as made:
        made.writestr("archive/constants.pkl", b"N.")
    with pytest.raises(EOFError, match="seek"):
        mg.load(target)
    target.seek(0)
    with pytest.raises(NotImplementedError, match="TorchScript"):
        mg.load(target)


def test_checkpoints_changed_at_random_do_no_harm() -> None:
    survive(archive(b"](" + tensor() + EMPTY + numbers(1, 2) + tensor(offset=1, size=(2,), stride=(2,)) + b"e"), 200)
    source = random.Random(1)
    program = b"](" + tensor() + EMPTY + numbers(1, 2) + tensor(offset=1, size=(2,), stride=(2,)) + b"e"
    for _ in range(500):
        damaged = bytearray(program)
        for _ in range(source.choice([1, 2, 5])):
            damaged[source.randrange(len(damaged))] = source.choice(b"cR()tbQ\x93\x81\x94aesu}]N0" + bytes(range(256)))
        try:
            loaded(bytes(damaged))
        except mg.MutagradError as error:
            assert str(error)


def test_a_real_read_error_is_an_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            if self.tell() > 100:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(*_)

    for data in (archive(tensor()), described({"tensor": "t"}).getvalue()):
        with pytest.raises(OSError, match="Input/output"):
            mg.load(Broken(data))
