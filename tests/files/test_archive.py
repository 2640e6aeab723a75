"""The files that torch.save writes: read without running anything that they name, and refused where they are damaged or hostile."""

from __future__ import annotations

import io
import pickle
import random
import struct
import tracemalloc
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.base.errors import BadFile
from pickles import EMPTY, REBUILD, archive, call, group, name, number, numbers, storage, tensor, text
from tools import Broken, survive


def shares(a: mg.Tensor, b: mg.Tensor) -> bool:
    return np.shares_memory(a._array, b._array)


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


def test_storages_that_were_saved_as_such() -> None:
    whole, x = loaded(b"](" + storage() + tensor() + b"e")
    assert isinstance(whole, mg.TypedStorage) and list(whole) == [0, 1, 2, 3, 4, 5] and whole.dtype is mg.float32 and whole.data_ptr() == x.data_ptr()
    x[0, 0] = 7.0
    assert whole[0] == 7.0 and list(loaded(storage())) == [0, 1, 2, 3, 4, 5]
    again = io.BytesIO()
    mg.save([whole], again)
    assert list(mg.load(io.BytesIO(again.getvalue()))[0]) == [7, 1, 2, 3, 4, 5]


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
                                               ("subprocess", "Popen"), ("torch", "load"), ("torch.hub", "load"), ("numpy.core.multiarray", "fromfile"),
                                               ("collections", "OrderedDict.__init__"), ("test_files", "Config"), ("builtins", "tuple"), ("torch.", "Size"), ("", "")])
def test_a_name_that_is_not_allowed_is_refused(module: str, attribute: str) -> None:
    for program in (call(name(module, attribute), text("echo harm")), text(module) + text(attribute) + b"\x93(tR", name(module, attribute)):
        for kind in (pickle.UnpicklingError, ValueError, RuntimeError):
            with pytest.raises(kind, match="not allowed") as found:
                loaded(program)
        assert f"{module.replace('__builtin__', 'builtins')}.{attribute}" in str(found.value)
    for setting in ({}, {"weights_only": True}, {"weights_only": None}):
        with pytest.raises(pickle.UnpicklingError):
            mg.load(io.BytesIO(configured({"x": Evil()})), **setting)
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
    b"\x82\x01", b"\x97", b"P0\n", b"NQ", numbers(1, 2) + b"Q", name("torch", "FloatStorage"),
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
    call(name("torch.serialization", "_get_layout"), text("torch.sparse")), call(name("torch._utils", "_rebuild_sparse_tensor"), b"N", b"N")])
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


def test_the_order_of_bytes_can_be_said() -> None:
    serialization = mg.serialization
    values = np.arange(6, dtype=">f4").tobytes()
    silent = archive(tensor(), order=b"", _0=values)
    assert mg.load(io.BytesIO(silent)).tolist() != [[0, 1, 2], [3, 4, 5]] and serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        assert mg.load(io.BytesIO(silent)).tolist() == [[0, 1, 2], [3, 4, 5]] and loaded(tensor()).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert serialization.get_default_load_endianness() is serialization.LoadEndianness.BIG
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")
    assert serialization.check_module_version_greater_or_equal(np, (1, 20)) and not serialization.check_module_version_greater_or_equal(np, (99, 0))
    with pytest.raises(ValueError):
        serialization.check_module_version_greater_or_equal(io, (1, 0))


def test_a_real_read_error_is_an_oserror() -> None:
    with pytest.raises(OSError, match="Input/output"):
        mg.load(Broken(archive(tensor())))


def test_what_map_location_raises_is_no_damage_of_the_file() -> None:
    def refuse(storage: Any, location: str) -> Any:
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        mg.load(io.BytesIO(archive(tensor())), map_location=refuse)


# --------------------------------------------------------------------------------------------------- arrays, small floats

F4 = call(name("numpy", "dtype"), text("f4"), b"\x89", b"\x88")
SHELL = call(name("numpy._core.multiarray", "_reconstruct"), name("numpy", "ndarray"), group(number(0)), text("b"))


def raw_bytes(data: bytes) -> bytes:
    return call(name("_codecs", "encode"), text(data.decode("latin1")), text("latin1"))


@pytest.mark.parametrize("program", [
    SHELL + group(number(1), group(number(2**40)), F4, b"\x89", raw_bytes(bytes(8))) + b"b",
    SHELL + group(number(1), group(number(2)), text("O"), b"\x89", raw_bytes(bytes(8))) + b"b",
    SHELL + group(number(1), group(number(2)), F4, b"\x89", b"](K\x01e") + b"b",
    SHELL + group(number(1), group(b"G" + struct.pack(">d", 2)), F4, b"\x89", raw_bytes(bytes(8))) + b"b",
    SHELL + b"K\x01b", F4 + b"K\x01b", F4 + group(number(3), text("|O")) + b"b",
    call(name("numpy", "dtype"), text("O"), b"\x89", b"\x88"), call(name("numpy", "dtype"), text("V4000000000"), b"\x89", b"\x88"),
    call(name("numpy._core.multiarray", "_reconstruct"), name("torch", "Size"), group(number(0)), text("b")),
    call(name("numpy._core.multiarray", "scalar"), F4, raw_bytes(bytes(400))), call(name("numpy", "ndarray"), number(10**9)),
    call(name("builtins", "list"), text("abc")), call(name("collections", "defaultdict"), name("torch", "Size")),
    call(name("collections", "deque"), text("abc")), call(name("argparse", "Namespace")) + b"K\x01b"])
def test_hostile_arrays_are_refused(program: bytes) -> None:
    with pytest.raises(BadFile):
        loaded(program)


def test_one_text_for_many_arrays_is_refused() -> None:
    shared = raw_bytes(bytes(80_000)) + b"q\x010"
    one = SHELL + group(number(1), group(number(20_000)), F4, b"\x89", b"h\x01") + b"b"
    with pytest.raises(BadFile, match="out of proportion"):
        loaded(shared + b"](" + one * 3000 + b"e")


def test_small_floats_are_loaded_as_floats_that_hold_them() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    made = call(name("torch._utils", "_rebuild_tensor_v3"), b"(" + text("storage") + name("torch.storage", "UntypedStorage") + text("0") + text("cpu") + number(24) + b"tQ",
                number(0), numbers(3), numbers(1), b"\x89", EMPTY, name("torch", "float8_e5m2"))
    assert loaded(made).dtype is mg.float32
