"""Programs for several devices: run by test_mesh.py in a process that has 8, because JAX decides that when it starts."""
from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import mutagrad as mg
from mutagrad import nn
from mutagrad.distributed import checkpoint
from mutagrad.distributed.fsdp import fully_shard
from mutagrad.distributed.tensor import (
    DeviceMesh,
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
    randn,
    zeros,
)
from mutagrad.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from mutagrad.nn import functional as F

PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}


def mesh_of(*sizes: int, names: tuple[str, ...] | None = None) -> DeviceMesh:
    return init_device_mesh("xla", sizes, mesh_dim_names=names)


def mlp() -> Any:
    mg.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))


def placed(model: Any, way: str) -> Callable[[Any], Any]:
    """Place a model; what places its batches."""
    if way == "one":
        model.to("xla")
        return lambda t: t.to("xla")
    if way == "dp":
        mesh = mesh_of(8)
        distribute_module(model, mesh)
        return lambda t: distribute_tensor(t, mesh, [Shard(0)])
    if way == "fsdp":
        mesh = mesh_of(8)
        fully_shard(model, mesh=mesh)
        return lambda t: distribute_tensor(t, mesh, [Shard(0)])
    mesh = mesh_of(2, 4, names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], PLAN)
    if way == "fsdp_tp":
        fully_shard(model, mesh=mesh["dp"])
    return lambda t: distribute_tensor(t, mesh, [Shard(0), Replicate()])


def trained(way: str, compiled: bool = True, steps: int = 20, model: Any = None) -> tuple[Any, Any, Any, float]:
    """A model, its optimizer, the step and the last loss."""
    model = model or mlp()
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)
    mg.manual_seed(1)
    data = [(mg.randn(64, 16), mg.randn(64, 8)) for _ in range(4)]
    place = placed(model, way)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = mg.compile(step) if compiled else step
    for k in range(steps):
        loss = run(*map(place, data[k % 4]))
    return model, optimizer, run, loss.item()


def values(model: Any) -> list[Any]:
    return [p.detach().cpu().numpy() for p in model.parameters()]


def same(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)


def training() -> None:
    """Every way of placing a model trains it as one device does, and exchanges no more than it has to."""
    model, _, _, loss = trained("one")
    wanted = values(model)
    expected = {"dp": {"all-reduce": 1}, "2d": {"all-reduce": 2}}
    for way in ("dp", "2d", "fsdp", "fsdp_tp"):
        model, optimizer, step, found = trained(way)
        same(values(model), wanted)
        assert abs(found - loss) < 1e-5
        told = step.explain()
        assert told.traces == 1 and told.collectives and "exchanged   " in str(told), way
        assert way not in expected or told.collectives == expected[way], (way, told.collectives)
        if way == "fsdp":
            assert all(p.placements == (Shard(0),) for p in model.parameters())
            assert "all-gather" in told.collectives
            weight = model[0].weight
            assert weight.to_local().shape == (4, 16) and weight._array.cell.held.addressable_shards[0].data.shape == (4, 16)
        for p in model.parameters():
            kept = [v for v in optimizer.state[p].values() if isinstance(v, DTensor)]
            assert len(kept) == 2 and all(v.placements == p.placements == p.grad.placements for v in kept)
    assert step.explain().copied_in == 0
    model, _, _, found = trained("2d", compiled=False)
    same(values(model), wanted)
    assert model[0].weight.placements == (Replicate(), Shard(0)) and model[2].weight.placements == (Replicate(), Shard(1))
    kept = mlp()
    optimizer_before = [id(p) for p in kept.parameters()]
    placed(kept, "fsdp_tp")
    assert [id(p) for p in kept.parameters()] == optimizer_before and kept[0].weight.placements == (Shard(1), Shard(0))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        q, k, v = (f(y).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.o(found.transpose(1, 2).reshape(x.shape))


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.block, self.head = nn.Embedding(16, 16), nn.Embedding(8, 16), Block(16, 4), nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(self.words(x) + self.places(mg.arange(x.shape[1], device=x.device))))


def attention() -> None:
    """Of a transformer: heads on different devices, and nothing is gathered."""
    found = {}
    for way in ("one", "dp", "2d", "eager"):
        mg.manual_seed(0)
        model, words = Language(), mg.randint(0, 16, (16, 9))
        if way == "one":
            model.to("xla")
            words = words.to("xla")
        elif way == "dp":
            mesh = init_device_mesh("cpu", (8,))
            distribute_module(model, mesh)
            words = distribute_tensor(words, mesh, [Shard(0)])
            assert words.device.type == "cpu"
        else:
            mesh = mesh_of(2, 4, names=("dp", "tp"))
            parallelize_module(model, mesh["tp"], {"block.[qkv]": ColwiseParallel(), "block.o": RowwiseParallel()})
            words = distribute_tensor(words, mesh, [Shard(0), Replicate()])
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(words: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = step if way == "eager" else mg.compile(step)
        for _ in range(5):
            run(words)
        found[way] = values(model)
        same(found[way], found["one"])
        if way in ("dp", "2d"):  # the count of targets, then the gradients; in the block, one sum each way
            assert run.explain().collectives == {"all-reduce": 2 if way == "dp" else 4}, run.explain().collectives


def layers() -> None:
    """Layers of which each device has a part of the batch gather nothing."""
    mesh = mesh_of(8)
    for make, shape in [(lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)), (8, 2, 4, 4)),
                        (lambda: nn.GroupNorm(2, 4), (8, 4, 3)),
                        (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (8, 4, 8))]:
        mg.manual_seed(0)
        model, x = make(), mg.randn(*shape)
        grads = []
        for at in ("cpu", "mesh"):
            if at == "mesh":
                distribute_module(model, mesh)
                x = distribute_tensor(x, mesh, [Shard(0)])

            @mg.compile
            def sweep(x: Any, model: Any = model) -> None:
                model.zero_grad()
                (model(x) ** 2).mean().backward()

            sweep(x)
            grads.append([p.grad.cpu().numpy() for p in model.parameters()])
        same(*grads)
        assert sweep.explain().collectives == {"all-reduce": 1}, (model, sweep.explain().collectives)


def tensors() -> None:
    """What a placed tensor is, computes and refuses."""
    mesh = mesh_of(2, 4, names=("dp", "tp"))
    x = mg.arange(64.0).reshape(8, 8)
    a = distribute_tensor(x, mesh, [Shard(0), Shard(1)])
    assert isinstance(a, DTensor) and isinstance(a, mg.Tensor) and not isinstance(x, DTensor) and not hasattr(x, "placements")
    assert a.placements == (Shard(0), Shard(1)) and a.device_mesh == mesh and a.device == mg.device("xla") and a.to_local().shape == (4, 2)
    assert a.full_tensor().tolist() == x.tolist() and not isinstance(a.full_tensor(), DTensor)
    b = a.redistribute(mesh, [Replicate(), Shard(0)])
    assert b.placements == (Replicate(), Shard(0)) and a.redistribute(mesh["tp"], [Replicate()]).placements == (Shard(0), Replicate())
    assert (a + b).sum().item() == 2 * x.sum().item() and (a @ b.T).cpu().tolist() == (x @ x.T).tolist()
    a[1:3, 2] = 7.0
    a.mul_(2)
    b.copy_(x)
    assert a.placements == (Shard(0), Shard(1)) and b.placements == (Replicate(), Shard(0)) and a.cpu()[2, 2] == 14
    assert mg.ones(2, device=a.device).placements == (Replicate(), Replicate())
    w = distribute_tensor(nn.Parameter(x), mesh["tp"], [Shard(0)])
    assert type(w) is nn.Parameter and w.is_leaf and w.requires_grad and w.placements == (Replicate(), Shard(0))
    (w.redistribute(mesh, [Shard(1), Replicate()]).sin() * 2).sum().backward()
    np.testing.assert_allclose(w.grad.cpu().numpy(), 2 * x.cos().numpy(), atol=1e-6)
    w.full_tensor().sum().backward()
    assert zeros(8, 4, device_mesh=mesh, placements=[Shard(0), Shard(1)]).sum().item() == 0 and randn(8, device_mesh=mesh).shape == (8,)
    assert DTensor.from_local(x, mesh, [Shard(0), Replicate()]).shape == (8, 8) and mesh.size() == 8 and mesh["tp"].shape == (4,) and mesh.mesh.shape == (2, 4)
    for call, error, text in [(lambda: a + x, ValueError, "a mesh of xla"), (lambda: a + x.to("xla"), ValueError, "mesh"),
                              (lambda: distribute_tensor(mg.ones(9), mesh, [Shard(0), Replicate()]), ValueError, "equal parts"),
                              (lambda: distribute_tensor(x, mesh, [Shard(0)]), ValueError, "placements"), (lambda: mesh_of(3, 4), RuntimeError, "12 devices"),
                              (lambda: x.full_tensor(), TypeError, "not spread"), (lambda: distribute_tensor(w * 2, mesh), RuntimeError, "computed")]:
        try:
            call()
        except error as found:
            assert text in str(found), found
        else:
            raise AssertionError(text)


def steps() -> None:
    """What a compiled step is given: NumPy's memory is copied to all devices, placements may change between calls."""
    mesh = mesh_of(8)
    w, state = distribute_tensor(mg.ones(8, 4), mesh, [Shard(0)]), mg.zeros(4)

    @mg.compile
    def step(x: Any) -> Any:
        y = distribute_tensor(x * w, mesh, [Shard(1)]) if x.shape[0] > 8 else x * w
        state.add_(y.sum(0))
        w.mul_(2)
        return y.redistribute(mesh, [Replicate()])

    out = step(mg.full((8, 4), 3.0))
    assert out.placements == (Replicate(),) and out.cpu().sum() == 96 and state.tolist() == [24] * 4 and w.placements == (Shard(0),)
    out = step(distribute_tensor(mg.ones(8, 4), mesh, [Shard(0)]))
    assert out.cpu().sum() == 64 and state.tolist() == [40] * 4
    w.data = w.redistribute(mesh, [Replicate()]).data
    step(mg.ones(8, 4))
    assert w.placements == (Replicate(),) and w.cpu().sum() == 8 * 32 and "another memory" in step.explain().why[-1]
    try:
        step(mg.ones(8, 4, device="xla"))
    except ValueError as error:
        assert "mesh" in str(error)
    else:
        raise AssertionError


def checkpoints() -> None:
    """What was saved from one mesh is loaded onto another, and into the CPU's memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "step_1")
        model, optimizer, _, _ = trained("fsdp_tp", steps=3)
        for _ in range(2):  # the second replaces the first
            checkpoint.save({"model": model, "optimizer": optimizer, "step": 3, "short": mg.ones(3, dtype=mg.bfloat16)}, checkpoint_id=path)
        assert [p.name for p in Path(folder).iterdir()] == ["step_1"]
        index = json.loads((path / "index.json").read_text())
        parts = index["tensors"]["model.0.weight"]["parts"]
        assert len(parts) == 8 and np.load(path / parts[0]["file"]).shape == tuple(parts[0]["shape"]) == (8, 8)
        wanted = values(model)
        for way in ("dp", "fsdp", "2d", "one", "cpu"):
            other, kept = mlp(), None
            for p in other.parameters():
                p.data.zero_()
            if way != "cpu":
                placed(other, way)
            kept = mg.optim.Adam(other.parameters(), lr=0.5)
            state = {"model": other, "optimizer": kept, "step": 0, "short": mg.zeros(3, dtype=mg.bfloat16)}
            checkpoint.load(state, checkpoint_id=path)
            same(values(other), wanted)
            assert state["step"] == 3 and state["short"].tolist() == [1, 1, 1] and kept.param_groups[0]["lr"] == 0.01
            for p, q in zip(other.parameters(), model.parameters()):
                mean = kept.state[p]["exp_avg"]
                assert mean.device == p.device and getattr(mean, "placements", None) == getattr(p, "placements", None)
                same([mean.cpu().numpy()], [optimizer.state[q]["exp_avg"].cpu().numpy()])
        for state, text in [({"model": {"9.weight": mg.ones(2)}}, "model.9.weight"), ({"model": {"0.bias": mg.ones(2)}}, "shape")]:
            try:
                checkpoint.load(state, checkpoint_id=path)
            except RuntimeError as error:
                assert text in str(error)
            else:
                raise AssertionError(text)
        (path / parts[0]["file"]).unlink()
        try:
            checkpoint.load({"model": mlp()}, checkpoint_id=path)
        except ValueError as error:
            assert parts[0]["file"] in str(error)
        else:
            raise AssertionError


if __name__ == "__main__":
    assert len(jax.devices()) == 8
    for name in sys.argv[1:]:
        globals()[name]()
        print(name, flush=True)
