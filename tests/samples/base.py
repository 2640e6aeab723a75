"""What a line of the table of samples is: how an operation is called, on what, and what NumPy says that it computes.

    op("index_add", R(5, 7), 1, PICKS, R(5, 4), alpha=2.5, ref=...)

stands for `mg.index_add(x, 1, picks, y, alpha=2.5)` and, as a method, `x.index_add(1, picks, y, alpha=2.5)`. A `Draw` (R, P, U,
...) is an input to differentiate; an array in its place is an input without derivative (indices, masks); everything else is
a setting. The reference takes the same arguments with arrays for tensors, and is what finite differences are taken of.

Most inputs have more than 32 elements: smaller ones are saved by copy, and the harder way is the one to test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Draw:
    """A float input: its shape and the range that its values are drawn from."""

    shape: tuple[int, ...]
    low: float
    high: float
    zeros: bool = False

    def values(self, rng: np.random.Generator) -> Array:
        array = np.array(rng.uniform(self.low, self.high, self.shape))
        if self.zeros and array.size:
            array.reshape(-1)[:: max(array.size // 4, 2)] = 0
        return array

    def __str__(self) -> str:
        return f"[{','.join(map(str, self.shape))}]"


def domain(low: float, high: float, zeros: bool = False) -> Callable[..., Draw]:
    return lambda *shape: Draw(shape, low, high, zeros)


R, P, U = domain(-2, 2), domain(0.2, 2), domain(-0.9, 0.9)  # real, positive, inside the unit interval
ABOVE1, WITHIN01, POLES = domain(1.1, 3), domain(0.1, 0.9), domain(-1.4, 1.4)
Z = domain(-2, 2, zeros=True)


@dataclass(frozen=True, eq=False)
class Sample:
    """A call.

    `view`: the result is a window on the first input. `grad`: some result has a derivative. `once`: there is no second one, and
    asking for it raises NotImplementedError. `ties`: equal elements are kinks. `complex`: complex inputs are to be tried, too.
    """

    name: str
    arguments: tuple[Any, ...]
    settings: dict[str, Any]
    ref: Callable[..., Any]
    view: bool = False
    grad: bool = True
    elementwise: bool = False
    note: str = ""
    once: bool = False
    ties: bool = False
    complex: bool = False
    draws: tuple[Draw, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", tuple(_draws((self.arguments, tuple(self.settings.values())))))

    def __str__(self) -> str:
        parts = [*map(_short, self.arguments), *(f"{k}={_short(v)}" for k, v in self.settings.items())]
        return f"{self.name}({', '.join(parts)}){self.note}"

    def arrays(self, dtype: Any = np.float64) -> list[Array]:
        rng = np.random.default_rng(sum(map(ord, str(self))))
        return [d.values(rng).astype(dtype) for d in self.draws]

    def bind(self, values: list[Any], constant: Callable[[Array], Any] = lambda a: a) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and settings with `values` in place of the draws."""
        rest = iter(values)

        def fill(v: Any) -> Any:
            if isinstance(v, Draw):
                return next(rest)
            if isinstance(v, np.ndarray):
                return constant(v)
            return type(v)(map(fill, v)) if isinstance(v, (list, tuple)) else v

        return [fill(v) for v in self.arguments], {k: fill(v) for k, v in self.settings.items()}

    def reference(self, arrays: list[Array]) -> tuple[Array, ...]:
        """What NumPy says."""
        arguments, settings = self.bind(arrays)
        with np.errstate(all="ignore"):
            return tuple(np.asarray(r) for r in listed(self.ref(*arguments, **settings)))

    def forms(self, library: Any) -> dict[str, Callable[..., Any]]:
        """The function and the method, where the library has them."""
        found: dict[str, Callable[..., Any]] = {}
        function = named(library, self.name)
        if function is not None:
            found["function"] = function
        attribute = getattr(library.Tensor, self.name, None)
        if self.arguments and isinstance(self.arguments[0], (Draw, np.ndarray)) and self.name not in NO_METHOD:
            if callable(attribute):
                found["method"] = lambda x, *arguments, **settings: getattr(x, self.name)(*arguments, **settings)
            elif attribute is not None:
                found["property"] = lambda x: getattr(x, self.name)
        return found

    @property
    def writes(self) -> bool:
        """Whether it exists only as a write into its first input."""
        return self.name == "__setitem__" or self.name.endswith("_") and not self.name.startswith("_")

    def call(self, library: Any, tensors: list[Any], form: Callable[..., Any] | None = None) -> tuple[Any, ...]:
        """The results, of the function if not told otherwise; a write is done to a clone."""
        tensors = [tensors[0].clone(), *tensors[1:]] if self.writes else tensors
        arguments, settings = self.bind(tensors, library.tensor)
        result = (form or next(iter(self.forms(library).values())))(*arguments, **settings)
        return (tensors[0],) if self.writes else listed(result)


def _draws(value: Any) -> Iterator[Draw]:
    if isinstance(value, Draw):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _draws(v)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.kind}{list(value.shape)}"
    return f"[{' '.join(map(_short, value))}]" if isinstance(value, (list, tuple)) else str(value)


def named(library: Any, name: str) -> Any:
    """A function by its name, which may have dots in it: `linalg.solve`."""
    for part in name.split("."):
        library = getattr(library, part, None)
    return library


def words(text: str) -> list[str]:
    return text.split()


def listed(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (list, tuple)) else (result,)


NO_METHOD = {"where"}  # its method takes the condition second; a sample of its own says so
SAMPLES: list[Sample] = []
UNSAMPLED: set[str] = set()


def elsewhere(names: str) -> None:
    """Functions and methods that have tests of their own, because no reference says what they give (random numbers)."""
    UNSAMPLED.update(names.split())



def op(name: str, *arguments: Any, ref: Callable[..., Any], view: bool = False, grad: bool = True, note: str = "", once: bool = False, ties: bool = False,
       complex: bool = False, **settings: Any) -> None:
    SAMPLES.append(Sample(name, arguments, settings, ref, view, grad, note=note, once=once, ties=ties, complex=complex))


SHAPES = {
    1: [[(5, 7)], [(2, 3)], [()], [(0,)], [(2, 0, 3)]],
    2: [[(5, 7), (5, 7)], [(5, 7), (7,)], [(5, 1), (1, 7)], [(2, 3), ()], [(), (2, 3)], [(), ()], [(3, 1), (2, 1, 4)], [(0, 3), (3,)], [(1,), (0,)]],
    3: [[(5, 7), (5, 7), (5, 7)], [(5, 7), (7,), (5, 1)], [(1, 7), (5, 1), (7,)], [(2, 3), (), ()], [(), (), ()], [(0, 3), (3,), ()]],
}


def each(name: str, *domains: Callable[..., Draw], ref: Callable[..., Any], grad: bool = True, once: bool = False, complex: bool = False,
         **settings: Any) -> None:
    """A sample for every way in which shapes can meet."""
    for shapes in SHAPES[len(domains)]:
        arguments = tuple(d(*s) for d, s in zip(domains, shapes))
        SAMPLES.append(Sample(name, arguments, settings, ref, grad=grad, elementwise=True, once=once, complex=complex))


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction under PyTorch's names."""
    return lambda x, dim=None, keepdim=False, **settings: f(x, axis=tuple(dim) if isinstance(dim, (list, tuple)) else dim, keepdims=keepdim, **settings)
