"""Files that PyTorch writes are read, and what is written PyTorch reads."""
from __future__ import annotations

import io
import os
import pickle
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

TYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def from_torch(value: Any, **settings: Any) -> Any:
    """Saved by PyTorch, loaded here."""
    file = io.BytesIO()
    torch.save(value, file, **settings)
    file.seek(0)
    return mg.load(file)


def same(ours: Any, theirs: Any) -> None:
    assert ours.dtype.name == str(theirs.dtype).split(".")[1] and tuple(ours.shape) == tuple(theirs.shape) and ours.requires_grad == theirs.requires_grad
    ours, theirs = ours.detach(), theirs.detach()
    if ours.dtype is mg.bfloat16:
        ours, theirs = ours.float(), theirs.float()
    np.testing.assert_array_equal(ours.numpy(), theirs.resolve_conj().resolve_neg().numpy())


@pytest.mark.parametrize("name", TYPES)
def test_every_type(name: str, tmp_path: Any) -> None:
    kind = getattr(torch, name)
    x = torch.arange(24).reshape(2, 3, 4).to(kind)
    for y in (x, x.transpose(0, 2), x[1:, ::2], x[0, 0, 0], x[:0], x[0, :1].expand(5, 4)):
        same(from_torch(y), y)
    torch.save({"x": x, "y": x[1]}, tmp_path / "x.pt")
    for mapped in (False, True):
        found = mg.load(tmp_path / "x.pt", mmap=mapped)
        same(found["x"], x)
        assert np.shares_memory(found["x"]._array, found["y"]._array)


class ByName(pickle.Unpickler):
    """As where this package stands for PyTorch."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "torch":
            module = module.replace("torch", "mutagrad", 1)
        return super().find_class(module, name)


def test_pickles_by_python() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    marked = torch.nn.Parameter(x[1])
    marked.note = 3
    values = [x, x.t(), torch.nn.Parameter(x[1]), torch.ones(2, requires_grad=True), torch.ones(3, dtype=torch.bfloat16), marked]
    found = ByName(io.BytesIO(pickle.dumps(values))).load()
    for ours, theirs in zip(found, values):
        same(ours, theirs)
    assert type(found[2]) is mg.nn.Parameter and found[5].note == 3


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values(protocol: int) -> None:
    values = {"a": [1, 2.5, None, True, (), [[]]], "text": "ü", "bytes": b"\x00\xff", "array": bytearray(b"ab"), "set": {1, 2}, "complex": 1 + 2j, "big": 2**70, "count": Counter("aab"),
              "od": OrderedDict(x=1), 3: "key", (1, 2): "tuple", "neg": -5}
    assert from_torch(values, pickle_protocol=protocol) == values
    found = from_torch([torch.Size([2, 3]), torch.float16, torch.device("cuda:1"), torch.strided], pickle_protocol=protocol)
    assert found == [mg.Size([2, 3]), mg.float16, mg.device("cuda:1"), mg.strided]


def test_parameters_and_the_like() -> None:
    parameter = from_torch(torch.nn.Parameter(torch.ones(2)))
    assert type(parameter) is mg.nn.Parameter and parameter.requires_grad
    assert not from_torch(torch.nn.Parameter(torch.ones(2), False)).requires_grad
    same(from_torch(torch.nn.Buffer(torch.ones(2))), torch.ones(2))
    same(from_torch(torch.ones(2, requires_grad=True)), torch.ones(2, requires_grad=True))
    z = torch.tensor([1 + 2j, 3j])
    same(from_torch(z.conj()), z.conj())
    same(from_torch(z.conj().imag), z.conj().imag)
    tagged = torch.ones(2)
    tagged.tag = "x"
    assert from_torch(tagged).tag == "x"
    marked = torch.nn.Parameter(torch.ones(2))
    marked.tag = "y"
    assert from_torch(marked).tag == "y"
    same(from_torch(torch.Generator().manual_seed(1).get_state()), torch.Generator().manual_seed(1).get_state())


def test_a_checkpoint_end_to_end() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    theirs[3].weight = theirs[2].weight
    optimizer = torch.optim.AdamW(theirs.parameters())
    theirs(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    found = from_torch({"model": theirs.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1})
    assert list(found["model"]) == list(theirs.state_dict()) and found["model"]._metadata == theirs.state_dict()._metadata
    for key, value in theirs.state_dict().items():
        same(found["model"][key], value)
    assert np.shares_memory(found["model"]["2.weight"]._array, found["model"]["3.weight"]._array)
    assert found["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    same(found["optimizer"]["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])


def test_a_linear_layer_computes_the_same() -> None:
    theirs, ours = torch.nn.Linear(3, 4), mg.nn.Linear(3, 4)
    ours.load_state_dict(from_torch(theirs.state_dict()))
    x = np.random.default_rng(0).standard_normal((2, 3)).astype("float32")
    np.testing.assert_allclose(ours(mg.from_numpy(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), 1e-6, 1e-7)


@pytest.mark.parametrize("make", [lambda: torch.nn.Linear(1, 1), lambda: print, lambda: io.BytesIO])
def test_what_is_refused(make: Any) -> None:
    with pytest.raises(pickle.UnpicklingError):
        from_torch(make())


def test_the_old_format() -> None:
    for name in TYPES:
        x = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, name))
        for y in (x, x[1:, ::2], x[0, 0, 0], x[:0]):
            same(from_torch(y, _use_new_zipfile_serialization=False), y)
    z = torch.tensor([1 + 2j, 3j])
    for y in (z.conj(), z.conj().imag, z.conj().expand(3, 2)):
        same(from_torch(y, _use_new_zipfile_serialization=False), y)
        same(from_torch(y), y)
    found = from_torch({"model": torch.nn.Linear(2, 3).state_dict(), "n": (1, "ü", b"x")}, _use_new_zipfile_serialization=False)
    assert list(found["model"]) == ["weight", "bias"] and found["n"] == (1, "ü", b"x")


MODULES = [(lambda: torch.nn.Linear(3, 4), (2, 3)), (lambda: torch.nn.Conv2d(3, 4, 3, padding=1), (1, 3, 5, 5)), (lambda: torch.nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)),
           (lambda: torch.nn.LSTM(3, 4, 2, batch_first=True), (2, 5, 3)), (lambda: torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.LayerNorm(4)), (2, 3)),
           (lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval(), (2, 3, 8)), (lambda: torch.nn.MaxPool2d(2), (1, 1, 4, 4)),
           (lambda: torch.nn.ModuleDict({"a": torch.nn.PReLU(), "b": torch.nn.ParameterList([torch.ones(2)])}), None)]


@pytest.mark.parametrize("make, shape", MODULES)
@pytest.mark.parametrize("zipped", [True, False])
def test_whole_modules(make: Any, shape: Any, zipped: bool) -> None:
    theirs, file = make(), io.BytesIO()
    torch.save(theirs, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    ours = mg.load(file, weights_only=False)
    assert type(ours).__name__ == type(theirs).__name__ and isinstance(ours, mg.nn.Module) and list(ours.state_dict()) == list(theirs.state_dict())
    if shape:
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        a, b = ours(mg.from_numpy(x)), theirs(torch.from_numpy(x))
        a, b = (a[0], b[0]) if isinstance(b, tuple) else (a, b)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-4, 1e-5)


def test_an_optimizer_goes_on() -> None:
    net = torch.nn.Linear(2, 2)
    optimizer, file = torch.optim.Adam(net.parameters()), io.BytesIO()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    torch.save((net, optimizer, schedule), file)
    file.seek(0)
    ours, again, plan = mg.load(file, weights_only=False)
    for p in ours.parameters():
        p.grad = mg.ones_like(p)
    for each in (optimizer, schedule, again, plan):
        each.step()
    np.testing.assert_allclose(ours.weight.detach().numpy(), net.weight.detach().numpy(), 1e-6)
    assert again.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


def test_truncated_files_fail_in_both() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.ones(1000)}, file)
    data = file.getvalue()
    for length in (0, 1, 10, 100, len(data) // 2, len(data) - 1):
        try:
            torch.load(io.BytesIO(data[:length]))
        except Exception as error:
            with pytest.raises(type(error)):
                mg.load(io.BytesIO(data[:length]))
        else:
            raise AssertionError(length)


def test_pytorch_reads_what_is_written(tmp_path: Any) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = os.fspath(tmp_path / "x.safetensors")
    tensors = {name: mg.arange(6).reshape(2, 3).to(getattr(mg, name)) for name in TYPES if name != "complex128"} | {"scalar": mg.tensor(1.5), "empty": mg.zeros(0, 2)}
    mg.save(tensors, path)
    found = safetensors.load_file(path)
    assert sorted(found) == sorted(tensors)
    for name, ours in tensors.items():
        same(ours, found[name])
    safetensors.save_file(found, path, {"format": "pt"})
    for name, value in mg.load(path).items():
        same(value, found[name])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 4), (0,)])
def test_what_is_empty_has_pytorchs_strides(shape: Any) -> None:
    file = io.BytesIO()
    mg.save([mg.zeros(shape), mg.zeros(4, *shape)[1:]], file)
    file.seek(0)
    assert [t.stride() for t in torch.load(file)] == [torch.zeros(shape).stride(), torch.zeros(3, *shape).stride()]


def test_a_state_dict_goes_to_pytorch(tmp_path: Any) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    ours, theirs = mg.nn.Linear(3, 4), torch.nn.Linear(3, 4)
    mg.save(ours.state_dict(), tmp_path / "x.safetensors")
    theirs.load_state_dict(safetensors.load_file(tmp_path / "x.safetensors"))
    same(ours.weight, theirs.weight)


class Config:
    def __init__(self, width: int) -> None:
        self.width = width


def test_allowed_names_as_in_pytorch() -> None:
    file = io.BytesIO()
    torch.save({"config": Config(3)}, file)
    for library in (torch, mg):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="Config"):
            library.load(file)
        with library.serialization.safe_globals([Config]):
            file.seek(0)
            assert library.load(file)["config"].width == 3
            assert Config in library.serialization.get_safe_globals()
        assert Config not in library.serialization.get_safe_globals()


# ------------------------------------------------------------------------------------------------------- and the other way

def to_torch(value: Any, weights_only: bool = True, **settings: Any) -> Any:
    """Saved here, loaded by PyTorch."""
    file = io.BytesIO()
    mg.save(value, file, **settings)
    file.seek(0)
    return torch.load(file, weights_only=weights_only)


@pytest.mark.parametrize("name", TYPES)
def test_pytorch_reads_every_type(name: str, tmp_path: Any) -> None:
    x = mg.arange(24).reshape(2, 3, 4).to(getattr(mg, name))
    for y in (x, x.transpose(0, 2), x[1:, ::2], x[0, 0, 0], x[:0], x[0, :1].expand(5, 4), x[::-1]):
        same(y, to_torch(y))
    mg.save({"x": x, "y": x[1]}, tmp_path / "x.pt")
    for mapped in (False, True):
        found = torch.load(tmp_path / "x.pt", weights_only=True, mmap=mapped)
        same(x, found["x"])
        assert found["x"].untyped_storage().data_ptr() == found["y"].untyped_storage().data_ptr()
        assert not found["x"].data_ptr() % 64 or not mapped


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 3:UserWarning")
@pytest.mark.parametrize("protocol", [2, 3])
def test_pytorch_reads_plain_values(protocol: int) -> None:
    values = {"a": [1, 2.5, None, True, (), [[]]], "text": "ü", "bytes": b"\x00\xff", "set": {1, 2}, "complex": 1 + 2j, "big": 2**70, "od": OrderedDict(x=1), 3: "key", (1, 2): "tuple",
              "names": ["cmutagrad.files.torch_names\nFloatStorage\n", "ctorch\nSize\n"]}
    if protocol == 3:
        del values["bytes"]  # which PyTorch reads of protocol 2 only
    assert to_torch(values, pickle_protocol=protocol) == values
    found = to_torch([mg.Size([2, 3]), mg.float16, mg.bool, mg.device("cpu"), mg.device("cuda:1"), mg.strided, mg.float8_e5m2, mg.ones(1)], pickle_protocol=protocol)
    assert found == [torch.Size([2, 3]), torch.float16, torch.bool, torch.device("cpu"), torch.device("cuda:1"), torch.strided, torch.float8_e5m2, torch.ones(1)]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_pytorch_reads_parameters_attributes_and_storages() -> None:
    x = mg.ones(2, requires_grad=True)
    marked, parameter = mg.ones(2), mg.nn.Parameter(mg.zeros(2), False)
    marked.note, parameter.note = {"a": 1}, "p"
    found = to_torch([x, x * 2, marked, parameter, mg.nn.Parameter(mg.ones(1)), mg.nn.Buffer(mg.ones(3)), x.storage(), x, x.untyped_storage()])
    assert [t.requires_grad for t in found[:5]] == [True, True, False, False, True] and found[0] is found[7]
    assert type(found[3]) is type(found[4]) is torch.nn.Parameter and found[2].note == {"a": 1} and found[3].note == "p"
    assert found[5].tolist() == [1, 1, 1] and list(found[8]) == [1, 1]
    assert list(to_torch(mg.ones(2).storage())) == [1, 1]
    pair = mg.tensor([1 + 2j, 3 + 4j])
    both = to_torch({"pair": pair, "real": pair.real, "bits": pair.view(mg.float32)})
    both["pair"][1] = 7
    assert both["real"].tolist() == [1, 7] and both["bits"].tolist() == [1, 2, 7, 0]


def test_a_checkpoint_goes_to_pytorch_and_back() -> None:
    ours, theirs = (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)) for nn in (mg.nn, torch.nn))
    optimizers = mg.optim.AdamW(ours.parameters(), lr=0.1), torch.optim.AdamW(theirs.parameters(), lr=0.1)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
    ours(mg.from_numpy(x)).square().sum().backward()
    optimizers[0].step()
    found = to_torch({"model": ours.state_dict(), "optimizer": optimizers[0].state_dict(), "epoch": 3})
    assert type(found["model"]) is OrderedDict and found["model"]._metadata == ours.state_dict()._metadata
    theirs.load_state_dict(found["model"])
    optimizers[1].load_state_dict(found["optimizer"])
    for library, net, optimizer in ((mg, ours, optimizers[0]), (torch, theirs, optimizers[1])):
        optimizer.zero_grad()
        net(library.from_numpy(x)).square().sum().backward()
        optimizer.step()
    back = from_torch(theirs.state_dict())
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), back[name].numpy(), 1e-4, 1e-5)


def test_numpys_arrays_both_ways() -> None:
    values = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.float32(0.5), "c": np.array(["x"])[:0].astype("i8"), "d": np.arange(3, dtype=">i4")}
    found = to_torch(values, weights_only=False)
    for protocol in (2, 4, 5):
        loaded = from_torch(values, pickle_protocol=protocol)
        assert all(type(loaded[k]) is type(v) and (loaded[k] == v).all() and (found[k] == v).all() for k, v in values.items())


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
def test_float8_comes_as_float32() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu):
        every = torch.arange(256, dtype=torch.uint8).view(kind)
        for y in (every, every.reshape(16, 16).t()[1:], every[:0]):
            np.testing.assert_array_equal(from_torch({"x": y})["x"].numpy(), y.float().numpy())
    half = torch.tensor([1 + 2j, 3j], dtype=torch.complex32)
    assert from_torch(half).tolist() == [1 + 2j, 3j]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_sparse_tensors_both_ways(layout: str) -> None:
    dense = [[0.0, 3.0, 0.0, 0.0], [4.0, 0.0, 0.0, 5.0]]
    settings = {"blocksize": (1, 2)} if "bs" in layout else {}
    ours, theirs = (library.tensor(dense).to_sparse(layout=getattr(library, layout), **settings) for library in (mg, torch))
    loaded, sent = from_torch({"x": theirs})["x"], to_torch({"x": ours})["x"]
    assert str(loaded.layout) == f"mutagrad.{layout}" and sent.layout is theirs.layout
    assert loaded.to_dense().tolist() == sent.to_dense().tolist() == dense
