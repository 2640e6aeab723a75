"""`compile(step)`: a whole step, with its writes, its backward and its optimizer, as one program of XLA's."""
from __future__ import annotations

import copy
import functools
import os
import warnings
from collections.abc import Callable
from math import copysign
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakSet

import jax
import numpy

from ..arrays.xla import rules  # noqa: F401  what NumPy's functions mean
from ..arrays.xla.memory import NotTraced, XArray
from ..base.errors import MutagradError, NotSupported
from ..base.modes import PRECISION, mode
from ..base.provenance import describe, to_user
from ..base.pytree import tree_flatten
from ..core.dtypes import get_default_dtype
from ..core.storage import TensorBase
from ..nn.parameter import Parameter
from ..tensors.tensor import Tensor
from . import kernels  # noqa: F401  what operations are computed by
from .explain import Explanation
from .guards import Retrace
from .items import PLAIN, contents
from .program import Program
from .unchanged import like, spread_of

LIMIT = 3  # calls alike, in a row, that change Python's state, after which it is an error
PROGRAMS = 64  # that are kept for one function


class Same:
    """An object as a key: equal to itself only, and not freed as long as the key is there."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


class Compiled:
    """A function that runs as a program of XLA's: called as the function is."""

    def __init__(self, step: Callable[..., Any], fallback: bool = False) -> None:
        functools.update_wrapper(self, step)
        _keep_on_disk()
        self.step, self.fallback = step, fallback
        self.programs: dict[Any, list[Program]] = {}
        self.newest: list[tuple[Any, Program]] = []
        self.retraces: list[str] = []
        self.eager: str | None = None  # why it runs as it is
        self.once: dict[Any, int] = {}  # calls of a kind that changed Python's state: a cache is filled once for each
        self.last: Program | None = None
        _ALL.add(self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """A method, where a class has it as an attribute."""
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        now = mode.now
        if self.eager is not None or now.kind is not None or now.transformed or now.dual is not None:
            # inside another step, a vmap or a derivative, which has no use for a program
            return self.step(*arguments, **settings)
        leaves, form = _leaves(arguments, settings)
        try:
            key = form, tuple([_about(v) for v in leaves]), _shared(leaves), _modes()
        except NotSupported as error:
            return self.refused(_no_argument(error), arguments, settings)
        known = self.programs.get(key)
        why = "the first call" if not self.programs else "other arguments: shapes, types, or numbers"
        for program in known or ():
            why = program.guards.check() or ""
            if not why:
                try:
                    return self.run(program, leaves)
                except Retrace as error:
                    why = str(error)
        result = self.traced(key, leaves, arguments, settings, why)
        self.warn_of_clocks()
        return result

    def run(self, program: Program, leaves: list[Any]) -> Any:
        self.last = program
        return program(leaves)

    def traced(self, key: Any, leaves: list[Any], arguments: Any, settings: Any, why: str) -> Any:
        try:
            program = Program(functools.partial(self.step, *arguments, **settings), leaves)
        except NotSupported as error:  # also what is not there in a program, as a second derivative of a loop
            return self.refused(error, arguments, settings)
        self.retraces.append(why)
        if program.survivors or program.guards.changed:
            if len(self.once) > PROGRAMS:
                self.once.clear()
            self.once[key] = self.once.get(key, 0) + 1
            unstable = self.unstable(program) if self.once[key] >= LIMIT else None
            result = self.run(program, leaves)  # or what the step keeps would have no values
            if unstable is not None:
                if not self.fallback:
                    raise unstable
                self.give_up(unstable)
            return result
        self.once.clear()
        self.programs.setdefault(key, []).insert(0, program)
        self.newest.append((key, program))
        if len(self.newest) > PROGRAMS:
            old, forgotten = self.newest.pop(0)
            self.programs[old].remove(forgotten)
            if not self.programs[old]:
                del self.programs[old]
        return self.run(program, leaves)

    def refused(self, error: MutagradError, arguments: Any, settings: Any) -> Any:
        """Run the step as it is, if that is wanted."""
        if not self.fallback:
            raise error
        self.give_up(error)
        return self.step(*arguments, **settings)

    def warn_of_clocks(self) -> None:
        """Say what a step has asked that would be answered otherwise in each run."""
        for name, where in () if self.eager is not None or self.last is None else self.last.guards.clocks.items():
            warnings.warn(f"compile: {name}() is called only while the step is traced: at {describe(where)}",
                          stacklevel=to_user())

    def give_up(self, error: MutagradError) -> None:
        """Run the step as it is from now on, and say so."""
        self.eager = str(error)
        warnings.warn(f"compile: the step runs eagerly from here on: {error}", stacklevel=to_user())

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self.step, memo), self.fallback)

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self.step, self.fallback)

    def explain(self) -> Explanation:
        """Return what was compiled: inputs, outputs, bytes, times, guards, and why it was traced again."""
        return Explanation(self)

    def unstable(self, program: Program) -> MutagradError:
        changed = program.guards.changed
        what = f"Python's state: {changed[0]}" if changed else (
            f"what is kept outside: a tensor of shape {tuple(program.survivors[0][0].shape)} that it makes")
        return NotTraced(f"compile: the step changes {what}",
                         why="Python's part of a step runs only while it is traced, and not again with the program",
                         fix="write into a tensor that is there (self.state.copy_(new)), return it, or do it outside")


def _no_argument(error: MutagradError) -> MutagradError:
    return NotTraced("compile: a sparse tensor is an argument",
                     why="a program computes with memory in which all elements lie",
                     fix="x.to_dense(), or compile(step, fallback=True)") if "sparse" in error.what else error


_TENSORS = {Tensor, Parameter}


def _leaves(arguments: tuple[Any, ...], settings: dict[str, Any]) -> tuple[list[Any], str]:
    """Arguments as a list, and what they form."""
    if not settings and (_TENSORS.issuperset(map(type, arguments))
                         or not any(isinstance(a, (list, tuple, dict)) for a in arguments)):
        return list(arguments), ""
    leaves, spec = tree_flatten((arguments, settings))
    return leaves, repr(spec)


def _about(value: Any) -> Any:
    """What of an argument is part of the program."""
    if not isinstance(value, TensorBase):
        if type(value) is numpy.ndarray:
            return contents(value) if not value.dtype.hasobject else (value.shape, *map(_about, value.flat))
        try:
            hash(value)
        except TypeError:
            return type(value), Same(value)
        if type(value) is float:
            return float, value, copysign(1, value)
        own: Any = type(value)
        return own, value, id(value) if _has_own_equality(own) else None
    array, storage, grad = value._array, value._storage, value._grad
    writer = storage.writer
    if type(array) is XArray:
        shown, cell = array.twin, array.cell
        place: Any = cell.place
        if place.over_mesh:
            place = place, spread_of(array)
        if storage.root is not None or value._offset is not None:
            place = place, (storage.root or storage).buffer.shape, storage.start + (value._offset or 0)
    else:
        shown, place = array, (type(array), value._offset is None)
    return (shown.shape, shown.dtype, shown.strides, place, type(value), type(writer),
            None if grad is None else like(grad), writer is None or writer.hooks is None,
            _plain(value.__dict__) if value.__dict__ else None)


@functools.cache
def _has_own_equality(kind: Any) -> bool:
    """Whether a class of the user's says what equals what: what is equal may still be different to a program."""
    fields = getattr(kind, "__dataclass_fields__", {}).values()
    return type(kind.__eq__) is FunctionType and not kind.__module__.startswith("mutagrad") \
        and not (fields and all(field.compare for field in fields))


def _plain(attributes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([(name, type(v), v) for name, v in attributes.items() if type(v) in PLAIN])


def _shared(leaves: list[Any]) -> Any:
    """Which arguments share memory, and where they lie in it."""
    roots = [v._storage.root or v._storage for v in leaves if isinstance(v, TensorBase)]
    if len(set(roots)) == len(roots):
        return None
    tensors = [v for v in leaves if isinstance(v, TensorBase)]
    return tuple([(roots.index(r), v._storage.start + (v._offset or 0)) for r, v in zip(roots, tensors)])


def _modes() -> Any:
    now = mode.now
    return (now.recorded, now.strong_zeros, now.anomaly, now.inference, now.cast is None, now.autocast_dtype,
            now.device, get_default_dtype(), PRECISION[0])


def _keep_on_disk() -> None:
    """Have JAX keep compiled programs between processes, unless it is told where already, or MUTAGRAD_CACHE is "0"."""
    if jax.config.jax_compilation_cache_dir is None and os.environ.get("MUTAGRAD_CACHE") != "0":
        home = os.environ.get("MUTAGRAD_CACHE") or os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "mutagrad", "xla")
        jax.config.update("jax_compilation_cache_dir", home)


_ALL: WeakSet[Compiled] = WeakSet()


def reset() -> None:
    """Forget all programs."""
    for compiled in list(_ALL):
        compiled.programs.clear()
        compiled.newest.clear()
        compiled.eager = None
