"""Devices in rows and columns, `torch.distributed.device_mesh`: JAX's meshes under PyTorch's names.

    mesh = init_device_mesh("xla", (2, 4), mesh_dim_names=("dp", "tp"))
    mesh["tp"]    # what is placed over a part of the dimensions stays as it was over the others

A mesh is XLA's whatever its device type is: "cpu" means JAX's devices of the CPU, not NumPy's memory. One process
computes with all of its devices, and the processes of a group with those of all.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument, BadValue
from ..base.sockets import socket

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Devices by their numbers, as an array: `DeviceMesh("xla", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))`."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        socket("devices").jax_devices("DeviceMesh")
        numbers = np.array(mesh.tolist() if hasattr(mesh, "tolist") else mesh, np.int64)
        names = tuple(mesh_dim_names) if mesh_dim_names is not None else tuple(f"dim_{d}" for d in range(numbers.ndim))
        if len(names) != numbers.ndim or len(set(names)) != len(names):
            raise BadValue(f"DeviceMesh: {len(set(names))} different names for {numbers.ndim} dimensions: {names}",
                           fix="mesh_dim_names with a name for each dimension")
        self._begin(device_type, socket("mesh").mesh_of(device_type, numbers, names), names,
                    mesh_dim_names is not None)

    def _begin(self, device_type: str, mesh: Any, names: tuple[str, ...], named: bool) -> None:
        self.device_type, self.names, self.named = device_type, names, named
        self.root = mesh  # JAX's, of all dimensions; `names` are those that this object is about
        self.place = socket("mesh").place_over(mesh, device_type)

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        return self.names if self.named else None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.root.shape[name] for name in self.names)

    @property
    def ndim(self) -> int:
        return len(self.names)

    @property
    def mesh(self) -> Any:
        """The numbers of the devices, as a tensor; of a part of the dimensions, those at 0 in the others."""
        return socket("top").tensor(socket("mesh").numbers(self))

    def size(self, mesh_dim: int | None = None) -> int:
        return prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the mesh of some of the dimensions."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        for name in wanted:
            if name not in self.names:
                raise KeyError(f"DeviceMesh: there is no dimension {name!r}, only {', '.join(self.names)}")
        part = object.__new__(DeviceMesh)
        part._begin(self.device_type, self.root, wanted, self.named)
        return part

    def get_coordinate(self) -> list[int] | None:
        """Return where the first device of this process is; None where it has none in the mesh."""
        found: list[int] | None = socket("mesh").coordinate(self)
        return found

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return where the first device of this process is along a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise BadValue("DeviceMesh.get_local_rank: the mesh has several dimensions", fix="get_local_rank(0)")
        dim = self.names.index(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim or 0
        where = self.get_coordinate()
        return -1 if where is None else where[dim]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (self.root, self.names, self.device_type) == (
            other.root, other.names, other.device_type)

    def __hash__(self) -> int:
        return hash((self.root, self.names, self.device_type))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={n}" if self.named else str(n) for name, n in zip(self.names, self.shape))
        return f"DeviceMesh({self.device_type!r}, ({sizes}))"


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *,
                     mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
    """Return a mesh of all devices of a type; of the first ones, where one process has more than it needs."""
    if not isinstance(mesh_shape, Sequence) or not all(isinstance(n, int) and n > 0 for n in mesh_shape):
        raise BadArgument(f"init_device_mesh: a shape of whole numbers is expected, got {mesh_shape!r}",
                          fix='init_device_mesh("xla", (2, 4))')
    socket("devices").jax_devices("init_device_mesh")
    numbers = socket("mesh").first_devices(device_type, prod(mesh_shape))
    return DeviceMesh(device_type, np.array(numbers).reshape(tuple(mesh_shape)), mesh_dim_names=mesh_dim_names)
