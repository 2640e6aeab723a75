"""Tensors without data, on the device "meta"."""
from __future__ import annotations

import copy

import pytest

import mutagrad as mg
from mutagrad import nn
from tools import same


def test_shapes_and_types_without_data() -> None:
    x = mg.empty(3, 4, device="meta")
    assert x.is_meta and x.device == mg.device("meta") and not x.is_cpu and repr(x) == "tensor(..., device='meta', size=(3, 4))"
    for found, shape in ((x + 1, (3, 4)), (x @ x.T, (3, 3)), (x[0], (4,)), (mg.zeros_like(x), (3, 4)), (x.new_zeros(2), (2,)), (x.double().sum(), ()),
                         (mg.cat([x, x]), (6, 4)), (x.split(1)[0], (1, 4)), (mg.ones(2).to("meta"), (2,))):
        assert found.is_meta and found.shape == shape
    assert x.double().dtype is mg.float64 and not mg.zeros_like(x, device="cpu").is_meta
    x[0] = 1.0
    assert x.fill_(2) is x and nn.init.normal_(x) is x and x.requires_grad_().requires_grad


@pytest.mark.parametrize("call", ["x.item()", "x.tolist()", "bool(x)", "float(x)", "x.numpy()", "x.cpu()", "x.to('cpu')", "mg.ones(1).copy_(x)"])
def test_values_that_are_not_there(call: str) -> None:
    with pytest.raises(NotImplementedError, match="no data"):
        eval(call, {"mg": mg, "x": mg.ones(1, device="meta")})


def test_blocks_and_defaults() -> None:
    with mg.device("meta"):
        assert mg.ones(1).is_meta and mg.tensor([1]).is_meta and not mg.ones(1, device="cpu").is_meta
        with mg.device("cpu"):
            real = mg.ones(1)
        assert not real.is_meta and not mg.zeros_like(real).is_meta and not real.new_ones(1).is_meta
    assert not mg.ones(1).is_meta
    mg.set_default_device("meta")
    try:
        assert mg.ones(1).is_meta and mg.get_default_device().type == "meta"
    finally:
        mg.set_default_device(None)
    assert not mg.ones(1).is_meta
    with pytest.raises(NotImplementedError), mg.device("cuda"):
        pass


def test_a_model_gets_its_data_later() -> None:
    def layers() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))

    with mg.device("meta"):
        model = layers()
    assert all(p.is_meta and isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in model.parameters())
    assert model(mg.empty(4, 5, device="meta")).shape == (4, 3)
    with pytest.raises(NotImplementedError, match="no data"):
        model.to("cpu")
    state, other = layers().state_dict(), copy.deepcopy(model)
    model.load_state_dict(state, assign=True)
    weight = other[0].weight  # type: ignore[index]
    other.to_empty(device="cpu").load_state_dict(state)
    assert other[0].weight is weight and type(weight) is nn.Parameter  # type: ignore[index]
    for loaded in (model, other):
        assert not any(t.is_meta for t in loaded.state_dict().values())
        same(loaded(mg.ones(2, 5)), loaded(mg.ones(2, 5)).detach())
        loaded(mg.ones(2, 5)).sum().backward()
    model.to("meta")
    assert type(model[0].weight)(mg.ones(1)).device.type == "cpu"  # type: ignore[index]
    assert all(p.is_meta and isinstance(p, nn.Parameter) for p in model.parameters())
    assert nn.Linear(2, 3, device="meta").weight.is_meta
