"""PyTorch's names in pickles that are written here, where PyTorch need not be installed.

A pickle names classes and functions by their modules, and a pickler insists that they can be imported. So what stands
here is pickled under names of this module, and these names are then exchanged (`renamed`). Every name is written once
in a pickle and referred to by number afterwards, so a name that occurs more often is a text of the user's; then, and
where protocols count the bytes of their names, the pickler in Python does it, in which the name itself is chosen.
"""
from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from ..core import dtypes

HERE = __name__
# The module in which PyTorch has what is called like this.
MODULES = {
    **dict.fromkeys(("_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_parameter_with_state",
                     "_rebuild_sparse_tensor"), "torch._utils"),
    "_rebuild_from_type_v2": "torch._tensor", "_get_layout": "torch.serialization", "UntypedStorage": "torch.storage",
    **dict.fromkeys(("Size", "Tensor", "device"), "torch"),
    **{name.replace("Tensor", "Storage"): "torch" for name in dtypes.CLASS_NAMES.values()},
}


class _Name(type):
    """A class that stands for a name."""


def _named(name: str) -> Any:
    return _Name(name, (), {"__module__": HERE})


def original(module: str, name: str) -> tuple[str, str]:
    """Return PyTorch's name for one of this module, as picklers of other modules write it, and others as they are."""
    return (MODULES[name], name) if module == HERE and name in MODULES else (module, name)


def __getattr__(name: str) -> Any:
    """Return what stands for one of PyTorch's names; it is made when first asked for."""
    if name not in MODULES:
        raise AttributeError(f"module {HERE!r} has no attribute {name!r}")
    globals()[name] = made = _named(name)
    return made


def is_name(value: Any) -> bool:
    """Return whether this is pickled as the name of something that PyTorch has."""
    return type(value) is _Name or isinstance(value, dtypes.dtype)


def _names_of(value: Any) -> tuple[str, str]:
    """Return the module and the name that PyTorch has for it."""
    return ("torch", value.name) if isinstance(value, dtypes.dtype) else (MODULES[value.__name__], value.__name__)


def renamed(program: bytes, used: Iterable[Any]) -> bytes | None:
    """Return a pickle of protocol 2 or 3 with PyTorch's names for what it uses; None where that is not certain."""
    if program[:1] != b"\x80" or program[1] not in (2, 3):
        return None
    for value in used:
        ours = (dtypes.__name__, value.__reduce__()) if isinstance(value, dtypes.dtype) else (HERE, value.__name__)
        written = pickle.GLOBAL + "\n".join((*ours, "")).encode()
        if program.count(written) != 1:
            return None
        program = program.replace(written, pickle.GLOBAL + "\n".join((*_names_of(value), "")).encode())
    return program


_InPython: Any = pickle._Pickler  # type: ignore[attr-defined]


class NamingPickler(_InPython):  # type: ignore[misc]
    """The pickler in Python, which writes PyTorch's names at once."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if not is_name(obj):
            super().save_global(obj, name)
            return
        module, called = _names_of(obj)
        if self.proto >= 4:
            self.save(module)
            self.save(called)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{called}\n".encode())
        self.memoize(obj)
