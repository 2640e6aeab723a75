"""Counting the floating point operations of products: multiplications and additions of matrices and convolutions.

>>> import mutagrad as mg
>>> with mg.utils.flop_counter.FlopCounterMode(display=False) as counter:
...     mg.nn.Linear(3, 2)(mg.ones(5, 3)).sum().backward()
>>> counter.get_total_flops()
120
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ..base.errors import NotSupported
from ..nn.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from .overrides import TorchFunctionMode

__all__ = ["FlopCounterMode"]

# The products, and where the first of their factors stands.
_FACTORS = {"matmul": 0, "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "linear": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}


def _cost(name: str, args: tuple[Any, ...], out: Any) -> tuple[int, tuple[Any, ...]]:
    """Return the operations of a call, and the factors whose derivatives cost as many each."""
    if name in _FACTORS:
        x, y = args[_FACTORS[name]:][:2]
        return 2 * out.numel() * x.shape[-1], (x, y)
    if name.startswith("conv_transpose"):
        return 2 * args[0].numel() * prod(args[1].shape[1:]), args[:2]
    if name.startswith("conv") and name[-1] == "d":
        return 2 * out.numel() * prod(args[1].shape[1:]), args[:2]
    if name == "scaled_dot_product_attention":
        q, k, v = args[:3]
        return 2 * prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1]), (q, k)
    return 0, ()


class FlopCounterMode(TorchFunctionMode):
    """A block whose products are counted: those of its calls, and those that `backward()` computes in it.

    >>> import mutagrad as mg
    >>> with mg.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     y = mg.ones(2, 3) @ mg.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Module | Sequence[Module] | None = None, depth: int = 2, display: bool = True,
                 custom_mapping: Mapping[Any, Any] | None = None) -> None:
        if custom_mapping:
            raise NotSupported("FlopCounterMode: custom_mapping is not supported",
                               why="operations have no numbers by which it could find them",
                               fix="leave custom_mapping out")
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._inside = ["Global"]
        self._names: dict[Module, str] = {}
        self._backward: list[tuple[list[str], str, int]] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._hooks = (register_module_forward_pre_hook(self._enter),
                       register_module_forward_hook(self._leave, always_call=True))
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        for hook in self._hooks:
            hook.remove()
        if self.display:
            print(self.get_table())

    def _enter(self, module: Module, inputs: tuple[Any, ...]) -> None:
        if module not in self._names:
            top = type(module).__name__
            self._names.update({inner: ".".join(filter(None, (top, path))) for path, inner in module.named_modules()})
        self._inside.append(self._names[module])

    def _leave(self, module: Module, inputs: tuple[Any, ...], output: Any) -> None:
        self._inside.pop()

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        count, factors = _cost(name, (*args, *(kwargs or {}).values()), out)
        if count:
            self._add(list(self._inside), name, count)
            wanted = sum(x.requires_grad for x in factors) if out.requires_grad else 0
            self._backward.append((list(self._inside), name, count * wanted))
        elif name == "backward":
            while self._backward:
                self._add(*self._backward.pop())
        return out

    def _add(self, places: list[str], name: str, count: int) -> None:
        for place in places:
            self.flop_counts[place][name] += count

    def get_total_flops(self) -> int:
        """Return the operations of all products: two for each multiply-add.

        >>> import mutagrad as mg
        >>> with mg.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     y = mg.ones(2, 3) @ mg.ones(3, 4)
        >>> counter.get_total_flops()
        48
        """
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return operations by module and by the name of the function.

        >>> import mutagrad as mg
        >>> with mg.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     y = mg.ones(2, 3) @ mg.ones(3, 4)
        >>> sum(counter.get_flop_counts()["Global"].values())
        48
        """
        return {place: dict(counts) for place, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the same as text, of modules down to a depth.

        >>> import mutagrad as mg
        >>> with mg.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     y = mg.ones(2, 3) @ mg.ones(3, 4)
        >>> "Global" in counter.get_table()
        True
        """
        deepest = self.depth if depth is None else depth
        rows = [(place, sum(counts.values())) for place, counts in self.flop_counts.items()
                if place.count(".") <= deepest]
        width = max((len(place) for place, _ in rows), default=0)
        return "\n".join(f"{place:<{width}}  {total:>16,}" for place, total in rows)
