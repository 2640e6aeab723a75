"""Tensors that are spread over 8 devices: each case of on_devices.py, in one process that has them."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mutagrad as mg

pytest.importorskip("jax", reason="needs the extra xla")
HERE = Path(__file__)
CASES = ("training", "attention", "layers", "tensors", "steps", "checkpoints")


@pytest.fixture(scope="module")
def done() -> tuple[list[str], str]:
    """Which cases have passed, and what was printed."""
    path = os.pathsep.join([str(Path(mg.__file__).parents[1]), str(HERE.parents[1])])
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    ran = subprocess.run([sys.executable, "-W", "error", str(HERE.with_name("on_devices.py")), *CASES], capture_output=True,
                         text=True, timeout=300, env={**os.environ, "PYTHONPATH": path, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"})
    return ran.stdout.split(), ran.stdout + ran.stderr


@pytest.mark.parametrize("case", CASES)
def test_over_8_devices(case: str, done: tuple[list[str], str]) -> None:
    passed, printed = done
    assert case in passed, printed


def test_one_device_is_a_mesh_too() -> None:
    from mutagrad.distributed.tensor import Shard, distribute_tensor, init_device_mesh
    mesh = init_device_mesh("cpu", (1,))
    x = distribute_tensor(mg.arange(4.0), mesh, [Shard(0)])
    assert (x * 2).full_tensor().tolist() == [0, 2, 4, 6] and x.placements == (Shard(0),) and x.device.type == "cpu"
    with pytest.raises(RuntimeError, match="xla_force_host_platform_device_count"):
        init_device_mesh("cpu", (64,))
