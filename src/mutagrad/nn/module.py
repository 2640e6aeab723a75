"""The base of everything that has parameters."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from .._tensor import Tensor
from ..autograd import no_grad
from ..dtypes import as_dtype, bfloat16, dtype, float16, float32, float64
from ..errors import BadArgument, BadValue, NoDevice, NotSupported, ShapeError
from .hooks import BackwardHooks, Handle, Hooks
from .parameter import Buffer, Parameter, is_lazy

M = TypeVar("M", bound="Module")
_TABLES = ("_parameters", "_buffers", "_modules")
# Hooks of all modules.
_EVERY_FORWARD_PRE, _EVERY_FORWARD, _EVERY_BACKWARD, _EVERY_BACKWARD_PRE = Hooks(), Hooks(), Hooks(), Hooks()


class IncompatibleKeys(NamedTuple):
    """What load_state_dict(strict=False) found no place or no value for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


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
    _version = 1
    dump_patches = False
    call_super_init = False

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        if arguments or settings:
            raise BadArgument(f"{type(self).__name__}: nn.Module.__init__ takes no arguments", fix="super().__init__()")
        put = super().__setattr__
        put("training", True)
        for table in _TABLES:
            put(table, {})
        put("_non_persistent_buffers_set", set())
        for hooks in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
                      "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):
            put(hooks, Hooks())

    # ------------------------------------------------------------------------------------------------------- attributes

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__
        for table in _TABLES:
            if table in found and name in found[table]:
                return found[table][name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, Module):
            self._forget(name, "_modules")
            self._started("assign a module")
            own["_modules"][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise BadArgument(f"cannot assign {type(value).__name__} as parameter {name!r}",
                                  why="only a Parameter or None can stand there", fix=f"with no_grad(): module.{name}.copy_(value)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise BadArgument(f"cannot assign {type(value).__name__} as child module {name!r}", fix="assign a Module or None, or del it first")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise BadArgument(f"cannot assign {type(value).__name__} as buffer {name!r}", fix="assign a tensor or None")
            own["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
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
            raise BadArgument(f"{what} name must be a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"{what} name can't be empty or contain a dot, got {name!r}")
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute {name!r} already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self._check_name(name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise BadArgument(f"cannot assign {type(param).__name__} as parameter {name!r}", fix="nn.Parameter(tensor), or None")
        if param is not None and not param.is_leaf and param.grad_fn is not None:
            raise BadValue(f"parameter {name!r} was computed, and only leaves can be trained", fix="nn.Parameter(value.detach())")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor that belongs to the state but is not trained."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise BadArgument(f"cannot assign {type(tensor).__name__} as buffer {name!r}", fix="a tensor, or None")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        self._check_name(name, "module", "_modules")
        if module is not None and not isinstance(module, Module):
            raise BadArgument(f"{type(module).__name__} is not a Module")
        self._modules[name] = module

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        found: Any = self
        for part in target.split(".") if target else ():
            if not isinstance(getattr(found, part, None), Module):
                raise AttributeError(f"{type(found).__name__} has no module {part!r}")
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"{type(parent).__name__} has no module {name!r}")
        parent._modules[name] = module

    def get_parameter(self, target: str) -> Parameter:
        return self._get(target, "_parameters", "parameter")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        return self._get(target, "_buffers", "buffer")  # type: ignore[no-any-return]

    def _get(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in owner.__dict__[table]:
            raise AttributeError(f"{type(owner).__name__} has no {what} {name!r}")
        return owner.__dict__[table][name]

    def get_extra_state(self) -> Any:
        raise RuntimeError("define get_extra_state and set_extra_state together")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError("define get_extra_state and set_extra_state together")

    # ------------------------------------------------------------------------------------------------------ what it holds

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Itself and every module inside, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else iter([(prefix, self)])
        for path, owner in owners:
            for name, value in owner.__dict__[table].items():
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers(recurse=recurse))

    # ---------------------------------------------------------------------------------------------------- changing it all

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Calls `fn` with every module inside and with itself, last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Training mode, for dropout and batch statistics; `eval()` leaves it."""
        if not isinstance(mode, bool):
            raise BadValue("train: training mode is expected to be boolean", fix="model.train(True)")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Every parameter and buffer replaced by fn of it; parameters stay the objects that an optimizer holds."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for p in self._parameters.values():
            if p is not None:
                with no_grad():
                    p.data = fn(p.data)
                    if p.grad is not None:
                        p.grad.data = fn(p.grad.data)
        for name, b in self._buffers.items():
            if is_lazy(b):
                b.data = fn(b.data)
            elif b is not None:
                self._buffers[name] = fn(b)
        return self

    def to(self: M, *targets: Any, memory_format: Any = None, **settings: Any) -> M:
        """Parameters and buffers of a floating point type in another one; the device can only be the CPU.

        `memory_format` is for tensors of images and volumes; the others stay as they are.
        """
        for target in (*targets, *settings.values()):
            if isinstance(target, dtype) and not (target.is_floating_point or target.is_complex):
                raise BadArgument(f"to: a module can only be of a floating point or complex type, not {target}")

        def convert(t: Any) -> Any:
            if memory_format is not None and t.ndim in (4, 5):
                t = t.to(memory_format=memory_format)
            if t.is_floating_point() or t.is_complex():
                return t.to(*targets, **settings)
            return t.to(*(v for v in targets if not isinstance(v, (dtype, Tensor))), **{k: v for k, v in settings.items() if k != "dtype"})

        return self._apply(convert)

    def float(self: M) -> M:
        return self.to(float32)

    def double(self: M) -> M:
        return self.to(float64)

    def half(self: M) -> M:
        return self.to(float16)

    def bfloat16(self: M) -> M:
        return self.to(bfloat16)

    def type(self: M, dst_type: Any) -> M:
        return self._apply(lambda t: t.to(as_dtype(dst_type)))

    def cpu(self: M) -> M:
        return self

    def cuda(self: M, device: Any = None) -> M:
        raise NoDevice("cuda: this build computes on the CPU only", fix="model.cpu(), or leave the device out")

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        return self.to(device)

    def share_memory(self: M) -> M:
        raise NotSupported("share_memory: tensors are not shared between processes", fix="threads share memory by themselves")

    def compile(self, *arguments: Any, **settings: Any) -> None:
        """Nothing to do: there is no compiler."""

    # -------------------------------------------------------------------------------------------------------------- calling

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        raise NotImplementedError(f"Module [{type(self).__name__}] is missing the required \"forward\" function")

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        own = self.__dict__
        if not (own["_forward_pre_hooks"] or own["_forward_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
                or _EVERY_FORWARD_PRE or _EVERY_FORWARD or _EVERY_BACKWARD or _EVERY_BACKWARD_PRE):
            return self.forward(*inputs, **settings)
        return self._call_with_hooks(inputs, settings)

    _call_impl = __call__

    def _call_with_hooks(self, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        for hook, with_settings in [*_EVERY_FORWARD_PRE.values(), *self._forward_pre_hooks.values()]:
            answer = hook(self, inputs, settings) if with_settings else hook(self, inputs)
            if answer is not None and with_settings:
                if not isinstance(answer, tuple) or len(answer) != 2:
                    raise BadValue(f"forward pre-hook: must return None or (arguments, keyword arguments), got {type(answer).__name__}",
                                   fix="return args, kwargs")
                inputs, settings = answer
            elif answer is not None:
                inputs = answer if isinstance(answer, tuple) else (answer,)
        after, before = [*_EVERY_BACKWARD.values(), *self._backward_hooks.values()], [*_EVERY_BACKWARD_PRE.values(), *self._backward_pre_hooks.values()]
        boundary = BackwardHooks(self, after, before) if after or before else None
        if boundary is not None:
            inputs = boundary.around_inputs(inputs)
        waiting = [*_EVERY_FORWARD.values(), *self._forward_hooks.values()]
        try:
            result = self.forward(*inputs, **settings)
            while waiting:
                hook, with_settings, _ = waiting.pop(0)
                answer = hook(self, inputs, settings, result) if with_settings else hook(self, inputs, result)
                result = result if answer is None else answer
        except BaseException:
            for hook, with_settings, always in waiting:
                if always:
                    hook(self, inputs, settings, None) if with_settings else hook(self, inputs, None)
            raise
        return result if boundary is None else boundary.around_outputs(result)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Calls hook(module, inputs) before forward; what it returns, if anything, replaces the inputs."""
        return self._forward_pre_hooks.put((hook, with_kwargs), prepend)  # type: ignore[no-any-return]

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> Handle:
        """Calls hook(module, inputs, output) after forward; what it returns, if anything, replaces the output."""
        return self._forward_hooks.put((hook, with_kwargs, always_call), prepend)  # type: ignore[no-any-return]

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls hook(module, grad_input, grad_output) when both are known; what it returns, if anything, replaces grad_input."""
        return self._backward_hooks.put(hook, prepend)  # type: ignore[no-any-return]

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls hook(module, grad_output) before the module is differentiated; what it returns, if anything, replaces it."""
        return self._backward_pre_hooks.put(hook, prepend)  # type: ignore[no-any-return]

    # ---------------------------------------------------------------------------------------------------------------- state

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        return self._state_dict_pre_hooks.put(hook)  # type: ignore[no-any-return]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        return self._state_dict_hooks.put(hook)  # type: ignore[no-any-return]

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        return self._load_state_dict_pre_hooks.put(lambda *arguments: hook(self, *arguments))  # type: ignore[no-any-return]

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Handle:
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self._load_state_dict_pre_hooks.put(hook)  # type: ignore[no-any-return]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        return self._load_state_dict_post_hooks.put(hook)  # type: ignore[no-any-return]

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Module.get_extra_state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """What this module itself, without those inside, adds to a state_dict."""
        kept = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        for name, value in chain(self._parameters.items(), kept):
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if self._has_extra_state():
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by name. They share their memory with the module."""
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            answer = hook(self, destination, prefix, metadata)
            destination = destination if answer is None else answer
        return destination  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copies values by name into parameters and buffers: all of them, or, where something does not fit, none.

        `strict` demands that the names are the same; `assign` puts the tensors themselves in place of the old ones.
        """
        if not isinstance(state_dict, Mapping):
            raise BadArgument(f"load_state_dict: expects a dict of tensors by name, got {type(state_dict).__name__}",
                              fix="model.load_state_dict(mutagrad.load(path))")
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        writes: list[Callable[[], None]] = []
        self._collect(state, "", metadata, assign, missing, unexpected, errors, writes)
        result = IncompatibleKeys(missing, unexpected)
        if strict and unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {', '.join(map(repr, unexpected))}. ")
        if strict and missing:
            errors.insert(0, f"Missing key(s) in state_dict: {', '.join(map(repr, missing))}. ")
        if errors:
            raise ShapeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors),
                             why="nothing was loaded", fix="load_state_dict(state, strict=False) leaves out names that do not match")
        with no_grad():
            for write in writes:
                write()
        for module in self.modules():
            for hook in module._load_state_dict_post_hooks.values():
                hook(module, result)
        return result

    def _collect(self, state: dict[str, Any], prefix: str, metadata: Any, assign: bool, missing: list[str], unexpected: list[str],
                 errors: list[str], writes: list[Callable[[], None]]) -> None:
        """Goes through all modules; what is to be written is written only when everything fits."""
        local = dict(metadata.get(prefix[:-1], {})) if metadata else {}
        local["assign_to_params_buffers"] = assign
        self._pending = writes
        try:
            self._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
        finally:
            del self._pending
        for name, module in self._modules.items():
            if module is not None:
                module._collect(state, f"{prefix}{name}.", metadata, assign, missing, unexpected, errors, writes)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """What this module itself, without those inside, takes from a state_dict."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        kept = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        own = {n: v for n, v in chain(self._parameters.items(), kept) if v is not None}
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, value, state_dict[key], local_metadata.get("assign_to_params_buffers", False), error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + "_extra_state"
        if self._has_extra_state():
            if extra in state_dict:
                self._pending.append(lambda: self.set_extra_state(state_dict[extra]))
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                first, _, rest = key[len(prefix):].partition(".")
                if key.startswith(prefix) and key != extra and first not in (self._modules if rest else own):
                    unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, target: Any, value: Any, assign: bool, errors: list[str]) -> None:
        if not isinstance(value, Tensor):
            errors.append(f"While copying the parameter named {key!r}, expected a tensor, got {type(value).__name__}.")
            return
        if is_lazy(value) or is_lazy(target):
            if is_lazy(target) and not is_lazy(value):
                self._pending += [lambda: target.materialize(value.shape), lambda: target.copy_(value)]
            elif not is_lazy(target):
                errors.append(f"{key} has no shape in the checkpoint, whose module had not been called, and {tuple(target.shape)} in the current model.")
            return
        if value.shape != target.shape and not (value.shape == (1,) and not target.ndim):
            errors.append(f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from checkpoint, "
                          f"the shape in current model is {tuple(target.shape)}.")
            return
        if not assign:
            self._pending.append(lambda: target.copy_(value.reshape(target.shape)))
        elif name in self._parameters:
            made = value if isinstance(value, Parameter) else Parameter(value, target.requires_grad)
            self._pending.append(lambda: self._parameters.update({name: made}))
        else:
            self._pending.append(lambda: self._buffers.update({name: value}))

    # ----------------------------------------------------------------------------------------------------------------- text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the brackets of the repr: define it in a subclass."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({''.join(lines)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Of all modules."""
    return _EVERY_FORWARD_PRE.put((hook, False))


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Of all modules."""
    return _EVERY_FORWARD.put((hook, with_kwargs, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Of all modules."""
    return _EVERY_BACKWARD.put(hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Of all modules."""
    return _EVERY_BACKWARD_PRE.put(hook)
