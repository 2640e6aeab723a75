"""Every function of `mutagrad.relax` as one of a float tensor: how it is called, and what it becomes in the limit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mutagrad as mg
from mutagrad import relax
from mutagrad.nn import functional as F


class Case(NamedTuple):
    name: str
    soft: Callable[..., Any]  # of x and a temperature
    exact: Callable[[Any], Any]


def case(name: str, exact: Callable[[Any], Any], *arguments: Any, pick: int | None = None, **settings: Any) -> Case:
    function = getattr(relax, name)

    def soft(x: Any, temperature: Any) -> Any:
        found = function(x, *arguments, **settings, temperature=temperature)
        return found if pick is None else found[pick]

    written = [name, *map(str, arguments), *(f"{k}={v}" for k, v in settings.items()), *([] if pick is None else [str(pick)])]
    return Case("-".join(written), soft, exact)


def drawn(name: str) -> Case:
    """The same draw every time; the limit is the draw with exact values."""
    function = getattr(relax, name)

    def call(x: Any, temperature: Any, hard: bool = False) -> Any:
        return function(x, hard=hard, temperature=temperature, generator=mg.Generator().manual_seed(3))

    return Case(name, call, lambda x: call(x, 1.0, True).detach())


def hot(x: Any, dim: int) -> Any:
    return F.one_hot(x.argmax(dim), x.shape[dim]).movedim(-1, dim)


def corner(x: Any) -> Any:
    at = int(x.argmax())
    return mg.tensor([at // x.shape[1], at % x.shape[1]])


def mask(x: Any, k: int, dim: int, largest: bool) -> Any:
    return mg.zeros_like(x).scatter_(dim, x.topk(k, dim, largest)[1], 1.0)


CASES = [
    case("step", lambda x: x > 0), case("sign", mg.sign),
    case("gt", lambda x: x > 0.3, 0.3), case("ge", lambda x: x >= 0.3, 0.3), case("lt", lambda x: x < 0.3, 0.3), case("le", lambda x: x <= 0.3, 0.3),
    case("eq", lambda x: x == 0.3, 0.3), case("ne", lambda x: x != 0.3, 0.3),
    Case("where", lambda x, t: relax.where(x - 0.3, x / 2, 2.0, temperature=t), lambda x: mg.where(x > 0.3, x / 2, 2.0)),
    case("maximum", lambda x: x.clamp(min=0.3), 0.3), case("minimum", lambda x: x.clamp(max=0.3), 0.3),
    case("clamp", lambda x: x.clamp(-0.5, 0.7), -0.5, 0.7), case("clamp", lambda x: x.clamp(min=-0.5), -0.5), case("clamp", lambda x: x.clamp(max=0.7), max=0.7),
    case("max", lambda x: x.max()), case("max", lambda x: x.amax(0, True), 0, True), case("max", lambda x: x.amax((0, 1)), (0, 1)), case("min", lambda x: x.amin(1), 1),
    case("round", mg.round), case("floor", mg.floor), case("ceil", mg.ceil),
    case("one_hot", lambda x: hot(x, 1)), case("one_hot", lambda x: hot(x, 0), 0), case("one_hot", lambda x: hot(x, 1), hard=True),
    case("argmax", lambda x: x.argmax()), case("argmax", lambda x: x.argmax(0), 0), case("argmax", lambda x: x.argmax(-1, True), -1, True),
    case("argmax", corner, (0, 1)), case("argmin", lambda x: x.argmin(1), 1), case("argmin", lambda x: corner(-x).flip(0), (1, 0)),
    case("permutation", lambda x: F.one_hot(x.argsort(1), x.shape[1])), case("permutation", lambda x: F.one_hot(x.argsort(0, True).T, x.shape[0]), 0, True),
    case("sort", lambda x: x.sort(1)[0], pick=0), case("sort", lambda x: x.sort(0, True)[0], 0, True, pick=0), case("sort", lambda x: x.sort(0)[1], 0, pick=1),
    case("argsort", lambda x: x.argsort(1, True), 1, True),
    case("topk", lambda x: x.topk(2)[0], 2, pick=0), case("topk", lambda x: x.topk(2, 0, False)[0], 2, 0, False, pick=0), case("topk", lambda x: x.topk(3, 1)[1], 3, 1, pick=1),
    case("topk_mask", lambda x: mask(x, 2, -1, True), 2), case("topk_mask", lambda x: mask(x, 1, 0, False), 1, 0, False),
    case("rank", lambda x: x.argsort(1).argsort(1)), case("rank", lambda x: x.argsort(0, True).argsort(0), 0, True),
    drawn("gumbel_softmax"), drawn("bernoulli"),
]


def points(*shape: int, dtype: Any = mg.float64, seed: int = 0) -> Any:
    """Numbers from -2.5 to 2.5 of which no two are near each other, nor near a multiple of 0.05."""
    n = mg.Size(shape).numel()
    order = mg.randperm(n, generator=mg.Generator().manual_seed(seed))
    return (((order - n // 2) * 5 // n).to(dtype) + order.to(dtype) / n * 0.8 + 0.0123).reshape(*shape)
