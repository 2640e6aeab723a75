"""Objects of any class: saved, and loaded by those who say that they trust the file."""
from __future__ import annotations

import copy
import datetime
import errno
import io
import os
import pathlib
import pickle
import struct
import types
import zipfile
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.base.errors import BadFile
from mutagrad.files import streams
from mutagrad.files.torch_pickle import ours
from pickles import listed, old_archive, storage, tensor, text


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.LSTM(4, 2))
        self.tied, self.settings = self.layers[0].weight, {"width": 4}

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.layers(x)[0]


class Thing:
    def __init__(self, value: Any) -> None:
        self.value = value


class Measured(mg.Tensor):
    pass


class Stated(mg.Tensor):
    def __getstate__(self) -> Any:
        return "stated", self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.how, attributes = state
        self.__dict__.update(attributes)


def saved(value: Any, **settings: Any) -> io.BytesIO:
    file = io.BytesIO()
    mg.save(value, file, **settings)
    file.seek(0)
    return file


def trusted(value: Any, **settings: Any) -> Any:
    return mg.load(saved(value, **settings), weights_only=False)


@pytest.mark.smoke
def test_a_module_is_refused_unless_it_is_trusted(tmp_path: Any) -> None:
    net, x = Net().eval(), mg.randn(2, 3)
    mg.save(net, tmp_path / "net.pt")
    for setting in ({}, {"weights_only": True}):
        with pytest.raises(pickle.UnpicklingError, match=r"test_pickling\.Net.*mutagrad\.nn\.container\.Sequential"):
            mg.load(tmp_path / "net.pt", **setting)
    with pytest.raises(BadFile, match=r"fix:.*weights_only=False"):
        mg.load(tmp_path / "net.pt")
    assert f"{__name__}.Net" in mg.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "net.pt")
    for mapped in (False, True):
        found = mg.load(tmp_path / "net.pt", weights_only=False, mmap=mapped)
        assert type(found) is Net and mg.equal(found(x), net(x)) and found.tied is found.layers[0].weight and found.settings == {"width": 4}
        assert all(type(p) is nn.Parameter and p.requires_grad for p in found.parameters())
    assert mg.serialization.get_unsafe_globals_in_checkpoint(saved({"x": mg.ones(1)})) == []


def test_what_is_trained_goes_on_where_it_was() -> None:
    net = nn.Linear(3, 1)
    optimizer = mg.optim.Adam(net.parameters())
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    net(mg.ones(2, 3)).sum().backward()
    optimizer.step()
    found, again, plan = trusted((net, optimizer, schedule))
    assert again.param_groups[0]["params"][0] is found.weight and plan.optimizer is again
    for model, steps, rate in ((net, optimizer, schedule), (found, again, plan)):
        model.zero_grad()
        model(mg.ones(2, 3)).sum().backward()
        steps.step()
        rate.step()
    assert mg.equal(net.weight, found.weight) and again.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


def test_single_classes_can_be_allowed() -> None:
    net = nn.Linear(2, 2)
    with mg.serialization.safe_globals([nn.Linear]):
        found = mg.load(saved(net))
        assert type(found) is nn.Linear and type(found.weight) is nn.Parameter and mg.equal(found.weight, net.weight)
        with pytest.raises(BadFile, match="Thing"):
            mg.load(saved([net, Thing(1)]))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_object(protocol: int) -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    value = {"thing": Thing({"x": mg.ones(2)}), "class": Thing, "function": len, "words": np.array(["a"]), "many": defaultdict(Thing), "slice": slice(1), "circle": circle,
             "time": datetime.date(2020, 1, 2), "path": pathlib.PurePosixPath("/x"), "space": types.SimpleNamespace(a=1), "size": mg.Size([2]), "kind": mg.bfloat16}
    found = trusted(value, pickle_protocol=protocol)
    assert found["thing"].value["x"].tolist() == [1, 1] and found["class"] is Thing and found["function"] is len and found["circle"][1] is found["circle"]
    assert all(found[key] == value[key] for key in ("slice", "time", "path", "space", "size", "kind", "words"))
    with pytest.raises(BadFile, match="Thing"):
        mg.load(saved(value, pickle_protocol=protocol))


def test_tensors_keep_class_attributes_and_memory() -> None:
    for x in (mg.zeros(3), nn.Parameter(mg.zeros(2)), mg.ones(2, requires_grad=True) * 2, mg.ones(2).bfloat16()):
        x.note = {"a": [1, 2]}
        for setting in (True, False):
            found = mg.load(saved([x, x]), weights_only=setting)
            assert type(found[0]) is type(x) and found[0] is found[1] and found[0].note == x.note and mg.equal(found[0], x) and found[0].requires_grad == x.requires_grad
    base = mg.arange(6).double()
    base.note = 1
    found = mg.load(saved([base, base[::2], base.view(mg.int64), base.reshape(2, 3).T, base.storage(), base[2:].storage()]))
    found[0].zero_()
    assert not any(view.any() for view in found[1:4]) and list(found[4]) == [0] * 6 and found[5].data_ptr() == found[0].data_ptr()
    assert type(trusted(Measured([1.0]))) is Measured and type(copy.copy(Measured([1.0]))) is Measured
    stated = mg.ones(2).as_subclass(Stated)
    stated.note = "n"
    for found in (trusted(stated), pickle.loads(pickle.dumps(stated))):
        assert type(found) is Stated and found.how == "stated" and found.note == "n"
    plain = mg.ones(1)
    plain.note = 3
    assert copy.copy(plain).note == pickle.loads(pickle.dumps(plain)).note == 3
    hidden = mg.ones(1)
    hidden.backward = 3  # type: ignore[method-assign,assignment]
    with pytest.raises(BadFile, match="hide"):
        mg.load(saved(hidden))


def test_what_python_cannot_pickle(tmp_path: Any) -> None:
    for kind in (TypeError, AttributeError, pickle.PicklingError):
        with pytest.raises(kind, match="lambda"):
            mg.save({"f": lambda: 1}, tmp_path / "x")
    assert os.listdir(tmp_path) == []
    for bad in (mg.ones(1), np.ones(1), 3, None):
        for kind in (TypeError, AttributeError):
            with pytest.raises(kind):
                mg.save("x", bad)


def test_a_full_disk_leaves_the_old_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mg.save(Thing(1), tmp_path / "x")

    def full(file: Any, data: bytes) -> None:
        file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(streams, "write_all", full)
    with pytest.raises(OSError, match="No space"):
        mg.save(Thing(2), tmp_path / "x")
    assert mg.load(tmp_path / "x", weights_only=False).value == 1 and os.listdir(tmp_path) == ["x"]


def test_one_file_after_the_other() -> None:
    file = io.BytesIO()
    pickle.dump(41, file)
    mg.save(mg.ones(2), file, format="safetensors")
    pickle.dump(43, file)
    mg.save([mg.zeros(1), 5], file, format="safetensors")
    file.seek(0)
    assert pickle.load(file) == 41 and mg.load(file).tolist() == [1, 1] and pickle.load(file) == 43 and mg.load(file)[1] == 5


def test_an_archive_before_another_is_not_taken_for_it() -> None:
    file = io.BytesIO()
    mg.save(Thing(1), file)
    second = file.tell()
    mg.save(Thing(2), file)
    file.seek(0)
    with pytest.raises(BadFile, match="followed by another"):
        mg.load(file, weights_only=False)
    file.seek(second)
    assert mg.load(file, weights_only=False).value == 2


def test_how_a_pickle_is_read() -> None:
    class Refusing(pickle.Unpickler):
        def load(self) -> Any:
            raise RuntimeError("not today")

    refusing: Any = types.SimpleNamespace(Unpickler=Refusing)
    with pytest.raises(RuntimeError, match="not today"):
        mg.load(saved(Thing(1)), pickle_module=refusing)
    with pytest.raises(RuntimeError, match="pickle_module"):
        mg.load(saved(Thing(1)), pickle_module=refusing, weights_only=True)
    with pytest.raises(TypeError, match="fix_imports"):
        mg.load(saved(Thing(1)), fix_imports=False)
    gone = saved(Thing(1)).getvalue().replace(b"Thing", b"Gone!")
    source = zipfile.ZipFile(io.BytesIO(saved(Thing(1)).getvalue()))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for entry in source.namelist():
            made.writestr(entry, source.read(entry).replace(b"Thing", b"Gone!"))
    with pytest.raises(AttributeError, match="Gone"):
        mg.load(io.BytesIO(target.getvalue()), weights_only=False)
    for data in (gone, target.getvalue()[:-30]):
        with pytest.raises(BadFile):
            mg.load(io.BytesIO(data), weights_only=False)


# ------------------------------------------------------------------------------------------------ PyTorch's classes, and its first format

def test_classes_of_pytorch_are_ours() -> None:
    assert ours("torch.nn.modules.linear", "Linear") is nn.Linear and ours("torch.nn.modules.linear", "NonDynamicallyQuantizableLinear") is nn.Linear
    assert ours("torch.optim.adam", "Adam") is mg.optim.Adam and ours("torch", "Size") is mg.Size and ours("torch._C._nn", "gelu") is nn.functional.gelu
    with pytest.raises(BadFile, match=r"torch\.package\.importer\.Importer"):
        ours("torch.package.importer", "Importer")


def program(value: Any) -> bytes:
    return pickle.dumps(value, 2)


REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n%sStorage\nX\x01\x00\x00\x00aX\x03\x00\x00\x00cpuK%cNtQK\x00K%c\x85K\x01\x85\x89NtR"


def old(content: bytes | None = None, kind: bytes = b"Float", count: int = 3, size: int = 3, little: bool = True, data: bytes | None = None, magic: int = 0x1950A86A20F9469CFC6C) -> io.BytesIO:
    """A file as PyTorch wrote it before 1.6, with one storage of three numbers."""
    values = np.arange(3, dtype="<f4").tobytes()
    parts = [program(magic), program(1001), program({"little_endian": little}), b"\x80\x02" + (content or REBUILD % (kind, count, size)) + b".", program(["a"]),
             (3).to_bytes(8, "little") + values if data is None else data]
    return io.BytesIO(b"".join(parts))


def test_the_first_format_of_pytorch() -> None:
    for setting in (True, False):
        assert mg.load(old(), weights_only=setting).tolist() == [0, 1, 2]
        text = old(b"](U\x02\xc3\xbc" + REBUILD % (b"Float", 3, 2) + b"e").getvalue()
        assert mg.load(io.BytesIO(text), weights_only=setting)[0] == "ü" and mg.load(io.BytesIO(text), weights_only=setting, encoding="bytes")[0] == b"\xc3\xbc"
    three = io.BytesIO(old().getvalue() + old(size=1).getvalue() + old(size=2).getvalue())
    assert [mg.load(three).shape for _ in range(3)] == [(3,), (1,), (2,)]
    assert mg.load(old(program(OrderedDict(a=1))[2:-1] + b"0" + REBUILD % (b"Float", 3, 3))).shape == (3,)


def test_marks_and_truth_in_the_first_format() -> None:
    """What is computed from elements waits for them: they come after the pickle."""
    negative, cell = b"}" + text("neg") + b"\x88s", storage(tail=b"N")
    window = tensor(size=(6,), stride=(1,), tail=b"N", marks=negative)
    values = mg.load(io.BytesIO(old_archive(listed(window, tensor(tail=b"N"), cell))))
    assert values[0].tolist() == [0, -1, -2, -3, -4, -5] and values[1].tolist() == [[0, 1, 2], [3, 4, 5]]
    truth = tensor(size=(3,), stride=(1,), kind="BoolStorage", count=3, tail=b"N")
    found = mg.load(io.BytesIO(old_archive(truth, "0", struct.pack("<q", 3) + b"\x00\x01\x07")))
    assert found.tolist() == [False, True, True] and found.view(mg.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("names, data", [("", b""), ("00", None), ("0", b""), ("0", b"\x06"), ("01", None), ("1", None)])
def test_every_storage_of_the_first_format_has_its_elements_once(names: str, data: bytes | None) -> None:
    with pytest.raises(BadFile):
        mg.load(io.BytesIO(old_archive(tensor(tail=b"N"), names, data)))
    with pytest.raises(BadFile):
        mg.load(io.BytesIO(old_archive(tensor(tail=b"N", count=0, size=(0,), stride=(1,)), names, data or b"")))


@pytest.mark.parametrize("file", [
    old(magic=5), old(little=False), old(size=4), old(count=4), old(count=200, size=200), old(kind=b"Double"), old(data=b""), old(data=(3).to_bytes(8, "little") + bytes(8)),
    old(data=(4).to_bytes(8, "little") + bytes(16)), old(b"cos\nsystem\nX\x01\x00\x00\x00a\x85R"), old(b"K\x01"), io.BytesIO(b"\x80"), io.BytesIO(program([1])),
    old((REBUILD % (b"Float", 3, 3)).replace(b"NtQ", b"K\x01tQ"))])
def test_damaged_files_of_the_first_format(file: io.BytesIO) -> None:
    with pytest.raises(BadFile):
        mg.load(file)
