"""Quantized types: there are none. Models that could be quantized run as they are."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ...base.errors import NotSupported
from ...nn.linear import Identity

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Identity):
    """Where a quantized model would begin: returns its input."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()


class DeQuantStub(QuantStub):
    """Where a quantized model would end: returns its input."""


def _refuse(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises when it is called, so that programs which only name it run."""
    def refused(*arguments: Any, **settings: Any) -> NoReturn:
        raise NotSupported(f"quantization.{name}: there are no quantized types", fix="use the model as it is")

    return refused


convert, fuse_modules, fuse_modules_qat, prepare, prepare_qat, quantize_dynamic = map(
    _refuse, ("convert", "fuse_modules", "fuse_modules_qat", "prepare", "prepare_qat", "quantize_dynamic"))
get_default_qconfig, get_default_qat_qconfig = map(_refuse, ("get_default_qconfig", "get_default_qat_qconfig"))
