"""What this package is called in text: mutagrad, and torch where it stands for torch.

Programs compare `str(x.dtype)` with 'torch.float32' and take such names apart, so a program that was told that this is
torch reads torch.
"""
from __future__ import annotations

_package = "mutagrad"


def called(name: str) -> str:
    """Return a name of the package as a reader would write it: `mutagrad.float32`."""
    return f"{_package}.{name}"


def call_package(name: str) -> str:
    """Call the package `name` from now on; return what it was called before."""
    global _package
    before, _package = _package, name
    return before
