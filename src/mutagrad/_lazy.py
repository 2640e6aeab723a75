"""Names that are loaded when they are first asked for, and modules that are reached under another path than their own.

`import mutagrad` loads what nearly every program uses; loading the rest with it would double the time that it takes. A
module of operations says itself which of its names are functions of `mutagrad` and which are methods of `Tensor`:

    FUNCTIONS = "cholesky cholesky_solve"
    METHODS = "cholesky cholesky_solve"

Both are read from its text, without running it. Everything else that has a public name and no file of that name is a
row of a table here.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .base.alias import AliasLoader
from .base.provenance import OURS

if TYPE_CHECKING:
    from .tensors.tensor import Tensor

HOME = os.path.dirname(__file__)
ROOMS = ("ops", "sparse", "tensors")  # where operations are declared

# Public paths of modules that are in another room.
ALIASES = {
    **{name: f"torch_api.{name}" for name in (
        "__config__", "_utils", "_vmap_internals", "amp", "compiler", "control", "fft", "futures", "fx", "hub",
        "library", "linalg", "masked",
        "meta", "multiprocessing", "overrides", "profiler", "quasirandom", "settings", "signal", "special", "testing",
        "types", "version")},
    **{name: f"torch_api.unavailable.{name}" for name in (
        "_C", "_dynamo", "_inductor", "accelerator", "backends", "cpu", "cuda", "export", "jit", "mps", "onnx",
        "quantization", "xpu")},
    **{f"nn.modules.{name}": f"nn.{name}" for name in ("adaptive", "lazy", "module")},
    **{f"nn.modules.{name}": "nn.shapes" for name in (
        "channelshuffle", "distance", "flatten", "fold", "padding", "pixelshuffle", "upsampling")},
    "__future__": "nn.future",
    "_tensor": "tensors.tensor",
    "autograd.anomaly_mode": "autograd.modes",
    "autograd.grad_mode": "autograd.modes",
    "autograd.profiler": "torch_api.profiler",
    "errors": "base.errors",
    "random": "ops.random.generator",
    "return_types": "base.return_types",
    "serialization": "files.serialization",
    "storage": "torch_api.storage",
    "utils.collect_env": "torch_api.collect_env",
    "utils.flop_counter": "torch_api.flop_counter",
}

# Modules that `mutagrad` has as attributes.
MODULES = frozenset(name for name in ALIASES if "." not in name) | {
    "array_api", "distributed", "distributions", "func", "interop", "nn", "optim", "relax", "sparse", "utils"}

# As pickles name modules that were elsewhere when they were made.
ALIASES |= {
    "distributions.counts": "distributions.multinomial_base", "distributions.odds": "distributions.logits",
    "distributions.triangles": "distributions.tril", "optim.cycles": "optim.cyclic", "optim.several": "optim.chained",
    "optim.whole": "optim.per_parameter",
    "_size": "core.size", "copying": "tensors.copying", "dtypes": "core.dtypes", "ops.activation": "ops.nn.activation",
    "ops.resample": "ops.nn.resample", "ops.sparse": "sparse.products", "pickled": "files.safe_unpickler"}

# In-place methods of `Tensor` that are functions of `mutagrad`, too: `mutagrad.exp_(x)`.
_WRITES = """
    abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_
    clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_
    floor_ frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_
    relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_ addmv_ as_strided_
    resize_as_"""
WRITES = frozenset(_WRITES.split())

# Names of `mutagrad` that are no operations, and the module that has them.
OTHERS = {name: module for module, names in {
    "autograd.modes": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "base.layout": "sparse_bsc sparse_bsr sparse_csc sparse_csr",
    "core.dtypes": """
        chalf complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu qint32 qint8 quint2x4
        quint4x2 quint8""",
    "distributions.gamma": "_standard_gamma",
    "explain.describe": "describe",
    "explain.doctor.report": "doctor",
    "explain.draw": "draw",
    "explain.summary": "summary",
    "explain.profile": "profile",
    "explain.why": "why",
    "files": "load save",
    "func": "vmap",
    "tensors.typed_tensors": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
        DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage is_storage typename""",
    "torch_api.amp": """
        autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
        is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled set_autocast_dtype
        set_autocast_enabled""",
    "torch_api.compiler": "compile",
    "torch_api.control": "cond loop while_loop",
    "torch_api.futures": "Future",
    "torch_api.import_hook": "as_torch",
    "torch_api.settings": """
        are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode
        get_float32_matmul_precision get_num_interop_threads is_deterministic_algorithms_warn_only_enabled
        is_warn_always_enabled set_default_device set_default_tensor_type set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_warn_always
        use_deterministic_algorithms""",
    "torch_api.unavailable._C": "PyTorchFileReader TensorType",
    "torch_api.unavailable.cuda": "Event Stream",
    "torch_api.unavailable.symbols": "SymBool SymFloat SymInt",
    "torch_api.unavailable.jit": "ScriptFunction ScriptModule",
    "utils.dlpack": "to_dlpack",
}.items() for name in names.split()}

# What rooms ask of rooms above them, by the names in base/sockets.py.
SOCKETS = {name: f"mutagrad.{module}".rstrip(".") for name, module in {
    "array_api": "array_api", "compile": "xla.compile", "cuda": "xla.cuda", "devices": "xla.devices",
    "loops": "xla.loops", "mesh": "xla.mesh", "meta": "torch_api.meta", "norms": "ops.linalg.norms",
    "processes": "xla.processes", "sparse": "sparse", "top": "", "torch_function": "torch_api.torch_function",
    "trace": "explain.tracing",
}.items()}


def modules() -> list[str]:
    """Return the names of all modules of operations."""
    inside = (path[len(HOME) + 1:-3].replace(os.sep, ".") for path in OURS if path.startswith(HOME))
    return sorted(name for name in inside if name.startswith(ROOMS) and not name.endswith("__init__"))


def _declared() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (module, "FUNCTIONS" or "METHODS", names) for every module of operations that declares some."""
    for module in modules():
        with open(os.path.join(HOME, *module.split(".")) + ".py", "rb") as file:
            text = file.read()
        for kind in ("FUNCTIONS", "METHODS"):
            start = text.find(f'\n{kind} = "'.encode())
            if start >= 0:
                names = text[start + len(kind) + 5:].lstrip(b'"').partition(b'"')[0]
                yield module, kind, names.decode().split()


FUNCTIONS: dict[str, str] = dict(OTHERS)  # name -> module
METHODS: dict[str, str] = {"_repr_html_": "explain.display", "why": "explain.why"}  # and these, no operations
for _module, _kind, _names in _declared():
    (FUNCTIONS if _kind == "FUNCTIONS" else METHODS).update(dict.fromkeys(_names, _module))


def find(name: str, known: Callable[[], list[str]]) -> Any:
    """Return a function or module of `mutagrad` that has not been asked for before; `known` lists all of them."""
    if name in FUNCTIONS:
        return getattr(import_module(f"mutagrad.{FUNCTIONS[name]}"), name)
    if name in MODULES:
        return import_module(f"mutagrad.{name}")
    meant = import_module("mutagrad.base.spelling").hint(name, known())
    raise AttributeError(f"module 'mutagrad' has no attribute {name!r}{meant}")


def load_all() -> None:
    """Load every module of operations, so that the table of them is whole."""
    for module in modules():
        import_module(f"mutagrad.{module}")


class LazyMethod:
    """A method that takes its own place in the class when it is first asked for."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        found = getattr(import_module(f"mutagrad.{self.module}"), self.name)
        for base in owner.__mro__:
            if base.__dict__.get(self.name) is self:
                setattr(base, self.name, found)
        return getattr(owner if tensor is None else tensor, self.name)


def install_lazy_methods(tensor_class: type) -> None:
    for name, module in METHODS.items():
        setattr(tensor_class, name, LazyMethod(module, name))


class AliasFinder:
    """Answers the import system for public paths of modules that are elsewhere."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if not fullname.startswith("mutagrad."):
            return None
        head, below = fullname.removeprefix("mutagrad."), ""
        while head not in ALIASES:
            head, dot, last = head.rpartition(".")
            if not dot:
                return None
            below = f".{last}{below}"
        path = f"mutagrad.{ALIASES[head]}{below}"
        try:
            module = import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            return None  # the import system says so, under the public name
        return ModuleSpec(fullname, AliasLoader(module))  # type: ignore[arg-type]


def install_aliases() -> None:
    sys.meta_path.insert(0, AliasFinder())  # type: ignore[arg-type]
