"""Names of PyTorch's C++ library that Python programs ask for, where it is known that there is no such thing here."""
from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any
from weakref import ref

from ...autograd import _functions as _functions, is_grad_enabled as is_grad_enabled
from ...base.device import device as Device
from ...base.errors import BadValue, LinAlgError, NotSupported
from ...base.layout import memory_format
from ...base.modes import Block, Relative, mode
from ...core.backward import running
from ...core.dtypes import dtype as ElementType
from ...core.graph import Leaf, Node, Writer
from ...tensors.tensor import Tensor, disabled_torch_function
from . import _functorch as _functorch


class DisableTorchFunctionSubclass(Block):
    """A block in which no class takes over functions that are called with it."""

    _level = 1

    def changes(self) -> dict[str, Any]:
        return {"dispatch_off": Relative(lambda before: max(before, self._level))}


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which no mode does, either."""

    _level = 2


_TensorMeta = type(Tensor)
_disabled_torch_function_impl = disabled_torch_function
_LinAlgError = LinAlgError


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked in this block."""
    return mode.now.dispatch_off == 0


def _is_torch_function_mode_enabled() -> bool:
    return bool(mode.now.function_modes) and mode.now.dispatch_off < 2


# Names of what PyTorch's C++ library could do to an operation. Operations here are not dispatched by them.
_BACKENDS = ("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA", "Meta",
             "PrivateUse1", "PrivateUse2", "PrivateUse3")
_KINDS = ("", "Autograd", "Sparse", "SparseCsr", "Quantized", "NestedTensor")
_ALONE = """
    Undefined BackendSelect Python Functionalize ADInplaceOrView AutogradOther AutocastCPU AutocastCUDA AutocastHPU
    AutocastIPU AutocastMPS AutocastPrivateUse1 AutocastXPU FuncTorchBatched PreDispatch Autograd
    CompositeImplicitAutograd CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional Conjugate Negative
    ZeroTensor Dense Sparse SparseCsr Quantized NestedTensor AutogradNestedTensor"""
_KEYS = [*(kind + backend for kind in _KINDS for backend in _BACKENDS), *_ALONE.split()]
DispatchKey: Any = Enum("DispatchKey", [(name, name) for name in _KEYS], type=str)  # type: ignore[misc]


class DispatchKeySet(frozenset[str]):
    """Several of these names."""

    def __new__(cls, keys: str | Iterable[str] = ()) -> DispatchKeySet:
        return super().__new__(cls, (keys,) if isinstance(keys, str) else keys)

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(frozenset.__or__(self, other))

    def has(self, key: str) -> bool:
        return key in self


class Graph:
    """A compiled program; there are none."""


class TensorType:
    """The type of tensors in a compiled program; there are none."""

    def __init__(self, *arguments: Any) -> None:
        raise NotSupported("TensorType: programs are not compiled to PyTorch's types", fix="mutagrad.Tensor")

    @classmethod
    def get(cls) -> Any:
        """Raise: there is none to return."""
        return cls()


class PyTorchFileReader:
    """What reads PyTorch's files in C++; `mutagrad.load` does here."""

    def __init__(self, *arguments: Any) -> None:
        raise NotSupported("PyTorchFileReader: files are read in Python", fix="mutagrad.load(path)")


class Value:
    """A value in a compiled program; there are none."""


class _nn:
    """Functions for layers."""

    @staticmethod
    def _parse_to(*targets: Any, device: Device | str | None = None, dtype: ElementType | None = None,
                  non_blocking: bool = False, copy: bool = False, memory_format: memory_format | None = None,
                  ) -> tuple[Device | None, ElementType | None, bool, memory_format | None]:
        """Return the arguments of `to` by what they mean: device, element type, whether not to wait, memory format."""
        for target in targets:
            if isinstance(target, Tensor):
                device, dtype = target.device, target.dtype
            elif isinstance(target, (str, Device)):
                device = target
            elif isinstance(target, ElementType):
                dtype = target
        return Device(device) if isinstance(device, str) else device, dtype, non_blocking, memory_format


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """Return None: no program is traced."""
    return None


def _are_functorch_transforms_active() -> bool:
    """Whether values are stand-ins for others: under `vmap` and `grad` they are tensors like any other."""
    return False


class _WeakTensorRef:
    """A reference that does not keep a tensor alive."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._tensor() is None


def _will_engine_execute_node(node: Writer) -> bool:
    """Whether the sweep that is running visits a node."""
    if not isinstance(node, (Node, Leaf)):
        raise BadValue(f"_will_engine_execute_node: expects an grad_fn, not {type(node).__name__}", fix="x.grad_fn")
    return node in running().reached()
