"""Saving and loading: every kind of value comes back, a crash leaves the old file, and no file can do harm."""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import tracemalloc
from argparse import Namespace
from collections import OrderedDict, defaultdict, deque, namedtuple
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.base.errors import BadFile
from mutagrad.files import streams
from tools import Broken, survive

TYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
FORMATS = ["torch", "safetensors"]
Point = namedtuple("Point", "x y")


def around(value: Any, **settings: Any) -> Any:
    """Saved and loaded."""
    file = io.BytesIO()
    mg.save(value, file, **settings)
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
        for form in FORMATS:
            assert equal(around(x, format=form), x)
            assert equal(around({"x": [x]}, format=form)["x"][0], x)


@pytest.mark.parametrize("form", FORMATS)
def test_plain_values_come_back(form: str) -> None:
    values = {"none": None, "yes": True, "number": 3, "large": 2**80, "float": 0.1, "inf": -math.inf, "text": 'a "quoted" \ud800 ü', "list": [1, [2, []]],
              "tuple": (1, (), "x"), "size": mg.Size([2, 3]), "dtype": mg.bfloat16, "bool": mg.bool, "device": mg.device("cpu"), "complex": 1 - 2j,
              "odd": complex(math.inf, -0.0), "bytes": b"\x00\xff", "set": {1, "a"}, 3: "key", (1, "a"): None, None: 1, 2.5: 1, True: 0, "empty": {}}
    found = around(values, format=form)
    assert found == values and list(found) == list(values)
    assert type(found["size"]) is mg.Size and type(found["yes"]) is bool and type(found["float"]) is float and str(found["odd"]) == str(values["odd"])
    assert math.isnan(around(math.nan)) and around([]) == [] and around({}) == {} and around(5) == 5 and around(None) is None
    named = around([Point(1, mg.ones(1)), Point(2, 3)], format="safetensors")
    assert named[1] == (2, 3) and named[0].y.item() == 1 and type(named[0]) is type(named[1]) and type(named[0]).__name__ == "Point"
    ordered = around(OrderedDict(b=1, a=2))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]


def test_the_format_is_chosen_by_name_or_said(tmp_path: Any) -> None:
    for path, settings, zipped in (("a.pt", {}, True), ("a.safetensors", {}, False), ("b.pt", {"format": "safetensors"}, False), ("b.safetensors", {"format": "torch"}, True)):
        mg.save({"x": mg.ones(2)}, tmp_path / path, **settings)
        assert ((tmp_path / path).read_bytes()[:2] == b"PK") is zipped and mg.load(tmp_path / path)["x"].tolist() == [1, 1]
    with pytest.raises(TypeError, match="cannot be saved as safetensors"):
        mg.save({"x": mg.nn.Linear(1, 1)}, tmp_path / "c.safetensors")
    with pytest.raises(ValueError, match="no format"):
        mg.save(1, tmp_path / "c", format="pickle")
    assert not (tmp_path / "c.safetensors").exists()


def test_the_same_object_is_the_same_file() -> None:
    def saved() -> bytes:
        file = io.BytesIO()
        mg.manual_seed(0)
        model = mg.nn.Linear(3, 2)
        mg.save({"model": model.state_dict(), "state": mg.optim.Adam(model.parameters()).state_dict()}, file)
        return file.getvalue()

    assert saved() == saved()


def test_texts_that_look_like_names_of_a_pickle() -> None:
    odd = "cmutagrad.files.torch_names\nFloatStorage\n"
    for protocol in (2, 3, 4, 5):
        found = around([odd, mg.ones(2), mg.float32, "ctorch\nfloat32\n", "cmutagrad.core.dtypes\nfloat32\n"], pickle_protocol=protocol)
        assert found[0] == odd and found[1].tolist() == [1, 1] and found[2] is mg.float32


def test_files_of_numpys(tmp_path: Any) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.arange(6).reshape(2, 3)), "c": np.array(1 + 2j), "d": np.arange(3, dtype=">i2"), "e": np.array([True, False]), "f": np.zeros((0, 3), "f4")}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        for mapped in (False, True):
            found = mg.load(tmp_path / f"{name}.npy", mmap=mapped)
            assert found.shape == array.shape and found.tolist() == array.tolist() and str(found.dtype).endswith(array.dtype.newbyteorder("=").name)
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "all.npz", **arrays)
        every = mg.load(tmp_path / "all.npz")
        assert {name: value.tolist() for name, value in every.items()} == {name: array.tolist() for name, array in arrays.items()}
    for bad in (np.array([{}], object), np.array(["text"]), np.zeros(2, "i4,f4"), np.zeros(2, np.longdouble)):
        np.save(tmp_path / "bad.npy", bad, allow_pickle=True)
        with pytest.raises(BadFile, match="no tensor can have"):
            mg.load(tmp_path / "bad.npy")
    data = (tmp_path / "a.npy").read_bytes()
    for wrong in (data[:-1], data[:40], data + b"x", data.replace(b"(2, 3)", b"(9, 9)")):
        with pytest.raises(BadFile):
            mg.load(io.BytesIO(wrong))


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


@pytest.mark.parametrize("form", FORMATS)
def test_shared_memory_is_shared_again(form: str) -> None:
    base = mg.arange(12.0)
    found = around({"row": base.reshape(3, 4)[1], "base": base, "matrix": base.reshape(3, 4), "columns": base.reshape(3, 4).T, "bits": base.view(mg.int32), "other": mg.ones(2)}, format=form)
    found["base"][4] = -1.0
    assert found["row"].tolist() == [-1.0, 5.0, 6.0, 7.0] and found["matrix"][1, 0].item() == found["columns"][0, 1].item() == -1.0
    assert found["bits"][4].item() == mg.tensor(-1.0).view(mg.int32).item() and not shares(found["base"], found["other"])
    overlapping = around([base[:8], base[4:]], format=form)
    assert shares(*overlapping) and overlapping[1].tolist() == list(range(4, 12))
    apart = around([base[:4], base[8:]], format=form)
    assert not np.shares_memory(apart[0]._array, apart[1]._array)
    assert apart[1].tolist() == [8, 9, 10, 11]
    pair = mg.tensor([1 + 2j, 3 + 4j], dtype=mg.complex128)
    both = around([pair, pair.real, pair[1:]], format=form)
    both[0][1] = 7 - 1j
    assert both[1].tolist() == [1.0, 7.0] and both[2].item() == 7 - 1j
    backwards = around([base, base[::-1], base.reshape(3, 4)[::-2]], format=form)
    assert backwards[1].tolist() == base[::-1].tolist() and backwards[2].tolist() == base.reshape(3, 4)[::-2].tolist()
    backwards[0][11] = -5.0
    assert form == "torch" or backwards[1][0].item() == -5.0 and backwards[2].tolist() == [[8, 9, 10, -5], [0, 1, 2, 3]]
    twice = around([base, base], format=form)
    assert twice[0] is twice[1]


def test_a_small_part_of_a_large_tensor_makes_a_small_file_of_safetensors(tmp_path: Any) -> None:
    mg.save({"part": mg.zeros(100_000)[5:9]}, tmp_path / "small.safetensors")
    assert os.path.getsize(tmp_path / "small.safetensors") < 1000


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

    places = {"write": (streams, "write_all"), "fsync": (os, "fsync"), "replace": (os, "replace")}
    monkeypatch.setattr(*places[where], full)
    with pytest.raises(OSError, match="No space"):
        mg.save(mg.ones(3), tmp_path / "x")
    monkeypatch.undo()
    assert mg.load(tmp_path / "x").tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["x"]


def child(tmp_path: Any, body: str) -> subprocess.CompletedProcess[str]:
    code = "import os, resource, signal, sys, mutagrad as mg\nfrom mutagrad.files import streams\n" + textwrap.dedent(body)
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
        streams.write_all = half
        mg.save(mg.ones(100_000), sys.argv[1])
    """)
    assert done.returncode == -signal.SIGKILL and mg.load(tmp_path / "x").tolist() == [0, 0, 0]


def test_what_text_cannot_hold_is_kept() -> None:
    file = io.BytesIO()
    masked, swapped = np.ma.masked_array([1.0, 2.0], [False, True]), np.arange(3, dtype=">i4")
    mg.save({"masked": masked, "many": 10**5000, "wide": np.ones(2, np.longdouble), "swapped": swapped}, file)
    found = mg.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert found["masked"].mask.tolist() == [False, True] and found["many"] == around({"n": 10**5000})["n"] == 10**5000
    assert found["wide"].dtype == np.longdouble and found["swapped"].tolist() == [0, 1, 2]
    odd = around({chr(0xD800): mg.ones(1), chr(0xD801): mg.zeros(1), "x": swapped})
    assert odd[chr(0xD800)].item() == 1 and odd[chr(0xD801)].item() == 0 and odd["x"].tolist() == [0, 1, 2]


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
    with pytest.raises(BadFile):
        mg.load(described(part))


def test_what_files_need_is_loaded_when_first_used() -> None:
    names = ("safetensors", "mutagrad.files", "mutagrad.files.safe_unpickler", "mutagrad.files.streams")
    code = f"import sys, mutagrad; print([n for n in {names} if n in sys.modules])"
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


def test_a_header_is_judged_as_the_library_does(tmp_path: Any) -> None:
    """Arrays of any type, shape and place: what the format's own library refuses is refused here, and nothing else."""
    library, draw, refused = pytest.importorskip("safetensors"), random.Random(0), 0
    kinds = {"F32": 4, "U8": 1, "BF16": 2, "F8_E4M3": 1, "F4": 0.5, "C64": 8, "F99": 4}
    nearly = [0] * 20 + [1, -1]
    for _ in range(500):
        header, end = {}, 0
        for k in range(draw.randrange(4)):
            kind, shape = draw.choice(list(kinds)), [draw.choice([0, 1, 2, 4]) for _ in range(draw.randrange(3))]
            start, end = end + draw.choice(nearly), end + int(math.prod(shape) * kinds[kind]) + draw.choice(nearly)
            header[f"t{k}"] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        data = raw(header, bytes(max(0, end + draw.choice(nearly)))).getvalue()
        (tmp_path / "x").write_bytes(data)
        try:
            library.deserialize(data)
            wrong = False
        except Exception:
            wrong = True
        refused += wrong
        with pytest.raises(BadFile) if wrong else suppress(NotImplementedError):
            mg.load(tmp_path / "x")
    assert 100 < refused < 400


def test_a_window_in_a_file_of_ours() -> None:
    assert mg.load(described([VIEW, {"tensor": "t"}]))[0].shape == (2,)


def test_a_type_that_is_not_supported_is_named() -> None:
    with pytest.raises(NotImplementedError, match="F4"):
        mg.load(raw({"t": {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]}}, bytes(4)))
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    found = mg.load(raw({"t": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}}, b"\x38\xb8\x40\x01"))["t"]
    assert found.tolist() == [[1, -1], [2, 2**-9]] and found.dtype is mg.float32


def test_booleans_other_than_0_and_1() -> None:
    found = mg.load(raw({"t": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\x00\x01\x07"))["t"]
    assert found.tolist() == [False, True, True] and found.sum().item() == 2


def test_bytes_changed_at_random_do_no_harm() -> None:
    file = io.BytesIO()
    mg.save({"a": mg.arange(3.0), "b": (1, "x", mg.arange(4).view(2, 2).T)}, file)
    survive(file.getvalue(), 300)


def test_a_real_read_error_is_an_oserror() -> None:
    with pytest.raises(OSError, match="Input/output"):
        mg.load(Broken(described({"tensor": "t"}).getvalue()))
