"""Checkpoints of functions of sparse tensors: what is computed again is a function of their values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.pytree import tree_flatten, tree_unflatten
from .tensor import SparseTensor

Calls = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Callable[[Any], Any]]


def by_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Calls:
    """Return a function of dense tensors that does the same, its arguments, and what turns its results into these.

    The places of results are those of the first call: they are constants, as those of arguments are.
    """
    like, spec = tree_flatten((args, kwargs))
    shells: list[Any] = []

    def of_values(*args: Any, **kwargs: Any) -> list[Any]:
        given = [_with(x, v) for x, v in zip(like_places, tree_flatten((args, kwargs))[0])]
        args, kwargs = tree_unflatten(given, spec)
        results, form = tree_flatten(function(*args, **kwargs))
        if not shells:
            shells[:] = [_places(y) for y in results], form
        return [_values(y) for y in results]

    def meant(results: list[Any]) -> Any:
        places, form = shells
        return tree_unflatten([_with(x, v) for x, v in zip(places, results)], form)

    like_places = [_places(x) for x in like]
    args, kwargs = tree_unflatten([_values(x) for x in like], spec)
    return of_values, args, kwargs, meant


def _values(x: Any) -> Any:
    return x._numbers if isinstance(x, SparseTensor) else x


def _places(x: Any) -> SparseTensor | None:
    """A sparse tensor without values: whoever keeps it keeps no memory that is computed again."""
    return x._with(None) if isinstance(x, SparseTensor) else None  # type: ignore[arg-type]


def _with(places: SparseTensor | None, values: Any) -> Any:
    return values if places is None else places._with(values)
