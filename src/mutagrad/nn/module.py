"""The base of everything that has parameters."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ..autograd import no_grad
from ..base.device import device as Device
from ..base.errors import BadArgument, BadValue, NoDevice, NotSupported
from ..base.modes import keeps_modes
from ..base.operands import kind_name
from ..base.sockets import socket
from ..core.dtypes import as_dtype, bfloat16, dtype as element_type, dtype_of_class, float16, float32, float64
from ..ops.create.create import empty_like
from ..tensors.tensor import Tensor
from . import future as conversion, state
from .hooks import CHANGES, BackwardHooks, Handle, put
from .parameter import Buffer, Parameter, is_lazy
from .state import IncompatibleKeys

if TYPE_CHECKING:
    from .common_types import DeviceLike

M = TypeVar("M", bound="Module")
Table = OrderedDict[int, Any]
_IncompatibleKeys = IncompatibleKeys
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # the name of what get_extra_state gave in a state_dict
_TABLES = ("_parameters", "_buffers", "_modules")
# Hooks by number; a table whose name says more marks those for which it holds.
_HOOKS = (
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_hooks_silent", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks_with_module", "_load_state_dict_post_hooks")
# Hooks of all modules, under PyTorch's names: programs empty them by assigning new tables.
_global_forward_pre_hooks: Table = OrderedDict()
_global_forward_hooks: Table = OrderedDict()
_global_forward_hooks_with_kwargs: Table = OrderedDict()
_global_forward_hooks_always_called: Table = OrderedDict()
_global_backward_hooks: Table = OrderedDict()
_global_backward_pre_hooks: Table = OrderedDict()
_global_buffer_registration_hooks: Table = OrderedDict()
_global_module_registration_hooks: Table = OrderedDict()
_global_parameter_registration_hooks: Table = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _registered(hooks: Table, module: Module, name: str, value: Any) -> Any:
    """What the hooks of all modules make of a value that is given to one of them."""
    for hook in hooks.values():
        answer = hook(module, name, value)
        value = value if answer is None else answer
    return value


def _check_kind(before: bool | None, full: bool) -> None:
    if before is not None and before is not full:
        raise BadValue("Cannot use both regular backward hooks and full backward hooks on a single Module",
                       why="the old ones see other gradients", fix="module.register_full_backward_hook(hook)")


def _no_target(targets: tuple[Any, ...]) -> BadArgument:
    return BadArgument(f"to: cannot make sense of {', '.join(map(repr, targets))}",
                       fix="model.to(device, dtype), model.to(dtype) or model.to(tensor)")


def _target(targets: tuple[Any, ...], device: DeviceLike | int | None,
            dtype: element_type | None) -> tuple[DeviceLike | int | None, element_type | None]:
    """Return the device and type that arguments of `to` mean.

    They are (device, dtype), (dtype) or (tensor), each perhaps with non_blocking behind.
    """
    given = list(targets)
    if given and isinstance(given[0], Tensor):
        device, dtype = given[0].device, given.pop(0).dtype
    else:
        if given and (given[0] is None or isinstance(given[0], (str, int, Device)) and not isinstance(given[0], bool)):
            device, given = given[0], given[1:] or [dtype]
        if given and (given[0] is None or isinstance(given[0], element_type)):
            dtype = given.pop(0)
        elif given:
            raise _no_target(targets)
    if len(given) > 1 or given and not isinstance(given[0], bool):
        raise _no_target(targets)
    if dtype is not None and not (as_dtype(dtype).is_floating_point or as_dtype(dtype).is_complex):
        raise BadArgument(f"to: a module can only be of a floating point or complex type, not {dtype}")
    return device, dtype


def _converted(p: Parameter, fn: Callable[[Any], Any]) -> Parameter:
    """A new parameter for an old one, with its gradient."""
    made: Any = Parameter(fn(p), p.requires_grad)
    if p.grad is not None:
        made.grad = fn(p.grad).requires_grad_(p.grad.requires_grad)
    return made  # type: ignore[no-any-return]


def _parameters_of(module: Module) -> Iterable[tuple[str, Any]]:
    return module._parameters.items()


def _buffers_of(module: Module) -> Iterable[tuple[str, Any]]:
    return module._buffers.items()


class Module:
    """A function with parameters: subclass it, assign parameters and other modules to attributes, define `forward`.

    >>> import mutagrad as mg
    >>> class Scale(mg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = mg.nn.Parameter(mg.tensor(2.))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(mg.tensor([1., 2.])).sum().backward()
    >>> scale.factor.grad
    tensor(3.)
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _version = 1
    dump_patches = False
    call_super_init = False
    _is_full_backward_hook: bool | None = None

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        if (arguments or settings) and not self.call_super_init:
            raise BadArgument(f"{type(self).__name__}: nn.Module.__init__ takes no arguments", fix="super().__init__()")
        self.__dict__.update({"training": True, "_non_persistent_buffers_set": set()})
        self.__dict__.update({table: {} for table in _TABLES} | {table: OrderedDict() for table in _HOOKS})
        if self.call_super_init:
            super().__init__(*arguments, **settings)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Modules that were saved before a table of hooks existed get an empty one."""
        self.__dict__.update(state)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        for hooks in _HOOKS:
            self.__dict__.setdefault(hooks, OrderedDict())

    # ------------------------------------------------------------------------------------------------------- attributes

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__
        for table in _TABLES:
            if table in found and name in found[table]:
                return found[table][name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        CHANGES[0] += 1
        if isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, **{} if value.persistent else {"persistent": False})
        elif isinstance(value, Module):
            self._forget(name, "_modules")
            self._started("assign a module")
            own["_modules"][name] = _registered(_global_module_registration_hooks, self, name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise BadArgument(f"cannot assign {type(value).__name__} as parameter {name!r}",
                                  why="only a Parameter or None can stand there",
                                  fix=f"with no_grad(): module.{name}.copy_(value)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise BadArgument(f"cannot assign {type(value).__name__} as child module {name!r}",
                                  fix="assign a Module or None, or del it first")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise BadArgument(f"cannot assign {type(value).__name__} as buffer {name!r}",
                                  fix="assign a tensor or None")
            own["_buffers"][name] = _registered(_global_buffer_registration_hooks, self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        CHANGES[0] += 1
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _started(self, doing: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot {doing} before Module.__init__() call")

    def _forget(self, name: str, but: str) -> None:
        """An attribute is one thing at a time."""
        self.__dict__.pop(name, None)
        for table in _TABLES:
            if table != but and table in self.__dict__:
                self.__dict__[table].pop(name, None)

    def _check_name(self, name: Any, what: str, table: str) -> None:
        self._started(f"assign a {what}")
        if not isinstance(name, str):
            raise BadArgument(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{what} name can't contain \".\", got: {name}")
        if not name:
            raise KeyError(f"{what} name can't be empty string \"\"")
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute {name!r} already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Registers a parameter, as the assignment `self.name = param` does; None reserves the name.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Identity()
        >>> layer.register_parameter("scale", mg.nn.Parameter(mg.ones(2)))
        >>> layer.scale.shape
        mutagrad.Size([2])
        """
        self._check_name(name, "parameter", "_parameters")
        CHANGES[0] += 1
        if param is not None and not isinstance(param, Parameter):
            raise BadArgument(f"cannot assign {type(param).__name__} as parameter {name!r}",
                              fix="nn.Parameter(tensor), or None")
        if param is not None and not param.is_leaf and param.grad_fn is not None:
            raise BadValue(f"parameter {name!r} was computed, and only leaves can be trained",
                           fix="nn.Parameter(value.detach())")
        given = None if param is None else _registered(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = given

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Registers a tensor that belongs to the state but is not trained.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Identity()
        >>> layer.register_buffer("count", mg.tensor(0))
        >>> list(layer.state_dict().items())
        [('count', tensor(0))]
        """
        self._check_name(name, "buffer", "_buffers")
        CHANGES[0] += 1
        if tensor is not None and not isinstance(tensor, Tensor):
            raise BadArgument(f"cannot assign {kind_name(tensor)} as buffer {name!r}", fix="a tensor, or None")
        self._buffers[name] = _registered(_global_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Registers a module inside this one, as the assignment `self.name = module` does.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential()
        >>> model.add_module("first", mg.nn.ReLU())
        >>> model
        Sequential(
          (first): ReLU()
        )
        """
        self._check_name(name, "module", "_modules")
        CHANGES[0] += 1
        if module is not None and not isinstance(module, Module):
            raise BadArgument(f"{type(module).__name__} is not a Module")
        self._modules[name] = _registered(_global_module_registration_hooks, self, name, module)

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        """Return the module that a path such as `encoder.0.norm` names.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> model.get_submodule("1")
        ReLU()
        """
        found: Any = self
        for part in target.split(".") if target else ():
            if not isinstance(getattr(found, part, None), Module):
                raise AttributeError(f"{type(found).__name__} has no module {part!r}")
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place that a path names; with `strict`, only where there is one already.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> model.set_submodule("1", mg.nn.Tanh())
        >>> model[1]
        Tanh()
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise BadValue("set_submodule: the path is empty", fix='set_submodule("encoder.conv", module)')
        if not isinstance(module, Module):
            raise BadValue(f"set_submodule: {type(module).__name__} is not a Module")
        parent = self.get_submodule(path)
        if name not in parent._modules and (strict or hasattr(parent, name)):
            raise AttributeError(f"{type(parent).__name__} has no module {name!r}")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter that a path such as `encoder.0.weight` names.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> model.get_parameter("0.weight").shape
        mutagrad.Size([3, 2])
        """
        return self._get(target, "_parameters", "parameter")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer that a path names.

        >>> import mutagrad as mg
        >>> mg.nn.Sequential(mg.nn.BatchNorm1d(2)).get_buffer("0.running_mean")
        tensor([0., 0.])
        """
        return self._get(target, "_buffers", "buffer")  # type: ignore[no-any-return]

    def _get(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in owner.__dict__[table]:
            raise AttributeError(f"{type(owner).__name__} has no {what} {name!r}")
        return owner.__dict__[table][name]

    # ---------------------------------------------------------------------------------------------------- what it holds

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yields itself and every module inside, each once.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> [name for name, module in model.named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields itself and every module inside, each once.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> [type(module).__name__ for module in model.modules()]
        ['Sequential', 'Linear', 'ReLU']
        """
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields the name of each module right inside, and the module.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> [name for name, module in model.named_children()]
        ['0', '1']
        """
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the modules right inside.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> list(model.children())
        [Linear(in_features=2, out_features=3, bias=True), ReLU()]
        """
        return (module for _, module in self.named_children())

    def _named_members(self, get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]], prefix: str = "",
                       recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """What a function finds in each module, by path: libraries call this for tables of their own."""
        seen: set[Any] = set()
        every = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        owners = every if recurse else iter([(prefix, self)])
        for path, owner in owners:
            for name, value in get_members_fn(owner):
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yields the path of each parameter, and the parameter: its own and, with `recurse`, those inside.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> [name for name, p in model.named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, its own and, with `recurse`, those inside: what an optimizer is given.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> sum(p.numel() for p in model.parameters())
        9
        """
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yields the path of each buffer, and the buffer.

        >>> import mutagrad as mg
        >>> [name for name, b in mg.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers, its own and, with `recurse`, those inside.

        >>> import mutagrad as mg
        >>> [b.shape for b in mg.nn.BatchNorm1d(2).buffers()]
        [mutagrad.Size([2]), mutagrad.Size([2]), mutagrad.Size([])]
        """
        return (b for _, b in self.named_buffers(recurse=recurse))

    # -------------------------------------------------------------------------------------------------- changing it all

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Calls `fn` with every module inside and with itself, last.

        >>> import mutagrad as mg
        >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
        >>> def clear(module):
        ...     if isinstance(module, mg.nn.Linear):
        ...         _ = mg.nn.init.zeros_(module.weight)
        >>> model.apply(clear)[0].weight.detach().sum()
        tensor(0.)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Sets training mode, for dropout and batch statistics; `eval()` leaves it.

        >>> import mutagrad as mg
        >>> model = mg.nn.Dropout().train()
        >>> model.training
        True
        """
        if not isinstance(mode, bool):
            raise BadValue("train: training mode is expected to be boolean", fix="model.train(True)")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Leaves training mode: dropout passes all, batch norm uses its running statistics.

        >>> import mutagrad as mg
        >>> model = mg.nn.Dropout().eval()
        >>> model.training
        False
        """
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Sets whether the parameters get gradients; without them, they are frozen.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.requires_grad_(False).weight.requires_grad
        False
        """
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to zero.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer(mg.ones(1, 2)).sum().backward()
        >>> layer.zero_grad()
        >>> layer.weight.grad is None
        True
        """
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    @keeps_modes
    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Every parameter and buffer replaced by fn of it; parameters stay the objects that an optimizer holds, unless
        `mutagrad.__future__` says otherwise."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for value in chain(self._parameters.values(), self._buffers.values()):
            if is_lazy(value):
                value.convert(fn)
        for name, p in self._parameters.items():
            if p is not None and not is_lazy(p):
                with no_grad():
                    if conversion.get_overwrite_module_params_on_conversion():
                        self._parameters[name] = _converted(p, fn)
                        continue
                    p.data = fn(p.data)
                    if p.grad is not None:
                        p.grad.data = fn(p.grad.data)
        for name, b in self._buffers.items():
            if b is not None and not is_lazy(b):
                self._buffers[name] = fn(b)
        return self

    def to(self: M, *targets: Any, device: DeviceLike | int | None = None, dtype: element_type | None = None,
           non_blocking: bool = False, memory_format: Any = None) -> M:
        """Converts parameters and buffers of a floating point type to another, and moves all to a device.

        `memory_format` is for tensors of images and volumes; the others stay as they are.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.to(mg.float64).weight.dtype
        mutagrad.float64
        """
        device, dtype = _target(targets, device, dtype)

        def convert(t: Tensor) -> Any:
            if memory_format is not None and t.ndim in (4, 5):
                t = t.to(memory_format=memory_format)
            return t.to(device=device, dtype=dtype if t.is_floating_point() or t.is_complex() else None)

        return self._apply(convert)

    def float(self: M) -> M:
        """Converts parameters and buffers of a floating point type to float32.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.float().weight.dtype
        mutagrad.float32
        """
        return self.to(float32)

    def double(self: M) -> M:
        """Converts parameters and buffers of a floating point type to float64.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.double().weight.dtype
        mutagrad.float64
        """
        return self.to(float64)

    def half(self: M) -> M:
        """Converts parameters and buffers of a floating point type to float16.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.half().weight.dtype
        mutagrad.float16
        """
        return self.to(float16)

    def bfloat16(self: M) -> M:
        """Converts parameters and buffers of a floating point type to bfloat16.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.bfloat16().weight.dtype
        mutagrad.bfloat16
        """
        return self.to(bfloat16)

    def type(self: M, dst_type: element_type | str) -> M:
        """Converts all parameters and buffers to a type.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.type(mg.float64).weight.dtype
        mutagrad.float64
        """
        return self._apply(lambda t: t.to(dtype_of_class(dst_type)))

    def cpu(self: M) -> M:
        """Moves parameters and buffers to the CPU's memory.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.cpu().weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.cpu())

    def cuda(self: M, device: DeviceLike | int | None = None) -> M:
        """Moves parameters and buffers to a GPU's memory."""
        if not socket("devices").available("cuda"):
            raise NoDevice("cuda: this build computes on the CPU only", fix="model.cpu(), or leave the device out")
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self: M, *, device: DeviceLike | None, recurse: bool = True) -> M:
        """Makes new parameters and buffers of the same shapes, on a device, that are still to be filled.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.to_empty(device="cpu").weight.shape
        mutagrad.Size([3, 2])
        """
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def share_memory(self: M) -> M:
        """Raises: tensors are not shared between processes."""
        raise NotSupported("share_memory: tensors are not shared between processes",
                           fix="threads share memory by themselves")

    def compile(self, *arguments: Any, **settings: Any) -> None:
        """Has the forward, and with it the backward, run as a compiled program from now on."""
        compile: Any = socket("top").compile
        self.__dict__["forward"] = compile(self.forward, *arguments, **settings)

    # ---------------------------------------------------------------------------------------------------------- calling

    state_dict, load_state_dict = state.state_dict, state.load_state_dict
    get_extra_state, set_extra_state = state.get_extra_state, state.set_extra_state
    _kept, _save_to_state_dict = state._kept, state._save_to_state_dict
    _load_from_state_dict, _load_one = state._load_from_state_dict, state._load_one
    _complete_state, _check_loaded = state._complete_state, state._check_loaded
    register_state_dict_pre_hook = state.register_state_dict_pre_hook
    register_state_dict_post_hook = state.register_state_dict_post_hook
    register_load_state_dict_pre_hook = state.register_load_state_dict_pre_hook
    register_load_state_dict_post_hook = state.register_load_state_dict_post_hook
    _register_state_dict_hook = state._register_state_dict_hook
    _register_load_state_dict_pre_hook = state._register_load_state_dict_pre_hook

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        """Compute the module's results from its inputs: define it in a subclass, and call the module itself.

        >>> import mutagrad as mg
        >>> class Scale(mg.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Scale()(mg.ones(2))
        tensor([2., 2.])
        """
        raise NotImplementedError(f"Module [{type(self).__name__}] is missing the required \"forward\" function")

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        own = self.__dict__
        if not (own["_forward_pre_hooks"] or own["_forward_hooks"]
                or own["_backward_hooks"] or own["_backward_pre_hooks"]
                or _global_forward_pre_hooks or _global_forward_hooks
                or _global_backward_hooks or _global_backward_pre_hooks):
            return self.forward(*inputs, **settings)
        return self._call_with_hooks(inputs, settings)

    _call_impl = __call__

    def _call_with_hooks(self, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        waiting = [(hook, number in _global_forward_hooks_with_kwargs, number in _global_forward_hooks_always_called)
                   for number, hook in _global_forward_hooks.items()]
        waiting += [(hook, number in self._forward_hooks_with_kwargs, number in self._forward_hooks_always_called)
                    for number, hook in self._forward_hooks.items()]
        result = None
        try:
            inputs, settings = self._before_forward(inputs, settings)
            boundary = self._boundary()
            if boundary is not None:
                inputs = boundary.around_inputs(inputs)
            result = self.forward(*inputs, **settings)
            while waiting:
                hook, with_settings, _ = waiting.pop(0)
                answer = hook(self, inputs, settings, result) if with_settings else hook(self, inputs, result)
                result = result if answer is None else answer
            return result if boundary is None else boundary.around_outputs(result)
        except Exception:
            for hook, with_settings, always in waiting:
                if always:
                    self._call_after_error(hook, inputs, settings if with_settings else None, result)
            raise

    def _before_forward(self, inputs: tuple[Any, ...],
                        settings: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for number, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            with_settings = number in self._forward_pre_hooks_with_kwargs
            answer = hook(self, inputs, settings) if with_settings else hook(self, inputs)
            if answer is not None and with_settings:
                if not isinstance(answer, tuple) or len(answer) != 2:
                    raise BadValue("forward pre-hook: must return None or (arguments, keyword arguments), got "
                                   f"{type(answer).__name__}", fix="return args, kwargs")
                inputs, settings = answer
            elif answer is not None:
                inputs = answer if isinstance(answer, tuple) else (answer,)
        return inputs, settings

    def _boundary(self) -> BackwardHooks | None:
        after = [*_global_backward_hooks.values(), *self._backward_hooks.values()]
        before = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        of_all = _global_is_full_backward_hook is False and bool(_global_backward_hooks)
        old = of_all or self._is_full_backward_hook is False
        return BackwardHooks(self, after, before, old) if after or before else None

    def _call_after_error(self, hook: Callable[..., Any], inputs: tuple[Any, ...], settings: dict[str, Any] | None,
                          result: Any) -> None:
        """A hook that is always called; the error that is on its way is the one to report."""
        try:
            hook(self, inputs, result) if settings is None else hook(self, inputs, settings, result)
        except Exception as error:
            warnings.warn("forward hook: raised an exception that was silenced as another error was raised in forward: "
                          f"{error}", stacklevel=4)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> Handle:
        """Calls hook(module, inputs) before forward; what it returns, if anything, replaces the inputs.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> handle = layer.register_forward_pre_hook(lambda module, inputs: print(inputs[0].shape))
        >>> _ = layer(mg.ones(1, 2))
        mutagrad.Size([1, 2])
        """
        return put(self._forward_pre_hooks, hook, prepend, [self._forward_pre_hooks_with_kwargs] if with_kwargs else [])

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> Handle:
        """Calls hook(module, inputs, output) after forward; what it returns, if anything, replaces the output.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> handle = layer.register_forward_hook(lambda module, inputs, output: print(output.shape))
        >>> _ = layer(mg.ones(1, 2))
        mutagrad.Size([1, 3])
        """
        marks = ((with_kwargs, self._forward_hooks_with_kwargs), (always_call, self._forward_hooks_always_called))
        return put(self._forward_hooks, hook, prepend, [table for holds, table in marks if holds])

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls hook(module, grad_input, grad_output) when both are known; its answer, if any, replaces grad_input.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> handle = layer.register_full_backward_hook(lambda module, before, after: print(after[0].shape))
        >>> layer(mg.ones(1, 2, requires_grad=True)).sum().backward()
        mutagrad.Size([1, 3])
        """
        _check_kind(self._is_full_backward_hook, True)
        self._is_full_backward_hook = True
        return put(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Does what register_full_backward_hook does, in the old way: the output may also be a dict of tensors.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> handle = layer.register_backward_hook(lambda module, before, after: print(after[0].shape))
        >>> layer(mg.ones(1, 2, requires_grad=True)).sum().backward()
        mutagrad.Size([1, 3])
        """
        _check_kind(self._is_full_backward_hook, False)
        self._is_full_backward_hook = False
        return put(self._backward_hooks, hook)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls hook(module, grad_output) before the module is differentiated; its answer, if any, replaces it.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 3)
        >>> handle = layer.register_full_backward_pre_hook(lambda module, after: print(after[0].shape))
        >>> layer(mg.ones(1, 2, requires_grad=True)).sum().backward()
        mutagrad.Size([1, 3])
        """
        return put(self._backward_pre_hooks, hook, prepend)

    # ------------------------------------------------------------------------------------------------------------- text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands in the brackets of the repr: define it in a subclass.

        >>> import mutagrad as mg
        >>> class Scale(mg.nn.Module):
        ...     def extra_repr(self):
        ...         return "factor=2"
        >>> Scale()
        Scale(factor=2)
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({''.join(lines)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Registers a forward pre-hook of all modules."""
    return put(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False,
                                 always_call: bool = False) -> Handle:
    """Registers a forward hook of all modules."""
    marks = ((with_kwargs, _global_forward_hooks_with_kwargs), (always_call, _global_forward_hooks_always_called))
    return put(_global_forward_hooks, hook, marks=[table for holds, table in marks if holds])


def _put_backward_hook(hook: Callable[..., Any], full: bool) -> Handle:
    global _global_is_full_backward_hook
    _check_kind(_global_is_full_backward_hook if _global_backward_hooks else None, full)
    _global_is_full_backward_hook = full
    return put(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Registers a backward hook of all modules."""
    return _put_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Registers a backward hook of all modules, in the old way."""
    return _put_backward_hook(hook, False)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Registers a backward pre-hook of all modules."""
    return put(_global_backward_pre_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, name, buffer) whenever a module gets a buffer; its answer, if any, takes its place."""
    return put(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, name, submodule) whenever a module gets a module; its answer, if any, takes its place."""
    return put(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Calls hook(module, name, parameter) whenever a module gets a parameter; its answer, if any, takes its place."""
    return put(_global_parameter_registration_hooks, hook)
