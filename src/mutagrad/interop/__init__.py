"""Functions written here, used inside programs of PyTorch's or JAX's.

A program that is written with PyTorch can stay what it is, and have only one function, such as a loss that fills a
table, written with mutagrad:

    from mutagrad import interop

    @interop.torch
    def loss(x, y):           # tensors of mutagrad
        table = mg.zeros(...)
        ...

    loss(a, b).backward()     # tensors of PyTorch

`interop.jax` does the same for JAX. Neither library is imported before one of these is called.
"""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..base.errors import BadArgument, MissingExtra
from ..nn.module import Module
from ..tensors.tensor import Tensor

__all__ = ["jax", "torch"]


def torch(fn: Callable[..., Any]) -> Any:
    """Return a function of PyTorch's tensors that computes, and differentiates, what `fn` does with ours.

    Arguments and results may be trees of tensors and other values. Memory is shared, not copied; what is written into
    an argument is written into PyTorch's tensor. Derivatives of every order reach the arguments, and parameters of ours
    that `fn` reads. Of a module, the result is a `torch.nn.Module` with the same parameters.
    """
    library = _library("torch", "interop.torch")
    if library.Tensor is Tensor:  # a program that runs with mutagrad as torch
        return fn
    if isinstance(fn, library.nn.Module):
        raise BadArgument("interop.torch: this is a module of PyTorch's already", fix="give a function of mutagrad's")
    _check(fn, "interop.torch")
    if isinstance(fn, Module):
        return import_module("mutagrad.interop.torch_module").mirrored(fn)
    return import_module("mutagrad.interop.torch_function").wrapped(fn)


def jax(fn: Callable[..., Any], *, result: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a function of JAX's arrays that computes, and differentiates, what `fn` does with our tensors.

    It runs under `jit`, `vmap` and `grad`, as a callback: so `fn` must be pure. Under `jit` JAX has to know the shapes
    of results beforehand: `fn` is called once for each combination of shapes, with zeros, unless `result`, a function
    of the arguments' `jax.ShapeDtypeStruct`s, tells them.
    """
    _library("jax", "interop.jax")
    _check(fn, "interop.jax")
    return import_module("mutagrad.interop.jax_function").wrapped(fn, result)  # type: ignore[no-any-return]


def _library(name: str, asked: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(f"{asked}: needs {name}, which is not installed", fix=f"pip install {name}") from None


def _check(fn: Any, asked: str) -> None:
    if not callable(fn):
        raise BadArgument(f"{asked}: expects a function, got {type(fn).__name__}", fix=f"{asked}(fn)(*arguments)")
