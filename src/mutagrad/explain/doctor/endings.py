"""What is left when a program ends: leaves whose gradient is None or zero everywhere, and why."""
from __future__ import annotations

import sys
from typing import Any

from ...arrays import np
from ..why import why
from .books import Books


def look_at_gradients(doctor: Books) -> None:
    """Note the leaves that backward has given no gradient, or only zeros."""
    names = _names() if doctor.sweeps else {}
    for alive in list(doctor.leaves.values()) if doctor.sweeps else ():
        leaf = alive()
        if leaf is None or not leaf.requires_grad or not leaf._array.size:
            continue
        grad = leaf.grad
        if grad is None or not np.any(grad._array):
            kind = "no_gradient" if grad is None else "zero_gradient"
            _tell(doctor, leaf, names.get(id(leaf), "a leaf made here"), kind)


def _tell(doctor: Books, leaf: Any, name: str, kind: str) -> None:
    answer = why(leaf)
    said = str(answer).partition("\n")[0].partition(": ")[2] or answer.cause
    place = f" ({answer.where})" if answer.where else ""
    doctor.findings.add(kind, doctor.shadow(leaf).where, name=name, why=f"{said}{place}", fix=answer.fix or "")


def _names() -> dict[int, str]:
    """Return what the program calls its tensors, and the parameters of its modules."""
    found: dict[int, str] = {}
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if hasattr(value, "named_parameters") and not isinstance(value, type):
            found |= {id(p): f"{name}.{path}" for path, p in value.named_parameters()}
        else:
            found.setdefault(id(value), name)
    return found
