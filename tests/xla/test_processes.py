"""Several processes on this machine that compute as one, over loopback."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mutagrad as mg
from mutagrad.torch_api import launch

pytest.importorskip("jax", reason="needs the extra xla")
PATH = os.pathsep.join([str(Path(mg.__file__).parents[1]), str(Path(__file__).parents[1])])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATH, "JAX_PLATFORMS": "cpu",
               "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"}

TRAIN = '''
import os, sys
import numpy as np
import mutagrad as mg
from mutagrad import distributed as dist, nn
from mutagrad.distributed import checkpoint
from mutagrad.distributed.tensor import DTensor, Shard, distribute_module, init_device_mesh
from mutagrad.distributed.fsdp import fully_shard
from mutagrad.nn import functional as F

dist.init_process_group()
rank = dist.get_rank()

def model_of(seed):
    mg.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

def train(model, batch, compiled):
    optimizer = mg.optim.Adam(model.parameters(), lr=0.05)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    step = mg.compile(step) if compiled else step
    for k in range(20):
        x, y = data[k % 2]
        loss = step(batch(x), batch(y))
    return step, loss.item()

mg.manual_seed(7)
data = [(mg.randn(8, 4), mg.randn(8, 4)) for _ in range(2)]
alone = model_of(0)
_, wanted = train(alone, lambda t: t, False)
mesh = init_device_mesh("cpu", (4,))
part = lambda t: t[4 * rank:4 * rank + 4]
for place in (distribute_module, lambda m, mesh: fully_shard(m, mesh=mesh)):
    model = model_of(rank)  # that of the first process is everybody's
    place(model, mesh)
    step, loss = train(model, lambda t: DTensor.from_local(part(t), mesh, [Shard(0)]), True)
    assert abs(loss - wanted) < 1e-5
    for p, q in zip(model.parameters(), alone.parameters()):
        np.testing.assert_allclose(p.full_tensor().detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-5)
    if place is distribute_module:
        assert step.explain().collectives == {"all-reduce": 1}, step.explain().collectives
checkpoint.save({"model": model}, checkpoint_id=sys.argv[1])
again = model_of(5)
checkpoint.load({"model": again}, checkpoint_id=sys.argv[1])
np.testing.assert_allclose(again[0].weight.detach().numpy(), alone[0].weight.detach().numpy(), rtol=0, atol=1e-5)

parallel = nn.parallel.DistributedDataParallel(model_of(rank))
train(parallel, part, False)
for p, q in zip(parallel.module.parameters(), alone.parameters()):
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-5)

x = mg.tensor([1.0, rank])
dist.all_reduce(x)
assert x.tolist() == [2, 1]
dist.all_reduce(x, dist.ReduceOp.MAX)
dist.broadcast(x.add_(rank), 1)
assert x.tolist() == [3, 2]
both = mg.zeros(2, 2)
dist.all_gather_into_tensor(both, mg.tensor([rank, rank + 1.0]))
assert both.tolist() == [[0, 1], [1, 2]]
rows = [mg.zeros(2), mg.zeros(2)]
dist.all_gather(rows, mg.full((2,), float(rank)))
assert rows[1].tolist() == [1, 1]
dist.reduce_scatter(rows[0], [mg.full((2,), 1.0 + rank), mg.full((2,), 5.0)])
assert rows[0].tolist() == ([3, 3] if rank == 0 else [10, 10])
dist.all_to_all(rows, [mg.full((2,), 10.0 * rank), mg.full((2,), 10.0 * rank + 1)])
assert [r[0].item() for r in rows] == [rank, 10 + rank]
dist.scatter(x, [mg.zeros(2), mg.ones(2)] if rank == 0 else None, src=0)
assert x.tolist() == [rank, rank]
(dist.send if rank == 0 else dist.recv)(x, 1 - rank)
assert x.tolist() == [0, 0]
objects = [{"rank": rank}, "a" * 1000 * rank]
dist.broadcast_object_list(objects, src=1)
assert objects == [{"rank": 1}, "a" * 1000]
half = dist.new_group([1])
assert half.size() == 1 and dist.get_rank(half) == rank - 1
found = [None, None]
dist.all_gather_object(found, (rank, mg.__version__))
assert [f[0] for f in found] == [0, 1]
dist.barrier()
dist.destroy_process_group()
print("trained", flush=True)
'''

KILLED = '''
import os, signal, sys
import mutagrad as mg
from mutagrad import distributed as dist
from mutagrad.distributed.tensor import distribute_tensor, init_device_mesh

dist.init_process_group()
mesh = init_device_mesh("cpu", (4,))
x = distribute_tensor(mg.ones(4), mesh)

@mg.compile
def step():
    x.mul_(2).div_(2)
    return distribute_tensor(x, mesh, [mg.distributed.tensor.Shard(0)]).sum()

for k in range(10 ** 6):
    if sys.argv[1] == "mesh":
        step().item()
    else:
        dist.all_reduce(mg.ones(2))
    if k == 3 and dist.get_rank() == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
'''


def launched(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "program.py"
    script.write_text(text)
    return subprocess.run([sys.executable, "-m", "mutagrad", "launch", "--nproc", "2", str(script), *arguments], env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    found = launched(tmp_path, TRAIN, str(tmp_path / "saved"))
    assert found.returncode == 0 and found.stdout.count("trained") == 2, found.stdout + found.stderr
    assert len(list((tmp_path / "saved").glob("*.0.*.npy"))) == len(list((tmp_path / "saved").glob("*.1.*.npy"))) > 0


def test_a_killed_process_stops_the_others(tmp_path: Path) -> None:
    """Without a launcher that would stop them, and whichever it is: the first is where they meet. All cases at once."""
    script = tmp_path / "program.py"
    script.write_text(KILLED)
    cases = {}
    for what, victim in (("mesh", 1), ("group", 1), ("group", 0)):
        shared = {**ENVIRONMENT, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(launch.free_port()), "WORLD_SIZE": "2"}
        cases[what, victim] = [subprocess.Popen([sys.executable, str(script), what, str(victim)], env={**shared, "RANK": str(rank)},
                                                stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for (_, victim), started in cases.items():
        started[victim].communicate(timeout=60)
        begun = time.monotonic()
        _, printed = started[1 - victim].communicate(timeout=60)
        assert started[victim].returncode == -signal.SIGKILL and started[1 - victim].returncode != 0 and "LostProcess" in printed, printed
        assert time.monotonic() - begun < 25


def test_the_launcher_stops_the_others(tmp_path: Path) -> None:
    found = launched(tmp_path, "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(60)")
    assert found.returncode == 7 and "process 1 ended with status 7" in found.stderr
    found = launched(tmp_path, "import torch, os, sys\nos.write(1, f'{torch.__version__} {os.environ[\"LOCAL_RANK\"]} {sys.argv[1:]}\\n'.encode())", "a", "--b")
    assert found.returncode == 0 and sorted(line.split()[1] for line in found.stdout.splitlines()) == ["0", "1"], found.stderr
    assert all("mutagrad" in line and "['a', '--b']" in line for line in found.stdout.splitlines())


def test_what_is_needed_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    begin = mg.distributed.init_process_group
    for call, text in [(lambda: begin(), "WORLD_SIZE"), (lambda: begin(world_size=2), "RANK"), (lambda: begin(world_size=2, rank=1), "MASTER_ADDR"),
                       (lambda: begin(world_size=2, rank=2), "rank 2 of 2"), (lambda: begin("gloo", "file:///x", world_size=2, rank=1), "way to meet")]:
        with pytest.raises(RuntimeError, match=text):
            call()
    assert not mg.distributed.is_initialized()
