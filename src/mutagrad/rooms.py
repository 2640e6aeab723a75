"""Which operations are loaded when they are first asked for, and from where.

`import mutagrad` loads what nearly every program uses; loading the rest with it would double the time that it takes. A
room is a module of `ops/`: its functions are names of `mutagrad`, its methods those of `Tensor`.
"""
from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple


class Room(NamedTuple):
    functions: str = ""
    methods: str = ""


ROOMS: dict[str, Room] = {
    "special": Room(
        functions="""""",
        methods=""""""),
    "complex": Room(
        functions="""""",
        methods=""""""),
    "statistics": Room(
        functions="""""",
        methods=""""""),
    "searching": Room(
        functions="""""",
        methods=""""""),
    "matrices": Room(
        functions="""""",
        methods=""""""),
    "decompose": Room(
        functions="""""",
        methods=""""""),
    "products": Room(
        functions="""""",
        methods=""""""),
    "fourier": Room(
        functions="""""",
        methods=""""""),
    "arrange": Room(
        functions="""""",
        methods=""""""),
    "scattering": Room(
        functions="""""",
        methods=""""""),
    "draws": Room(
        functions="""""",
        methods=""""""),
    "activation": Room(
        functions="""""",
        methods=""""""),
    "loss": Room(
        functions="""""",
        methods=""""""),
    "normalize": Room(
        functions="""""",
        methods=""""""),
    "attention": Room(
        functions="""""",
        methods=""""""),
    "embedding": Room(
        functions="""""",
        methods=""""""),
    "conv": Room(
        functions="""""",
        methods=""""""),
    "pool": Room(
        functions="""""",
        methods=""""""),
    "pad": Room(
        functions="""""",
        methods=""""""),
    "resample": Room(
        functions="""""",
        methods=""""""),
}

# Modules of the package that load when first named: `mutagrad.linalg`.
MODULES = frozenset(["fft", "linalg", "nn", "special"])

FUNCTIONS = {name: room for room, names in ROOMS.items() for name in names.functions.split()}


def load(room: str) -> ModuleType:
    return import_module(f"mutagrad.ops.{room}")


def find(name: str) -> Any:
    """A function or module of `mutagrad` that has not been asked for before."""
    if name in FUNCTIONS:
        return getattr(load(FUNCTIONS[name]), name)
    if name in MODULES:
        return import_module(f"mutagrad.{name}")
    raise AttributeError(f"module 'mutagrad' has no attribute {name!r}")


class Later:
    """A method that takes its own place in the class when it is first asked for."""

    __slots__ = ("room", "name")

    def __init__(self, room: str, name: str) -> None:
        self.room, self.name = room, name

    def __get__(self, tensor: Any, owner: type) -> Any:
        found = getattr(load(self.room), self.name)
        for base in owner.__mro__:
            if base.__dict__.get(self.name) is self:
                setattr(base, self.name, found)
        return getattr(owner if tensor is None else tensor, self.name)


def furnish(tensor_class: type) -> None:
    """Gives the class the methods of all rooms."""
    for room, names in ROOMS.items():
        for name in names.methods.split():
            setattr(tensor_class, name, Later(room, name))
