"""Derivatives along a direction, carried with the values: dual numbers.

>>> import mutagrad as mg
>>> from mutagrad.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(mg.tensor(3.), mg.tensor(1.))
...     forward_ad.unpack_dual(x ** 2).tangent
tensor(6.)

A dual number is a tensor whose history begins with a node that knows its tangent. The tangent of what is computed from
it is found when somebody asks: the reverse from there to those nodes is linear in what it starts from, and its
derivative with respect to that is the Jacobian. So every operation that has a derivative has this one, too, and so has
every write.
"""
from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..base.errors import BadArgument, BadValue, GradientError, ShapeError
from ..base.modes import FORWARD, call_with, keeps_modes, mode
from ..base.operands import kind_name
from ..core.arithmetic import ON_TENSORS
from ..core.backward import grad, run_sweep
from ..core.factory import detached, window_or_none
from ..core.graph import Leaf, Node, Writer
from ..core.op import Op, same
from ..core.storage import TensorBase
from ..core.window import Window
from ..core.write import new_node
from ..ops.create.create import zeros_like
from ..ops.shape.shape import clone
from ..tensors.tensor import Tensor
from .modes import _Mode, enable_grad

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_dual = Op("dual", None, ("x",), (), {"x": same})


class UnpackedDualTensor(NamedTuple):
    """A value, and its derivative along the direction that the tangents give; None where it has no part in that."""

    primal: Tensor
    tangent: Tensor | None


Duals = WeakKeyDictionary[Node, tuple["Window | None", "Tensor | None"]]


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return 0 if is_open() else -1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_open() -> bool:
    """Whether tensors may have tangents."""
    return mode.now.dual is not None


class dual_level(_Mode):
    """A block in which tensors may have tangents: `duals`, by the node at which each begins, with its window."""

    duals: Duals

    def changes(self) -> dict[str, Any]:
        return {"dual": self, "recorded": True}

    def check(self) -> None:
        if is_open():
            raise GradientError("dual_level: Nested forward mode AD is not supported at the moment",
                                why="a tensor has one tangent", fix="mutagrad.func.jvp, which nests")
        self.duals = WeakKeyDictionary()

    def __enter__(self) -> int:  # type: ignore[override]
        super().__enter__()
        return 0


def enter_dual_level() -> int:
    """Begin a stretch of the program in which tensors may have tangents."""
    return dual_level().__enter__()


def exit_dual_level(*, level: int | None = None) -> None:
    """End it: all tangents are forgotten."""
    if not is_open() or level not in (None, 0):
        raise GradientError("exit_dual_level: trying to exit a forward AD level that was not the last one "
                            "that was created", fix="with forward_ad.dual_level(): ...")
    mode.now.dual.leave()


def _check(tensor: Tensor, tangent: Tensor) -> None:
    for x, what in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(x, TensorBase):
            raise BadArgument(f"make_dual: the {what} must be a tensor, not {kind_name(x)}")
        if x._array.dtype.kind not in "fcV":
            raise BadValue(f"make_dual: Expected {what} to be floating point or complex, "
                           f"but got {x._array.dtype.name}", fix=f"{what}.float()")
    value, moves = tensor._array, tangent._array
    if value.shape != moves.shape or value.dtype != moves.dtype:
        raise ShapeError("make_dual: Trying to set a forward gradient that has a different size or type than "
                         "the primal", why=f"the primal is of {value.dtype.name} and shape {value.shape}, the "
                         f"tangent of {moves.dtype.name} and shape {moves.shape}", fix="mutagrad.ones_like(primal)")
    if unpack_dual(tangent).tangent is not None:
        raise GradientError("make_dual: the tangent has a forward gradient at the same level itself",
                            fix="forward_ad.unpack_dual(tangent).primal")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return the tensor, over the same memory, as a dual number: together with the direction in which it moves."""
    if not is_open() or level not in (None, 0):
        raise GradientError("make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure "
                            "to enter_dual_level() first", fix="with forward_ad.dual_level(): ...")
    _check(tensor, tangent)
    found: Tensor = detached(tensor)
    found._storage.writer = tensor._storage.writer
    attach(found, tangent)
    return found


def attach(tensor: TensorBase, tangent: TensorBase | None) -> None:
    """Give this very tensor a tangent from here on (None: none); its history counts for the reverse alone."""
    node = new_node(_dual, (tensor._storage.writer,))
    tensor._storage.writer = node
    mode.now.dual.duals[node] = window_or_none(tensor), tangent


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a dual number's value and tangent, as two ordinary tensors."""
    if not isinstance(tensor, TensorBase):
        raise BadArgument(f"unpack_dual: expects a tensor, not {kind_name(tensor)}")
    if not is_open() or tensor._storage.writer is None:
        return UnpackedDualTensor(tensor, None)
    duals = mode.now.dual.duals
    window, tangent = duals.get(tensor._storage.writer, (None, None))
    if tangent is None or window != window_or_none(tensor):
        tangent = _tangent(tensor, duals)
    return UnpackedDualTensor(tensor if tangent is None else _without_tangent(tensor), tangent)


@keeps_modes
def _tangent(tensor: Tensor, duals: Duals) -> Any:
    with enable_grad():
        seed = zeros_like(tensor).requires_grad_()
        found: dict[Any, Any] = {}
        start = [(tensor._storage.writer, window_or_none(tensor), seed)]
        call_with(FORWARD, run_sweep, start, True, True, None, {}, False,
                  {node: partial(found.__setitem__, node) for node in duals})
        reached = [(_in_window(g, duals[node][0]), duals[node][1])
                   for node, g in found.items() if duals[node][1] is not None]
        if not reached:
            return None
        moving = [(g, tangent) for g, tangent in reached if g.requires_grad]
        result, = grad([g for g, _ in moving], [seed], [t for _, t in moving],
                       create_graph=True, allow_unused=True) if moving else (None,)
    return zeros_like(tensor) if result is None else _without_tangent(result)


def _in_window(g: Any, window: Window | None) -> Any:
    return clone(g if window is None else ON_TENSORS.view(clone(g), window))


def _without_tangent(tensor: Tensor) -> Tensor:
    """The same as an ordinary tensor: with a history if a leaf has a part in it, and no tangent either way."""
    found: Tensor = detached(tensor)
    if _has_leaf(tensor._storage.writer):
        found._storage.writer = tensor._storage.writer
        attach(found, None)
    return found


def _has_leaf(writer: Writer | None) -> bool:
    stack, seen = [writer], set()
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            return True
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(node)
    return False


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are carried on: wherever operations are recorded."""
    return mode.grad
